/* Reads the boxes of a HEIF file that say where its items are. */
#include "codec/formats/heif.h"

#include <string.h>

bool heif_is_cut(const uint8_t *body, size_t size)
{
	const uint8_t *at = body;
	struct box box;

	while (next_box(&at, body + size, &box))
		if (box.cut)
			return true;
	return false;
}

/* Returns a type's first box in the content of another, after its first `skip` bytes. */
static bool find_box(const struct box *parent, size_t skip, const char *type, struct box *box)
{
	const uint8_t *at = parent->at + skip, *end = parent->at + parent->size;

	if (parent->size < skip)
		return false;
	while (next_box(&at, end, box))
		if (box_is(box, type))
			return true;
	return false;
}

static bool find_in_meta(const uint8_t *body, size_t size, const char *type, struct box *box)
{
	const struct box file = {.at = body, .size = size};
	struct box meta;

	return find_box(&file, 0, "meta", &meta) && find_box(&meta, 4, type, box);
}

/* Reads a number of `size` bytes at *at and advances *at. Returns 0 beyond the end. */
static uint64_t read_number(const uint8_t **at, const uint8_t *end, size_t size)
{
	const uint8_t *from = *at;

	if (size > 8 || (size_t)(end - from) < size) {
		*at = end;
		return 0;
	}
	*at += size;
	return bytes_number(from, size, true);
}

bool heif_items_open(struct heif_items *items, const uint8_t *body, size_t size)
{
	struct box iloc;
	uint64_t sizes;

	if (!find_in_meta(body, size, "iloc", &iloc) || iloc.size < 8)
		return false;
	*items = (struct heif_items){.body_size = size,
	                             .at = iloc.at + 4,
	                             .end = iloc.at + iloc.size,
	                             .version = iloc.at[0]};
	if (!find_in_meta(body, size, "iinf", &items->infos))
		items->infos.size = 0;
	sizes = read_number(&items->at, items->end, 2);
	items->offset_size = sizes >> 12 & 15;
	items->length_size = sizes >> 8 & 15;
	items->base_size = sizes >> 4 & 15;
	items->index_size = items->version ? sizes & 15 : 0;
	items->left = read_number(&items->at, items->end, items->version < 2 ? 2 : 4);
	return true;
}

/* True if iinf calls the item metadata; its entries (infe) have a type from version 2 on. */
static bool is_metadata(const struct heif_items *items, uint64_t id)
{
	const size_t head = items->infos.size && items->infos.at[0] ? 8 : 6;
	const uint8_t *at, *end;
	struct box infe;

	if (items->infos.size < head)
		return false;
	at = items->infos.at + head;
	end = items->infos.at + items->infos.size;
	while (next_box(&at, end, &infe)) {
		size_t id_size = infe.size && infe.at[0] > 2 ? 4 : 2;

		if (infe.size >= 10 + id_size && bytes_number(infe.at + 4, id_size, true) == id)
			return !memcmp(infe.at + 6 + id_size, "mime", 4) ||
			       !memcmp(infe.at + 6 + id_size, "Exif", 4);
	}
	return false;
}

bool heif_items_next(struct heif_items *items, struct heif_item *item)
{
	uint64_t id, pieces;

	if (!items->left-- || items->at >= items->end)
		return false;
	*item = (struct heif_item){0};
	id = read_number(&items->at, items->end, items->version < 2 ? 2 : 4);
	read_number(&items->at, items->end, items->version ? 2 : 0); /* construction_method */
	read_number(&items->at, items->end, 2);                      /* data_reference_index */
	read_number(&items->at, items->end, items->base_size);
	pieces = read_number(&items->at, items->end, 2);
	for (; pieces && items->at < items->end; pieces--) {
		uint64_t length;

		read_number(&items->at, items->end, items->index_size);
		read_number(&items->at, items->end, items->offset_size);
		length = read_number(&items->at, items->end, items->length_size);
		item->size +=
		    length && length < items->body_size ? length : items->body_size; /* 0: all */
	}
	item->metadata = is_metadata(items, id);
	return true;
}

uint64_t heif_profile_size(const uint8_t *body, size_t size)
{
	struct box iprp, ipco, box;
	uint64_t largest = 0;

	if (!find_in_meta(body, size, "iprp", &iprp) || !find_box(&iprp, 0, "ipco", &ipco))
		return 0;
	for (const uint8_t *at = ipco.at; next_box(&at, ipco.at + ipco.size, &box);)
		if (box_is(&box, "colr") && box.size > largest)
			largest = box.size;
	return largest;
}

unsigned heif_count_pictures(const uint8_t *body, size_t size)
{
	struct heif_items items;
	struct heif_item item;
	unsigned pictures = 0;

	if (!heif_items_open(&items, body, size))
		return 0;
	while (heif_items_next(&items, &item))
		pictures += !item.metadata && item.size > 1 && item.size < size;
	return pictures;
}

/* Moves the first size (ispe) among a number of ipma's entries in front of them. */
static bool move_size(uint8_t *entries, size_t count, size_t size, const struct box *properties,
                      bool write)
{
	const uint64_t number_mask = size == 1 ? 0x7f : 0x7fff;
	uint64_t entry = 0, number, left;
	struct box box;
	size_t i = 0;

	for (; i < count; i++) {
		const uint8_t *at = properties->at, *end = at + properties->size;

		entry = bytes_number(entries + i * size, size, true);
		number = entry & number_mask; /* the property, counted from 1 */
		for (left = number; left && next_box(&at, end, &box); left--)
			continue;
		if (number && !left && box_is(&box, "ispe"))
			break;
	}
	if (i == count)
		return false;
	if (write) {
		memmove(entries + size, entries, i * size);
		bytes_put(entries, entry, size, true);
	}
	return i > 0;
}

bool heif_order(uint8_t *body, size_t size, bool write)
{
	struct box iprp, ipco, ipma;
	const uint8_t *at, *end;
	size_t id_size, entry_size;
	bool moved = false;

	if (!find_in_meta(body, size, "iprp", &iprp) || !find_box(&iprp, 0, "ipco", &ipco) ||
	    !find_box(&iprp, 0, "ipma", &ipma) || ipma.size < 8)
		return false;
	at = ipma.at + 8;
	end = ipma.at + ipma.size;
	id_size = ipma.at[0] ? 4 : 2;
	entry_size = ipma.at[3] & 1 ? 2 : 1;
	while ((size_t)(end - at) > id_size) {
		size_t count;

		at += id_size;
		count = *at++;
		if ((size_t)(end - at) < count * entry_size)
			break;
		moved |= move_size(body + (at - body), count, entry_size, &ipco, write);
		at += count * entry_size;
	}
	return moved;
}
