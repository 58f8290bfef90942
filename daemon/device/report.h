/* What the worker tells the front: answers to tiles, the tuner's choices, and changed counts of
 * programs and objects.
 *
 * All functions return wire_send()'s error, after which the front cannot be reached any more. */
#ifndef DEVICE_REPORT_H
#define DEVICE_REPORT_H

#include "common/wire.h"
#include "device/plan/programs.h"
#include "device/tuner.h"

struct report {
	int socket;
	const char *device;               /* the device's name, for messages to clients */
	struct message_programs programs; /* as last sent */
	struct message_objects objects;   /* likewise */
	uint64_t objects_ms;              /* time of the last message */
};

/* Starts with a front that knows nothing. The socket and the name are the caller's and must outlive
 * the report. */
void report_init(struct report *report, int socket, const char *device);

/* Sends the answer to a tile. */
enum error report_tile(const struct report *report,
                       const struct message_tile_done *done) MUST_CHECK;
/* Answers a tile that was not filtered. code: OpenCL's, if the error is ERR_DEVICE; reason: for the
 * client, or NULL. */
enum error report_error(const struct report *report, const struct tile *tile, enum error error,
                        cl_int code, const char *reason) MUST_CHECK;
/* Answers a JPEG that is not for this device. flags: why. */
enum error report_flags(const struct report *report, const struct tile *tile,
                        uint32_t flags) MUST_CHECK;
/* Answer a tile whose kernel cannot be compiled (report_unbuilt()), or not in time
 * (report_late()). */
enum error report_unbuilt(const struct report *report, const struct tile *tile,
                          enum kernel kernel) MUST_CHECK;
enum error report_late(const struct report *report, const struct tile *tile,
                       enum kernel kernel) MUST_CHECK;

/* Tells that a tile waits for a program, for max_ms milliseconds at most; 0: no longer. */
enum error report_waits(const struct report *report, const struct tile *tile,
                        uint32_t max_ms) MUST_CHECK;

/* Send one choice of the tuner, or all that it remembers, for the front to display. */
enum error report_choice(const struct report *report,
                         const struct message_choice *choice) MUST_CHECK;
enum error report_choices(const struct report *report, struct tuner *tuner) MUST_CHECK;

/* Sends the counts of programs, if they have changed. */
enum error report_programs(struct report *report, struct programs *programs) MUST_CHECK;

/* Sends the counts of live objects, if they have changed: after 20 ms at most if no object belongs
 * to a request, otherwise once a second, to save messages. now_ms: a monotonic clock, in
 * milliseconds. *due: milliseconds until the next message, or -1. */
enum error report_objects(struct report *report, uint64_t now_ms, int *due) MUST_CHECK;

#endif
