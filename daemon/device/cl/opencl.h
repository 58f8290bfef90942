/* OpenCL: devices and their memory, error codes, and counts of its live objects. */
#pragma once

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/wire.h"

/* One device, opened. */
struct device {
	cl_device_id id;
	cl_context context;
	unsigned platform, index; /* in OpenCL's lists */
	bool separate_compiler;   /* kernels are compiled in another process */
	enum device_type type;
	bool nvidia; /* NVIDIA GPU and driver, compute capability 8.0 or higher */
	bool pocl;   /* its platform is PoCL */
	/* correctly rounded divisions and square roots of floats, on request */
	bool rounds_exactly;
	/* For tests: accepts kernels for GPUs on a CPU, launches only the test's kernels, and fills
	 * new buffers with poison that must not affect any result. */
	bool in_test;
	/* Image objects. Bit b of image_bands: images of b bands; 0: none of this type. The same
	 * for images of shares of full scale, also for writing. Maximum size in pixels. */
	uint32_t image_bands[PIXEL_TYPES];
	uint32_t share_bands[PIXEL_TYPES];
	size_t image_width, image_height;
	/* Kernels work directly in the host's memory, which only CPUs do. A GPU may share that
	 * memory, but the host need not see its writes before the memory is mapped. */
	bool in_place;
	/* The driver runs a launch in the thread that enqueues it: PoCL's without threads. */
	bool serial;
	char name[64];
	char driver[64];       /* platform and driver version */
	uint32_t units;        /* compute units; on a CPU, processors */
	uint64_t memory;       /* bytes of global memory */
	uint64_t local_memory; /* bytes of local memory per work-group */
	size_t group_max;      /* work-items of a group, and of its sides */
	size_t group_sides[2];
};

/* Opens a device by the indices of device_list(). ERR_NO_DEVICE, logged, if that is impossible. */
enum error device_open(struct device *device, unsigned platform, unsigned index) MUST_CHECK;
void device_close(struct device *device);

/* Creates a command queue; NULL, logged, on failure. */
cl_command_queue device_queue(const struct device *device, cl_command_queue_properties properties);

/* Lists all devices of this host. Fills at most `room` entries and returns their number. */
size_t device_list(struct message_device *list, size_t room);

/* The channel order of an image object of 1 or 4 bands, and the type of its samples. shares:
 * kernels see integers as shares of full scale. */
cl_image_format device_image_format(uint32_t bands, enum pixel_type type, bool shares);

/* Sets *ns to the nanoseconds from the start of a command to the end of another, or of itself, by
 * the device's clock. Both have ended, on a queue that profiles. Returns an OpenCL code; *ns is 0
 * on failure. */
cl_int opencl_time_between(cl_event first, cl_event last, uint64_t *ns) MUST_CHECK;

/* The name of an OpenCL error code, for example "CL_OUT_OF_RESOURCES". */
const char *opencl_error_name(cl_int code);

/* True if the device cannot be trusted after this code; also for codes outside the standard. */
bool opencl_error_fatal(cl_int code);

/* The live objects of this process are counted by kind, so that a leak shows as a growing number:
 * object_add() counts a new object or a retained reference and returns it, object_release()
 * releases it; both ignore NULL. Thread-safe. */
void *object_add(enum object kind, void *object);
void object_release(enum object kind, void *object);
/* Fills in the counts. Returns true if all objects belong to the process, none to a request. */
bool object_counts_get(struct message_objects *count);

/* ---- memory: arenas registered with a device, and buffers ---- */

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

/* Returns the number of buffers made so far, for one thread. While it stays the same, kernels that
 * have such buffers as arguments need not get them again. */
unsigned growing_buffers_made(void) MUST_CHECK;

void growing_buffer_free(struct growing_buffer *buffer);
