/* One baseline JPEG scan as numbers and tables (ITU-T T.81): the description that a codec worker
 * sends to a device worker, so that only the former parses files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JPEG_COMPONENTS = 3,
	JPEG_BLOCK = 64,       /* coefficients of a block: 8 x 8 */
	JPEG_SIDE_MAX = 65500, /* libjpeg's JPEG_MAX_DIMENSION */
	JPEG_NEAR_BITS = 10,   /* Huffman codes of up to this many bits have a table of their own */
	/* largest number of 16-bit prefixes of all longer codes together */
	JPEG_LONG_CODES = 1 << 13,
};

enum jpeg_side { JPEG_DECODE, JPEG_ENCODE, JPEG_SIDES };
enum jpeg_class { JPEG_DC, JPEG_AC, JPEG_CLASSES };
enum jpeg_plane { JPEG_LUMA, JPEG_CHROMA, JPEG_PLANES };

/* See jpeg_reasons.def. */
enum jpeg_reason {
#define REASON(symbol, ...) JPEG_REASON_##symbol,
#include "image/jpeg_reasons.def"
	JPEG_REASONS
};
extern const char *const jpeg_reason_slugs[JPEG_REASONS];

/* The position in a block, stored by rows, of each coefficient in the order of a file. */
extern const uint8_t jpeg_zigzag[JPEG_BLOCK];

/* A Huffman table as in files: the number of codes of each of 1 to 16 bits, and their values. */
struct jpeg_huffman {
	uint8_t bits[16];
	uint8_t values[256];
};

/* The scan of a grayscale image, or the interleaved one of Y, Cb, Cr. */
struct jpeg_scan {
	uint32_t width, height;    /* pixels */
	uint32_t components;       /* 1 or 3 */
	uint32_t h, v;             /* sampling factors of Y: 1x1, 2x1 or 2x2; others have 1x1 */
	uint32_t restart_interval; /* in MCUs; 0: no restart markers */
	uint16_t quantization[JPEG_COMPONENTS][JPEG_BLOCK]; /* in zigzag order */
	struct jpeg_huffman huffman[JPEG_PLANES][JPEG_CLASSES];
	uint64_t offset, size; /* place of the entropy-coded bytes in their file */
};

/* The scan of a result: with jpeg_standard_huffman, without restart markers, with the size and
 * components of the filtered image. */
struct jpeg_target {
	uint32_t h, v; /* sampling factors of Y: 1x1, 2x1 or 2x2; 1x1 if gray */
	uint16_t quantization[JPEG_PLANES][JPEG_BLOCK]; /* in zigzag order, 1 to 255 */
};

/* The entropy-coded bytes of a scan. */
struct jpeg_bytes {
	const uint8_t *at;
	size_t size;
};

/* A scan that a device decodes (with `offset` 0) and one that it encodes for a tile. */
struct jpeg_work {
	struct jpeg_scan scan;
	struct jpeg_target target;
};

enum { JPEG_WORK_SIZE = (sizeof(struct jpeg_work) + 63) / 64 * 64 };

/* True if a device can decode a scan of these numbers, from another process, whatever its bytes. */
bool jpeg_scan_valid(const struct jpeg_scan *scan);

/* Returns true for a prefix code that libjpeg accepts: at least one code, none of only 1 bits, DC
 * categories of at most 15; and at most JPEG_LONG_CODES prefixes that belong to codes longer than
 * JPEG_NEAR_BITS or to no code. */
bool jpeg_huffman_valid(const struct jpeg_huffman *table, enum jpeg_class class);
unsigned jpeg_huffman_count(const struct jpeg_huffman *table);

/* The tables of T.81 Annex K.3, used by encoders that do not count symbols first. */
extern const struct jpeg_huffman jpeg_standard_huffman[JPEG_PLANES][JPEG_CLASSES];

/* Sets the quantization table of Annex K.1 for a quality from 1 to 100, scaled and limited to 8
 * bits as by libjpeg, in zigzag order. */
void jpeg_quality_table(unsigned quality, enum jpeg_plane plane, uint16_t table[JPEG_BLOCK]);
