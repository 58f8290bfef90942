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

bool file_metadata_colours(const struct file_metadata *m)
{
	return m->colours.at &&
	       (!m->profile.at || memmem(m->colours.at, m->colours.size, "cICP", 4));
}

bool file_metadata_upright(const struct file_metadata *m)
{
	return !m->exif || exif_block_orientation(m->exif) == 1;
}

/* Libvips -------------------------------------------------------------------------------------- */

static const uint8_t *blob_of(VipsImage *image, const char *name, size_t *size)
{
	const void *at;

	return vips_image_get_typeof(image, name) && !vips_image_get_blob(image, name, &at, size) &&
	               *size
	           ? at
	           : NULL;
}

static void copy(struct file_metadata *m, struct file_part *part, const void *at, size_t size)
{
	if (at)
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
	const struct {
		const char *name;
		struct file_part *part;
	} blobs[] = {{VIPS_META_ICC_NAME, &m->profile},
	             {VIPS_META_XMP_NAME, &m->xmp},
	             {VIPS_META_IPTC_NAME, &m->resources},
	             {VIPS_META_PHOTOSHOP_NAME, &m->photoshop}};
	const uint8_t *at;
	const char *text;
	size_t size;

	*m = (struct file_metadata){.resolution = {image->Xres, image->Yres, PER_INCH}};
	for (size_t i = 0; i < G_N_ELEMENTS(blobs); i++) {
		at = blob_of(image, blobs[i].name, &size);
		copy(m, blobs[i].part, at, size);
	}
	if (vips_image_get_typeof(image, VIPS_META_IMAGEDESCRIPTION) &&
	    !vips_image_get_string(image, VIPS_META_IMAGEDESCRIPTION, &text))
		copy(m, &m->description, text, strlen(text) + 1);
	if (vips_image_get_typeof(image, VIPS_META_RESOLUTION_UNIT) &&
	    !vips_image_get_string(image, VIPS_META_RESOLUTION_UNIT, &text) && !strcmp(text, "cm"))
		m->resolution.unit = PER_CM;
	file_metadata_read_frames(m, image);
	at = blob_of(image, VIPS_META_EXIF_NAME, &size);
	if (at)
		m->exif = exif_block_read(at, size, &m->resolution);
	return !at || m->exif;
}

static void set_blob(VipsImage *image, const char *name, const struct file_part *part)
{
	if (part->at)
		vips_image_set_blob_copy(image, name, part->at, part->size);
}

void file_metadata_tell(const struct file_metadata *m, uint32_t pages, VipsImage *image)
{
	set_blob(image, VIPS_META_ICC_NAME, &m->profile);
	set_blob(image, VIPS_META_XMP_NAME, &m->xmp);
	set_blob(image, VIPS_META_IPTC_NAME, &m->resources);
	set_blob(image, VIPS_META_PHOTOSHOP_NAME, &m->photoshop);
	set_blob(image, VIPS_META_EXIF_NAME, &m->block);
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
