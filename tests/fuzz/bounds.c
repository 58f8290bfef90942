/* Any bytes as a file of any format: the walk ends, reads none beyond them, and says yes or what
 * there is too much of. The first byte says which format. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/bounds.h"
#include "codec/heif.h"
#include "codec/jxl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Once it is hidden, nothing compressed is left, and nothing else has changed. */
static void hide(const uint8_t *data, size_t size)
{
	uint8_t *file = malloc(size ? size : 1);
	size_t changed = 0;

	if (size)
		memcpy(file, data, size);
	jxl_hide_packed(file, size);
	for (size_t i = 0; i < size; i++)
		changed += file[i] != data[i];
	if (jxl_has_packed(file, size) || !changed == jxl_has_packed(data, size))
		abort();
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problem problem = {0};
	enum error e;

	if (!size)
		return 0;
	hide(data + 1, size - 1);
	e = bounds_check(data[0] % FORMATS, data + 1, size - 1, &problem);
	if (heif_is_cut(data + 1, size - 1) && size - 1 < 8)
		abort();
	if (!e)
		e = bounds_check_coded(data[0] % FORMATS, data + 1, size - 1, 256, &problem);
	if (e && (e != ERR_TOO_COMPLEX || !strstr(problem.detail, "; the limit is ")))
		abort();
	return 0;
}
