/* Bodies and answers, in memory or in unlinked files. An errand (a thread) makes a file, and moves
 * the content of a memfd there. The loop does not touch what the errand holds until that has
 * finished. */
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

struct spill {
	struct errand
	    errand; /* must be first; it owns the members up to `result` while it is running */
	int memory; /* memfd to be moved first; -1: none */
	int file;
	int result; /* errno of a failure, and what failed */
	const char *failed;

	bool under_way, abandoned;
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

	s->failed = "made";
	s->file = open(config->cache_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	s->result = s->file < 0 ? errno : 0;
	if (!s->result && s->memory >= 0) {
		s->failed = "written";
		s->result = move_all(s->file, s->memory);
	}
	if (s->memory >= 0)
		close(s->memory);
	s->memory = -1;
}

static void spill_free(struct spill *s)
{
	if (s->file >= 0)
		errand_close(s->file);
	free(s);
}

/* Runs in the loop again. */
static void spill_done(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;
	void (*wake)(void *) = s->wake;

	s->under_way = false;
	if (s->result)
		log_error("a file in %s cannot be %s: %s", config->cache_dir, s->failed,
		          strerror(s->result));
	if (s->abandoned) {
		spill_free(s);
	} else if (wake) {
		s->wake = NULL;
		wake(s->context);
	}
}

/* Begins to make the spool's file, with what is in a memfd (owned from then on; -1: nothing). */
static enum error spill_open(struct spool *spool, int memory)
{
	struct spill *s = calloc(1, sizeof *s);

	if (!s)
		return ERR_MEMORY;
	s->errand = (struct errand){NULL, spill_run, spill_done};
	s->file = -1;
	s->memory = memory;
	s->under_way = true;
	spool->spill = s;
	counts[false]++;
	errand_send(ERRAND_WRITE, &s->errand);
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

/* Opens it over a memfd (owned from then on; -1: a failure). */
static enum error open_over(struct spool *spool, uint64_t size, bool is_answer, int fd)
{
	enum error e = fd < 0 ? ERR_IO : ERR_OK;

	*spool = (struct spool){.fd = -1, .in_memory = true, .is_answer = is_answer};
	if (!e && !reserve(spool, size))
		e = ERR_QUEUE_FULL;
	if (e && fd >= 0)
		close(fd);
	if (e)
		return e;
	spool->fd = fd;
	counts[true]++;
	return ERR_OK;
}

static enum error open_memory(struct spool *spool, uint64_t size, bool is_answer)
{
	return open_over(spool, size, is_answer,
	                 memfd_create("spool", MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

enum error spool_adopt(struct spool *spool, uint64_t size, int fd)
{
	return open_over(spool, size, false, fd);
}

enum error spool_open_memory(struct spool *spool, uint64_t size)
{
	return open_memory(spool, size, false);
}

enum error spool_open(struct spool *spool, uint64_t size)
{
	if (size <= config->spool_size)
		return spool_open_memory(spool, size);
	*spool = (struct spool){.fd = -1};
	return spill_open(spool, -1);
}

enum error spool_open_answer(struct spool *spool, uint64_t expected)
{
	enum error e = ERR_QUEUE_FULL;

	if (expected <= config->spool_size)
		e = open_memory(spool, expected, true);
	if (e != ERR_QUEUE_FULL)
		return e;
	*spool = (struct spool){.fd = -1};
	return spill_open(spool, -1);
}

/* Moves the content of the memory to a file. */
static enum error move_to_file(struct spool *spool)
{
	enum error e = spill_open(spool, spool->fd);

	if (e)
		return e;
	spool->fd = -1;
	spool->in_memory = false;
	counts[true]--;
	release(spool);
	return ERR_OK;
}

enum error spool_extend(struct spool *spool, uint64_t size)
{
	if (!spool->in_memory)
		return ERR_OK;
	if (size > config->spool_size && size > spool->reserved)
		return move_to_file(spool);
	return reserve(spool, size) ? ERR_OK : ERR_QUEUE_FULL;
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

enum error spool_take_file(struct spool *spool)
{
	struct spill *spill = spool->spill;

	if (!spill)
		return ERR_OK;
	assert(!spill->under_way);
	if (spill->result)
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

enum error spool_measure(struct spool *spool, uint64_t size)
{
	struct stat status;

	if (fstat(spool->fd, &status) || (uint64_t)status.st_size != size)
		return ERR_IO;
	spool->size = size;
	if (!spool->in_memory)
		return ERR_OK;
	release(spool);
	take(spool, size);
	return ERR_OK;
}

/* The system refuses F_SEAL_WRITE where a process may write to a mapping, but also while it moves a
 * page itself. Then a copy, which nobody else has, takes the place; the size is sealed before, so
 * that what is read is there. */
static enum error settle_copy(struct spool *spool, uint64_t size)
{
	enum error e = seal(spool, 0) ? ERR_IO : spool_measure(spool, size);
	void *data = MAP_FAILED;
	int fd;

	if (!e)
		data = mmap(NULL, size, PROT_READ, MAP_SHARED, spool->fd, 0);
	if (data == MAP_FAILED)
		return ERR_IO;
	e = sealed_create("spool", data, size, &fd);
	munmap(data, size);
	if (e)
		return e;
	close(spool->fd);
	spool->fd = fd;
	return ERR_OK;
}

enum error spool_settle(struct spool *spool, uint64_t size)
{
	if (spool->in_memory && seal(spool, F_SEAL_WRITE))
		return errno == EBUSY ? settle_copy(spool, size) : ERR_IO;
	return spool_measure(spool, size);
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
