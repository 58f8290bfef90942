/* The system's clocks in nanoseconds. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Reads a clock. Returns 0 if it has gone, such as the clock of a process that has ended. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Time that only passes. */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}
