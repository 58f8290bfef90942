/* The worker under test, and the count of what held. */
#ifndef TESTS_CODEC_EXPECT_H
#define TESTS_CODEC_EXPECT_H

#include "peer.h"

extern const char *program;
extern struct peer peer;
extern unsigned passed, failed;

/* Counts; prints the text if it does not hold. Returns ok. */
bool expect(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Runs a job; a broken protocol counts as a failure, and a fresh worker goes on. */
bool run(const struct request *request, struct reply *reply, const char *name);
/* Runs a job that must succeed. */
bool run_well(const struct request *request, struct reply *reply, const char *name);
/* Runs a job that must fail like this. */
void expect_error(const struct request *request, enum error error, const char *name);
/* The worker must still do a plain job right. */
void expect_alive(const char *after);

/* The answers of two jobs that succeed must be the same. */
void expect_same(const struct reply *a, const struct reply *b, const char *name);

void test_round_trips(void);
void test_failures(void);
void test_kept(void);
void test_lanes(void);

#endif
