/* YCbCr of BT.601, full range, as in JPEG: the first three bands of pixels there and back, neither
 * rounded. middle: what Cb and Cr of grey are, the type's midpoint. */
#ifndef REFERENCE_YCC_H
#define REFERENCE_YCC_H

#include "reference/canvas.h"

void ycc_from_rgb(double *pixel, double middle);
void ycc_to_rgb(double *pixel, double middle);

/* All pixels of a canvas, with their slack. */
void ycc_convert(struct canvas *canvas, double middle);
void ycc_convert_back(struct canvas *canvas, double middle);

#endif
