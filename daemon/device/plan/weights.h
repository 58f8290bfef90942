/* Coefficients in the formats that kernels take. */
#pragma once

#include "device/plan/variant.h"
#include "filters/chain_size.h"

/* Makes a device buffer with an operation's coefficients in a format, or with its plane: bits or
 * tables. rows: those of a work-item, for WEIGHTS_PADDED. as_matrix: write a separable operation as
 * a matrix. The caller releases *buffer; NULL for WEIGHTS_NONE. ERR_MEMORY or ERR_DEVICE. */
enum error weights_new(const struct device *device, const struct operation *operation,
                       enum weights format, bool as_matrix, uint32_t rows,
                       cl_mem *buffer) MUST_CHECK;

/* Makes the weights of a resize in a direction, 0 or 1: *words for each pixel of the result and of
 * what the filters after it reach beside it: the place in the image of the first pixel that it is
 * made from, their number, and their weights. */
enum error weights_new_resize(const struct device *device, const struct geometry *geometry,
                              int direction, cl_mem *buffer, uint32_t *words) MUST_CHECK;

/* The lists in the weights of a resize. */
struct resize_lists {
	uint32_t words; /* each pixel's number of them; resize_ring: its weights across */
	uint32_t out;   /* resize_ring: pixels that a group makes; else 0 */
	/* resize_ring: columns and rows of the result, among those that have weights; where the
	 * weights of columns and the lists of the source's rows begin, in words */
	uint32_t inside_x[2], inside_y[2], weights, rows;
};

/* Makes the weights of resize_ring for pixels of a type, and sets their lists but for `out`. Those
 * of rows are whole numbers for bytes, two rows' in a word. ERR_MEMORY or ERR_DEVICE. */
enum error weights_new_ring(const struct device *device, const struct geometry *geometry,
                            enum pixel_type type, struct resize_lists *lists,
                            cl_mem *buffer) MUST_CHECK;

/* Makes the weights of kernels that shrink to a lattice (the spline's samples) or grow from it:
 * weight[LATTICE_TAPS_MAX][LATTICE_STRIDE_MAX]. The caller releases *buffer. ERR_DEVICE. */
enum error weights_new_lattice(const struct device *device, const struct lattice *lattice,
                               bool grow, cl_mem *buffer) MUST_CHECK;

/* Makes the tables of OPERATION_LUT: for integers a pixel for each pixel value, for floats its
 * entries times full scale. The caller releases *buffer. ERR_MEMORY or ERR_DEVICE. */
enum error weights_new_tables(const struct device *device, const struct operation *operation,
                              enum pixel_type type, double full, cl_mem *buffer) MUST_CHECK;

/* Makes a buffer with the shapes of a chain's regions, as integers, for KERNEL_BLEND. The caller
 * releases *buffer. ERR_DEVICE. */
enum error weights_new_shapes(const struct device *device, const struct chain *chain,
                              cl_mem *buffer) MUST_CHECK;
