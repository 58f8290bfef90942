/* A format's reader without libvips, as targets use it. */
#pragma once

#include "codec/formats/row.h"
#include "codec/metadata/file_metadata.h"
#include "fuzz.h"

/* Rows of an answer. */
struct rows {
	uint8_t *at;
	size_t pitch;
};

static inline const uint8_t *give_row(void *context, uint32_t y)
{
	const struct rows *rows = context;

	return rows->at + y * rows->pitch;
}

/* Reads all rows at once, which cannot fail once the reader has found them. The caller frees. */
static inline uint8_t *read_all(const struct reader *r, void *state, const struct image *image,
                                uint8_t poison)
{
	enum { GUARD = 16 };
	const struct area all = {0, 0, image->width, image->height};
	struct problem problem = {0};
	size_t size = image_size(image);
	uint8_t *pixels = malloc(size + GUARD);
	enum error e;

	memset(pixels, poison, size + GUARD);
	e = r->rows(state, &all, pixels, image_row_size(image), &problem);
	must(!e || (!r->find && problem.detail[0]));
	for (size_t i = 0; i < GUARD; i++)
		must(pixels[size + i] == poison);
	if (e)
		g_clear_pointer(&pixels, free);
	return pixels;
}

static inline void read_part(const struct reader *r, void *state, const struct image *image,
                             const uint8_t *all)
{
	const uint32_t x = image->width / 3;
	const struct area area = {x, image->height / 2, (image->width - x + 1) / 2, 1};
	const size_t pixel = image_pixel_size(image), size = area.width * pixel;
	uint8_t *part = malloc(size);
	struct problem problem;

	must(!r->rows(state, &area, part, size, &problem));
	must(!memcmp(part, all + area.y * image_row_size(image) + x * pixel, size));
	free(part);
}

static inline void read_metadata(const struct file_metadata *m)
{
	unsigned sum = 0;

	for (size_t i = 0; i < m->profile.size; i++)
		sum += m->profile.at[i];
	must(m->resolution.x > 0 && m->resolution.y > 0 && sum < UINT32_MAX);
}

/* Reads a file in any order of rows: every sample is written, in rows and in parts of them, and
 * nothing beside them. Returns its pages; 0: it is refused, or for libvips. */
static inline uint32_t read_file(const struct reader *r, const uint8_t *data, size_t size,
                                 uint64_t pixels_max)
{
	struct body body = {copy_of(data, size), size, false};
	struct problem problem = {0};
	struct decoded decoded = {.file_pages = 1};
	const struct image *image = &decoded.whole;
	uint8_t *first, *second;
	void *state = NULL;
	enum error e = reader_open(r, &state, &decoded, &body, &problem);

	must(!e == !problem.detail[0] && !!state == (!e && decoded.plain));
	must(!state || (decoded.file_pages && image->width && image->height && image->bands &&
	                image->bands <= IMAGE_BANDS_MAX));
	if (state && r->metadata)
		read_metadata(reader_metadata(r, state));
	if (state && (uint64_t)image->width * image->height <= pixels_max) {
		if (r->find && r->find(state, &problem)) {
			must(problem.detail[0]);
		} else if ((first = read_all(r, state, image, 0))) {
			second = read_all(r, state, image, 0xff);
			must(!memcmp(first, second, image_size(image)));
			read_part(r, state, image, first);
			free(first);
			free(second);
		}
	}
	reader_close(r, &state);
	free(body.at);
	return !e && decoded.plain ? decoded.file_pages : 0;
}
