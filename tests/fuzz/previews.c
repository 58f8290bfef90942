/* Any bytes as a block of metadata: the remaining part has the form of such a block, so that a
 * second pass leaves nothing out. The first byte says its kind. */
#include "codec/metadata/previews.h"
#include "fuzz.h"

static GByteArray *(*const drops[])(const uint8_t *block, size_t size) = {
    previews_drop_from_xmp,
    previews_drop_from_resources,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned kind = size ? data[0] % 2 : 0;
	GByteArray *kept = size ? drops[kind](data + 1, size - 1) : NULL, *again;

	if (!kept)
		return 0;
	again = drops[kind](kept->data, kept->len);
	must(again && again->len == kept->len && !memcmp(again->data, kept->data, kept->len));
	g_byte_array_unref(again);
	g_byte_array_unref(kept);
	return 0;
}
