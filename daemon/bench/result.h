/* Results of variants: their times, and their pixels compared with the reference. */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include "bench/case.h"
#include "reference/reference.h"

enum { POISON = 0xa5 }; /* every byte of a target before the run that is checked */

/* Times of runs, in milliseconds. */
struct times {
	double median, mean;
};

/* The result of one variant. */
struct measured {
	const char *variant;
	const char *origin; /* "general", "special", "classic", "service", "jpeg" or "processor" */
	const char *form;   /* what the source and the target are */
	struct shape shape; /* 0: none */
	uint32_t launches;  /* 0: not on the device */
	uint32_t threads;   /* of the processor; 0: on the device */
	uint32_t runs;      /* timed runs; on the processor: on a part */
	struct times times; /* for the whole ROI */
	double gb_per_s;    /* the ROI's bytes, read once and written once */
	double share_of_copy; /* of the bandwidth of a copy on the device in the same rounds */
	uint64_t verified;    /* samples compared with the reference */
	uint64_t mismatches;
	uint64_t outside; /* bytes outside the target ROI that were written */
	double max_difference;
};

enum { MEASURED_MAX = 64 };

struct bench_result {
	struct measured measured[MEASURED_MAX];
	uint32_t count;
	struct times copy;
	double copy_gb_per_s;
	struct image image; /* of the source ROI, and so of `pixels` */
	const char *best;   /* variant whose packed result `pixels` holds; NULL: none */
	void *pixels;       /* only for --output; the caller's to free */
};

/* True if everything that was compared is right. */
bool measured_is_right(const struct measured *measured);

/* Sets the image and the copy, of as many bytes, from the times of its runs. */
void result_begin(struct bench_result *result, const struct image *image, double *copy_ms,
                  uint32_t runs, uint32_t warmup);
/* Adds the row of a variant, with its speed; of a variant that has one already the better stays. */
void result_add(struct bench_result *result, const struct measured *measured);

/* Compares a target, laid out as on the device, with the reference, in some windows or completely
 * (all). Adds to what is measured. ERR_MEMORY. */
enum error check_target(const struct case_pixels *pixels, bool all, const char *target,
                        struct measured *measured) MUST_CHECK;

/* Compares a result with the reference in one window. from: the window's first pixel in it; pitch:
 * bytes from row to row. Adds to what is measured. ERR_MEMORY. */
enum error check_window(const struct case_pixels *pixels, const struct window *window,
                        const char *from, size_t pitch, struct measured *measured) MUST_CHECK;

/* Summarizes at least one time, none NaN; sorts them. */
struct times times_summarize(double *ms, size_t count);
/* Summarizes the runs after the warm-up, or after the first run if there are only a few; *timed is
 * how many these are. */
struct times times_of_runs(double *ms, uint32_t runs, uint32_t warmup, uint32_t *timed);

/* The milliseconds of a monotonic clock. */
double times_now(void);
/* The milliseconds of a finished command, whose event (or NULL) is released; 0 after a failure,
 * this one's or an earlier one's. */
double times_of_event(cl_event event, cl_int *code);

#endif
