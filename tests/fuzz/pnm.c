/* Any bytes as a PNM, which may have several pictures. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	must(read_file(&pnm_reader, data, size, 1 << 14) <= size);
	return 0;
}
