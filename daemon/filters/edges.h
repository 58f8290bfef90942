/* Hysteresis (Canny, "A Computational Approach to Edge Detection", 1986): of the samples that may
 * be edges, those stay that are sure, or that touch one that stays at a side or a corner, however
 * far away the sure one is. It must see a whole image: two bits a pixel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "image/image.h"

/* Two planes of bits, row after row, each row in words of its own; pixel x is bit x % 64 of word
 * x / 64. Bits after the last pixel are 0. */
struct edges {
	uint32_t width, height;
	size_t words;         /* per row */
	uint64_t *some;       /* may be an edge */
	uint64_t *sure;       /* is one */
	struct point *points; /* points whose neighbours are still to be looked at */
};

/* Words of a plane. */
uint64_t edges_words(uint32_t width, uint32_t height);

/* Makes planes without edges. ERR_MEMORY; call edges_fini() even then. */
enum error edges_init(struct edges *edges, uint32_t width, uint32_t height) MUST_CHECK;
void edges_fini(struct edges *edges);

/* Sets a row from one band of an image: near full scale is sure, near half of it may be an edge. */
void edges_set_row(struct edges *edges, uint32_t y, const struct image *image, uint32_t band,
                   const void *pixels);

/* Makes pixels sure that are connected with sure ones, in time proportional to the image's size. */
void edges_grow(struct edges *edges);

/* Tells whether a pixel is an edge in a plane, whose words are among a chain's coefficients. */
bool edges_at(const double *plane, uint32_t width, uint32_t x, uint32_t y);
