#include "device/cl/source.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"

/* The files that precede those of a directory of kernels/, in this order. */
static const struct {
	const char *directory, *file;
} first[] = {
    {"", "border.h"},
    {"", "common.cl"},
    {"general/", "exact.cl"},
    {"general/clahe", "grid.h"},
    {"general/extreme", "element.h"},
    {"general/extreme", "keys.cl"},
    {"general/pixelate", "blocks.cl"},
    {"general/rank", "element.h"},
    {"general/rank", "keys.cl"},
    {"general/rank", "median.cl"},
    {"cpu/clahe", "grid.h"},
    {"cpu/colormatrix", "wide.cl"},
    {"cpu/matrix", "wide.cl"},
    {"cpu/samples_rows", "wide.cl"},
    {"cpu/separable_sums", "wide.cl"},
    {"cpu/separable_wide", "wide.cl"},
    {"cpu/extreme", "keys.cl"},
    {"cpu/median", "keys.cl"},
    {"cpu/median", "median_shared.cl"},
    {"cpu/pixelate", "keys.cl"},
    {"cpu/pixelate", "blocks.cl"},
    {"gpu/", "local.h"},
    {"gpu/", "gpu/window.cl"},
    {"gpu/", "gpu/warp.cl"},
    {"gpu/separable_local", "gpu/chunk.cl"},
    {"gpu/extreme", "gpu/chunk.cl"},
    {"gpu/extreme", "gpu/cells.cl"},
    {"gpu/median", "gpu/cells.cl"},
    {"gpu/median", "median_shared.cl"},
    {"gpu/rank", "element.h"},
    {"jpeg/", "jpeg/image.h"},
    {"jpeg/", "jpeg/common.cl"},
};

enum { FIRST = sizeof first / sizeof *first };

/* Appends a file; false, logged, if it is missing. */
static bool append(GString *text, const char *kernel_dir, const char *name)
{
	char *path = kernel_dir ? g_strdup_printf("%s/%s", kernel_dir, name) : NULL, *file = NULL;
	const char *more = NULL;

	if (path && g_file_get_contents(path, &file, NULL, NULL))
		more = file;
	for (size_t i = 0; !path && i < kernels_embedded_count; i++)
		if (!strcmp(kernels_embedded[i].name, name))
			more = kernels_embedded[i].text;
	if (more)
		g_string_append(text, more);
	else
		log_error("cannot read the kernel file %s", path ? path : name);
	g_free(file);
	g_free(path);
	return more;
}

char *source_load(const char *kernel_dir, const char *file)
{
	GString *text = g_string_new("");
	bool complete = true;

	for (size_t i = 0; complete && i < FIRST; i++)
		if (g_str_has_prefix(file, first[i].directory))
			complete = append(text, kernel_dir, first[i].file);
	complete = complete && append(text, kernel_dir, file);
	return g_string_free(text, !complete);
}
