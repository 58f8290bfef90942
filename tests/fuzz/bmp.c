/* Any bytes as a BMP. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_file(&bmp_reader, data, size, 1 << 16);
	return 0;
}
