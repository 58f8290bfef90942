/* The event loop over epoll. The hard part: a callback may unwatch a descriptor whose event comes
 * later in the same batch, so loop_unwatch() clears it from the batch. */
#include "base/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { BATCH = 64 };

static int epoll_fd = -1;
static bool running;
static struct epoll_event batch[BATCH];
static int batch_count;

enum error loop_init(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 ? ERR_IO : ERR_OK;
}

void loop_fini(void)
{
	close(epoll_fd);
}

enum error loop_watch(struct loop_watch *watch, int fd, uint32_t events, loop_callback *callback,
                      void *context)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	*watch = (struct loop_watch){-1, callback, context};
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return ERR_IO;
	watch->fd = fd;
	return ERR_OK;
}

enum error loop_adopt(struct loop_watch *watch, int fd, uint32_t events, loop_callback *callback,
                      void *context)
{
	enum error e = loop_watch(watch, fd, events, callback, context);

	if (e && fd >= 0)
		close(fd);
	return e;
}

void loop_unwatch(struct loop_watch *watch)
{
	if (watch->fd < 0)
		return;
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->fd = -1;
	for (int i = 0; i < batch_count; i++)
		if (batch[i].data.ptr == watch)
			batch[i].data.ptr = NULL;
}

static void timer_expired(void *context)
{
	struct loop_timer *timer = context;
	uint64_t expirations;

	if (read(timer->watch.fd, &expirations, sizeof expirations) == sizeof expirations)
		timer->callback(timer->context);
}

enum error loop_timer_init(struct loop_timer *timer, loop_callback *callback, void *context)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	timer->callback = callback;
	timer->context = context;
	return loop_adopt(&timer->watch, fd, EPOLLIN, timer_expired, timer);
}

void loop_close(struct loop_watch *watch)
{
	int fd = watch->fd;

	loop_unwatch(watch);
	if (fd >= 0)
		close(fd);
}

void loop_timer_fini(struct loop_timer *timer)
{
	loop_close(&timer->watch);
}

static void timer_set(struct loop_timer *timer, uint64_t ms, uint64_t repeat_ms)
{
	struct itimerspec spec = {
	    .it_value = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000},
	    .it_interval = {(time_t)(repeat_ms / 1000), (long)(repeat_ms % 1000) * 1000000},
	};

	timerfd_settime(timer->watch.fd, 0, &spec, NULL);
}

void loop_timer_start(struct loop_timer *timer, uint64_t ms)
{
	timer_set(timer, ms, 0);
}

void loop_timer_repeat(struct loop_timer *timer, uint64_t ms)
{
	timer_set(timer, ms, ms);
}

uint64_t loop_timer_left(const struct loop_timer *timer)
{
	struct itimerspec spec;

	if (timerfd_gettime(timer->watch.fd, &spec))
		return 0;
	return (uint64_t)spec.it_value.tv_sec * 1000 +
	       ((uint64_t)spec.it_value.tv_nsec + 999999) / 1000000;
}

void loop_run(int (*turn)(void))
{
	running = true;
	while (running) {
		batch_count = epoll_wait(epoll_fd, batch, BATCH, turn());
		for (int i = 0; i < batch_count && running; i++) {
			struct loop_watch *watch = batch[i].data.ptr;

			if (watch)
				watch->callback(watch->context);
		}
		batch_count = 0;
	}
}

void loop_stop(void)
{
	running = false;
}

uint64_t loop_now(void)
{
	return now_ns();
}

bool loop_held_up(uint64_t *looked, uint64_t period_ms)
{
	enum { HELD_UP_MS = 1000 };
	uint64_t before = *looked;

	*looked = loop_now();
	return before && *looked - before > (period_ms + HELD_UP_MS) * 1000000;
}

void loop_post(int fd)
{
	static const uint64_t one = 1;

	if (write(fd, &one, sizeof one) < 0)
		return; /* nobody, or the counter is at its maximum: already signalled */
}

void loop_await(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
		continue;
}
