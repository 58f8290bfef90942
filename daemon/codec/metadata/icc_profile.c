/* A profile begins with a header of 128 bytes and a table of tags, 12 bytes each. Only faults for
 * which a reader refuses the whole profile are checked. */
#include "codec/metadata/icc_profile.h"

#include <string.h>

#include "codec/metadata/containers.h"

enum {
	VERSION_AT = 8,
	CLASS_AT = 12,
	SPACE_AT = 16,
	CONNECTION_AT = 20,
	MARK_AT = 36,
	INTENT_AT = 64,
	COUNT_AT = 128,
	TAGS_AT = 132,
	TAG_SIZE = 12,
	TAGS_MAX = 100
};

static bool is_one_of(const uint8_t *at, const char *names)
{
	for (; *names; names += 4)
		if (!memcmp(at, names, 4))
			return true;
	return false;
}

bool icc_profile_fits(const uint8_t *profile, size_t size, unsigned bands)
{
	const char *spaces = bands > 3   ? "GRAYRGB Lab XYZ CMYK4CLR"
	                     : bands > 2 ? "GRAYRGB Lab XYZ "
	                                 : "GRAY";
	uint64_t tags;

	if (size < TAGS_AT || memcmp(profile + MARK_AT, "acsp", 4))
		return false;
	tags = bytes_number(profile + COUNT_AT, 4, true);
	return tags <= TAGS_MAX && size >= TAGS_AT + tags * TAG_SIZE &&
	       is_one_of(profile + SPACE_AT, spaces);
}

bool icc_profile_is_of(const uint8_t *profile, size_t size, bool colours)
{
	return icc_profile_fits(profile, size, colours ? 3 : 1) &&
	       is_one_of(profile + SPACE_AT, colours ? "RGB " : "GRAY");
}

bool icc_profile_is_sound(const uint8_t *profile, size_t size, bool colours)
{
	if (!icc_profile_is_of(profile, size, colours) || bytes_number(profile, 4, true) != size ||
	    (size % 4 && profile[VERSION_AT] >= 4) ||
	    !is_one_of(profile + CLASS_AT, "scnrmntrprtrspac") ||
	    !is_one_of(profile + CONNECTION_AT, "XYZ Lab ") ||
	    bytes_number(profile + INTENT_AT, 4, true) >= 4)
		return false;
	for (uint64_t tags = bytes_number(profile + COUNT_AT, 4, true); tags--;) {
		const uint8_t *tag = profile + TAGS_AT + tags * TAG_SIZE;
		uint64_t at = bytes_number(tag + 4, 4, true), all = bytes_number(tag + 8, 4, true);

		if (at > size || all > size - at)
			return false;
	}
	return true;
}
