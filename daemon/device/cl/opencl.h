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
	/* Kernels work in the host's memory: on CPUs alone. A GPU may share that memory too, but
	 * what it writes there the host need not see before it is mapped. */
	bool in_place;
	char name[64];
	char driver[64];       /* platform and driver version */
	uint32_t units;        /* that compute beside each other: of a CPU, its threads */
	uint64_t memory;       /* bytes of global memory */
	uint64_t local_memory; /* bytes that one work-group can have */
};

/* Opens a device by the indices that device_list() gives. ERR_NO_DEVICE if there is none such, or
 * it does not let itself be opened; the reason is logged. */
enum error device_open(struct device *device, unsigned platform, unsigned index) MUST_CHECK;
void device_close(struct device *device);

/* All devices of this host; fills at most `room` and returns how many are filled. `last` is not
 * set. */
size_t device_list(struct message_device *list, size_t room);

/* The name of an OpenCL error code, as "CL_OUT_OF_RESOURCES". */
const char *opencl_error_name(cl_int code);

/* True if after this code nothing on the device can be relied upon: of a code that is not of the
 * standard nobody knows. */
bool opencl_error_fatal(cl_int code);

#endif
