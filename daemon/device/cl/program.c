#include "device/cl/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cl/object_counts.h"
#include "device/cl/source.h"

static const char *const type_options[PIXEL_TYPES] = {
    [PIXEL_U8] = "-DPIXEL=uchar -DPIXEL_MAX=255.0f",
    [PIXEL_U16] = "-DPIXEL=ushort -DPIXEL_MAX=65535.0f",
    [PIXEL_F32] = "-DPIXEL=float",
};

void program_inputs_fini(struct program_inputs *inputs)
{
	free(inputs->text);
	free(inputs->options);
	free(inputs->key);
}

enum error program_inputs_init(struct program_inputs *inputs, const struct program_source *source,
                               const char *file, const char *options, enum pixel_type type)
{
	const struct device *device = source->device;

	*inputs = (struct program_inputs){.text = source_load(source->kernel_dir, file)};
	if (!inputs->text)
		return ERR_IO;
	/* -w: Clang counts warnings on standard error, where nothing says what they are. */
	if (asprintf(&inputs->options, "-cl-std=CL1.2 -w %s %s", type_options[type], options) < 0)
		inputs->options = NULL;
	if (inputs->options && asprintf(&inputs->key, "%s\n%s\n%s\n%s", device->name,
	                                device->driver, inputs->options, inputs->text) < 0)
		inputs->key = NULL;
	if (inputs->key)
		return ERR_OK;
	program_inputs_fini(inputs);
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

/* Compiles a program; NULL on failure, logged. */
static cl_program compile(const struct program_source *source, const struct program_inputs *inputs)
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

/* Returns the complete binary of a compiled program, or NULL if the driver does not. */
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

enum error program_build_binary(const struct program_source *source, const char *file,
                                const char *options, enum pixel_type type, unsigned char **binary,
                                size_t *size)
{
	struct program_inputs inputs;
	cl_program program;
	enum error e = program_inputs_init(&inputs, source, file, options, type);

	*binary = NULL;
	if (e)
		return e;
	program = compile(source, &inputs);
	if (program) {
		*binary = binary_of(program, size);
		object_release(OBJECT_PROGRAM, program);
	}
	program_inputs_fini(&inputs);
	return *binary ? ERR_OK : ERR_DEVICE;
}

/* Creates a program from its binary; NULL if the driver rejects it. */
static cl_program create(const struct program_source *source, const struct program_inputs *inputs,
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
                        enum pixel_type type)
{
	struct program_inputs inputs;
	cl_program program;
	unsigned char *binary;
	size_t size;

	if (program_inputs_init(&inputs, source, file, options, type))
		return NULL;
	binary = cache_load(source->cache, inputs.key, strlen(inputs.key), &size);
	program = binary ? create(source, &inputs, binary, size) : NULL;
	free(binary);
	program_inputs_fini(&inputs);
	return program;
}

/* PoCL compiles each kernel at its first launch, or all of a program's when it is asked for the
 * binary: only the cache asks. */
cl_program program_build(const struct program_source *source, const char *file, const char *options,
                         enum pixel_type type)
{
	struct program_inputs inputs;
	cl_program program;
	unsigned char *binary = NULL;
	size_t size = 0;

	if (program_inputs_init(&inputs, source, file, options, type))
		return NULL;
	program = compile(source, &inputs);
	if (program && source->cache)
		binary = binary_of(program, &size);
	if (binary)
		cache_store(source->cache, inputs.key, strlen(inputs.key), binary, size);
	free(binary);
	program_inputs_fini(&inputs);
	return program;
}

cl_program program_from_binary(const struct program_source *source, const char *file,
                               const char *options, enum pixel_type type,
                               const unsigned char *binary, size_t size)
{
	struct program_inputs inputs;
	cl_program program;

	if (program_inputs_init(&inputs, source, file, options, type))
		return NULL;
	program = create(source, &inputs, binary, size);
	program_inputs_fini(&inputs);
	return program;
}
