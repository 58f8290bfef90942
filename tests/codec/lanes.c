/* JPEGs, and the pixels of still WebP files, as libvips would read and write them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <libexif/exif-data.h>

#include "codec/metadata/containers.h"
#include "expect.h"
#include "jpegs.h"

/* A way to write a file of the corpus. */
struct writing {
	const char *name;
	uint32_t bands;
	struct jpegs_wish wish;
};

static const struct writing writings[] = {
    {"4:2:0", 3, {61, 37, JPEGS_420, .quality = 85}},
    {"one pixel", 3, {1, 1, JPEGS_420, .quality = 85}},
    {"a row", 3, {300, 1, JPEGS_420, .quality = 85}},
    {"a column", 3, {1, 300, JPEGS_422, .quality = 85}},
    {"tiles", 3, {130, 700, JPEGS_420, .quality = 85}},
    {"4:4:4", 3, {33, 50, JPEGS_444, .quality = 95}},
    {"4:2:2", 3, {35, 50, JPEGS_422, .quality = 40}},
    {"4:4:0", 3, {35, 51, JPEGS_440, .quality = 100}},
    {"4:1:1", 3, {77, 51, JPEGS_411, .quality = 10}},
    {"restarts", 3, {200, 65, JPEGS_420, 85, .restart_interval = 3}},
    {"progressive", 3, {67, 129, JPEGS_420, 85, .progressive = true}},
    {"progressive, restarts", 3, {67, 67, JPEGS_444, 50, 5, .progressive = true}},
    {"arithmetic", 3, {64, 33, JPEGS_420, 85, .arithmetic = true}},
    {"grey", 1, {19, 70, JPEGS_GRAY, .quality = 85}},
    {"grey, subsampled", 1, {19, 70, JPEGS_420, .quality = 85}},
    {"grey, progressive", 1, {40, 40, JPEGS_GRAY, 85, .progressive = true}},
    {"RGB", 3, {45, 20, JPEGS_444, 85, .colors = JCS_RGB}},
    {"YCbCr by Adobe", 3, {45, 20, JPEGS_420, 85, .adobe = true}},
    {"CMYK", 4, {45, 30, JPEGS_444, .quality = 85}},
    {"CMYK, progressive", 4, {45, 30, JPEGS_444, 85, .progressive = true}},
    {"YCCK", 4, {46, 31, JPEGS_420, 85, .colors = JCS_YCCK}},
};

static struct file file_written(const struct writing *w)
{
	struct jpegs_picture picture =
	    jpegs_draw(w->wish.width, w->wish.height, w->bands, JPEGS_SMOOTH, 1);
	struct file file;

	file.bytes = jpegs_encode(&picture, &w->wish, &file.size);
	free(picture.samples);
	return file;
}

/* Files ---------------------------------------------------------------------------------------- */

static void test_writings(void)
{
	for (size_t i = 0; i < G_N_ELEMENTS(writings); i++) {
		struct file file = file_written(&writings[i]);

		expect_alike(&file, FORMAT_JPEG, FORMAT_JPEG, false, writings[i].name);
		free(file.bytes);
	}
}

void damage(uint32_t *state, uint8_t *bytes, size_t size, int hits)
{
	for (int hit = 0; hit < hits; hit++) {
		*state = *state * 1664525 + 1013904223;
		bytes[(*state >> 8) % size] = (uint8_t)*state;
	}
}

void expect_cuts_alike(const struct file *whole, enum format from, enum format to, const char *name)
{
	char which[80];

	for (size_t part = 1; part < 24; part++) {
		struct file cut = {whole->bytes, whole->size * part / 24};

		snprintf(which, sizeof which, "%s cut to %zu/24", name, part);
		expect_alike(&cut, from, to, false, which);
	}
}

/* The decoder must see the same end, and guess the same samples. */
static void test_damage(void)
{
	static const struct writing damaged[] = {
	    {"baseline", 3, {90, 90, JPEGS_420, 85, .restart_interval = 4}},
	    {"progressive", 3, {90, 90, JPEGS_420, 85, .progressive = true}},
	};
	uint32_t state = 4711;
	char name[64];

	for (size_t i = 0; i < G_N_ELEMENTS(damaged); i++) {
		struct file whole = file_written(&damaged[i]);

		expect_cuts_alike(&whole, FORMAT_JPEG, FORMAT_JPEG, damaged[i].name);
		for (int trial = 0; trial < 60; trial++) {
			struct file file = {g_memdup2(whole.bytes, whole.size), whole.size};

			damage(&state, (uint8_t *)file.bytes + 20, file.size - 20, 1 + trial % 4);
			snprintf(name, sizeof name, "%s with damage %d", damaged[i].name, trial);
			expect_alike(&file, FORMAT_JPEG, FORMAT_JPEG, false, name);
			file_fini(&file);
		}
		free(whole.bytes);
	}
}

/* Metadata ------------------------------------------------------------------------------------- */

enum { BYTE = 1, ASCII, SHORT, LONG, RATIONAL, UNDEFINED = 7, SRATIONAL = 10 };

/* A tag; values are numbers (rationals: pairs) or text. */
struct tag {
	unsigned number, type, count;
	uint32_t values[6];
	const char *text;
	ExifIfd directory;
};

#define TAG(tag, format, n, ...)    .number = tag, .type = format, .count = n, .values = {__VA_ARGS__}
#define TEXT(tag, format, n, words) .number = tag, .type = format, .count = n, .text = words

static void add_tag(ExifData *data, const struct tag *t, bool big_endian)
{
	static const unsigned sizes[] = {
	    [BYTE] = 1, [SHORT] = 2, [LONG] = 4, [RATIONAL] = 4, [SRATIONAL] = 4};
	ExifEntry *e = exif_entry_new();

	e->tag = t->number;
	e->format = t->type;
	e->components = t->count;
	e->size = t->count * exif_format_get_size(e->format);
	e->data = t->text ? g_memdup2(t->text, e->size) : g_malloc(e->size);
	for (unsigned i = 0; !t->text && i < e->size / sizes[t->type]; i++)
		bytes_put(e->data + i * sizes[t->type], t->values[i], sizes[t->type], big_endian);
	exif_content_add_entry(data->ifd[t->directory], e);
	exif_entry_unref(e);
}

/* Returns a block with its title; with a thumbnail if there is anything on one. */
static GByteArray *block_of(const struct tag *tags, size_t count, bool big_endian)
{
	ExifData *data = exif_data_new();
	unsigned char *bytes;
	unsigned size;

	exif_data_set_byte_order(data,
	                         big_endian ? EXIF_BYTE_ORDER_MOTOROLA : EXIF_BYTE_ORDER_INTEL);
	for (size_t i = 0; i < count && tags[i].count; i++)
		add_tag(data, &tags[i], big_endian);
	if (data->ifd[EXIF_IFD_1]->count) {
		data->size = 16;
		data->data = g_memdup2("\xff\xd8\xff thumbnail \xff\xd9", data->size);
	}
	exif_data_save_data(data, &bytes, &size);
	exif_data_unref(data);
	return g_byte_array_new_take(bytes, size);
}

GByteArray *camera_block(bool big_endian)
{
	static char picture[400];
	static const struct tag tags[] = {
	    {TEXT(0x10e, ASCII, 9, "a street")},
	    {TEXT(0x10f, ASCII, 6, "Maker")},
	    {TAG(0x111, LONG, 2, 1, 2)},
	    {TAG(0x112, SHORT, 1, 1)},
	    {TAG(0x11a, RATIONAL, 1, 300, 1)},
	    {TAG(0x11b, RATIONAL, 1, 3000, 10)},
	    {TAG(0x128, SHORT, 1, 2)},
	    {TAG(0x14a, LONG, 1, 8)},
	    {TAG(0x213, SHORT, 1, 2)},
	    {TEXT(0x2bc, BYTE, 100, picture)},
	    {TAG(0x83bb, LONG, 3, 1, 2, 3)},
	    {TEXT(0x8649, BYTE, 100, picture)},
	    {TEXT(0xabcd, UNDEFINED, 30, picture)},
	    {TAG(0x829a, RATIONAL, 1, 1, 250), .directory = EXIF_IFD_EXIF},
	    {TAG(0x829d, SRATIONAL, 1, 28, 10), .directory = EXIF_IFD_EXIF},
	    {TAG(0x8827, LONG, 1, 400), .directory = EXIF_IFD_EXIF},
	    {TEXT(0x9000, UNDEFINED, 4, "0221"), .directory = EXIF_IFD_EXIF},
	    {TEXT(0x9003, ASCII, 20, "2024:05:06 07:08:09"), .directory = EXIF_IFD_EXIF},
	    {TAG(0x9204, SRATIONAL, 1, (uint32_t)-1, 3), .directory = EXIF_IFD_EXIF},
	    {TAG(0x9209, BYTE, 1, 16), .directory = EXIF_IFD_EXIF},
	    {TEXT(0x927c, UNDEFINED, 300, picture), .directory = EXIF_IFD_EXIF},
	    {TEXT(0x9286, UNDEFINED, 14, "ASCII\0\0\0blurry"), .directory = EXIF_IFD_EXIF},
	    {TAG(0xa001, SHORT, 1, 1), .directory = EXIF_IFD_EXIF},
	    {TAG(0xa002, SHORT, 1, 4000), .directory = EXIF_IFD_EXIF},
	    {TAG(0xa003, SHORT, 1, 3000), .directory = EXIF_IFD_EXIF},
	    {TAG(0xa217, LONG, 1, 2), .directory = EXIF_IFD_EXIF},
	    {TAG(0xa432, RATIONAL, 2, 24, 1, 70, 1), .directory = EXIF_IFD_EXIF},
	    {TEXT(0xea1c, UNDEFINED, 200, picture), .directory = EXIF_IFD_EXIF},
	    {TAG(0xc0de, LONG, 2, 1, 2), .directory = EXIF_IFD_EXIF},
	    {TAG(0, BYTE, 4, 2, 3, 0, 0), .directory = EXIF_IFD_GPS},
	    {TEXT(1, ASCII, 2, "N"), .directory = EXIF_IFD_GPS},
	    {TAG(2, RATIONAL, 3, 52, 1, 31, 1, 48, 10), .directory = EXIF_IFD_GPS},
	    {TEXT(1, ASCII, 4, "R98"), .directory = EXIF_IFD_INTEROPERABILITY},
	    {TEXT(2, UNDEFINED, 4, "0100"), .directory = EXIF_IFD_INTEROPERABILITY},
	    {TAG(0x103, SHORT, 1, 6), .directory = EXIF_IFD_1},
	    {TAG(0x11a, RATIONAL, 1, 72, 1), .directory = EXIF_IFD_1},
	};

	memset(picture, 'P', sizeof picture);
	return block_of(tags, G_N_ELEMENTS(tags), big_endian);
}

/* Returns the file with a segment after its start. */
static struct file with_segment(const struct file *file, uint8_t marker, const void *data,
                                size_t size)
{
	uint8_t head[] = {
	    0xff, 0xd8, 0xff, marker, (uint8_t)((size + 2) >> 8), (uint8_t)(size + 2)};
	GByteArray *bytes = g_byte_array_new();

	g_byte_array_append(bytes, head, sizeof head);
	g_byte_array_append(bytes, data, (guint)size);
	g_byte_array_append(bytes, (const guint8 *)file->bytes + 2, (guint)file->size - 2);
	return (struct file){bytes->data, (size_t)bytes->len};
}

static void expect_segment_alike(const struct file *file, uint8_t marker, const void *data,
                                 size_t size, const char *name)
{
	struct file with = with_segment(file, marker, data, size);

	expect_alike(&with, FORMAT_JPEG, FORMAT_JPEG, false, name);
	expect_alike(&with, FORMAT_JPEG, FORMAT_JPEG, true, name);
	g_free(with.bytes);
}

static void test_cameras(const struct file *file)
{
	for (int big_endian = 0; big_endian < 2; big_endian++) {
		GByteArray *b = camera_block(big_endian);

		expect_segment_alike(file, 0xe1, b->data, b->len, "EXIF of a camera");
		for (guint size = 1; size < b->len; size += 97)
			expect_segment_alike(file, 0xe1, b->data, size, "EXIF cut off");
		g_byte_array_unref(b);
	}
}

#define RESOLUTION(type, ...) TAG(0x11a, type, 1, __VA_ARGS__)
#define UPWARDS(type, ...)    TAG(0x11b, type, 1, __VA_ARGS__)
#define UNIT(number)          TAG(0x128, SHORT, 1, number)

static void test_tags(const struct file *file)
{
	static const struct {
		const char *name;
		struct tag tags[3];
	} cases[] = {
	    {"no tags", {{0}}},
	    {"resolution", {{RESOLUTION(RATIONAL, 301, 2)}, {UPWARDS(RATIONAL, 99, 1)}}},
	    {"cm", {{RESOLUTION(RATIONAL, 118, 1)}, {UPWARDS(RATIONAL, 118, 1)}, {UNIT(3)}}},
	    {"no unit", {{RESOLUTION(RATIONAL, 4, 1)}, {UPWARDS(RATIONAL, 3, 1)}, {UNIT(1)}}},
	    {"unknown unit", {{RESOLUTION(RATIONAL, 4, 1)}, {UPWARDS(RATIONAL, 3, 1)}, {UNIT(7)}}},
	    {"n/0", {{RESOLUTION(RATIONAL, 4, 0)}, {UPWARDS(RATIONAL, 0, 0)}}},
	    {"large", {{RESOLUTION(RATIONAL, 4000000, 1)}, {UPWARDS(RATIONAL, 1, 4294967295)}}},
	    {"signed", {{RESOLUTION(SRATIONAL, (uint32_t)-300, 1)}, {UPWARDS(SRATIONAL, 300, 1)}}},
	    {"integer", {{RESOLUTION(LONG, 300)}, {UPWARDS(LONG, 300)}}},
	    {"two numbers", {{TAG(0x11a, RATIONAL, 2, 300, 1, 2, 1)}}},
	    {"long orientation", {{TAG(0x112, LONG, 1, 1)}}},
	    {"short byte", {{TAG(0x112, BYTE, 1, 1)}}},
	    {"wrong orientation", {{TAG(0x112, SHORT, 1, 9)}}},
	    {"no orientation", {{TEXT(0x112, ASCII, 2, "x")}}},
	    {"orientations", {{TAG(0x112, SHORT, 2, 1, 6)}}},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		GByteArray *b = block_of(cases[i].tags, 3, i % 2);

		expect_segment_alike(file, 0xe1, b->data, b->len, cases[i].name);
		g_byte_array_unref(b);
	}
}

/* Densities in the JFIF segment, which is the first. */
static void test_densities(void)
{
	static const uint8_t densities[][5] = {
	    {0, 0, 2, 0, 3}, {1, 1, 44, 1, 44}, {1, 0, 1, 0, 1},    {2, 0, 118, 0, 99},
	    {7, 0, 9, 0, 9}, {0, 0, 5, 0, 0},   {1, 0, 0, 255, 255}};
	struct file file = file_written(&writings[0]);

	for (size_t i = 0; i < G_N_ELEMENTS(densities); i++) {
		memcpy((uint8_t *)file.bytes + 13, densities[i], sizeof densities[i]);
		expect_alike(&file, FORMAT_JPEG, FORMAT_JPEG, i % 2, "JFIF density");
		test_tags(&file);
	}
	free(file.bytes);
}

/* Returns the file with a part of a profile; parts are numbered from 1. */
static struct file with_part(const struct file *file, int number, const uint8_t *data, size_t size)
{
	uint8_t part[2000] = "ICC_PROFILE";

	part[12] = (uint8_t)number;
	part[13] = 3;
	memcpy(part + 14, data, size);
	return with_segment(file, 0xe2, part, 14 + size);
}

/* The first bytes of a profile, in three parts; then those that this text names, in front of each
 * other. */
static void test_profile(const char *profile, size_t most, const char *order, size_t writing)
{
	struct file file = file_written(&writings[writing]), with, whole = file_of_profile(profile);
	const size_t size = MIN(most, whole.size), third = MIN(size / 3, 1900);
	char name[100];

	for (const char *p = order; *p; p++) {
		size_t from = *p >= '1' && *p <= '3' ? (size_t)(*p - '1') * third : 0;

		with = with_part(&file, *p - '0', (const uint8_t *)whole.bytes + from, third);
		free(file.bytes);
		file = with;
	}
	snprintf(name, sizeof name, "%s of %zu bytes, parts %s, %s", profile, size, order,
	         writings[writing].name);
	expect_alike(&file, FORMAT_JPEG, FORMAT_JPEG, order[1] == '1', name);
	free(file.bytes);
	file_fini(&whole);
}

static void test_profiles(void)
{
	const size_t grey = 13, cmyk = 18;

	test_profile("srgb", SIZE_MAX, "321", 0);
	test_profile("srgb", SIZE_MAX, "31", 0);
	test_profile("srgb", SIZE_MAX, "2113", 0);
	test_profile("srgb", SIZE_MAX, "0132", 0);
	test_profile("srgb", SIZE_MAX, "23", 0);
	if (vips_version(0) == 8 && vips_version(1) < 16) /* that one drops it */
		test_profile("srgb", SIZE_MAX, "123", cmyk);
	test_profile("srgb", SIZE_MAX, "123", grey);
	test_profile("cmyk", SIZE_MAX, "123", cmyk);
	test_profile("cmyk", SIZE_MAX, "123", 0);
	for (size_t size = 100; size < 500; size += 30)
		test_profile("srgb", size, "123", 0);
}

static void test_others(const struct file *file)
{
	static const char xmp[] = "http://ns.adobe.com/xap/1.0/\0<x:xmpmeta><a xmp:Thumbnails='1' "
	                          "b='2'>text</a></x:xmpmeta>",
	                  bare[] = "http without an end of the title and very, very, very, very, "
	                           "very, very, very, very, very, very long\0<a/>",
	                  resources[] = "Photoshop 3.0\0"
	                                "8BIM\x04\x04\0\0\0\0\0\x09\x1c\x02\x78\0"
	                                "\x04text\0"
	                                "8BIM\x04\x0c\0\0\0\0\0\x04pict";
	static char large[65000] = "http://ns.adobe.com/xap/1.0/\0<a>";

	memset(large + 32, 'x', sizeof large - 32);
	for (size_t i = 132; i < sizeof large; i += 100)
		large[i] = ' ';
	memcpy(large + sizeof large - 4, "</a>", 4);
	expect_segment_alike(file, 0xe1, xmp, sizeof xmp - 1, "XMP");
	expect_segment_alike(file, 0xe1, bare, sizeof bare - 1, "XMP without a title");
	expect_segment_alike(file, 0xe1, large, sizeof large, "too much XMP");
	expect_segment_alike(file, 0xe1, "http", 5, "an empty segment");
	expect_segment_alike(file, 0xed, resources, sizeof resources - 1, "Photoshop");
	expect_segment_alike(file, 0xfe, "a comment", 9, "a comment");
	expect_segment_alike(file, 0xe5, "anything", 8, "APP5");
	expect_segment_alike(file, 0xe2, "MPF\0II*\0", 8, "MPF");
	expect_segment_alike(file, 0xee, "Adobe\0\x64\0\0\0\0\0", 12, "Adobe says RGB");
	test_profiles();
}

/* WebP ----------------------------------------------------------------------------------------- */

/* The file as it is, and with bytes of its picture changed: its header stays. */
static void test_still(const char *suffix, uint32_t width, uint32_t height, uint32_t bands)
{
	struct picture p;
	struct file whole;
	uint32_t state = width;
	char name[64];

	picture_make(&p, width, height, bands, PIXEL_U8, bands == 4);
	whole = file_of_picture(&p, suffix);
	for (int trial = 0; trial <= (getenv("TEST_ALL") ? 20 : 5); trial++) {
		struct file file = {g_memdup2(whole.bytes, whole.size), whole.size};

		if (trial)
			damage(&state, (uint8_t *)file.bytes + file.size / 2, file.size / 2,
			       1 + (trial - 1) % 3);
		snprintf(name, sizeof name, "%ux%ux%u%s with damage %d", width, height, bands,
		         suffix, trial);
		expect_alike(&file, FORMAT_WEBP, FORMAT_RAW, false, name);
		file_fini(&file);
	}
	file_fini(&whole);
	picture_fini(&p);
}

static void test_stills(void)
{
	test_still(".webp", 61, 37, 3);
	test_still(".webp", 1, 1, 3);
	test_still(".webp", 600, 500, 3); /* with a thread of libwebp's */
	test_still(".webp", 50, 41, 4);
	test_still(".webp[lossless]", 41, 60, 3);
	test_still(".webp[lossless]", 41, 60, 4);
}

void test_lanes(void)
{
	struct file file = file_written(&writings[5]);

	test_writings();
	test_damage();
	test_cameras(&file);
	test_densities();
	test_others(&file);
	test_stills();
	test_pngs();
	free(file.bytes);
}
