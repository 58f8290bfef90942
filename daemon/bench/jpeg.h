/* Measuring the kernels of JPEG on one image and one device. */
#ifndef BENCH_JPEG_H
#define BENCH_JPEG_H

#include "bench/measure.h"

/* The value of --filter that is no chain. */
#define BENCH_JPEG "jpeg"

/* True for images of u8 with one band or three, from which a JPEG can be made. */
bool jpeg_measures(const struct image *image);

/* Has the device decode and encode the case's image as a JPEG of usual quality, with three bands
 * 4:2:0. A row for each kernel, all its launches together, and one for each direction; verified are
 * the samples that a direction makes, or the bytes, which must be libjpeg-turbo's. Those of a
 * flagged image count as wrong. ERR_BAD_PARAMETER (other pixels, a region), ERR_MEMORY or
 * ERR_DEVICE, reported on standard error. */
enum error jpeg_measure(struct programs *programs, const struct bench_options *options,
                        const struct bench_case *c, struct bench_result *result) MUST_CHECK;

#endif
