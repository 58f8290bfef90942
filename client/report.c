/* Standard error. */
#include "client/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "client/smprint.h"

static bool silent, terminal, drawn;

double report_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void report_init(bool quiet)
{
	silent = quiet;
	terminal = isatty(STDERR_FILENO) == 1;
}

void report_clear(void)
{
	if (drawn)
		fputs("\r\033[K", stderr);
	drawn = false;
}

static void say(const char *format, va_list args)
{
	char *text = vsmprint(format, args);

	utf8_flatten(text);
	report_clear();
	fprintf(stderr, "convolve: %s\n", text);
	free(text);
}

void report_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void report_remark(const char *format, ...)
{
	va_list args;

	if (silent)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

void report_plan(const char *input, const char *output, const char *fate)
{
	char *text = NULL;

	if (asprintf(&text, "%s -> %s: %s", input, output, fate) < 0)
		abort();
	utf8_flatten(text);
	puts(text);
	free(text);
}

void report_waiting(const char *format, ...)
{
	va_list args;

	if (silent || !terminal)
		return;
	report_clear();
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	drawn = true;
}

/* Adds to a text of limited length. */
static void add(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

static void add_rates(char *text, size_t size, const struct progress *p, double elapsed)
{
	if (!p->done || elapsed <= 0)
		return;
	add(text, size, "%.1f images/s", (double)p->done / elapsed);
	if (p->bytes_read)
		add(text, size, ", %.1f MB/s", (double)p->bytes_read / elapsed / 1e6);
}

/* Adds minutes and seconds, or hours and minutes. Time depends on bytes rather than on images, if
 * they are known. */
static void add_left(char *text, size_t size, const struct progress *p, double elapsed)
{
	size_t rest = p->count - p->done - p->failed - p->skipped;
	unsigned long whole;
	double share;

	if (p->bytes)
		share =
		    p->bytes_done ? (double)(p->bytes - p->bytes_done) / (double)p->bytes_done : 0;
	else
		share =
		    p->done && p->count != PROGRESS_ENDLESS ? (double)rest / (double)p->done : 0;
	if (share <= 0)
		return;
	whole = (unsigned long)(elapsed * share + 0.5);
	if (whole < 3600)
		add(text, size, "  %lu:%02lu left", whole / 60, whole % 60);
	else
		add(text, size, "  %luh%02lu left", whole / 3600, whole / 60 % 60);
}

/* The bar takes what the line leaves of the terminal's width. A line that is too long would not be
 * replaced by the next. */
static void draw(const struct progress *p, double elapsed)
{
	enum { WIDTH = 24, NARROW = 8 };
	static const char full[] = "########################", none[] = "------------------------";
	size_t ended = p->done + p->failed + p->skipped;
	bool endless = p->count == PROGRESS_ENDLESS;
	struct winsize terminal_size = {0};
	char text[200] = "";
	int width, done;

	if (endless)
		add(text, sizeof text, "%zu  ", ended);
	else
		add(text, sizeof text, "%zu/%zu  ", ended, p->count);
	add_rates(text, sizeof text, p, elapsed);
	add_left(text, sizeof text, p, elapsed);
	if (p->failed)
		add(text, sizeof text, "  %zu failed", p->failed);
	ioctl(STDERR_FILENO, TIOCGWINSZ, &terminal_size);
	width = (terminal_size.ws_col ? terminal_size.ws_col : 80) - 1;
	report_clear();
	if (!endless && width - (int)strlen(text) - 3 >= NARROW) {
		width -= (int)strlen(text) + 3;
		width = width < WIDTH ? width : WIDTH;
		done = (int)((size_t)width * ended / p->count);
		fprintf(stderr, "[%.*s%.*s] %s", done, full, width - done, none, text);
	} else {
		fprintf(stderr, "%.*s", width, text);
	}
	fflush(stderr);
	drawn = true;
}

void report_progress(const struct progress *p)
{
	static double last;
	double now = report_now();

	if (silent || !terminal || p->count < 2 || now < last + 0.1)
		return;
	last = now;
	draw(p, now - p->since);
}

void report_summary(const struct progress *p)
{
	double elapsed = report_now() - p->since;
	char rates[100] = "";

	report_clear();
	if (silent || !terminal || p->count < 2)
		return;
	add_rates(rates, sizeof rates, p, elapsed);
	fprintf(stderr, "%zu done", p->done);
	if (p->skipped)
		fprintf(stderr, ", %zu done before", p->skipped);
	if (p->failed)
		fprintf(stderr, ", %zu failed", p->failed);
	if (p->left_out)
		fprintf(stderr, ", %zu left out, whose names are not those of images", p->left_out);
	if (p->done)
		fprintf(stderr, "; %.1f s, %s", elapsed, rates);
	fputc('\n', stderr);
}
