#include "codec/jpeg_check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "codec/jpeg_decode.h"
#include "codec/jpeg_header.h"
#include "common/log.h"

/* A sample that was rounded otherwise may change a coefficient by a quantization step, and with it
 * samples by at most a quarter of 255; but very few are. */
static const int difference_max = 64;
static const double mean_max = 0.25;

enum { ROWS = 16 };

/* Decodes both files and compares their samples. */
static bool alike(struct jpeg_decoder *const decoders[2], const struct jpeg_header *header,
                  uint8_t *rows, struct problem *problem, bool *failed)
{
	size_t row = (size_t)header->width * header->bands;
	double sum = 0;
	int most = 0;

	for (uint32_t y = 0; y < header->height; y += ROWS) {
		uint32_t count = header->height - y < ROWS ? header->height - y : ROWS;

		for (int i = 0; i < 2; i++)
			if (jpeg_decode_rows(decoders[i], y, count, 0, header->width,
			                     rows + (size_t)i * ROWS * row, row, problem)) {
				*failed = i == 0; /* the answer; the device's must be readable */
				return false;
			}
		for (size_t i = 0; i < count * row; i++) {
			int difference = abs(rows[i] - rows[ROWS * row + i]);

			sum += difference;
			most = difference > most ? difference : most;
		}
	}
	return most <= difference_max && sum <= mean_max * (double)row * header->height;
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
