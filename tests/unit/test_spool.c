/* Spools: where bodies and answers are kept, and that nobody changes them any more. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memfd.h"
#include "front/config/config.h"
#include "front/jobs/shares.h"
#include "front/jobs/spool.h"
#include "unit.h"

/* Appends, as who has been lent the spool does. */
static enum error extend(struct spool *spool, uint64_t before, const char *data, size_t size)
{
	enum error e = spool_extend(spool, before + size);

	if (!e)
		e = spool_take_file(spool);
	if (!e)
		assert_int_equal(pwrite(spool->writer, data, size, (off_t)before), size);
	return e;
}

TEST(test_spool)
{
	char data[600], back[1200];
	struct spool small, large, third;
	struct config settings = {
	    .max_memory = 1500, .spool_size = 1000, .cache_dir = ".", .client_share = 0.75};

	memset(data, 'x', sizeof data);
	config = &settings;
	assert_int_equal(spool_open(&small, 10), ERR_OK);
	assert_int_equal(extend(&small, 0, data, 600), ERR_OK);
	assert_true(small.in_memory);
	assert_int_equal(spool_use().memory, 600);
	assert_int_equal(spool_settle(&small, 600), ERR_OK);
	/* Outgrows its memory: moves to a file, with what it holds. */
	assert_int_equal(spool_open(&large, 600), ERR_OK);
	assert_int_equal(extend(&large, 0, data, 600), ERR_OK);
	assert_int_equal(spool_open(&third, 700), ERR_QUEUE_FULL);
	assert_int_equal(extend(&large, 600, data, 600), ERR_OK);
	assert_false(large.in_memory);
	assert_int_equal(spool_use().memory, 600);
	assert_int_equal(spool_settle(&large, 1200), ERR_OK);
	assert_int_equal(pread(large.fd, back, sizeof back, 0), 1200);
	assert_memory_equal(back + 600, data, 600);
	spool_close(&small);
	/* Answers leave a quarter to bodies, and to other clients what is theirs. */
	assert_int_equal(spool_open_answer(&small, 900, "a"), ERR_OK);
	assert_true(small.in_memory);
	assert_int_equal(spool_open_answer(&third, 300, "b"), ERR_OK);
	assert_false(third.in_memory);
	spool_close(&third);
	assert_int_equal(spool_open_answer(&third, 1, "a"), ERR_OK);
	assert_false(third.in_memory);
	spool_close(&third);
	assert_int_equal(spool_open_answer(&third, 1, "b"), ERR_OK);
	assert_true(third.in_memory);
	spool_close(&third);
	assert_int_equal(spool_open(&third, 300), ERR_OK);
	assert_true(third.in_memory);
	spool_close(&third);
	/* It may be larger than expected, but not by much. */
	assert_int_equal(pwrite(small.writer, back, 1200, 400), 1200);
	assert_int_equal(pwrite(small.writer, data, 400, 0), 400);
	assert_int_equal(spool_settle(&small, 1600), ERR_OK);
	assert_int_equal(spool_use().memory, 1600);
	assert_int_equal(spool_open(&third, 1), ERR_QUEUE_FULL);
	assert_int_equal(spool_open_answer(&third, 1, "b"), ERR_OK);
	assert_false(third.in_memory);
	spool_close(&third);
	spool_close(&small);
	spool_close(&large);
	spool_close(&large);
	assert_int_equal(spool_use().memory, 0);
	/* A file that cannot be made is told, each time. */
	settings.cache_dir = "nowhere";
	assert_int_equal(spool_open(&large, 2000), ERR_OK);
	assert_int_equal(spool_take_file(&large), ERR_IO);
	assert_int_equal(spool_take_file(&large), ERR_IO);
	spool_close(&large);
	assert_int_equal(spool_use().in_files, 0);
}

static bool can_change(int fd)
{
	return pwrite(fd, "y", 1, 0) >= 0 || !ftruncate(fd, 1) || !ftruncate(fd, 10000) ||
	       mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
}

/* Released memory or files cannot be changed by anybody, and are not released while somebody may:
 * who has a mapping of memory, and who keeps the descriptor of a file. */
TEST(test_spool_settled)
{
	char data[600], back[600];
	struct config settings = {.max_memory = 10000, .spool_size = 1000, .cache_dir = "."};
	struct spool spool;
	void *mapped;
	int worker;

	memset(data, 'x', sizeof data);
	config = &settings;
	for (int large = 0; large < 2; large++) {
		assert_int_equal(spool_open(&spool, large ? 5000 : 600), ERR_OK);
		assert_int_equal(extend(&spool, 0, data, 600), ERR_OK);
		worker = dup(spool.writer);
		mapped = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, worker, 0);
		assert_true((mapped == MAP_FAILED) == large);
		assert_false(memfd_seal(worker));
		assert_false(spool_release(&spool));
		assert_int_equal(spool_settle(&spool, UINT64_C(1) << 62), ERR_IO);
		assert_int_equal(spool_use().memory, large ? 0 : 600);
		if (!large)
			munmap(mapped, 1);
		assert_int_equal(memfd_seal(worker), !large);
		assert_int_equal(can_change(worker), large);
		if (large) /* it has been */
			assert_int_equal(pwrite(worker, data, 600, 0), 600);
		close(worker);
		assert_true(spool_release(&spool));
		assert_int_equal(spool_settle(&spool, 601), ERR_IO);
		assert_int_equal(spool_settle(&spool, 600), ERR_OK);
		assert_false(can_change(spool.fd));
		assert_int_equal(pread(spool.fd, back, 600, 0), 600);
		assert_memory_equal(back, data, 600);
		spool_close(&spool);
	}
	assert_int_equal(spool_use().memory, 0);
}

/* One byte far out is no answer of that size. */
TEST(test_spool_sparse)
{
	static const struct config settings = {
	    .max_memory = 100 << 20, .spool_size = 10 << 20, .client_share = 0.75};
	const int places[] = {5 << 20, 500000}; /* beyond the room of the spool, and within it */
	struct spool spool;

	config = &settings;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(spool_open_answer(&spool, 1000, "a"), ERR_OK);
		assert_int_equal(pwrite(spool.writer, "x", 1, places[i]), 1);
		assert_int_equal(spool_settle(&spool, (uint64_t)places[i] + 1), ERR_IO);
		assert_int_equal(spool_use().memory, 1000);
		spool_close(&spool);
	}
}

/* A body from elsewhere is one only if nobody can change it. */
TEST(test_spool_adopted)
{
	struct config settings = {.max_memory = 10000, .spool_size = 1000};
	struct spool spool = SPOOL_NONE;
	int fd;

	config = &settings;
	for (int sealed = 0; sealed < 2; sealed++) {
		fd = memfd_create("body", MFD_ALLOW_SEALING);
		assert_int_equal(write(fd, "body", 4), 4);
		assert_int_equal(
		    fcntl(fd, F_ADD_SEALS, sealed ? SEALS_FINAL : F_SEAL_SHRINK | F_SEAL_GROW), 0);
		assert_int_equal(spool_adopt(&spool, 4, fd), sealed ? ERR_OK : ERR_IO);
	}
	assert_int_equal(spool_settle(&spool, 4), ERR_OK);
	spool_close(&spool);
	assert_int_equal(spool_adopt(&spool, 4, open("/dev/null", O_RDWR)), ERR_IO);
	assert_int_equal(spool_use().memory, 0);
}
