/* Log lines in each of their forms. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "unit.h"

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

TEST(test_plain)
{
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

TEST(test_json)
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

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		json_t *object = object_of(texts[i][0]);

		assert_string_equal(json_string_value(json_object_get(object, "message")),
		                    texts[i][1]);
		assert_string_equal(json_string_value(json_object_get(object, "device")),
		                    "cpu\"0\n");
		assert_int_equal(json_integer_value(json_object_get(object, "duration_usec")),
		                 12345678901234);
		json_decref(object);
	}
}

/* A line that is far too long is cut, but is still a line. */
TEST(test_long)
{
	char *text = malloc(100001);
	json_t *object;

	memset(text, 1, 100000);
	text[100000] = '\0';
	object = object_of(text);
	assert_int_equal(json_string_length(json_object_get(object, "message")), 1023);
	json_decref(object);
	free(text);
}

/* JOURNAL_STREAM counts only if it names what standard error really is. */
TEST(test_journal)
{
	struct stat status;
	char stream[64];

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
TEST(test_relay)
{
	char line[64], *text;
	unsigned sent = 0, lost;

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
