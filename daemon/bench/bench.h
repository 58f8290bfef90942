/* The modules of convolved-bench. A failure ends the program with a line on standard error, and
 * with status 2 if the user is at fault, else 1. */
#pragma once

#include <jansson.h>

#include "device/plan/plan.h"
#include "device/pool.h"
#include "filters/chain_size.h"
#include "reference/reference.h"
#include "wire/wire.h"

/* ---- options.c: the command line, and the devices that it means ---- */

/* Without a type: all GPUs, or without any all devices. */
enum { TYPE_DEFAULT = DEVICE_ACCELERATOR + 1 };

/* Pixels on each side: left and right, above and below. */
struct padding {
	uint32_t x, y;
};

struct bench_options {
	int platform;         /* index, -1: any */
	uint32_t device_type; /* enum device_type; DEVICE_NONE: any; or TYPE_DEFAULT */
	const char *device;   /* number or part of a name; NULL: any */
	const char *filter;   /* a chain, NULL: the standard set */
	const char *pixels;   /* "u8", "u8x4", …; NULL: the standard set */
	char **variants;      /* all valid, the last one NULL; NULL: all that apply */
	const char *file;     /* an image; NULL: random pixels */
	const char *output;   /* a file for the result; NULL: none */
	const char *kernel_dir, *cache_dir;
	uint32_t width, height; /* 0: the standard set */
	uint32_t iterations, warmup;
	double budget;                      /* seconds for the runs of one variant */
	struct area source_roi, target_roi; /* width 0: the whole image */
	struct padding padding;             /* for the published kernels' source */
	bool padding_given;                 /* if not: what the studies do */
	bool verify;                        /* all pixels, not windows */
	bool json;
	bool list, help, version;
	int argc; /* the command line */
	char **argv;
};

/* Parses the command line. Ends the program for --help, --version and invalid arguments. */
void bench_options_parse(struct bench_options *options, int argc, char **argv);

/* True if the variant is to be measured. */
bool bench_options_want(const struct bench_options *options, const char *variant);

/* Sets chosen[i] for each of `count` devices that the options select, and returns the number of
 * selected ones. --platform and --type restrict the devices; without a type, to GPUs if any of them
 * is one. A number in --device counts the devices that are left; a name also finds devices that are
 * no GPUs. */
size_t bench_options_choose(const struct bench_options *options, const struct message_device *list,
                            size_t count, bool *chosen);

/* A device under test, and its results. */
struct session {
	const struct bench_options *options;
	struct device device;
	struct programs *programs;
	cl_command_queue queue;
	struct pool *pool; /* for a device that works in place, otherwise NULL */
	json_t *results;
	double copy; /* GB/s of a copy in the last case */
	bool wrong;  /* some result is */
};

/* ---- case.c: one filter or chain, one image, and the image's pixels on a device ---- */

struct bench_case {
	struct chain chain;
	struct image image;
	const void *pixels; /* packed; the caller's */
	double taps;        /* in the filters' windows together */
};

enum { PAIRS = 3 };

/* The forms in which a kernel gets its source and target: buffers, unless they are images. */
enum form {
	FORM_TILE,   /* with the chain's halo, and aligned, as the service's tiles are */
	FORM_BARE,   /* the image alone; published kernels clamp coordinates to the ROI (`reach`) */
	FORM_PADDED, /* with as many pixels around the ROI as the host adds; part of the reach */
	FORM_IMAGE,  /* the ROI as an image object, whose integers are read as such */
	FORM_IMAGES, /* both as image objects; integers are shares of full scale */
	FORMS
};

/* The pixels of a case in each form: PAIRS sources that are used in turn with as many targets, so
 * that a run does not find its pixels in a cache. The views' origins are the ROI's first pixel. */
struct case_pixels {
	const struct session *session;
	const struct bench_case *c;
	struct area source, target; /* in the image; a resize's target: the result */
	struct image part;          /* the source ROI as an image */
	struct geometry geometry;   /* the chain's, for that part */
	struct image result;        /* the part filtered */
	struct image area;          /* the target in memory, with guards around it */
	struct padding padding;     /* for FORM_PADDED; the Sobel study's value if none is given */
	char *tile;                 /* FORM_TILE, on the host, once it is made */
	uint64_t target_size;
	struct view source_view[FORMS][PAIRS], target_view[2][PAIRS]; /* targets: buffers, images */
};

/* Prepares a case's pixels for the options' ROIs, in FORM_TILE. Session and case outlive them. */
void case_pixels_init(struct case_pixels *pixels, const struct session *session,
                      const struct bench_case *c);
/* Makes a form's sources and targets, unless they exist. False, reported, if the device cannot. */
bool case_pixels_make(struct case_pixels *pixels, enum form form);
void case_pixels_fini(struct case_pixels *pixels);

/* The first pixel of FORM_TILE, on the host, from which a window of the result is made. */
const char *case_first(const struct case_pixels *pixels, const struct window *window);

/* The target of a form, of that pair. */
const struct view *case_target(const struct case_pixels *pixels, enum form form, uint32_t pair);

/* ---- result.c: times of variants, and their pixels compared with the reference ---- */

/* Allocates zeroed memory. */
void *bench_alloc(size_t size);
/* Ends the program after an error. The error must have been reported, unless memory has run out. */
void bench_must(enum error e);
/* Ends the program if an OpenCL code is an error, with a message that says at what. */
void bench_check(cl_int code, const char *what);

enum { POISON = 0xa5 }; /* every byte of a target before the run that is checked */

/* Times of runs, in milliseconds. */
struct times {
	double median, mean;
};

/* The result of one variant. */
struct measured {
	const char *variant;
	const char *origin; /* "general", "special", "classic", "service", "jpeg" or "processor" */
	const char *form;   /* form of source and target */
	struct shape shape; /* 0: none */
	uint32_t launches;  /* 0: not on the device */
	uint32_t threads;   /* on the processor; 0: on the device */
	uint32_t runs;      /* timed runs; on the processor: on a part */
	struct times times; /* for the whole ROI */
	double gb_per_s;    /* the ROI's bytes and the result's, each once */
	double share_of_copy; /* time of a device copy of the ROI in the same rounds / median */
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
	struct image source, image; /* the source ROI's; the result's, and so that of `pixels` */
	void *pixels;               /* packed, only for --output; the caller's to free */
	const char *best;           /* the variant that made them; NULL: none */
	double best_ms;
};

/* True if everything that was compared is right. */
bool measured_is_right(const struct measured *measured);

/* Sets the images, and the time of a copy of the source from the times of its runs. */
void result_begin(struct bench_result *result, const struct image *source,
                  const struct image *image, double *copy_ms, uint32_t runs, uint32_t warmup);
/* Adds the row of a variant, with its speed. The faster of two rows of a variant stays. */
void result_add(struct bench_result *result, const struct measured *measured);

/* Compares a result with the reference, for the measurement: a target laid out as on the device, in
 * some windows or completely (all); or one window, whose first pixel is at `from`. */
void check_target(const struct case_pixels *pixels, bool all, const char *target,
                  struct measured *measured);
void check_window(const struct case_pixels *pixels, const struct window *window, const char *from,
                  size_t pitch, struct measured *measured);

/* Sorts and summarizes the times, none of them NaN, of the runs after the warm-up, or after the
 * first run if there are only a few; *timed is how many these are. */
struct times times_of_runs(double *ms, uint32_t runs, uint32_t warmup, uint32_t *timed);

/* The milliseconds of a monotonic clock. */
double times_now(void);
/* Returns the milliseconds of a finished command and releases its event (or NULL). 0 after a
 * failure of this call or an earlier one. */
double times_of_event(cl_event event, cl_int *code);

/* ---- measure.c, jpeg.c, processor.c: what measures a case ---- */

/* Measures every applicable variant that the options ask for, those on the processor last. The
 * result is all zeros before. */
void measure_case(const struct session *session, const struct bench_case *c,
                  struct bench_result *result);

/* Returns true for images of u8 with one or three bands, from which a JPEG can be made. */
bool jpeg_measures(const struct image *image);

/* Lets the device decode and encode the case's image as a JPEG of usual quality, 4:2:0 if it has
 * three bands. Adds a row for each kernel (all its launches together) and one for each direction.
 * Verifies the samples of decoding and the bytes of encoding, which must be libjpeg-turbo's.
 * Samples and bytes of a flagged image count as wrong. */
void jpeg_measure(const struct session *session, const struct bench_case *c,
                  struct bench_result *result);

/* Filters a part of the rows a few times in plain C with floats, in m->threads threads (at most 8),
 * scales the times to the whole ROI, and compares the first and the last rows of each thread with
 * the reference. Returns false if there is no code for the case: it must be one filter of all
 * channels that is a weighted sum, a gradient's magnitude or bilateral. */
bool processor_measure(const struct case_pixels *pixels, struct measured *m);
