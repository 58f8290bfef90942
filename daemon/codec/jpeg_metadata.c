/* The segments of JPEG files that the answer gets, as libvips reads and writes them: EXIF (APP1),
 * XMP (APP1), the ICC profile (APP2, in parts) and Photoshop's resources (APP13). The first of a
 * kind counts.
 *
 * A segment holds 64 KB. Only profiles are split; what is longer after it was written anew is left
 * out. */
#include "codec/jpeg_metadata.h"

#include <stdlib.h>
#include <string.h>

#include "codec/icc_profile.h"
#include "codec/previews.h"

enum {
	EXIF = JPEG_APP0 + 1,
	XMP = JPEG_APP0 + 1,
	PROFILE = JPEG_APP0 + 2,
	RESOURCES = JPEG_APP0 + 13,
	SEGMENT_MAX = 65533,
	XMP_MAX = 60000
};

static const char xmp_title[] = "http://ns.adobe.com/xap/1.0/";
static const char profile_title[] = "ICC_PROFILE";
enum { PROFILE_HEAD = sizeof profile_title + 2 };

void jpeg_metadata_expect(struct jpeg_decompress_struct *decoder)
{
	jpeg_save_markers(decoder, EXIF, 0xffff);
	jpeg_save_markers(decoder, PROFILE, 0xffff);
	jpeg_save_markers(decoder, RESOURCES, 0xffff);
}

static bool begins(jpeg_saved_marker_ptr segment, const char *mark)
{
	return segment->data_length > strlen(mark) && !memcmp(segment->data, mark, strlen(mark));
}

static void keep_first(struct file_part *part, const uint8_t *at, size_t size)
{
	if (!part->at)
		*part = (struct file_part){at, size};
}

/* The packet follows a title of less than 80 characters. */
static void read_xmp(struct file_metadata *m, jpeg_saved_marker_ptr s)
{
	size_t most = s->data_length - 2 < 80 ? s->data_length - 2 : 80;
	const uint8_t *end = memchr(s->data, 0, most + 1);

	if (end)
		keep_first(&m->xmp, end + 1, s->data_length - (size_t)(end + 1 - s->data));
}

/* Parts are numbered from 1. */
static void read_profile(struct file_metadata *m, jpeg_saved_marker_ptr s)
{
	unsigned number = s->data_length > PROFILE_HEAD ? s->data[sizeof profile_title] : 0;

	if (number >= 1 && number <= PROFILE_PARTS_MAX)
		m->profile[number - 1] =
		    (struct file_part){s->data + PROFILE_HEAD, s->data_length - PROFILE_HEAD};
}

/* JFIF's densities; EXIF and libvips say 72 per inch where there are none. */
static struct resolution resolution_of(const struct jpeg_decompress_struct *decoder)
{
	struct resolution r = {72 / 25.4, 72 / 25.4, PER_INCH};
	double x = decoder->X_density, y = decoder->Y_density;

	if (!decoder->saw_JFIF_marker || decoder->X_density == 1 || decoder->Y_density == 1)
		return r;
	switch (decoder->density_unit) {
	case 0: /* only their ratio */
		if (decoder->Y_density)
			r.y = r.x * x / y;
		return r;
	case 1:
		return (struct resolution){x / 25.4, y / 25.4, PER_INCH};
	case 2:
		return (struct resolution){x / 10, y / 10, PER_CM};
	default:
		return r;
	}
}

bool jpeg_metadata_read(struct file_metadata *m, const struct jpeg_decompress_struct *decoder)
{
	struct file_part exif = {NULL, 0};

	*m = (struct file_metadata){.resolution = resolution_of(decoder)};
	for (jpeg_saved_marker_ptr s = decoder->marker_list; s; s = s->next) {
		if (s->marker == EXIF && begins(s, "Exif"))
			keep_first(&exif, s->data, s->data_length);
		else if (s->marker == XMP && begins(s, "http"))
			read_xmp(m, s);
		else if (s->marker == PROFILE && begins(s, profile_title))
			read_profile(m, s);
		else if (s->marker == RESOURCES && begins(s, "Photo"))
			keep_first(&m->resources, s->data, s->data_length);
	}
	if (exif.at)
		m->exif = exif_block_read(exif.at, exif.size, &m->resolution);
	return !exif.at || m->exif;
}

static void write_segment(struct jpeg_compress_struct *encoder, int marker, const uint8_t *at,
                          size_t size)
{
	if (size <= SEGMENT_MAX)
		jpeg_write_marker(encoder, marker, at, (unsigned)size);
}

static bool write_exif(const struct file_metadata *m, bool strip,
                       struct jpeg_compress_struct *encoder)
{
	const struct exif_facts facts = {encoder->image_width, encoder->image_height,
	                                 m->resolution};
	size_t size;
	uint8_t *block = exif_block_write(strip ? NULL : m->exif, &facts, &size);

	if (block)
		write_segment(encoder, EXIF, block, size);
	free(block);
	return block != NULL;
}

static void write_xmp(const struct file_part *xmp, struct jpeg_compress_struct *encoder)
{
	GByteArray *kept = xmp->at ? previews_drop_from_xmp(xmp->at, xmp->size) : NULL;

	if (!kept)
		return;
	if (kept->len <= XMP_MAX) {
		g_byte_array_prepend(kept, (const guint8 *)xmp_title, sizeof xmp_title);
		write_segment(encoder, XMP, kept->data, kept->len);
	}
	g_byte_array_unref(kept);
}

static void write_resources(const struct file_part *resources, struct jpeg_compress_struct *encoder)
{
	GByteArray *kept =
	    resources->at ? previews_drop_from_resources(resources->at, resources->size) : NULL;

	if (!kept)
		return;
	write_segment(encoder, RESOURCES, kept->data, kept->len);
	g_byte_array_unref(kept);
}

/* A position in the profile's parts. */
struct place {
	const struct file_part *part;
	size_t offset;
};

static uint8_t next_byte(struct place *p)
{
	uint8_t byte = p->part->at[p->offset++];

	if (p->offset == p->part->size)
		*p = (struct place){p->part + 1, 0};
	return byte;
}

/* The profile ends before the first part that is missing. */
static void write_profile(const struct file_part *parts, struct jpeg_compress_struct *encoder)
{
	const size_t most = SEGMENT_MAX - PROFILE_HEAD;
	uint8_t beginning[ICC_BEGINNING];
	struct place place = {parts, 0};
	size_t size = 0, begin, count;

	for (size_t i = 0; i < PROFILE_PARTS_MAX && parts[i].at; i++)
		size += parts[i].size;
	begin = size < sizeof beginning ? size : sizeof beginning;
	for (size_t i = 0; i < begin; i++)
		beginning[i] = next_byte(&place);
	if (!size || !icc_profile_fits(beginning, begin, (unsigned)encoder->input_components))
		return;
	place = (struct place){parts, 0};
	count = (size + most - 1) / most;
	for (size_t i = 1; i <= count; i++) {
		size_t some = size < most ? size : most;

		size -= some;
		jpeg_write_m_header(encoder, PROFILE, (unsigned)(some + PROFILE_HEAD));
		for (size_t k = 0; k < sizeof profile_title; k++)
			jpeg_write_m_byte(encoder, profile_title[k]);
		jpeg_write_m_byte(encoder, (int)i);
		jpeg_write_m_byte(encoder, (int)count);
		for (; some; some--)
			jpeg_write_m_byte(encoder, next_byte(&place));
	}
}

bool jpeg_metadata_write(const struct file_metadata *m, bool strip,
                         struct jpeg_compress_struct *encoder)
{
	static const struct file_metadata none = {.resolution = {1, 1, PER_INCH}};

	m = m ? m : &none;
	if (!write_exif(m, strip, encoder))
		return false;
	if (!strip) {
		write_xmp(&m->xmp, encoder);
		write_resources(&m->resources, encoder);
	}
	write_profile(m->profile, encoder);
	return true;
}
