/* An OpenCL layer that breaks one call, for tests: the loader puts it between a device worker and
 * the driver (OPENCL_LAYERS).
 *
 * CONVOLVED_FAULT names a file that may come and go while the service runs. With ".N" at its end it
 * is for the workers of device N, and says
 *
 * 	FUNCTION NTH ACTION [keep]
 *
 * FUNCTION may be `any`. ACTION is the effect of the NTH call from now on: an error code that it
 * returns; `lost` (it and all later calls return CL_OUT_OF_RESOURCES), `hang`, `abort`; `slow` (it
 * works for some seconds first); `late` (it sleeps for 3.4 s first, as long as an H200's driver
 * takes to start); `endless` (no command ends any more), `spin` (the same, and a thread computes
 * for ever); or `flip`: one bit of the result of a kernel or of a read is another. The file is gone
 * when it has happened, unless it says `keep`.
 *
 * With CONVOLVED_FAULT_GPU set, devices say that they are GPUs, which share the host's memory:
 * tiles are copied all the same.
 *
 * CONVOLVED_FAULT_LIMITS are maxima that devices seem to have, as "group=32 local=8192 image=64":
 * work-items of a group, bytes of local memory, pixels of an image object across and down (0: there
 * are none, and compilers do not know them). Calls beyond them fail as OpenCL says.
 *
 * All arguments are integers and pointers. In the ABIs of Linux each takes a word wherever it
 * travels, and words more than a function has do no harm: so every wrapper has the same type. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl_layer.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* All that a device worker calls: FUNCTION(name, which argument points to the code, or NONE). */
#define FUNCTIONS                                                                                  \
	FUNCTION(clBuildProgram, NONE)                                                             \
	FUNCTION(clCreateBuffer, 4)                                                                \
	FUNCTION(clCreateCommandQueue, 3)                                                          \
	FUNCTION(clCreateContext, 5)                                                               \
	FUNCTION(clCreateImage, 5)                                                                 \
	FUNCTION(clCreateKernel, 2)                                                                \
	FUNCTION(clCreateProgramWithBinary, 6)                                                     \
	FUNCTION(clCreateProgramWithSource, 4)                                                     \
	FUNCTION(clEnqueueCopyBuffer, NONE)                                                        \
	FUNCTION(clEnqueueCopyBufferRect, NONE)                                                    \
	FUNCTION(clEnqueueCopyBufferToImage, NONE)                                                 \
	FUNCTION(clEnqueueCopyImageToBuffer, NONE)                                                 \
	FUNCTION(clEnqueueFillBuffer, NONE)                                                        \
	FUNCTION(clEnqueueMarkerWithWaitList, NONE)                                                \
	FUNCTION(clEnqueueNDRangeKernel, NONE)                                                     \
	FUNCTION(clEnqueueReadBuffer, NONE)                                                        \
	FUNCTION(clEnqueueReadBufferRect, NONE)                                                    \
	FUNCTION(clEnqueueWriteBuffer, NONE)                                                       \
	FUNCTION(clEnqueueWriteBufferRect, NONE)                                                   \
	FUNCTION(clFinish, NONE)                                                                   \
	FUNCTION(clFlush, NONE)                                                                    \
	FUNCTION(clGetDeviceIDs, NONE)                                                             \
	FUNCTION(clGetDeviceInfo, NONE)                                                            \
	FUNCTION(clGetEventInfo, NONE)                                                             \
	FUNCTION(clGetEventProfilingInfo, NONE)                                                    \
	FUNCTION(clGetKernelInfo, NONE)                                                            \
	FUNCTION(clGetPlatformIDs, NONE)                                                           \
	FUNCTION(clGetPlatformInfo, NONE)                                                          \
	FUNCTION(clGetProgramBuildInfo, NONE)                                                      \
	FUNCTION(clGetProgramInfo, NONE)                                                           \
	FUNCTION(clGetSupportedImageFormats, NONE)                                                 \
	FUNCTION(clReleaseCommandQueue, NONE)                                                      \
	FUNCTION(clReleaseContext, NONE)                                                           \
	FUNCTION(clReleaseEvent, NONE)                                                             \
	FUNCTION(clReleaseKernel, NONE)                                                            \
	FUNCTION(clReleaseMemObject, NONE)                                                         \
	FUNCTION(clReleaseProgram, NONE)                                                           \
	FUNCTION(clRetainKernel, NONE)                                                             \
	FUNCTION(clRetainMemObject, NONE)                                                          \
	FUNCTION(clSetKernelArg, NONE)

enum { NONE = -1, WORDS = 14, RESULTS_MAX = 128 };

enum function {
#define FUNCTION(name, code) AT_##name,
	FUNCTIONS
#undef FUNCTION
};

typedef intptr_t word;
typedef word (*any_function)(word, word, word, word, word, word, word, word, word, word, word, word,
                             word, word);

static struct _cl_icd_dispatch driver, layer;
static char file[4096]; /* empty: this process is not to be disturbed */
static atomic_int calls, lost, endless;

/* The memory that results go to: that of arenas; and where the next launch of a thread will write
 * in it, or NULL. */
static struct {
	word memory;
	char *host;
} results[RESULTS_MAX];
static int result_count;
static pthread_mutex_t results_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local char *next_host, *next_result;

/* Reads the file's word on a function: true if now is the time. */
static bool is_due(const char *name, const char *result, char action[16])
{
	char function[64], keep[8] = "";
	int nth, fields;
	FILE *f = *file ? fopen(file, "re") : NULL;

	if (!f)
		return false;
	fields = fscanf(f, "%63s %d %15s %7s", function, &nth, action, keep);
	fclose(f);
	if (fields < 3 || (strcmp(function, name) && strcmp(function, "any")) ||
	    (!strcmp(action, "flip") && !result))
		return false;
	if (atomic_fetch_add(&calls, 1) + 1 < nth)
		return false;
	calls = 0;
	return *keep || !unlink(file);
}

static void *spin(void *unused)
{
	for (;;)
		;
	return unused;
}

/* Returns the code to return at once; 0: the call is to be made. */
static int disturb(const char *name, const char *result, bool *flip)
{
	char action[16];
	pthread_t thread;

	if (lost || !is_due(name, result, action))
		return lost;
	fprintf(stderr, "<4>layer: %s: %s\n", name, action);
	if (!strcmp(action, "hang"))
		for (;;)
			pause();
	if (!strcmp(action, "abort"))
		abort();
	if (!strcmp(action, "slow"))
		for (time_t ends = time(NULL) + 4; time(NULL) < ends;)
			;
	if (!strcmp(action, "late"))
		usleep(3400000);
	if (!strcmp(action, "endless") || !strcmp(action, "spin"))
		endless = true;
	if (!strcmp(action, "spin") && !pthread_create(&thread, NULL, spin, NULL))
		pthread_detach(thread);
	if (!strcmp(action, "lost"))
		lost = CL_OUT_OF_RESOURCES;
	*flip = !strcmp(action, "flip");
	return lost ? lost : atoi(action);
}

/* Returns the place where this call writes a result, or NULL. */
static char *result_of(enum function f, const word *a)
{
	char *result = next_result;

	if (f == AT_clEnqueueReadBufferRect)
		return (char *)a[10];
	if (f != AT_clEnqueueNDRangeKernel)
		return NULL;
	next_result = NULL;
	return result;
}

static void know_memory(word memory, char *host)
{
	pthread_mutex_lock(&results_lock);
	if (result_count < RESULTS_MAX) {
		results[result_count].host = host;
		results[result_count++].memory = memory;
	}
	pthread_mutex_unlock(&results_lock);
}

static void forget_memory(word memory)
{
	pthread_mutex_lock(&results_lock);
	for (int i = 0; i < result_count; i++)
		if (results[i].memory == memory)
			results[i] = results[--result_count];
	pthread_mutex_unlock(&results_lock);
}

/* A kernel's memory is an argument, followed by an offset. */
static void know_argument(word value)
{
	if (next_host)
		next_result = next_host + value;
	next_host = NULL;
	pthread_mutex_lock(&results_lock);
	for (int i = 0; i < result_count; i++)
		if (results[i].memory == value)
			next_host = results[i].host;
	pthread_mutex_unlock(&results_lock);
}

static void pretend(word what, word value)
{
	if (what == CL_DEVICE_TYPE)
		*(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
	if (what == CL_DEVICE_HOST_UNIFIED_MEMORY)
		*(cl_bool *)value = CL_TRUE;
}

/* A limit of CONVOLVED_FAULT_LIMITS; NO_LIMIT if it is not there. */
enum { NO_LIMIT = 1 << 30 };

static size_t limit(const char *name)
{
	const char *limits = getenv("CONVOLVED_FAULT_LIMITS"),
	           *at = limits ? strstr(limits, name) : NULL;

	return at ? strtoul(at + strlen(name) + 1, NULL, 10) : NO_LIMIT;
}

static void lower(size_t *value, size_t most)
{
	if (*value > most)
		*value = most;
}

/* Changes a device's description of itself, down to its limits. */
static void pretend_limits(word what, word value)
{
	size_t *sizes = (size_t *)value;

	if (what == CL_DEVICE_MAX_WORK_GROUP_SIZE)
		lower(sizes, limit("group"));
	for (int i = 0; what == CL_DEVICE_MAX_WORK_ITEM_SIZES && i < 3; i++)
		lower(&sizes[i], limit("group"));
	if (what == CL_DEVICE_LOCAL_MEM_SIZE && *(cl_ulong *)value > limit("local"))
		*(cl_ulong *)value = limit("local");
	if (what == CL_DEVICE_IMAGE2D_MAX_WIDTH || what == CL_DEVICE_IMAGE2D_MAX_HEIGHT)
		lower(sizes, limit("image"));
	if (what == CL_DEVICE_IMAGE_SUPPORT && !limit("image"))
		*(cl_bool *)value = CL_FALSE;
}

/* Returns the code of a call beyond the limits, or 0. */
static int exceeds(enum function f, const word *a)
{
	const cl_image_desc *image = f == AT_clCreateImage ? (const cl_image_desc *)a[3] : NULL;
	const size_t *group = f == AT_clEnqueueNDRangeKernel ? (const size_t *)a[5] : NULL;
	size_t items = 1;
	cl_ulong local = 0;
	cl_device_id device;

	if (image && (image->image_width > limit("image") || image->image_height > limit("image")))
		return limit("image") ? CL_INVALID_IMAGE_SIZE : CL_INVALID_OPERATION;
	if (!group)
		return 0;
	for (word i = 0; i < a[2]; i++)
		items *= group[i];
	if (items > limit("group"))
		return CL_INVALID_WORK_GROUP_SIZE;
	if (!driver.clGetCommandQueueInfo((cl_command_queue)a[0], CL_QUEUE_DEVICE, sizeof device,
	                                  &device, NULL))
		driver.clGetKernelWorkGroupInfo((cl_kernel)a[1], device, CL_KERNEL_LOCAL_MEM_SIZE,
		                                sizeof local, &local, NULL);
	return local > limit("local") ? CL_OUT_OF_RESOURCES : 0;
}

/* After a call that went well. */
static void look(enum function f, const word *a, word returned)
{
	const word shared = CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE;
	word value;

	if (f == AT_clCreateBuffer && (a[1] & shared) == shared)
		know_memory(returned, (char *)a[3]);
	while (f == AT_clFinish && endless)
		pause();
	if (f == AT_clGetEventInfo && endless && a[1] == CL_EVENT_COMMAND_EXECUTION_STATUS)
		*(cl_int *)a[3] = CL_RUNNING;
	if (f == AT_clReleaseMemObject)
		forget_memory(a[0]);
	if (f == AT_clGetDeviceInfo && a[3] && getenv("CONVOLVED_FAULT_GPU"))
		pretend(a[1], a[3]);
	if (f == AT_clGetDeviceInfo && a[3])
		pretend_limits(a[1], a[3]);
	if (f == AT_clSetKernelArg && a[2] == sizeof value && a[3]) {
		memcpy(&value, (const void *)a[3], sizeof value);
		know_argument(value);
	}
}

/* A program's source for a compiler that does not know image objects. */
static void hide_images(word *a, const char *texts[2])
{
	texts[0] = "#undef __IMAGE_SUPPORT__\n";
	texts[1] = *(const char *const *)a[2];
	a[1] = 2;
	a[2] = (word)texts;
}

static word call(enum function f, const char *name, int code_at, any_function real, word *a)
{
	char *result = result_of(f, a);
	const char *texts[2];
	bool flip = false;
	int code = disturb(name, result, &flip);
	word returned;

	if (!code)
		code = exceeds(f, a);
	if (code && code_at == NONE)
		return code;
	if (code) {
		if (a[code_at])
			*(cl_int *)a[code_at] = code;
		return 0;
	}
	if (f == AT_clCreateProgramWithSource && !limit("image"))
		hide_images(a, texts);
	returned = real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
	                a[12], a[13]);
	look(f, a, returned);
	if (flip) {
		driver.clFinish((cl_command_queue)a[0]);
		*result ^= 0x40;
	}
	return returned;
}

#define FUNCTION(name, code)                                                                       \
	static word wrap_##name(word a, word b, word c, word d, word e, word f, word g, word h,    \
	                        word i, word j, word k, word l, word m, word n)                    \
	{                                                                                          \
		word all[WORDS] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n};                      \
                                                                                                   \
		return call(AT_##name, #name, code, (any_function)(void (*)(void))driver.name,     \
		            all);                                                                  \
	}
FUNCTIONS
#undef FUNCTION

/* Which device this process is for: a worker's name has its number, as a compiler's --device. */
static void choose_file(void)
{
	const char *path = getenv("CONVOLVED_FAULT");
	char line[8192];
	FILE *f = fopen("/proc/self/cmdline", "re");
	size_t length = f ? fread(line, 1, sizeof line - 1, f) : 0;

	if (f)
		fclose(f);
	line[length] = '\0';
	for (size_t at = 0; path && at < length; at += strlen(line + at) + 1)
		if (!strncmp(line + at, "device-", 7) || !strcmp(line + at, "--device"))
			snprintf(file, sizeof file, "%.4000s.%.8s", path,
			         line + at + (line[at] == '-' ? 9 : 7));
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value,
                                               size_t *size_ret)
{
	if (what != CL_LAYER_API_VERSION)
		return CL_INVALID_VALUE;
	if (value && size >= sizeof(cl_layer_api_version))
		*(cl_layer_api_version *)value = CL_LAYER_API_VERSION_100;
	if (size_ret)
		*size_ret = sizeof(cl_layer_api_version);
	return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target,
                                            cl_uint *entries_ret, const cl_icd_dispatch **dispatch)
{
	if (entries < sizeof layer / sizeof(void *))
		return CL_INVALID_VALUE;
	choose_file();
	driver = layer = *target;
#define FUNCTION(name, code) layer.name = (__typeof__(layer.name))(void (*)(void))wrap_##name;
	FUNCTIONS
#undef FUNCTION
	*entries_ret = sizeof layer / sizeof(void *);
	*dispatch = &layer;
	return CL_SUCCESS;
}
