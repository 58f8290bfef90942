/* JPEG 2000 (ISO/IEC 15444-1): what the header of the codestream says. */
#ifndef CODEC_JP2K_H
#define CODEC_JP2K_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct jp2k_header {
	uint64_t tiles;
	uint32_t components;
	unsigned bits; /* of the first component's samples */
};

/* Finds the codestream, in boxes (JP2) or bare, and its SIZ segment. False if there is none that a
 * decoder would take. */
bool jp2k_header_read(struct jp2k_header *header, const uint8_t *file, size_t size) MUST_CHECK;

#endif
