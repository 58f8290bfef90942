/* Any bytes as a GIF: its codes are walked within them, and a refusal says why. */
#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct body body = {copy_of(data, size), size, false};
	const struct part part = {.body = &body, .page = size % 3, .all = size % 2};
	struct problem problem = {0};
	enum error e = gif_reader.load(NULL, &part, &problem);

	must(!e == !problem.detail[0]);
	must(!e || e == ERR_UNDECODABLE);
	free(body.at);
	return 0;
}
