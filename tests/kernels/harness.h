/* Runs images through plans and lanes without a service: the test's own codec, which pads and cuts,
 * and a device with an arena of its own. */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdint.h>

#include "device/lane.h"

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

/* Opens device `index` of a platform with arenas of this many bytes each; false (with a line on
 * standard error) if that fails. On a device with memory of its own both lanes copy. */
bool harness_init(struct harness *h, unsigned platform, unsigned index, uint64_t arena_size,
                  const char *kernel_dir);
void harness_fini(struct harness *h);

/* Waits until the plan's programs are compiled; false if one cannot be. */
bool harness_await(struct harness *h, struct plan *plan, enum tile_form form);

/* The outcome for an image. */
struct outcome {
	enum error error; /* error of the first tile that failed */
	cl_int code;
	bool guard_broken;  /* bytes outside the results were written */
	uint64_t launch_ns; /* all launches of all tiles */
};

/* Filters a whole packed image in tiles of tile_rows rows; `out` is a packed image of the size that
 * chain_output_size() says. Around each tile lie bytes that must not change, beneath it poison. */
struct outcome harness_filter(struct harness *h, enum lane_mode mode, const struct plan *plan,
                              const void *in, uint32_t tile_rows, void *out);

/* Runs one tile that is already in the arena. */
enum error harness_run_tile(struct harness *h, struct lane *lane, const struct plan *plan,
                            const struct tile *tile, struct message_tile_done *done);

#endif
