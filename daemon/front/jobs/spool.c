/* Bodies and answers, in memory or in unlinked files.  Data for a file is a spill: it collects in
 * memory while an errand (a thread) writes earlier data, and moves the content of a memfd. The loop
 * does not touch what the errand holds until that has finished. */
#include "front/jobs/spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/log.h"
#include "front/base/errand.h"

struct buffer {
	char *data;
	size_t size, room;
};

struct spill {
	struct errand
	    errand; /* must be first; it owns the members up to `result` while it is running */
	int memory; /* memfd to be moved first; -1: none */
	int file;   /* -1: none yet */
	struct buffer writing;
	int result; /* errno of a failure, and what failed */
	const char *failed;

	struct buffer waiting; /* to be written next */
	bool under_way, abandoned, broken;
	void (*wake)(void *context);
	void *context;
};

static const struct config *config;
static uint64_t memory_used;
static uint64_t answers_used; /* the part of it that belongs to answers */
static unsigned counts[2];    /* number of open spools: in files, in memory */

void spool_init(const struct config *c)
{
	config = c;
	memory_used = answers_used = 0;
}

/* Writes all of it to the file; returns 0 or an errno. */
static int write_all(int file, const struct buffer *buffer)
{
	for (size_t at = 0; at < buffer->size;) {
		ssize_t written = write(file, buffer->data + at, buffer->size - at);

		if (written > 0)
			at += (size_t)written;
		else if (written == 0 || errno != EINTR)
			return written ? errno : EIO;
	}
	return 0;
}

static int move_all(int file, int memory)
{
	enum { PIECE = 1 << 30 };
	off_t offset = 0;
	ssize_t moved;

	do
		moved = sendfile(file, memory, &offset, PIECE);
	while (moved > 0 || (moved < 0 && errno == EINTR));
	return moved ? errno : 0;
}

/* Runs in the thread. */
static void spill_run(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;

	s->failed = "written";
	if (s->file < 0) {
		s->file = open(config->cache_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		s->result = s->file < 0 ? errno : 0;
		s->failed = s->result ? "made" : s->failed;
	}
	if (!s->result && s->memory >= 0)
		s->result = move_all(s->file, s->memory);
	if (!s->result)
		s->result = write_all(s->file, &s->writing);
	if (s->memory >= 0)
		close(s->memory);
	s->memory = -1;
}

static void spill_free(struct spill *s)
{
	if (s->memory >= 0)
		errand_close(s->memory);
	if (s->file >= 0)
		errand_close(s->file);
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
		log_error("a file in %s cannot be %s: %s", config->cache_dir, s->failed,
		          strerror(s->result));
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

static enum error spill_open(struct spool *spool)
{
	struct spill *s = calloc(1, sizeof *s);

	if (!s)
		return ERR_MEMORY;
	s->errand = (struct errand){NULL, spill_run, spill_done};
	s->memory = s->file = -1;
	spool->spill = s;
	counts[false]++;
	return ERR_OK;
}

static void take(struct spool *spool, uint64_t size)
{
	spool->reserved += size;
	memory_used += size;
	answers_used += spool->is_answer ? size : 0;
}

/* Clients may read answers arbitrarily slowly: a quarter of the memory is reserved for bodies. */
static bool reserve(struct spool *spool, uint64_t size)
{
	uint64_t more = size > spool->reserved ? size - spool->reserved : 0;

	/* An answer may have settled above its reservation, and a reload may have lowered the
	 * limit; reservations stay. */
	if (more && (memory_used > config->max_memory || more > config->max_memory - memory_used))
		return false;
	if (spool->is_answer && more + answers_used > config->max_memory / 4 * 3)
		return false;
	take(spool, more);
	return true;
}

static void release(struct spool *spool)
{
	memory_used -= spool->reserved;
	answers_used -= spool->is_answer ? spool->reserved : 0;
	spool->reserved = 0;
}

static enum error open_memory(struct spool *spool, uint64_t size, bool is_answer)
{
	*spool = (struct spool){.fd = -1, .in_memory = true, .is_answer = is_answer};
	if (!reserve(spool, size))
		return ERR_QUEUE_FULL;
	spool->fd = memfd_create("spool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	counts[true] += spool->fd >= 0;
	if (spool->fd >= 0)
		return ERR_OK;
	release(spool);
	return ERR_IO;
}

enum error spool_open_memory(struct spool *spool, uint64_t size)
{
	return open_memory(spool, size, false);
}

enum error spool_open(struct spool *spool, uint64_t expected)
{
	if (expected <= config->spool_size)
		return spool_open_memory(spool, expected);
	*spool = (struct spool){.fd = -1};
	return spill_open(spool);
}

enum error spool_open_answer(struct spool *spool, uint64_t expected)
{
	enum error e = ERR_QUEUE_FULL;

	if (expected <= config->spool_size)
		e = open_memory(spool, expected, true);
	if (e != ERR_QUEUE_FULL)
		return e;
	*spool = (struct spool){.fd = -1};
	e = spill_open(spool);
	if (!e)
		spill_send(spool->spill);
	return e;
}

/* Moves the content of the memory to a file. */
static enum error move_to_file(struct spool *spool)
{
	enum error e = spill_open(spool);

	if (e)
		return e;
	spool->spill->memory = spool->fd;
	spool->fd = -1;
	spool->in_memory = false;
	counts[true]--;
	release(spool);
	spill_send(spool->spill);
	return ERR_OK;
}

static enum error write_memory(struct spool *spool, const char *data, size_t size)
{
	if (!reserve(spool, spool->size + size))
		return ERR_QUEUE_FULL;
	while (size) {
		ssize_t written = write(spool->fd, data, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return ERR_IO;
		data += written;
		size -= (size_t)written;
		spool->size += (uint64_t)written;
	}
	return ERR_OK;
}

enum error spool_write(struct spool *spool, const void *data, size_t size)
{
	enum error e = ERR_OK;

	if (spool->in_memory && spool->size + size > config->spool_size &&
	    spool->size + size > spool->reserved)
		e = move_to_file(spool);
	if (e)
		return e;
	if (spool->in_memory)
		return write_memory(spool, data, size);
	e = spill_add(spool->spill, data, size);
	spool->size += e ? 0 : size;
	return e;
}

bool spool_await(struct spool *spool, void (*wake)(void *context), void *context)
{
	struct spill *spill = spool->spill;

	if (!spill || !spill->under_way)
		return false;
	spill->wake = wake;
	spill->context = context;
	return true;
}

enum error spool_error(const struct spool *spool)
{
	return spool->spill && spool->spill->broken ? ERR_IO : ERR_OK;
}

enum error spool_take_file(struct spool *spool)
{
	struct spill *spill = spool->spill;

	if (!spill)
		return ERR_OK;
	assert(!spill->under_way);
	if (spool_error(spool))
		return ERR_IO;
	spool->fd = spill->file;
	spool->spill = NULL;
	free(spill);
	return ERR_OK;
}

static enum error seal(const struct spool *spool, int writing)
{
	return fcntl(spool->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | writing) ? ERR_IO
	                                                                            : ERR_OK;
}

/* A file cannot be sealed. */
static enum error keep_readable(struct spool *spool)
{
	int fd;

	if (arena_reopen_read_only(spool->fd, &fd))
		return ERR_IO;
	close(spool->fd);
	spool->fd = fd;
	return ERR_OK;
}

/* Memory that no other process has had is mapped nowhere. So it needs no F_SEAL_WRITE, for which
 * the system looks for mappings and has every processor put aside the pages that it is about to
 * file. */
enum error spool_seal(struct spool *spool)
{
	if (spool_take_file(spool))
		return ERR_IO;
	if (spool->fd < 0)
		return ERR_OK;
	return spool->in_memory ? seal(spool, F_SEAL_FUTURE_WRITE) : keep_readable(spool);
}

enum error spool_settle(struct spool *spool, uint64_t size)
{
	struct stat status;

	if (spool->in_memory && seal(spool, F_SEAL_WRITE))
		return ERR_IO;
	if (fstat(spool->fd, &status) || (uint64_t)status.st_size != size)
		return ERR_IO;
	spool->size = size;
	if (!spool->in_memory)
		return ERR_OK;
	release(spool);
	take(spool, size);
	return ERR_OK;
}

void spool_close(struct spool *spool)
{
	release(spool);
	if (spool->fd >= 0)
		errand_close(spool->fd);
	if (spool->fd >= 0 || spool->spill)
		counts[spool->in_memory]--;
	if (spool->spill && spool->spill->under_way)
		spool->spill->abandoned = true;
	else if (spool->spill)
		spill_free(spool->spill);
	*spool = (struct spool){.fd = -1};
}

uint64_t spool_memory(void)
{
	return memory_used;
}

unsigned spool_count(bool in_memory)
{
	return counts[in_memory];
}
