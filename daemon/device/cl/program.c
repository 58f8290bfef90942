#include "device/cl/program.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cl/source.h"

static const char *const type_options[PIXEL_TYPES] = {
    [PIXEL_U8] = "-DPIXEL=uchar -DPIXEL_MAX=255.0f",
    [PIXEL_U16] = "-DPIXEL=ushort -DPIXEL_MAX=65535.0f",
    [PIXEL_F32] = "-DPIXEL=float",
};

/* What a program is compiled from, with a key that contains all that its binary depends on. */
struct inputs {
	char *text, *options, *key;
};

static void inputs_fini(struct inputs *inputs)
{
	g_free(inputs->text);
	g_free(inputs->options);
	g_free(inputs->key);
}

/* Fills in the inputs. False, logged, if a source is missing; there is nothing to free then. */
static bool inputs_init(struct inputs *inputs, const struct program_source *source,
                        const char *file, const char *options, enum pixel_type type)
{
	const struct device *device = source->device;

	*inputs = (struct inputs){.text = source_load(source->kernel_dir, file)};
	if (!inputs->text)
		return false;
	/* -w: Clang counts warnings on standard error, where nothing says what they are. */
	inputs->options = g_strdup_printf("-cl-std=CL1.2 -w %s %s", type_options[type], options);
	inputs->key = g_strdup_printf("%s\n%s\n%s\n%s", device->name, device->driver,
	                              inputs->options, inputs->text);
	return true;
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

/* Compiles a program; NULL on failure, logged. */
static cl_program compile(const struct program_source *source, const struct inputs *inputs)
{
	const struct device *device = source->device;
	const char *text = inputs->text;
	cl_int code;
	cl_program program = object_add(
	    OBJECT_PROGRAM, clCreateProgramWithSource(device->context, 1, &text, NULL, &code));

	if (!code)
		code = clBuildProgram(program, 1, &device->id, inputs->options, NULL, NULL);
	if (!code)
		return program;
	if (code == CL_BUILD_PROGRAM_FAILURE)
		log_build(program, device->id);
	log_error("cannot compile kernels for %s: %s", device->name, opencl_error_name(code));
	object_release(OBJECT_PROGRAM, program);
	return NULL;
}

unsigned char *program_binary(cl_program program, size_t *size)
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

/* Creates a program from its binary; NULL if the driver rejects it. */
static cl_program create(const struct program_source *source, const struct inputs *inputs,
                         const unsigned char *binary, size_t size)
{
	const struct device *device = source->device;
	cl_int status = CL_SUCCESS, code = CL_SUCCESS;
	cl_program program =
	    object_add(OBJECT_PROGRAM, clCreateProgramWithBinary(device->context, 1, &device->id,
	                                                         &size, &binary, &status, &code));

	if (program && !code && !status)
		code = clBuildProgram(program, 1, &device->id, inputs->options, NULL, NULL);
	if (!code && !status)
		return program;
	log_warning("the driver rejects a program that it compiled (%s)",
	            opencl_error_name(code ? code : status));
	object_release(OBJECT_PROGRAM, program);
	return NULL;
}

cl_program program_load(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type, const unsigned char *binary, size_t size)
{
	unsigned char *cached = NULL;
	cl_program program = NULL;
	struct inputs inputs;

	if (!inputs_init(&inputs, source, file, options, type))
		return NULL;
	if (!binary)
		binary = cached = cache_load(source->cache, inputs.key, &size);
	if (binary)
		program = create(source, &inputs, binary, size);
	if (program && !cached)
		cache_store(source->cache, inputs.key, binary, size);
	free(cached);
	inputs_fini(&inputs);
	return program;
}

/* PoCL compiles each kernel at its first launch, or all of a program's when it is asked for the
 * binary: only the cache asks. */
cl_program program_build(const struct program_source *source, const char *file, const char *options,
                         enum pixel_type type)
{
	unsigned char *binary = NULL;
	struct inputs inputs;
	cl_program program;
	size_t size;

	if (!inputs_init(&inputs, source, file, options, type))
		return NULL;
	program = compile(source, &inputs);
	if (program && source->cache)
		binary = program_binary(program, &size);
	if (binary)
		cache_store(source->cache, inputs.key, binary, size);
	free(binary);
	inputs_fini(&inputs);
	return program;
}
