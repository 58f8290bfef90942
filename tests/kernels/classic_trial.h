/* One run of a published kernel: its parameters, the places of its source and target in their
 * matrices, random pixels, and the expected result. */
#ifndef TESTS_CLASSIC_TRIAL_H
#define TESTS_CLASSIC_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/image.h"

enum operation { SEPARABLE, MATRIX, GRADIENT, BILATERAL };

enum { WEIGHTS_MOST = 4096 };

/* A matrix in a buffer, rows further apart than they are long, guards before and behind. All is
 * poison at first: NaN where pixels are floats. */
struct matrix {
	int width, height;
	size_t pixel, pitch, size;
	unsigned char *bytes;
};

struct matrix matrix_new(int width, int height, size_t pixel, size_t sample, int poison);

/* Returns bytes from the buffer's start to a pixel. */
size_t matrix_offset(const struct matrix *m, int x, int y);

/* The bytes around a rectangle are still poison. */
bool matrix_intact(const struct matrix *m, int x, int y, int width, int height, int poison);

enum { POISON_SOURCE = 0xFF, POISON_TARGET = 0xA5 };

struct rect {
	int x, y, width, height;
};

/* The source ROI around the region that is read at first: it is the whole matrix; it is larger by
 * the radius; it is anywhere in a matrix, and so is the target; the region is a part of it, as when
 * an image is made in strips. */
enum layout { LAYOUT_WHOLE, LAYOUT_PADDED, LAYOUT_ROI, LAYOUT_STRIP, LAYOUTS };

struct trial {
	enum operation operation;
	enum pixel_type type;
	int bands, rx, ry;
	enum layout layout;

	struct rect roi;      /* the ROI in the source matrix */
	struct rect from, to; /* the region in the source and in the target matrix; one size */
	struct matrix source, target;
	double *pixels; /* the ROI's samples */
	float weights[WEIGHTS_MOST], offset;
	double gain; /* by which the operation can enlarge the largest magnitude */
	float space, range;
};

size_t trial_sample_size(const struct trial *t);

/* Places a region of this size, and makes matrices, pixels and parameters. The operation, type,
 * bands, radii and layout are given. */
void trial_init(struct trial *t, int width, int height);
void trial_fini(struct trial *t);

/* Checks the target; prints the errors, if any. */
bool trial_check(const struct trial *t);

/* A line about this trial, on standard output. */
void trial_report(const struct trial *t, const char *what);

extern uint64_t trial_seed;
uint32_t random_below(uint32_t n);

#endif
