#include "codec/jp2k.h"

#include <string.h>

#include "codec/bytes.h"

enum { BOX_HEAD = 8, LONG_BOX_HEAD = 16 };

/* Of the SIZ segment, from the start of the codestream, which it follows at once (A.5.1). */
enum {
	WIDTH = 8,
	HEIGHT = 12,
	TILE_WIDTH = 24,
	TILE_HEIGHT = 28,
	TILES_X = 32,
	TILES_Y = 36,
	COMPONENTS = 40,
	DEPTH = 42,
	SIZ_END = 45 /* of the first component */
};

static bool begins_codestream(const uint8_t *at, size_t size)
{
	return size >= SIZ_END && !memcmp(at, "\xff\x4f\xff\x51", 4);
}

/* The content of the first box "jp2c"; NULL: none. Annex I.4. */
static const uint8_t *find_codestream(const uint8_t *at, const uint8_t *end)
{
	while (end - at >= BOX_HEAD) {
		uint64_t room = (uint64_t)(end - at), size = bytes_number(at, 4, true);
		size_t head = size == 1 ? LONG_BOX_HEAD : BOX_HEAD;

		if (room < head)
			return NULL;
		if (size == 1)
			size = bytes_number(at + BOX_HEAD, 8, true);
		if (!memcmp(at + 4, "jp2c", 4))
			return at + head;
		if (size < head || size > room) /* 0: it is the last */
			return NULL;
		at += size;
	}
	return NULL;
}

static uint64_t number(const uint8_t *siz, size_t at)
{
	return bytes_number(siz + at, 4, true);
}

/* Tiles along an axis: their grid may begin before the image. */
static uint64_t tiles_along(uint64_t end, uint64_t first, uint64_t tile)
{
	return first < end && tile ? (end - first + tile - 1) / tile : 0;
}

bool jp2k_header_read(struct jp2k_header *h, const uint8_t *file, size_t size)
{
	const uint8_t *end = file + size;
	const uint8_t *siz = begins_codestream(file, size) ? file : find_codestream(file, end);

	if (!siz || !begins_codestream(siz, (size_t)(end - siz)))
		return false;
	*h = (struct jp2k_header){
	    .tiles =
	        tiles_along(number(siz, WIDTH), number(siz, TILES_X), number(siz, TILE_WIDTH)) *
	        tiles_along(number(siz, HEIGHT), number(siz, TILES_Y), number(siz, TILE_HEIGHT)),
	    .components = (uint32_t)bytes_number(siz + COMPONENTS, 2, true),
	    .bits = (siz[DEPTH] & 0x7fu) + 1,
	};
	return true;
}
