/* As much of OpenCL as device/jpeg needs, on this thread: kernels compiled as C by clang (-x cl),
 * so that sanitizers and fuzzers see them. Buffers are the host's, of exactly the size asked for
 * and full of poison; the items of a group are fibres that change at barriers. */
#ifndef TESTS_OPENCL_ON_HOST_H
#define TESTS_OPENCL_ON_HOST_H

#include <CL/cl.h>

/* The kernels' functions, by name; the user defines the table, which ends with NULL. */
struct host_kernel {
	const char *name;
	void (*function)(void);
};
extern const struct host_kernel host_kernels[];

#endif
