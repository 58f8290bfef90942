/* Bodies. Data for a file collects in memory while an errand (a thread) writes earlier data. The
 * loop does not touch what the errand holds until that has finished. */
#include "http/body.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/errand.h"
#include "base/log.h"
#include "base/memfd.h"

struct buffer {
	char *data;
	size_t size, room;
};

struct spill {
	/* must be first; it owns the members up to `result` while it is running */
	struct errand errand;
	int fd;
	uint64_t at; /* where the next data goes */
	struct buffer writing;
	int result; /* errno of a failure */

	struct buffer waiting; /* to be written next */
	bool under_way, abandoned, broken;
	void (*wake)(void *context);
	void *context;
};

void body_init(struct body *body)
{
	*body = (struct body){.fd = -1};
}

/* Writes all of it; returns 0 or an errno. */
static int write_all(int fd, const char *data, size_t size, uint64_t at)
{
	while (size) {
		ssize_t written = pwrite(fd, data, size, (off_t)at);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? errno : EIO;
		data += written;
		size -= (size_t)written;
		at += (uint64_t)written;
	}
	return 0;
}

/* Runs in the thread. */
static void spill_run(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;

	s->result = write_all(s->fd, s->writing.data, s->writing.size, s->at);
	s->at += s->writing.size;
}

static void spill_free(struct spill *s)
{
	errand_close(s->fd);
	free(s->writing.data);
	free(s->waiting.data);
	free(s);
}

static void spill_send(struct spill *s)
{
	s->under_way = true;
	s->writing = s->waiting;
	s->waiting = (struct buffer){0};
	errand_send(ERRAND_WRITE, &s->errand);
}

/* Runs in the loop again. */
static void spill_done(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;

	s->under_way = false;
	s->broken = s->result;
	free(s->writing.data);
	s->writing = (struct buffer){0};
	if (s->broken)
		log_error("a body cannot be written to its file: %s", strerror(s->result));
	if (s->abandoned) {
		spill_free(s);
	} else if (s->waiting.size && !s->broken) {
		spill_send(s);
	} else if (s->wake) {
		void (*wake)(void *) = s->wake;

		s->wake = NULL;
		wake(s->context);
	}
}

static enum error spill_add(struct spill *s, const void *data, size_t size)
{
	struct buffer *b = &s->waiting;

	if (s->broken)
		return ERR_IO;
	if (b->size + size > b->room) {
		size_t room = 2 * b->room > b->size + size ? 2 * b->room : b->size + size;
		char *more = realloc(b->data, room);

		if (!more)
			return ERR_MEMORY;
		b->data = more;
		b->room = room;
	}
	memcpy(b->data + b->size, data, size);
	b->size += size;
	if (!s->under_way)
		spill_send(s);
	return ERR_OK;
}

int body_whole(const char *data, size_t size)
{
	int fd = memfd_create("body", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (write_all(fd, data, size, 0) || !memfd_seal(fd))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

size_t body_room(const struct body *body, uint64_t read, size_t size)
{
	uint64_t room = body->lent.limit > read ? body->lent.limit - read : 0;

	return body->lent.most || size < room ? size : (size_t)room;
}

enum error body_move(struct body *body, const struct lent *lent)
{
	int fd;

	if (body->fd >= 0 && body->lent.in_memory == lent->in_memory) {
		body->lent = *lent;
		return ERR_OK;
	}
	fd = fcntl(lent->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return ERR_IO;
	body_close(body);
	if (!lent->in_memory) {
		body->spill = calloc(1, sizeof *body->spill);
		if (!body->spill) {
			close(fd);
			return ERR_MEMORY;
		}
		body->spill->errand = (struct errand){.run = spill_run, .done = spill_done};
		body->spill->fd = fd; /* which is the spill's from now on */
		body->spill->at = body->size;
	}
	body->fd = fd;
	body->lent = *lent;
	return ERR_OK;
}

enum error body_write(struct body *body, const char *data, size_t size, struct problem *problem)
{
	enum error e;

	if (size > body->lent.limit - body->size)
		return problem_set(problem, ERR_BODY_TOO_LARGE,
		                   "a body has at most %" PRIu64 " bytes", body->lent.limit);
	if (body->spill)
		e = spill_add(body->spill, data, size);
	else
		e = write_all(body->fd, data, size, body->size) ? ERR_IO : ERR_OK;
	if (e)
		return problem_set(problem, e, "cannot keep the body");
	body->size += size;
	return ERR_OK;
}

bool body_await(struct body *body, void (*wake)(void *context), void *context)
{
	struct spill *s = body->spill;

	if (!s || !s->under_way)
		return false;
	s->wake = wake;
	s->context = context;
	return true;
}

enum error body_finish(const struct body *body, struct problem *problem)
{
	if (body->spill ? body->spill->broken : body->fd >= 0 && !memfd_seal(body->fd))
		return problem_set(problem, ERR_IO, "cannot keep the body");
	return ERR_OK;
}

void body_close(struct body *body)
{
	struct spill *s = body->spill;

	if (s && s->under_way)
		s->abandoned = true;
	else if (s)
		spill_free(s);
	else if (body->fd >= 0)
		errand_close(body->fd);
	body->fd = -1;
	body->spill = NULL;
}
