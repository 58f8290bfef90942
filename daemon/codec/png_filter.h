/* The filters of PNG's rows (W3C, Portable Network Graphics, chapter 9), to be written. */
#ifndef CODEC_PNG_FILTER_H
#define CODEC_PNG_FILTER_H

#include <stddef.h>
#include <stdint.h>

/* Writes the number of a filter and the row, of `size` bytes, as that filter leaves it. The filter
 * is the one whose result has the least sum of absolute values. `pixel`: bytes of a pixel, at most
 * `size`; `above`: the row before, zeros for the first; `trial`: size bytes to work in. */
void png_filter_row(uint8_t *to, const uint8_t *row, const uint8_t *above, size_t size,
                    size_t pixel, uint8_t *trial);

#endif
