/* Programs are cached by file and options, kernels by program and name: PoCL compiles a kernel when
 * it first runs, which is most of the test's time. */
#include "classic_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cl/source.h"

enum { KERNELS_MOST = 512, OPTIONS_SIZE = 192, SOURCES = 3 };

static struct {
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	const char *kernel_dir;
	struct entry {
		char file[32], options[OPTIONS_SIZE], name[32];
		cl_program program;
		cl_kernel kernel;
	} entries[KERNELS_MOST];
	size_t count;
} host;

static void check(cl_int code, const char *what)
{
	if (code) {
		fprintf(stderr, "%s: %d\n", what, code);
		exit(2);
	}
}

void host_open(unsigned platform, unsigned device, const char *kernel_dir)
{
	cl_platform_id platforms[16];
	cl_device_id devices[16];
	cl_uint count;
	cl_int code;

	check(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs");
	check(platform < count ? 0 : CL_INVALID_PLATFORM, "platform");
	check(clGetDeviceIDs(platforms[platform], CL_DEVICE_TYPE_ALL, 16, devices, &count),
	      "clGetDeviceIDs");
	check(device < count ? 0 : CL_INVALID_DEVICE, "device");
	host.device = devices[device];
	host.kernel_dir = kernel_dir;
	host.context = clCreateContext(NULL, 1, &host.device, NULL, NULL, &code);
	check(code, "clCreateContext");
	host.queue = clCreateCommandQueue(host.context, host.device, 0, &code);
	check(code, "clCreateCommandQueue");
}

void host_close(void)
{
	for (size_t i = 0; i < host.count; i++) {
		clReleaseKernel(host.entries[i].kernel);
		clReleaseProgram(host.entries[i].program);
	}
	clReleaseCommandQueue(host.queue);
	clReleaseContext(host.context);
}

/* Returns the text of one file of kernels/; the caller's to free. */
static char *read_source(const char *name)
{
	char path[4096], *text = NULL;
	size_t size;
	FILE *file, *memory;
	int c;

	if (!host.kernel_dir) {
		for (size_t i = 0; i < kernels_embedded_count; i++)
			if (!strcmp(kernels_embedded[i].name, name))
				return strdup(kernels_embedded[i].text);
		check(CL_INVALID_VALUE, name);
	}
	snprintf(path, sizeof path, "%s/%s", host.kernel_dir, name);
	file = fopen(path, "r");
	memory = open_memstream(&text, &size);
	check(file && memory ? 0 : CL_INVALID_VALUE, path);
	while ((c = getc(file)) != EOF)
		putc(c, memory);
	fclose(file);
	fclose(memory);
	return text;
}

static cl_program build(const char *file, const char *options)
{
	char name[64], all[OPTIONS_SIZE + 32], log[8192] = "";
	char *texts[SOURCES];
	cl_program program;
	cl_int code;

	snprintf(name, sizeof name, "classic/%s.cl", file);
	texts[0] = read_source("border.h");
	texts[1] = read_source("common.cl");
	texts[2] = read_source(name);
	program =
	    clCreateProgramWithSource(host.context, SOURCES, (const char **)texts, NULL, &code);
	check(code, "clCreateProgramWithSource");
	for (int i = 0; i < SOURCES; i++)
		free(texts[i]);
	snprintf(all, sizeof all, "-cl-std=CL1.2 %s", options);
	code = clBuildProgram(program, 1, &host.device, all, NULL, NULL);
	if (code)
		clGetProgramBuildInfo(program, host.device, CL_PROGRAM_BUILD_LOG, sizeof log, log,
		                      NULL);
	fputs(log, stderr);
	check(code, "clBuildProgram");
	return program;
}

cl_kernel host_kernel(const char *file, const char *name, const char *options)
{
	struct entry *entry = &host.entries[host.count];
	cl_program program = NULL;
	cl_int code;

	for (size_t i = 0; i < host.count; i++) {
		struct entry *e = &host.entries[i];

		if (strcmp(e->file, file) || strcmp(e->options, options))
			continue;
		if (!strcmp(e->name, name))
			return e->kernel;
		program = e->program;
	}
	check(host.count < KERNELS_MOST ? 0 : CL_OUT_OF_HOST_MEMORY, "too many kernels");
	if (program)
		clRetainProgram(program);
	else
		program = build(file, options);
	entry->program = program;
	entry->kernel = clCreateKernel(entry->program, name, &code);
	check(code, name);
	snprintf(entry->file, sizeof entry->file, "%s", file);
	snprintf(entry->options, sizeof entry->options, "%s", options);
	snprintf(entry->name, sizeof entry->name, "%s", name);
	host.count++;
	return entry->kernel;
}

cl_mem host_buffer(const void *bytes, size_t size)
{
	cl_int code;
	cl_mem buffer = clCreateBuffer(host.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size,
	                               (void *)(size_t)bytes, &code);

	check(code, "clCreateBuffer");
	return buffer;
}

cl_mem host_image(const void *pixels, size_t width, size_t height, bool rgba, cl_channel_type type)
{
	const cl_image_format format = {rgba ? CL_RGBA : CL_R, type};
	const cl_image_desc desc = {
	    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = width, .image_height = height};
	cl_int code;
	cl_mem image = clCreateImage(host.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
	                             &format, &desc, (void *)(size_t)pixels, &code);

	check(code, "clCreateImage");
	return image;
}

void host_run(cl_kernel kernel, const size_t global[2], const size_t group[2])
{
	check(clEnqueueNDRangeKernel(host.queue, kernel, 2, NULL, global, group, 0, NULL, NULL),
	      "clEnqueueNDRangeKernel");
	check(clFinish(host.queue), "clFinish");
}

void host_read(cl_mem buffer, void *bytes, size_t size)
{
	check(clEnqueueReadBuffer(host.queue, buffer, CL_TRUE, 0, size, bytes, 0, NULL, NULL),
	      "clEnqueueReadBuffer");
}

void host_read_image(cl_mem image, void *pixels, size_t width, size_t height)
{
	const size_t zero[3] = {0, 0, 0}, size[3] = {width, height, 1};

	check(
	    clEnqueueReadImage(host.queue, image, CL_TRUE, zero, size, 0, 0, pixels, 0, NULL, NULL),
	    "clEnqueueReadImage");
}

void host_argument(cl_kernel kernel, cl_uint *next, size_t size, const void *value)
{
	check(clSetKernelArg(kernel, (*next)++, size, value), "clSetKernelArg");
}
