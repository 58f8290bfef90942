/* Finds what this worker reads and writes: a format's operations may be missing in libvips, be in a
 * module that is not installed, lack a codec, or not be allowed. All that they load, they load
 * here, as the sandbox lets no file be opened later. */
#include "codec/repertoire.h"

#include <stdio.h>

#include <dlfcn.h>
#include <gmodule.h>
#include <string.h>
#include <vips/vips.h>

#include "base/log.h"

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

/* Modules are in a directory beside libvips. Only those are loaded that are asked for: others read
 * formats that nobody wants, with large libraries. */
static void load_module(const char *name)
{
	Dl_info library;
	char path[512];
	const char *file;
	GModule *module;

	/* The address of a function as data: POSIX's way to dladdr(). */
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

static void find(enum format format)
{
	const struct format_row *r = format_row(format);
	const struct reader *reader = repertoire_reader(format);
	const struct writer *writer = writers[format];

	if (r->module && !(has(r->loader) && has(r->saver)))
		load_module(r->module);
	if (!has(r->loader))
		log_debug("libvips has no %s", r->loader);
	else if (reader->works && !reader->works(format))
		log_debug("no library decodes %s", format_title(format));
	else
		found.read |= 1u << format;
	if (writer && has(r->loader) && has(r->saver) && (!writer->works || writer->works()))
		found.written |= 1u << format;
}

void repertoire_init(uint32_t allowed)
{
	found = (struct format_sets){0};
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		if (format_in(allowed, f))
			find(f);
	vips_operation_block_set("VipsForeignLoad", TRUE);
	vips_operation_block_set("VipsForeignSave", TRUE);
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++) {
		unblock(format_in(found.read, f) ? format_row(f)->loader : NULL);
		unblock(format_in(found.written, f) ? format_row(f)->saver : NULL);
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
