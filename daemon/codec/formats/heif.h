/* The structure of a HEIF file (ISO/IEC 23008-12) as far as small files can ask for much there. */
#ifndef CODEC_FORMATS_HEIF_H
#define CODEC_FORMATS_HEIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An item: a coded image, a derived one, or metadata. */
struct heif_item {
	uint64_t size; /* bytes, of all pieces that it is put together from */
	bool metadata; /* EXIF or XMP */
};

struct heif_items {
	const uint8_t *at, *end, *infos;
	size_t body_size, infos_size;
	uint64_t left;
	unsigned version, offset_size, length_size, base_size, index_size;
};

/* True if a box of the file itself goes beyond its end. libheif 1.19 ends the process over some. */
bool heif_is_cut(const uint8_t *body, size_t size);

/* The items of a file, in the order of their locations. False if there are none. */
bool heif_items_open(struct heif_items *items, const uint8_t *body, size_t size);
/* False after the last. */
bool heif_items_next(struct heif_items *items, struct heif_item *item);

/* The largest ICC profile in bytes, associated with an item or not. */
uint64_t heif_profile_size(const uint8_t *body, size_t size);

/* The number of items that may be pictures, and whose places say where they end. */
unsigned heif_count_pictures(const uint8_t *body, size_t size);

/* True if an item's size comes after another of its properties: libheif 1.15 forgets that such an
 * item is turned or cut. With `write`, moves it in front of these. */
bool heif_order(uint8_t *body, size_t size, bool write);

#endif
