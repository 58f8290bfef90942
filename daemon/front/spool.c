/* Bodies and answers, in memory or in unlinked files. */
#include "front/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "common/log.h"

static const struct config *config;
static uint64_t memory_used;
static unsigned counts[2]; /* of open ones: in files, in memory */

void spool_init(const struct config *c)
{
	config = c;
	memory_used = 0;
}

static enum error open_file(int *fd)
{
	*fd = open(config->cache_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	counts[false] += *fd >= 0;
	if (*fd >= 0)
		return ERR_OK;
	log_error("cannot make a file in %s: %m", config->cache_dir);
	return ERR_IO;
}

static bool reserve(struct spool *spool, uint64_t size)
{
	uint64_t more = size > spool->reserved ? size - spool->reserved : 0;

	/* An answer may have settled above what was reserved for it, and a reload may have lowered
	 * the bound; what has been reserved stays so. */
	if (more && (memory_used > config->max_memory || more > config->max_memory - memory_used))
		return false;
	memory_used += more;
	spool->reserved += more;
	return true;
}

static void release(struct spool *spool)
{
	memory_used -= spool->reserved;
	spool->reserved = 0;
}

enum error spool_open(struct spool *spool, uint64_t expected)
{
	*spool = (struct spool){.fd = -1, .in_memory = expected <= config->spool_size};
	if (!spool->in_memory)
		return open_file(&spool->fd);
	if (!reserve(spool, expected))
		return ERR_QUEUE_FULL;
	spool->fd = memfd_create("spool", MFD_CLOEXEC);
	counts[true] += spool->fd >= 0;
	if (spool->fd >= 0)
		return ERR_OK;
	release(spool);
	return ERR_IO;
}

enum error spool_open_anywhere(struct spool *spool, uint64_t expected)
{
	enum error e = spool_open(spool, expected);

	if (e != ERR_QUEUE_FULL)
		return e;
	spool->in_memory = false;
	return open_file(&spool->fd);
}

/* Moves what is in memory to a file. */
static enum error move_to_file(struct spool *spool)
{
	off_t offset = 0;
	int file;
	enum error e = open_file(&file);

	if (e)
		return e;
	while (offset < (off_t)spool->size)
		if (sendfile(file, spool->fd, &offset, spool->size - (uint64_t)offset) <= 0) {
			close(file);
			counts[false]--;
			return ERR_IO;
		}
	close(spool->fd);
	counts[true]--;
	spool->fd = file;
	spool->in_memory = false;
	release(spool);
	return ERR_OK;
}

enum error spool_write(struct spool *spool, const void *data, size_t size)
{
	const char *at = data;
	enum error e;

	if (spool->in_memory && spool->size + size > config->spool_size) {
		e = move_to_file(spool);
		if (e)
			return e;
	}
	if (spool->in_memory && !reserve(spool, spool->size + size))
		return ERR_QUEUE_FULL;
	while (size) {
		ssize_t written = write(spool->fd, at, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return ERR_IO;
		at += written;
		size -= (size_t)written;
		spool->size += (uint64_t)written;
	}
	return ERR_OK;
}

void spool_settle(struct spool *spool, uint64_t size)
{
	spool->size = size;
	if (!spool->in_memory)
		return;
	release(spool);
	memory_used += size;
	spool->reserved = size;
}

void spool_close(struct spool *spool)
{
	release(spool);
	if (spool->fd >= 0) {
		close(spool->fd);
		counts[spool->in_memory]--;
	}
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
