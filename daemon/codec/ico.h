/* Icons: which of the pictures of an ICO file is shown. */
#ifndef CODEC_ICO_H
#define CODEC_ICO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A picture of an icon: a PNG, or a bitmap without a file's header (bmp.h). */
struct ico_picture {
	const uint8_t *at;
	size_t size;
	bool png;
};

/* Chooses the largest, and of several of this size the first with the most bits a pixel. Returns
 * how many there are, 0 if none lies within the file. */
unsigned ico_choose(struct ico_picture *picture, const uint8_t *file, size_t size);

#endif
