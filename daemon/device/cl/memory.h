/* Device memory: arenas registered with a device, and buffers that grow. */
#ifndef DEVICE_CL_MEMORY_H
#define DEVICE_CL_MEMORY_H

#include "device/cl/opencl.h"
#include "wire/tile.h"

/* A mapped arena. Its input and output are registered with the device. On a CPU kernels work in
 * them directly; on a GPU registration pins the pages, so copies run at full speed. */
struct device_arena {
	struct arena memory;
	cl_mem in, out;
};

/* Maps and registers an arena of in_size and out_size bytes. On a device that works in place the
 * input is read-only. The caller keeps the descriptors. On failure (ERR_IO, ERR_DEVICE) there is
 * nothing to close. */
enum error device_arena_open(struct device_arena *arena, const struct device *device, int in_fd,
                             uint64_t in_size, int out_fd, uint64_t out_size) MUST_CHECK;
void device_arena_close(struct device_arena *arena);

/* Creates a buffer, as clCreateBuffer() does, and counts it. */
cl_mem device_buffer(const struct device *device, cl_mem_flags flags, uint64_t size, void *memory,
                     cl_int *code);

/* A device buffer that only grows. All zeros: empty. */
struct growing_buffer {
	cl_mem memory;
	uint64_t size;
};

/* Grows the buffer to at least `size` bytes; growing loses its content. Returns an OpenCL code. */
cl_int growing_buffer_reserve(struct growing_buffer *buffer, const struct device *device,
                              uint64_t size) MUST_CHECK;
void growing_buffer_free(struct growing_buffer *buffer);

#endif
