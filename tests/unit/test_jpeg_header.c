/* JPEG headers: files that are left to libjpeg. tests/kernels/test_jpeg.c decodes what is read of
 * the others. */
#include <stdlib.h>
#include <string.h>

#include "../lib/jpegs.h"
#include "codec/jpeg_header.h"
#include "unit.h"

static struct jpeg_scan scan;

static uint8_t *file_of(const struct jpegs_wish *wish, size_t *size)
{
	struct jpegs_picture picture =
	    jpegs_draw(wish->width, wish->height, 3, JPEGS_SMOOTH, wish->quality);
	uint8_t *file = jpegs_encode(&picture, wish, size);

	free(picture.samples);
	return file;
}

/* Returns the place of a marker's code in a file. */
static uint8_t *marker(uint8_t *file, uint8_t code)
{
	for (uint8_t *at = file;; at++)
		if (at[0] == 0xFF && at[1] == code)
			return at;
}

/* Changes to a file, by a marker and the bytes after it, which only libjpeg may judge. */
TEST(test_odd)
{
	static const struct {
		uint8_t marker, offset, byte;
		enum jpeg_reason odd;
	} changes[] = {
	    {0xC0, 4, 12, JPEG_REASON_PRECISION},
	    {0xC0, 6, 0, JPEG_REASON_HEADER},
	    {0xC0, 9, 4, JPEG_REASON_HEADER},
	    {0xC0, 10, 2, JPEG_REASON_HEADER},
	    {0xC0, 14, 0x12, JPEG_REASON_SUBSAMPLING},
	    {0xC0, 11, 0x12, JPEG_REASON_SUBSAMPLING}, /* 4:4:0 */
	    {0xC0, 12, 9, JPEG_REASON_HEADER},
	    {0xC0, 12, 3, JPEG_REASON_TABLES},
	    {0xC0, 1, 0xC2, JPEG_REASON_PROGRESSIVE},
	    {0xC0, 1, 0xC9, JPEG_REASON_CODING}, /* arithmetic */
	    {0xC0, 1, 0xC8, JPEG_REASON_CODING},
	    {0xC0, 1, 0xDC, JPEG_REASON_HEADER},
	    {0xDB, 4, 0x04, JPEG_REASON_TABLES},
	    {0xDB, 3, 0x42, JPEG_REASON_TABLES},
	    {0xC4, 4, 0x25, JPEG_REASON_TABLES},
	    {0xC4, 5, 0xFF, JPEG_REASON_TABLES},
	    {0xC4, 5, 2, JPEG_REASON_TABLES}, /* two codes more than values */
	    {0xC4, 4, 3, JPEG_REASON_TABLES},
	    {0xDA, 4, 1, JPEG_REASON_HEADER},
	    {0xDA, 6, 0x22, JPEG_REASON_TABLES},
	    {0xDA, 10, 0x00, JPEG_REASON_TABLES},
	    {0xDA, 11, 1, JPEG_REASON_HEADER},
	    {0xDA, 14, 0xFF, JPEG_REASON_SCANS},
	    {0xD9, 1, 0xD8, JPEG_REASON_SCANS},
	    {0xD9, 1, 0x00, JPEG_REASON_END},
	};
	const struct jpegs_wish wish = {33, 17, JPEGS_420, .quality = 80};
	size_t size;
	uint8_t *file = file_of(&wish, &size), *copy = malloc(size);

	assert_non_null(copy);
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		enum jpeg_reason odd;

		memcpy(copy, file, size);
		marker(copy, changes[i].marker)[changes[i].offset] = changes[i].byte;
		odd = jpeg_header_read(copy, size, &scan);
		if (odd != changes[i].odd)
			fail_msg("%x+%d: %s, not %s", changes[i].marker, changes[i].offset,
			         jpeg_reason_slugs[odd], jpeg_reason_slugs[changes[i].odd]);
	}
	free(copy);
	free(file);
}

/* However much of it there is, a part is no file, and what follows EOI does not matter. */
TEST(test_truncated)
{
	const struct jpegs_wish wish = {20, 9, JPEGS_422, 80, .restart_interval = 1};
	size_t size;
	uint8_t *file = file_of(&wish, &size), *twice = malloc(2 * size);
	struct jpeg_scan once;

	assert_non_null(twice);
	assert_false(jpeg_header_read(file, size, &once));
	for (size_t n = 0; n < size; n++) {
		uint8_t *part = malloc(n ? n : 1); /* so that sanitizers see its end */

		assert_non_null(part);
		memcpy(part, file, n);
		assert_true(jpeg_header_read(part, n, &scan));
		free(part);
	}
	memcpy(twice, file, size);
	memcpy(twice + size, file, size);
	assert_false(jpeg_header_read(twice, 2 * size, &scan));
	assert_memory_equal(&once, &scan, sizeof scan);
	free(twice);
	free(file);
}

TEST(test_prefix_codes)
{
	struct jpeg_huffman table = {.bits = {0}};

	for (int p = 0; p < JPEG_PLANES; p++)
		for (int c = 0; c < JPEG_CLASSES; c++)
			assert_true(
			    jpeg_huffman_valid(&jpeg_standard_huffman[p][c], (enum jpeg_class)c));
	assert_false(jpeg_huffman_valid(&table, JPEG_AC)); /* no code */
	table.bits[0] = 1;
	assert_true(jpeg_huffman_valid(&table, JPEG_AC));
	table.bits[0] = 2; /* one of only 1 bits */
	assert_false(jpeg_huffman_valid(&table, JPEG_AC));
	table.bits[0] = 0;
	table.bits[15] = 1; /* short prefixes are no codes: too many others */
	assert_false(jpeg_huffman_valid(&table, JPEG_AC));
	table = jpeg_standard_huffman[0][JPEG_DC];
	table.values[3] = 16;
	assert_false(jpeg_huffman_valid(&table, JPEG_DC));
	assert_true(jpeg_huffman_valid(&table, JPEG_AC));
}
