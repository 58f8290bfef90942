/* Admission: predicts from accepted work, and from the speed of finished work, the time that one
 * more job would take. The classes do not wait for each other. The unit of work is a byte of body,
 * into which pixels and the work on them are converted once the image's header has been read; a job
 * also has a fixed cost. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* VERIFIED: the whole result is computed a second time, by the codec worker. */
enum work_class { WORK_LIGHT, WORK_HEAVY, WORK_BATCH, WORK_VERIFIED, WORK_CLASSES };

void admission_init(void);

/* Return the cost of a job with a body of this size; and of one with known bytes of pixels decoded
 * and encoded, and a known time on devices and for a second computation. */
double work_cost(uint64_t body_size);
double work_cost_known(uint64_t body_size, uint64_t pixel_bytes, double work_ns);
/* The class of a job of this cost. */
enum work_class work_class(bool batch, double cost);

/* Record that a job was accepted; changed its class and cost; ended. */
void admission_began(enum work_class class, double cost);
void admission_changed(enum work_class from, double old, enum work_class to, double cost);
void admission_ended(enum work_class class, double cost);

/* Records that a job begins to wait for a program that is being compiled, or for a device; or no
 * longer waits. That time tells nothing about the speed of work. */
void admission_held(enum work_class class, bool held);
void admission_stalled(bool stalled);

/* Returns the seconds until a job that arrives now would be done, after those of its class; 0 if
 * there are none, or the class has not been measured. */
double admission_predict(enum work_class class, double cost);

/* Returns the share of max-wait that the work in hand leaves free in the slowest class: 1 at rest,
 * 0 when it would take max-wait or more. */
double admission_free(void);

/* Checks whether this client may submit one more job: ERR_QUEUE_FULL if it, or all clients
 * together, have too many, or the wait is too long. */
enum error admission_check(const char *client, enum work_class class, uint64_t body_size,
                           struct problem *problem) MUST_CHECK;

/* Returns whole seconds, at least 1, after which a refused job may be accepted. */
unsigned admission_retry_after(void);
