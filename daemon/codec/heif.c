/* Reads the boxes of a HEIF file that say where its items are, and the headers of AV1 images (AV1
 * Bitstream & Decoding Process Specification, 5.3 and 5.5) and of HEVC images (ITU-T H.265, 7.3).
 *
 * The hard part: the size that a file declares for an image (ispe) need not be that of the coded
 * picture, which a decoder allocates and decodes, nor is a coded picture decoded only once: a grid
 * may consist of one picture many times. Nothing here is believed but the coded headers. */
#include "codec/heif.h"

#include <string.h>

#include "codec/boxes.h"
#include "codec/bytes.h"

static const uint64_t pixels_max = UINT64_C(1) << 40;

/* Boxes ---------------------------------------------------------------------------------------- */

bool heif_is_cut(const uint8_t *body, size_t size)
{
	const uint8_t *at = body, *end = body + size;

	while (end - at >= 8) {
		uint64_t room = (uint64_t)(end - at), length = bytes_number(at, 4, true);

		if (length == 1 && room >= 16)
			length = bytes_number(at + 8, 8, true);
		if (length > room)
			return true;
		if (length < 8) /* 0: up to the end; others are the decoder's to judge */
			return false;
		at += length;
	}
	return false;
}

/* The first box of a type among those of another's content, after its first `skip` bytes. */
static bool find_box(const struct box *parent, size_t skip, const char *type, struct box *box)
{
	const uint8_t *at = parent->at + skip, *end = parent->at + parent->size;

	if (parent->size < skip)
		return false;
	while (next_box(&at, end, box))
		if (!memcmp(box->type, type, 4))
			return true;
	return false;
}

static struct box whole(const uint8_t *body, size_t size)
{
	return (struct box){.at = body, .size = size};
}

static bool find_meta(const uint8_t *body, size_t size, struct box *meta)
{
	struct box file = whole(body, size);

	return find_box(&file, 0, "meta", meta);
}

/* The boxes of all properties. */
static bool find_properties(const uint8_t *body, size_t size, const uint8_t **at,
                            const uint8_t **end)
{
	struct box meta, iprp, ipco;

	if (!find_meta(body, size, &meta) || !find_box(&meta, 4, "iprp", &iprp) ||
	    !find_box(&iprp, 0, "ipco", &ipco))
		return false;
	*at = ipco.at;
	*end = ipco.at + ipco.size;
	return true;
}

/* Items ---------------------------------------------------------------------------------------- */

/* Reads a number of `size` bytes at *at, and moves behind it; 0 beyond the end. */
static uint64_t take(const uint8_t **at, const uint8_t *end, size_t size)
{
	uint64_t number = 0;

	if (size > 8 || (size_t)(end - *at) < size) {
		*at = end;
		return 0;
	}
	if (size)
		number = bytes_number(*at, size, true);
	*at += size;
	return number;
}

bool heif_items_open(struct heif_items *items, const uint8_t *body, size_t size)
{
	struct box meta, iloc, idat, iinf;
	uint64_t sizes;

	*items = (struct heif_items){.body = body, .body_size = size};
	if (!find_meta(body, size, &meta) || !find_box(&meta, 4, "iloc", &iloc) || iloc.size < 8)
		return false;
	if (find_box(&meta, 4, "idat", &idat)) {
		items->idat = idat.at;
		items->idat_size = idat.size;
	}
	if (find_box(&meta, 4, "iinf", &iinf)) {
		items->infos = iinf.at;
		items->infos_size = iinf.size;
	}
	items->at = iloc.at;
	items->end = iloc.at + iloc.size;
	items->version = (unsigned)take(&items->at, items->end, 1);
	items->at += 3;
	sizes = take(&items->at, items->end, 2);
	items->offset_size = sizes >> 12 & 15;
	items->length_size = sizes >> 8 & 15;
	items->base_size = sizes >> 4 & 15;
	items->index_size = items->version ? sizes & 15 : 0;
	items->left = take(&items->at, items->end, items->version < 2 ? 2 : 4);
	return true;
}

/* Sets *at and *end to the entries of iinf. */
static bool find_infos(const struct heif_items *items, const uint8_t **at, const uint8_t **end)
{
	size_t head = items->infos_size && items->infos[0] ? 8 : 6;

	if (items->infos_size < head)
		return false;
	*at = items->infos + head;
	*end = items->infos + items->infos_size;
	return true;
}

/* Finds the type of an item in iinf, whose entries (infe) have one from version 2 on. */
static void find_type(const struct heif_items *items, struct heif_item *item)
{
	const uint8_t *at, *end;
	struct box infe;

	if (!find_infos(items, &at, &end))
		return;
	while (next_box(&at, end, &infe)) {
		size_t id_size = infe.size && infe.at[0] > 2 ? 4 : 2;

		if (infe.size >= 10 + id_size &&
		    bytes_number(infe.at + 4, id_size, true) == item->id) {
			memcpy(item->type, infe.at + 6 + id_size, 4);
			return;
		}
	}
}

/* Where the first piece is; method: 0 in the file, 1 in idat. */
static void locate(const struct heif_items *items, struct heif_item *item, uint64_t method,
                   uint64_t offset, uint64_t length)
{
	const uint8_t *base = method ? items->idat : items->body;
	size_t room = method ? items->idat_size : items->body_size;

	if (method > 1 || !base || offset >= room)
		return;
	item->at = base + offset;
	item->there = room - (size_t)offset;
	if (length && length < item->there) /* 0: all that follows */
		item->there = (size_t)length;
}

bool heif_items_next(struct heif_items *items, struct heif_item *item)
{
	size_t id_size = items->version < 2 ? 2 : 4;
	uint64_t method = 0, base;

	if (!items->left-- || items->at >= items->end)
		return false;
	*item = (struct heif_item){.id = take(&items->at, items->end, id_size)};
	if (items->version)
		method = take(&items->at, items->end, 2) & 15;
	take(&items->at, items->end, 2); /* data_reference_index */
	base = take(&items->at, items->end, items->base_size);
	item->pieces = take(&items->at, items->end, 2);
	for (uint64_t i = 0; i < item->pieces && items->at < items->end; i++) {
		uint64_t offset, length;

		take(&items->at, items->end, items->index_size);
		offset = take(&items->at, items->end, items->offset_size);
		length = take(&items->at, items->end, items->length_size);
		if (!i)
			locate(items, item, method, base + offset, length);
		length = length && length < items->body_size ? length : items->body_size;
		item->size += length;
	}
	find_type(items, item);
	return true;
}

size_t heif_count_infos(const struct heif_items *items)
{
	const uint8_t *at, *end;
	struct box infe;
	size_t count = 0;

	if (!find_infos(items, &at, &end))
		return 0;
	while (next_box(&at, end, &infe))
		count++;
	return count;
}

uint64_t heif_profile_size(const uint8_t *body, size_t size)
{
	const uint8_t *at, *end;
	struct box box;
	uint64_t largest = 0;

	if (!find_properties(body, size, &at, &end))
		return 0;
	while (next_box(&at, end, &box))
		if (!memcmp(box.type, "colr", 4) && box.size > largest)
			largest = box.size;
	return largest;
}

/* AV1 ------------------------------------------------------------------------------------------ */

struct bits {
	const uint8_t *at;
	size_t size, next; /* in bits */
};

/* Zeros follow the end. */
static uint64_t bits(struct bits *b, unsigned count)
{
	uint64_t value = 0;

	for (; count; count--, b->next++)
		value = value << 1 |
		        (b->next < b->size ? b->at[b->next / 8] >> (7 - b->next % 8) & 1u : 0);
	return value;
}

static void skip_variable(struct bits *b)
{
	unsigned zeros = 0;

	while (zeros < 32 && b->next < b->size && !bits(b, 1))
		zeros++;
	bits(b, zeros < 32 ? zeros : 0);
}

/* timing_info() and decoder_model_info(): the bits of a delay, 0 without a model. */
static unsigned skip_timing(struct bits *b)
{
	unsigned delay = 0;

	if (!bits(b, 1))
		return 0;
	bits(b, 32 + 32);
	if (bits(b, 1))
		skip_variable(b);
	if (bits(b, 1)) {
		delay = 1 + (unsigned)bits(b, 5);
		bits(b, 32 + 5 + 5);
	}
	return delay;
}

static void skip_points(struct bits *b, unsigned delay)
{
	bool displays = bits(b, 1);

	for (uint64_t left = 1 + bits(b, 5); left; left--) {
		bits(b, 12);
		if (bits(b, 5) > 7)
			bits(b, 1);
		if (delay && bits(b, 1))
			bits(b, 2 * delay + 1);
		if (displays && bits(b, 1))
			bits(b, 4);
	}
}

/* The largest frame that a sequence header allows. */
static uint64_t sequence_pixels(const uint8_t *at, size_t size)
{
	struct bits b = {.at = at, .size = 8 * size, .next = 4};
	unsigned width_bits, height_bits;
	uint64_t width;

	if (bits(&b, 1))
		bits(&b, 5);
	else
		skip_points(&b, skip_timing(&b));
	width_bits = 1 + (unsigned)bits(&b, 4);
	height_bits = 1 + (unsigned)bits(&b, 4);
	width = 1 + bits(&b, width_bits);
	return width * (1 + bits(&b, height_bits));
}

static uint64_t take_leb128(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 8 && *at < end; i++) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 127) << 7 * i;
		if (byte < 128)
			break;
	}
	return value;
}

/* Walks the units of a stream: *largest becomes the largest frame that a header allows, unless it
 * is larger already; returns the number of frames. */
static uint64_t walk_units(const uint8_t *at, size_t size, uint64_t *largest)
{
	enum { SEQUENCE_HEADER = 1, FRAME_HEADER = 3, FRAME = 6 };
	const uint8_t *end = at + size;
	uint64_t frames = 0;

	while (at < end) {
		unsigned head = *at++, type = head >> 3 & 15;
		uint64_t room, length;

		at += head >> 2 & 1 && at < end;
		room = (uint64_t)(end - at);
		length = head >> 1 & 1 ? take_leb128(&at, end) : room;
		room = (uint64_t)(end - at);
		length = length < room ? length : room;
		frames += type == FRAME_HEADER || type == FRAME;
		if (type == SEQUENCE_HEADER && sequence_pixels(at, length) > *largest)
			*largest = sequence_pixels(at, length);
		at += length;
	}
	return frames;
}

/* HEVC ----------------------------------------------------------------------------------------- */

/* An unsigned Exp-Golomb code. */
static uint64_t golomb(struct bits *b)
{
	unsigned zeros = 0;

	while (zeros < 32 && b->next < b->size && !bits(b, 1))
		zeros++;
	return zeros < 32 ? (UINT64_C(1) << zeros) - 1 + bits(b, zeros) : UINT32_MAX;
}

/* profile_tier_level() */
static void skip_profile(struct bits *b, unsigned layers)
{
	uint64_t present[8] = {0};

	bits(b, 88 - 64);
	bits(b, 64);
	bits(b, 8);
	for (unsigned i = 0; i < layers; i++)
		present[i] = bits(b, 2);
	if (layers)
		bits(b, 2 * (8 - layers));
	for (unsigned i = 0; i < layers; i++) {
		if (present[i] & 2) {
			bits(b, 64);
			bits(b, 88 - 64);
		}
		if (present[i] & 1)
			bits(b, 8);
	}
}

/* The pixels of a picture by a sequence parameter set, after the head of its unit. */
static uint64_t sps_pixels(const uint8_t *at, size_t size)
{
	enum { ENOUGH = 256 }; /* of what comes before the size */
	uint8_t plain[ENOUGH];
	struct bits b = {.at = plain};
	size_t count = 0, zeros = 0;
	unsigned layers;
	uint64_t width;

	for (size_t i = 0; i < size && count < ENOUGH; i++) {
		bool inserted = zeros >= 2 && at[i] == 3;

		zeros = at[i] || inserted ? 0 : zeros + 1;
		if (!inserted)
			plain[count++] = at[i];
	}
	b.size = 8 * count;
	bits(&b, 4);
	layers = (unsigned)bits(&b, 3);
	bits(&b, 1);
	skip_profile(&b, layers);
	golomb(&b);
	if (golomb(&b) == 3)
		bits(&b, 1);
	width = golomb(&b);
	return width < pixels_max ? width * golomb(&b) : pixels_max;
}

/* Of a unit: as walk_units() has it. */
static uint64_t judge_unit(const uint8_t *at, size_t size, uint64_t *largest)
{
	enum { SLICES_END = 32, SPS = 33, HEAD = 2 };
	unsigned type = size > HEAD ? at[0] >> 1 & 63 : SLICES_END;

	if (type == SPS && sps_pixels(at + HEAD, size - HEAD) > *largest)
		*largest = sps_pixels(at + HEAD, size - HEAD);
	return type < SLICES_END && at[HEAD] >> 7; /* the first slice of a picture */
}

/* Units with their lengths before them, of four bytes as decoders take them. */
static uint64_t walk_hevc(const uint8_t *at, size_t size, uint64_t *largest)
{
	const uint8_t *end = at + size;
	uint64_t frames = 0;

	while (end - at > 4) {
		uint64_t length = take(&at, end, 4), room = (uint64_t)(end - at);

		length = length < room ? length : room;
		frames += judge_unit(at, (size_t)length, largest);
		at += length;
	}
	return frames;
}

/* The units in hvcC: arrays of them, with lengths of two bytes. */
static void walk_hvcc(const struct box *box, uint64_t *largest)
{
	enum { HEAD = 22 };
	const uint8_t *at = box->at + HEAD, *end = box->at + box->size;

	if (box->size <= HEAD)
		return;
	for (uint64_t arrays = take(&at, end, 1); arrays && at < end; arrays--) {
		take(&at, end, 1);
		for (uint64_t units = take(&at, end, 2); units && at < end; units--) {
			uint64_t length = take(&at, end, 2), room = (uint64_t)(end - at);

			length = length < room ? length : room;
			judge_unit(at, (size_t)length, largest);
			at += length;
		}
	}
}

/* The largest frame by the headers in av1C or hvcC, which decoders put before those of an item. */
static uint64_t configured_pixels(const uint8_t *body, size_t size)
{
	const uint8_t *at, *end;
	struct box box;
	uint64_t largest = 0;

	if (!find_properties(body, size, &at, &end))
		return 0;
	while (next_box(&at, end, &box))
		if (!memcmp(box.type, "av1C", 4) && box.size > 4)
			walk_units(box.at + 4, box.size - 4, &largest);
		else if (!memcmp(box.type, "hvcC", 4))
			walk_hvcc(&box, &largest);
	return largest;
}

static uint64_t item_pixels(const struct heif_item *item, uint64_t configured)
{
	uint64_t largest = configured, frames;

	if (!item->at)
		return 0;
	if (!memcmp(item->type, "av01", 4))
		frames = walk_units(item->at, item->there, &largest);
	else if (!memcmp(item->type, "hvc1", 4))
		frames = walk_hevc(item->at, item->there, &largest);
	else
		return 0;
	frames = frames ? frames : 1;
	return largest > pixels_max / frames ? pixels_max : largest * frames;
}

/* What each item takes to decode, by its number. */
struct costs {
	struct {
		uint64_t id, pixels;
	} item[HEIF_ITEMS_MAX];
	size_t count;
	uint64_t largest;
};

static void add_costs(struct costs *costs, const uint8_t *body, size_t size)
{
	uint64_t configured = configured_pixels(body, size);
	struct heif_items items;
	struct heif_item item;

	costs->count = 0;
	costs->largest = 0;
	if (!heif_items_open(&items, body, size))
		return;
	while (costs->count < HEIF_ITEMS_MAX && heif_items_next(&items, &item)) {
		uint64_t pixels = item_pixels(&item, configured);

		costs->item[costs->count].id = item.id;
		costs->item[costs->count++].pixels = pixels;
		costs->largest = pixels > costs->largest ? pixels : costs->largest;
	}
}

/* Adds what the parts take that a dimg box lists, once for each time that one is listed. */
static void add_parts(const struct costs *costs, const struct box *box, size_t id_size,
                      uint64_t *parts, uint64_t *sum)
{
	const uint8_t *at = box->at + id_size, *end = box->at + box->size;

	for (uint64_t left = take(&at, end, 2); left && at < end && ++*parts <= HEIF_ITEMS_MAX;
	     left--) {
		uint64_t id = take(&at, end, id_size);

		for (size_t i = 0; i < costs->count; i++)
			if (costs->item[i].id == id)
				*sum += costs->item[i].pixels;
	}
}

uint64_t heif_coded_pixels(const uint8_t *body, size_t size)
{
	struct costs costs;
	struct box meta, iref, box;
	const uint8_t *at, *end;
	uint64_t sum, parts = 0;

	add_costs(&costs, body, size);
	sum = costs.largest;
	if (!find_meta(body, size, &meta) || !find_box(&meta, 4, "iref", &iref) || iref.size < 4)
		return sum;
	at = iref.at + 4;
	end = iref.at + iref.size;
	while (next_box(&at, end, &box)) {
		size_t id_size = iref.at[0] ? 4 : 2;

		if (!memcmp(box.type, "dimg", 4) && box.size >= id_size + 2)
			add_parts(&costs, &box, id_size, &parts, &sum);
		if (parts > HEIF_ITEMS_MAX || sum > pixels_max)
			return UINT64_MAX;
	}
	return sum;
}

unsigned heif_count_pictures(const uint8_t *body, size_t size, uint64_t pixels)
{
	uint64_t configured = configured_pixels(body, size);
	struct heif_items items;
	struct heif_item item;
	unsigned pictures = 0;

	if (!heif_items_open(&items, body, size))
		return 0;
	while (heif_items_next(&items, &item))
		pictures += item.there > 1 && item_pixels(&item, configured) >= pixels;
	return pictures;
}
