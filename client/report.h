/* The client's texts on standard error: errors, remarks, and on a terminal a progress line that
 * makes room for them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_ENDLESS SIZE_MAX

/* The progress of a batch. Bytes are those of the inputs; skipped images count in `count` and
 * `skipped` alone. */
struct progress {
	size_t count,                        /* PROGRESS_ENDLESS: not known */
	    done, failed, skipped, left_out; /* files that are no images, which count only here */
	uint64_t bytes, bytes_done;
	uint64_t bytes_read; /* all inputs that are done, also those of unknown size */
	double since;        /* time by report_now() */
};

/* Returns the seconds of a monotonic clock. */
double report_now(void);

void report_init(bool quiet);
/* Prints one line: "convolve: " and the text; control characters are replaced. */
void report_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the same, unless the user asked for --quiet. */
void report_remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the fate of an image on standard output; control characters are replaced. */
void report_plan(const char *input, const char *output, const char *fate);
/* Shows on a terminal why the client waits; the next message replaces it. */
void report_waiting(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Removes a temporary text from the last line. */
void report_clear(void);
/* Draws the progress line, a few times a second, if standard error is a terminal. */
void report_progress(const struct progress *progress);
/* Removes the progress line, and prints a summary of the batch on a terminal. */
void report_summary(const struct progress *progress);
