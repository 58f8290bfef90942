/* Programs: the kernels' sources, compiled for each pixel type. */
#ifndef DEVICE_PROGRAM_H
#define DEVICE_PROGRAM_H

#include <stddef.h>

#include "common/error.h"
#include "common/image.h"
#include "common/wire.h"
#include "device/opencl.h"

/* One file of kernels/, as kernels/embed.sh puts it into the program. */
struct kernel_source {
	const char *name;
	const char *text;
};

extern const struct kernel_source kernels_embedded[];
extern const size_t kernels_embedded_count;

/* Rows of a work-item's block, where kernels and host must agree; passed to the compiler. */
enum { MATRIX_ROWS = 4, GRADIENT_ROWS = 8 };

struct programs {
	const struct device *device;
	uint32_t separable_rows; /* as MATRIX_ROWS, but limited by the device's local memory */
	cl_program program[PIXEL_TYPES];
	cl_kernel kernel[PIXEL_TYPES][KERNELS];
	uint32_t builds; /* programs built */
};

/* Builds all kernels for all types. kernel_dir: a folder to read the sources from instead of those
 * in the program, or NULL. The device must outlive them. On failure ERR_DEVICE (or ERR_IO,
 * ERR_MEMORY), the compiler's log in the log, and nothing to free. */
enum error programs_build(struct programs *programs, const struct device *device,
                          const char *kernel_dir) MUST_CHECK;
void programs_free(struct programs *programs);

#endif
