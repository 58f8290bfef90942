/* The table of kernels, and the kernels that support a filter. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "filters/filters.h"
#include "image/image.h"

enum kernel {
#define KERNEL(symbol, ...) KERNEL_##symbol,
#include "kernels.def"
#undef KERNEL
	KERNELS
};

enum kernel_origin { KERNEL_GENERAL, KERNEL_SPECIAL, KERNEL_CLASSIC, KERNEL_CODEC };

/* The devices for which a kernel is optimised. Kernels for GPUs also run elsewhere (in tests:
 * compiling them for a CPU takes minutes), except KERNEL_FOR_ONLY_NVIDIA, which uses NVIDIA's
 * instructions (compute capability 8.0 and up). Kernels for CPUs do not, because they use
 * extensions of Clang. */
enum kernel_device {
	KERNEL_FOR_ANY,
	KERNEL_FOR_CPU,
	KERNEL_FOR_GPU,
	KERNEL_FOR_NVIDIA,
	KERNEL_FOR_ONLY_NVIDIA
};

struct kernel_row {
	const char *name;
	uint32_t
	    /* bits (1 << enum operation_kind) of the operations that it supports; 0: a helper */
	    operations;
	enum kernel_origin origin;
	enum kernel_device device;
	uint32_t types, bands; /* bits (1 << enum pixel_type), (1 << bands) */
	uint32_t radius;       /* the largest, in pixels */
	const char *text;
};

/* The row of a kernel; for a number out of range (from a message), a row named "unknown". */
const struct kernel_row *kernel_row(enum kernel kernel);
const char *kernel_name(enum kernel kernel);
/* The kernel of a name, or KERNELS. */
enum kernel kernel_parse(const char *name);

/* Any number of kernels. */
struct kernel_set {
	uint64_t words[(KERNELS + 63) / 64]; /* a bit for each */
};

void kernel_set_add(struct kernel_set *set, enum kernel kernel);
bool kernel_set_has(const struct kernel_set *set, enum kernel kernel);
bool kernel_set_equals(const struct kernel_set *a, const struct kernel_set *b);

/* The division of a launch: a work-item computes x samples (or pixels) by y rows; a group has
 * group_x by group_y work-items. All 0: undefined. */
struct shape {
	uint16_t x, y, group_x, group_y;
};
