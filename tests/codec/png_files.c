/* PNGs as libvips would read and write them: which of them go without it, too. */
#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "codec/formats/png_metadata.h"
#include "codec/formats/row.h"
#include "expect.h"

enum { AFTER_HEADER = PNG_SIGNATURE + PNG_CHUNK_FRAME + 13 };

static size_t number(const void *at)
{
	return bytes_number(at, 4, true);
}

/* Returns the place of a chunk; 0: there is none. */
static size_t find(const struct file *file, const char *name)
{
	const uint8_t *bytes = file->bytes, *at = bytes + PNG_SIGNATURE;
	struct png_chunk chunk;

	while (png_chunk_next(&at, bytes + file->size, &chunk))
		if (png_chunk_is(&chunk, name))
			return (size_t)(chunk.data - PNG_CHUNK_HEAD - bytes);
	return 0;
}

/* Returns the file with a chunk at this place; the caller frees. */
static struct file with_chunk(const struct file *file, size_t at, const char *name,
                              const void *data, size_t size)
{
	const size_t all = file->size + PNG_CHUNK_FRAME + size;
	uint8_t *bytes = g_malloc(all);

	memcpy(bytes, file->bytes, at);
	memcpy(bytes + at + 4, name, 4);
	memcpy(bytes + at + PNG_CHUNK_HEAD, data, size);
	png_chunk_seal(bytes + at, (uint32_t)size);
	memcpy(bytes + at + PNG_CHUNK_FRAME + size, (const uint8_t *)file->bytes + at,
	       file->size - at);
	return (struct file){bytes, all};
}

static void drop_chunk(struct file *file, const char *name)
{
	size_t at = find(file, name), size;
	uint8_t *bytes = file->bytes;

	if (!at)
		return;
	size = PNG_CHUNK_FRAME + number(bytes + at);
	memmove(bytes + at, bytes + at + size, file->size - at - size);
	file->size -= size;
}

static struct file file_made(uint32_t width, uint32_t height, uint32_t bands, enum pixel_type type,
                             const char *suffix)
{
	struct picture p;
	struct file file;

	picture_make(&p, width, height, bands, type, bands % 2 == 0);
	file = file_of_picture(&p, suffix);
	drop_chunk(&file, "eXIf"); /* from 8.16 on libvips adds one */
	picture_fini(&p);
	return file;
}

/* Tells whether the worker reads it without libvips. */
static bool is_ours(const struct file *file)
{
	const struct body body = {file->bytes, file->size, true};
	struct decoded decoded = {0};
	struct problem problem;
	void *png = NULL;
	bool ours = !reader_open(&png_reader, &png, &decoded, &body, &problem) && decoded.plain &&
	            !png_reader.find(png, &problem);

	reader_close(&png_reader, &png);
	return ours;
}

static void expect_lane(const struct file *file, bool ours, const char *name)
{
	expect(is_ours(file) == ours, "%s: read %s libvips", name, ours ? "by" : "without");
}

/* With and without metadata, in all formats that are written without libvips. */
static void expect_all_alike(const struct file *file, const char *name)
{
	expect_alike(file, FORMAT_PNG, FORMAT_PNG, false, name);
	expect_alike(file, FORMAT_PNG, FORMAT_PNG, true, name);
	expect_alike(file, FORMAT_PNG, FORMAT_JPEG, false, name);
	expect_alike(file, FORMAT_PNG, FORMAT_JPEG, true, name);
}

/* Pixels --------------------------------------------------------------------------------------- */

static void test_kinds(void)
{
	static const struct {
		uint32_t width, height, bands;
		enum pixel_type type;
		const char *suffix;
		bool ours;
	} kinds[] = {
	    {61, 37, 1, PIXEL_U8, ".png", true},
	    {61, 37, 2, PIXEL_U8, ".png[filter=all]", true},
	    {61, 37, 3, PIXEL_U8, ".png[filter=all]", true},
	    {61, 37, 4, PIXEL_U8, ".png[filter=all]", true},
	    {61, 37, 1, PIXEL_U16, ".png[filter=all]", true},
	    {61, 37, 2, PIXEL_U16, ".png[filter=all]", true},
	    {61, 37, 3, PIXEL_U16, ".png[filter=all]", true},
	    {61, 37, 4, PIXEL_U16, ".png[filter=all]", true},
	    {40, 33, 3, PIXEL_U8, ".png[filter=sub]", true},
	    {40, 33, 3, PIXEL_U8, ".png[filter=up]", true},
	    {40, 33, 3, PIXEL_U8, ".png[filter=avg]", true},
	    {40, 33, 3, PIXEL_U8, ".png[filter=paeth]", true},
	    {40, 33, 4, PIXEL_U16, ".png[filter=paeth]", true},
	    {1, 1, 3, PIXEL_U8, ".png[filter=paeth]", true},
	    {1, 1, 2, PIXEL_U16, ".png[filter=avg]", true},
	    {900, 1, 3, PIXEL_U8, ".png[filter=all]", true},
	    {1, 900, 3, PIXEL_U8, ".png[filter=all]", true},
	    {300, 250, 3, PIXEL_U8, ".png[compression=0]", true},
	    {61, 37, 3, PIXEL_U8, ".png[interlace]", false},
	    {61, 37, 3, PIXEL_U8, ".png[palette]", false},
	    {1100, 1000, 4, PIXEL_U8, ".png[compression=1]", false},
	};
	char name[80];

	for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
		struct file file = file_made(kinds[i].width, kinds[i].height, kinds[i].bands,
		                             kinds[i].type, kinds[i].suffix);

		snprintf(name, sizeof name, "%ux%ux%u:%s%s", kinds[i].width, kinds[i].height,
		         kinds[i].bands, pixel_type_rows[kinds[i].type].name, kinds[i].suffix);
		expect_lane(&file, kinds[i].ours, name);
		expect_alike(&file, FORMAT_PNG, FORMAT_PNG, i % 2, name);
		if (kinds[i].type == PIXEL_U8)
			expect_alike(&file, FORMAT_PNG, FORMAT_JPEG, i % 2, name);
		file_fini(&file);
	}
}

/* Cut off, and with bytes changed: every other one has a right checksum. */
static void test_damaged(const struct file *whole)
{
	uint32_t state = 1234;
	char name[64];

	expect_cuts_alike(whole, FORMAT_PNG, FORMAT_RAW, "a PNG");
	for (int trial = 0; trial < 80; trial++) {
		struct file file = {g_memdup2(whole->bytes, whole->size), whole->size};
		uint8_t *bytes = file.bytes, *stream = bytes + find(&file, "IDAT");
		const size_t size = number(stream);

		if (trial % 2) {
			damage(&state, stream + PNG_CHUNK_HEAD, size, 1 + trial % 3);
			png_chunk_seal(stream, (uint32_t)size);
		} else {
			damage(&state, bytes + PNG_SIGNATURE, file.size - PNG_SIGNATURE,
			       1 + trial % 3);
		}
		snprintf(name, sizeof name, "a PNG with damage %d", trial);
		expect_alike(&file, FORMAT_PNG, FORMAT_RAW, false, name);
		file_fini(&file);
	}
}

/* The stream in pieces, with an empty one. */
static void test_pieces(const struct file *whole)
{
	static const size_t ends[] = {0, 1, 1, 100, SIZE_MAX};
	size_t at = find(whole, "IDAT"), size = number((const uint8_t *)whole->bytes + at);
	const uint8_t *stream = (const uint8_t *)whole->bytes + at + PNG_CHUNK_HEAD;
	struct file file = {g_memdup2(whole->bytes, at), at}, next;

	for (size_t i = 0; i + 1 < G_N_ELEMENTS(ends); i++) {
		size_t end = ends[i + 1] < size ? ends[i + 1] : size;

		next = with_chunk(&file, file.size, "IDAT", stream + ends[i], end - ends[i]);
		file_fini(&file);
		file = next;
	}
	next = with_chunk(&file, file.size, "IEND", "", 0);
	expect_lane(&next, true, "pieces");
	expect_alike(&next, FORMAT_PNG, FORMAT_RAW, false, "pieces");
	file_fini(&file);
	file_fini(&next);
}

/* Chunks --------------------------------------------------------------------------------------- */

static void expect_chunk_alike(const struct file *file, const char *chunk, const void *data,
                               size_t size, bool ours, const char *name)
{
	struct file with = with_chunk(file, AFTER_HEADER, chunk, data, size);

	expect_lane(&with, ours, name);
	expect_all_alike(&with, name);
	file_fini(&with);
}

/* The text after this beginning, deflated. */
static void expect_deflated_alike(const struct file *file, const char *chunk, const void *head,
                                  size_t head_size, const void *text, size_t text_size,
                                  const char *name)
{
	uLongf size = compressBound((uLong)text_size);
	uint8_t *data = g_malloc(head_size + size);

	memcpy(data, head, head_size);
	compress(data + head_size, &size, text, (uLong)text_size);
	expect_chunk_alike(file, chunk, data, head_size + size, true, name);
	g_free(data);
}

#define CHUNK(chunk, data) chunk, data, sizeof data - 1

static void test_chunks(const struct file *file)
{
	static const struct {
		const char *chunk, *data;
		size_t size;
		bool ours;
		const char *name;
	} chunks[] = {
	    {CHUNK("gAMA", "\0\0\xb1\x8f"), true, "gamma"},
	    {CHUNK("sRGB", "\0"), true, "sRGB"},
	    {CHUNK("cHRM",
	           "\0\0\x7a\x26\0\0\x80\x84\0\0\xfa\0\0\0\x80\xe8\0\0\x75\x30\0\0\xea\x60\0\0\x3a"
	           "\x98\0\0\x17\x70"),
	     true, "primaries"},
	    {CHUNK("sBIT", "\5\6\5"), true, "significant bits"},
	    {CHUNK("bKGD", "\0\1\0\2\0\3"), true, "a background"},
	    {CHUNK("tIME", "\7\xe8\5\6\7\x8\x9"), true, "a time"},
	    {CHUNK("pHYs", "\0\0\x2e\x23\0\0\x17\x12\1"), true, "300 dpi across"},
	    {CHUNK("pHYs", "\0\0\0\2\0\0\0\3\0"), true, "an aspect ratio"},
	    {CHUNK("tEXt", "Title\0a street"), true, "a text"},
	    {CHUNK("tEXt", "Creation Time\0today"), true, "a keyword of two words"},
	    {CHUNK("tEXt", "Empty\0"), true, "an empty text"},
	    {CHUNK("iTXt", "Title\0\0\0en\0Titel\0gr\xc3\xbcn"), true, "UTF-8"},
	    {CHUNK("iTXt", "XML:com.adobe.xmp\0\0\0\0\0<x><a Thumbnails='1' b='2'>text</a></x>"),
	     true, "XMP"},
	    {CHUNK("iTXt", "XML:com.adobe.xmp\0\0\0\0\0<x>not XML"), true, "wrong XMP"},
	    {CHUNK("tEXt", "XML:com.adobe.xmp\0<x>text</x>"), true, "XMP in tEXt"},
	    {CHUNK("tRNS", "\0\1\0\2\0\3"), false, "a transparent colour"},
	    {CHUNK("acTL", "\0\0\0\1\0\0\0\0"), false, "an animation"},
	    {CHUNK("hIST", "\0\1"), true, "a histogram"},
	    {CHUNK("teSt", "anything"), true, "a chunk that nobody knows"},
	    {CHUNK("TeSt", "anything"), false, "one that must be known"},
	};
	struct file bare = {g_memdup2(file->bytes, file->size), file->size};

	drop_chunk(&bare, "pHYs");
	expect_lane(&bare, true, "no resolution");
	if (vips_version(1) < 16) /* later ones do not round it */
		expect_all_alike(&bare, "no resolution");
	for (size_t i = 0; i < G_N_ELEMENTS(chunks); i++) {
		bool resolution = !strcmp(chunks[i].chunk, "pHYs");

		expect_chunk_alike(resolution ? &bare : file, chunks[i].chunk, chunks[i].data,
		                   chunks[i].size, chunks[i].ours, chunks[i].name);
	}
	expect_deflated_alike(file, "zTXt", "Title\0", 7, "a street", 8, "zTXt");
	expect_deflated_alike(file, "iTXt", "XML:com.adobe.xmp\0\1\0\0", 22, "<x>text</x>", 11,
	                      "deflated XMP");
	file_fini(&bare);
}

/* Two of a kind, and chunks that contradict each other. */
static void test_pairs(const struct file *file)
{
	struct file with = with_chunk(file, AFTER_HEADER, "tEXt", "One\0first", 9);

	expect_chunk_alike(&with, "tEXt", "Two\0second", 10, true, "two texts");
	expect_chunk_alike(&with, "IHDR", (const uint8_t *)file->bytes + 16, 13, false,
	                   "two headers");
	file_fini(&with);
}

static void test_exif(const struct file *file)
{
	for (int big_endian = 0; big_endian < 2; big_endian++) {
		GByteArray *b = camera_block(big_endian);
		const uint8_t *data = b->data + 6;

		expect_chunk_alike(file, "eXIf", data, b->len - 6, true, "EXIF of a camera");
		for (guint size = 20; size < b->len - 6; size += 211)
			expect_chunk_alike(file, "eXIf", data, size, true, "EXIF cut off");
		g_byte_array_unref(b);
	}
}

static void test_profiles(const struct file *file, const struct file *grey)
{
	struct file profile = file_of_profile("srgb");
	uint8_t *data = profile.bytes;
	const size_t size = profile.size;

	expect_deflated_alike(file, "iCCP", "icc\0", 5, data, size, "sRGB");
	expect_deflated_alike(grey, "iCCP", "icc\0", 5, data, size, "sRGB of grey");
	expect_deflated_alike(file, "iCCP", "icc\0", 5, data, size - 4, "cut sRGB");
	memcpy(data + 16, "GRAY", 4);
	expect_deflated_alike(grey, "iCCP", "icc\0", 5, data, size, "a grey profile");
	expect_deflated_alike(file, "iCCP", "icc\0", 5, data, size, "grey of colours");
	file_fini(&profile);
}

/* XMP leaves a TIFF with strip. */
static void test_strip(const struct file *file, bool strip)
{
	const struct request request = {.body = *file, .format = FORMAT_TIFF, .strip = strip};
	struct reply reply;
	VipsImage *image;

	if (!run_well(&request, &reply, "to TIFF"))
		return;
	image = vips_image_new_from_buffer(reply.answer, reply.done.answer_size, "", NULL);
	expect(image && !vips_image_get_typeof(image, VIPS_META_XMP_NAME) == strip,
	       "XMP in TIFF with strip=%d", strip);
	g_clear_object(&image);
	reply_fini(&reply);
}

/* Other formats become PNGs, and WebP becomes JPEG. */
static void test_others(void)
{
	static const char *const suffixes[] = {".jpg", ".webp"};
	static const enum format formats[] = {FORMAT_JPEG, FORMAT_WEBP};
	struct file profile = file_of_profile("srgb");
	GByteArray *b = camera_block(false);

	for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
		struct picture p;
		VipsImage *image;
		struct file file;

		picture_make(&p, 45, 36, 3, PIXEL_U8, false);
		image = picture_to_vips(&p);
		vips_image_set_blob_copy(image, VIPS_META_ICC_NAME, profile.bytes, profile.size);
		vips_image_set_blob_copy(image, VIPS_META_EXIF_NAME, b->data, b->len);
		vips_image_set_blob_copy(image, VIPS_META_XMP_NAME, "<x>text</x>", 11);
		file = file_save(image, suffixes[i]);
		expect_alike(&file, formats[i], FORMAT_PNG, false, suffixes[i]);
		expect_alike(&file, formats[i], FORMAT_JPEG, false, suffixes[i]);
		test_strip(&file, false);
		test_strip(&file, true);
		/* libvips strips the resolution, too, if it is in a WebP's EXIF. */
		if (formats[i] == FORMAT_JPEG)
			expect_alike(&file, formats[i], FORMAT_PNG, true, suffixes[i]);
		file_fini(&file);
		g_object_unref(image);
		picture_fini(&p);
	}
	g_byte_array_unref(b);
	file_fini(&profile);
}

void test_pngs(void)
{
	struct file file = file_made(33, 50, 3, PIXEL_U8, ".png[filter=all]"),
	            grey = file_made(33, 50, 1, PIXEL_U8, ".png");

	test_kinds();
	test_damaged(&file);
	test_pieces(&file);
	test_chunks(&file);
	test_pairs(&file);
	test_exif(&file);
	test_profiles(&file, &grey);
	test_others();
	file_fini(&file);
	file_fini(&grey);
}
