/* Log lines as entries of the journal. Only the front knows libsystemd, and it is the one that
 * learns what came of jobs, tiles and devices; its workers write lines. */
#include "front/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "common/log.h"

enum { ITEMS_MAX = 32, ITEM_SIZE = 1100 };

/* The front is one thread. */
static struct {
	char text[ITEMS_MAX][ITEM_SIZE];
	struct iovec item[ITEMS_MAX];
	int count;
} entry;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
	char *text = entry.text[entry.count];
	va_list args;

	va_start(args, format);
	vsnprintf(text, ITEM_SIZE, format, args);
	va_end(args);
	entry.item[entry.count++] = (struct iovec){text, strlen(text)};
}

static void send_entry(enum log_level level, const char *text, const struct log_fields *fields)
{
	struct log_field field;
	size_t i = 0;

	entry.count = 0;
	add("MESSAGE=%s", text);
	add("PRIORITY=%d", (int)level);
	add("SYSLOG_IDENTIFIER=convolved");
	while (entry.count < ITEMS_MAX && log_field_next(fields, &i, &field)) {
		if (field.text)
			add("CONVOLVED_%s=%s", field.name, field.text);
		else
			add("CONVOLVED_%s=%llu", field.name, (unsigned long long)field.number);
	}
	if (sd_journal_sendv(entry.item, entry.count) < 0)
		fprintf(stderr, "<%d>%s\n", (int)level, text);
}

void journal_init(void)
{
	log_set_journal(send_entry);
}
