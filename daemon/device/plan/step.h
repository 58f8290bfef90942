/* A step: one kernel launch of a plan, with everything that it needs except the tile. */
#pragma once

#include "device/plan/weights.h"
#include "filters/filters.h"
#include "wire/tile.h"

/* The buffers that a launch reads and writes: the tile's slot, or a scratch buffer of the lane. */
enum place { PLACE_IN, PLACE_OUT, PLACE_A, PLACE_B, PLACE_C, PLACES };

/* Lattice parameters of a step. If across (down), the columns (rows) of the target region are the
 * points from which the tile's result, grow_x and grow_y pixels larger, is made; expand_x (_y) is
 * in points. */
struct step_points {
	struct lattice lattice;
	uint32_t grow_x, grow_y;
	bool across, down;
};

/* The pixels in which a step's region is measured: those of the result; of the image before a
 * resize; or columns of the image in rows of the result. */
enum stage { STAGE_RESULT, STAGE_SOURCE, STAGE_ROWS };

/* The launches of a kernel on a serial device, for the pool: the number that run; the largest side
 * of a grid, in groups of this shape, that has finished; `alone`: one runs that may make a form;
 * the pool's turn when the last one ended. */
struct launch_record {
	uint32_t running, side, group_x, group_y;
	bool alone;
	uint64_t turn;
};

/* A limit of canny: for integers the exact square of a gradient, for floats a gradient. */
union step_limit {
	cl_long whole; /* words */
	cl_float real;
};

/* One launch. Its target region is the tile's result, expanded on each side by expand_x and
 * expand_y pixels: the reach of the filters that follow. Members that the kernel does not use are
 * 0; the others have the form in which it takes them (launch.c). */
struct step {
	enum kernel kernel;
	struct shape shape;
	enum pixel_type program;      /* PIXEL in its program */
	cl_kernel function;           /* retained; NULL until its program is built */
	struct launch_record *record; /* the function's, which lives as long */
	enum place src, dst;          /* equal for KERNEL_EXTEND, which works in place */
	enum place original;          /* the pixels before a blur, or those that `keep` copies */
	enum pixel_type src_type, dst_type, original_type;
	uint32_t bands;
	uint32_t expand_x, expand_y;
	uint32_t radius_x, radius_y;
	cl_mem weights; /* retained; NULL: none */
	uint32_t keep;  /* bit b: band b is unchanged */
	uint32_t alpha; /* the last band is alpha, which weights colours or is mixed */
	float offset;
	float offset_rest;       /* the part that a float loses */
	float scale;             /* direction of a gradient: pixel values per radian */
	float smooth[3];         /* gradient */
	uint32_t output;         /* enum gradient_output; extreme: largest */
	float space, range;      /* bilateral: exponents of 2 */
	float amount, threshold; /* unsharp, threshold (amount: full scale); in pixel values */
	struct {
		cl_float4 gain, bias;
		float low, high, exponent, scale, shift;
	} curve;                    /* see struct curve; of pixel values */
	cl_float4 limits;           /* threshold: of each band, in pixel values */
	uint32_t by_band;           /* curve, threshold: bands differ */
	uint32_t tables;            /* lut, clahe: their number in the weights */
	uint32_t entries;           /* lut, clahe: each table has so many */
	float places;               /* lut, clahe: from pixel values to places in a table */
	union step_limit low, high; /* canny */
	/* edges, clahe: the plane is its weights; words of a row, or tiles across and down; size
	 * and place in the image */
	struct {
		uint32_t words;
		cl_int width, height, x, y;
	} plane;
	/* pixelate: side of a block; work-items that share it; adjacent blocks of a work-item */
	struct {
		uint32_t side, lanes, run;
	} blocks;
	/* mix: the rows of weights, and the added values; the pixel value of full scale */
	cl_float4 mix[BANDS_MAX + 1];
	float full;                         /* also canny, edges */
	uint32_t element;                   /* extreme, rank: enum element */
	uint32_t rank;                      /* rank */
	uint32_t reverse;                   /* subtract: original - in */
	uint32_t image_width, image_height; /* the filtered image's: VARIANT_PLACE */
	uint32_t shapes, feather, invert;   /* blend; its weights are the shapes */
	struct {
		uint32_t mode;
		float pixel[BANDS_MAX];
	} border; /* extend */
	struct step_points points;
	enum stage stage;
	const struct geometry *geometry; /* the plan's */
	struct resize_lists resize;
	uint32_t pass; /* sep_two_pass: 0 writes a transposed result, 1 reads it */
	/* The pixels that a classic kernel may read, relative to the region's first pixel,
	 * inclusive. NULL: the region expanded by the radius. */
	const cl_int4 *reach;
};

/* Pixels in a buffer. origin: bytes from its start to the tile's first pixel (x0, y0) or, in
 * directions that are shrunk to a lattice, to the first point that the tile needs. image: for a
 * kernel that reads or writes an image object, that image; NULL: each launch makes one and copies
 * its pixels. A source holds the pixels in reach and nothing else; a target has the same layout as
 * the buffer, with rows of pitch bytes. */
struct view {
	cl_mem buffer;
	uint64_t origin;
	uint32_t pitch; /* bytes */
	cl_mem image;
};

/* Tiles of one plan with the same width and height, one below another in every buffer. A kernel
 * sees one high tile. The first rows of neighbours are `distance` rows apart, far enough that their
 * regions do not overlap. NULL as a function's argument: a single tile. */
struct stack {
	uint32_t count, distance;
	uint32_t height;        /* each tile's */
	uint32_t y0[STACK_MAX]; /* place of each in the filtered image */
};

/* Sets the value with which unsharp or a threshold compares, for an image of this type. */
void step_set_comparison(struct step *step, const struct operation *op, enum pixel_type image_type);

/* Sets the members of a step with a kernel that follow from the work, and makes its weights.
 * ERR_MEMORY or ERR_DEVICE; the step holds nothing then. */
enum error step_fill(const struct device *device, const struct work *work,
                     struct step *step) MUST_CHECK;

/* Retains the step's kernel only. */
void step_retain_kernel(const struct step *step);

/* Retains everything that a step holds. step_release() releases it and empties the step. */
void step_retain(const struct step *step);
void step_release(struct step *step);

/* Returns the image's columns, or rows (down), from which a resize makes the tile's. */
struct extent step_source(const struct step *step, const struct tile *tile, bool down);

/* Returns the tile in the pixels of the step's stage: x0 and y0 may be negative as an int32_t. The
 * functions of regions below take such a tile; region_pack(), region_bytes(), and those of plan.h
 * and launch.h, take the result's. */
struct tile step_tile(const struct step *step, const struct tile *tile);

/* Returns the points of the columns, or rows (down), of the result expanded by grow_x, grow_y. */
struct lattice_span region_points(const struct step *step, const struct tile *tile, bool down);

/* Returns the columns, or rows (down), of the region that the step writes, in pixels or points. */
uint32_t region_side(const struct step *step, const struct tile *tile, bool down);

/* True if the step's source (or target: dst) is the transposed intermediate of sep_two_pass. */
bool region_is_transposed(const struct step *step, bool dst);

/* Lays out the step's result in a buffer of its own: rows are packed so that pixel (x0, y0) is
 * aligned. Sets the view's origin and pitch, not its buffer. Returns the size in bytes. */
uint64_t region_pack(const struct step *step, const struct tile *tile, struct view *view);
/* Lays out the step's target by region_pack() if it is scratch, which KERNEL_EXTEND finds so. */
void region_lay_out(const struct step *step, const struct tile *tile, struct view views[PLACES]);

/* Returns the bytes of the regions that the step reads and writes, each counted once. */
uint64_t region_bytes(const struct step *step, const struct tile *tile);
