/* The plans that the front has sent, by the front's numbers. A lane keeps the plan that was current
 * when it started, even if one with better kernels replaces it. */
#pragma once

#include <glib.h>

#include "device/plan/plan.h"
#include "device/tuner.h"
#include "wire/wire.h"

struct known_plan {
	uint64_t id;         /* the front's number, which tiles name */
	uint64_t generation; /* programs and choices that it was made with */
	unsigned uses;       /* by the table and by lanes, which count up themselves */
	struct plan *plan;   /* NULL: could not be made; the answer to its tiles follows */
	enum error error;
	char reason[sizeof(((struct message_tile_done *)0)->reason)];
};

struct plans {
	GHashTable *known; /* by number; dropped and replaced plans are only their lanes' */
	struct programs *programs;
	struct tuner *tuner;
};

/* Programs and tuner must outlive the plans, and the plans all uses by lanes. */
void plans_init(struct plans *plans, struct programs *programs, struct tuner *tuner);
void plans_fini(struct plans *plans);

/* Makes the plan that the front describes; the caller keeps the descriptor of the chain. A plan
 * that is impossible because of a request is stored with its error. ERR_MEMORY; ERR_DEVICE (no
 * device memory for weights); ERR_INTERNAL if the message is invalid. */
enum error plans_add(struct plans *plans, const struct message_plan *message,
                     int chain_fd) MUST_CHECK;
void plans_drop(struct plans *plans, uint64_t id);

/* Finds a plan by its number, or NULL. plans_current() first makes it anew if better kernels may be
 * available; if that fails, the old plan stays. */
struct known_plan *plans_find(const struct plans *plans, uint64_t id);
struct known_plan *plans_current(struct plans *plans, uint64_t id);
/* Releases a use of a plan, which is freed with the last. */
void plans_release(struct known_plan *known);
