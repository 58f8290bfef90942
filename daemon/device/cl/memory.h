/* Device memory: arenas registered with a device, and buffers that grow. */
#ifndef DEVICE_CL_MEMORY_H
#define DEVICE_CL_MEMORY_H

#include "common/arena.h"
#include "device/cl/opencl.h"

/* A mapped arena, both parts of which are registered with the device. On a CPU kernels work in them
 * directly; elsewhere registration pins them, and copies run at full speed. */
struct device_arena {
	uint32_t number;
	struct arena memory;
	cl_mem in, out;
};

/* Maps and registers; the input read-only on a device that works in place. The caller keeps the
 * descriptors. On failure (ERR_IO, ERR_DEVICE) nothing is kept. */
enum error device_arena_open(struct device_arena *arena, const struct device *device, int in_fd,
                             uint64_t in_size, int out_fd, uint64_t out_size) MUST_CHECK;
void device_arena_close(struct device_arena *arena);

/* A device buffer that only grows. All zeros: empty. */
struct growing_buffer {
	cl_mem memory;
	uint64_t size;
};

/* Makes the buffer at least this large; growing loses its content. Returns an OpenCL code. */
cl_int growing_buffer_reserve(struct growing_buffer *buffer, const struct device *device,
                              uint64_t size) MUST_CHECK;
void growing_buffer_free(struct growing_buffer *buffer);

#endif
