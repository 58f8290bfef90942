/* The segments of JPEG files that the answer gets, as libvips reads and writes them: EXIF (APP1),
 * XMP (APP1), the ICC profile (APP2, in parts) and Photoshop's resources (APP13). The first segment
 * of a kind counts.
 *
 * A segment holds 64 KB. Only profiles are split; other blocks that are longer after they were
 * written anew are left out. */
#include "codec/metadata/jpeg_metadata.h"

#include "codec/metadata/containers.h"

enum {
	EXIF = JPEG_APP0 + 1,
	XMP = JPEG_APP0 + 1,
	PROFILE = JPEG_APP0 + 2,
	RESOURCES = JPEG_APP0 + 13,
	SEGMENT_MAX = 65533,
	XMP_MAX = 60000,
	PARTS_MAX = 100
};

static const char xmp_title[] = "http://ns.adobe.com/xap/1.0/";
static const char profile_title[] = "ICC_PROFILE";
enum { PROFILE_HEAD = sizeof profile_title + 2 }; /* a part's number, and how many there are */

void jpeg_metadata_expect(struct jpeg_decompress_struct *decoder)
{
	jpeg_save_markers(decoder, EXIF, 0xffff);
	jpeg_save_markers(decoder, PROFILE, 0xffff);
	jpeg_save_markers(decoder, RESOURCES, 0xffff);
}

static void keep_first(struct file_part *part, const uint8_t *at, size_t size)
{
	if (!part->at)
		*part = (struct file_part){at, size};
}

/* JFIF's densities; EXIF and libvips assume 72 per inch if there are none. */
static struct resolution resolution_of(const struct jpeg_decompress_struct *decoder)
{
	struct resolution r = {72 / 25.4, 72 / 25.4, PER_INCH};
	double x = decoder->X_density, y = decoder->Y_density;

	if (!decoder->saw_JFIF_marker || decoder->X_density == 1 || decoder->Y_density == 1)
		return r;
	if (decoder->density_unit == 1)
		return (struct resolution){x / 25.4, y / 25.4, PER_INCH};
	if (decoder->density_unit == 2)
		return (struct resolution){x / 10, y / 10, PER_CM};
	if (decoder->density_unit == 0 && decoder->Y_density) /* only their ratio */
		r.y = r.x * x / y;
	return r;
}

bool jpeg_metadata_read(struct file_metadata *m, const struct jpeg_decompress_struct *decoder)
{
	struct file_part exif = {NULL, 0}, parts[PARTS_MAX] = {{NULL, 0}};
	GByteArray *profile = NULL;

	*m = (struct file_metadata){.resolution = resolution_of(decoder)};
	for (jpeg_saved_marker_ptr s = decoder->marker_list; s; s = s->next) {
		const size_t size = s->data_length;

		if (s->marker == EXIF && size > 4 && bytes_begin(s->data, size, "Exif")) {
			keep_first(&exif, s->data, size);
		} else if (s->marker == XMP && bytes_begin(s->data, size, "http")) {
			/* The packet follows a title of less than 80 characters. */
			const uint8_t *packet =
			    bytes_text_end(s->data, s->data + MIN(size - 2, 80) + 1);

			if (packet)
				keep_first(&m->xmp, packet, size - (size_t)(packet - s->data));
		} else if (s->marker == PROFILE && size > PROFILE_HEAD &&
		           bytes_begin(s->data, size, profile_title)) {
			const unsigned number = s->data[sizeof profile_title];

			if (number >= 1 && number <= PARTS_MAX)
				parts[number - 1] =
				    (struct file_part){s->data + PROFILE_HEAD, size - PROFILE_HEAD};
		} else if (s->marker == RESOURCES && bytes_begin(s->data, size, "Photo")) {
			keep_first(&m->resources, s->data, size);
		}
	}
	/* The profile ends before the first part that is missing. */
	if (parts[0].at)
		profile = g_byte_array_new();
	for (int i = 0; i < PARTS_MAX && parts[i].at; i++)
		g_byte_array_append(profile, parts[i].at, (guint)parts[i].size);
	file_metadata_own_array(m, &m->profile, profile);
	if (exif.at)
		m->exif = exif_block_read(exif.at, exif.size, &m->resolution);
	return !exif.at || m->exif;
}

/* Writes nothing if the block is empty or too large for a segment. */
static void write_segment(struct jpeg_compress_struct *encoder, int marker, const char *title,
                          size_t title_size, const struct file_part *part)
{
	if (!part->at || title_size + part->size > SEGMENT_MAX)
		return;
	jpeg_write_m_header(encoder, marker, (unsigned)(title_size + part->size));
	for (size_t i = 0; i < title_size; i++)
		jpeg_write_m_byte(encoder, title[i]);
	for (size_t i = 0; i < part->size; i++)
		jpeg_write_m_byte(encoder, part->at[i]);
}

void jpeg_metadata_write(const struct file_metadata *m, struct jpeg_compress_struct *encoder)
{
	write_segment(encoder, EXIF, NULL, 0, &m->block);
	if (m->xmp.size <= XMP_MAX)
		write_segment(encoder, XMP, xmp_title, sizeof xmp_title, &m->xmp);
	write_segment(encoder, RESOURCES, NULL, 0, &m->resources);
	if (m->profile.at)
		jpeg_write_icc_profile(encoder, m->profile.at, (unsigned)m->profile.size);
}
