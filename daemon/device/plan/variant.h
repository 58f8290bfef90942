/* Variants: the facts for launching a kernel, and which can do a piece of work on a device. */
#pragma once

#include "device/cl/opencl.h"
#include "filters/kernels.h"

enum { SHAPES_MAX = 6 };

/* The layout of the coefficients in a kernel's buffer. */
enum weights {
	WEIGHTS_NONE,
	WEIGHTS_PADDED, /* float: column (or matrix) between y - 1 rows of zeros; row */
	WEIGHTS_PAIRS,  /* each as two floats: leading part and remainder */
	WEIGHTS_PLAIN,  /* float: row, then column; or the matrix */
	WEIGHTS_Q16,    /* uint, units of 1/65536: row, then column; each sums to 65536 */
	WEIGHTS_HALF2,  /* uint: two equal half floats in each; order as PLAIN */
	WEIGHTS_STRIPS, /* a matrix, times 2^fixed_shift(), in bytes: gpu/matrix_fixed.cl */
};

/* Bits of what a kernel needs. */
enum {
#define NEED(symbol, text) NUMBER_OF_##symbol,
#include "device/plan/needs.def"
};
enum {
#define NEED(symbol, text) VARIANT_##symbol = 1 << NUMBER_OF_##symbol,
#include "device/plan/needs.def"
};

/* The rows of kernels.def: the columns that kernel_row() does not have. */
extern const struct variant {
	const char *file; /* below kernels/ */
	enum weights weights;
	uint32_t samples_min;           /* minimum samples per row */
	uint32_t needs;                 /* VARIANT_… */
	struct shape shape[SHAPES_MAX]; /* for the tuner; general kernels: on a CPU, elsewhere */
	const char *symbol;
} variant_rows[KERNELS];

static inline bool variant_is_general(enum kernel kernel)
{
	return kernel_row(kernel)->origin == KERNEL_GENERAL;
}

/* Rows of local memory that a work-item of VARIANT_LOCAL has for its block. */
uint32_t variant_local_rows(enum kernel kernel, struct shape shape);

/* The shape of a general kernel on a device. */
struct shape variant_general_shape(const struct device *device, enum kernel kernel);

/* The properties of a piece of work on which variants depend. */
struct work {
	const struct operation *operation; /* the caller's */
	enum pixel_type type;              /* the current samples' */
	/* the image's type, to whose full scale the operation's parameters refer */
	enum pixel_type image_type;
	uint32_t bands;
	uint32_t keep;  /* bit b: band b is unchanged */
	uint32_t alpha; /* the kernel must weight colours by the last band, alpha, or mix it */
	uint32_t width; /* the narrowest region's, in pixels */
	/* The maximum number of pixels across and down that are read at once. */
	uint32_t read_width, read_height;
};

/* True if row and column are weights of a mean: none is negative, each sum is 1, no offset. */
bool work_is_mean(const struct operation *operation);

/* True if the kernel must weight by alpha: bilateral, or where floats are too inexact for it. */
bool variant_weights_by_alpha(const struct operation *operation, enum pixel_type image_type);

/* True if the kernel can do the work on this device, exactly enough. A kernel made for another kind
 * of device only counts if a request names it (asked_for). */
bool variant_applies(enum kernel kernel, const struct work *work, const struct device *device,
                     bool asked_for);

/* Returns the pixels that a group of resize_ring makes across; 0: too few, or it does not apply. */
uint32_t variant_resize_pixels(const struct operation *operation, uint32_t bands, uint32_t group_x);

/* Returns the most local memory that a kernel's group declares; VARIANT_LOCAL gets it at launch. */
uint64_t variant_local_bytes(enum kernel kernel, const struct shape *shape, enum pixel_type type,
                             uint32_t radius_x, uint32_t radius_y, uint32_t bands);

/* Lists an applicable kernel's shapes, the table's choice first. Returns their number. */
uint32_t variant_shapes(enum kernel kernel, const struct work *work, const struct device *device,
                        struct shape shapes[SHAPES_MAX]);

/* Chooses kernel and shape for a piece of work. On entry they are the general ones, or KERNELS if
 * an operation has none. They may stay so, since there are kernels for its parts. */
typedef void variant_chooser(void *user, const struct work *work, enum kernel *kernel,
                             struct shape *shape);

/* Returns the table's choice: the first special kernel for device and work, else the general. */
void variant_choose_by_table(const struct device *device, const struct work *work,
                             enum kernel *kernel, struct shape *shape);

/* Returns the general kernel for some work; KERNELS if there are kernels for its parts alone. */
enum kernel variant_general_kernel(const struct device *device, const struct work *work);

/* Describes a kernel and its requirements: "NAME (TEXT), which needs …". */
void variant_describe(enum kernel kernel, char *text, size_t size);
