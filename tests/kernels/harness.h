/* The command line of the programs of this directory, their lines of results, and a device with an
 * arena of its own. Images go through plans and lanes without a service, by the test's own
 * codec, which pads and cuts. */
#pragma once

#include <stdint.h>

#include "device/lane.h"

/* One trial of so many is made, unless the options say otherwise or TEST_ALL is set. */
enum { EVERY = 5 };

/* The command line; --help explains it. A program ignores what it has no use for. */
struct options {
	int platform, device;
	int64_t seed; /* random_below()'s */
	double most;
	int every, rounds;
	int copy, no_images, brief; /* bool */
	char *only;                 /* NULL: not given */
};

extern struct options options;

/* Parses the command line, or ends the program. */
void options_parse(int argc, char **argv);

extern uint64_t random_state;
uint32_t random_below(uint32_t n);

/* Notes that the test in progress fails, and prints why. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program: nothing can be tested; or if an OpenCL code is an error. */
_Noreturn void die(const char *what);
void must(cl_int code);

/* Ends a test with a line (TAP). */
void test_end(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "N passed, N failed". Returns the program's status. */
int tests_end(void);

struct test {
	const char *name;
	void (*run)(void);
	bool brief; /* also for --brief */
};

/* Runs the tests that the options want. */
void tests_run(const struct test *tests, size_t count);

/* True if all bytes have this value. */
bool all_poison(const void *bytes, size_t size, uint8_t poison);

/* Rows of pixels in memory. */
struct rows {
	const void *first;
	size_t bytes, pitch;
	uint32_t count;
};

/* True if all bytes from `start` to `end` beside the rows have this value. */
bool poison_around(const struct rows *rows, const void *start, const void *end, uint8_t poison);

enum lane_mode { LANE_ZERO_COPY, LANE_COPY, LANE_MODES };

struct harness {
	struct device device;
	struct programs *programs;
	struct pool *pool; /* NULL: the device does not work in place */
	struct lane *lane[LANE_MODES];
	int notice;                /* eventfd of the lane without copies, on a CPU */
	struct arena memory;       /* the codec's mapping */
	struct device_arena arena; /* the device's */
};

/* Opens the device of the options with arenas of this many bytes each, or ends the program. On a
 * device with memory of its own both lanes copy. */
void harness_init(struct harness *h, uint64_t arena_size);
void harness_fini(struct harness *h);

/* Maps an arena of this size in each direction, or ends the program; the files are the caller's. */
void harness_map(struct arena *memory, uint64_t size, int fds[2]);

/* Waits for the word that the lane without copies, or another of the pool, has finished. False:
 * there is none. */
bool harness_await_notice(const struct harness *h);

/* Makes the programs of kernels/jpeg/, or ends the program. */
void harness_prepare_jpeg(struct harness *h);

/* Parses "FILTERS", or "FILTERS&regions=SHAPES&feather=N&invert=1", or ends the program. */
void harness_parse(struct chain *chain, const char *text);

/* Waits until the plan's programs are compiled, or ends the program. */
void harness_await(struct harness *h, struct plan *plan, enum tile_form form);

/* Makes a plan by the table's or the chain's choice, with its programs, or ends the program. */
struct plan *harness_plan(struct harness *h, const struct chain *chain, const struct image *image,
                          enum tile_form form);

/* Puts the pixel of the plan's image, or of its border, at any place. */
void harness_pad(const struct plan *plan, const void *image, int x, int y, void *to);

/* The outcome for an image. */
struct outcome {
	enum error error; /* error of the first tile that failed */
	cl_int code;
	bool guard_broken; /* bytes outside the results were written */
};

/* Filters a whole packed image in tiles of tile_rows rows; `out` is a packed image of the size that
 * chain_output_size() says. Around each tile lie bytes that must not change, beneath it poison. */
struct outcome harness_filter(struct harness *h, enum lane_mode mode, const struct plan *plan,
                              const void *in, uint32_t tile_rows, void *out);

/* Runs tiles that are already in the arena, as a stack if there are several. */
enum error harness_run(struct harness *h, struct lane *lane, const struct plan *plan,
                       const struct tile *tiles, uint32_t count,
                       struct message_tile_done done[STACK_MAX]);
