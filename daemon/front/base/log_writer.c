/* The thread behind the log, and the ring buffer between it and the loop.
 *
 * Only a thread can wait for every kind of standard error without blocking the loop: O_NONBLOCK has
 * no effect on files, and would also affect others that share the open file description.
 *
 * After it has written, the thread rests for a moment, so that a busy service does not wake it for
 * every line. The first line after a silence is written at once, and so are those of problems,
 * which may be the last before a crash.
 *
 * The thread owns standard error and the ring between `tail` and `head`; only the loop moves `head`
 * and only the thread moves `tail`, so no lock is needed. Positions only grow; an index is a
 * position modulo the ring's size. */
#include "front/base/log_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
/* Only the front uses libsystemd: workers' lines reach it through pipes. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/log.h"
#include "base/loop.h"

enum { RING_SIZE = 1 << 20, TEXT_MAX = 16 << 10, LAST_WAIT_S = 1, REST_MS = 10 };
enum { ITEMS_MAX = 32, ENTRY_SIZE = 8192 }; /* for journal entries */

/* Writes a text to its destination; called in the thread. Returns false if it could not. */
typedef bool log_write(const char *text, size_t length);

struct head {
	log_write *write;
	size_t length; /* bytes of text that follow */
};

static unsigned char ring[RING_SIZE];
static _Atomic size_t head, tail;
static _Atomic uint64_t lost;     /* lines lost and not yet reported */
static _Atomic size_t first_lost; /* `head` when the first of them was lost */
static _Atomic uint64_t lost_ever;
static atomic_bool stopping;
static atomic_bool asleep; /* the thread, which must be woken */
static bool running;
static int work = -1;                      /* eventfd: the ring has lines */
static struct loop_watch gap = {.fd = -1}; /* eventfd: lines were lost, later ones written */
static pthread_t thread;

static void lose(void)
{
	if (!atomic_load(&lost))
		atomic_store(&first_lost, atomic_load(&head));
	atomic_fetch_add(&lost, 1);
	atomic_fetch_add(&lost_ever, 1);
}

/* Copies to or from the ring, wrapping at its end. */
static void ring_put(size_t at, const void *data, size_t size)
{
	size_t place = at % RING_SIZE, first = RING_SIZE - place < size ? RING_SIZE - place : size;

	memcpy(ring + place, data, first);
	memcpy(ring, (const char *)data + first, size - first);
}

static void ring_get(size_t at, void *data, size_t size)
{
	size_t place = at % RING_SIZE, first = RING_SIZE - place < size ? RING_SIZE - place : size;

	memcpy(data, ring + place, first);
	memcpy((char *)data + first, ring, size - first);
}

static bool write_stderr(const char *text, size_t length)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

	while (length) {
		ssize_t written = write(STDERR_FILENO, text, length);

		if (written > 0) {
			text += written;
			length -= (size_t)written;
		} else if (written < 0 && errno == EAGAIN) {
			poll(&room, 1, -1); /* another process has set O_NONBLOCK */
		} else if (written == 0 || errno != EINTR) {
			return false;
		}
	}
	return true;
}

static void write_all(void)
{
	char text[TEXT_MAX];
	struct head h;
	size_t at;

	while ((at = atomic_load(&tail)) != atomic_load(&head)) {
		ring_get(at, &h, sizeof h);
		ring_get(at + sizeof h, text, h.length);
		at += sizeof h + h.length;
		atomic_store(&tail, at);
		if (!h.write(text, h.length))
			lose();
		else if (atomic_load(&lost) && at >= atomic_load(&first_lost))
			loop_post(gap.fd);
	}
}

static void *run(void *)
{
	struct pollfd urgent = {.fd = work, .events = POLLIN};

	while (!atomic_load(&stopping)) {
		write_all();
		poll(&urgent, 1, REST_MS);
		atomic_store(&asleep, true);
		if (atomic_load(&tail) == atomic_load(&head))
			loop_await(work);
		atomic_store(&asleep, false);
	}
	write_all();
	return NULL;
}

static void say_lost(void *)
{
	uint64_t count = 0;

	if (gap.fd >= 0)
		loop_await(gap.fd);
	count = atomic_exchange(&lost, 0);
	if (count)
		log_warning("%" PRIu64 " lines of the log were lost: it was not read fast enough, "
		            "or could not be written",
		            count);
}

/* Buffers a copy of a text, truncated to TEXT_MAX, for `write`, which gets it at once or, if it is
 * merely informative, after at most some milliseconds. */
static void enqueue(enum log_level level, log_write *write, const char *text, size_t length)
{
	struct head h = {write, length < TEXT_MAX ? length : TEXT_MAX};
	size_t at = atomic_load(&head);

	if (!running) {
		write(text, length);
		return;
	}
	if (RING_SIZE - (at - atomic_load(&tail)) < sizeof h + h.length) {
		lose();
		return;
	}
	ring_put(at, &h, sizeof h);
	ring_put(at + sizeof h, text, h.length);
	atomic_store(&head, at + sizeof h + h.length);
	if (atomic_exchange(&asleep, false) || level < LOG_LEVEL_INFO)
		loop_post(work);
}

uint64_t log_writer_lost(void)
{
	return atomic_load(&lost_ever);
}

static void put_line(enum log_level level, const char *line, size_t length)
{
	enqueue(level, write_stderr, line, length);
}

/* ---- journal entries ---- */

/* Sends an entry: lines NAME=VALUE, the first two of them MESSAGE and PRIORITY. May block on the
 * journal. Returns false if neither the journal nor standard error accepted it. */
static bool send_entry(const char *entry, size_t length)
{
	static const size_t message = sizeof "MESSAGE=" - 1, priority = sizeof "PRIORITY=" - 1;
	struct iovec item[ITEMS_MAX];
	const char *at = entry, *end;
	int count = 0;

	while (count < ITEMS_MAX && (end = memchr(at, '\n', length - (size_t)(at - entry)))) {
		item[count++] = (struct iovec){(void *)at, (size_t)(end - at)};
		at = end + 1;
	}
	if (sd_journal_sendv(item, count) >= 0)
		return true;
	/* The fallback: "<PRIORITY>MESSAGE" on standard error, which the journal reads too. */
	return fprintf(stderr, "<%.*s>%.*s\n", (int)(item[1].iov_len - priority),
	               (const char *)item[1].iov_base + priority, (int)(item[0].iov_len - message),
	               (const char *)item[0].iov_base + message) > 0;
}

/* Values contain no newline: log.c removes them from the text, and fields are cut at the first. A
 * field that does not fit lacks its newline, and is not sent. */
static void make_entry(enum log_level level, const char *text, const struct log_fields *fields)
{
	char entry[ENTRY_SIZE];
	struct log_field field;
	size_t used, i = 0;

	used = (size_t)snprintf(entry, sizeof entry,
	                        "MESSAGE=%s\nPRIORITY=%d\nSYSLOG_IDENTIFIER=convolved\n", text,
	                        (int)level);
	while (used < sizeof entry && log_field_next(fields, &i, &field)) {
		char *at = entry + used;
		size_t room = sizeof entry - used;

		used += (size_t)(field.text ? snprintf(at, room, "CONVOLVED_%s=%.*s\n", field.name,
		                                       (int)strcspn(field.text, "\n"), field.text)
		                            : snprintf(at, room, "CONVOLVED_%s=%" PRIu64 "\n",
		                                       field.name, field.number));
	}
	enqueue(level, send_entry, entry, used < sizeof entry ? used : sizeof entry - 1);
}

void log_writer_use_journal(void)
{
	log_set_journal(make_entry);
}

/* ---- start and end ---- */

enum error log_writer_init(void)
{
	int lines = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	work = eventfd(0, EFD_CLOEXEC);
	log_set_output(put_line);
	if (work < 0 || lines < 0 || loop_watch(&gap, lines, EPOLLIN, say_lost, NULL) ||
	    pthread_create(&thread, NULL, run, NULL))
		return ERR_IO;
	running = true;
	return ERR_OK;
}

void log_writer_fini(void)
{
	struct timespec until;

	if (!running)
		return;
	say_lost(NULL);
	atomic_store(&stopping, true);
	loop_post(work);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LAST_WAIT_S;
	if (!pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until))
		running = false; /* otherwise later lines would go into the ring and be lost */
}
