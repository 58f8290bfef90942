/* Any bytes as the header of a Radiance file: an accepted one has its end within them, and says the
 * one order of rows. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = copy_of(data, size);
	const struct body body = {file, size, false};
	struct problem problem = {0};
	const uint8_t *end;
	enum error e = hdr_reader.check(&body, &problem);

	must(!e == !problem.detail[0]);
	must(!e || e == ERR_UNSUPPORTED_PIXELS || e == ERR_UNDECODABLE);
	if (!e) {
		end = size && *file == '\n' ? file : memmem(file, size, "\n\n", 2);
		must(end && memmem(end, size - (size_t)(end - file), "\n-Y ", 4));
	}
	free(file);
	return 0;
}
