/* Variants: what the host must know to launch a kernel, and which of them can do a given piece of
 * work on a given device. */
#ifndef DEVICE_PLAN_VARIANT_H
#define DEVICE_PLAN_VARIANT_H

#include "common/kernels.h"
#include "device/cl/opencl.h"

/* How a launch is cut: a work-item makes x samples (or pixels) by y rows, a group
 * is group_x by group_y work-items. All 0: none. */
struct shape {
	uint16_t x, y, group_x, group_y;
};

enum { SHAPES_MAX = 6 };

/* How the coefficients lie in a kernel's buffer. */
enum weights {
	WEIGHTS_NONE,
	WEIGHTS_PADDED, /* float, the column (or matrix) between y - 1 rows of zeros, the row */
	WEIGHTS_PAIRS,  /* leading part and remainder of each, as floats */
	WEIGHTS_PLAIN,  /* float: row, then column; or the matrix */
	WEIGHTS_Q16,    /* uint, in 1/65536: row, then column; each sums to 65536 */
	WEIGHTS_HALF2,  /* uint: each as two equal half floats in one word; order as PLAIN */
};

/* What a kernel needs of the host or of its work. */
enum {
	VARIANT_PIXELS = 1,        /* a work-item makes pixels, not samples, across */
	VARIANT_IMAGE = 2,         /* reads an image object */
	VARIANT_ONLY_3X3 = 4,      /* neither less nor more */
	VARIANT_MEAN = 8,          /* separable: no weight negative, their sum 1, no offset */
	VARIANT_EXACT = 16,        /* sums of halves that half_error.h finds exact enough */
	VARIANT_WHOLE_SMOOTH = 32, /* gradient: small whole weights, no direction */
	VARIANT_MAGNITUDE = 64,    /* gradient: no other output */
	VARIANT_NO_KEEP = 128,     /* bilateral: all bands of colour are changed */
	VARIANT_LOCAL = 256,       /* local memory for its rows with their reach */
};

/* Rows: kernels.def, of which these are the columns that the host needs beyond kernel_row(). */
struct variant {
	const char *file; /* below kernels/ */
	enum weights weights;
	uint32_t samples_min;           /* of a row */
	uint32_t needs;                 /* VARIANT_… */
	struct shape shape[SHAPES_MAX]; /* that the tuner tries; general: on a CPU, elsewhere */
	const char *symbol;
};

const struct variant *variant_get(enum kernel kernel);

/* The shape of a general kernel on a device. */
struct shape variant_general_shape(const struct device *device, enum kernel kernel);

/* A piece of work, in so far as variants differ in it. */
struct work {
	const struct operation *operation; /* the caller's */
	enum pixel_type type;              /* of the samples now */
	enum pixel_type image_type;        /* whose full scale the operation's numbers are of */
	uint32_t bands;
	uint32_t keep;  /* bit b: band b is not changed */
	uint32_t alpha; /* the last band is alpha, and weights the others: in the kernel */
	uint32_t width; /* pixels of the narrowest region */
};

/* True if row and column are weights of a mean. */
bool work_is_mean(const struct operation *operation);

/* True if alpha's weighting is the kernel's own: bilateral, and sums so large that colour
 * multiplied by alpha beforehand, in float, would be too far off. */
bool variant_weights_by_alpha(const struct operation *operation, enum pixel_type image_type);

/* True if the kernel does the work, exactly enough, on this device. A kernel shaped for another
 * kind of device counts only if it was asked for. */
bool variant_applies(enum kernel kernel, const struct work *work, const struct device *device,
                     bool asked_for);

/* The shapes in which a kernel that applies can do the work, the best by table first. Returns how
 * many, at least 1. */
uint32_t variant_shapes(enum kernel kernel, const struct work *work, const struct device *device,
                        struct shape shapes[SHAPES_MAX]);

/* Chooses the kernel and shape for a piece of work, where several can do it. Before, they are the
 * general ones. */
typedef void variant_chooser(void *user, const struct work *work, enum kernel *kernel,
                             struct shape *shape);

/* A variant_chooser that leaves each piece of work to the general kernel. */
void variant_choose_general(void *user, const struct work *work, enum kernel *kernel,
                            struct shape *shape);

/* The kernel by table: the first that was made for this kind of device and work, else the general
 * one that applies. */
void variant_choose_by_table(const struct device *device, const struct work *work,
                             enum kernel *kernel, struct shape *shape);

/* The general kernel that does a piece of work; there is always one. */
enum kernel variant_general_kernel(const struct device *device, const struct work *work);

/* Says what a kernel is and what it needs: "NAME (TEXT), which needs …". */
void variant_describe(enum kernel kernel, char *text, size_t size);

#endif
