/* A group runs as fibres with stacks of their own, in turns: each until its next barrier or its
 * end. Changing between them by __builtin_longjmp() costs no system call; a fibre is started once,
 * and then runs one item after another. */
#include "opencl_on_host.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <ucontext.h>

#include "device/cl/opencl.h"
#include "device/plan/programs.h"

/* Fuzzers need not see how items are run. */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

bool host_launches = true;

enum { ITEMS_MAX = 256, STACK = 256 << 10, ARGUMENTS_MAX = 14, POISON = 0xA7 };

/* Objects are what their handles point to. */
struct _cl_mem {
	size_t size;
	void *bytes;
};
struct _cl_kernel {
	void (*function)(void);
	void *argument[ARGUMENTS_MAX];
};

static struct {
	host_item *body;
	const void *data;
	size_t local[3], items, group[3], groups[3], item;
} run;

static struct fibre {
	void *state[5];
	bool started, running; /* an item is not at its end */
} fibres[ITEMS_MAX];
static void *scheduler[5];
static uint8_t *stacks;

/* Fibres ------------------------------------------------------------------------------------------
 *
 * AddressSanitizer need not know when one leaves its stack, which it will come back to. */

#define LEAVES_STACK __attribute__((noinline, no_sanitize("address")))

/* Kernels have fewer parameters, of other types, which no calling convention here minds. */
__attribute__((no_sanitize("function"))) static void call(const void *kernel)
{
	const struct _cl_kernel *k = kernel;
	typedef void *p;
	void (*function)(p, p, p, p, p, p, p, p, p, p, p, p, p, p) =
	    (void (*)(p, p, p, p, p, p, p, p, p, p, p, p, p, p))k->function;
	void *const *a = k->argument;

	function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
	         a[13]);
}

LEAVES_STACK void host_yield(void)
{
	if (!__builtin_setjmp(fibres[run.item].state))
		__builtin_longjmp(scheduler, 1);
}

static void fibre_main(void)
{
	for (;;) {
		run.body(run.data);
		fibres[run.item].running = false;
		host_yield();
	}
}

static LEAVES_STACK void fibre_start(struct fibre *f)
{
	static ucontext_t context;

	f->started = true;
	if (!stacks)
		stacks = malloc((size_t)ITEMS_MAX * STACK);
	if (!stacks || getcontext(&context))
		abort();
	context.uc_stack.ss_sp = stacks + (size_t)(f - fibres) * STACK;
	context.uc_stack.ss_size = STACK;
	context.uc_link = NULL;
	makecontext(&context, fibre_main, 0);
	setcontext(&context);
}

/* Runs an item up to its next barrier or its end. */
static LEAVES_STACK void resume(struct fibre *f)
{
	if (__builtin_setjmp(scheduler))
		return;
	if (f->started)
		__builtin_longjmp(f->state, 1);
	fibre_start(f);
	abort(); /* never reached: a tail call would give up this frame, which is come back to */
}

static void run_group(void)
{
	bool left = true;

	for (size_t i = 0; i < run.items; i++)
		fibres[i].running = true;
	while (left) {
		left = false;
		for (run.item = 0; run.item < run.items; run.item++)
			if (fibres[run.item].running) {
				resume(&fibres[run.item]);
				left |= fibres[run.item].running;
			}
	}
}

size_t host_item_number(void)
{
	return run.item;
}

void host_run(host_item *body, const void *data, const size_t groups[3], const size_t local[3])
{
	run.body = body;
	run.data = data;
	run.items = local[0] * local[1] * local[2];
	if (run.items > ITEMS_MAX)
		abort();
	memcpy(run.local, local, sizeof run.local);
	memcpy(run.groups, groups, sizeof run.groups);
	for (run.group[2] = 0; run.group[2] < groups[2]; run.group[2]++)
		for (run.group[1] = 0; run.group[1] < groups[1]; run.group[1]++)
			for (run.group[0] = 0; run.group[0] < groups[0]; run.group[0]++)
				run_group();
}

/* Functions that kernels call ------------------------------------------------------------------ */

BUILTIN(size_t, k_local_id, "_Z12get_local_idj", uint32_t d)
{
	const size_t before = d == 0 ? 1 : d == 1 ? run.local[0] : run.local[0] * run.local[1];

	return run.item / before % run.local[d];
}
FUNCTION(size_t, k_group_id, "_Z12get_group_idj", (uint32_t d), run.group[d])
FUNCTION(size_t, k_global_id, "_Z13get_global_idj", (uint32_t d),
         run.group[d] * run.local[d] + k_local_id(d))
FUNCTION(size_t, k_local_size, "_Z14get_local_sizej", (uint32_t d), run.local[d])
FUNCTION(size_t, k_num_groups, "_Z14get_num_groupsj", (uint32_t d), run.groups[d])
BUILTIN(void, k_barrier, "_Z7barrierj", uint32_t flags)
{
	(void)flags;
	host_yield();
}
FUNCTION(uint32_t, k_min_u, "_Z3minjj", (uint32_t a, uint32_t b), MIN(a, b))
FUNCTION(uint32_t, k_max_u, "_Z3maxjj", (uint32_t a, uint32_t b), MAX(a, b))
FUNCTION(uint32_t, k_add_sat, "_Z7add_satjj", (uint32_t a, uint32_t b),
         a + b < a ? UINT32_MAX : a + b)
FUNCTION(int32_t, k_min, "_Z3minii", (int32_t a, int32_t b), MIN(a, b))
FUNCTION(int32_t, k_max, "_Z3maxii", (int32_t a, int32_t b), MAX(a, b))
FUNCTION(int32_t, k_clamp, "_Z5clampiii", (int32_t a, int32_t low, int32_t high),
         MAX(low, MIN(a, high)))
FUNCTION(uint32_t, k_abs, "_Z3absi", (int32_t a), a < 0 ? 0 - (uint32_t)a : (uint32_t)a)
FUNCTION(uint32_t, k_popcount, "_Z8popcountj", (uint32_t a), (uint32_t)__builtin_popcount(a))
FUNCTION(uint32_t, k_clz, "_Z3clzj", (uint32_t a), a ? (uint32_t)__builtin_clz(a) : 32)
FUNCTION(uint64_t, k_clz_l, "_Z3clzm", (uint64_t a), a ? (uint64_t)__builtin_clzl(a) : 64)
FUNCTION(uint32_t, k_mul_hi, "_Z6mul_hijj", (uint32_t a, uint32_t b),
         (uint32_t)((a * (uint64_t)b) >> 32))

static uint32_t replace(uint32_t *p, uint32_t value)
{
	uint32_t old = *p;

	*p = value;
	return old;
}
#define ATOMIC(name, mangled, value)                                                               \
	BUILTIN(uint32_t, name, mangled, uint32_t *p, uint32_t a)                                  \
	{                                                                                          \
		return replace(p, value);                                                          \
	}
ATOMIC(k_or_global, "_Z9atomic_orPU8CLglobalVjj", *p | a)
ATOMIC(k_or_local, "_Z9atomic_orPU7CLlocalVjj", *p | a)
ATOMIC(k_add_global, "_Z10atomic_addPU8CLglobalVjj", *p + a)
ATOMIC(k_add_local, "_Z10atomic_addPU7CLlocalVjj", *p + a)
ATOMIC(k_xchg_global, "_Z11atomic_xchgPU8CLglobalVjj", a)
BUILTIN(uint32_t, k_inc_local, "_Z10atomic_incPU7CLlocalVj", uint32_t *p)
{
	return replace(p, *p + 1);
}

/* OpenCL --------------------------------------------------------------------------------------- */

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code)
{
	cl_mem memory = calloc(1, sizeof *memory);

	(void)context;
	if (!memory || !(memory->bytes = malloc(size)))
		abort();
	memory->size = size;
	if (flags & CL_MEM_COPY_HOST_PTR)
		memcpy(memory->bytes, host, size);
	else
		memset(memory->bytes, POISON, size);
	*code = CL_SUCCESS;
	return memory;
}

cl_int clReleaseMemObject(cl_mem memory)
{
	free(memory->bytes);
	free(memory);
	return CL_SUCCESS;
}

void *host_bytes(cl_mem memory)
{
	return memory->bytes;
}

unsigned growing_buffers_made(void)
{
	static unsigned made;

	return ++made; /* arguments are set each time */
}

cl_int growing_buffer_reserve(struct growing_buffer *buffer, const struct device *device,
                              uint64_t size)
{
	cl_int code;

	(void)device;
	if (size <= buffer->size)
		return CL_SUCCESS;
	growing_buffer_free(buffer);
	buffer->memory = clCreateBuffer(NULL, CL_MEM_READ_WRITE, size, NULL, &code);
	buffer->size = size;
	return code;
}

void growing_buffer_free(struct growing_buffer *buffer)
{
	if (buffer->memory)
		clReleaseMemObject(buffer->memory);
	*buffer = (struct growing_buffer){0};
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_bool wait, size_t at,
                            size_t size, const void *from, cl_uint events, const cl_event *list,
                            cl_event *event)
{
	(void)queue, (void)wait, (void)events, (void)list, (void)event;
	memcpy((uint8_t *)memory->bytes + at, from, size);
	return CL_SUCCESS;
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool wait, size_t at,
                           size_t size, void *to, cl_uint events, const cl_event *list,
                           cl_event *event)
{
	(void)queue, (void)wait, (void)events, (void)list, (void)event;
	memcpy(to, (uint8_t *)memory->bytes + at, size);
	return CL_SUCCESS;
}

cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *code)
{
	cl_kernel kernel = calloc(1, sizeof *kernel);

	(void)program;
	if (!kernel)
		abort();
	*(void **)&kernel->function = dlsym(RTLD_DEFAULT, name);
	if (!kernel->function && host_launches)
		abort();
	*code = CL_SUCCESS;
	return kernel;
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint number, size_t size, const void *value)
{
	cl_mem memory;

	if (size != sizeof memory || number >= ARGUMENTS_MAX)
		abort();
	memcpy(&memory, value, size);
	kernel->argument[number] = memory->bytes;
	return CL_SUCCESS;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint events, const cl_event *list, cl_event *event)
{
	size_t groups[3];

	(void)queue, (void)offset, (void)events, (void)list, (void)event;
	if (dimensions != 3)
		abort();
	for (int d = 0; d < 3; d++)
		groups[d] = global[d] / local[d];
	if (host_launches)
		host_run(call, kernel, groups, local);
	return CL_SUCCESS;
}

/* Stand-ins for our own modules, which would need more of OpenCL ------------------------------- */

void *object_add(enum object kind, void *object)
{
	(void)kind;
	return object;
}

void object_release(enum object kind, void *object)
{
	if (kind == OBJECT_KERNEL)
		free(object);
}

const struct device *programs_device(const struct programs *programs)
{
	(void)programs;
	return NULL;
}

cl_program programs_of_jpeg(struct programs *programs, const char *file)
{
	static int program;

	(void)programs, (void)file;
	return (cl_program)(void *)&program;
}

const char *opencl_error_name(cl_int code)
{
	(void)code;
	return "";
}

#pragma clang attribute pop
