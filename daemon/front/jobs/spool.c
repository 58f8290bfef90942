/* Bodies and answers, in memory or in unlinked files. An errand makes a file and moves the content
 * of a memfd there.
 *
 * The hard part is that the writer may keep its descriptor, and a mapping. Memory is final once its
 * writer has sealed it: the system refuses that while a writable mapping exists, and it walks the
 * pages, for which the loop has no time. A file's writer gets a descriptor that cannot map
 * anything, and the system grants a read lease only while nobody has the file open for writing
 * (overlayfs would not count a mapping). */
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

#include "base/errand.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memfd.h"
#include "front/config/config.h"

struct spill {
	/* Must be first. It owns all other members while it is under way. */
	struct errand errand;
	int memory;         /* memfd to be moved first; -1: none */
	int reader, writer; /* the file */
	int result;         /* errno of a failure, and what failed */
	const char *failed;
};

enum {
	/* bytes that an answer may have above twice its expected size; and the largest answer for
	 * which memory is set aside */
	SMALL_ANSWER = 1 << 20,
	BLOCK_SIZE = 512, /* bytes in the unit of st_blocks */
};

static struct spool_use use;

/* Runs in the thread. */
static void spill_run(struct errand *errand)
{
	enum { PIECE = 1 << 30 };
	struct spill *s = (struct spill *)errand;
	int file = open(config->cache_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	ssize_t moved = 0;
	off_t offset = 0;

	s->failed = "made";
	if (file < 0 || memfd_reopen(file, O_RDONLY, &s->reader) ||
	    memfd_reopen(file, O_WRONLY, &s->writer))
		s->result = errno;
	file_close(&file);
	if (!s->result && s->memory >= 0) {
		s->failed = "written";
		do
			moved = sendfile(s->writer, s->memory, &offset, PIECE);
		while (moved > 0 || (moved < 0 && errno == EINTR));
		s->result = moved ? errno : 0;
	}
	file_close(&s->memory);
}

static void spill_free(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;

	file_close(&s->writer);
	if (s->reader >= 0)
		errand_close(s->reader);
	free(s);
}

/* Runs in the loop again. */
static void spill_done(struct errand *errand)
{
	const struct spill *s = (const struct spill *)errand;

	if (s->result)
		log_error("a file in %s cannot be %s: %s", config->cache_dir, s->failed,
		          strerror(s->result));
}

/* Begins to make the spool's file, with a memfd's content (owned from then on; -1: nothing). */
static enum error spill_open(struct spool *spool, int memory)
{
	struct spill *s = calloc(1, sizeof *s);

	if (!s)
		return ERR_MEMORY;
	s->errand = (struct errand){.run = spill_run, .done = spill_done, .free = spill_free};
	s->reader = s->writer = -1;
	s->memory = memory;
	spool->spill = s;
	use.in_files++;
	errand_send(ERRAND_WRITE, &s->errand);
	return ERR_OK;
}

/* Returns the limit of memory. client: an answer's; NULL for a body. Clients may read answers
 * slowly, so a quarter of the memory is left to bodies, and an eighth to small answers. */
static bool reserve(struct spool *spool, uint64_t size, const char *client)
{
	const uint64_t for_answers = config->max_memory / 8 * (size > SMALL_ANSWER ? 5 : 6);
	uint64_t more = size > spool->reserved ? size - spool->reserved : 0;

	/* An answer may have settled above its reservation, and a reload may have lowered the
	 * limit; reservations stay. */
	if (more && (use.memory > config->max_memory || more > config->max_memory - use.memory))
		return false;
	if (client &&
	    share_take(&spool->share, SHARE_ANSWER_MEMORY, client, more, for_answers, NULL))
		return false;
	spool->reserved += more;
	use.memory += more;
	return true;
}

static void release(struct spool *spool)
{
	use.memory -= spool->reserved;
	share_give_all(&spool->share);
	spool->reserved = 0;
}

/* Opens a spool that owns a memfd (-1: a new one). client: an answer's; NULL for a body. */
static enum error open_memory(struct spool *spool, uint64_t size, const char *client, int fd)
{
	if (fd < 0)
		fd = memfd_create("spool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return ERR_IO;
	*spool = (struct spool){.fd = fd, .writer = fd, .in_memory = true, .most = size};
	if (reserve(spool, size, client)) {
		use.in_memory++;
		return ERR_OK;
	}
	*spool = SPOOL_NONE;
	close(fd);
	return ERR_QUEUE_FULL;
}

static bool is_final(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS_FINAL) == SEALS_FINAL;
}

enum error spool_adopt(struct spool *spool, uint64_t size, int fd)
{
	if (is_final(fd))
		return open_memory(spool, size, NULL, fd);
	close(fd);
	return ERR_IO;
}

static enum error open_file(struct spool *spool, uint64_t size)
{
	*spool = (struct spool){.fd = -1, .writer = -1, .most = size};
	return spill_open(spool, -1);
}

enum error spool_open(struct spool *spool, uint64_t size)
{
	return size <= config->spool_size ? open_memory(spool, size, NULL, -1)
	                                  : open_file(spool, size);
}

enum error spool_open_answer(struct spool *spool, uint64_t expected, const char *client)
{
	enum error e = ERR_QUEUE_FULL;

	if (expected <= config->spool_size)
		e = open_memory(spool, expected, client, -1);
	if (e == ERR_QUEUE_FULL)
		e = open_file(spool, expected);
	spool->most = 2 * expected + SMALL_ANSWER;
	return e;
}

enum error spool_extend(struct spool *spool, uint64_t size)
{
	enum error e;

	if (size > spool->most)
		spool->most = size;
	if (!spool->in_memory)
		return ERR_OK;
	if (size <= config->spool_size || size <= spool->reserved)
		return reserve(spool, size, NULL) ? ERR_OK : ERR_QUEUE_FULL;
	e = spill_open(spool, spool->fd);
	if (e)
		return e;
	spool->fd = spool->writer = -1;
	spool->in_memory = false;
	use.in_memory--;
	release(spool);
	return ERR_OK;
}

bool spool_await(struct spool *spool, void (*wake)(void *context), void *context)
{
	return spool->spill && errand_await(&spool->spill->errand, wake, context);
}

enum error spool_take_file(struct spool *spool)
{
	struct spill *spill = spool->spill;

	if (!spill)
		return ERR_OK;
	assert(!spill->errand.under_way);
	if (spill->result)
		return ERR_IO;
	spool->fd = spill->reader;
	spool->writer = spill->writer;
	spool->spill = NULL;
	free(spill);
	return ERR_OK;
}

bool spool_release(struct spool *spool)
{
	if (spool->in_memory)
		return is_final(spool->fd);
	file_close(&spool->writer);
	return !fcntl(spool->fd, F_SETLEASE, F_RDLCK) && !fcntl(spool->fd, F_SETLEASE, F_UNLCK);
}

enum error spool_settle(struct spool *spool, uint64_t size)
{
	static const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
	const bool final = spool_release(spool) || !spool->in_memory;
	struct stat status;

	if ((!final && fcntl(spool->fd, F_ADD_SEALS, seals)) || size > spool->most ||
	    fstat(spool->fd, &status) || (uint64_t)status.st_size != size ||
	    (spool->in_memory && (uint64_t)status.st_blocks * BLOCK_SIZE < size))
		return ERR_IO;
	spool->size = size;
	if (!spool->in_memory)
		return ERR_OK;
	if (spool->share.client && size > spool->reserved &&
	    share_force(&spool->share, SHARE_ANSWER_MEMORY, "", size - spool->reserved))
		return ERR_MEMORY;
	if (size < spool->reserved)
		share_give(&spool->share, spool->reserved - size);
	use.memory += size - spool->reserved;
	spool->reserved = size;
	return ERR_OK;
}

void spool_close(struct spool *spool)
{
	release(spool);
	if (!spool->in_memory && spool->writer >= 0)
		close(spool->writer);
	if (spool->fd >= 0)
		errand_close(spool->fd);
	if (spool->in_memory)
		use.in_memory--;
	else if (spool->fd >= 0 || spool->spill)
		use.in_files--;
	if (spool->spill)
		errand_abandon(&spool->spill->errand);
	*spool = SPOOL_NONE;
}

void spool_replace(struct spool *spool, int file, uint64_t size)
{
	spool_close(spool);
	*spool = (struct spool){.fd = file, .writer = -1, .size = size, .most = size};
	use.in_files++;
}

struct spool_use spool_use(void)
{
	return use;
}
