/* Selects the libvips metadata fields that an answer gets.
 *
 * The hard part is EXIF. libvips keeps the original block and, beside it, the fields that it has
 * parsed. Its savers rewrite the block without the fields that were removed. Setting the block sets
 * all its fields again, so fields may only be removed after everything is copied. */
#include "codec/metadata.h"

#include <stdlib.h>
#include <string.h>

#include <vips/vips.h>

#include "codec/file_metadata.h"
#include "codec/previews.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Describes the decoded file, not the image: wrong or useless in the answer. */
static const char *const dropped[] = {
    VIPS_META_SEQUENTIAL,
    VIPS_META_LOADER,
    "n-pages",
    "page-height",
    "delay",
    "loop",
    "gif-delay",
    "gif-loop",
    "gif-palette",
    "palette",
    "background",
    "interlaced",
    "jpeg-multiscan",
    "jpeg-chroma-subsample",
    "jpeg-thumbnail-data",
    "bits-per-sample",
    "palette-bit-depth",
    "n-subifds",
    /* libvips's own, from its history */
    "width",
    "height",
    "bands",
    "format",
    "coding",
    "interpretation",
    "xoffset",
    "yoffset",
    "xres",
    "yres",
    "filename",
};

/* Blocks that may contain pictures. */
static const struct {
	const char *name;
	GByteArray *(*drop)(const uint8_t *block, size_t size);
} cleaned[] = {
    {VIPS_META_XMP_NAME, previews_drop_from_xmp},
    {VIPS_META_IPTC_NAME, previews_drop_from_resources},
    {VIPS_META_PHOTOSHOP_NAME, previews_drop_from_resources},
};

/* EXIF tags, in any directory, of previews, of their positions, and of blocks that may contain
 * previews. A maker note has a format of its own, often with a preview. */
static const char *const exif_pictures[] = {
    "MakerNote",
    "XMLPacket",
    "ImageResources",
    "IPTC/NAA",
    "SubIFDs",
    "JPEGInterchangeFormat",
    "JPEGInterchangeFormatLength",
    "Padding",
    "StripOffsets",
    "StripByteCounts",
};

struct copy {
	VipsImage *to;
	bool strip;
};

static bool wanted(const struct copy *copy, const char *name)
{
	if (copy->strip)
		return !strcmp(name, VIPS_META_ICC_NAME) ||
		       !strcmp(name, VIPS_META_RESOLUTION_UNIT);
	for (size_t i = 0; i < COUNT(dropped); i++)
		if (!strcmp(name, dropped[i]))
			return false;
	return strncmp(name, "png-comment-", 12) &&
	       strncmp(name, "rad-", 4); /* of Radiance files */
}

static void copy_cleaned(VipsImage *from, VipsImage *to, size_t i)
{
	const void *block;
	size_t size;
	GByteArray *kept;

	if (vips_image_get_blob(from, cleaned[i].name, &block, &size))
		return;
	kept = cleaned[i].drop(block, size);
	if (!kept)
		return;
	vips_image_set_blob_copy(to, cleaned[i].name, kept->data, kept->len);
	g_byte_array_unref(kept);
}

static void *copy_field(VipsImage *from, const char *name, GValue *value, void *data)
{
	struct copy *copy = data;

	if (!wanted(copy, name))
		return NULL;
	for (size_t i = 0; i < COUNT(cleaned); i++)
		if (!strcmp(name, cleaned[i].name)) {
			copy_cleaned(from, copy->to, i);
			return NULL;
		}
	vips_image_set(copy->to, name, value);
	return NULL;
}

/* Names are "exif-ifd", the number of a directory (1: the thumbnail's), '-' and the tag. */
static bool is_exif_picture(const char *name)
{
	if (strncmp(name, "exif-ifd", 8) || !name[8] || name[9] != '-')
		return false;
	for (size_t i = 0; i < COUNT(exif_pictures); i++)
		if (!strcmp(name + 10, exif_pictures[i]))
			return true;
	return name[8] == '1';
}

void metadata_copy(VipsImage *from, VipsImage *to, bool strip)
{
	struct copy copy = {to, strip};
	char **fields;

	vips_image_map(from, copy_field, &copy);
	fields = vips_image_get_fields(to);
	for (char **field = fields; field && *field; field++)
		if (is_exif_picture(*field) || !strcmp(*field, "jpeg-thumbnail-data"))
			vips_image_remove(to, *field);
	g_strfreev(fields);
	vips_autorot_remove_angle(to);
}

void metadata_copy_pages(VipsImage *from, VipsImage *to, uint32_t height)
{
	int *delays, count, loop;

	vips_image_set_int(to, VIPS_META_PAGE_HEIGHT, (int)height);
	if (vips_image_get_typeof(from, "delay") &&
	    !vips_image_get_array_int(from, "delay", &delays, &count))
		vips_image_set_array_int(to, "delay", delays, count);
	if (vips_image_get_typeof(from, "loop") && !vips_image_get_int(from, "loop", &loop))
		vips_image_set_int(to, "loop", loop);
}

/* Copies a field, if the image has it. Returns false without memory. */
static bool copy_blob(struct file_metadata *m, struct file_part *part, VipsImage *image,
                      const char *name)
{
	const void *at;
	uint8_t *copy;
	size_t size;

	if (!vips_image_get_typeof(image, name) || vips_image_get_blob(image, name, &at, &size) ||
	    !size)
		return true;
	copy = malloc(size);
	if (copy)
		memcpy(copy, at, size);
	return file_metadata_own(m, part, copy, size);
}

bool metadata_read_frames(struct file_metadata *m, VipsImage *image)
{
	int *delays, count;

	if (vips_image_get_typeof(image, "loop") && vips_image_get_int(image, "loop", &m->plays))
		m->plays = 0;
	if (m->delays || !vips_image_get_typeof(image, "delay") ||
	    vips_image_get_array_int(image, "delay", &delays, &count))
		return true;
	m->delay_count = count;
	m->delays = malloc((size_t)count * sizeof *delays + 1);
	if (m->delays)
		memcpy(m->delays, delays, (size_t)count * sizeof *delays);
	return m->delays;
}

bool metadata_read(struct file_metadata *m, VipsImage *image)
{
	const char *unit;
	const void *exif;
	size_t size;

	*m = (struct file_metadata){.resolution = {image->Xres, image->Yres, PER_INCH}};
	if (vips_image_get_typeof(image, VIPS_META_RESOLUTION_UNIT) &&
	    !vips_image_get_string(image, VIPS_META_RESOLUTION_UNIT, &unit) && !strcmp(unit, "cm"))
		m->resolution.unit = PER_CM;
	if (!copy_blob(m, &m->xmp, image, VIPS_META_XMP_NAME) ||
	    !copy_blob(m, &m->resources, image, VIPS_META_IPTC_NAME) ||
	    !copy_blob(m, &m->profile[0], image, VIPS_META_ICC_NAME) ||
	    !metadata_read_frames(m, image))
		return false;
	if (!vips_image_get_typeof(image, VIPS_META_EXIF_NAME) ||
	    vips_image_get_blob(image, VIPS_META_EXIF_NAME, &exif, &size))
		return true;
	m->exif = exif_block_read(exif, size, &m->resolution);
	return m->exif;
}

static void set_blob(VipsImage *image, const char *name, const struct file_part *part)
{
	if (part->at)
		vips_image_set_blob_copy(image, name, part->at, part->size);
}

void metadata_tell(const struct file_metadata *m, const struct file_part *exif, VipsImage *image)
{
	set_blob(image, VIPS_META_ICC_NAME, &m->profile[0]);
	set_blob(image, VIPS_META_XMP_NAME, &m->xmp);
	set_blob(image, VIPS_META_IPTC_NAME, &m->resources);
	set_blob(image, VIPS_META_EXIF_NAME, exif);
}
