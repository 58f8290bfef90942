/* Admission: what has been accepted and not yet finished, how fast such work gets done, and from
 * both how long one more job would take. Light, heavy and batch jobs are kept apart, as they do not
 * wait for each other. The unit of work is a byte of body; a job counts for some beside. Once the
 * image's header has been read, pixels and the work on them count, in terms of such bytes. */
#ifndef FRONT_JOBS_ADMISSION_H
#define FRONT_JOBS_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "front/config/config.h"

enum work_class { WORK_LIGHT, WORK_HEAVY, WORK_BATCH, WORK_CLASSES };

void admission_init(const struct config *config);

/* What a job with so large a body costs; and one of which is known how many bytes of pixels are
 * decoded and encoded, and for how long it will be on devices. */
double work_cost(uint64_t body_size);
double work_cost_known(uint64_t body_size, uint64_t pixel_bytes, double device_ns);
/* The class of a job of such a cost. */
enum work_class work_class(bool batch, double cost);

/* A job has been accepted; has turned out to be of another class and cost; has ended. */
void admission_began(enum work_class class, double cost);
void admission_changed(enum work_class from, double old, enum work_class to, double cost);
void admission_ended(enum work_class class, double cost);

/* A job waits for a program that is being compiled, or does so no more: that says nothing about how
 * fast work gets done. */
void admission_held(enum work_class class, bool held);

/* Seconds until a job that came now would be done, after those of its class; 0 if there are none,
 * or nothing of the class has been measured. */
double admission_predict(enum work_class class, double cost);

/* Whether one more job of this client may come: ERR_QUEUE_FULL if it has, or all have, too many, or
 * the wait is too long. */
enum error admission_check(const char *client, enum work_class class, uint64_t body_size,
                           struct problem *problem) MUST_CHECK;

/* Whole seconds after which a refused job may find room, at least 1. */
unsigned admission_retry_after(void);

#endif
