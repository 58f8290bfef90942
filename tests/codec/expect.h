/* The worker under test, and the count of what held. */
#pragma once

#include "image/formats.h"
#include "pictures.h"

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

/* The answer must be like libvips's for the file, and an error the same words. JPEGs and raw pixels
 * are compared byte for byte, PNGs by their pixels and metadata. */
void expect_alike(const struct file *file, enum format from, enum format to, bool strip,
                  const char *name);
/* The same of parts of the file. */
void expect_cuts_alike(const struct file *whole, enum format from, enum format to,
                       const char *name);

/* Puts bytes of any value at some places. */
void damage(uint32_t *state, uint8_t *bytes, size_t size, int hits);

/* Returns an EXIF block with its title, as a camera writes it: with a thumbnail, a maker note, and
 * tags of all that may hold pictures. */
GByteArray *camera_block(bool big_endian);

void test_round_trips(void);
void test_failures(void);
void test_kept(void);
void test_lanes(void);
void test_pngs(void);
