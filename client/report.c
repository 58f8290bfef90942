/* Standard error. */
#include "client/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

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
	char *text = NULL;

	if (vasprintf(&text, format, args) < 0)
		abort();
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

/* Prints minutes and seconds, or hours and minutes. */
static void print_left(double seconds)
{
	unsigned long whole = (unsigned long)(seconds + 0.5);

	if (whole < 3600)
		fprintf(stderr, "  %lu:%02lu left", whole / 60, whole % 60);
	else
		fprintf(stderr, "  %luh%02lu left", whole / 3600, whole / 60 % 60);
}

/* Time depends on bytes rather than on images. */
static void draw(const struct progress *p, double elapsed)
{
	enum { WIDTH = 24 };
	size_t ended = p->done + p->failed + p->skipped;
	int full = (int)(WIDTH * ended / p->count);

	report_clear();
	if (p->count == PROGRESS_ENDLESS)
		fprintf(stderr, "%zu", ended);
	else
		fprintf(stderr, "[%.*s%.*s] %zu/%zu", full, "########################",
		        WIDTH - full, "------------------------", ended, p->count);
	if (p->done && elapsed > 0)
		fprintf(stderr, "  %.1f images/s", (double)p->done / elapsed);
	if (p->bytes_done && p->bytes > p->bytes_done)
		print_left(elapsed * (double)(p->bytes - p->bytes_done) / (double)p->bytes_done);
	if (p->failed)
		fprintf(stderr, "  %zu failed", p->failed);
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

	report_clear();
	if (silent || !terminal || p->count < 2)
		return;
	fprintf(stderr, "%zu done", p->done);
	if (p->skipped)
		fprintf(stderr, ", %zu done before", p->skipped);
	if (p->failed)
		fprintf(stderr, ", %zu failed", p->failed);
	if (p->left_out)
		fprintf(stderr, ", %zu left out, whose names are not those of images", p->left_out);
	if (p->done)
		fprintf(stderr, "; %.1f s, %.1f images/s", elapsed, (double)p->done / elapsed);
	fputc('\n', stderr);
}
