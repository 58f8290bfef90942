/* Computations of the device worker that need no device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/cl/cache.h"
#include "device/cl/environment.h"
#include "device/plan/half_error.h"

/* Here the first is known to be exact enough, the second not. */
static void test_bound(void **state)
{
	double small[6] = {0.239, 0.522, 0.239, 0.239, 0.522, 0.239}, large[42];
	struct operation op = {.kind = OPERATION_SEPARABLE, .radius_x = 1, .radius_y = 1};

	(void)state;
	op.coefficients = small;
	assert_true(half_error_bound(KERNEL_SEPARABLE_HALF, &op) < 0.5);
	for (int i = 0; i < 42; i++)
		large[i] = 1 / 21.0;
	op.radius_x = op.radius_y = 10;
	op.coefficients = large;
	assert_true(half_error_bound(KERNEL_SEPARABLE_HALF, &op) > 1);
	assert_true(half_error_bound(KERNEL_SEPARABLE_MMA, &op) < 1);
}

/* The largest power of two for which neither weights nor sums overflow. */
static void test_fixed(void **state)
{
	double matrix[9] = {0, -1, 0, -1, 5, -1, 0, -1, 0}, mean[9];
	struct operation op = {.kind = OPERATION_MATRIX, .radius_x = 1, .radius_y = 1};

	(void)state;
	op.coefficients = matrix;
	assert_int_equal(fixed_shift(&op), 12); /* 5 << 12 fits 16 bits, 5 << 13 does not */
	assert_true(half_error_bound(KERNEL_MATRIX_FIXED, &op) <= 0x1p-12);
	op.offset = 1e6; /* (1e6 + 255 * 9 + 256) << 11 fits 31 bits */
	assert_int_equal(fixed_shift(&op), 11);
	op.offset = 0;
	for (int i = 0; i < 9; i++)
		mean[i] = 1 / 9.0;
	op.coefficients = mean;
	assert_int_equal(fixed_shift(&op), 18);
	assert_true(half_error_bound(KERNEL_MATRIX_FIXED, &op) < 0.01);
	matrix[4] = 40000;
	op.coefficients = matrix;
	assert_int_equal(fixed_shift(&op), 0);
	assert_true(half_error_bound(KERNEL_MATRIX_FIXED, &op) > 1);
}

/* Here the first is known to be exact enough, the others not. */
static void test_bilateral_bound(void **state)
{
	static const struct {
		double range;
		uint32_t radius;
		bool exact;
	} rows[] = {{0.12, 4, true}, {0.4, 4, false}, {0.15, 16, false}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct operation op = {.kind = OPERATION_BILATERAL,
		                             .radius_x = rows[i].radius,
		                             .radius_y = rows[i].radius,
		                             .space = -1 / (2 * 5.0 * 5.0),
		                             .range = -1 / (2 * rows[i].range * rows[i].range)};

		assert_int_equal(half_error_bound(KERNEL_BILATERAL_TABLE, &op) < 1, rows[i].exact);
	}
}

enum { KEPT = 1000 };

static char directory[] = "/tmp/convolved-cache-XXXXXX";

/* Counts the files; with `used`, all were used so many seconds ago. */
static unsigned count_files(time_t used)
{
	DIR *list = opendir(directory);
	struct dirent *entry;
	unsigned count = 0;

	while ((entry = readdir(list))) {
		const struct timespec then[2] = {{.tv_sec = time(NULL) - used},
		                                 {.tv_sec = time(NULL) - used}};

		if (*entry->d_name == '.')
			continue;
		count++;
		if (used)
			assert_int_equal(utimensat(dirfd(list), entry->d_name, then, 0), 0);
	}
	closedir(list);
	return count;
}

static void store(struct cache *cache, const char *key)
{
	char binary[KEPT];

	memset(binary, *key, sizeof binary);
	cache_store(cache, key, binary, sizeof binary);
}

static bool has(struct cache *cache, const char *key)
{
	size_t size = 0;
	char *binary = cache_load(cache, key, &size);
	bool there = binary && size == KEPT && binary[KEPT - 1] == *key;

	free(binary);
	return there;
}

static void make_file(const char *name, bool lock, int *fd)
{
	char path[200];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	*fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(*fd >= 0 && write(*fd, path, sizeof path) > 0);
	if (lock)
		assert_int_equal(flock(*fd, LOCK_EX), 0);
}

/* The file that has not been used for longest goes, whoever made it; a file that another process is
 * writing stays, and an unfinished one does not. */
static void test_cache_size(void **state)
{
	char digits[65] = "", name[80];
	struct cache *cache;
	int writer, other;

	(void)state;
	assert_non_null(mkdtemp(directory));
	memset(digits, 'a', 64);
	make_file(digits, false, &other); /* as of another version */
	snprintf(name, sizeof name, "%s.17", digits);
	make_file(name, true, &writer);
	snprintf(name, sizeof name, "%s.18", digits);
	make_file(name, false, &other);
	make_file("not ours", false, &other);
	assert_int_equal(count_files(100), 4);
	cache = cache_open(directory, 3 * KEPT + 400);
	assert_int_equal(count_files(0), 3); /* the unfinished one has gone */
	store(cache, "first");
	store(cache, "second");
	count_files(50);
	assert_true(has(cache, "first"));
	store(cache, "third");
	assert_int_equal(count_files(0), 5); /* that of another version was the oldest */
	store(cache, "fourth");
	assert_int_equal(count_files(0), 5);
	assert_true(has(cache, "first") && has(cache, "third") && has(cache, "fourth"));
	assert_false(has(cache, "second"));
	count_files(50);
	assert_true(has(cache, "fourth"));
	cache_close(&cache);
	cache = cache_open(directory, KEPT + 500); /* a smaller one holds at once */
	assert_int_equal(count_files(0), 3);
	assert_true(has(cache, "fourth"));
	cache_close(&cache);
	snprintf(name, sizeof name, "rm -r %s", directory);
	assert_int_equal(system(name), 0);
}

/* Returns a process with a directory that has a file in it. The process waits for its end. */
static pid_t start_worker(const char *above, char *path, size_t size)
{
	char file[200];
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (!work_directory_make(above, "work-", path, size) ||
		    write(ready[1], path, size) != (ssize_t)size)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], path, size), size);
	close(ready[0]);
	snprintf(file, sizeof file, "%s/file", path);
	close(open(file, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(access(file, F_OK), 0);
	return pid;
}

static void stop_worker(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The directory of a killed process goes; those of a live one, this process and others stay. */
static void test_work_directories(void **state)
{
	char above[] = "/tmp/convolved-work-XXXXXX", dead[100] = "", live[100] = "", own[100],
	     next[100];
	char other[100], command[100];
	pid_t first, second;

	(void)state;
	assert_non_null(mkdtemp(above));
	snprintf(other, sizeof other, "%s/work-of others", above);
	assert_int_equal(mkdir(other, 0700), 0);
	first = start_worker(above, dead, sizeof dead);
	second = start_worker(above, live, sizeof live);
	assert_true(work_directory_make(above, "work-", own, sizeof own));
	assert_int_equal(access(dead, F_OK), 0);
	stop_worker(first);
	assert_true(work_directory_make(above, "work-", next, sizeof next));
	assert_int_not_equal(access(dead, F_OK), 0);
	assert_int_equal(access(live, F_OK) || access(own, F_OK) || access(other, F_OK), 0);
	stop_worker(second);
	work_directory_remove(next);
	assert_int_not_equal(access(next, F_OK), 0);
	snprintf(command, sizeof command, "rm -r %s", above);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bound), cmocka_unit_test(test_fixed),
	    cmocka_unit_test(test_bilateral_bound), cmocka_unit_test(test_cache_size),
	    cmocka_unit_test(test_work_directories)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
