/* Error codes, shared by all programs, and the message that goes with one. */
#pragma once

enum error {
#define ERROR(symbol, status, slug, title) ERR_##symbol,
#include "base/error.def"
	ERR_COUNT
};

#define MUST_CHECK __attribute__((warn_unused_result))

/* A message for the client: the parameter at fault (empty if none), its value, and a sentence that
 * says what is expected. */
struct problem {
	char parameter[32];
	char value[96];
	char detail[400];
};

struct error_row {
	int status; /* HTTP's */
	const char *slug, *title;
};

/* The row of an error; that of ERR_INTERNAL if the code is out of range. */
const struct error_row *error_row(enum error e);

/* Fills the problem's detail (printf-style, truncated to fit, as the value is) unless the problem
 * is NULL, and returns e, so that a function can end with `return problem_set(p, ERR_X, "...")`. */
#define problem_set(problem, error, ...) problem_set_parameter(problem, error, "", "", __VA_ARGS__)
#define bad_parameter(problem, name, value, ...)                                                   \
	problem_set_parameter(problem, ERR_BAD_PARAMETER, name, value, __VA_ARGS__)
/* Calls fail(object, error, problem) with a problem of this detail. */
#define fail_with(fail, object, error, ...)                                                        \
	do {                                                                                       \
		struct problem why;                                                                \
		fail(object, problem_set(&why, error, __VA_ARGS__), &why);                         \
	} while (0)
/* purpose: "to …" or "for …", a literal. */
#define no_memory(problem, purpose) problem_set(problem, ERR_MEMORY, "no memory " purpose)
enum error problem_set_parameter(struct problem *p, enum error e, const char *parameter,
                                 const char *value, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
