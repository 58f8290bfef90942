#include "codec/metadata/file_metadata.h"

#include <stdlib.h>
#include <string.h>

#include <vips/vips.h>

#include "codec/metadata/icc_profile.h"
#include "codec/metadata/previews.h"

void file_metadata_free(struct file_metadata *m)
{
	if (!m)
		return;
	exif_block_free(&m->exif);
	g_slist_free_full(m->owned, free);
	m->owned = NULL;
}

void file_metadata_own(struct file_metadata *m, struct file_part *part, uint8_t *bytes, size_t size)
{
	m->owned = g_slist_prepend(m->owned, bytes);
	*part = (struct file_part){bytes, size};
}

void file_metadata_own_array(struct file_metadata *m, struct file_part *part, GByteArray *array)
{
	const size_t size = array ? array->len : 0;

	if (array)
		file_metadata_own(m, part, g_byte_array_free(array, FALSE), size);
}

bool file_metadata_upright(const struct file_metadata *m)
{
	return !m->exif || exif_block_orientation(m->exif) == 1;
}

/* Libvips -------------------------------------------------------------------------------------- */

/* Blobs of libvips, and the places of their parts. */
static const struct {
	const char *name;
	size_t part;
} blobs[] = {
    {VIPS_META_ICC_NAME, offsetof(struct file_metadata, profile)},
    {VIPS_META_XMP_NAME, offsetof(struct file_metadata, xmp)},
    {VIPS_META_IPTC_NAME, offsetof(struct file_metadata, resources)},
    {VIPS_META_PHOTOSHOP_NAME, offsetof(struct file_metadata, photoshop)},
    {VIPS_META_EXIF_NAME, offsetof(struct file_metadata, block)},
};

static struct file_part *part_of(const struct file_metadata *m, size_t blob)
{
	return (void *)((uintptr_t)m + blobs[blob].part);
}

static void copy(struct file_metadata *m, struct file_part *part, const void *at, size_t size)
{
	file_metadata_own(m, part, g_memdup2(at, size), size);
}

void file_metadata_read_frames(struct file_metadata *m, VipsImage *image)
{
	struct file_part copied = {NULL, 0};
	int *delays;

	if (!vips_image_get_typeof(image, "loop") || vips_image_get_int(image, "loop", &m->plays))
		m->plays = -1;
	if (vips_image_get_typeof(image, "delay") &&
	    !vips_image_get_array_int(image, "delay", &delays, &m->delay_count)) {
		copy(m, &copied, delays, (size_t)m->delay_count * sizeof *delays);
		m->delays = (const int *)(const void *)copied.at;
	}
}

bool file_metadata_read(struct file_metadata *m, VipsImage *image)
{
	const char *text;
	const void *at;
	size_t size;

	*m = (struct file_metadata){.resolution = {image->Xres, image->Yres, PER_INCH}};
	for (size_t i = 0; i < G_N_ELEMENTS(blobs); i++)
		if (vips_image_get_typeof(image, blobs[i].name) &&
		    !vips_image_get_blob(image, blobs[i].name, &at, &size) && size)
			copy(m, part_of(m, i), at, size);
	if (vips_image_get_typeof(image, VIPS_META_IMAGEDESCRIPTION) &&
	    !vips_image_get_string(image, VIPS_META_IMAGEDESCRIPTION, &text))
		copy(m, &m->description, text, strlen(text) + 1);
	if (vips_image_get_typeof(image, VIPS_META_RESOLUTION_UNIT) &&
	    !vips_image_get_string(image, VIPS_META_RESOLUTION_UNIT, &text) && !strcmp(text, "cm"))
		m->resolution.unit = PER_CM;
	file_metadata_read_frames(m, image);
	if (m->block.at)
		m->exif = exif_block_read(m->block.at, m->block.size, &m->resolution);
	return !m->block.at || m->exif;
}

void file_metadata_tell(const struct file_metadata *m, uint32_t pages, VipsImage *image)
{
	for (size_t i = 0; i < G_N_ELEMENTS(blobs); i++)
		if (part_of(m, i)->at)
			vips_image_set_blob_copy(image, blobs[i].name, part_of(m, i)->at,
			                         part_of(m, i)->size);
	/* Set after EXIF, from which libvips also takes them. */
	vips_image_set_string(image, VIPS_META_RESOLUTION_UNIT,
	                      m->resolution.unit == PER_CM ? "cm" : "in");
	image->Xres = m->resolution.x;
	image->Yres = m->resolution.y;
	if (m->description.at)
		vips_image_set_string(image, VIPS_META_IMAGEDESCRIPTION,
		                      (const char *)m->description.at);
	if (pages == 1)
		return;
	vips_image_set_int(image, VIPS_META_PAGE_HEIGHT, image->Ysize / (int)pages);
	if (m->delays)
		vips_image_set_array_int(image, "delay", m->delays, m->delay_count);
	if (m->plays >= 0)
		vips_image_set_int(image, "loop", m->plays);
}

/* Answers -------------------------------------------------------------------------------------- */

/* Readers of the other formats take any profile. */
static bool profile_suits(const struct file_part *p, enum format format, const struct image *image)
{
	if (format == FORMAT_PNG)
		return icc_profile_is_sound(p->at, p->size, image->bands > 2);
	if (format == FORMAT_JXL)
		return icc_profile_is_of(p->at, p->size, image->bands > 2);
	if (format == FORMAT_JPEG || format == FORMAT_WEBP || format == FORMAT_BMP)
		return icc_profile_fits(p->at, p->size, image->bands - image->alpha);
	return true;
}

static void own_clean(struct file_metadata *m, struct file_part *part, const struct file_part *from,
                      GByteArray *(*clean)(const uint8_t *block, size_t size))
{
	if (from->at)
		file_metadata_own_array(m, part, clean(from->at, from->size));
}

bool file_metadata_answer(struct file_metadata *a, const struct file_metadata *body,
                          enum format format, const struct image *image, bool strip)
{
	static const struct file_metadata none = {.resolution = {1, 1, PER_INCH}, .plays = -1};
	const bool demands_exif = format == FORMAT_JPEG || format == FORMAT_WEBP;
	struct _ExifData *exif = NULL;
	uint8_t *block;
	size_t size;

	body = body ? body : &none;
	/* These hold no more in any case. */
	strip |= format == FORMAT_PNM || format == FORMAT_BMP || format == FORMAT_RAW;
	*a = (struct file_metadata){
	    .colours = body->colours,
	    .resolution = body->resolution,
	    .delays = body->delays,
	    .delay_count = body->delay_count,
	    .plays = body->plays,
	};
	if (body->profile.at && profile_suits(&body->profile, format, image))
		a->profile = body->profile;
	if (!strip) {
		exif = body->exif;
		a->texts = body->texts;
		a->description = body->description;
		own_clean(a, &a->xmp, &body->xmp, previews_drop_from_xmp);
		own_clean(a, &a->resources, &body->resources, previews_drop_from_resources);
		own_clean(a, &a->photoshop, &body->photoshop, previews_drop_from_resources);
	}
	if (!exif && !demands_exif)
		return true;
	block = exif_block_write(exif, image, &body->resolution, &size);
	if (block)
		file_metadata_own(a, &a->block, block, size);
	return block;
}
