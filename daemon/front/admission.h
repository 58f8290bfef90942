/* Admission: what has been accepted and not yet finished, how fast such work gets done, and from
 * both how long one more job would take. Light, heavy and batch jobs are kept apart, as they do not
 * wait for each other. The unit of work is a byte of body; a job counts for some beside. */
#ifndef FRONT_ADMISSION_H
#define FRONT_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "front/config.h"

enum work_class { WORK_LIGHT, WORK_HEAVY, WORK_BATCH, WORK_CLASSES };

void admission_init(const struct config *config);

/* The class and the cost of a job with so large a body. */
enum work_class work_class(bool batch, uint64_t body_size);
double work_cost(uint64_t body_size);

/* A job has been accepted; has ended. */
void admission_began(enum work_class class, double cost);
void admission_ended(enum work_class class, double cost);

/* Seconds until a job that came now would be done, after those of its class; 0 if there are none,
 * or nothing of the class has been measured. */
double admission_predict(enum work_class class, double cost);

/* A request has been accepted, whose job is still to come; or will not come any more. */
void admission_expect(void);
void admission_unexpect(void);

/* Whether one more job may come: ERR_QUEUE_FULL if there are too many, or the wait is too long. */
enum error admission_check(enum work_class class, uint64_t body_size,
                           struct problem *problem) MUST_CHECK;

/* Whole seconds after which a refused job may find room, at least 1. */
unsigned admission_retry_after(void);

#endif
