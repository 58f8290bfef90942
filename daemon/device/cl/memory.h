/* Device memory: arenas registered with a device, and buffers that grow. */
#ifndef DEVICE_CL_MEMORY_H
#define DEVICE_CL_MEMORY_H

#include "device/cl/opencl.h"
#include "filters/chain.h"
#include "wire/tile.h"
#include "wire/wire.h"

/* A mapped arena. Its input and output are registered with the device. On a CPU kernels work in
 * them directly; on a GPU registration pins the pages, so copies run at full speed. */
struct device_arena {
	uint32_t number;
	struct arena memory;
	cl_mem in, out;
};

/* Maps and registers an arena of in_size and out_size bytes. On a device that works in place the
 * input is read-only. The caller keeps the descriptors. On failure (ERR_IO, ERR_DEVICE) there is
 * nothing to close. */
enum error device_arena_open(struct device_arena *arena, const struct device *device, int in_fd,
                             uint64_t in_size, int out_fd, uint64_t out_size) MUST_CHECK;
void device_arena_close(struct device_arena *arena);

/* The arenas received from the front, by the front's numbers. All zeros: none. */
struct arenas {
	struct device_arena *arena;
	uint32_t count;
};

/* Closes all arenas and empties the list. No command may still use them. */
void arenas_fini(struct arenas *arenas);

/* Maps an arena and registers it with the device, which must outlive it. The caller keeps both
 * descriptors. ERR_INTERNAL, logged, if the number is in use; ERR_MEMORY, ERR_IO or ERR_DEVICE. */
enum error arenas_add(struct arenas *arenas, const struct device *device,
                      const struct message_arena *message, const int fds[2]) MUST_CHECK;
/* Closes the arena with this number. ERR_INTERNAL, logged, if there is none. */
enum error arenas_drop(struct arenas *arenas, uint32_t number) MUST_CHECK;

/* The arena with this number, or NULL. The list owns it; adding or dropping arenas may move it. */
const struct device_arena *arenas_find(const struct arenas *arenas, uint32_t number);

/* True if the tile lies within its arena and fits the image and the chain. */
bool arenas_hold(const struct arenas *arenas, const struct tile *tile, const struct image *image,
                 const struct chain *chain);

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
