/* As much of OpenCL as device/jpeg and the tests of single kernels need, on this thread: kernels
 * compiled as C by clang (-x cl), so that sanitizers and fuzzers see them. Buffers are the host's,
 * of exactly the size asked for and full of poison; the items of a group are fibres that change at
 * barriers. A kernel is the function of this name that the program exports. */
#pragma once

#include <stdbool.h>

#include <CL/cl.h>

/* False: launches are left out, as the test itself calls what kernels consist of. */
extern bool host_launches;

/* Runs a body, which calls a kernel's function with the arguments in `data`, as every item of these
 * groups. */
typedef void host_item(const void *data);
void host_run(host_item *body, const void *data, const size_t groups[3], const size_t local[3]);

/* Begins a function that kernels call; `mangled`: its name, as clang has it of overloaded ones. */
#define BUILTIN(type, name, mangled, ...)                                                          \
	type name(__VA_ARGS__) __asm__(mangled);                                                   \
	type name(__VA_ARGS__)

/* One that only has a value. */
#define FUNCTION(type, name, mangled, parameters, ...)                                             \
	type name parameters __asm__(mangled);                                                     \
	type name parameters                                                                       \
	{                                                                                          \
		return __VA_ARGS__;                                                                \
	}

/* For functions that kernels call: the item's number in its group, x first; and to let the group's
 * other items run, each up to where it yields too, or ends. */
size_t host_item_number(void);
void host_yield(void);

/* Returns the host's memory of a buffer. */
void *host_bytes(cl_mem memory);
