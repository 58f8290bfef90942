/* Compares results with the reference, sample by sample. */
#ifndef REFERENCE_DIFFERENCE_H
#define REFERENCE_DIFFERENCE_H

#include "reference/reference.h"

/* The outcome of a comparison. Any result is accepted if the reference is NaN or infinite, since a
 * kernel may skip a sample of weight 0. If the reference is finite, the result must be, too. */
struct difference {
	uint64_t samples;    /* compared */
	uint64_t mismatches; /* differ by more than their slack */
	uint64_t beyond_1;   /* differ by more than 1 */
	double largest;      /* largest difference, where slack is limited */
	/* The first mismatch, in pixels of the whole image. */
	uint32_t x, y, band;
	double got, wanted, slack;
};

/* Compares a result with the reference and adds the differences. pixels: the result at the first
 * pixel of the reference's window; pitch: bytes from row to row. */
void difference_add(struct difference *difference, const struct reference *reference,
                    const void *pixels, size_t pitch);

#endif
