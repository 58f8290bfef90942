/* Results compared with the reference, sample by sample. */
#ifndef REFERENCE_DIFFERENCE_H
#define REFERENCE_DIFFERENCE_H

#include "reference/reference.h"

/* What results differ in. Where the reference is NaN or infinite nothing is asked of a result: a
 * kernel may leave out a sample of weight 0. But where it is finite, a result must be. */
struct difference {
	uint64_t samples;    /* compared */
	uint64_t mismatches; /* farther off than their slack */
	uint64_t beyond_1;   /* farther off than 1 */
	double largest;      /* difference, but where anything may be right */
	/* The first mismatch, in pixels of the whole image. */
	uint32_t x, y, band;
	double got, wanted, slack;
};

/* Adds what differs between a reference and a result, whose first pixel in the reference's window
 * is at `pixels`, rows pitch bytes apart. */
void difference_add(struct difference *difference, const struct reference *reference,
                    const void *pixels, size_t pitch);

#endif
