/* Any bytes as a BMP; or, after a zero, what to change in one, which chance would hardly find. */
#include "reader.h"

/* 5 by 3 pixels of 24 bits; rows are of 16 bytes. */
static const uint8_t base[54 + 3 * 16] = {
    'B', 'M', [10] = 54, [14] = 40, [18] = 5, [22] = 3, [26] = 1, [28] = 24};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t file[sizeof base];

	if (size && *data) {
		read_file(&bmp_reader, data, size, 1 << 16);
		return 0;
	}
	memcpy(file, base, sizeof base);
	if (size)
		change(file, sizeof file, data + 1, size - 1);
	read_file(&bmp_reader, file, sizeof file, 1 << 16);
	return 0;
}
