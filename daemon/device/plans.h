/* The plans that the front has sent, by the front's numbers. A tile names its plan's number. A lane
 * keeps the plan that was current when it started, even if a plan with better kernels replaces
 * it. */
#ifndef DEVICE_PLANS_H
#define DEVICE_PLANS_H

#include "device/plan/plan.h"
#include "device/tuner.h"
#include "wire/wire.h"

struct known_plan {
	struct known_plan *next;
	uint64_t id;         /* 0: dropped or replaced, but still in use */
	uint64_t generation; /* programs and choices that it was made with */
	unsigned uses;       /* lanes that use it; the worker counts up, plans_release() down */
	struct plan *plan;   /* NULL: could not be made; the answer to its tiles follows */
	enum error error;
	char reason[sizeof(((struct message_tile_done *)0)->reason)];
};

/* The list; programs and tuner must outlive it. */
struct plans {
	struct known_plan *first;
	struct programs *programs;
	struct tuner *tuner;
};

/* Frees all plans. No lane may still use one. */
void plans_fini(struct plans *plans);

/* Makes the plan that the front describes; the caller keeps the descriptor of the chain. A plan
 * that a request makes impossible is stored with its error. ERR_MEMORY; ERR_DEVICE (no device
 * memory for weights); ERR_INTERNAL if the message is invalid. */
enum error plans_add(struct plans *plans, const struct message_plan *message,
                     int chain_fd) MUST_CHECK;
/* Drops a plan; it is freed when no lane uses it. */
void plans_drop(struct plans *plans, uint64_t id);

/* Finds a plan by its number, or NULL. plans_current() first makes it anew if better kernels may be
 * available; if that fails the old plan stays. */
struct known_plan *plans_find(const struct plans *plans, uint64_t id);
struct known_plan *plans_current(struct plans *plans, uint64_t id);
/* Releases a lane's use of a plan. */
void plans_release(struct plans *plans, struct known_plan *known);

#endif
