/* Reading netpbm's formats: PBM, PGM and PPM, plain (P1 to P3) and raw (P4 to P6), PAM (P7) and PFM
 * (Pf, PF), of which the first image in a file is read. (libvips takes comments in a header for
 * pixels, and a missing sample for black.) */
#ifndef CODEC_PNM_DECODE_H
#define CODEC_PNM_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "image/image.h"

struct pnm;

/* Reads the header. u8 up to a maximum of 255, u16 above it, f32 of PFM; *cmyk is set if the bands
 * are inks. The size is the file's word until pnm_begin(). The caller keeps the file, which must
 * outlive the result. ERR_UNDECODABLE, or ERR_UNSUPPORTED_PIXELS: too many bands. */
enum error pnm_open(struct pnm **pnm, struct image *image, bool *cmyk, const uint8_t *file,
                    size_t size, struct problem *problem) MUST_CHECK;
void pnm_close(struct pnm **pnm);

/* Finds where rows are, for plain formats in memory of 8 bytes a row. ERR_UNDECODABLE: they are not
 * all there, or hold something else than samples. */
enum error pnm_begin(struct pnm *pnm, struct problem *problem) MUST_CHECK;

/* After pnm_begin(), counts the images in the file, at least 1. */
uint32_t pnm_count(const struct pnm *pnm);

/* After pnm_begin(), copies a part of some rows, in any order. Samples are brought to the full
 * scale of their type. */
void pnm_rows(const struct pnm *pnm, uint32_t y, uint32_t count, uint32_t x, uint32_t width,
              uint8_t *to, size_t pitch);

#endif
