/* EXIF by libexif, which libvips uses too: both lanes write the same blocks. But a thumbnail's
 * directory goes as a whole, where libvips keeps tags that it does not know, and texts that are no
 * UTF-8 stay as they are.
 *
 * libexif repairs blocks: it drops what it cannot parse, adds what the standard demands, and drops
 * the directory of a thumbnail that is not there. */
#include "codec/exif_block.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <libexif/exif-data.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { DEMANDED_MAX = 16 };

/* Divisors that turn a resolution into one per millimetre. */
static const double per_mm[] = {[PER_NOTHING] = 1, [PER_INCH] = 25.4, [PER_CM] = 10};

/* A struct exif_block is an ExifData. */
static ExifData *data_of(const struct exif_block *block)
{
	return (ExifData *)(uintptr_t)block;
}

/* Tags, in any directory, of previews, of their positions, and of blocks that may contain previews.
 * A maker note has a format of its own, often with a preview. */
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

/* Tags that the standard demands of each directory, by libexif's table. */
static struct {
	ExifTag tag[DEMANDED_MAX];
	unsigned count;
} demanded[EXIF_IFD_COUNT];
static pthread_once_t demanded_once = PTHREAD_ONCE_INIT;

static ExifSupportLevel support(ExifTag tag, ExifIfd directory)
{
	return exif_tag_get_support_level_in_ifd(tag, directory, EXIF_DATA_TYPE_UNKNOWN);
}

static void list_demanded(void)
{
	for (ExifIfd i = 0; i < EXIF_IFD_COUNT; i++)
		for (unsigned row = 0; row < exif_tag_table_count(); row++) {
			ExifTag tag = exif_tag_table_get_tag(row);

			if (support(tag, i) == EXIF_SUPPORT_LEVEL_MANDATORY &&
			    demanded[i].count < DEMANDED_MAX)
				demanded[i].tag[demanded[i].count++] = tag;
		}
}

/* Repairs a directory as exif_content_fix() does. That goes through libexif's whole table for each
 * directory of each block, which takes longer than all else that is done with a block. */
static void fix_directory(ExifData *data, ExifIfd i)
{
	ExifContent *directory = data->ifd[i];

	for (unsigned entry = 0; entry < directory->count; entry++)
		exif_entry_fix(directory->entries[entry]);
	for (unsigned entry = directory->count; entry--;)
		if (support(directory->entries[entry]->tag, i) == EXIF_SUPPORT_LEVEL_NOT_RECORDED)
			exif_content_remove_entry(directory, directory->entries[entry]);
	for (unsigned tag = 0; tag < demanded[i].count; tag++)
		find_or_add(data, i, demanded[i].tag[tag]);
}

/* libexif allocates the thumbnail with malloc(), but has no function that removes it. Its directory
 * goes with it. */
static void drop_thumbnail(ExifData *data)
{
	ExifContent *directory = data->ifd[EXIF_IFD_1];

	free(data->data);
	data->data = NULL;
	data->size = 0;
	for (unsigned entry = directory->count; entry--;)
		exif_content_remove_entry(directory, directory->entries[entry]);
}

static void drop_pictures(ExifData *data)
{
	for (ExifIfd i = 0; i < EXIF_IFD_COUNT; i++)
		for (size_t tag = 0; tag < COUNT(pictures); tag++) {
			ExifEntry *entry = exif_content_get_entry(data->ifd[i], pictures[tag]);

			if (entry)
				exif_content_remove_entry(data->ifd[i], entry);
		}
}

static ExifEntry *entry_of(const struct exif_block *block, ExifTag tag)
{
	ExifEntry *entry = exif_content_get_entry(data_of(block)->ifd[EXIF_IFD_0], tag);

	return entry && entry->components == 1 ? entry : NULL;
}

static bool read_integer(const struct exif_block *block, ExifTag tag, int *value)
{
	ExifByteOrder order = exif_data_get_byte_order(data_of(block));
	const ExifEntry *entry = entry_of(block, tag);

	if (entry && (entry->format == EXIF_FORMAT_SHORT || entry->format == EXIF_FORMAT_SSHORT))
		*value = exif_get_short(entry->data, order);
	else if (entry && (entry->format == EXIF_FORMAT_LONG || entry->format == EXIF_FORMAT_SLONG))
		*value = exif_get_slong(entry->data, order);
	else
		return false;
	return true;
}

/* The first number of an entry of rationals; false if it has none. */
static bool first_rational(const ExifEntry *entry, ExifByteOrder order, double *value)
{
	if (entry->components && entry->format == EXIF_FORMAT_RATIONAL) {
		ExifRational r = exif_get_rational(entry->data, order);

		*value = r.denominator ? (double)r.numerator / r.denominator : 0;
	} else if (entry->components && entry->format == EXIF_FORMAT_SRATIONAL) {
		ExifSRational r = exif_get_srational(entry->data, order);

		*value = r.denominator ? (double)r.numerator / r.denominator : 0;
	} else {
		return false;
	}
	return true;
}

static bool read_rational(const struct exif_block *block, ExifTag tag, double *value)
{
	const ExifEntry *entry = entry_of(block, tag);

	return entry && first_rational(entry, exif_data_get_byte_order(data_of(block)), value);
}

static void read_resolution(const struct exif_block *block, struct resolution *resolution)
{
	double x, y;
	int unit = PER_INCH;

	if (!read_rational(block, EXIF_TAG_X_RESOLUTION, &x) ||
	    !read_rational(block, EXIF_TAG_Y_RESOLUTION, &y))
		return;
	read_integer(block, EXIF_TAG_RESOLUTION_UNIT, &unit);
	if (unit < PER_NOTHING || unit > PER_CM)
		return;
	resolution->x = fmax(0, x / per_mm[unit]);
	resolution->y = fmax(0, y / per_mm[unit]);
	/* Without a unit from elsewhere libvips takes the numbers for those of millimetres. */
	if (unit != PER_NOTHING)
		resolution->unit = (enum resolution_unit)unit;
}

/* libexif reads a block from its title on, which only JPEG files have. */
static bool load(ExifData *data, const uint8_t *block, size_t size)
{
	static const uint8_t title[] = {'E', 'x', 'i', 'f', 0, 0};
	uint8_t *titled;

	if (size >= 4 && !memcmp(block, title, 4)) {
		exif_data_load_data(data, block, (unsigned)size);
		return true;
	}
	titled = malloc(sizeof title + size);
	if (!titled)
		return false;
	memcpy(titled, title, sizeof title);
	memcpy(titled + sizeof title, block, size);
	exif_data_load_data(data, titled, (unsigned)(sizeof title + size));
	free(titled);
	return true;
}

struct exif_block *exif_block_read(const uint8_t *block, size_t size, struct resolution *resolution)
{
	ExifData *data = exif_data_new();

	if (!data)
		return NULL;
	/* Otherwise libexif would fill in values that the block does not have. */
	exif_data_unset_option(data, EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
	if (!load(data, block, size)) {
		exif_data_unref(data);
		return NULL;
	}
	read_resolution((struct exif_block *)data, resolution);
	pthread_once(&demanded_once, list_demanded);
	drop_thumbnail(data);
	for (ExifIfd i = 0; i < EXIF_IFD_COUNT; i++)
		if (i != EXIF_IFD_1)
			fix_directory(data, i);
	drop_pictures(data);
	return (struct exif_block *)data;
}

void exif_block_free(struct exif_block **block)
{
	if (*block)
		exif_data_unref(data_of(*block));
	*block = NULL;
}

int exif_block_orientation(const struct exif_block *block)
{
	int orientation = 0;

	if (!exif_content_get_entry(data_of(block)->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION))
		return 1;
	if (!read_integer(block, EXIF_TAG_ORIENTATION, &orientation))
		return 0;
	return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

/* Sets a number, in the type that it has in the block. */
static void set_integer(ExifData *data, ExifIfd directory, ExifTag tag, uint32_t value)
{
	ExifByteOrder order = exif_data_get_byte_order(data);
	ExifEntry *entry = find_or_add(data, directory, tag);

	if (!entry || !entry->components)
		return;
	if (entry->format == EXIF_FORMAT_SHORT || entry->format == EXIF_FORMAT_SSHORT)
		exif_set_short(entry->data, order, (ExifShort)value);
	else if (entry->format == EXIF_FORMAT_LONG || entry->format == EXIF_FORMAT_SLONG)
		exif_set_long(entry->data, order, value);
}

static uint32_t thousandths(double value)
{
	return (uint32_t)fmin(value * 1000, UINT32_MAX);
}

/* Leaves a value that is near enough. */
static bool near(double old, double value)
{
	return fabs(old - value) <= 0.0001;
}

static void set_rational(ExifData *data, ExifTag tag, double value)
{
	ExifByteOrder order = exif_data_get_byte_order(data);
	ExifEntry *entry = find_or_add(data, EXIF_IFD_0, tag);
	double old = 0;

	if (!entry || !first_rational(entry, order, &old) || near(old, value))
		return;
	exif_set_rational(entry->data, order, (ExifRational){thousandths(value), 1000});
}

/* The least that the standard demands: orientation, resolution, YCbCr positioning, versions, colour
 * space and size, little endian. */
static const uint8_t minimal[] = {
    'E',  'x',  'i', 'f', 0, 0,                             /* */
    'I',  'I',  42,  0,   8, 0, 0, 0,                       /* the first directory is at 8 */
    6,    0,                                                /* */
    0x12, 1,    3,   0,   1, 0, 0, 0, 1,    0,    0,   0,   /* orientation */
    0x1a, 1,    5,   0,   1, 0, 0, 0, 86,   0,    0,   0,   /* XResolution */
    0x1b, 1,    5,   0,   1, 0, 0, 0, 94,   0,    0,   0,   /* YResolution */
    0x28, 1,    3,   0,   1, 0, 0, 0, 2,    0,    0,   0,   /* ResolutionUnit */
    0x13, 2,    3,   0,   1, 0, 0, 0, 1,    0,    0,   0,   /* YCbCrPositioning: centred */
    0x69, 0x87, 4,   0,   1, 0, 0, 0, 102,  0,    0,   0,   /* the EXIF directory is at 102 */
    0,    0,    0,   0,                                     /* no other follows */
    72,   0,    0,   0,   1, 0, 0, 0,                       /* at 86 */
    72,   0,    0,   0,   1, 0, 0, 0,                       /* at 94 */
    6,    0,                                                /* */
    0,    0x90, 7,   0,   4, 0, 0, 0, '0',  '2',  '1', '0', /* ExifVersion */
    1,    0x91, 7,   0,   4, 0, 0, 0, 1,    2,    3,   0,   /* ComponentsConfiguration */
    0,    0xa0, 7,   0,   4, 0, 0, 0, '0',  '1',  '0', '0', /* FlashpixVersion */
    1,    0xa0, 3,   0,   1, 0, 0, 0, 0xff, 0xff, 0,   0,   /* ColorSpace: uncalibrated */
    2,    0xa0, 4,   0,   1, 0, 0, 0, 0,    0,    0,   0,   /* PixelXDimension */
    3,    0xa0, 4,   0,   1, 0, 0, 0, 0,    0,    0,   0,   /* PixelYDimension */
    0,    0,    0,   0,                                     /* */
};

enum { TIFF = 6, UNIT_AT = TIFF + 54, X_AT = TIFF + 86, Y_AT = TIFF + 94, SIDES_AT = TIFF + 160 };

static void put_number(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static void put_resolution(uint8_t *at, double value)
{
	if (near(72, value))
		return;
	put_number(at, thousandths(value));
	put_number(at + 4, 1000);
}

static uint8_t *write_minimal(const struct exif_facts *facts, size_t *size)
{
	const struct resolution *r = &facts->resolution;
	uint8_t *block = malloc(sizeof minimal);

	if (!block)
		return NULL;
	memcpy(block, minimal, sizeof minimal);
	put_resolution(block + X_AT, r->x * per_mm[r->unit]);
	put_resolution(block + Y_AT, r->y * per_mm[r->unit]);
	block[UNIT_AT] = (uint8_t)r->unit;
	put_number(block + SIDES_AT, facts->width);
	put_number(block + SIDES_AT + 12, facts->height);
	*size = sizeof minimal;
	return block;
}

uint8_t *exif_block_write(struct exif_block *block, const struct exif_facts *facts, size_t *size)
{
	ExifData *data = data_of(block);
	const struct resolution *r = &facts->resolution;
	unsigned char *bytes = NULL;
	unsigned length = 0;

	if (!data)
		return write_minimal(facts, size);
	set_rational(data, EXIF_TAG_X_RESOLUTION, r->x * per_mm[r->unit]);
	set_rational(data, EXIF_TAG_Y_RESOLUTION, r->y * per_mm[r->unit]);
	set_integer(data, EXIF_IFD_0, EXIF_TAG_RESOLUTION_UNIT, r->unit);
	set_integer(data, EXIF_IFD_EXIF, EXIF_TAG_PIXEL_X_DIMENSION, facts->width);
	set_integer(data, EXIF_IFD_EXIF, EXIF_TAG_PIXEL_Y_DIMENSION, facts->height);
	set_integer(data, EXIF_IFD_0, EXIF_TAG_ORIENTATION, 1);
	exif_data_save_data(data, &bytes, &length);
	*size = length;
	return bytes;
}
