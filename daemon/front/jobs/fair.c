/* Fair queueing: a tree of four levels (root, class, client, flow). A node keeps its waiting
 * children, those with something queued, in the order of their start tags. */
#include "front/jobs/fair.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The flows of a client in a class; freed with the last of them. */
struct fair_client {
	struct fair_node node;
	RB_ENTRY(fair_client) place; /* links among the clients of its class */
	char name[FAIR_CLIENT_SIZE];
	unsigned class, flows;
};

static int compare_nodes(const struct fair_node *a, const struct fair_node *b)
{
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int compare_clients(const struct fair_client *a, const struct fair_client *b)
{
	return strcmp(a->name, b->name);
}

/* Not static: some of its functions would be unused. */
RB_GENERATE(fair_ready, fair_node, place, compare_nodes)
RB_GENERATE(fair_clients, fair_client, place, compare_clients)

static void node_init(struct fair_node *node, struct fair_node *parent, double weight)
{
	*node = (struct fair_node){.parent = parent, .weight = weight};
	RB_INIT(&node->ready);
}

void fair_init(struct fair *fair, const double *weights, unsigned classes)
{
	*fair = (struct fair){0};
	node_init(&fair->root, NULL, 1);
	for (unsigned i = 0; i < classes; i++) {
		node_init(&fair->classes[i], &fair->root, weights[i]);
		RB_INIT(&fair->clients[i]);
	}
}

enum error fair_open(struct fair *fair, struct fair_flow *flow, unsigned class, const char *name,
                     double weight)
{
	struct fair_client wanted = {.class = class}, *client;
	struct fair_node *node;

	snprintf(wanted.name, sizeof wanted.name, "%s", name);
	client = RB_FIND(fair_clients, &fair->clients[class], &wanted);
	if (!client && (client = malloc(sizeof *client))) {
		*client = wanted;
		node_init(&client->node, &fair->classes[class], 1);
		RB_INSERT(fair_clients, &fair->clients[class], client);
	}
	*flow = (struct fair_flow){.client = client};
	if (!client)
		return ERR_MEMORY;
	node = &client->node;
	weight = weight > 0 ? weight : 1;
	if (node->waits)
		node->parent->waiting += weight - node->weight;
	node->weight = weight;
	client->flows++;
	flow->tail = &flow->head;
	node_init(&flow->node, node, 1);
	return ERR_OK;
}

void fair_close(struct fair *fair, struct fair_flow *flow)
{
	struct fair_client *client = flow->client;

	flow->client = NULL;
	if (!client || --client->flows)
		return;
	RB_REMOVE(fair_clients, &fair->clients[client->class], client);
	free(client);
}

static void wait_turn(struct fair *fair, struct fair_node *node)
{
	node->order = ++fair->order;
	node->waits = true;
	node->parent->waiting += node->weight;
	RB_INSERT(fair_ready, &node->parent->ready, node);
}

static void rest(struct fair_node *node)
{
	node->waits = false;
	RB_REMOVE(fair_ready, &node->parent->ready, node);
	/* No rounding is carried from one busy time to the next. */
	node->parent->waiting =
	    RB_EMPTY(&node->parent->ready) ? 0 : node->parent->waiting - node->weight;
}

/* Records that nothing waits below the node; updates it and the ancestors left empty by that. */
static void rest_all(struct fair_node *node)
{
	for (; node->parent; node = node->parent) {
		rest(node);
		if (!RB_EMPTY(&node->parent->ready))
			break;
	}
}

/* Records that something now waits in the flow, and so below its ancestors. */
static void flow_wake(struct fair *fair, struct fair_flow *flow)
{
	if (flow->parked)
		LIST_REMOVE(flow, place);
	flow->parked = false;
	for (struct fair_node *n = &flow->node; n->parent && !n->waits; n = n->parent) {
		n->start = fmax(n->start, n->parent->now);
		wait_turn(fair, n);
	}
}

void fair_park(struct fair *fair, struct fair_flow *flow)
{
	rest_all(&flow->node);
	flow->parked = true;
	LIST_INSERT_HEAD(&fair->parked, flow, place);
}

void fair_unpark(struct fair *fair)
{
	while (!LIST_EMPTY(&fair->parked))
		flow_wake(fair, LIST_FIRST(&fair->parked));
}

static void insert(struct fair *fair, struct fair_flow *flow, struct fair_item *item,
                   struct fair_item **at)
{
	item->next = *at;
	*at = item;
	if (!item->next)
		flow->tail = &item->next;
	flow->count++;
	fair->count++;
	flow_wake(fair, flow);
}

void fair_push(struct fair *fair, struct fair_flow *flow, struct fair_item *item)
{
	insert(fair, flow, item, flow->tail);
}

void fair_return(struct fair *fair, struct fair_flow *flow, struct fair_item *item)
{
	insert(fair, flow, item, &flow->head);
}

static struct fair_node *first(const struct fair_node *node)
{
	return RB_MIN(fair_ready, (struct fair_ready *)&node->ready);
}

struct fair_flow *fair_next(const struct fair *fair, unsigned mask)
{
	struct fair_node *class = first(&fair->root);

	while (class && !(mask >> (class - fair->classes) & 1))
		class = RB_NEXT(fair_ready, NULL, class);
	/* A flow begins with its node. */
	return class ? (struct fair_flow *)first(first(class)) : NULL;
}

struct fair_item *fair_take(struct fair *fair, struct fair_flow *flow)
{
	struct fair_item *item = flow->head;
	bool more;

	flow->head = item->next;
	if (!flow->head)
		flow->tail = &flow->head;
	item->next = NULL;
	flow->count--;
	fair->count--;
	more = flow->head;
	for (struct fair_node *node = &flow->node; node->parent; node = node->parent) {
		/* Items may be served out of turn, or excluded by a mask: no tag goes back. */
		node->parent->now =
		    fmax(node->parent->now, node->start) + item->cost / node->parent->waiting;
		rest(node);
		node->start += item->cost / node->weight;
		if (more)
			wait_turn(fair, node);
		more = !RB_EMPTY(&node->parent->ready);
	}
	return item;
}

void fair_charge(struct fair *fair, struct fair_flow *flow, double cost)
{
	for (struct fair_node *node = &flow->node; node->parent; node = node->parent) {
		bool waits = node->waits;

		if (waits)
			rest(node);
		/* A tag in the past counts as now: late charges still delay the next turn. */
		node->start = fmax(node->start, node->parent->now) + cost / node->weight;
		if (waits)
			wait_turn(fair, node);
	}
}

struct fair_item *fair_pop(struct fair *fair, unsigned mask)
{
	struct fair_flow *flow = fair_next(fair, mask);

	return flow ? fair_take(fair, flow) : NULL;
}

struct fair_item *fair_take_all(struct fair *fair, struct fair_flow *flow)
{
	struct fair_item *all = flow->head;

	if (!all)
		return NULL;
	fair->count -= flow->count;
	flow->count = 0;
	flow->head = NULL;
	flow->tail = &flow->head;
	if (flow->parked)
		LIST_REMOVE(flow, place);
	else
		rest_all(&flow->node);
	flow->parked = false;
	return all;
}
