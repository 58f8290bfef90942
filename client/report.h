/* What the user is told on standard error: complaints, remarks, and on a terminal a line of
 * progress that gives way to them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a batch is. Bytes are those of the inputs; what was skipped is in `count` and `skipped`
 * alone. */
struct progress {
	size_t count, done, failed, skipped;
	uint64_t bytes, bytes_done;
	double since; /* by report_now() */
};

/* Seconds of a clock that only goes forward. */
double report_now(void);

void report_init(bool quiet);
/* One line: "convolve: " and the text; what could upset a terminal in it is replaced. */
void report_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, unless quiet was asked for. */
void report_remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says on a terminal what is being waited for; whatever is said next takes its place. */
void report_waiting(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Removes what stands in the last line and is to go. */
void report_clear(void);
/* Draws the line of progress, a few times a second, if standard error is a terminal. */
void report_progress(const struct progress *progress);
/* Removes it, and says in a line what came of the batch, on a terminal. */
void report_summary(const struct progress *progress);
