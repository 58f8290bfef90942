/* Chunks: how a PNG divides its file (W3C, Portable Network Graphics, chapter 5). */
#ifndef CODEC_PNG_CHUNKS_H
#define CODEC_PNG_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "codec/bytes.h"

/* Bytes before the first chunk, and of a chunk around its data: length and name, and a checksum. */
enum { PNG_SIGNATURE = 8, PNG_CHUNK_HEAD = 8, PNG_CHUNK_FRAME = 12 };

struct png_chunk {
	const uint8_t *name; /* 4 letters */
	const uint8_t *data;
	uint32_t size; /* of the data, as much as there is of them */
	bool cut;      /* the file ends before the chunk does */
};

/* Reads the chunk at *at and moves behind it, whatever its checksum is. False: none is left. */
static inline bool png_chunk_next(const uint8_t **at, const uint8_t *end, struct png_chunk *c)
{
	uint64_t room = (uint64_t)(end - *at), size;

	if (room < PNG_CHUNK_HEAD)
		return false;
	size = bytes_number(*at, 4, true);
	c->name = *at + 4;
	c->data = *at + PNG_CHUNK_HEAD;
	c->cut = size + PNG_CHUNK_FRAME > room;
	c->size = (uint32_t)(size + PNG_CHUNK_HEAD > room ? room - PNG_CHUNK_HEAD : size);
	*at += c->cut ? room : size + PNG_CHUNK_FRAME;
	return true;
}

static inline bool png_chunk_is(const struct png_chunk *c, const char *name)
{
	return !memcmp(c->name, name, 4);
}

/* Skips a text that ends by zero; NULL: it has none. */
static inline const uint8_t *png_text_end(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *zero = at ? memchr(at, 0, (size_t)(end - at)) : NULL;

	return zero ? zero + 1 : NULL;
}

#endif
