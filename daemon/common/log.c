/* Log lines: each is formatted whole and leaves in one write, so lines of several processes that
 * share standard error do not mix. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
    [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning", [LOG_LEVEL_NOTICE] = "notice",
    [LOG_LEVEL_INFO] = "info",   [LOG_LEVEL_DEBUG] = "debug",
};

static const char *program_name = "convolved";
static enum log_level threshold = LOG_LEVEL_INFO;
static int journal;

void log_init(const char *program, enum log_level level)
{
	program_name = program;
	threshold = level;
	journal = getenv("JOURNAL_STREAM") != NULL;
}

int log_level_parse(const char *name)
{
	for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++)
		if (!strcmp(name, names[level]))
			return level;
	return -1;
}

void log_write(enum log_level level, const char *format, ...)
{
	char line[1024];
	const int limit = (int)sizeof line - 1;
	va_list args;
	int length;

	if (level > threshold)
		return;
	length = journal ? snprintf(line, sizeof line, "<%d>", (int)level)
	                 : snprintf(line, sizeof line, "%s: %s: ", program_name, names[level]);
	va_start(args, format);
	length += vsnprintf(line + length, (size_t)(limit - length), format, args);
	va_end(args);
	if (length > limit - 1)
		length = limit - 1;
	line[length++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)length) < 0)
		return; /* nowhere left to say it */
}
