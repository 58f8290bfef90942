/* A simulated node: the service's own scheduler, admission, queue of jobs and shares, one set for
 * each node, over simulated devices (simulated.h), cores and codec workers, in simulated time.
 *
 * These modules keep their state in static variables, one set a program. The build takes the
 * service's objects as they are and puts their variables into a section of their own (libnode.a in
 * tests/sources.am); a node is a copy of that section, which is put in place while something
 * happens at the node.
 *
 * A request's way through a node: its headers and body (HTTP workers and front, one after another);
 * admission; the queue of jobs; a codec worker, which decodes on a core, has the tiles filtered and
 * encodes. Times are in nanoseconds. */
#pragma once

#include "front/jobs/job.h"

/* The photographs that are posted. */
enum photograph { PHOTOGRAPH_256, PHOTOGRAPH_1024, PHOTOGRAPH_4096, PHOTOGRAPHS };
enum { CLIENT_NAME_SIZE = 16, TRIES_MAX = 3 };

struct node;
struct node_kind;

/* A request; the fields up to `tried` are its sender's. One that no node has may be freed. */
struct request {
	enum photograph photograph;
	char client[CLIENT_NAME_SIZE];
	double arrived;
	unsigned balancer, tries, tried[TRIES_MAX];
	bool answered; /* true once a node has answered it, false after a refusal */

	struct share body;
	struct job job;
	struct task *tasks; /* owned */
	unsigned tasks_left;
	bool encodes;
	double ends; /* when a core will have done its phase, in the node's attained service */
	struct request *next;
};

/* The kinds of nodes: "cpu" has two cores, "gpu" one H200 and 16 cores, as those that were
 * measured. */
extern const char node_kind_names[]; /* as words of base/value.h */
const struct node_kind *node_kind(unsigned i);
/* Returns the requests a second of such a mix (shares that add up to 1) that its scarcest part can
 * do. */
double node_kind_capacity(const struct node_kind *kind, const double mix[PHOTOGRAPHS]);

/* Prepares the modules, or ends the program; options have their defaults, but max-wait. To be
 * called once, before any node_new(). Nodes last until the program ends. */
void nodes_init(uint64_t max_wait);
/* Returns a node whose parts take `slower` times as long as its kind's. */
struct node *node_new(const struct node_kind *kind, double slower);

/* Hands over a request at this time, not before that of the node's last event. False if the node
 * refuses it at once. */
bool node_offer(struct node *node, struct request *request, double now) MUST_CHECK;

/* When something will happen there next; INFINITY: it has no request. node_step() has it happen,
 * and returns the request that has left the node by it, answered or refused, or NULL. */
double node_next(const struct node *node);
struct request *node_step(struct node *node);

/* Returns the free part of max-wait there, which its agent tells: 0 to 1. */
double node_free_wait(struct node *node);

/* Tells whether no request, tile or place is left in the node, and its modules say so, too.
 * `answered`: the jobs that it has done. */
bool node_is_empty(struct node *node, uint64_t *answered);
