/* Measuring a case: its kernels on a device, those of JPEG, and the processor. Failures that are
 * not ERR_MEMORY are reported on standard error. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench/result.h"
#include "device/plan/plan.h"

/* The value of --filter that is no chain. */
#define BENCH_JPEG "jpeg"

/* Measures every applicable variant that the options want; what runs on the processor last. Owns
 * nothing afterwards but result->pixels, which is set on failure, too. ERR_MEMORY,
 * ERR_BAD_PARAMETER or ERR_DEVICE. */
enum error measure_case(struct programs *programs, const struct bench_options *options,
                        const struct bench_case *c, struct bench_result *result) MUST_CHECK;

/* ---- jpeg.c ---- */

/* True for images of u8 with one band or three, from which a JPEG can be made. */
bool jpeg_measures(const struct image *image);

/* Has the device decode and encode the case's image as a JPEG of usual quality, with three bands
 * 4:2:0. A row for each kernel, all its launches together, and one for each direction; verified are
 * the samples that a direction makes, or the bytes, which must be libjpeg-turbo's. Those of a
 * flagged image count as wrong. ERR_BAD_PARAMETER (other pixels, a region), ERR_MEMORY or
 * ERR_DEVICE. */
enum error jpeg_measure(struct programs *programs, const struct bench_options *options,
                        const struct bench_case *c, struct bench_result *result) MUST_CHECK;

/* ---- processor.c: the same filter in plain C, with floats, in so many threads ---- */

/* True if the processor has code for the case: one filter of all channels that is a sum with
 * weights, a gradient's magnitude or bilateral. */
bool processor_can(const struct bench_case *c);

/* Filters a part of the rows a few times, in m->threads threads (at most 8), and sets their number
 * and the times for the whole ROI. Compares the first and the last rows of each thread with the
 * reference. ERR_MEMORY if there is none for pixels or threads. */
enum error processor_measure(const struct case_pixels *pixels, struct measured *m) MUST_CHECK;

#endif
