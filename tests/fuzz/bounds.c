/* Any bytes as a file of any format: the walk ends, reads none beyond them, and says yes or what
 * there is too much of. The first byte says which format. */
#include "codec/formats/bounds.h"
#include "codec/formats/heif.h"
#include "codec/formats/jxl.h"
#include "codec/metadata/containers.h"
#include "fuzz.h"

/* Compressed metadata that may be expanded. */
static unsigned count_kept(const uint8_t *file, size_t size)
{
	static const char types[][4] = {{'E', 'x', 'i', 'f'}, {'x', 'm', 'l', ' '}};
	unsigned kept = 0;

	for (int i = 0; i < 2; i++) {
		const uint8_t *box;
		size_t unpacked;
		uint8_t *metadata = jxl_unpack(file, size, types[i], &box, &unpacked);

		must(!metadata || (unpacked <= JXL_METADATA_MAX && !memcmp(box, "brob", 4)));
		kept += metadata != NULL;
		free(metadata);
	}
	return kept;
}

static unsigned count_packed(const uint8_t *file, size_t size)
{
	const uint8_t *at = file;
	unsigned count = 0;
	struct box box;

	while (jxl_has_packed(file, size) && next_box(&at, file + size, &box))
		count += !memcmp(box.type, "brob", 4);
	return count;
}

/* Checks that only compressed data is left, and nothing else has changed. */
static void hide(const uint8_t *data, size_t size)
{
	uint8_t *file = copy_of(data, size);
	const unsigned kept = count_kept(data, size);
	size_t changed = 0;

	jxl_hide_packed(file, size);
	for (size_t i = 0; i < size; i++)
		changed += file[i] != data[i];
	must(count_packed(file, size) == kept && count_kept(file, size) == kept &&
	     !changed == (count_packed(data, size) == kept));
	free(file);
}

/* Only once is there something to move, and looking changes nothing. */
static void order(const uint8_t *data, size_t size)
{
	uint8_t *file = copy_of(data, size);
	const bool moves = heif_order(file, size, false);

	must(!memcmp(file, data, size) && heif_order(file, size, true) == moves &&
	     !heif_order(file, size, false));
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problem problem = {0};
	enum error e;

	if (!size)
		return 0;
	hide(data + 1, size - 1);
	order(data + 1, size - 1);
	e = bounds_check(data[0] % FORMATS, data + 1, size - 1, &problem);
	must(!heif_is_cut(data + 1, size - 1) || size - 1 >= 8);
	if (!e)
		e = bounds_check_exif(data + 1, size - 1, &problem);
	must(!e || strstr(problem.detail, e == ERR_TOO_COMPLEX   ? "; the limit is "
	                                  : e == ERR_UNDECODABLE ? "truncated"
	                                                         : "no other error"));
	return 0;
}
