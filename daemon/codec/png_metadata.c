/* Only what every reader takes alike is taken here: whether a wrong value makes the chunk, the
 * profile or the file wrong is for libvips to say. */
#include "codec/png_metadata.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

#include "codec/bytes.h"
#include "codec/icc_profile.h"
#include "codec/previews.h"

enum { EXIF_MAX = 1 << 20, INFLATED_MAX = 1 << 20, KEYWORD_MAX = 79 };

static const char xmp_keyword[] = "XML:com.adobe.xmp";

bool png_chunk_next(const uint8_t **at, const uint8_t *end, struct png_chunk *c)
{
	size_t left = (size_t)(end - *at);
	uint64_t size = left >= PNG_CHUNK_FRAME ? bytes_number(*at, 4, true) : UINT64_MAX;

	if (size > INT32_MAX || size > left - PNG_CHUNK_FRAME)
		return false;
	*c = (struct png_chunk){*at + 4, (uint32_t)size};
	*at += PNG_CHUNK_FRAME + size;
	return bytes_number(*at - 4, 4, true) == libdeflate_crc32(0, c->name, 4 + size);
}

bool png_chunk_is(const struct png_chunk *c, const char *name)
{
	return !memcmp(c->name, name, 4);
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

static const uint8_t *data_of(const struct png_chunk *c)
{
	return c->name + 4;
}

static bool colour(const struct image *image)
{
	return image->bands > 2;
}

/* True if the chunk has `count` numbers of `each` bytes, from low to high. */
static bool has_numbers(const struct png_chunk *c, size_t count, size_t each, uint64_t low,
                        uint64_t high)
{
	if (c->size != count * each)
		return false;
	for (size_t i = 0; i < count; i++) {
		uint64_t number = bytes_number(data_of(c) + i * each, each, true);

		if (number < low || number > high)
			return false;
	}
	return true;
}

static uint64_t sample_max(const struct png_reading *r)
{
	return r->image->type == PIXEL_U8 ? 255 : 65535;
}

static bool take_gamma(struct png_reading *r, const struct png_chunk *c)
{
	(void)r;
	return has_numbers(c, 1, 4, 1, INT32_MAX);
}

static bool take_primaries(struct png_reading *r, const struct png_chunk *c)
{
	(void)r;
	return has_numbers(c, 8, 4, 0, INT32_MAX);
}

static bool take_intent(struct png_reading *r, const struct png_chunk *c)
{
	(void)r;
	return has_numbers(c, 1, 1, 0, 3);
}

static bool take_bits(struct png_reading *r, const struct png_chunk *c)
{
	return has_numbers(c, r->image->bands, 1, 1, r->image->type == PIXEL_U8 ? 8 : 16);
}

static bool take_background(struct png_reading *r, const struct png_chunk *c)
{
	return has_numbers(c, colour(r->image) ? 3 : 1, 2, 0, sample_max(r));
}

/* Year (two bytes), month, day, hour, minute, second. */
static bool take_time(struct png_reading *r, const struct png_chunk *c)
{
	static const uint8_t low[] = {0, 0, 1, 1, 0, 0, 0}, high[] = {255, 255, 12, 31, 23, 59, 60};
	bool fits = c->size == sizeof low;

	(void)r;
	for (size_t i = 0; fits && i < sizeof low; i++)
		fits = data_of(c)[i] >= low[i] && data_of(c)[i] <= high[i];
	return fits;
}

/* Pixels a metre, or without a unit. */
static bool take_resolution(struct png_reading *r, const struct png_chunk *c)
{
	const uint8_t *at = data_of(c);
	double unit;

	if (c->size != 9 || at[8] > 1 || (at[0] | at[4]) & 0x80)
		return false;
	unit = at[8] ? 1000 : 1;
	r->metadata->resolution.x = (double)bytes_number(at, 4, true) / unit;
	r->metadata->resolution.y = (double)bytes_number(at + 4, 4, true) / unit;
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
	        LIBDEFLATE_SUCCESS &&
	    used == size)
		fitting = realloc(whole, *inflated + 1);
	if (!fitting)
		free(whole);
	libdeflate_free_decompressor(d);
	return fitting;
}

/* Letters of Latin-1, single spaces between them, at most 79; *size is without the zero. */
static bool has_keyword(const struct png_chunk *c, size_t *size)
{
	const uint8_t *at = data_of(c), *zero = memchr(at, 0, c->size);
	uint8_t before = ' ';

	*size = zero ? (size_t)(zero - at) : 0;
	if (!*size || *size > KEYWORD_MAX)
		return false;
	for (size_t i = 0; i < *size; before = at[i++])
		if (at[i] < ' ' || (at[i] > 126 && at[i] < 161) || (at[i] == ' ' && before == ' '))
			return false;
	return before != ' ';
}

static bool take_profile(struct png_reading *r, const struct png_chunk *c)
{
	struct file_part *profile = &r->metadata->profile[0];
	size_t head;
	uint8_t *at;

	if (!has_keyword(c, &head) || c->size < head + 2 || data_of(c)[head + 1])
		return false;
	head += 2;
	r->metadata->inflated[0] = at =
	    inflate_all(data_of(c) + head, c->size - head, &profile->size);
	profile->at = at;
	return at && icc_profile_is_sound(at, profile->size, colour(r->image));
}

static bool take_exif(struct png_reading *r, const struct png_chunk *c)
{
	const uint8_t *at = data_of(c);

	if (c->size < 8 || c->size > EXIF_MAX ||
	    (memcmp(at, "II*\0", 4) != 0 && memcmp(at, "MM\0*", 4) != 0))
		return false;
	r->exif = (struct file_part){at, c->size};
	return true;
}

/* A text as it is kept: inflated, if it was deflated. */
struct text {
	const uint8_t *at; /* NULL: damaged */
	size_t size;
	uint8_t *inflated; /* the caller's */
};

/* Skips a text that ends by zero; NULL: it has none. */
static const uint8_t *skip_text(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *zero = at ? memchr(at, 0, (size_t)(end - at)) : NULL;

	return zero ? zero + 1 : NULL;
}

/* After the keyword, iTXt has a flag and a method, a language and the keyword in it; zTXt has a
 * method. */
static struct text find_text(const struct png_chunk *c, size_t keyword)
{
	const uint8_t *at = data_of(c) + keyword + 1, *end = data_of(c) + c->size;
	bool international = png_chunk_is(c, "iTXt"), deflated = png_chunk_is(c, "zTXt");
	struct text t = {.at = at};

	if (international) {
		if (end - at < 2 || at[0] > 1 || at[1])
			return (struct text){.at = NULL};
		deflated = at[0];
		t.at = skip_text(skip_text(at + 2, end), end);
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

static bool take_xmp(struct png_reading *r, struct text *t)
{
	if (r->metadata->xmp.at)
		return false;
	r->metadata->xmp = (struct file_part){t->at, t->size};
	r->metadata->inflated[1] = t->inflated;
	t->inflated = NULL;
	return true;
}

/* From before PNG had chunks for them, profiles are texts in hexadecimal. */
static bool is_raw_profile(const struct png_chunk *c, size_t keyword)
{
	static const char title[] = "Raw profile type ";

	return keyword >= sizeof title - 1 && !memcmp(data_of(c), title, sizeof title - 1);
}

static bool keep_text(struct png_reading *r, const struct png_chunk *c)
{
	struct file_part *texts = r->metadata->texts;

	for (size_t i = 0; i < TEXTS_MAX; i++)
		if (!texts[i].at) {
			texts[i] = (struct file_part){c->name - 4, PNG_CHUNK_FRAME + c->size};
			return true;
		}
	return false;
}

static bool take_text(struct png_reading *r, const struct png_chunk *c)
{
	size_t keyword;
	struct text t;
	bool taken;

	if (!has_keyword(c, &keyword) || is_raw_profile(c, keyword))
		return false;
	t = find_text(c, keyword);
	if (!t.at || memchr(t.at, 0, t.size))
		taken = false;
	else if (keyword == sizeof xmp_keyword - 1 && !memcmp(data_of(c), xmp_keyword, keyword))
		taken = take_xmp(r, &t);
	else
		taken = keep_text(r, c);
	free(t.inflated);
	return taken;
}

enum kind { GAMMA, PRIMARIES, INTENT, PROFILE, RESOLUTION, EXIF, BITS, BACKGROUND, TIME, TEXTS };

/* In the order of `kind`; texts are the rest. */
static const struct {
	char name[5];
	bool (*take)(struct png_reading *r, const struct png_chunk *c);
} kinds[] = {
    [GAMMA] = {"gAMA", take_gamma},
    [PRIMARIES] = {"cHRM", take_primaries},
    [INTENT] = {"sRGB", take_intent},
    [PROFILE] = {"iCCP", take_profile},
    [RESOLUTION] = {"pHYs", take_resolution},
    [EXIF] = {"eXIf", take_exif},
    [BITS] = {"sBIT", take_bits},
    [BACKGROUND] = {"bKGD", take_background},
    [TIME] = {"tIME", take_time},
    [TEXTS] = {"tEXt", take_text},
    {"zTXt", take_text},
    {"iTXt", take_text},
};

bool png_metadata_take(struct png_reading *r, const struct png_chunk *c)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		bool again = r->seen >> i & 1;

		if (!png_chunk_is(c, kinds[i].name))
			continue;
		r->seen |= 1u << i;
		return (!again || i >= TEXTS) && kinds[i].take(r, c);
	}
	return false;
}

/* Readers differ in which of two descriptions of colour counts. EXIF's resolution counts more than
 * that of pHYs, wherever that is. */
bool png_metadata_end(struct png_reading *r)
{
	const unsigned others = 1u << GAMMA | 1u << PRIMARIES | 1u << INTENT;
	struct file_metadata *m = r->metadata;

	if (r->seen >> PROFILE & 1 && r->seen & others)
		return false;
	if (!r->exif.at)
		return true;
	m->exif = exif_block_read(r->exif.at, r->exif.size, &m->resolution);
	return m->exif && file_metadata_upright(m);
}

/* Writing --------------------------------------------------------------------------------------
 */

bool png_metadata_fits(const struct file_metadata *m, const struct image *image)
{
	size_t size = m ? file_metadata_profile_size(m) : 0;
	uint8_t *profile;
	bool fits;

	if (!size)
		return true;
	profile = file_metadata_profile(m, &size);
	fits = profile && icc_profile_is_sound(profile, size, colour(image));
	free(profile);
	return fits;
}

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

static void write_resolution(const struct resolution *r, GByteArray *to)
{
	uint8_t *data = add_chunk(to, "pHYs", 9);

	png_put_number(data, (uint32_t)fmin(rint(r->x * 1000), INT32_MAX));
	png_put_number(data + 4, (uint32_t)fmin(rint(r->y * 1000), INT32_MAX));
	data[8] = 1;
	seal(data, 9);
}

static bool write_profile(const struct file_metadata *m, GByteArray *to)
{
	static const uint8_t title[] = {'i', 'c', 'c', 0, 0};
	size_t size = file_metadata_profile_size(m), most, deflated = 0;
	guint start = to->len;
	struct libdeflate_compressor *c;
	uint8_t *profile, *data;

	if (!size)
		return true;
	profile = file_metadata_profile(m, &size);
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

bool png_metadata_write(const struct file_metadata *m, bool strip, const struct image *image,
                        GByteArray *to)
{
	static const struct file_metadata none = {.resolution = {1, 1, PER_INCH}};

	m = m ? m : &none;
	write_resolution(&m->resolution, to);
	if (!write_profile(m, to))
		return false;
	if (strip)
		return true;
	write_xmp(&m->xmp, to);
	for (size_t i = 0; i < TEXTS_MAX && m->texts[i].at; i++)
		g_byte_array_append(to, m->texts[i].at, (guint)m->texts[i].size);
	return write_exif(m, image, to);
}
