/* What the worker tells the front: answers to tiles, what the tuner has chosen, and how many
 * programs and objects there are, when that has changed.
 *
 * All return wire_send()'s error, after which the front is not to be reached any more. */
#ifndef DEVICE_REPORT_H
#define DEVICE_REPORT_H

#include "common/wire.h"
#include "device/plan/programs.h"
#include "device/tuner.h"

struct report {
	int socket;
	const char *device;               /* its name, for clients */
	struct message_programs programs; /* as the front knows them */
	struct message_objects objects;   /* likewise */
	uint64_t objects_ms;              /* when it was told */
};

/* The front knows of nothing yet. Socket and name stay the caller's and must outlive the report. */
void report_init(struct report *report, int socket, const char *device);

/* The answer to a tile. */
enum error report_tile(const struct report *report,
                       const struct message_tile_done *done) MUST_CHECK;
/* A tile that was not filtered. code: OpenCL's, where error is ERR_DEVICE; reason: for the client,
 * or NULL. */
enum error report_error(const struct report *report, const struct tile *tile, enum error error,
                        cl_int code, const char *reason) MUST_CHECK;
/* A tile whose kernel cannot be built, or not in time. */
enum error report_unbuilt(const struct report *report, const struct tile *tile,
                          enum kernel kernel) MUST_CHECK;
enum error report_late(const struct report *report, const struct tile *tile,
                       enum kernel kernel) MUST_CHECK;

/* A tile that waits for a program, and milliseconds that it does so at most; 0: no more. */
enum error report_waits(const struct report *report, const struct tile *tile,
                        uint32_t most_ms) MUST_CHECK;

/* A choice that the tuner has made, and all that it remembers, for the front to show. */
enum error report_choice(const struct report *report,
                         const struct message_choice *choice) MUST_CHECK;
enum error report_choices(const struct report *report, struct tuner *tuner) MUST_CHECK;

/* How many programs have been built, if that is news. */
enum error report_programs(struct report *report, struct programs *programs) MUST_CHECK;

/* How many objects live here, if that is news: when nothing is left of requests, so that the front
 * is not told of every job, but after a while in any case. *due: milliseconds until then, or -1.
 * now_ms: of a clock that is the same for all calls. */
enum error report_objects(struct report *report, uint64_t now_ms, int *due) MUST_CHECK;

#endif
