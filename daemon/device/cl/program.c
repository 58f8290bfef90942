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

/* Creates a program from its source, or from a binary; NULL, logged, on failure. */
static cl_program create(const struct device *device, const char *text, const char *options,
                         const struct binary *binary)
{
	const unsigned char *data = binary ? binary->data : NULL;
	cl_int status = CL_SUCCESS, code;
	cl_program program =
	    binary ? clCreateProgramWithBinary(device->context, 1, &device->id, &binary->size,
	                                       &data, &status, &code)
	           : clCreateProgramWithSource(device->context, 1, &text, NULL, &code);

	object_add(OBJECT_PROGRAM, program);
	if (!code)
		code = status;
	if (!code)
		code = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
	if (!code)
		return program;
	if (binary) {
		log_warning("the driver rejects a program that it compiled (%s)",
		            opencl_error_name(code));
	} else {
		if (code == CL_BUILD_PROGRAM_FAILURE)
			log_build(program, device->id);
		log_error("cannot compile kernels for %s: %s", device->name,
		          opencl_error_name(code));
	}
	object_release(OBJECT_PROGRAM, program);
	return NULL;
}

struct binary program_binary(cl_program program)
{
	struct binary binary = {0};

	clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof binary.size, &binary.size, NULL);
	binary.data = binary.size ? malloc(binary.size) : NULL;
	if (binary.data && clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary.data,
	                                    &binary.data, NULL)) {
		free(binary.data);
		binary.data = NULL;
	}
	return binary;
}

/* A program's text, its options, and its key in the cache: all that the binary depends on. */
struct making {
	char *text, *options, *key;
};

/* The text is NULL if there is none (logged). */
static struct making making_begin(const struct program_source *source, const char *file,
                                  const char *options, enum pixel_type type)
{
	struct making making = {.text = source_load(source->kernel_dir, file)};

	if (!making.text)
		return making;
	/* -w: Clang counts warnings on standard error, where nothing says what they are. */
	making.options = g_strdup_printf("-cl-std=CL1.2 -w %s %s", type_options[type], options);
	making.key = g_strdup_printf("%s\n%s\n%s\n%s", source->device->name, source->device->driver,
	                             making.options, making.text);
	return making;
}

static void making_end(struct making *making)
{
	g_free(making->text);
	g_free(making->options);
	g_free(making->key);
}

bool program_cached(const struct program_source *source, const char *file, const char *options,
                    enum pixel_type type)
{
	struct making making = making_begin(source, file, options, type);
	size_t size;
	void *binary = making.text ? cache_load(source->cache, making.key, &size) : NULL;
	const bool cached = binary;

	making_end(&making);
	free(binary);
	return cached;
}

/* PoCL compiles each kernel at its first launch, or all kernels of a program when the binary is
 * requested, which only the cache does. */
cl_program program_make(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type, enum way way, const struct binary *binary)
{
	const struct device *device = source->device;
	struct making making = making_begin(source, file, options, type);
	struct binary own = {0};
	cl_program program = NULL;

	if (!making.text)
		return NULL;
	switch (way) {
	case WAY_CACHE:
		own.data = cache_load(source->cache, making.key, &own.size);
		program = own.data ? create(device, making.text, making.options, &own) : NULL;
		break;
	case WAY_BINARY:
		program = create(device, making.text, making.options, binary);
		break;
	case WAY_COMPILE:
		program = create(device, making.text, making.options, NULL);
		if (program && source->cache)
			own = program_binary(program);
		binary = &own;
		break;
	}
	if (way != WAY_CACHE && program && binary->data)
		cache_store(source->cache, making.key, binary->data, binary->size);
	free(own.data);
	making_end(&making);
	return program;
}
