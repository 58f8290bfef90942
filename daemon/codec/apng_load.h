/* The frames of an animated PNG as libvips gives those of a GIF. */
#ifndef CODEC_APNG_LOAD_H
#define CODEC_APNG_LOAD_H

#include "base/error.h"
#include "codec/row.h"

/* Replaces the file's image, as its loader gives it, by the part's frames, one below the other,
 * with their delays. Each is as it is seen, so with alpha if there is none and frames leave pixels
 * out. Rows are made as they are asked for, best from top to bottom: to go back is to begin again.
 * The file must outlive the image. ERR_UNDECODABLE: they are not all there; ERR_MEMORY. */
enum error apng_load(struct _VipsImage **image, const struct part *part,
                     struct problem *problem) MUST_CHECK;

#endif
