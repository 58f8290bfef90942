/* Finds the formats that this worker reads and writes: a format's operations may be missing in
 * libvips, be in a module that is not installed, lack a codec, or be forbidden. Everything that
 * they load is loaded here, because the sandbox lets no file be opened later. */
#include "codec/repertoire.h"

#include <stdio.h>

#include <dlfcn.h>
#include <gmodule.h>
#include <string.h>
#include <vips/vips.h>

#include "base/log.h"
#include "codec/metadata/containers.h"

static const struct reader no_help = {0};

static const struct reader *const readers[FORMATS] = {
#define READER(format, row) [FORMAT_##format] = &(row),
#include "image/formats.def"
};

static const struct writer *const writers[FORMATS] = {
#define WRITER(format, row) [FORMAT_##format] = &(row),
#include "image/formats.def"
};

static struct format_sets found;

/* Modules are in a directory beside libvips. Only requested ones are loaded: others read formats
 * that nobody wants, with large libraries. */
static void load_module(const char *name)
{
	Dl_info library;
	char path[512];
	const char *file;
	GModule *module;

	/* The address of a function as data: POSIX's way to use dladdr(). */
	if (!dladdr(dlsym(RTLD_DEFAULT, "vips_version"), &library))
		return;
	file = strrchr(library.dli_fname, '/');
	snprintf(path, sizeof path, "%.*s/vips-modules-%d.%d/%s.%s",
	         file ? (int)(file - library.dli_fname) : 0, library.dli_fname, vips_version(0),
	         vips_version(1), name, G_MODULE_SUFFIX);
	module = g_module_open(path, G_MODULE_BIND_LAZY);
	if (module)
		g_module_make_resident(module);
	else
		log_debug("no module of libvips: %s", g_module_error());
}

static bool has(const char *operation)
{
	return !operation || vips_type_find("VipsOperation", operation);
}

static void unblock(const char *operation)
{
	if (operation)
		vips_operation_block_set(g_type_name(vips_type_find("VipsOperation", operation)),
		                         FALSE);
}

void repertoire_init(uint32_t allowed)
{
	found = (struct format_sets){0};
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++) {
		const struct format_row *r = &format_rows[f];
		const struct reader *reader = repertoire_reader(f);
		const struct writer *writer = writers[f];

		if (!format_in(allowed, f))
			continue;
		if (r->module && !(has(r->loader) && has(r->saver)))
			load_module(r->module);
		if (!has(r->loader))
			log_debug("libvips has no %s", r->loader);
		else if (reader->works && !reader->works(f))
			log_debug("no library decodes %s", format_naming(f)->title);
		else
			found.read |= 1u << f;
		if (writer && has(r->loader) && has(r->saver) &&
		    (!writer->works || writer->works()))
			found.written |= 1u << f;
	}
	vips_operation_block_set("VipsForeignLoad", TRUE);
	vips_operation_block_set("VipsForeignSave", TRUE);
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++) {
		unblock(format_in(found.read, f) ? format_rows[f].loader : NULL);
		unblock(format_in(found.written, f) ? format_rows[f].saver : NULL);
	}
}

struct format_sets repertoire(void)
{
	return found;
}

const struct reader *repertoire_reader(enum format format)
{
	return readers[format] ? readers[format] : &no_help;
}

const struct writer *repertoire_writer(enum format format)
{
	return writers[format];
}

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

/* Returns true if a HEIF file names one of two brands, possibly after a general one: AVIF's (AV1
 * Image File Format, 6.3), or those of still HEVC pictures (ISO/IEC 23008-12, B.4.1). */
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

enum format repertoire_recognise(const uint8_t *body, size_t size, const char **words)
{
	*words = "text";
	if (has_brand(body, size, "avif", "avis"))
		return FORMAT_AVIF;
	if (has_brand(body, size, "heic", "heix"))
		return FORMAT_HEIC;
	/* P1 to P6, PF, Pf with white space or a comment, or P7 with its line end: too short */
	if (size >= 3 && body[0] == 'P' && body[1] && body[2] &&
	    (body[1] == '7' ? strchr("\n\r", body[2]) != NULL
	                    : strchr("123456Ff", body[1]) && strchr(" \t\n\v\f\r#", body[2])))
		return FORMAT_PNM;
	for (size_t i = 0; i < G_N_ELEMENTS(signatures); i++) {
		const struct signature *s = &signatures[i];
		size_t n = 0;

		if (size < s->offset + s->size)
			continue;
		while (n < s->size &&
		       (s->bytes[n] == '?' || (uint8_t)s->bytes[n] == body[s->offset + n]))
			n++;
		if (n == s->size) {
			*words = s->words;
			return s->format;
		}
	}
	for (size_t i = 0; i < size && i < 64; i++)
		if (body[i] < 9 || (body[i] > 13 && body[i] < 32) || body[i] == 127)
			*words = "nothing known";
	return FORMAT_NONE;
}
