/* Kernel sources: a file is found by its name and prefixed with what it includes. */
#include "device/cl/source.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* The files that precede those of a directory of kernels/, in this order. */
static const struct {
	const char *directory, *file;
} first[] = {
    {"", "border.h"},
    {"", "common.cl"},
    {"general/", "exact.cl"},
    {"general/extreme", "element.h"},
    {"general/extreme", "keys.cl"},
    {"general/pixelate", "blocks.cl"},
    {"general/rank", "element.h"},
    {"general/rank", "keys.cl"},
    {"general/rank", "median.cl"},
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

/* Reads a whole file as text; NULL if that fails. */
static char *read_text(const char *directory, const char *name)
{
	char path[4096], *text = NULL;
	FILE *file;
	long size;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	file = fopen(path, "r");
	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0)
		goto out;
	rewind(file);
	text = calloc(1, (size_t)size + 1);
	if (text && fread(text, 1, (size_t)size, file) != (size_t)size) {
		free(text);
		text = NULL;
	}
out:
	if (file)
		fclose(file);
	if (!text)
		log_error("cannot read %s", path);
	return text;
}

static char *embedded_text(const char *name)
{
	for (size_t i = 0; i < kernels_embedded_count; i++)
		if (!strcmp(kernels_embedded[i].name, name))
			return strdup(kernels_embedded[i].text);
	log_error("no kernel file %s", name);
	return NULL;
}

/* Appends a file to *text, reallocating it. On failure frees *text and sets it to NULL. */
static void append(char **text, const char *kernel_dir, const char *name)
{
	char *more = kernel_dir ? read_text(kernel_dir, name) : embedded_text(name);
	size_t size = strlen(*text);
	char *longer = more ? realloc(*text, size + strlen(more) + 1) : NULL;

	if (longer)
		strcpy(longer + size, more);
	else
		free(*text);
	*text = longer;
	free(more);
}

char *source_load(const char *kernel_dir, const char *file)
{
	char *text = calloc(1, 1);

	for (size_t i = 0; text && i < FIRST; i++)
		if (!strncmp(file, first[i].directory, strlen(first[i].directory)))
			append(&text, kernel_dir, first[i].file);
	if (text)
		append(&text, kernel_dir, file);
	return text;
}
