/* A plain OpenCL host for test_classic: builds a program for each set of options once, keeps its
 * kernels, and runs them one launch at a time. Any failure ends the process with a line on standard
 * error. */
#ifndef TESTS_CLASSIC_HOST_H
#define TESTS_CLASSIC_HOST_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>

/* Opens device `device` of platform `platform`. kernel_dir: the directory kernels/ to read sources
 * from, or NULL for those in the program. */
void host_open(unsigned platform, unsigned device, const char *kernel_dir);
void host_close(void);

/* Returns the kernel of classic/FILE.cl, compiled with `options`. It stays the host's. */
cl_kernel host_kernel(const char *file, const char *name, const char *options);

/* Returns a buffer with a copy of these bytes; an image with a copy of these packed pixels of four
 * channels, or of one. Free them with clReleaseMemObject(). */
cl_mem host_buffer(const void *bytes, size_t size);
cl_mem host_image(const void *pixels, size_t width, size_t height, bool rgba, cl_channel_type type);

/* Runs the kernel with the arguments that it has, and waits. */
void host_run(cl_kernel kernel, const size_t global[2], const size_t group[2]);

void host_read(cl_mem buffer, void *bytes, size_t size);
/* Reads an image's pixels, packed. */
void host_read_image(cl_mem image, void *pixels, size_t width, size_t height);

/* Sets argument *next and counts on. */
void host_argument(cl_kernel kernel, cl_uint *next, size_t size, const void *value);

#endif
