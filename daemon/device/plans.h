/* The plans that the front has told of, by the numbers that it gave them. Tiles name the number; a
 * lane uses what was current when it started, which may be replaced meanwhile by a plan of better
 * kernels. */
#ifndef DEVICE_PLANS_H
#define DEVICE_PLANS_H

#include "common/wire.h"
#include "device/plan/plan.h"
#include "device/tuner.h"

struct plans;

struct known_plan {
	struct known_plan *next;
	uint64_t id;         /* 0: given up, but still used */
	uint64_t generation; /* what was known when it was made */
	unsigned uses;       /* lanes; the user counts, plans_release() counts down */
	struct plan *plan;   /* NULL if it could not be made: then the answer to its tiles */
	enum error error;
	char reason[sizeof(((struct message_tile_done *)0)->reason)];
};

/* None yet. Programs, tuner and device are the caller's and must outlive it. NULL: no memory. */
struct plans *plans_new(struct programs *programs, struct tuner *tuner,
                        const struct device *device);
/* NULL is allowed. The pointer becomes NULL. */
void plans_free(struct plans **plans);

/* Makes a plan as the front wishes; the descriptor of its chain stays the caller's. A plan that
 * cannot be made is kept as its error. ERR_MEMORY, ERR_DEVICE (no room for a few weights), or
 * ERR_INTERNAL for what no front would send. */
enum error plans_take(struct plans *plans, const struct message_plan *message,
                      int chain_fd) MUST_CHECK;
/* Frees it, once no lane uses it. */
void plans_drop(struct plans *plans, uint64_t id);

/* The plan with a number, or NULL. plans_current() makes it anew if better kernels may be known by
 * now; if that fails the old one stays. */
struct known_plan *plans_find(const struct plans *plans, uint64_t id);
struct known_plan *plans_current(struct plans *plans, uint64_t id);
/* A lane no longer uses it. */
void plans_release(struct plans *plans, struct known_plan *known);

/* The tuner has made a choice: plans may be better anew. */
void plans_outdate(struct plans *plans);

#endif
