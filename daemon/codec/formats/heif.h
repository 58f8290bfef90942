/* The parts of HEIF's structure (ISO/IEC 23008-12) by which small files can cause much work. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/metadata/containers.h"

/* An item: a coded image, a derived one, or metadata. */
struct heif_item {
	uint64_t size; /* bytes, of all pieces that it is put together from */
	bool metadata; /* EXIF or XMP */
};

struct heif_items {
	const uint8_t *at, *end;
	struct box infos; /* empty: none */
	size_t body_size;
	uint64_t left;
	unsigned version, offset_size, length_size, base_size, index_size;
};

/* True if a top-level box exceeds the file. libheif 1.19 ends the process over some of these. */
bool heif_is_cut(const uint8_t *body, size_t size);

/* Reads the items of a file in the order of their locations. Returns false if there are none. */
bool heif_items_open(struct heif_items *items, const uint8_t *body, size_t size);
/* False after the last. */
bool heif_items_next(struct heif_items *items, struct heif_item *item);

/* Returns the size in bytes of the largest ICC profile, whether or not an item has it. */
uint64_t heif_profile_size(const uint8_t *body, size_t size);

/* Returns the number of items that may be pictures and whose locations tell where they end. */
unsigned heif_count_pictures(const uint8_t *body, size_t size);

/* Returns true if an item's size comes after another of its properties: libheif 1.15 then forgets
 * that the item is turned or cut. With `write`, moves the size in front of these. */
bool heif_order(uint8_t *body, size_t size, bool write);
