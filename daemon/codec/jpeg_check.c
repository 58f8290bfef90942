#include "codec/jpeg_check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/log.h"
#include "codec/jpeg_decode.h"
#include "codec/jpeg_header.h"

/* A sample that was rounded otherwise may change a coefficient by a quantization step, and with it
 * samples by at most a quarter of 255; but very few are. */
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
		d->most = difference > d->most ? difference : d->most;
	}
	d->samples += (double)count;
}

static bool are_small(const struct differences *d)
{
	return d->most <= difference_max && d->sum <= mean_max * d->samples;
}

/* Decodes both files and compares their samples. */
static bool alike(struct jpeg_decoder *const decoders[2], const struct jpeg_header *header,
                  uint8_t *rows, struct problem *problem, bool *failed)
{
	size_t row = (size_t)header->width * header->bands;
	struct differences differences = {0};

	for (uint32_t y = 0; y < header->height; y += ROWS) {
		uint32_t count = header->height - y < ROWS ? header->height - y : ROWS;

		for (int i = 0; i < 2; i++)
			if (jpeg_decode_rows(decoders[i], y, count, 0, header->width,
			                     rows + (size_t)i * ROWS * row, row, problem)) {
				*failed = i == 0; /* the answer; the device's must be readable */
				return false;
			}
		add_differences(&differences, rows, rows + ROWS * row, count * row);
	}
	return are_small(&differences);
}

static enum jpeg_check check_samples(const struct jpeg_bytes files[2])
{
	struct jpeg_decoder *decoders[2] = {NULL, NULL};
	struct jpeg_header headers[2];
	struct problem problem;
	uint8_t *rows = NULL;
	bool failed = false, same = true;

	for (int i = 0; i < 2; i++)
		failed |= jpeg_decode_open(&decoders[i], &headers[i], files[i].at, files[i].size,
		                           &problem) ||
		          !decoders[i];
	if (!failed)
		rows = malloc(2 * (size_t)ROWS * headers[0].width * headers[0].bands);
	failed |= !rows;
	if (!failed)
		same = alike(decoders, &headers[0], rows, &problem, &failed);
	free(rows);
	for (int i = 0; i < 2; i++)
		jpeg_decode_close(&decoders[i]);
	return failed ? JPEG_NOT_CHECKED : same ? JPEG_SAME : JPEG_DIFFERS;
}

/* The device's scan between the answer's header and end. */
static enum jpeg_check check(const struct jpeg_bytes *scan, const struct jpeg_bytes *answer)
{
	struct jpeg_scan own;
	struct jpeg_bytes files[2] = {*answer};
	enum jpeg_check result;
	uint8_t *file;

	if (jpeg_header_read(answer->at, answer->size, &own))
		return JPEG_NOT_CHECKED;
	if (own.size == scan->size && !memcmp(answer->at + own.offset, scan->at, scan->size))
		return JPEG_SAME;
	files[1].size = own.offset + scan->size + (answer->size - own.offset - own.size);
	files[1].at = file = malloc(files[1].size);
	if (!file)
		return JPEG_NOT_CHECKED;
	memcpy(file, answer->at, own.offset);
	memcpy(file + own.offset, scan->at, scan->size);
	memcpy(file + own.offset + scan->size, answer->at + own.offset + own.size,
	       answer->size - own.offset - own.size);
	result = check_samples(files);
	free(file);
	return result;
}

enum jpeg_check jpeg_check(const struct jpeg_bytes *scan, int file)
{
	enum jpeg_check result = JPEG_NOT_CHECKED;
	struct stat status;
	void *map = MAP_FAILED;

	if (!fstat(file, &status) && status.st_size)
		map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
	if (map != MAP_FAILED) {
		const struct jpeg_bytes answer = {map, (size_t)status.st_size};

		result = check(scan, &answer);
		munmap(map, answer.size);
	}
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
