#include "codec/tiles.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include <glib.h>

#include "base/log.h"
#include "codec/jpeg_header.h"
#include "codec/formats/row.h"

/* A sample that was rounded differently may change a coefficient by a quantization step, and
 * thereby samples by at most a quarter of 255; but very few samples are. */
static const int difference_max = 64;
static const double mean_max = 0.25;

enum { ROWS = 16 };

/* Statistics of samples that were compared. */
struct differences {
	double samples, sum;
	int most;
};

static void add_differences(struct differences *d, const uint8_t *a, const uint8_t *b, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int difference = abs(a[i] - b[i]);

		d->sum += difference;
		d->most = MAX(d->most, difference);
	}
	d->samples += (double)count;
}

static bool are_small(const struct differences *d)
{
	return d->most <= difference_max && d->sum <= mean_max * d->samples;
}

/* Decodes the answer and the file with the device's scan, and compares their samples. */
static enum jpeg_check compare(void *const files[2], const struct image *image, uint8_t *rows)
{
	const size_t row = image_row_size(image);
	struct differences differences = {0};

	for (uint32_t y = 0; y < image->height; y += ROWS) {
		const struct area part = {0, y, image->width, MIN(image->height - y, ROWS)};

		if (jpeg_reader.rows(files[0], &part, rows, row, NULL))
			return JPEG_NOT_CHECKED;
		/* The device's must be readable. */
		if (jpeg_reader.rows(files[1], &part, rows + ROWS * row, row, NULL))
			return JPEG_DIFFERS;
		add_differences(&differences, rows, rows + ROWS * row, part.height * row);
	}
	return are_small(&differences) ? JPEG_SAME : JPEG_DIFFERS;
}

/* The device's scan between the answer's header and end. */
static enum jpeg_check check(const struct jpeg_bytes *scan, uint8_t *answer, size_t size)
{
	struct jpeg_scan own;
	struct body bodies[2] = {{answer, size, true}};
	void *files[2] = {NULL, NULL};
	struct decoded decoded[2] = {0};
	enum jpeg_check result = JPEG_NOT_CHECKED;
	uint8_t *file, *rows = NULL;
	bool open = true;

	if (jpeg_header_read(answer, size, &own))
		return JPEG_NOT_CHECKED;
	if (own.size == scan->size && !memcmp(answer + own.offset, scan->at, scan->size))
		return JPEG_SAME;
	bodies[1].size = size - own.size + scan->size;
	bodies[1].at = file = malloc(bodies[1].size);
	if (!file)
		return JPEG_NOT_CHECKED;
	memcpy(file, answer, own.offset);
	memcpy(file + own.offset, scan->at, scan->size);
	memcpy(file + own.offset + scan->size, answer + own.offset + own.size,
	       size - own.offset - own.size);
	for (int i = 0; i < 2; i++)
		open &= !reader_open(&jpeg_reader, &files[i], &decoded[i], &bodies[i], NULL) &&
		        decoded[i].plain;
	if (open)
		rows = malloc(2 * ROWS * image_row_size(&decoded[0].whole));
	if (rows)
		result = compare(files, &decoded[0].whole, rows);
	free(rows);
	for (int i = 0; i < 2; i++)
		reader_close(&jpeg_reader, &files[i]);
	free(file);
	return result;
}

enum jpeg_check jpeg_check(const struct jpeg_bytes *scan, int file)
{
	GMappedFile *answer = g_mapped_file_new_from_fd(file, FALSE, NULL);
	enum jpeg_check result = JPEG_NOT_CHECKED;

	if (answer && g_mapped_file_get_length(answer))
		result = check(scan, (uint8_t *)g_mapped_file_get_contents(answer),
		               g_mapped_file_get_length(answer));
	g_clear_pointer(&answer, g_mapped_file_unref);
	if (result == JPEG_NOT_CHECKED)
		log_warning("cannot compare a device's JPEG");
	return result;
}

struct jpeg_compared {
	struct differences differences;
	size_t pixel, pitch; /* bytes */
	uint8_t rows[];
};

struct jpeg_compared *jpeg_compare_new(const struct tiling *tiling, const void *rows)
{
	size_t size = (size_t)tiling->out_pitch * tiling->height;
	struct jpeg_compared *compared = malloc(sizeof *compared + size);

	if (!compared) {
		log_warning("no memory to compare a device's picture");
		return NULL;
	}
	compared->differences = (struct differences){0};
	compared->pixel = image_pixel_size(&tiling->image);
	compared->pitch = tiling->out_pitch;
	memcpy(compared->rows, rows, size);
	return compared;
}

void jpeg_compare_row(struct jpeg_compared *compared, uint32_t y, uint32_t x, const uint8_t *pixels,
                      uint32_t width)
{
	add_differences(&compared->differences,
	                compared->rows + y * compared->pitch + x * compared->pixel, pixels,
	                width * compared->pixel);
}

enum jpeg_check jpeg_compare_end(struct jpeg_compared **compared)
{
	bool small = are_small(&(*compared)->differences);

	free(*compared);
	*compared = NULL;
	return small ? JPEG_SAME : JPEG_DIFFERS;
}
