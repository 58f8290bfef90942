#include "codec/ico.h"

#include <string.h>

#include "codec/bytes.h"

enum { HEAD = 6, ENTRY = 16 };

/* For comparison: a side of 0 is 256. */
static uint32_t rank(const uint8_t *entry)
{
	uint32_t width = entry[0] ? entry[0] : 256, height = entry[1] ? entry[1] : 256;

	return width * height << 8 | (uint32_t)bytes_number(entry + 6, 1, false);
}

static bool find(struct ico_picture *picture, const uint8_t *entry, const uint8_t *file,
                 size_t size)
{
	uint64_t length = bytes_number(entry + 8, 4, false);
	uint64_t offset = bytes_number(entry + 12, 4, false);

	if (offset >= size || !length)
		return false;
	picture->at = file + offset;
	picture->size = length < size - offset ? (size_t)length : size - (size_t)offset;
	picture->png = picture->size > 8 && !memcmp(picture->at, "\x89PNG\r\n\x1a\n", 8);
	return true;
}

unsigned ico_choose(struct ico_picture *picture, const uint8_t *file, size_t size)
{
	uint64_t count = size < HEAD ? 0 : bytes_number(file + 4, 2, false);
	struct ico_picture candidate;
	uint32_t best = 0;
	unsigned found = 0;

	for (uint64_t i = 0; i < count && HEAD + (i + 1) * ENTRY <= size; i++) {
		const uint8_t *entry = file + HEAD + i * ENTRY;

		if (!find(&candidate, entry, file, size))
			continue;
		found++;
		if (rank(entry) > best) {
			best = rank(entry);
			*picture = candidate;
		}
	}
	return found;
}
