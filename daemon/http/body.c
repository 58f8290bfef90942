/* Bodies. Data for a file collects in memory while an errand (a thread) writes earlier data. The
 * loop does not touch what the errand holds until that has finished. */
#include "http/body.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/errand.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memfd.h"

struct spill {
	/* must be first; it owns the members up to `failure` while it is under way */
	struct errand errand;
	int fd;
	uint64_t at; /* where the next data goes */
	struct head_writer writing;
	int failure; /* errno */

	struct head_writer waiting; /* to be written next */
};

void body_init(struct body *body)
{
	*body = (struct body){.lent.fd = -1};
}

/* Runs in the thread. */
static void spill_run(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;

	if (!file_write(s->fd, s->writing.data, s->writing.size, s->at))
		s->failure = errno;
	s->at += s->writing.size;
}

static void spill_send(struct spill *s)
{
	s->writing = s->waiting;
	s->waiting = (struct head_writer){0};
	errand_send(ERRAND_WRITE, &s->errand);
}

/* Runs in the loop again. */
static void spill_done(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;

	free(s->writing.data);
	s->writing = (struct head_writer){0};
	if (s->failure)
		log_error("a body cannot be written to its file: %s", strerror(s->failure));
	else if (s->waiting.size && !errand->abandoned)
		spill_send(s);
}

static void spill_free(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;

	errand_close(s->fd);
	free(s->waiting.data);
	free(s);
}

static enum error spill_add(struct spill *s, const void *data, size_t size)
{
	if (!s->errand.under_way && s->failure)
		return ERR_IO;
	head_append(&s->waiting, data, size);
	if (s->waiting.failed)
		return ERR_MEMORY;
	if (!s->errand.under_way)
		spill_send(s);
	return ERR_OK;
}

bool body_has_room(const struct body *body, uint64_t size)
{
	return body->lent.most || size <= body->lent.limit;
}

enum error body_move(struct body *body, const struct lent *lent, struct problem *problem)
{
	struct spill *spill = NULL;

	if (body->lent.fd >= 0 && body->lent.in_memory == lent->in_memory) {
		close(lent->fd);
		body->lent.limit = lent->limit;
		body->lent.most = lent->most;
		return ERR_OK;
	}
	if (!lent->in_memory && !(spill = calloc(1, sizeof *spill))) {
		close(lent->fd);
		return problem_set(problem, ERR_MEMORY, "cannot keep the body");
	}
	body_close(body);
	if (spill) {
		spill->errand =
		    (struct errand){.run = spill_run, .done = spill_done, .free = spill_free};
		spill->fd = lent->fd; /* which is the spill's from now on */
		spill->at = body->size;
	}
	body->spill = spill;
	body->lent = *lent;
	return ERR_OK;
}

enum error body_write(struct body *body, const char *data, size_t size, struct problem *problem)
{
	enum error e = ERR_OK;

	if (size > body->lent.limit - body->size)
		return problem_set(problem, ERR_BODY_TOO_LARGE,
		                   "a body has at most %" PRIu64 " bytes", body->lent.limit);
	if (body->spill)
		e = spill_add(body->spill, data, size);
	else if (!file_write(body->lent.fd, data, size, body->size))
		e = ERR_IO;
	if (e)
		return problem_set(problem, e, "cannot keep the body");
	body->size += size;
	return ERR_OK;
}

bool body_await(struct body *body, void (*wake)(void *context), void *context)
{
	return body->spill && errand_await(&body->spill->errand, wake, context);
}

enum error body_finish(const struct body *body, struct problem *problem)
{
	if (body->spill ? body->spill->failure : body->lent.fd >= 0 && !memfd_seal(body->lent.fd))
		return problem_set(problem, ERR_IO, "cannot keep the body");
	return ERR_OK;
}

void body_close(struct body *body)
{
	if (body->spill)
		errand_abandon(&body->spill->errand);
	else if (body->lent.fd >= 0)
		errand_close(body->lent.fd);
	body->lent.fd = -1;
	body->spill = NULL;
}
