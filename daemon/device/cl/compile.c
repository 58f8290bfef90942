#include "device/cl/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "device/cl/object_counts.h"
#include "device/cl/source.h"

static const char *const type_options[PIXEL_TYPES] = {
    [PIXEL_U8] = "-DPIXEL=uchar -DPIXEL_MAX=255.0f",
    [PIXEL_U16] = "-DPIXEL=ushort -DPIXEL_MAX=65535.0f",
    [PIXEL_F32] = "-DPIXEL=float",
};

void compile_unit_fini(struct compile_unit *unit)
{
	free(unit->text);
	free(unit->options);
	free(unit->key);
}

enum error compile_unit_init(struct compile_unit *unit, const struct program_source *source,
                             const char *file, const char *options, enum pixel_type type)
{
	const struct device *device = source->device;

	*unit = (struct compile_unit){.text = source_load(source->kernel_dir, file)};
	if (!unit->text)
		return ERR_IO;
	/* -w: Clang counts warnings on standard error, where nothing says what they are. */
	if (asprintf(&unit->options, "-cl-std=CL1.2 -w %s %s", type_options[type], options) < 0)
		unit->options = NULL;
	if (unit->options && asprintf(&unit->key, "%s\n%s\n%s\n%s", device->name, device->driver,
	                              unit->options, unit->text) < 0)
		unit->key = NULL;
	if (unit->key)
		return ERR_OK;
	compile_unit_fini(unit);
	return ERR_MEMORY;
}

static void log_build(cl_program program, cl_device_id device)
{
	size_t size = 0;
	char *text, *rest;

	clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
	text = calloc(1, size + 1);
	if (!text)
		return;
	clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, text, NULL);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		log_error("compiler: %s", line);
	free(text);
}

cl_program compile_unit(const struct program_source *source, const struct compile_unit *unit)
{
	const struct device *device = source->device;
	const char *text = unit->text;
	cl_int code;
	cl_program program = object_add(
	    OBJECT_PROGRAM, clCreateProgramWithSource(device->context, 1, &text, NULL, &code));

	if (!code)
		code = clBuildProgram(program, 1, &device->id, unit->options, NULL, NULL);
	if (!code)
		return program;
	if (code == CL_BUILD_PROGRAM_FAILURE)
		log_build(program, device->id);
	log_error("cannot compile kernels for %s: %s", device->name, opencl_error_name(code));
	object_release(OBJECT_PROGRAM, program);
	return NULL;
}

unsigned char *compile_binary_of(cl_program program, size_t *size)
{
	unsigned char *binary;

	*size = 0;
	clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *size, size, NULL);
	binary = *size ? malloc(*size) : NULL;
	if (binary &&
	    clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL)) {
		free(binary);
		binary = NULL;
	}
	return binary;
}

enum error compile_to_binary(const struct program_source *source, const char *file,
                             const char *options, enum pixel_type type, unsigned char **binary,
                             size_t *size)
{
	struct compile_unit unit;
	cl_program program;
	enum error e = compile_unit_init(&unit, source, file, options, type);

	*binary = NULL;
	if (e)
		return e;
	program = compile_unit(source, &unit);
	if (program) {
		*binary = compile_binary_of(program, size);
		object_release(OBJECT_PROGRAM, program);
	}
	compile_unit_fini(&unit);
	return *binary ? ERR_OK : ERR_DEVICE;
}
