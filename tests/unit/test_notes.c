/* The service's notes on itself: log lines in each form, and progress for the watchdog. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "front/notify.h"

static int pipe_ends[2], stderr_kept;

/* From here on standard error is a pipe … */
static void catch_stderr(void)
{
	stderr_kept = dup(STDERR_FILENO);
	assert_false(pipe2(pipe_ends, O_NONBLOCK));
	dup2(pipe_ends[1], STDERR_FILENO);
}

/* … and returns the written text. */
static const char *caught(void)
{
	static char text[16384];
	ssize_t length = read(pipe_ends[0], text, sizeof text - 1);

	dup2(stderr_kept, STDERR_FILENO);
	close(stderr_kept);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	text[length > 0 ? length : 0] = '\0';
	return text;
}

static const char *line_of(enum log_format format, const char *text)
{
	catch_stderr();
	log_init("test", LOG_LEVEL_INFO, format);
	log_event(LOG_LEVEL_WARNING,
	          LOG_FIELDS(.job = 7, .device = "cpu\"0\n", .duration_us = 12345678901234),
	          "%s %d", text, 1);
	log_debug("not wanted");
	return caught();
}

static void test_plain(void **state)
{
	(void)state;
	assert_string_equal(line_of(LOG_FORMAT_PLAIN, "a"), "test: warning: a 1\n");
	assert_string_equal(line_of(LOG_FORMAT_AUTO, "a"), "test: warning: a 1\n");
	/* A client's text makes no line of its own, nor moves a terminal's cursor. */
	assert_string_equal(line_of(LOG_FORMAT_PLAIN, "a\nb\033"), "test: warning: a?b? 1\n");
}

static json_t *object_of(const char *text)
{
	const char *line = line_of(LOG_FORMAT_JSON, text);
	json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(object);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	return object;
}

static void test_json(void **state)
{
	static const char *const texts[][2] = {
	    {"quote \" back \\ tab \t", "quote \" back \\ tab ? 1"},
	    {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 1"},
	    /* A lone byte, an overlong form, a surrogate, a character cut short; a lone byte that
	     * some terminals take for a command. */
	    {"\xff", "\xef\xbf\xbd 1"},
	    {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd 1"},
	    {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd? 1"},
	    {"\xe2\x82", "\xef\xbf\xbd? 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		json_t *object = object_of(texts[i][0]);

		assert_string_equal(json_string_value(json_object_get(object, "message")),
		                    texts[i][1]);
		json_decref(object);
	}
}

static void test_json_fields(void **state)
{
	json_t *object = object_of("a");
	const char *level, *program, *device;
	int pid, job;

	(void)state;
	assert_false(json_unpack(object, "{s:s, s:s, s:s, s:i, s:i}", "level", &level, "program",
	                         &program, "device", &device, "pid", &pid, "job", &job));
	assert_string_equal(level, "warning");
	assert_string_equal(program, "test");
	assert_string_equal(device, "cpu\"0\n");
	assert_int_equal(pid, getpid());
	assert_int_equal(job, 7);
	assert_int_equal(json_integer_value(json_object_get(object, "duration_usec")),
	                 12345678901234);
	assert_null(json_object_get(object, "request_id"));
	json_decref(object);
}

/* A line that is far too long is cut, but is still a line. */
static void test_long(void **state)
{
	char *text = malloc(100001);
	json_t *object;

	(void)state;
	memset(text, 1, 100000);
	text[100000] = '\0';
	object = object_of(text);
	assert_int_equal(json_string_length(json_object_get(object, "message")), 1023);
	json_decref(object);
	free(text);
}

/* JOURNAL_STREAM counts only if it names what standard error really is. */
static void test_journal(void **state)
{
	struct stat status;
	char stream[64];

	(void)state;
	for (int other = 0; other < 2; other++) {
		catch_stderr();
		fstat(STDERR_FILENO, &status);
		snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)status.st_dev,
		         (unsigned long long)status.st_ino + (unsigned)other);
		setenv("JOURNAL_STREAM", stream, 1);
		log_init("test", LOG_LEVEL_INFO, LOG_FORMAT_AUTO);
		log_notice("a");
		unsetenv("JOURNAL_STREAM");
		assert_string_equal(caught(), other ? "test: notice: a\n" : "<5>test: a\n");
	}
}

/* To the front lines go by a pipe that does not block, with the number of those before that did not
 * fit. */
static void test_relay(void **state)
{
	char line[64], *text;
	unsigned sent = 0, lost;

	(void)state;
	catch_stderr();
	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
	setenv(LOG_RELAY, "1", 1);
	log_init("test", LOG_LEVEL_INFO, LOG_FORMAT_AUTO);
	unsetenv(LOG_RELAY);
	log_notice("a\n");
	assert_int_equal(read(pipe_ends[0], line, sizeof line), 6);
	assert_memory_equal(line, "<5>a?\n", 6);
	while (fcntl(pipe_ends[0], F_GETPIPE_SZ) > (int)(sent * 1024))
		log_notice("%01019d", ++sent);
	log_notice("lost");
	log_notice("lost");
	for (unsigned i = 0; i < sent; i++)
		assert_true(read(pipe_ends[0], (char[1024]){0}, 1024) > 0);
	log_error("b");
	log_error("c");
	text = strdup(caught());
	lost = 0;
	assert_int_equal(sscanf(text, "<3,%u>b\n", &lost), 1);
	assert_true(lost >= 2);
	assert_non_null(strstr(text, "b\n<3>c\n"));
	free(text);
}

enum { TILE_LIMIT = 10, JOB_LIMIT = 100 };

/* Notes the same work at these two times. */
static bool holds(struct work work, uint64_t first, uint64_t second)
{
	struct progress progress = {0};

	assert_true(progress_note(&progress, &(struct work){.devices_up = 1}, first, TILE_LIMIT,
	                          JOB_LIMIT));
	return progress_note(&progress, &work, second, TILE_LIMIT, JOB_LIMIT);
}

static void test_progress(void **state)
{
	static const struct {
		struct work work;
		uint64_t waited;
		bool holds;
	} cases[] = {
	    {{.devices_up = 1}, 1000, true}, /* nothing to do */
	    {{.devices_up = 1, .jobs = 1, .tiles_waiting = 1}, TILE_LIMIT, true},
	    {{.devices_up = 1, .jobs = 1, .tiles_waiting = 1}, TILE_LIMIT + 1, false},
	    {{.devices_up = 1, .jobs = 1, .tiles_waiting = 1, .tiles_back = 1}, 1000, true},
	    {{.devices_up = 1, .jobs = 1, .tiles_waiting = 1, .jobs_ended = 1}, 1000, false},
	    {{.devices_up = 0, .jobs = 1, .tiles_waiting = 1}, 1000, true}, /* no device */
	    {{.devices_up = 1, .jobs = 1}, JOB_LIMIT, true},                /* decoding */
	    {{.devices_up = 1, .jobs = 1}, JOB_LIMIT + 1, false},
	    {{.devices_up = 1, .jobs = 1, .tiles_back = 1}, 1000, true},
	    {{.devices_up = 1, .jobs = 1, .jobs_ended = 1}, 1000, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(holds(cases[i].work, 5000, 5000 + cases[i].waited),
		                 cases[i].holds);
}

/* Only what is done between two notes counts, and once something is done it holds again. */
static void test_progress_again(void **state)
{
	struct work work = {.devices_up = 1, .jobs = 1, .tiles_waiting = 3, .tiles_back = 4};
	struct progress progress = {0};

	(void)state;
	assert_true(progress_note(&progress, &work, 1000, TILE_LIMIT, JOB_LIMIT));
	assert_true(progress_note(&progress, &work, 1010, TILE_LIMIT, JOB_LIMIT));
	assert_false(progress_note(&progress, &work, 1011, TILE_LIMIT, JOB_LIMIT));
	assert_false(progress_note(&progress, &work, 1012, TILE_LIMIT, JOB_LIMIT));
	work.tiles_back++;
	assert_true(progress_note(&progress, &work, 1013, TILE_LIMIT, JOB_LIMIT));
	assert_true(progress_note(&progress, &work, 1023, TILE_LIMIT, JOB_LIMIT));
	assert_false(progress_note(&progress, &work, 1024, TILE_LIMIT, JOB_LIMIT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_plain),       cmocka_unit_test(test_json),
	    cmocka_unit_test(test_json_fields), cmocka_unit_test(test_long),
	    cmocka_unit_test(test_journal),     cmocka_unit_test(test_relay),
	    cmocka_unit_test(test_progress),    cmocka_unit_test(test_progress_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
