/* OpenCL devices: listing, opening, and what its error codes mean. */
#ifndef DEVICE_CL_OPENCL_H
#define DEVICE_CL_OPENCL_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/wire.h"

/* One device, opened. */
struct device {
	cl_device_id id;
	cl_context context;
	unsigned platform, index; /* as OpenCL lists them */
	bool separate_compiler;   /* another process of this program compiles for it */
	enum device_type type;
	bool nvidia; /* a GPU of NVIDIA by its own driver, of compute capability 8.0 or more */
	bool pocl;   /* PoCL's */
	/* In tests: it takes kernels for GPUs though it is none, launches no kernel but the test's,
	 * and new buffers are full of what no result may depend on. */
	bool in_test;
	bool images; /* has image objects */
	/* Kernels work directly in the host's memory: only on CPUs. A GPU may share that memory,
	 * too, but the host need not see what it writes before the memory is mapped. */
	bool in_place;
	char name[64];
	char driver[64];       /* platform and driver version */
	uint32_t units;        /* that compute beside each other: of a CPU, its threads */
	uint64_t memory;       /* bytes of global memory */
	uint64_t local_memory; /* bytes of local memory for a work-group */
};

/* Opens a device by the indices of device_list(). ERR_NO_DEVICE if it does not exist or cannot be
 * opened; the reason is logged. */
enum error device_open(struct device *device, unsigned platform, unsigned index) MUST_CHECK;
void device_close(struct device *device);

/* All devices of this host; fills at most `room` and returns how many are filled. `last` is not
 * set. */
size_t device_list(struct message_device *list, size_t room);

/* The name of an OpenCL error code, as "CL_OUT_OF_RESOURCES". */
const char *opencl_error_name(cl_int code);

/* True if after this code nothing on the device can be trusted; also for codes outside the
 * standard. */
bool opencl_error_fatal(cl_int code);

#endif
