/* libheif's decoders and encoders may be plugins, in files and packages of their own. libvips has
 * its operations without them, and every image would fail. */
#include "codec/trial.h"

#include <vips/vips.h>

#include "codec/encode.h"
#include "codec/repertoire.h"
#include "common/log.h"

/* 16x16 black pixels. */
static const char avif[] =
    "\x00\x00\x00\x1c"
    "ftypavif\x00\x00\x00\x00"
    "avifmif1miaf\x00\x00\x00\xc1meta"
    "\x00\x00\x00\x00\x00\x00\x00!hdlr\x00\x00\x00\x00\x00\x00\x00\x00pict\x00"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0epitm\x00\x00"
    "\x00\x00\x00\x01\x00\x00\x00\x1eiloc\x00\x00\x00\x00"
    "D\x00\x00\x01\x00\x01"
    "\x00\x00\x00\x01\x00\x00\x00\xe5\x00\x00\x00\x1b\x00\x00\x00#iinf\x00\x00"
    "\x00\x00\x00\x01\x00\x00\x00\x15infe\x02\x00\x00\x00\x00\x01\x00\x00"
    "av01"
    "\x00\x00\x00\x00"
    "Eiprp\x00\x00\x00(ipco\x00\x00\x00\x14ispe\x00\x00\x00\x00"
    "\x00\x00\x00\x10\x00\x00\x00\x10\x00\x00\x00\x0c"
    "av1C\x81\x00\x0c\x00\x00"
    "\x00\x00\x15ipma\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01\x02\x01\x02\x00\x00"
    "\x00#mdat\x12\x00\x0a\x09\x18\x0c\xff\xd8 @@\xd0\x80"
    "2\x0c\x16@\x06\x18"
    "a"
    "\x84\x00\x00x\x9d"
    "aD";

static const struct {
	const char *bytes;
	size_t size;
} files[FORMATS] = {
    [FORMAT_AVIF] = {avif, sizeof avif - 1},
};

/* Reads in this thread alone. */
static bool reads(enum format format)
{
	const VipsRect corner = {0, 0, 1, 1};
	VipsSource *source = vips_source_new_from_memory(files[format].bytes, files[format].size);
	VipsImage *image = NULL;
	VipsRegion *region = NULL;
	bool works = source && !vips_call(format_row(format)->loader, source, &image, NULL);

	if (works)
		region = vips_region_new(image);
	works = region && !vips_region_prepare(region, &corner);
	g_clear_object(&region);
	g_clear_object(&image);
	g_clear_object(&source);
	return works;
}

static uint32_t failed(enum format format, uint32_t set, bool (*works)(enum format),
                       const char *what)
{
	if (!format_in(set, format) || works(format))
		return 0;
	log_debug("%s cannot be %s: %s", format_title(format), what, vips_error_buffer());
	vips_error_clear();
	return 1u << format;
}

void trial_run(void)
{
	const struct format_sets found = repertoire();
	struct format_sets fail = {0};

	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++) {
		if (!format_row(f)->load_plugins)
			continue;
		fail.read |= failed(f, found.read, reads, "read");
		fail.written |= failed(f, found.written, encode_tries, "written");
	}
	repertoire_drop(&fail);
}
