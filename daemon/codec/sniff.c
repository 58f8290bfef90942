/* Recognises a body by its first bytes, never by its declared type. Only a body with one of these
 * signatures reaches a decoder. */
#include "codec/sniff.h"

#include <string.h>

#include "codec/containers.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* '?' matches any byte. */
struct signature {
	enum format format;
	size_t offset;
	const char *bytes;
	size_t size;
	const char *words; /* for formats that are not decoded */
};

static const char JPEG_2000[] = "JPEG 2000 (opj_decompress or ImageMagick converts it to PNG)";

static const struct signature signatures[] = {
#define SIGNATURE(format, offset, bytes) {FORMAT_##format, offset, bytes, sizeof bytes - 1, NULL},
#include "image/formats.def"
#define OTHER(offset, bytes, words)                                                                \
	{                                                                                          \
		FORMAT_NONE, offset, bytes, sizeof bytes - 1, words                                \
	}
    OTHER(4, "ftyp", "an MP4 or HEIF file"),
    OTHER(0, "BM", "a BMP image with an unknown header"),
    OTHER(0, "\0\0\0\x0cjP  \r\n\x87\n", JPEG_2000),
    OTHER(0, "\xff\x4f\xff\x51", JPEG_2000),
    OTHER(0, "\0\0\1\0", "an icon (ICO; ImageMagick or icotool converts it to PNG)"),
    OTHER(0, "8BPS", "a Photoshop document"),
    OTHER(0, "%PDF", "a PDF document"),
    OTHER(0, "PK\x03\x04", "a ZIP archive"),
    OTHER(0, "\x1f\x8b", "gzip-compressed data"),
    OTHER(0, "<svg", "an SVG drawing"),
    OTHER(0, "<?xml", "XML"),
    OTHER(0, "<!DOCTYPE", "HTML"),
    OTHER(0, "{", "JSON"),
};

static bool matches(const struct signature *s, const uint8_t *body, size_t size)
{
	if (size < s->offset + s->size)
		return false;
	for (size_t i = 0; i < s->size; i++)
		if (s->bytes[i] != '?' && (uint8_t)s->bytes[i] != body[s->offset + i])
			return false;
	return true;
}

/* True if a HEIF file names one of two brands, of which the first that it has may be a general one:
 * AVIF's (AV1 Image File Format, 6.3), or those of still HEVC pictures (ISO/IEC 23008-12, B.4.1).
 */
static bool has_brand(const uint8_t *body, size_t size, const char *one, const char *other)
{
	uint64_t length = size < 16 ? 0 : bytes_number(body, 4, true);

	if (!length || memcmp(body + 4, "ftyp", 4))
		return false;
	for (size_t at = 8; at + 4 <= length && at + 4 <= size; at += at == 8 ? 8 : 4)
		if (!memcmp(body + at, one, 4) || !memcmp(body + at, other, 4))
			return true;
	return false;
}

/* P1 to P6, PF, Pf and white space or a comment, or P7 and the end of the line: too short for the
 * table. */
static bool is_pnm(const uint8_t *body, size_t size)
{
	if (size < 3 || body[0] != 'P' || !body[1] || !body[2])
		return false;
	return body[1] == '7' ? strchr("\n\r", body[2]) != NULL
	                      : strchr("123456Ff", body[1]) && strchr(" \t\n\v\f\r#", body[2]);
}

enum format sniff_format(const uint8_t *body, size_t size, const char **words)
{
	*words = "text";
	if (has_brand(body, size, "avif", "avis"))
		return FORMAT_AVIF;
	if (has_brand(body, size, "heic", "heix"))
		return FORMAT_HEIC;
	if (is_pnm(body, size))
		return FORMAT_PNM;
	for (const struct signature *s = signatures; s < signatures + COUNT(signatures); s++)
		if (matches(s, body, size)) {
			*words = s->words;
			return s->format;
		}
	for (size_t i = 0; i < size && i < 64; i++)
		if (body[i] < 9 || (body[i] > 13 && body[i] < 32) || body[i] == 127)
			*words = "nothing known";
	return FORMAT_NONE;
}
