#include "codec/file_metadata.h"

#include <stdlib.h>
#include <string.h>

void file_metadata_free(struct file_metadata *m)
{
	exif_block_free(&m->exif);
	for (size_t i = 0; i < COPIES_MAX; i++)
		free(m->copies[i]);
	free(m->delays);
	g_clear_pointer(&m->colours, g_byte_array_unref);
	g_clear_pointer(&m->texts, g_byte_array_unref);
}

bool file_metadata_own(struct file_metadata *m, struct file_part *part, uint8_t *bytes, size_t size)
{
	for (size_t i = 0; bytes && i < COPIES_MAX; i++)
		if (!m->copies[i]) {
			m->copies[i] = bytes;
			*part = (struct file_part){bytes, size};
			return true;
		}
	free(bytes);
	return false;
}

size_t file_metadata_profile_size(const struct file_metadata *m)
{
	size_t size = 0;

	for (size_t i = 0; i < PROFILE_PARTS_MAX && m->profile[i].at; i++)
		size += m->profile[i].size;
	return size;
}

uint8_t *file_metadata_profile(const struct file_metadata *m, size_t *size)
{
	uint8_t *whole, *to;

	*size = file_metadata_profile_size(m);
	whole = to = *size ? malloc(*size) : NULL;
	for (size_t i = 0; whole && i < PROFILE_PARTS_MAX && m->profile[i].at; i++) {
		memcpy(to, m->profile[i].at, m->profile[i].size);
		to += m->profile[i].size;
	}
	return whole;
}

bool file_metadata_colours(const struct file_metadata *m)
{
	const GByteArray *c = m->colours;

	return c && (!m->profile[0].at || memmem(c->data, c->len, "cICP", 4));
}

bool file_metadata_upright(const struct file_metadata *m)
{
	return !m->exif || exif_block_orientation(m->exif) == 1;
}
