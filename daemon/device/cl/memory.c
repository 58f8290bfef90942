#include "device/cl/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"

cl_mem device_buffer(const struct device *device, cl_mem_flags flags, uint64_t size, void *memory,
                     cl_int *code)
{
	return object_add(OBJECT_BUFFER,
	                  clCreateBuffer(device->context, flags, size, memory, code));
}

enum error device_arena_open(struct device_arena *arena, const struct device *device, int in_fd,
                             uint64_t in_size, int out_fd, uint64_t out_size)
{
	int in_protection = device->in_place ? PROT_READ : PROT_READ | PROT_WRITE;
	struct arena *memory = &arena->memory;
	cl_int code;

	*arena = (struct device_arena){0};
	if (arena_map(memory, in_fd, in_size, in_protection, out_fd, out_size,
	              PROT_READ | PROT_WRITE)) {
		log_error("cannot map an arena: %s", strerror(errno));
		return ERR_IO;
	}
	arena->in = device_buffer(device, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, in_size,
	                          memory->in, &code);
	if (!code)
		arena->out = device_buffer(device, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
		                           out_size, memory->out, &code);
	if (!code)
		return ERR_OK;
	log_error("cannot register an arena of %" PRIu64 " bytes: %s", in_size + out_size,
	          opencl_error_name(code));
	device_arena_close(arena);
	return ERR_DEVICE;
}

void device_arena_close(struct device_arena *arena)
{
	object_release(OBJECT_BUFFER, arena->in);
	object_release(OBJECT_BUFFER, arena->out);
	arena_unmap(&arena->memory);
	*arena = (struct device_arena){0};
}

cl_int growing_buffer_reserve(struct growing_buffer *buffer, const struct device *device,
                              uint64_t size)
{
	enum { POISON = 0xA7 };
	void *poison = NULL;
	cl_int code;

	if (size <= buffer->size)
		return CL_SUCCESS;
	growing_buffer_free(buffer);
	size += size / 8; /* spare room: tiles of one job differ slightly in size */
	if (device->in_test) {
		poison = malloc(size);
		if (!poison)
			return CL_OUT_OF_HOST_MEMORY;
		memset(poison, POISON, size);
	}
	buffer->memory = device_buffer(
	    device, CL_MEM_READ_WRITE | (poison ? CL_MEM_COPY_HOST_PTR : 0), size, poison, &code);
	free(poison);
	buffer->size = code ? 0 : size;
	return code;
}

void growing_buffer_free(struct growing_buffer *buffer)
{
	object_release(OBJECT_BUFFER, buffer->memory);
	*buffer = (struct growing_buffer){0};
}
