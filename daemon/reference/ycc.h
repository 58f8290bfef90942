/* YCbCr of BT.601, full range, as in JPEG: converts the first three bands of a pixel, without
 * rounding. middle: the midpoint of the pixel type, which is Cb and Cr of grey. */
#ifndef REFERENCE_YCC_H
#define REFERENCE_YCC_H

#include "reference/canvas.h"

void ycc_from_rgb(double *pixel, double middle);
void ycc_to_rgb(double *pixel, double middle);

/* Convert all pixels of a canvas and their slack. */
void ycc_convert(struct canvas *canvas, double middle);
void ycc_convert_back(struct canvas *canvas, double middle);

#endif
