/* The configuration: flags, which tests/http/test_config.py tries in messages, and processors. */
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front/config/load.h"
#include "unit.h"

static void expect_flag(const char *flag, const char *value, enum config_result result)
{
	char *argv[] = {"convolved", (char *)flag, (char *)value, NULL};
	struct config settings;

	optind = 1;
	assert_int_equal(config_load(&settings, 3, argv), result);
	config_fini(&settings);
}

static const char *gpu_file;

/* Replaces that of libc: of device files there is the one of the test. */
int access(const char *path, int mode)
{
	if (!strncmp(path, "/dev/", 5))
		return gpu_file && !strcmp(path, gpu_file) ? 0 : -1;
	return faccessat(AT_FDCWD, path, mode, 0);
}

/* Each way of a driver to show a GPU doubles the workers of a host. */
TEST(test_workers_beside_gpu)
{
	static const char *const files[] = {NULL, "/dev/nvidiactl", "/dev/kfd",
	                                    "/dev/dri/renderD128"};
	char *argv[] = {"convolved", NULL};
	struct config settings;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		unsigned help = cores_usable() * (i ? 2 : 1);

		gpu_file = files[i];
		assert_int_equal(config_load(&settings, 1, argv), CONFIG_RUN);
		assert_int_equal(settings.codecs, MIN(help + 3, 64));
		assert_int_equal(settings.http_workers, MIN(MAX(help / 4, 1), 8));
		config_fini(&settings);
	}
}

/* Every option is one by its flag, whatever its number. */
TEST(test_every_flag)
{
#define SECTION(name, text)
#define OPTION(member, name, type, reload, default_, min, max, text)                               \
	expect_flag("--" name, default_, CONFIG_RUN);
#include "front/config/options.def"
}

TEST(test_invalid)
{
	static const char *const bad[][2] = {
	    {"--log-format", "xml"},          {"--node", "a\n"},
	    {"--socket-mode", "1000"},        {"--socket-mode", ""},
	    {"--cors-origins", "http://a/b"}, {"--cors-origins", "*;a://b://c"},
	    {"--cors-origins", "://a"}};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		expect_flag(bad[i][0], bad[i][1], CONFIG_INVALID);
}

static void write_quota(const char *directory, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof path, "%s/cpu.max", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

TEST(test_cores)
{
	static const struct {
		const char *outer, *inner; /* cpu.max of a group and of one in it */
		unsigned cores;
	} cases[] = {{"max 100000\n", "max 100000\n", UINT_MAX},
	             {"max 100000\n", "200000 100000\n", 2},
	             {"150000 100000\n", "max 100000\n", 2},
	             {"100000 100000\n", "400000 100000\n", 1},
	             {"max 100000\n", "5000 100000\n", 1},
	             {"max 100000\n", "0 100000\n", 1},
	             {"", "100000", UINT_MAX},
	             {"x", "100000 0", UINT_MAX},
	             {"max 100000\n", "18446744073709551615 1\n", UINT_MAX}};
	char long_path[5000] = "/";

	assert_int_equal(mkdir("a", 0700) | mkdir("a/b", 0700), 0);
	assert_int_equal(cores_of_group(".", "/a/b"), UINT_MAX);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		write_quota("a", cases[i].outer);
		write_quota("a/b", cases[i].inner);
		assert_int_equal(cores_of_group(".", "/a/b"), cases[i].cores);
	}
	write_quota(".", "100000 100000\n");
	memset(long_path + 1, 'x', sizeof long_path - 2);
	assert_int_equal(cores_of_group(".", "/"), 1);
	assert_int_equal(cores_of_group(".", "/../b"), 1);
	assert_int_equal(cores_of_group(".", long_path), 1);
	assert_in_range(cores_usable(), 1, 1 << 16);
}
