/* The environment of drivers, and working directories of device workers, also of one that has ended
 * without removing its own. */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cl/environment.h"
#include "unit.h"

static size_t count_directories(void)
{
	glob_t found;
	size_t count = glob("*", 0, NULL, &found) ? 0 : found.gl_pathc;

	globfree(&found);
	return count;
}

/* The directory of a process that has ended goes; this process's and others stay. */
TEST(test_work_directories)
{
	static const char others[] = "work-of others";
	char own[100], next[100], path[200];
	pid_t pid;

	assert_int_equal(mkdir(others, 0700), 0);
	assert_true(work_directory_make(".", "work-", own, sizeof own));
	pid = fork();
	if (!pid) {
		if (!work_directory_make(".", "work-", next, sizeof next))
			_exit(1);
		snprintf(path, sizeof path, "%s/file", next);
		_exit(close(open(path, O_WRONLY | O_CREAT, 0600)));
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(count_directories(), 3);
	assert_true(work_directory_make(".", "work-", next, sizeof next));
	assert_int_equal(count_directories(), 3);
	assert_int_equal(access(others, F_OK) || access(own, F_OK) || access(next, F_OK), 0);
	work_directory_remove(next);
	assert_int_equal(count_directories(), 2);
}

static bool unspoiled(const char *entry)
{
	for (char **e = environment_unspoiled(); *e; e++)
		if (!strcmp(*e, entry))
			return true;
	return false;
}

/* A loader of drivers writes into its variable. */
TEST(test_unspoiled)
{
	setenv("OCL_ICD_FILENAMES", "liba.so:libb.so", 1);
	environment_set(NULL);
	*strchr(getenv("OCL_ICD_FILENAMES"), ':') = '\0';
	assert_true(unspoiled("OCL_ICD_FILENAMES=liba.so:libb.so"));
	assert_true(unspoiled("POCL_WORK_GROUP_SPECIALIZATION=0"));
}
