/* Working directories of device workers, also of one that has ended without removing its own. */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cl/environment.h"
#include "unit.h"

static char above[] = "/tmp/convolved-work-XXXXXX";

static void make(char path[100])
{
	assert_true(work_directory_make(above, "work-", path, 100));
}

static size_t count_directories(void)
{
	char pattern[100];
	glob_t found;
	size_t count;

	snprintf(pattern, sizeof pattern, "%s/*", above);
	count = glob(pattern, 0, NULL, &found) ? 0 : found.gl_pathc;
	globfree(&found);
	return count;
}

/* The directory of a process that has ended goes; this process's and others stay. */
TEST(test_work_directories)
{
	char own[100], next[100], path[200];
	pid_t pid;

	assert_non_null(mkdtemp(above));
	snprintf(path, sizeof path, "%s/work-of others", above);
	assert_int_equal(mkdir(path, 0700), 0);
	make(own);
	pid = fork();
	if (!pid) {
		make(next);
		snprintf(path, sizeof path, "%s/file", next);
		_exit(close(open(path, O_WRONLY | O_CREAT, 0600)));
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(count_directories(), 3);
	make(next);
	assert_int_equal(count_directories(), 3);
	assert_int_equal(access(path, F_OK) || access(own, F_OK) || access(next, F_OK), 0);
	work_directory_remove(next);
	assert_int_equal(count_directories(), 2);
	snprintf(path, sizeof path, "rm -r %s", above);
	assert_int_equal(system(path), 0);
}
