#include "image/jpeg.h"

const char *const jpeg_reason_slugs[JPEG_REASONS] = {
#define REASON(symbol, slug) [JPEG_REASON_##symbol] = slug,
#include "image/jpeg_reasons.def"
};

const uint8_t jpeg_zigzag[JPEG_BLOCK] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

const struct jpeg_huffman jpeg_standard_huffman[JPEG_PLANES][JPEG_CLASSES] = {
    [JPEG_LUMA] = {[JPEG_DC] = {{0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0},
                                {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
                   [JPEG_AC] = {{0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d},
                                {0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41,
                                 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91,
                                 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24,
                                 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a,
                                 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38,
                                 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53,
                                 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66,
                                 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79,
                                 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93,
                                 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5,
                                 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7,
                                 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9,
                                 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1,
                                 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2,
                                 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}}},
    [JPEG_CHROMA] = {[JPEG_DC] = {{0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0},
                                  {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
                     [JPEG_AC] = {{0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 0x77},
                                  {0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12,
                                   0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14,
                                   0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0, 0x15,
                                   0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17,
                                   0x18, 0x19, 0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37,
                                   0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a,
                                   0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65,
                                   0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78,
                                   0x79, 0x7a, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a,
                                   0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3,
                                   0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5,
                                   0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
                                   0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9,
                                   0xda, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2,
                                   0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}}},
};

/* T.81 Annex K.1, row after row. */
static const uint8_t quantization[JPEG_PLANES][JPEG_BLOCK] = {
    [JPEG_LUMA] = {16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
                   14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
                   18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
                   49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99},
    [JPEG_CHROMA] = {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
                     24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
                     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
                     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}};

unsigned jpeg_huffman_count(const struct jpeg_huffman *table)
{
	unsigned count = 0;

	for (int i = 0; i < 16; i++)
		count += table->bits[i];
	return count;
}

/* Codes are assigned in order (T.81 C.2): those above JPEG_NEAR_BITS bits have the top prefixes. */
bool jpeg_huffman_valid(const struct jpeg_huffman *table, enum jpeg_class class)
{
	unsigned count = jpeg_huffman_count(table), code = 0;

	if (!count || count > sizeof table->values)
		return false;
	for (unsigned i = 0; i < count && class == JPEG_DC; i++)
		if (table->values[i] > 15)
			return false;
	for (unsigned length = 1; length <= 16; length++) {
		if (length == JPEG_NEAR_BITS + 1 && code < 2u << JPEG_NEAR_BITS) {
			/* The prefixes from here to the last are codes or no codes at all. */
			unsigned rest = 0x10000 - (code << (16 - length) & ~63u), longer = 0;

			for (unsigned i = length; i <= 16; i++)
				longer += table->bits[i - 1];
			if (longer && rest > JPEG_LONG_CODES)
				return false;
		}
		code += table->bits[length - 1];
		if (table->bits[length - 1] && code >= 1u << length)
			return false; /* beyond the end, or one of only 1 bits */
		code <<= 1;
	}
	return true;
}

bool jpeg_scan_valid(const struct jpeg_scan *scan)
{
	bool color = scan->components == JPEG_COMPONENTS;

	if (scan->width < 1 || scan->width > JPEG_SIDE_MAX || scan->height < 1 ||
	    scan->height > JPEG_SIDE_MAX || (!color && scan->components != 1))
		return false;
	if (scan->h < 1 || scan->h > 2 || scan->v < 1 || scan->v > scan->h ||
	    (!color && scan->h != 1) || scan->restart_interval > UINT16_MAX)
		return false;
	for (int plane = 0; plane < (color ? JPEG_PLANES : 1); plane++)
		for (int class = 0; class < JPEG_CLASSES; class ++)
			if (!jpeg_huffman_valid(&scan->huffman[plane][class],
			                        (enum jpeg_class) class))
				return false;
	/* Its bits are counted in signed numbers. */
	return scan->size > 0 && scan->size < INT32_MAX / 8 &&
	       scan->offset <= UINT64_MAX - scan->size;
}

void jpeg_quality_table(unsigned quality, enum jpeg_plane plane, uint16_t table[JPEG_BLOCK])
{
	unsigned percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;

	for (int i = 0; i < JPEG_BLOCK; i++) {
		unsigned step = (quantization[plane][jpeg_zigzag[i]] * percent + 50) / 100;

		table[i] = (uint16_t)(step < 1 ? 1 : step > 255 ? 255 : step);
	}
}
