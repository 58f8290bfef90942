/* Reads and writes the metadata of PNGs, for every way of decoding their pixels: libvips does not
 * read metadata behind the pixels, nor profiles that are hexadecimal texts, nor descriptions of
 * colours. Chunks that all readers treat alike are kept as they are. */
#include "codec/formats/png_metadata.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

#include "codec/formats/bounds.h"
#include "codec/metadata/icc_profile.h"

enum { INFLATED_MAX = 16 << 20, KEYWORD_MAX = 79 }; /* bounds_check() lets these pass */

/* The keyword and zeros: neither deflated nor translated. */
static const char xmp_head[22] = "XML:com.adobe.xmp";
static const char xmp_title[] = "http://ns.adobe.com/xap/1.0/"; /* in segments of JPEG */
static const char raw_title[] = "Raw profile type ";
static const char exif_title[6] = "Exif";
static const char resources_title[] = "Photoshop 3.0";

bool png_chunk_is_sound(const struct png_chunk *c)
{
	return !c->cut && bytes_number(c->data + c->size, 4, true) ==
	                      libdeflate_crc32(0, c->name, 4 + (size_t)c->size);
}

void png_chunk_seal(uint8_t *chunk, uint32_t size)
{
	bytes_put(chunk, size, 4, true);
	bytes_put(chunk + PNG_CHUNK_HEAD + size, libdeflate_crc32(0, chunk + 4, 4 + size), 4, true);
}

/* Reading -------------------------------------------------------------------------------------- */

static bool keep(GByteArray **chunks, const struct png_chunk *c)
{
	*chunks = *chunks ? *chunks : g_byte_array_new();
	g_byte_array_append(*chunks, c->name - 4, PNG_CHUNK_FRAME + c->size);
	return true;
}

static bool read_colours(struct png_reading *r, const struct png_chunk *c)
{
	return keep(&r->colours, c);
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

/* Inflates a complete stream. Returns a malloc'd block that ends with a zero; NULL if the stream is
 * damaged or large, or memory is short. */
static uint8_t *inflate_all(const uint8_t *at, size_t size, size_t *inflated)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	uint8_t *whole = malloc(INFLATED_MAX), *fitting = NULL;
	size_t used;

	if (d && whole &&
	    libdeflate_zlib_decompress_ex(d, at, size, whole, INFLATED_MAX, &used, inflated) ==
	        LIBDEFLATE_SUCCESS)
		fitting = realloc(whole, *inflated + 1);
	if (fitting)
		fitting[*inflated] = 0;
	else
		free(whole);
	libdeflate_free_decompressor(d);
	return fitting;
}

/* Keeps malloc'd bytes as a part of the metadata. Returns false, and frees them, if there is such a
 * part already, or if they are a profile that readers would not accept. */
static bool own(struct png_reading *r, struct file_part *part, uint8_t *bytes, size_t size)
{
	if (!bytes || part->at ||
	    (part == &r->metadata->profile && !icc_profile_is_sound(bytes, size, r->colour))) {
		free(bytes);
		return false;
	}
	file_metadata_own(r->metadata, part, bytes, size);
	return true;
}

static bool read_profile(struct png_reading *r, const struct png_chunk *c)
{
	const uint8_t *end = c->data + c->size, *method = bytes_text_end(c->data, end);
	uint8_t *profile;
	size_t size;

	if (!method || end - method < 2 || *method)
		return false;
	profile = inflate_all(method + 1, (size_t)(end - method - 1), &size);
	return own(r, &r->metadata->profile, profile, size);
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

/* Returns a text, inflated if it was deflated. After the keyword, iTXt has a flag and a method, a
 * language and the translated keyword; zTXt has a method. The block is malloc'd and ends with a
 * zero; NULL if it is damaged or memory is short. */
static uint8_t *find_text(const struct png_chunk *c, size_t *size)
{
	const uint8_t *end = c->data + c->size, *at = bytes_text_end(c->data, end);
	bool deflated = png_chunk_is(c, "zTXt");
	uint8_t *text;

	if (png_chunk_is(c, "iTXt")) {
		if (end - at < 2 || at[0] > 1 || at[1])
			return NULL;
		deflated = at[0];
		at = bytes_text_end(bytes_text_end(at + 2, end), end);
	} else if (deflated) {
		at = at < end && !*at ? at + 1 : NULL;
	}
	if (!at)
		return NULL;
	*size = (size_t)(end - at);
	if (deflated)
		return inflate_all(at, *size, size);
	text = malloc(*size + 1);
	if (text) {
		memcpy(text, at, *size);
		text[*size] = 0;
	}
	return text;
}

/* Returns the data of a hexadecimal text: an empty line, a line with a name, one with the number of
 * bytes, then the bytes. The block is malloc'd, with room for a title in front; NULL if it has
 * another form or memory is short. */
static uint8_t *read_hexadecimal(const char *text, size_t room, size_t *size)
{
	const char *name = strchr(text, '\n'), *count = name ? strchr(name + 1, '\n') : NULL;
	uint8_t *bytes = NULL;
	char *at = NULL;

	*size = count ? strtoul(count, &at, 10) : 0;
	if (*size && *size <= strlen(at) / 2)
		bytes = calloc(1, room + *size);
	for (size_t i = 0; bytes && i < 2 * *size; at++) {
		uint8_t *to = bytes + room + i / 2;

		if (*at == '\n' || *at == '\r' || *at == ' ')
			continue;
		if (!g_ascii_isxdigit(*at)) {
			free(bytes);
			return NULL;
		}
		*to = (uint8_t)(*to << 4 | g_ascii_xdigit_value(*at));
		i++;
	}
	return bytes;
}

static bool begins(const uint8_t *at, size_t size, const char *title, size_t title_size)
{
	return size >= title_size && !memcmp(at, title, title_size);
}

/* Programs older than PNG's chunks for profiles, and some newer ones, write profiles as hexadecimal
 * texts. Chunks have precedence. */
static bool read_raw(struct png_reading *r, const char *type, const char *text)
{
	struct file_metadata *m = r->metadata;
	struct file_part *part = NULL;
	size_t size, skip, room = sizeof resources_title;
	uint8_t *bytes = read_hexadecimal(text, room, &size), *at;

	if (!bytes)
		return false;
	at = bytes + room;
	skip = begins(at, size, exif_title, sizeof exif_title) ? sizeof exif_title : 0;
	if (is_exif(at + skip, size - skip)) {
		part = &r->exif;
		at += skip;
	} else if (begins(at, size, xmp_title, sizeof xmp_title)) {
		part = &m->xmp;
		at += sizeof xmp_title;
	} else if (!strcmp(type, "xmp")) {
		part = &m->xmp;
	} else if (!strcmp(type, "icc") || !strcmp(type, "icm")) {
		part = &m->profile;
	} else if (begins(at, size, "8BIM", 4)) {
		part = &m->resources; /* as JPEG has them */
		memcpy(bytes, resources_title, room);
		at = bytes;
	}
	if (!part || part->at) {
		free(bytes);
		return part;
	}
	size -= (size_t)(at - bytes - (ptrdiff_t)room);
	memmove(bytes, at, size);
	return own(r, part, bytes, size);
}

static bool read_text(struct png_reading *r, const struct png_chunk *c)
{
	const char *keyword = (const char *)c->data;
	const uint8_t *at = c->data, *end = memchr(at, 0, c->size);
	uint8_t before = ' ', *text;
	size_t size = 0;
	bool done;

	/* A keyword is letters of Latin-1 with single spaces between, at most 79, then a zero. */
	if (!end || end - at > KEYWORD_MAX)
		return false;
	for (; at < end; before = *at++)
		if (*at < ' ' || (*at > 126 && *at < 161) || (*at == ' ' && before == ' '))
			return false;
	text = before == ' ' ? NULL : find_text(c, &size);
	if (!text)
		return false;
	if (!strcmp(keyword, xmp_head))
		return own(r, &r->metadata->xmp, text, size);
	if (g_str_has_prefix(keyword, raw_title))
		done = read_raw(r, keyword + strlen(raw_title), (const char *)text);
	else
		done = keep(&r->texts, c);
	free(text);
	return done;
}

/* Chunks that may occur once, then texts. `size`: of the data, where it is fixed. */
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

bool png_metadata_end(struct png_reading *r)
{
	struct file_metadata *m = r->metadata;

	file_metadata_own_array(m, &m->colours, r->colours);
	file_metadata_own_array(m, &m->texts, r->texts);
	if (!r->exif.at)
		return true;
	if (bounds_check_exif(r->exif.at, r->exif.size, NULL)) {
		r->lost = true;
		return true;
	}
	/* Its resolution has precedence over that of pHYs, wherever that is. */
	m->exif = exif_block_read(r->exif.at, r->exif.size, &m->resolution);
	return m->exif;
}

/* Writing -------------------------------------------------------------------------------------- */

static void add_chunk(GByteArray *to, const char *name, const void *head, size_t head_size,
                      const void *data, size_t size)
{
	const guint start = to->len;

	g_byte_array_set_size(to, start + PNG_CHUNK_HEAD);
	memcpy(to->data + start + 4, name, 4);
	g_byte_array_append(to, head, (guint)head_size);
	g_byte_array_append(to, data, (guint)size);
	g_byte_array_set_size(to, to->len + PNG_CHUNK_FRAME - PNG_CHUNK_HEAD);
	png_chunk_seal(to->data + start, (uint32_t)(head_size + size));
}

static bool add_profile(GByteArray *to, const struct file_part *profile)
{
	static const uint8_t title[] = {'i', 'c', 'c', 0, 0};
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
	const size_t most = libdeflate_zlib_compress_bound(c, profile->size);
	uint8_t *deflated = malloc(most);
	size_t size = 0;

	if (c && deflated)
		size = libdeflate_zlib_compress(c, profile->at, profile->size, deflated, most);
	if (size)
		add_chunk(to, "iCCP", title, sizeof title, deflated, size);
	libdeflate_free_compressor(c);
	free(deflated);
	return size;
}

/* Written as a hexadecimal text, because PNG has no chunk for them. */
static void add_resources(GByteArray *to, const struct file_part *resources)
{
	enum { LINE = 36 };
	static const char digits[] = "0123456789abcdef";
	const bool titled =
	    begins(resources->at, resources->size, resources_title, sizeof resources_title);
	const size_t skip = titled ? sizeof resources_title : 0, size = resources->size - skip;
	const uint8_t *at = resources->at + skip;
	GString *text = g_string_new(NULL);

	g_string_append_printf(text, "%siptc%c\niptc\n%8zu\n", raw_title, 0, size);
	for (size_t i = 0; i < size; i++) {
		g_string_append_c(text, digits[at[i] >> 4]);
		g_string_append_c(text, digits[at[i] & 15]);
		if (i % LINE == LINE - 1 || i + 1 == size)
			g_string_append_c(text, '\n');
	}
	if (size)
		add_chunk(to, "tEXt", text->str, text->len, NULL, 0);
	g_string_free(text, TRUE);
}

bool png_metadata_write(const struct file_metadata *m, GByteArray *to)
{
	uint8_t resolution[9] = {[8] = 1};

	g_byte_array_append(to, m->colours.at, (guint)m->colours.size);
	if (m->profile.at && !add_profile(to, &m->profile))
		return false;
	bytes_put(resolution, (uint64_t)fmin(rint(m->resolution.x * 1000), INT32_MAX), 4, true);
	bytes_put(resolution + 4, (uint64_t)fmin(rint(m->resolution.y * 1000), INT32_MAX), 4, true);
	add_chunk(to, "pHYs", resolution, sizeof resolution, NULL, 0);
	if (m->xmp.at)
		add_chunk(to, "iTXt", xmp_head, sizeof xmp_head, m->xmp.at, m->xmp.size);
	if (m->resources.at)
		add_resources(to, &m->resources);
	g_byte_array_append(to, m->texts.at, (guint)m->texts.size);
	if (m->block.at)
		add_chunk(to, "eXIf", m->block.at + sizeof exif_title,
		          m->block.size - sizeof exif_title, NULL, 0);
	return true;
}
