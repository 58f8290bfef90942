/* The event loop: one thread, one epoll. Everything in the front happens in its callbacks. */
#ifndef FRONT_BASE_LOOP_H
#define FRONT_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "common/error.h"

typedef void loop_callback(void *context);

/* A descriptor that is watched; embedded where it is used. The descriptor stays its owner's. */
struct loop_watch {
	int fd; /* -1: not watched */
	loop_callback *callback;
	void *context;
};

/* A timer; embedded where it is used. */
struct loop_timer {
	struct loop_watch watch;
	loop_callback *callback;
	void *context;
};

enum error loop_init(void) MUST_CHECK;
void loop_fini(void);

/* Watches a descriptor for epoll events until loop_unwatch(), which may be called from any callback
 * (also for a watch whose event is already at hand) and on one that is not watched (fd -1). */
enum error loop_watch(struct loop_watch *watch, int fd, uint32_t events, loop_callback *callback,
                      void *context) MUST_CHECK;
void loop_unwatch(struct loop_watch *watch);

/* Makes a timer that is stopped. Then: call back once after, or (repeat) every, so many
 * milliseconds; 0 stops. */
enum error loop_timer_init(struct loop_timer *timer, loop_callback *callback,
                           void *context) MUST_CHECK;
void loop_timer_fini(struct loop_timer *timer);
void loop_timer_start(struct loop_timer *timer, uint64_t ms);
void loop_timer_repeat(struct loop_timer *timer, uint64_t ms);

/* Milliseconds until it calls back, 0 if it is stopped. */
uint64_t loop_timer_left(const struct loop_timer *timer);

/* Runs until loop_stop(). Before each wait `turn` does what is due and returns how many
 * milliseconds the wait may last, -1 for any time. */
void loop_run(int (*turn)(void));
void loop_stop(void);

/* The monotonic clock, in nanoseconds. */
uint64_t loop_now(void);

/* For what is looked at every period_ms: true if this look comes much too late after the one before
 * (`looked`, which is set). The loop itself was held up then, and what others have done meanwhile
 * may not have been read yet: nobody is to be blamed before the next look. */
bool loop_held_up(uint64_t *looked, uint64_t period_ms);

/* The two ends of an eventfd, by which threads and the loop wake each other: posts to it; waits for
 * a post (not if it is non-blocking) and takes all that there were. */
void loop_post(int fd);
void loop_await(int fd);

#endif
