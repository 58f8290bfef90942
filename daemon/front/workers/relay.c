/* Relays workers' log lines. Workers may be compromised, so they choose neither the name nor the
 * rate of their lines, and control characters are removed. */
#include "front/workers/relay.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "front/base/metrics.h"
#include "process/sandbox.h"

/* A step reads from the pipe or logs a line: at most 640 steps a second for each worker. LAST_STEPS
 * suffice for everything that a pipe holds when a worker ends. */
enum { STEPS_A_TURN = 64, TURN_MS = 100, LAST_STEPS = 2048 };

/* Parses "<N>TEXT" or "<N,M>TEXT": returns level N, moves *text to TEXT, and sets *lost to M, the
 * number of lines lost before. A line of another form comes from a library, about a client's data,
 * or is a sanitizer's report. */
static enum log_level parse_level(const char **text, uint32_t *lost)
{
	unsigned level;
	int length = 0;

	*lost = 0;
	if (sscanf(*text, "<%1u>%n", &level, &length) != 1 || !length)
		if (sscanf(*text, "<%1u,%9u>%n", &level, lost, &length) != 2 || !length)
			level = UINT_MAX;
	if (level < LOG_LEVEL_ERROR || level > LOG_LEVEL_DEBUG) {
		*lost = 0;
		return SANITIZER ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG;
	}
	*text += length;
	return (enum log_level)level;
}

/* Logs the first complete line, or (all) the remaining text; false if there is none. */
static bool say_line(struct relay *r, bool all)
{
	char *end = memchr(r->text, '\n', r->length);
	size_t length = end ? (size_t)(end - r->text) : r->length, used;
	const struct log_fields fields = {.worker = r->name};
	const char *text = r->text;
	enum log_level level;
	uint32_t lost;
	char gap[64];

	if (!length && !end)
		return false;
	if (!end && !all && r->length < sizeof r->text - 1)
		return false;
	used = end ? length + 1 : length;
	r->text[length] = '\0';
	level = parse_level(&text, &lost);
	if (lost) {
		metric_add(METRIC_LOG_LOST, r->kind, NULL, lost);
		snprintf(gap, sizeof gap, "%u lines of %s were lost", lost, r->name);
		log_relay(LOG_LEVEL_WARNING, r->program, r->pid, &fields, gap);
	}
	if (length)
		log_relay(level, r->program, r->pid, &fields, text);
	memmove(r->text, r->text + used, r->length - used);
	r->length -= used;
	return true;
}

/* Reads and logs lines until r->steps reaches `max`. Returns false at the end of the pipe. */
static bool read_lines(struct relay *r, unsigned max)
{
	while (r->steps < max) {
		ssize_t got;

		r->steps++;
		if (say_line(r, false))
			continue;
		got = read(r->fd, r->text + r->length, sizeof r->text - 1 - r->length);
		if (got <= 0)
			return got < 0;
		r->length += (size_t)got;
	}
	return true;
}

static void relay_readable(void *context)
{
	struct relay *r = context;
	uint64_t now = loop_now();

	if (now - r->began > TURN_MS * 1000000u) {
		r->began = now;
		r->steps = 0;
	}
	if (read_lines(r, STEPS_A_TURN) && r->steps < STEPS_A_TURN)
		return;
	loop_unwatch(&r->watch);
	loop_timer_start(&r->turn, TURN_MS);
}

static void relay_resume(void *context)
{
	struct relay *r = context;

	if (loop_watch(&r->watch, r->fd, EPOLLIN, relay_readable, r))
		relay_close(r);
}

enum error relay_open(struct relay *r, int *end)
{
	int ends[2];
	enum error e;

	r->length = 0;
	r->steps = 0;
	r->began = 0;
	r->fd = r->watch.fd = -1;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return ERR_IO;
	r->fd = ends[0];
	*end = ends[1];
	e = loop_timer_init(&r->turn, relay_resume, r);
	if (!e)
		e = loop_watch(&r->watch, r->fd, EPOLLIN, relay_readable, r);
	if (e) {
		relay_close(r);
		close(ends[1]);
	}
	return e;
}

void relay_close(struct relay *r)
{
	if (r->fd < 0)
		return;
	r->steps = 0;
	read_lines(r, LAST_STEPS);
	say_line(r, true);
	loop_unwatch(&r->watch);
	loop_timer_fini(&r->turn);
	close(r->fd);
	r->fd = -1;
}
