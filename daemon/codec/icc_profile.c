/* A profile begins with a header of 128 bytes and a table of tags, 12 bytes each. Only what makes a
 * reader refuse the whole profile is checked. */
#include "codec/icc_profile.h"

#include <string.h>

#include "codec/bytes.h"

enum { SPACE_AT = 16, MARK_AT = 36, COUNT_AT = 128, TAGS_AT = 132, TAG_SIZE = 12, TAGS_MAX = 100 };

static unsigned bands_of(const uint8_t *space)
{
	static const struct {
		char name[5];
		unsigned bands;
	} spaces[] = {{"GRAY", 1}, {"RGB ", 3}, {"Lab ", 3}, {"XYZ ", 3}, {"CMYK", 4}, {"4CLR", 4}};

	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		if (!memcmp(space, spaces[i].name, 4))
			return spaces[i].bands;
	return UINT32_MAX;
}

bool icc_profile_fits(const uint8_t *profile, size_t size, unsigned bands)
{
	uint64_t tags;

	if (size < TAGS_AT || memcmp(profile + MARK_AT, "acsp", 4))
		return false;
	tags = bytes_number(profile + COUNT_AT, 4, true);
	return tags <= TAGS_MAX && size >= TAGS_AT + tags * TAG_SIZE &&
	       bands_of(profile + SPACE_AT) <= bands;
}
