/* Device memory: arenas registered with a device, and buffers that grow. */
#ifndef DEVICE_CL_MEMORY_H
#define DEVICE_CL_MEMORY_H

#include "common/arena.h"
#include "device/cl/opencl.h"

/* An arena, mapped, whose both parts are registered with the device: on a CPU kernels work in them;
 * elsewhere that pins them, and copies run at full speed. */
struct device_arena {
	uint32_t number;
	struct arena memory;
	cl_mem in, out;
};

/* Maps and registers; the input read-only on a device that works in place. The
 * descriptors stay the caller's. On failure (ERR_IO, ERR_DEVICE) nothing is kept. */
enum error device_arena_open(struct device_arena *arena, const struct device *device, int in_fd,
                             uint64_t in_size, int out_fd, uint64_t out_size) MUST_CHECK;
void device_arena_close(struct device_arena *arena);

/* A buffer of the device that is only ever made larger. All zero: empty. */
struct growing_buffer {
	cl_mem memory;
	uint64_t size;
};

/* Makes the buffer at least this large; its content is lost when it grows. Returns an OpenCL code.
 */
cl_int growing_buffer_reserve(struct growing_buffer *buffer, const struct device *device,
                              uint64_t size) MUST_CHECK;
void growing_buffer_free(struct growing_buffer *buffer);

#endif
