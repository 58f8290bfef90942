/* A queue that shares: waiting items are served in turn by class, within a class by client, within
 * a client by flow (a job), each by the cost of the service that it had. Start-time fair queueing
 * (P. Goyal, H. M. Vin, H. Cheng, 1996) on each level: the one with the least start tag is served,
 * and its tag then grows by cost / weight; one that had nothing waiting begins at the virtual time.
 * That grows by cost / weights of all waiting ones, as in WF2Q+ (J. C. R. Bennett, H. Zhang, 1997):
 * the last served tag would stand still while newcomers arrive, and let all of them pass.
 *
 * Costs may have any common unit. No operation takes more than the logarithm of the number of
 * waiting items, and none but fair_open() can fail. */
#pragma once

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "link/head.h"

enum { FAIR_CLASSES_MAX = 4, FAIR_CLIENT_SIZE = HEAD_CLIENT_SIZE };

struct fair_node;
RB_HEAD(fair_ready, fair_node);
struct fair_client;
RB_HEAD(fair_clients, fair_client);
struct fair_flow;
LIST_HEAD(fair_parked, fair_flow);

/* A node: the root, a class, a client or a flow. */
struct fair_node {
	RB_ENTRY(fair_node) place; /* links among its parent's children with something waiting */
	struct fair_node *parent;
	struct fair_ready ready; /* its own children with something waiting */
	double start, weight;
	double now;     /* virtual time among its children */
	double waiting; /* weights of the children in `ready` */
	uint64_t order; /* breaks ties of tags: the longest waiting one is first */
	bool waits;     /* true if it is in its parent's `ready` */
};

/* A queued item; embedded in its owner's struct. */
struct fair_item {
	struct fair_item *next;
	double cost; /* above 0 */
};

/* The items of one job; embedded in the job. */
struct fair_flow {
	struct fair_node node;
	struct fair_client *client; /* NULL: not open */
	struct fair_item *head, **tail;
	unsigned count;
	bool parked;
	LIST_ENTRY(fair_flow) place; /* links among the parked flows */
};

struct fair {
	struct fair_node root, classes[FAIR_CLASSES_MAX];
	struct fair_clients clients[FAIR_CLASSES_MAX];
	struct fair_parked parked;
	uint64_t order;
	unsigned count; /* number of items, parked ones included */
};

/* Initialises an empty queue of classes with these weights. */
void fair_init(struct fair *fair, const double *weights, unsigned classes);

/* Opens a flow of a client (a name, cut at FAIR_CLIENT_SIZE) in a class. Sets the client's weight
 * relative to others; 0 stands for 1. ERR_MEMORY. */
enum error fair_open(struct fair *fair, struct fair_flow *flow, unsigned class, const char *client,
                     double weight) MUST_CHECK;
/* Closes a flow, which must be empty. Ignores one that is not open. */
void fair_close(struct fair *fair, struct fair_flow *flow);

/* Queues an item as the last, or (fair_return) as the first of its flow. */
void fair_push(struct fair *fair, struct fair_flow *flow, struct fair_item *item);
void fair_return(struct fair *fair, struct fair_flow *flow, struct fair_item *item);

/* fair_next() returns the flow whose first item is next among the classes of a mask, or NULL;
 * fair_pop() takes that item. */
struct fair_flow *fair_next(const struct fair *fair, unsigned mask);
struct fair_item *fair_pop(struct fair *fair, unsigned mask);

/* Takes the first item of a waiting flow, in turn or not, and charges the flow for it. */
struct fair_item *fair_take(struct fair *fair, struct fair_flow *flow);

/* Charges a flow, which may have nothing waiting, for service beyond the costs of its items. */
void fair_charge(struct fair *fair, struct fair_flow *flow, double cost);

/* Skips a waiting flow until fair_unpark(), which releases all parked flows, or until more is
 * queued in it. It is charged nothing, and saves up no turns. */
void fair_park(struct fair *fair, struct fair_flow *flow);
void fair_unpark(struct fair *fair);

/* Takes all items of the flow, parked or not, as a list. */
struct fair_item *fair_take_all(struct fair *fair, struct fair_flow *flow);
