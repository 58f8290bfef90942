/* Programs: all kernels are built at start, so that no request ever waits for a compiler. A program
 * is border.h, common.cl and then every other source, once for each pixel type. */
#include "device/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"

static const struct {
	const char *options;
} types[PIXEL_TYPES] = {
    [PIXEL_U8] = {"-DPIXEL=uchar -DPIXEL_MAX=255.0f"},
    [PIXEL_U16] = {"-DPIXEL=ushort -DPIXEL_MAX=65535.0f"},
    [PIXEL_F32] = {"-DPIXEL=float"},
};

enum { SEPARABLE_RADIUS_MAX = 300 };

/* The sources that the others need, which come first. */
static const char *const first[] = {"border.h", "common.cl"};

static bool comes_first(const char *name)
{
	return !strcmp(name, first[0]) || !strcmp(name, first[1]);
}

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

static void texts_free(char **texts)
{
	for (size_t i = 0; texts && i < kernels_embedded_count; i++)
		free(texts[i]);
	free(texts);
}

/* The sources in the order in which they are compiled, each a copy; NULL on failure. */
static char **texts_load(const char *kernel_dir)
{
	char **texts = calloc(kernels_embedded_count, sizeof *texts);
	size_t used = 0;

	for (int turn = 0; texts && turn < 3; turn++)
		for (size_t i = 0; i < kernels_embedded_count; i++) {
			const struct kernel_source *source = &kernels_embedded[i];

			if (turn < 2 ? strcmp(source->name, first[turn])
			             : comes_first(source->name))
				continue;
			texts[used] =
			    kernel_dir ? read_text(kernel_dir, source->name) : strdup(source->text);
			if (!texts[used++]) {
				texts_free(texts);
				return NULL;
			}
		}
	return texts;
}

static void log_build(cl_program program, cl_device_id device)
{
	size_t size = 0;
	char *text;

	clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
	text = calloc(1, size + 1);
	if (!text)
		return;
	clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, text, NULL);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		log_error("compiler: %s", line);
	free(text);
}

/* As many rows as leave room for the widest filter: its reach on both sides and two vectors. */
static uint32_t choose_separable_rows(const struct device *device)
{
	const uint64_t row = (2 * SEPARABLE_RADIUS_MAX * BANDS_MAX + 64) * sizeof(float);
	uint32_t rows = 8;

	while (rows > 1 && rows * row > device->local_memory)
		rows /= 2;
	return rows;
}

static cl_int build(struct programs *programs, enum pixel_type type, char **texts)
{
	const struct device *device = programs->device;
	char options[256];
	cl_int code;
	cl_program program;

	snprintf(options, sizeof options,
	         "-cl-std=CL1.2 %s -DSEPARABLE_ROWS=%u -DMATRIX_ROWS=%d -DGRADIENT_ROWS=%d",
	         types[type].options, programs->separable_rows, MATRIX_ROWS, GRADIENT_ROWS);
	program = clCreateProgramWithSource(device->context, (cl_uint)kernels_embedded_count,
	                                    (const char **)texts, NULL, &code);
	if (code)
		return code;
	programs->program[type] = program;
	code = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
	if (code)
		log_build(program, device->id);
	programs->builds++;
	for (enum kernel kernel = 0; !code && kernel < KERNELS; kernel++)
		programs->kernel[type][kernel] =
		    clCreateKernel(program, kernel_name(kernel), &code);
	return code;
}

enum error programs_build(struct programs *programs, const struct device *device,
                          const char *kernel_dir)
{
	char **texts = texts_load(kernel_dir);
	cl_int code = CL_SUCCESS;

	*programs = (struct programs){
	    .device = device,
	    .separable_rows = choose_separable_rows(device),
	};
	if (!texts)
		return kernel_dir ? ERR_IO : ERR_MEMORY;
	for (enum pixel_type type = 0; !code && type < PIXEL_TYPES; type++)
		code = build(programs, type, texts);
	texts_free(texts);
	if (!code)
		return ERR_OK;
	log_error("cannot build the kernels for %s: %s", device->name, opencl_error_name(code));
	programs_free(programs);
	return ERR_DEVICE;
}

void programs_free(struct programs *programs)
{
	for (enum pixel_type type = 0; type < PIXEL_TYPES; type++) {
		for (enum kernel kernel = 0; kernel < KERNELS; kernel++)
			if (programs->kernel[type][kernel])
				clReleaseKernel(programs->kernel[type][kernel]);
		if (programs->program[type])
			clReleaseProgram(programs->program[type]);
	}
	*programs = (struct programs){0};
}
