/* Reads and writes what PNGs have beside the pixels, for every way in which those are decoded:
 * libvips does not read what follows them, nor the profiles that are texts in hexadecimal, nor what
 * describes the colours. Chunks that readers take alike are kept as they are. */
#include "codec/png_metadata.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

#include "codec/bounds.h"
#include "codec/icc_profile.h"
#include "codec/previews.h"

enum { INFLATED_MAX = 16 << 20, KEYWORD_MAX = 79 }; /* what bounds_check() lets pass */

static const char xmp_keyword[] = "XML:com.adobe.xmp";
static const char xmp_title[] = "http://ns.adobe.com/xap/1.0/"; /* in segments of JPEG */
static const char raw_title[] = "Raw profile type ";
static const char exif_title[] = "Exif\0";
static const char resources_title[] = "Photoshop 3.0";

const uint8_t png_signature[PNG_SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool png_chunk_is_sound(const struct png_chunk *c)
{
	return !c->cut && bytes_number(c->data + c->size, 4, true) ==
	                      libdeflate_crc32(0, c->name, 4 + (size_t)c->size);
}

void png_put_number(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (24 - 8 * i));
}

void png_chunk_seal(uint8_t *chunk, uint32_t size)
{
	png_put_number(chunk, size);
	png_put_number(chunk + PNG_CHUNK_HEAD + size, libdeflate_crc32(0, chunk + 4, 4 + size));
}

/* Reading --------------------------------------------------------------------------------------
 */

/* Keeps a chunk as it is. */
static bool keep(GByteArray **chunks, const struct png_chunk *c)
{
	*chunks = *chunks ? *chunks : g_byte_array_new();
	g_byte_array_append(*chunks, c->name - 4, PNG_CHUNK_FRAME + c->size);
	return true;
}

static bool read_colours(struct png_reading *r, const struct png_chunk *c)
{
	return keep(&r->metadata->colours, c);
}

/* Pixels a metre, or without a unit. */
static bool read_resolution(struct png_reading *r, const struct png_chunk *c)
{
	const double unit = c->data[8] ? 1000 : 1;

	if (c->data[8] > 1 || (c->data[0] | c->data[4]) & 0x80)
		return false;
	r->metadata->resolution.x = (double)bytes_number(c->data, 4, true) / unit;
	r->metadata->resolution.y = (double)bytes_number(c->data + 4, 4, true) / unit;
	return true;
}

/* Inflates all of a stream. malloc'd; NULL: it is damaged or large, or memory is short. */
static uint8_t *inflate_all(const uint8_t *at, size_t size, size_t *inflated)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	uint8_t *whole = malloc(INFLATED_MAX), *fitting = NULL;
	size_t used;

	if (d && whole &&
	    libdeflate_zlib_decompress_ex(d, at, size, whole, INFLATED_MAX, &used, inflated) ==
	        LIBDEFLATE_SUCCESS)
		fitting = realloc(whole, *inflated + 1);
	if (!fitting)
		free(whole);
	libdeflate_free_decompressor(d);
	return fitting;
}

/* Letters of Latin-1, single spaces between them, at most 79; *size is without the zero. */
static bool has_keyword(const struct png_chunk *c, size_t *size)
{
	const uint8_t *at = c->data, *zero = memchr(at, 0, c->size);
	uint8_t before = ' ';

	*size = zero ? (size_t)(zero - at) : 0;
	if (!*size || *size > KEYWORD_MAX)
		return false;
	for (size_t i = 0; i < *size; before = at[i++])
		if (at[i] < ' ' || (at[i] > 126 && at[i] < 161) || (at[i] == ' ' && before == ' '))
			return false;
	return before != ' ';
}

/* Drops a profile that readers would not take. */
static bool profile_fits(struct png_reading *r)
{
	struct file_part *profile = &r->metadata->profile[0];

	if (icc_profile_is_sound(profile->at, profile->size, r->colour))
		return true;
	profile->at = NULL;
	return false;
}

static bool read_profile(struct png_reading *r, const struct png_chunk *c)
{
	struct file_metadata *m = r->metadata;
	const uint8_t *method = png_text_end(c->data, c->data + c->size);
	size_t left = method ? (size_t)(c->data + c->size - method) : 0, size;
	uint8_t *profile = left > 1 && !*method && !m->profile[0].at
	                       ? inflate_all(method + 1, left - 1, &size)
	                       : NULL;

	return profile && file_metadata_own(m, &m->profile[0], profile, size) && profile_fits(r);
}

static bool is_exif(const uint8_t *at, size_t size)
{
	return size >= 8 && (!memcmp(at, "II*\0", 4) || !memcmp(at, "MM\0*", 4));
}

static bool read_exif(struct png_reading *r, const struct png_chunk *c)
{
	if (!is_exif(c->data, c->size))
		return false;
	r->exif = (struct file_part){c->data, c->size};
	return true;
}

/* A text, inflated if it was deflated. */
struct text {
	const uint8_t *at; /* NULL: damaged */
	size_t size;
	uint8_t *inflated; /* the caller's */
};

/* After the keyword, iTXt has a flag and a method, a language and the keyword in it; zTXt has a
 * method. */
static struct text find_text(const struct png_chunk *c, size_t keyword)
{
	const uint8_t *at = c->data + keyword + 1, *end = c->data + c->size;
	bool deflated = png_chunk_is(c, "zTXt");
	struct text t = {.at = at};

	if (png_chunk_is(c, "iTXt")) {
		if (end - at < 2 || at[0] > 1 || at[1])
			return (struct text){.at = NULL};
		deflated = at[0];
		t.at = png_text_end(png_text_end(at + 2, end), end);
	} else if (deflated) {
		t.at = at < end && !*at ? at + 1 : NULL;
	}
	if (!t.at)
		return t;
	t.size = (size_t)(end - t.at);
	if (deflated)
		t.at = t.inflated = inflate_all(t.at, t.size, &t.size);
	return t;
}

static const uint8_t *skip_line(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *line = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;

	return line ? line + 1 : end;
}

/* An empty line, one with a name, one with how many bytes follow in hexadecimal. malloc'd, with
 * room for a title before; NULL: it is not of this form, or memory is short. */
static uint8_t *read_hexadecimal(const struct text *t, size_t room, size_t *size)
{
	const uint8_t *end = t->at + t->size, *at = skip_line(skip_line(t->at, end), end);
	uint8_t *bytes;
	int high = -1;

	*size = 0;
	for (; at < end && *at == ' '; at++)
		;
	for (; at < end && *at >= '0' && *at <= '9' && *size < t->size; at++)
		*size = *size * 10 + (size_t)(*at - '0');
	bytes = *size && *size <= t->size / 2 ? malloc(room + *size) : NULL;
	for (size_t i = 0; bytes && i < *size; at++) {
		int digit = at < end ? g_ascii_xdigit_value((char)*at) : -1;

		if (at < end && (*at == '\n' || *at == '\r' || *at == ' '))
			continue;
		if (digit < 0) {
			free(bytes);
			return NULL;
		}
		if (high >= 0)
			bytes[room + i++] = (uint8_t)(high << 4 | digit);
		high = high < 0 ? digit : -1;
	}
	return bytes;
}

static bool begins(const uint8_t *at, size_t size, const char *title, size_t title_size)
{
	return size >= title_size && !memcmp(at, title, title_size);
}

/* From before PNG had chunks for them, profiles are texts in hexadecimal, which some programs still
 * write. Chunks count more. */
static bool read_raw(struct png_reading *r, const char *type, size_t length, const struct text *t)
{
	struct file_metadata *m = r->metadata;
	struct file_part *part = NULL;
	size_t size, skip = 0, room = sizeof resources_title;
	uint8_t *bytes = read_hexadecimal(t, room, &size), *at;

	if (!bytes)
		return false;
	at = bytes + room;
	if (begins(at, size, exif_title, 6) && is_exif(at + 6, size - 6)) {
		part = &r->exif;
		skip = room + 6;
	} else if (is_exif(at, size)) {
		part = &r->exif;
		skip = room;
	} else if (begins(at, size, xmp_title, sizeof xmp_title)) {
		part = &m->xmp;
		skip = room + sizeof xmp_title;
	} else if (length == 3 && !memcmp(type, "xmp", 3)) {
		part = &m->xmp;
		skip = room;
	} else if (length == 3 && (!memcmp(type, "icc", 3) || !memcmp(type, "icm", 3))) {
		part = &m->profile[0];
		skip = room;
	} else if (begins(at, size, "8BIM", 4)) {
		part = &m->resources; /* as JPEG has them */
		memcpy(bytes, resources_title, room);
	}
	if (!part || part->at) {
		free(bytes);
		return part;
	}
	memmove(bytes, bytes + skip, room + size - skip);
	return file_metadata_own(m, part, bytes, room + size - skip) &&
	       (part != m->profile || profile_fits(r));
}

static bool read_text(struct png_reading *r, const struct png_chunk *c)
{
	const char *keyword = (const char *)c->data;
	const size_t raw = sizeof raw_title - 1;
	struct file_part *xmp = &r->metadata->xmp;
	uint8_t *bytes;
	size_t length;
	struct text t;
	bool done;

	if (!has_keyword(c, &length))
		return false;
	t = find_text(c, length);
	if (!t.at) {
		done = false;
	} else if (length > raw && !memcmp(keyword, raw_title, raw)) {
		done = read_raw(r, keyword + raw, length - raw, &t);
	} else if (length == sizeof xmp_keyword - 1 && !memcmp(keyword, xmp_keyword, length)) {
		/* The text's bytes, or a copy of those of the file. */
		bytes = t.inflated ? t.inflated : malloc(t.size + 1);
		if (bytes && !t.inflated)
			memcpy(bytes, t.at, t.size);
		t.inflated = NULL;
		done = !xmp->at && file_metadata_own(r->metadata, xmp, bytes, t.size);
	} else {
		done = keep(&r->metadata->texts, c);
	}
	free(t.inflated);
	return done;
}

/* Those that may be there once; then texts. `size`: of the data, where it is always the same. */
static const struct {
	char name[5];
	uint8_t size;
	bool (*read)(struct png_reading *r, const struct png_chunk *c);
} kinds[] = {
    {"gAMA", 4, read_colours}, {"cHRM", 32, read_colours},   {"sRGB", 1, read_colours},
    {"cICP", 4, read_colours}, {"mDCV", 24, read_colours},   {"cLLI", 8, read_colours},
    {"iCCP", 0, read_profile}, {"pHYs", 9, read_resolution}, {"eXIf", 0, read_exif},
    {"tEXt", 0, read_text},    {"zTXt", 0, read_text},       {"iTXt", 0, read_text},
};
enum { EXIF = 8, TEXTS };

void png_metadata_read(struct png_reading *r, const struct png_chunk *c)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const bool again = r->seen >> i & 1;

		if (!png_chunk_is(c, kinds[i].name))
			continue;
		if (!png_chunk_is_sound(c) || (again && i < TEXTS) || (r->pixels && i < EXIF) ||
		    (kinds[i].size && c->size != kinds[i].size) || !kinds[i].read(r, c))
			r->lost = true;
		else
			r->seen |= 1u << i;
		return;
	}
}

/* EXIF's resolution counts more than that of pHYs, wherever that is. */
bool png_metadata_end(struct png_reading *r)
{
	struct file_metadata *m = r->metadata;
	struct problem dropped;

	if (!r->exif.at)
		return true;
	if (bounds_check_exif(r->exif.at, r->exif.size, &dropped)) {
		r->exif.at = NULL;
		r->lost = true;
		return true;
	}
	m->exif = exif_block_read(r->exif.at, r->exif.size, &m->resolution);
	return m->exif;
}

/* Writing --------------------------------------------------------------------------------------
 */

/* Appends a chunk with `size` bytes of data, not set yet, and returns their place. */
static uint8_t *add_chunk(GByteArray *to, const char *name, size_t size)
{
	guint start = to->len;

	g_byte_array_set_size(to, start + PNG_CHUNK_FRAME + (guint)size);
	memcpy(to->data + start + 4, name, 4);
	return to->data + start + PNG_CHUNK_HEAD;
}

/* Once they are set. */
static void seal(uint8_t *data, size_t size)
{
	png_chunk_seal(data - PNG_CHUNK_HEAD, (uint32_t)size);
}

/* Leaves out one that is not for the pixels, which readers would not take. */
static bool write_profile(const struct file_metadata *m, const struct image *image, GByteArray *to)
{
	static const uint8_t title[] = {'i', 'c', 'c', 0, 0};
	size_t size = file_metadata_profile_size(m), most, deflated = 0;
	guint start = to->len;
	struct libdeflate_compressor *c;
	uint8_t *profile, *data;

	if (!size)
		return true;
	profile = file_metadata_profile(m, &size);
	if (profile && !icc_profile_is_sound(profile, size, image->bands > 2)) {
		free(profile);
		return true;
	}
	c = libdeflate_alloc_compressor(6);
	if (profile && c) {
		most = libdeflate_zlib_compress_bound(c, size);
		data = add_chunk(to, "iCCP", sizeof title + most);
		memcpy(data, title, sizeof title);
		deflated = libdeflate_zlib_compress(c, profile, size, data + sizeof title, most);
		seal(data, sizeof title + deflated);
		g_byte_array_set_size(to,
		                      start + PNG_CHUNK_FRAME + (guint)(sizeof title + deflated));
	}
	libdeflate_free_compressor(c);
	free(profile);
	return deflated != 0;
}

/* Without its title. */
static bool write_exif(const struct file_metadata *m, const struct image *image, GByteArray *to)
{
	const struct exif_facts facts = {image->width, image->height, m->resolution};
	enum { TITLE = 6 };
	uint8_t *block, *data;
	size_t size;

	if (!m->exif)
		return true;
	block = exif_block_write(m->exif, &facts, &size);
	if (block && size > TITLE) {
		data = add_chunk(to, "eXIf", size - TITLE);
		memcpy(data, block + TITLE, size - TITLE);
		seal(data, size - TITLE);
	}
	free(block);
	return block != NULL;
}

/* Neither deflated nor translated. */
static void write_xmp(const struct file_part *xmp, GByteArray *to)
{
	enum { HEAD = sizeof xmp_keyword + 4 };
	GByteArray *kept = xmp->at ? previews_drop_from_xmp(xmp->at, xmp->size) : NULL;
	uint8_t *data;

	if (!kept)
		return;
	data = add_chunk(to, "iTXt", HEAD + kept->len);
	memset(data, 0, HEAD);
	memcpy(data, xmp_keyword, sizeof xmp_keyword);
	memcpy(data + HEAD, kept->data, kept->len);
	seal(data, HEAD + kept->len);
	g_byte_array_unref(kept);
}

static void append(GByteArray *to, const GByteArray *chunks)
{
	if (chunks)
		g_byte_array_append(to, chunks->data, chunks->len);
}

/* As a text in hexadecimal: PNG has no chunk for them. */
static void write_resources(const struct file_part *resources, GByteArray *to)
{
	enum { LINE = 36, HEAD = 64 };
	static const char digits[] = "0123456789abcdef";
	GByteArray *kept =
	    resources->at ? previews_drop_from_resources(resources->at, resources->size) : NULL;
	size_t skip = kept && begins(kept->data, kept->len, resources_title, sizeof resources_title)
	                  ? sizeof resources_title
	                  : 0,
	       size = kept ? kept->len - skip : 0, at;
	uint8_t *data;

	if (size) {
		at = size * 2 + (size + LINE - 1) / LINE;
		char head[HEAD];
		int used =
		    snprintf(head, sizeof head, "%siptc%c\niptc\n%8zu\n", raw_title, 0, size);

		data = add_chunk(to, "tEXt", (size_t)used + at);
		memcpy(data, head, (size_t)used);
		at = (size_t)used;
		for (size_t i = 0; i < size; i++) {
			data[at++] = (uint8_t)digits[kept->data[skip + i] >> 4];
			data[at++] = (uint8_t)digits[kept->data[skip + i] & 15];
			if (i % LINE == LINE - 1 || i + 1 == size)
				data[at++] = '\n';
		}
		seal(data, at);
	}
	if (kept)
		g_byte_array_unref(kept);
}

bool png_metadata_write(const struct file_metadata *m, bool strip, const struct image *image,
                        GByteArray *to)
{
	static const struct file_metadata none = {.resolution = {1, 1, PER_INCH}};
	uint8_t *data;

	m = m ? m : &none;
	append(to, m->colours);
	if (!write_profile(m, image, to))
		return false;
	data = add_chunk(to, "pHYs", 9);
	png_put_number(data, (uint32_t)fmin(rint(m->resolution.x * 1000), INT32_MAX));
	png_put_number(data + 4, (uint32_t)fmin(rint(m->resolution.y * 1000), INT32_MAX));
	data[8] = 1;
	seal(data, 9);
	if (strip)
		return true;
	write_xmp(&m->xmp, to);
	write_resources(&m->resources, to);
	append(to, m->texts);
	return write_exif(m, image, to);
}
