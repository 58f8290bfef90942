/* Programs: from the cache, or from source. The key is everything that the binary
 * depends on: device, driver, options, source. */
#include "device/cl/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "device/cl/compile_process.h"
#include "device/cl/object_counts.h"
#include "device/cl/source.h"

static const char *const type_options[PIXEL_TYPES] = {
    [PIXEL_U8] = "-DPIXEL=uchar -DPIXEL_MAX=255.0f",
    [PIXEL_U16] = "-DPIXEL=ushort -DPIXEL_MAX=65535.0f",
    [PIXEL_F32] = "-DPIXEL=float",
};

/* What a program is compiled from. */
struct unit {
	char *text;    /* the source */
	char *options; /* for the compiler */
	char *key;     /* for the cache */
};

static void unit_fini(struct unit *unit)
{
	free(unit->text);
	free(unit->options);
	free(unit->key);
}

static enum error unit_init(struct unit *unit, const struct program_source *source,
                            const char *file, const char *options, enum pixel_type type)
{
	const struct device *device = source->device;

	*unit = (struct unit){.text = source_load(source->kernel_dir, file)};
	if (!unit->text)
		return ERR_IO;
	if (asprintf(&unit->options, "-cl-std=CL1.2 %s %s", type_options[type], options) < 0)
		unit->options = NULL;
	if (unit->options && asprintf(&unit->key, "%s\n%s\n%s\n%s", device->name, device->driver,
	                              unit->options, unit->text) < 0)
		unit->key = NULL;
	if (unit->key)
		return ERR_OK;
	unit_fini(unit);
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

/* The program of a binary; NULL if the driver does not take it. */
static cl_program from_binary(const struct program_source *source, const struct unit *unit,
                              const unsigned char *binary, size_t size)
{
	const struct device *device = source->device;
	cl_int status = CL_SUCCESS, code = CL_SUCCESS;
	cl_program program =
	    object_add(OBJECT_PROGRAM, clCreateProgramWithBinary(device->context, 1, &device->id,
	                                                         &size, &binary, &status, &code));

	if (program && !code && !status)
		code = clBuildProgram(program, 1, &device->id, unit->options, NULL, NULL);
	if (!code && !status)
		return program;
	log_warning("the driver does not take a program that it made (%s)",
	            opencl_error_name(code ? code : status));
	object_release(OBJECT_PROGRAM, program);
	return NULL;
}

static cl_program load(const struct program_source *source, const struct unit *unit)
{
	size_t size;
	unsigned char *binary = cache_load(source->cache, unit->key, strlen(unit->key), &size);
	cl_program program = binary ? from_binary(source, unit, binary, size) : NULL;

	free(binary);
	return program;
}

static cl_program compile(const struct program_source *source, const struct unit *unit)
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

/* What a compiled program consists of, complete; NULL if it does not say. The caller frees it. */
static unsigned char *binary_of(cl_program program, size_t *size)
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

enum error program_compile(const struct program_source *source, const char *file,
                           const char *options, enum pixel_type type, unsigned char **binary,
                           size_t *size)
{
	struct unit unit;
	cl_program program;
	enum error e = unit_init(&unit, source, file, options, type);

	*binary = NULL;
	if (e)
		return e;
	program = compile(source, &unit);
	if (program) {
		*binary = binary_of(program, size);
		object_release(OBJECT_PROGRAM, program);
	}
	unit_fini(&unit);
	return *binary ? ERR_OK : ERR_DEVICE;
}

cl_program program_load(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type)
{
	struct unit unit;
	cl_program program;

	if (unit_init(&unit, source, file, options, type))
		return NULL;
	program = load(source, &unit);
	unit_fini(&unit);
	return program;
}

static void keep(const struct program_source *source, const struct unit *unit,
                 const unsigned char *binary, size_t size)
{
	if (binary)
		cache_store(source->cache, unit->key, strlen(unit->key), binary, size);
}

/* PoCL compiles only halfway before the first launch; the rest is done when it is asked for the
 * binary. */
cl_program program_build(const struct program_source *source, const char *file, const char *options,
                         enum pixel_type type)
{
	struct unit unit;
	cl_program program;
	unsigned char *binary = NULL;
	size_t size = 0;

	if (unit_init(&unit, source, file, options, type))
		return NULL;
	program = compile(source, &unit);
	if (program)
		binary = binary_of(program, &size);
	keep(source, &unit, binary, size);
	free(binary);
	unit_fini(&unit);
	return program;
}

unsigned char *program_compile_apart(const struct program_source *source,
                                     struct compile_process *apart, const char *file,
                                     const char *options, enum pixel_type type, size_t *size)
{
	struct unit unit;
	unsigned char *binary;

	if (unit_init(&unit, source, file, options, type))
		return NULL;
	binary = compile_process_compile(apart, file, options, type, size);
	keep(source, &unit, binary, *size);
	unit_fini(&unit);
	return binary;
}

cl_program program_take(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type, const unsigned char *binary, size_t size)
{
	struct unit unit;
	cl_program program;

	if (unit_init(&unit, source, file, options, type))
		return NULL;
	program = from_binary(source, &unit, binary, size);
	unit_fini(&unit);
	return program;
}
