#include "device/cl/program.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "device/cl/object_counts.h"

/* Creates a program from its binary; NULL if the driver rejects it. */
static cl_program from_binary(const struct program_source *source, const struct compile_unit *unit,
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
	log_warning("the driver rejects a program that it compiled (%s)",
	            opencl_error_name(code ? code : status));
	object_release(OBJECT_PROGRAM, program);
	return NULL;
}

static cl_program load(const struct program_source *source, const struct compile_unit *unit)
{
	size_t size;
	unsigned char *binary = cache_load(source->cache, unit->key, strlen(unit->key), &size);
	cl_program program = binary ? from_binary(source, unit, binary, size) : NULL;

	free(binary);
	return program;
}

cl_program program_load(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type)
{
	struct compile_unit unit;
	cl_program program;

	if (compile_unit_init(&unit, source, file, options, type))
		return NULL;
	program = load(source, &unit);
	compile_unit_fini(&unit);
	return program;
}

static void keep(const struct program_source *source, const struct compile_unit *unit,
                 const unsigned char *binary, size_t size)
{
	if (binary)
		cache_store(source->cache, unit->key, strlen(unit->key), binary, size);
}

/* PoCL compiles each kernel at its first launch, or all of a program's when it is asked for the
 * binary: only the cache asks. */
cl_program program_build(const struct program_source *source, const char *file, const char *options,
                         enum pixel_type type)
{
	struct compile_unit unit;
	cl_program program;
	unsigned char *binary = NULL;
	size_t size = 0;

	if (compile_unit_init(&unit, source, file, options, type))
		return NULL;
	program = compile_unit(source, &unit);
	if (program && source->cache)
		binary = compile_binary_of(program, &size);
	keep(source, &unit, binary, size);
	free(binary);
	compile_unit_fini(&unit);
	return program;
}

unsigned char *program_ask_compiler(const struct program_source *source,
                                    struct compile_process *compiler, const char *file,
                                    const char *options, enum pixel_type type, size_t *size,
                                    bool *deadly)
{
	struct compile_unit unit;
	unsigned char *binary;

	if (compile_unit_init(&unit, source, file, options, type))
		return NULL;
	binary = compile_process_compile(compiler, file, options, type, size, deadly);
	keep(source, &unit, binary, *size);
	compile_unit_fini(&unit);
	return binary;
}

cl_program program_take(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type, const unsigned char *binary, size_t size)
{
	struct compile_unit unit;
	cl_program program;

	if (compile_unit_init(&unit, source, file, options, type))
		return NULL;
	program = from_binary(source, &unit, binary, size);
	compile_unit_fini(&unit);
	return program;
}
