/* A report remembers what the front knows, and sends only changes. */
#include "device/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "device/cl/object_counts.h"

enum { OBJECTS_MS = 1000, LASTING_MS = 20 }; /* between messages, while jobs run or not */

void report_init(struct report *r, int socket, const char *device)
{
	*r = (struct report){.socket = socket, .device = device};
}

enum error report_tile(const struct report *r, const struct message_tile_done *done)
{
	struct message message = {.type = MSG_TILE_DONE, .tile_done = *done};
	enum error e = wire_send(r->socket, &message, NULL);

	if (e) {
		log_error("cannot send to the front: %s", strerror(errno));
		return e;
	}
	if (done->error == ERR_DEVICE)
		log_error("job %llu tile %u: %s (%d)", (unsigned long long)done->job, done->index,
		          opencl_error_name(done->cl_error), done->cl_error);
	return ERR_OK;
}

enum error report_error(const struct report *r, const struct tile *tile, enum error error,
                        cl_int code, const char *reason)
{
	struct message_tile_done done = {
	    .job = tile->job, .index = tile->index, .error = error, .cl_error = code};

	snprintf(done.reason, sizeof done.reason, "%s", reason ? reason : "");
	return report_tile(r, &done);
}

enum error report_flags(const struct report *r, const struct tile *tile, uint32_t flags)
{
	const struct message_tile_done done = {
	    .job = tile->job, .index = tile->index, .stack = 1, .jpeg_flags = flags};

	return report_tile(r, &done);
}

enum error report_unbuilt(const struct report *r, const struct tile *tile, enum kernel kernel)
{
	char reason[sizeof(((struct message_tile_done *)0)->reason)];

	snprintf(reason, sizeof reason, "%s cannot be compiled on %s; the service's log says why",
	         kernel_name(kernel), r->device);
	return report_error(r, tile, ERR_DEVICE, CL_BUILD_PROGRAM_FAILURE, reason);
}

enum error report_late(const struct report *r, const struct tile *tile, enum kernel kernel)
{
	char reason[sizeof(((struct message_tile_done *)0)->reason)];

	snprintf(reason, sizeof reason, "%s is still being compiled on %s; ask again",
	         kernel_name(kernel), r->device);
	return report_error(r, tile, ERR_NOT_READY, 0, reason);
}

enum error report_waits(const struct report *r, const struct tile *tile, uint32_t max_ms)
{
	struct message message = {.type = MSG_TILE_WAITS,
	                          .tile_waits = {tile->job, tile->index, max_ms}};

	return wire_send(r->socket, &message, NULL);
}

enum error report_choice(const struct report *r, const struct message_choice *choice)
{
	struct message message = {.type = MSG_CHOICE, .choice = *choice};

	return wire_send(r->socket, &message, NULL);
}

enum error report_choices(const struct report *r, struct tuner *tuner)
{
	struct message_choice choice;
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && tuner_get(tuner, i, &choice); i++)
		e = report_choice(r, &choice);
	return e;
}

enum error report_programs(struct report *r, struct programs *programs)
{
	struct message message = {.type = MSG_PROGRAMS};

	programs_count(programs, &message.programs);
	if (!memcmp(&message.programs, &r->programs, sizeof r->programs))
		return ERR_OK;
	r->programs = message.programs;
	return wire_send(r->socket, &message, NULL);
}

enum error report_objects(struct report *r, uint64_t now_ms, int *due)
{
	struct message message = {.type = MSG_OBJECTS};
	uint64_t since = now_ms - r->objects_ms, interval;

	*due = -1;
	object_counts_get(&message.objects);
	if (!memcmp(&message.objects, &r->objects, sizeof r->objects))
		return ERR_OK;
	interval = object_counts_only_lasting(&message.objects) ? LASTING_MS : OBJECTS_MS;
	if (since < interval) {
		*due = (int)(interval - since);
		return ERR_OK;
	}
	r->objects = message.objects;
	r->objects_ms = now_ms;
	return wire_send(r->socket, &message, NULL);
}
