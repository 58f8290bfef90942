/* Log lines as journal entries. Only the front uses libsystemd: workers' lines reach it through
 * pipes. */
#include "front/base/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "common/log.h"
#include "front/base/log_writer.h"

enum { ITEMS_MAX = 32, ITEM_SIZE = 1100, ENTRY_SIZE = 8192 };

struct entry {
	char text[ENTRY_SIZE];
	size_t length;
};

/* Appends a line; drops it if the entry is full. Values contain no newline: log.c removes them from
 * the text, and fields are cut at the first one here. */
__attribute__((format(printf, 2, 3))) static void add(struct entry *entry, const char *format, ...)
{
	char item[ITEM_SIZE];
	size_t length;
	va_list args;

	va_start(args, format);
	vsnprintf(item, sizeof item, format, args);
	va_end(args);
	length = strcspn(item, "\n");
	if (length >= sizeof entry->text - entry->length)
		return;
	memcpy(entry->text + entry->length, item, length);
	entry->length += length;
	entry->text[entry->length++] = '\n';
}

/* The fallback: writes "<PRIORITY>MESSAGE" to standard error, which the journal reads too. */
static bool send_line(const struct iovec item[2])
{
	static const size_t message = sizeof "MESSAGE=" - 1, priority = sizeof "PRIORITY=" - 1;

	return fprintf(stderr, "<%.*s>%.*s\n", (int)(item[1].iov_len - priority),
	               (const char *)item[1].iov_base + priority, (int)(item[0].iov_len - message),
	               (const char *)item[0].iov_base + message) > 0;
}

/* Sends an entry: lines NAME=VALUE, the first two MESSAGE and PRIORITY. May block on the journal.
 * Returns false if neither the journal nor standard error accepted it. */
static bool send_entry(const char *entry, size_t length)
{
	struct iovec item[ITEMS_MAX];
	const char *at = entry, *end;
	int count = 0;

	while (count < ITEMS_MAX && (end = memchr(at, '\n', length - (size_t)(at - entry)))) {
		item[count++] = (struct iovec){(void *)at, (size_t)(end - at)};
		at = end + 1;
	}
	return sd_journal_sendv(item, count) >= 0 || send_line(item);
}

static void make_entry(enum log_level level, const char *text, const struct log_fields *fields)
{
	struct entry entry = {.length = 0};
	struct log_field field;
	size_t i = 0;

	add(&entry, "MESSAGE=%s", text);
	add(&entry, "PRIORITY=%d", (int)level);
	add(&entry, "SYSLOG_IDENTIFIER=convolved");
	while (log_field_next(fields, &i, &field)) {
		if (field.text)
			add(&entry, "CONVOLVED_%s=%s", field.name, field.text);
		else
			add(&entry, "CONVOLVED_%s=%llu", field.name,
			    (unsigned long long)field.number);
	}
	log_writer_put(level, send_entry, entry.text, entry.length);
}

void journal_init(void)
{
	log_set_journal(make_entry);
}
