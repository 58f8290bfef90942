/* libexif repairs blocks: it drops entries that it cannot parse or that do not belong into a
 * directory, and adds entries that the standard requires. libvips uses it in the same way. */
#include "codec/metadata/exif_block.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libexif/exif-data.h>

#include "codec/metadata/containers.h"

static const uint8_t title[] = {'E', 'x', 'i', 'f', 0, 0};

/* Divisors that turn a resolution into one per millimetre. */
static const double per_mm[] = {[PER_NOTHING] = 1, [PER_INCH] = 25.4, [PER_CM] = 10};

/* Tags in any directory that hold previews, positions of previews, and blocks that may contain
 * previews. A maker note has a format of its own, often with a preview. */
static const ExifTag pictures[] = {
    EXIF_TAG_MAKER_NOTE,
    EXIF_TAG_XML_PACKET,
    EXIF_TAG_IMAGE_RESOURCES,
    EXIF_TAG_IPTC_NAA,
    EXIF_TAG_SUB_IFDS,
    EXIF_TAG_JPEG_INTERCHANGE_FORMAT,
    EXIF_TAG_JPEG_INTERCHANGE_FORMAT_LENGTH,
    EXIF_TAG_PADDING,
    EXIF_TAG_STRIP_OFFSETS,
    EXIF_TAG_STRIP_BYTE_COUNTS,
};

static ExifEntry *find_or_add(ExifData *data, ExifIfd directory, ExifTag tag)
{
	ExifEntry *entry = exif_content_get_entry(data->ifd[directory], tag);

	if (entry)
		return entry;
	entry = exif_entry_new();
	if (!entry)
		return NULL;
	entry->tag = tag;
	exif_content_add_entry(data->ifd[directory], entry);
	exif_entry_initialize(entry, tag);
	exif_entry_unref(entry); /* the directory has it */
	return entry;
}

/* Adds the entries that the standard requires for any image. exif_content_fix() would search
 * libexif's whole table for each directory, which takes longer than all else here. */
static void add_demanded(ExifData *data)
{
	find_or_add(data, EXIF_IFD_0, EXIF_TAG_X_RESOLUTION);
	find_or_add(data, EXIF_IFD_0, EXIF_TAG_Y_RESOLUTION);
	find_or_add(data, EXIF_IFD_0, EXIF_TAG_RESOLUTION_UNIT);
	find_or_add(data, EXIF_IFD_EXIF, EXIF_TAG_EXIF_VERSION);
	find_or_add(data, EXIF_IFD_EXIF, EXIF_TAG_FLASH_PIX_VERSION);
	find_or_add(data, EXIF_IFD_EXIF, EXIF_TAG_COLOR_SPACE);
}

/* Reading -------------------------------------------------------------------------------------- */

/* Returns the first number of an entry, or false if there is none or it has another format. */
static bool first_number(const ExifEntry *entry, ExifByteOrder order, double *value)
{
	ExifRational r;
	ExifSRational s;

	if (!entry->components)
		return false;
	switch (entry->format) {
	case EXIF_FORMAT_SHORT:
	case EXIF_FORMAT_SSHORT:
		*value = exif_get_short(entry->data, order);
		return true;
	case EXIF_FORMAT_LONG:
	case EXIF_FORMAT_SLONG:
		*value = exif_get_slong(entry->data, order);
		return true;
	case EXIF_FORMAT_RATIONAL:
		r = exif_get_rational(entry->data, order);
		*value = r.denominator ? (double)r.numerator / r.denominator : 0;
		return true;
	case EXIF_FORMAT_SRATIONAL:
		s = exif_get_srational(entry->data, order);
		*value = s.denominator ? (double)s.numerator / s.denominator : 0;
		return true;
	default:
		return false;
	}
}

static bool is_rational(const ExifEntry *entry)
{
	return entry->format == EXIF_FORMAT_RATIONAL || entry->format == EXIF_FORMAT_SRATIONAL;
}

/* Reads a tag of the image that is a single number, rational or whole. */
static bool read_number(ExifData *data, ExifTag tag, bool rational, double *value)
{
	const ExifEntry *entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], tag);

	return entry && entry->components == 1 && is_rational(entry) == rational &&
	       first_number(entry, exif_data_get_byte_order(data), value);
}

static void read_resolution(ExifData *data, struct resolution *resolution)
{
	double x, y, unit = PER_INCH;

	if (!read_number(data, EXIF_TAG_X_RESOLUTION, true, &x) ||
	    !read_number(data, EXIF_TAG_Y_RESOLUTION, true, &y))
		return;
	read_number(data, EXIF_TAG_RESOLUTION_UNIT, false, &unit);
	if (unit < PER_NOTHING || unit > PER_CM)
		return;
	resolution->x = fmax(0, x / per_mm[(int)unit]);
	resolution->y = fmax(0, y / per_mm[(int)unit]);
	/* Without a unit from elsewhere libvips takes the numbers as pixels per millimetre. */
	if (unit > PER_NOTHING)
		resolution->unit = (enum resolution_unit)unit;
}

/* libexif allocates the thumbnail with malloc(), but has no function that removes it. */
static void clean(ExifData *data)
{
	free(data->data);
	data->data = NULL;
	data->size = 0;
	for (ExifIfd i = 0; i < EXIF_IFD_COUNT; i++)
		for (unsigned at = data->ifd[i]->count; at--;) {
			ExifEntry *entry = data->ifd[i]->entries[at];
			bool wanted = i != EXIF_IFD_1 &&
			              exif_tag_get_support_level_in_ifd(entry->tag, i,
			                                                EXIF_DATA_TYPE_UNKNOWN) !=
			                  EXIF_SUPPORT_LEVEL_NOT_RECORDED;

			for (size_t p = 0; p < sizeof pictures / sizeof *pictures; p++)
				wanted &= entry->tag != pictures[p];
			if (wanted)
				exif_entry_fix(entry);
			else
				exif_content_remove_entry(data->ifd[i], entry);
		}
	add_demanded(data);
}

ExifData *exif_block_read(const uint8_t *block, size_t size, struct resolution *resolution)
{
	const bool titled = bytes_begin(block, size, "Exif");
	uint8_t *whole = titled ? NULL : malloc(sizeof title + size);
	ExifData *data = titled || whole ? exif_data_new() : NULL;

	if (whole) {
		memcpy(whole, title, sizeof title);
		memcpy(whole + sizeof title, block, size);
		block = whole;
		size += sizeof title;
	}
	if (data) {
		/* Without this libexif would add values that the block does not have. */
		exif_data_unset_option(data, EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
		exif_data_load_data(data, block, (unsigned)size);
		read_resolution(data, resolution);
		clean(data);
	}
	free(whole);
	return data;
}

void exif_block_free(ExifData **block)
{
	if (*block)
		exif_data_unref(*block);
	*block = NULL;
}

int exif_block_orientation(ExifData *block)
{
	double orientation;

	if (!exif_content_get_entry(block->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION))
		return 1;
	if (!read_number(block, EXIF_TAG_ORIENTATION, false, &orientation))
		return 0;
	return orientation >= 1 && orientation <= 8 ? (int)orientation : 1;
}

/* Writing -------------------------------------------------------------------------------------- */

/* Sets a number, in its type in the block if that is rational or whole, otherwise in the
 * standard's. A resolution that is close enough stays. */
static void set_number(ExifData *data, ExifIfd directory, ExifTag tag, bool rational, double value)
{
	ExifByteOrder order = exif_data_get_byte_order(data);
	ExifEntry *entry = find_or_add(data, directory, tag);
	double old;

	if (!entry || is_rational(entry) != rational || !first_number(entry, order, &old) ||
	    fabs(old - value) <= 0.0001)
		return;
	if (rational) {
		const ExifLong thousandths = (ExifLong)fmin(value * 1000, UINT32_MAX);

		exif_set_rational(entry->data, order, (ExifRational){thousandths, 1000});
	} else if (entry->format == EXIF_FORMAT_SHORT || entry->format == EXIF_FORMAT_SSHORT) {
		exif_set_short(entry->data, order, (ExifShort)(ExifLong)value);
	} else {
		exif_set_long(entry->data, order, (ExifLong)value);
	}
}

uint8_t *exif_block_write(ExifData *block, const struct image *image, const struct resolution *r,
                          size_t *size)
{
	ExifData *data = block ? block : exif_data_new();
	unsigned char *bytes = NULL;
	unsigned length = 0;

	if (!data)
		return NULL;
	if (!block) {
		/* The least required of a JPEG, except for entries that every block gets. */
		exif_data_set_byte_order(data, EXIF_BYTE_ORDER_INTEL);
		add_demanded(data);
		find_or_add(data, EXIF_IFD_0, EXIF_TAG_YCBCR_POSITIONING);
		find_or_add(data, EXIF_IFD_EXIF, EXIF_TAG_COMPONENTS_CONFIGURATION);
	}
	set_number(data, EXIF_IFD_0, EXIF_TAG_X_RESOLUTION, true, r->x * per_mm[r->unit]);
	set_number(data, EXIF_IFD_0, EXIF_TAG_Y_RESOLUTION, true, r->y * per_mm[r->unit]);
	set_number(data, EXIF_IFD_0, EXIF_TAG_RESOLUTION_UNIT, false, r->unit);
	set_number(data, EXIF_IFD_EXIF, EXIF_TAG_PIXEL_X_DIMENSION, false, image->width);
	set_number(data, EXIF_IFD_EXIF, EXIF_TAG_PIXEL_Y_DIMENSION, false, image->height);
	/* One that is no number is made anew. */
	if (!exif_block_orientation(data))
		exif_content_remove_entry(
		    data->ifd[EXIF_IFD_0],
		    exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION));
	set_number(data, EXIF_IFD_0, EXIF_TAG_ORIENTATION, false, 1);
	exif_data_save_data(data, &bytes, &length);
	if (!block)
		exif_data_unref(data);
	*size = length;
	return bytes;
}
