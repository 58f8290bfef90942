/* The cache of programs: which files stay within its size. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/cl/cache.h"
#include "unit.h"

enum { KEPT = 1000 };

/* Counts the files; with `used`, all were used so many seconds ago. */
static unsigned count_files(time_t used)
{
	DIR *list = opendir(".");
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

static void make_file(const char *name, bool lock)
{
	const char text[200] = "";
	int fd = open(name, O_RDWR | O_CREAT, 0600);

	assert_true(fd >= 0 && write(fd, text, sizeof text) > 0);
	if (lock)
		assert_int_equal(flock(fd, LOCK_EX), 0);
}

/* The file that has not been used for longest goes, whoever made it; a file that another process is
 * writing stays, and an unfinished one does not. */
TEST(test_cache_size)
{
	char digits[65] = "", name[80];
	struct cache *cache;

	memset(digits, 'a', 64);
	make_file(digits, false); /* as of another version */
	snprintf(name, sizeof name, "%s.17", digits);
	make_file(name, true);
	snprintf(name, sizeof name, "%s.18", digits);
	make_file(name, false);
	make_file("not ours", false);
	assert_int_equal(count_files(100), 4);
	cache = cache_open(".", 3 * KEPT + 300);
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
	cache = cache_open(".", KEPT + 500); /* a smaller one holds at once */
	assert_int_equal(count_files(0), 3);
	assert_true(has(cache, "fourth"));
	cache_close(&cache);
}
