/* The loop of base/loop.h in simulated time. Whatever is ready waits for a while, by chance, and is
 * then called in an order by chance; when nothing is ready time goes on to what comes next. The
 * simulated workers' ends are watched by the same loop, and wait longer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum {
	WATCHES_MAX = 1024,
	TIMERS_MAX = 1024,
	EVENTS_MAX = 1 << 16,
	TIMER_FD = 1 << 24,
	TURNS_MAX = 400000,
};

uint64_t sim_now, sim_excuse;
static uint64_t tick; /* time that passes with each look at the clock */
static uint64_t turns;
static bool running, is_front;

static struct watched {
	struct loop_watch *watch;
	uint32_t events;
	uint64_t edges; /* when it was last called */
	bool is_due;
	uint64_t due;
} watched[WATCHES_MAX];
static unsigned watches;

static struct timer {
	struct loop_timer *timer; /* NULL: free */
	uint64_t due, period;     /* due 0: stopped */
} timers[TIMERS_MAX];
static unsigned timers_used;

static struct event {
	uint64_t at, order;
	sim_event *event;
	void *context;
	uint64_t number;
} events[EVENTS_MAX];
static unsigned event_count;
static uint64_t order;

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void sim_after(uint64_t ns, sim_event *event, void *context, uint64_t number)
{
	const struct event new = {sim_now + ns, order++, event, context, number};
	unsigned i = event_count++;

	must(i < EVENTS_MAX);
	for (; i && is_before(&new, &events[(i - 1) / 2]); i = (i - 1) / 2)
		events[i] = events[(i - 1) / 2];
	events[i] = new;
}

static struct event pop_event(void)
{
	const struct event first = events[0], last = events[--event_count];
	unsigned i = 0, child;

	while ((child = 2 * i + 1) < event_count) {
		if (child + 1 < event_count && is_before(&events[child + 1], &events[child]))
			child++;
		if (!is_before(&events[child], &last))
			break;
		events[i] = events[child];
		i = child;
	}
	events[i] = last;
	return first;
}

static void run_events(void)
{
	while (event_count && events[0].at <= sim_now) {
		const struct event e = pop_event();

		e.event(e.context, e.number);
	}
}

/* ---- the interface of the loop ---- */

enum error loop_init(void)
{
	tick = (uint64_t[]){0, 200, 2000, 20000}[sim_below(4)];
	return ERR_OK;
}

void loop_fini(void)
{
}

void sim_loop_reset(void)
{
	memset(timers, 0, sizeof timers);
	watches = timers_used = event_count = 0;
	turns = order = 0;
	sim_now = 1000 * SIM_S;
	sim_excuse = 0;
	running = false;
}

unsigned sim_loop_timers(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < timers_used; i++)
		count += timers[i].timer != NULL;
	return count;
}

uint64_t sim_turns(void)
{
	return turns;
}

enum error loop_watch(struct loop_watch *watch, int fd, uint32_t wanted, loop_callback *callback,
                      void *context)
{
	*watch = (struct loop_watch){-1, callback, context};
	if (fd < 0)
		return ERR_IO;
	for (unsigned i = 0; i < watches; i++)
		must(watched[i].watch->fd != fd); /* epoll refuses it */
	must(watches < WATCHES_MAX);
	watched[watches++] = (struct watched){.watch = watch, .events = wanted};
	watch->fd = fd;
	return ERR_OK;
}

enum error loop_adopt(struct loop_watch *watch, int fd, uint32_t wanted, loop_callback *callback,
                      void *context)
{
	return loop_watch(watch, fd, wanted, callback, context);
}

void loop_unwatch(struct loop_watch *watch)
{
	unsigned i = 0;

	if (watch->fd < 0)
		return;
	while (i < watches && watched[i].watch != watch)
		i++;
	must(i < watches);
	watched[i] = watched[--watches];
	watch->fd = -1;
}

void loop_close(struct loop_watch *watch)
{
	int fd = watch->fd;

	loop_unwatch(watch);
	if (fd >= 0)
		close(fd);
}

static struct timer *timer_of(const struct loop_timer *timer)
{
	const int i = timer->watch.fd - TIMER_FD;

	must(i >= 0 && i < TIMERS_MAX && timers[i].timer == timer);
	return &timers[i];
}

enum error loop_timer_init(struct loop_timer *timer, loop_callback *callback, void *context)
{
	unsigned i = 0;

	while (i < timers_used && timers[i].timer)
		i++;
	must(i < TIMERS_MAX);
	timers_used += i == timers_used;
	timers[i] = (struct timer){.timer = timer};
	timer->watch.fd = TIMER_FD + (int)i;
	timer->callback = callback;
	timer->context = context;
	return ERR_OK;
}

void loop_timer_fini(struct loop_timer *timer)
{
	if (timer->watch.fd < 0)
		return;
	*timer_of(timer) = (struct timer){0};
	timer->watch.fd = -1;
}

static void set_timer(struct loop_timer *timer, uint64_t ms, uint64_t period)
{
	struct timer *t = timer_of(timer);

	t->due = ms ? sim_now + ms * SIM_MS : 0;
	t->period = period * SIM_MS;
}

void loop_timer_start(struct loop_timer *timer, uint64_t ms)
{
	set_timer(timer, ms, 0);
}

void loop_timer_repeat(struct loop_timer *timer, uint64_t ms)
{
	set_timer(timer, ms, ms);
}

uint64_t loop_timer_left(const struct loop_timer *timer)
{
	const struct timer *t = timer_of(timer);

	return t->due > sim_now ? (t->due - sim_now + SIM_MS - 1) / SIM_MS : 0;
}

uint64_t loop_now(void)
{
	return sim_now += sim_in_thread() ? 0 : tick;
}

bool loop_held_up(uint64_t *looked, uint64_t period_ms)
{
	enum { HELD_UP_MS = 1000 };
	uint64_t before = *looked;

	*looked = loop_now();
	return before && *looked - before > (period_ms + HELD_UP_MS) * SIM_MS;
}

void loop_post(int fd)
{
	static const uint64_t one = 1;

	if (fd >= 0 && write(fd, &one, sizeof one) == sizeof one)
		sim_thread_wake(fd);
}

void loop_await(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof count) < 0 && errno == EAGAIN && sim_in_thread())
		sim_thread_await(fd);
}

bool sim_lacks_descriptor(void)
{
	return is_front && !sim_in_thread() && sim_fault(FAULT_NO_DESCRIPTOR);
}

bool sim_loop_runs(void)
{
	return running;
}

void loop_stop(void)
{
	running = false;
}

/* ---- the turns ---- */

/* The time until somebody sees that a descriptor is ready. */
static uint64_t delay(int fd)
{
	if (!sim_is_far(fd))
		return sim_fault(FAULT_HOLD) ? sim_while(20 * SIM_MS) : 0;
	if (sim_fault(FAULT_PAUSED))
		return sim_between(100 * SIM_MS, 3500 * SIM_MS);
	return sim_fault(FAULT_SLOW) ? sim_while(100 * SIM_MS) : sim_while(200 * SIM_US);
}

static bool is_ready(const struct watched *w)
{
	const uint32_t ready = sim_ready(w->watch->fd) & w->events;

	if (w->events & EPOLLET)
		return ready && sim_edges(w->watch->fd) != w->edges;
	return ready;
}

/* Looks which descriptors are ready, and returns when the next one is due. */
static uint64_t look(void)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < watches; i++) {
		struct watched *w = &watched[i];
		const bool ready = is_ready(w);

		if (ready && !w->is_due)
			w->due = sim_now + delay(w->watch->fd);
		w->is_due = ready;
		if (ready && w->due < next)
			next = w->due;
	}
	for (unsigned i = 0; i < timers_used; i++)
		if (timers[i].due && timers[i].due < next)
			next = timers[i].due;
	return next;
}

static void call_watch(struct loop_watch *watch)
{
	unsigned i = 0;

	while (i < watches && watched[i].watch != watch)
		i++;
	if (i == watches || !watched[i].is_due)
		return; /* an earlier callback has ended it */
	watched[i].is_due = false;
	watched[i].edges = sim_edges(watch->fd);
	is_front = !sim_is_far(watch->fd);
	watch->callback(watch->context);
	is_front = false;
}

static void call_timer(struct timer *t)
{
	struct loop_timer *timer = t->timer;

	if (!timer || !t->due || t->due > sim_now)
		return;
	while (t->period && t->due <= sim_now)
		t->due += t->period;
	if (!t->period)
		t->due = 0;
	is_front = true;
	timer->callback(timer->context);
	is_front = false;
}

/* Calls whatever is due, in an order by chance. */
static void call_due(void)
{
	static void *due[WATCHES_MAX + TIMERS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < watches; i++)
		if (watched[i].is_due && watched[i].due <= sim_now)
			due[count++] = watched[i].watch;
	for (unsigned i = 0; i < timers_used; i++)
		if (timers[i].due && timers[i].due <= sim_now)
			due[count++] = &timers[i];
	while (count && running) {
		const unsigned i = (unsigned)sim_below(count);
		void *chosen = due[i];

		due[i] = due[--count];
		if ((struct timer *)chosen >= timers &&
		    (struct timer *)chosen < timers + TIMERS_MAX)
			call_timer(chosen);
		else
			call_watch(chosen);
	}
}

void loop_run(int (*turn)(void))
{
	running = true;
	while (running) {
		uint64_t next;
		int wait;

		is_front = true;
		wait = turn();
		is_front = false;
		check_step();
		if (++turns > TURNS_MAX)
			violated("the loop turns for ever");
		sim_counts[COUNT_TURNS]++;
		next = look();
		if (event_count && events[0].at < next)
			next = events[0].at;
		if (wait >= 0 && sim_now + (uint64_t)wait * SIM_MS + SIM_US < next)
			next = sim_now + (uint64_t)wait * SIM_MS + SIM_US;
		if (next == UINT64_MAX)
			violated("nothing will ever happen");
		if (next > sim_now)
			sim_now = next;
		if (sim_fault(FAULT_HELD_UP))
			sim_excuse = sim_now += sim_between(1, 4 * SIM_S);
		run_events();
		call_due();
	}
}
