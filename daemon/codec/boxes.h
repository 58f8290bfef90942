/* Boxes: how HEIF, JPEG XL and others divide a file (ISO/IEC 14496-12, 4.2). */
#ifndef CODEC_BOXES_H
#define CODEC_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/bytes.h"

struct box {
	const uint8_t *type, *at;
	size_t size; /* of its content, as much as there is of it */
};

/* Reads the box at *at and moves behind it. A box that is longer than what there is ends with it.
 */
static inline bool next_box(const uint8_t **at, const uint8_t *end, struct box *box)
{
	size_t room = (size_t)(end - *at), head = 8;
	uint64_t size;

	if (room < 8)
		return false;
	size = bytes_number(*at, 4, true);
	if (size == 1 && room >= 16) {
		head = 16;
		size = bytes_number(*at + 8, 8, true);
	}
	if (size == 0 || size > room)
		size = room;
	if (size < head)
		return false;
	*box = (struct box){.type = *at + 4, .at = *at + head, .size = (size_t)size - head};
	*at += size;
	return true;
}

#endif
