#include "device/cl/opencl.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>

#include "base/log.h"

enum { PLATFORMS_MAX = 16, DEVICES_MAX = 64 };

static const struct code {
	cl_int code;
	const char *name;
	bool fatal;
} codes[] = {
    {CL_SUCCESS, "CL_SUCCESS", false},
    {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND", false},
    {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE", true},
    {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE", false},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE", false},
    {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES", true},
    {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY", false},
    {CL_PROFILING_INFO_NOT_AVAILABLE, "CL_PROFILING_INFO_NOT_AVAILABLE", false},
    {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE", false},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
     true},
    {CL_INVALID_VALUE, "CL_INVALID_VALUE", false},
    {CL_INVALID_DEVICE, "CL_INVALID_DEVICE", true},
    {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT", true},
    {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE", true},
    {CL_INVALID_HOST_PTR, "CL_INVALID_HOST_PTR", false},
    {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT", false},
    {CL_IMAGE_FORMAT_NOT_SUPPORTED, "CL_IMAGE_FORMAT_NOT_SUPPORTED", false},
    {CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR", false},
    {CL_INVALID_IMAGE_SIZE, "CL_INVALID_IMAGE_SIZE", false},
    {CL_INVALID_IMAGE_DESCRIPTOR, "CL_INVALID_IMAGE_DESCRIPTOR", false},
    {CL_INVALID_PROGRAM_EXECUTABLE, "CL_INVALID_PROGRAM_EXECUTABLE", false},
    {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME", false},
    {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX", false},
    {CL_INVALID_ARG_VALUE, "CL_INVALID_ARG_VALUE", false},
    {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE", false},
    {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS", false},
    {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE", false},
    {CL_INVALID_WORK_ITEM_SIZE, "CL_INVALID_WORK_ITEM_SIZE", false},
    {CL_INVALID_EVENT, "CL_INVALID_EVENT", false},
    {CL_INVALID_OPERATION, "CL_INVALID_OPERATION", false},
    {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE", false},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR", false},
};

/* Codes outside the standard are fatal. */
static struct code find_code(cl_int code)
{
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].code == code)
			return codes[i];
	return (struct code){code, "unknown OpenCL error", true};
}

const char *opencl_error_name(cl_int code)
{
	return find_code(code).name;
}

bool opencl_error_fatal(cl_int code)
{
	return find_code(code).fatal;
}

static cl_uint list_platforms(cl_platform_id platforms[PLATFORMS_MAX])
{
	cl_uint count = 0;

	return clGetPlatformIDs(PLATFORMS_MAX, platforms, &count) ? 0 : MIN(count, PLATFORMS_MAX);
}

static cl_uint list_devices(cl_platform_id platform, cl_device_id devices[DEVICES_MAX])
{
	cl_uint count = 0;

	if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &count))
		return 0;
	return MIN(count, DEVICES_MAX);
}

/* Queries a string of a device, truncated to fit. */
static void device_text(cl_device_id id, cl_device_info what, char *text, size_t size)
{
	char whole[1024] = "";

	clGetDeviceInfo(id, what, sizeof whole - 1, whole, NULL);
	snprintf(text, size, "%.*s", (int)size - 1, whole);
}

static void platform_text(cl_platform_id id, char *text, size_t size)
{
	char whole[1024] = "";

	clGetPlatformInfo(id, CL_PLATFORM_NAME, sizeof whole - 1, whole, NULL);
	snprintf(text, size, "%.*s", (int)size - 1, whole);
}

static enum device_type device_type(cl_device_id id)
{
	cl_device_type type = 0;

	clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
	if (type & CL_DEVICE_TYPE_CPU)
		return DEVICE_CPU;
	return type & CL_DEVICE_TYPE_GPU ? DEVICE_GPU : DEVICE_ACCELERATOR;
}

size_t device_list(struct message_device *list, size_t room)
{
	cl_platform_id platforms[PLATFORMS_MAX];
	cl_device_id devices[DEVICES_MAX];
	cl_uint platform_count = list_platforms(platforms);
	size_t used = 0;

	for (cl_uint p = 0; p < platform_count; p++) {
		cl_uint count = list_devices(platforms[p], devices);

		for (cl_uint d = 0; d < count && used < room; d++) {
			struct message_device *entry = &list[used++];

			*entry = (struct message_device){.platform = p, .device = d};
			entry->type = device_type(devices[d]);
			device_text(devices[d], CL_DEVICE_NAME, entry->name, sizeof entry->name);
			platform_text(platforms[p], entry->platform_name,
			              sizeof entry->platform_name);
		}
	}
	return used;
}

cl_image_format device_image_format(uint32_t bands, enum pixel_type type, bool shares)
{
	static const cl_channel_type types[2][PIXEL_TYPES] = {
	    {CL_UNSIGNED_INT8, CL_UNSIGNED_INT16, CL_FLOAT},
	    {CL_UNORM_INT8, CL_UNORM_INT16, CL_FLOAT}};

	return (cl_image_format){bands == 4 ? CL_RGBA : CL_R, types[shares][type]};
}

/* Records which image objects are supported with these flags: of integers as such, or of shares. */
static void list_images(const struct device *device, cl_mem_flags flags, bool shares,
                        uint32_t bands_of[PIXEL_TYPES])
{
	cl_image_format formats[256];
	cl_uint count = 0;

	if (clGetSupportedImageFormats(device->context, flags, CL_MEM_OBJECT_IMAGE2D, 256, formats,
	                               &count))
		return;
	for (cl_uint i = 0; i < count && i < 256; i++)
		for (enum pixel_type type = 0; type < PIXEL_TYPES; type++)
			for (uint32_t bands = 1; bands <= 4; bands += 3) {
				cl_image_format format = device_image_format(bands, type, shares);

				if (!memcmp(&format, &formats[i], sizeof format))
					bands_of[type] |= 1u << bands;
			}
}

static void device_describe(struct device *device, cl_platform_id platform)
{
	enum { COMPUTE_CAPABILITY_MAJOR_NV = 0x4000 }; /* cl_nv_device_attribute_query */
	char platform_name[40], version[40];
	cl_uint capability = 0; /* none elsewhere */
	cl_device_fp_config fp = 0;
	size_t sides[16] = {0}; /* there are at least three dimensions */
	const struct {
		cl_device_info what;
		size_t size;
		void *to; /* stays as it is if the device does not know */
	} rows[] = {
	    {CL_DEVICE_MAX_COMPUTE_UNITS, sizeof device->units, &device->units},
	    {CL_DEVICE_GLOBAL_MEM_SIZE, sizeof device->memory, &device->memory},
	    {CL_DEVICE_LOCAL_MEM_SIZE, sizeof device->local_memory, &device->local_memory},
	    {CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof device->group_max, &device->group_max},
	    {CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sides, sides},
	    {CL_DEVICE_SINGLE_FP_CONFIG, sizeof fp, &fp},
	    {CL_DEVICE_IMAGE2D_MAX_WIDTH, sizeof device->image_width, &device->image_width},
	    {CL_DEVICE_IMAGE2D_MAX_HEIGHT, sizeof device->image_height, &device->image_height},
	    {COMPUTE_CAPABILITY_MAJOR_NV, sizeof capability, &capability},
	};
	cpu_set_t processors[64]; /* the kernel refuses less than it has */

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		clGetDeviceInfo(device->id, rows[i].what, rows[i].size, rows[i].to, NULL);
	device->type = device_type(device->id);
	device->in_place = device->type == DEVICE_CPU;
	memcpy(device->group_sides, sides, sizeof device->group_sides);
	device->rounds_exactly = fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
	device_text(device->id, CL_DEVICE_NAME, device->name, sizeof device->name);
	device_text(device->id, CL_DRIVER_VERSION, version, sizeof version);
	platform_text(platform, platform_name, sizeof platform_name);
	device->nvidia = !strncmp(platform_name, "NVIDIA", 6) && capability >= 8;
	device->pocl = !strcmp(platform_name, "Portable Computing Language");
	/* PoCL's driver without threads counts one unit. */
	device->serial = device->pocl && (!strncmp(device->name, "basic-", 6) ||
	                                  !strncmp(device->name, "cpu-minimal-", 12));
	if (device->serial && !sched_getaffinity(0, sizeof processors, processors))
		device->units = (uint32_t)CPU_COUNT_S(sizeof processors, processors);
	snprintf(device->driver, sizeof device->driver, "%.31s %.31s", platform_name, version);
}

/* Logs what the driver reports about the context. The driver calls it from threads of its own. */
static void CL_CALLBACK context_notify(const char *text, const void *, size_t, void *)
{
	log_warning("driver: %s", text);
}

enum error device_open(struct device *device, unsigned platform, unsigned index)
{
	cl_platform_id platforms[PLATFORMS_MAX];
	cl_device_id devices[DEVICES_MAX];
	cl_bool images = CL_FALSE;
	cl_int code;

	*device = (struct device){0};
	if (platform >= list_platforms(platforms) ||
	    index >= list_devices(platforms[platform], devices)) {
		log_error("no OpenCL device %u on platform %u", index, platform);
		return ERR_NO_DEVICE;
	}
	device->platform = platform;
	device->index = index;
	device->id = devices[index];
	device_describe(device, platforms[platform]);
	device->context = object_add(
	    OBJECT_CONTEXT, clCreateContext(NULL, 1, &device->id, context_notify, NULL, &code));
	if (code) {
		log_error("cannot open %s: %s", device->name, opencl_error_name(code));
		return ERR_NO_DEVICE;
	}
	clGetDeviceInfo(device->id, CL_DEVICE_IMAGE_SUPPORT, sizeof images, &images, NULL);
	if (!images)
		return ERR_OK;
	list_images(device, CL_MEM_READ_ONLY, false, device->image_bands);
	list_images(device, CL_MEM_READ_WRITE, true, device->share_bands);
	return ERR_OK;
}

void device_close(struct device *device)
{
	object_release(OBJECT_CONTEXT, device->context);
	*device = (struct device){0};
}

cl_command_queue device_queue(const struct device *device, cl_command_queue_properties properties)
{
	cl_int code;
	cl_command_queue queue =
	    clCreateCommandQueue(device->context, device->id, properties, &code);

	if (code)
		log_error("cannot create a command queue: %s", opencl_error_name(code));
	return object_add(OBJECT_QUEUE, queue);
}

cl_int opencl_time_between(cl_event first, cl_event last, uint64_t *ns)
{
	cl_ulong start = 0, end = 0;
	cl_int code =
	    clGetEventProfilingInfo(first, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);

	if (!code)
		code =
		    clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
	if (!code && end < start)
		code = CL_PROFILING_INFO_NOT_AVAILABLE;
	*ns = code ? 0 : end - start;
	return code;
}

/* ---- counts of live objects; objects.def says how each kind is released ---- */

enum owner { LIFE, REQUEST };

/* Release functions have different types, so each of them is wrapped. */
#define OBJECT(symbol, name, release, owner)                                                       \
	static void release_##symbol(void *object)                                                 \
	{                                                                                          \
		release(object);                                                                   \
	}
#include "wire/objects.def"
#undef OBJECT

static const struct {
	void (*release)(void *object);
	enum owner owner;
} rows[OBJECTS] = {
#define OBJECT(symbol, name, release, owner) {release_##symbol, owner},
#include "wire/objects.def"
#undef OBJECT
};

static _Atomic uint32_t live[OBJECTS];

void *object_add(enum object kind, void *object)
{
	if (object)
		live[kind]++;
	return object;
}

void object_release(enum object kind, void *object)
{
	if (!object)
		return;
	rows[kind].release(object);
	live[kind]--;
}

bool object_counts_get(struct message_objects *count)
{
	uint32_t passing = 0;

	for (enum object kind = 0; kind < OBJECTS; kind++) {
		count->live[kind] = live[kind];
		passing += rows[kind].owner == REQUEST ? count->live[kind] : 0;
	}
	return !passing;
}

/* ---- memory ---- */

cl_mem device_buffer(const struct device *device, cl_mem_flags flags, uint64_t size, void *memory,
                     cl_int *code)
{
	return object_add(OBJECT_BUFFER,
	                  clCreateBuffer(device->context, flags, size, memory, code));
}

enum error device_arena_open(struct device_arena *arena, const struct device *device, int in_fd,
                             uint64_t in_size, int out_fd, uint64_t out_size)
{
	int in_protection = device->in_place ? PROT_READ : PROT_READ | PROT_WRITE;
	struct arena *memory = &arena->memory;
	cl_int code;

	*arena = (struct device_arena){0};
	if (arena_map(memory, in_fd, in_size, in_protection, out_fd, out_size,
	              PROT_READ | PROT_WRITE)) {
		log_error("cannot map an arena: %s", strerror(errno));
		return ERR_IO;
	}
	arena->in = device_buffer(device, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, in_size,
	                          memory->in, &code);
	if (!code)
		arena->out = device_buffer(device, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
		                           out_size, memory->out, &code);
	if (!code)
		return ERR_OK;
	log_error("cannot register an arena of %" PRIu64 " bytes: %s", in_size + out_size,
	          opencl_error_name(code));
	device_arena_close(arena);
	return ERR_DEVICE;
}

void device_arena_close(struct device_arena *arena)
{
	object_release(OBJECT_BUFFER, arena->in);
	object_release(OBJECT_BUFFER, arena->out);
	arena_unmap(&arena->memory);
	*arena = (struct device_arena){0};
}

static unsigned buffers_made;

unsigned growing_buffers_made(void)
{
	return buffers_made;
}

cl_int growing_buffer_reserve(struct growing_buffer *buffer, const struct device *device,
                              uint64_t size)
{
	enum { POISON = 0xFF };
	void *poison = NULL;
	cl_int code;

	if (size <= buffer->size)
		return CL_SUCCESS;
	growing_buffer_free(buffer);
	size += size / 8; /* spare room: tiles of one job differ slightly in size */
	if (device->in_test) {
		poison = malloc(size);
		if (!poison)
			return CL_OUT_OF_HOST_MEMORY;
		memset(poison, POISON, size);
	}
	buffer->memory = device_buffer(
	    device, CL_MEM_READ_WRITE | (poison ? CL_MEM_COPY_HOST_PTR : 0), size, poison, &code);
	free(poison);
	buffer->size = code ? 0 : size;
	buffers_made++;
	return code;
}

void growing_buffer_free(struct growing_buffer *buffer)
{
	object_release(OBJECT_BUFFER, buffer->memory);
	*buffer = (struct growing_buffer){0};
}
