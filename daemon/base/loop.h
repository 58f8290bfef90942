/* The event loop: one thread, one epoll instance. All code of the front runs in its callbacks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/error.h"

typedef void loop_callback(void *context);

/* A watched descriptor, which the watch does not own; embedded in the struct that uses it. */
struct loop_watch {
	int fd; /* -1: not watched */
	loop_callback *callback;
	void *context;
};

/* A timer; embedded in the struct that uses it. Owns its timerfd. */
struct loop_timer {
	struct loop_watch watch;
	loop_callback *callback;
	void *context;
};

enum error loop_init(void) MUST_CHECK;
void loop_fini(void);

/* Watches a descriptor for epoll events until loop_unwatch(), which may be called from any callback
 * (a pending event is dropped), and on a watch with fd -1. ERR_IO if epoll refuses it. */
enum error loop_watch(struct loop_watch *watch, int fd, uint32_t events, loop_callback *callback,
                      void *context) MUST_CHECK;
/* Does the same with a descriptor to be closed, and closes it on failure. ERR_IO for -1, too. */
enum error loop_adopt(struct loop_watch *watch, int fd, uint32_t events, loop_callback *callback,
                      void *context) MUST_CHECK;
void loop_unwatch(struct loop_watch *watch);
/* Does the same, and closes the descriptor. */
void loop_close(struct loop_watch *watch);

/* Creates a stopped timer. loop_timer_start() calls back once after `ms` milliseconds,
 * loop_timer_repeat() every `ms`; 0 stops the timer. */
enum error loop_timer_init(struct loop_timer *timer, loop_callback *callback,
                           void *context) MUST_CHECK;
void loop_timer_fini(struct loop_timer *timer);
void loop_timer_start(struct loop_timer *timer, uint64_t ms);
void loop_timer_repeat(struct loop_timer *timer, uint64_t ms);

/* Milliseconds until the next callback, rounded up; 0 if the timer is stopped. */
uint64_t loop_timer_left(const struct loop_timer *timer);

/* Runs until loop_stop(). Before each wait calls `turn`, which does pending work and returns the
 * longest wait in milliseconds, -1 for no limit. No callback of a watch runs after loop_stop(). */
void loop_run(int (*turn)(void));
void loop_stop(void);

/* The monotonic clock, in nanoseconds. */
uint64_t loop_now(void);

/* For checks that run every period_ms: *looked is the time of the last one. Returns true if this
 * one is more than a second late. Answers may then be unread, so no timeout may be judged before
 * the next check. */
bool loop_held_up(uint64_t *looked, uint64_t period_ms);

/* Threads and loops wake each other by an eventfd. loop_post() signals it (-1: nobody);
 * loop_await() waits for a signal (unless the descriptor is non-blocking) and clears all pending
 * ones. */
void loop_post(int fd);
void loop_await(int fd);
