/* JPEG files that devices can decode, and what libjpeg-turbo makes of pictures. */
#pragma once

#include "image/jpeg.h"
#include "jpegs.h"

struct jpeg_file {
	struct jpegs_wish wish;
	struct jpegs_picture picture; /* owned */
	uint8_t *bytes;               /* owned */
	size_t size;
	struct jpeg_scan scan; /* the bytes' */
};

/* Encodes a picture, which the file then owns, or ends the program if a device could not decode
 * it. */
void jpeg_file_encode(struct jpeg_file *file, struct jpegs_picture picture, struct jpegs_wish wish);
/* The same with a drawn picture of the wish's size. */
void jpeg_file_make(struct jpeg_file *file, struct jpegs_wish wish, enum jpegs_content content,
                    uint32_t seed);
void jpeg_file_free(struct jpeg_file *file);

/* The first bytes of the scan. */
const uint8_t *jpeg_file_scan(const struct jpeg_file *file);

/* The encoding of such a file, for a device. */
struct jpeg_target jpeg_file_target(const struct jpegs_wish *wish);
