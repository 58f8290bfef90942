/* Any bytes as a JPEG file: the walk ends and reads none beyond them. An accepted file is valid,
 * and its scan lies within the file, before an EOI marker and with no other marker than RSTn in
 * it. */
#include "codec/jpeg_header.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jpeg_scan scan;
	const uint8_t *end;

	if (jpeg_header_read(data, size, &scan))
		return 0;
	must(jpeg_scan_valid(&scan) && scan.offset <= size && scan.size <= size - scan.offset &&
	     size - scan.offset - scan.size >= 2);
	end = data + scan.offset + scan.size;
	must(end[0] == 0xFF && end[1] == 0xD9);
	for (const uint8_t *at = data + scan.offset; at < end; at++)
		must(at[0] != 0xFF || !at[1] || (at[1] >= 0xD0 && at[1] <= 0xD7));
	return 0;
}
