/* Any bytes as a file of any format: the walk ends, reads none beyond them, and says yes or what
 * there is too much of. The first byte says which format. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/bounds.h"
#include "codec/heif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problem problem = {0};
	enum error e;

	if (!size)
		return 0;
	e = bounds_check(data[0] % FORMATS, data + 1, size - 1, &problem);
	if (heif_is_cut(data + 1, size - 1) && size - 1 < 8)
		abort();
	if (!e)
		e = bounds_check_coded(data[0] % FORMATS, data + 1, size - 1, 256, &problem);
	if (e && (e != ERR_TOO_COMPLEX || !strstr(problem.detail, "; the limit is ")))
		abort();
	return 0;
}
