/* Log lines. Each is formatted completely and written with one call, so that lines of several
 * threads or processes on the same standard error do not mix. */
#include "base/log.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

enum { TEXT_SIZE = 1024, LINE_SIZE = 8192 };

static const char *const levels[] = {
    [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning", [LOG_LEVEL_NOTICE] = "notice",
    [LOG_LEVEL_INFO] = "info",   [LOG_LEVEL_DEBUG] = "debug",
};

/* A field's offset in the struct, and its type. */
static const struct {
	const char *name;
	size_t offset;
	bool is_text;
} known[] = {
#define LOG_NUMBER                false
#define LOG_TEXT                  true
#define FIELD(member, type, name) {name, offsetof(struct log_fields, member), LOG_##type},
#include "base/log_fields.def"
};

/* A line under construction; what does not fit is cut off. */
struct line {
	char text[LINE_SIZE];
	size_t length;
};

static const char *program_name = "convolved";
static enum log_level threshold = LOG_LEVEL_INFO;
static enum log_format form;
static bool to_journal, to_front;
static log_journal *journal_entry;
static atomic_uint lost; /* lines that the pipe to the front rejected since the last one it took */

static void write_line(enum log_level, const char *line, size_t length)
{
	if (write(STDERR_FILENO, line, length) < 0)
		return; /* nowhere left to report it */
}

static log_output *output = write_line;

void log_init(const char *program, enum log_level level, enum log_format format)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat status;

	program_name = program;
	threshold = level;
	form = format;
	to_front = format == LOG_FORMAT_AUTO && getenv(LOG_RELAY);
	/* The stream that the journal gave us may have been redirected since. */
	to_journal = format == LOG_FORMAT_AUTO && !to_front && stream &&
	             sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	             !fstat(STDERR_FILENO, &status) && status.st_dev == device &&
	             status.st_ino == inode;
}

void log_set_journal(log_journal *journal)
{
	journal_entry = journal;
}

void log_set_output(log_output *o)
{
	output = o;
}

bool log_field_next(const struct log_fields *fields, size_t *i, struct log_field *field)
{
	for (; fields && *i < sizeof known / sizeof *known; ++*i) {
		const void *place = (const char *)fields + known[*i].offset;

		*field = (struct log_field){.name = known[*i].name};
		if (known[*i].is_text)
			field->text = *(const char *const *)place;
		else
			field->number = *(const uint64_t *)place;
		if (field->text && !*field->text)
			field->text = NULL;
		if (field->text || field->number) {
			++*i;
			return true;
		}
	}
	return false;
}

__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *format, ...)
{
	size_t room = sizeof line->text - 1 - line->length; /* less the newline */
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line->text + line->length, room, format, args);
	va_end(args);
	if (length > 0)
		line->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* A JSON string (RFC 8259, section 7). Invalid UTF-8 becomes the replacement character. */
static void put_json(struct line *line, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	put(line, "\"");
	while (*s) {
		int length = utf8_length(s);

		if (!length)
			put(line, "\\ufffd");
		else if (*s == '"' || *s == '\\')
			put(line, "\\%c", *s);
		else if (utf8_is_control(s)) /* U+0080 to U+009F end with their number */
			put(line, "\\u%04x", s[length - 1]);
		else
			put(line, "%.*s", length, (const char *)s);
		s += length ? length : 1;
	}
	put(line, "\"");
}

static void put_json_name(struct line *line, const char *name)
{
	put(line, ",\"");
	for (; *name; name++)
		put(line, "%c", tolower((unsigned char)*name));
	put(line, "\":");
}

/* The speaker: program and process. */
struct speaker {
	const char *program;
	pid_t pid;
};

static void put_object(struct line *line, enum log_level level, struct speaker by, const char *text,
                       const struct log_fields *fields)
{
	struct timespec now;
	struct tm date;
	struct log_field field;
	char second[32];
	size_t i = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	strftime(second, sizeof second, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &date));
	put(line, "{\"time\":\"%s.%06ldZ\",\"level\":\"%s\",\"program\":\"%s\",\"pid\":%d", second,
	    now.tv_nsec / 1000, levels[level], by.program, (int)by.pid);
	put_json_name(line, "MESSAGE");
	put_json(line, text);
	while (log_field_next(fields, &i, &field)) {
		put_json_name(line, field.name);
		if (field.text)
			put_json(line, field.text);
		else
			put(line, "%" PRIu64, field.number);
	}
	put(line, "}");
}

static void send_line(enum log_level level, struct speaker by, char *text,
                      const struct log_fields *fields)
{
	struct line line = {.length = 0};
	unsigned before;

	utf8_flatten(text);
	if (to_front) {
		before = atomic_exchange(&lost, 0);
		if (before)
			put(&line, "<%d,%u>%s", (int)level, before, text);
		else
			put(&line, "<%d>%s", (int)level, text);
		line.text[line.length++] = '\n';
		/* Writes at once or not at all, because the pipe does not block. */
		if (write(STDERR_FILENO, line.text, line.length) < 0)
			atomic_fetch_add(&lost, before + 1);
		return;
	}
	if (to_journal && journal_entry) {
		journal_entry(level, text, fields);
		return;
	}
	if (to_journal)
		put(&line, "<%d>%s: %s", (int)level, by.program, text);
	else if (form == LOG_FORMAT_JSON)
		put_object(&line, level, by, text, fields);
	else
		put(&line, "%s: %s: %s", by.program, levels[level], text);
	line.text[line.length++] = '\n';
	output(level, line.text, line.length);
}

void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...)
{
	char text[TEXT_SIZE];
	va_list args;

	if (level > threshold)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	send_line(level, (struct speaker){program_name, getpid()}, text, fields);
}

void log_relay(enum log_level level, const char *program, pid_t pid,
               const struct log_fields *fields, const char *said)
{
	char text[TEXT_SIZE];
	bool named = to_journal && journal_entry; /* otherwise the line itself names the sender */

	if (level > threshold)
		return;
	snprintf(text, sizeof text, "%s%s%s", named ? program : "", named ? ": " : "", said);
	send_line(level, (struct speaker){program, pid}, text, fields);
}
