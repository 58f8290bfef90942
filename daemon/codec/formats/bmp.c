/* Windows bitmaps by Microsoft's documentation of BITMAPFILEHEADER to BITMAPV5HEADER, without a
 * library. Pixels are rows in place, or run-length encoded, which libvips does not read. Rows must
 * be available in any order, so runs are expanded at once. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "base/file.h"
#include "codec/metadata/containers.h"
#include "codec/formats/samples.h"

enum {
	FILE_HEAD = 14,
	CORE_HEAD = 12, /* OS/2 1 */
	INFO_HEAD = 40,
	MASKS = 40, /* in or after the header */
	ALPHA_HEAD = 56,
	V4_HEAD = 108,
	V5_HEAD = 124,
};

enum { PLAIN = 0, RUNS_OF_8 = 1, RUNS_OF_4 = 2, MASKED = 3, MASKED_WITH_ALPHA = 6 };

/* Some bits of a pixel. */
struct channel {
	uint32_t mask, max;
	unsigned shift;
};

struct bmp {
	const uint8_t *head; /* the header of the bitmap */
	const uint8_t *end;  /* end of the file */
	const uint8_t *pixels;
	size_t head_size, row_size;
	uint32_t width, height, bits, compression;
	bool top_down, alpha;
	uint32_t bands;
	uint8_t palette[256][3]; /* RGB; only the first is used if all are grey */
	struct channel channels[4];
	uint8_t *indices; /* palette entries of pixels expanded from runs; otherwise NULL */
	struct file_metadata metadata;
};

static uint32_t number(const uint8_t *at, size_t size)
{
	return (uint32_t)bytes_number(at, size, false);
}

static enum error broken(struct problem *problem, const char *what)
{
	return problem_set(problem, ERR_UNDECODABLE, "the BMP decoder says: %s", what);
}

/* Headers -------------------------------------------------------------------------------------- */

static bool is_core(const struct bmp *b)
{
	return b->head_size == CORE_HEAD;
}

static bool has_runs(const struct bmp *b)
{
	return b->compression == RUNS_OF_8 || b->compression == RUNS_OF_4;
}

static bool set_channel(struct channel *c, uint32_t mask)
{
	*c = (struct channel){.mask = mask};
	if (!mask)
		return true;
	c->shift = (unsigned)__builtin_ctz(mask);
	c->max = mask >> c->shift;
	return !(c->max & (c->max + 1));
}

static enum error read_masks(struct bmp *b, struct problem *problem)
{
	static const uint32_t usual[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
	bool given = b->compression != PLAIN, whole = true;
	bool alpha = b->head_size >= ALPHA_HEAD || b->compression == MASKED_WITH_ALPHA;

	if (given && (size_t)(b->end - b->head) < ALPHA_HEAD)
		return broken(problem, "the file ends in its header");
	for (size_t i = 0; i < 3; i++)
		whole &= set_channel(&b->channels[i], given ? number(b->head + MASKS + 4 * i, 4)
		                                            : usual[b->bits == 32][i]);
	if (given && alpha)
		whole &= set_channel(&b->channels[3], number(b->head + MASKS + 12, 4));
	return whole ? ERR_OK : broken(problem, "the bits of a colour are not next to each other");
}

/* Returns its size in bytes. */
static size_t read_palette(struct bmp *b)
{
	const size_t entry = is_core(b) ? 3 : 4;
	const uint32_t most = 1u << b->bits;
	uint32_t count = is_core(b) ? 0 : number(b->head + 32, 4);
	size_t room = (size_t)(b->end - b->head), at = b->head_size;

	/* Masks follow the shortest header that can be followed by them. */
	if (b->head_size == INFO_HEAD && b->compression >= MASKED)
		at += b->compression == MASKED ? 12 : 16;
	count = count && count < most ? count : most;
	b->bands = 1;
	for (uint32_t i = 0; i < count && at + entry <= room; i++, at += entry) {
		const uint8_t *bgr = b->head + at;
		uint8_t *rgb = b->palette[i];

		rgb[0] = bgr[2];
		rgb[1] = bgr[1];
		rgb[2] = bgr[0];
		if (rgb[0] != rgb[1] || rgb[1] != rgb[2])
			b->bands = 3;
	}
	return count * entry;
}

static enum error read_header(struct bmp *b, struct problem *problem)
{
	/* Bits per pixel. Microsoft allows no run-length encoding from top to bottom, and some
	 * readers refuse it (gdk-pixbuf, GraphicsMagick). Those that read it (Pillow, ImageMagick)
	 * all take the first row as the top. */
	static const uint64_t depths[] = {
	    [PLAIN] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16 | 1 << 24 | UINT64_C(1) << 32,
	    [RUNS_OF_8] = 1 << 8,
	    [RUNS_OF_4] = 1 << 4,
	    [MASKED] = 1 << 16 | UINT64_C(1) << 32,
	    [MASKED_WITH_ALPHA] = 1 << 16 | UINT64_C(1) << 32,
	};
	size_t room = (size_t)(b->end - b->head), side;
	int64_t width, height;
	enum error e = ERR_OK;

	b->head_size = room < 4 ? 0 : number(b->head, 4);
	if ((b->head_size != CORE_HEAD && b->head_size < INFO_HEAD) || b->head_size > V5_HEAD)
		return broken(problem, "the header has an unknown length");
	if (b->head_size > room)
		return broken(problem, "the file ends in its header");
	b->bits = number(b->head + (is_core(b) ? 10 : 14), 2);
	b->compression = is_core(b) ? PLAIN : number(b->head + 16, 4);
	side = is_core(b) ? 2 : 4;
	width = (int32_t)number(b->head + 4, side);
	height = (int32_t)number(b->head + 4 + side, side);
	if (width <= 0 || !height)
		return broken(problem, "the image has no pixels");
	b->top_down = height < 0; /* rows run from top to bottom */
	b->width = (uint32_t)width;
	b->height = (uint32_t)(height < 0 ? -height : height);
	if (b->compression > MASKED_WITH_ALPHA || b->bits > 32 ||
	    !(depths[b->compression] >> b->bits & 1))
		e = problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                "the BMP has %u bits a pixel in compression %u; 1, 2, 4, 8, 16, 24 "
		                "and 32 bits are supported, 4 and 8 also in runs, 16 and 32 with "
		                "masks",
		                b->bits, b->compression);
	if (!e && (b->bits == 16 || b->bits == 32))
		e = read_masks(b, problem);
	b->row_size = ((size_t)b->width * b->bits + 31) / 32 * 4;
	b->bands = 3;
	return e;
}

/* There is only a resolution and a profile. */
static void read_metadata(struct bmp *b)
{
	static const char embedded[] = "DEBM"; /* little-endian */
	struct file_metadata *m = &b->metadata;
	int32_t x = is_core(b) ? 0 : (int32_t)number(b->head + 24, 4);
	int32_t y = is_core(b) ? 0 : (int32_t)number(b->head + 28, 4);
	size_t room = (size_t)(b->end - b->head);

	m->resolution = (struct resolution){1, 1, PER_INCH};
	if (x > 0 && y > 0)
		m->resolution = (struct resolution){x / 1000.0, y / 1000.0, PER_INCH};
	if (b->head_size == V5_HEAD && !memcmp(b->head + 56, embedded, 4)) {
		size_t offset = number(b->head + 112, 4), size = number(b->head + 116, 4);

		if (offset < room && size && size <= room - offset)
			m->profile = (struct file_part){b->head + offset, size};
	}
}

/* Grey if all colours of the palette are, else RGB; alpha if the file says so. */
static enum error open_bmp(void *state, struct decoded *decoded, const struct body *body,
                           struct problem *problem)
{
	struct bmp *b = state;
	uint64_t offset;
	enum error e;

	if (body->size < FILE_HEAD)
		return broken(problem, "the file ends in its header");
	offset = number(body->at + 10, 4);
	b->head = body->at + FILE_HEAD;
	b->end = body->at + body->size;
	e = read_header(b, problem);
	if (e)
		return e;
	if (b->bits <= 8) {
		const size_t palette = read_palette(b);

		/* Some writers forget the palette; Pillow knows these files, too. */
		offset += offset == FILE_HEAD + b->head_size ? palette : 0;
	}
	b->alpha = b->channels[3].mask;
	b->pixels = body->at + (offset < body->size ? offset : body->size);
	read_metadata(b);
	decoded->whole = (struct image){.width = b->width,
	                                .height = b->height,
	                                .bands = b->bands + b->alpha,
	                                .type = PIXEL_U8,
	                                .alpha = b->alpha};
	decoded->plain = decoded->any_order = true;
	decoded->held = has_runs(b) ? 1 : 0;
	return ERR_OK;
}

/* Pixels --------------------------------------------------------------------------------------- */

/* Expands runs. Rows count from the first in the file; pixels that no run covers are 0. Returns
 * false if the file ends before the runs do. */
static bool expand(struct bmp *b)
{
	enum { RUN = -1, LINE, END, MOVE }; /* above these: a number of pixels with own values */
	const uint8_t *at = b->pixels;
	uint32_t x = 0, y = 0;

	while (y < b->height) {
		uint8_t *row = b->indices + (size_t)y * b->width;
		const size_t room = (size_t)(b->end - at);
		const int code = room < 2 || at[0] ? RUN : at[1];
		const bool own = code > MOVE;
		const size_t size = own ? ((size_t)code * b->bits + 7) / 8 : code == MOVE ? 2 : 0;

		if (room < 2 + size)
			return y + 1 == b->height && x >= b->width;
		for (uint32_t i = 0; i < at[own] && x < b->width; i++) {
			const uint8_t value = own ? at[2 + i * b->bits / 8] : at[1];

			row[x++] = b->bits == 8 ? value : value >> (i & 1 ? 0 : 4) & 15;
		}
		if (code == END)
			return true;
		if (code == LINE) {
			x = 0;
			y++;
		} else if (code == MOVE) {
			x = MIN(x + at[2], b->width);
			y += at[3];
		}
		at += MIN(2 + size + (size & 1), room);
	}
	return true;
}

static enum error find_rows(void *state, struct problem *problem)
{
	struct bmp *b = state;
	const uint64_t there = (uint64_t)(b->end - b->pixels);
	const uint64_t needed =
	    (b->height - 1) * (uint64_t)b->row_size + ((uint64_t)b->width * b->bits + 7) / 8;

	if (!has_runs(b))
		return there >= needed
		           ? ERR_OK
		           : problem_set(problem, ERR_UNDECODABLE,
		                         "the BMP decoder says: the file is truncated: it holds "
		                         "%" PRIu64 " of the image's %" PRIu64 " bytes of pixels",
		                         there, needed);
	b->indices = calloc(b->height, b->width);
	if (!b->indices)
		return no_memory(problem, "to decode");
	return expand(b) ? ERR_OK : broken(problem, "the file is truncated");
}

static void copy_row(const struct bmp *b, uint32_t row, uint32_t x, uint32_t width, uint8_t *to)
{
	const uint8_t *from = b->pixels + row * b->row_size;
	const size_t bands = b->bands + b->alpha, bytes = b->bits / 8;

	for (uint32_t end = x + width; x < end; x++, to += bands) {
		if (b->indices) {
			memcpy(to, b->palette[b->indices[(size_t)row * b->width + x]], b->bands);
		} else if (b->bits <= 8) {
			unsigned per_byte = 8 / b->bits, place = per_byte - 1 - x % per_byte;
			unsigned index =
			    from[x / per_byte] >> place * b->bits & ((1u << b->bits) - 1);

			memcpy(to, b->palette[index], b->bands);
		} else if (b->bits == 24) {
			to[0] = from[3 * (size_t)x + 2];
			to[1] = from[3 * (size_t)x + 1];
			to[2] = from[3 * (size_t)x];
		} else {
			const uint32_t pixel = number(from + x * bytes, bytes);

			for (size_t i = 0; i < bands; i++) {
				const struct channel *c = &b->channels[i];
				const uint64_t v = (pixel & c->mask) >> c->shift;

				to[i] = (uint8_t)(c->max == 255 || !c->max
				                      ? v
				                      : (v * 255 + c->max / 2) / c->max);
			}
		}
	}
}

static enum error read_rows(void *state, const struct area *area, uint8_t *to, size_t pitch,
                            struct problem *)
{
	const struct bmp *b = state;

	for (uint32_t i = 0; i < area->height; i++, to += pitch) {
		uint32_t row = b->top_down ? area->y + i : b->height - 1 - area->y - i;

		copy_row(b, row, area->x, area->width, to);
	}
	return ERR_OK;
}

const struct reader bmp_reader = {
    .size = sizeof(struct bmp),
    .block = offsetof(struct bmp, indices),
    .metadata = offsetof(struct bmp, metadata),
    .open = open_bmp,
    .find = find_rows,
    .rows = read_rows,
};

/* Writing ----------------------------------------------------------------------------------------
 *
 * 8 bits with a palette of greys, 24 bits, or 32 bits with masks, the last one alpha's. The
 * header is the shortest that can say so, as most readers know it. */

enum { GREYS = 256, GREYS_SIZE = 4 * GREYS };
enum { FOR_IMAGES = 4 };

/* A bitmap up to its pixels. */
struct head {
	uint8_t bytes[FILE_HEAD + V5_HEAD + GREYS_SIZE];
	size_t bitmap; /* bytes of the bitmap's header */
	size_t size;   /* bytes in all */
};

static void put(uint8_t *to, uint64_t number)
{
	bytes_put(to, number, 4, false);
}

/* Per metre. */
static uint32_t density(double per_mm)
{
	return (uint32_t)fmin(rint(per_mm * 1000), INT32_MAX);
}

static void make_head(struct head *h, const struct image *image, const struct file_metadata *m,
                      uint64_t pixels)
{
	static const uint32_t masks[] = {0xff0000, 0xff00, 0xff, 0xff000000};
	uint8_t *bitmap = h->bytes + FILE_HEAD;
	const size_t profile = m->profile.size;
	bool grey = image->bands == 1;

	*h = (struct head){.bitmap = profile ? V5_HEAD : image->alpha ? V4_HEAD : INFO_HEAD};
	h->size = FILE_HEAD + h->bitmap + (grey ? GREYS_SIZE : 0);
	memcpy(h->bytes, "BM", 2);
	put(h->bytes + 2, h->size + pixels + profile);
	put(h->bytes + 10, h->size);
	put(bitmap, h->bitmap);
	put(bitmap + 4, image->width);
	put(bitmap + 8, image->height);
	put(bitmap + 12, 1 | 8 * image->bands << 16); /* planes and bits, of 16 bits each */
	put(bitmap + 16, image->alpha ? MASKED : 0);
	put(bitmap + 20, pixels);
	put(bitmap + 24, density(m->resolution.x));
	put(bitmap + 28, density(m->resolution.y));
	put(bitmap + 32, grey ? GREYS : 0);
	for (size_t i = 0; image->alpha && i < 4; i++)
		put(bitmap + 40 + 4 * i, masks[i]);
	if (h->bitmap > INFO_HEAD)
		memcpy(bitmap + 56, profile ? "DEBM" : "BGRs", 4); /* embedded, or sRGB */
	if (profile) {
		put(bitmap + 108, FOR_IMAGES);
		put(bitmap + 112, h->size - FILE_HEAD + pixels);
		put(bitmap + 116, profile);
	}
	for (uint32_t i = 0; grey && i < GREYS; i++)
		put(bitmap + h->bitmap + 4 * i, i * 0x10101);
}

static void put_bgr_row(const struct output_format *output, uint8_t *to, const uint8_t *row)
{
	if (output->image.bands > 1)
		samples_to_bgr(to, output->image.bands, output, row);
	else
		memcpy(to, row, output->image.width);
}

static enum error write_bmp(const struct answer *answer, struct problem *problem)
{
	const struct image *image = &answer->output->image;
	const struct file_metadata *m = answer->metadata;
	struct row_layout layout = {
	    .row_size = (image_row_size(image) + 3) / 4 * 4, .bottom_up = true, .put = put_bgr_row};
	const uint64_t pixels = layout.row_size * (uint64_t)image->height;
	const struct file_part *profile = &m->profile;
	struct head head;
	enum error e;

	make_head(&head, image, m, pixels);
	layout.start = head.size;
	e = samples_write(answer, &layout, head.bytes, problem);
	if (!e && profile->at &&
	    !file_write(answer->file, profile->at, profile->size, head.size + pixels))
		e = problem_set(problem, ERR_IO, "cannot write the answer");
	return e;
}

const struct writer bmp_writer = {.write = write_bmp};
