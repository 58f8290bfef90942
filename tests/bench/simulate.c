/* Many nodes behind balancers, in simulated time: who is answered, and how late.
 *
 * bench_simulate [OPTION...]
 * Requests for photographs come at random (Poisson), at a share of what all nodes can do, to one of
 * the balancers at random. A balancer knows only its own requests. One that a node refuses (429)
 * goes to another node, twice at most. Prints one JSON object. When no more requests come, those
 * under way are answered; the program fails if then one is missing or anything is left in a node.
 * The same options give the same figures. --help lists them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

enum { WEIGHT_MAX = 100 };

enum balancing { RANDOM, TWO_CHOICES, LEASTCONN, BALANCINGS };
static const char *const balancings[BALANCINGS] = {
    [RANDOM] = "random", [TWO_CHOICES] = "two-choices", [LEASTCONN] = "leastconn"};

/* A node's weight: 1; the free part of max-wait there, as its agent tells; or of max-jobs. */
enum weights { WEIGHTS_NONE, WEIGHTS_WAIT, WEIGHTS_JOBS, WEIGHTINGS };
static const char *const weightings[WEIGHTINGS] = {
    [WEIGHTS_NONE] = "none", [WEIGHTS_WAIT] = "wait", [WEIGHTS_JOBS] = "jobs"};

/* In a burst, for a tenth of the time, three times as many requests come as on average. */
static const double burst_rate = 3, burst_share = 0.1, burst_ns = 2e8;

/* The choices of the command line; the first is the default. */
enum choice { KIND, BALANCING, WEIGHTS, CHOICES };
static struct {
	const char *name;
	const char *const *names;
	unsigned count, value;
} choices[CHOICES] = {
    [KIND] = {"kind", node_kind_names, NODE_KINDS, 0},
    [BALANCING] = {"balancing", balancings, BALANCINGS, 0},
    [WEIGHTS] = {"weights", weightings, WEIGHTINGS, 0},
};

/* The numbers of the command line. */
enum number {
	NODES,
	BALANCERS,
	LOAD,
	SECONDS,
	WARMUP,
	SLOW,
	BURSTS,
	WITHIN,
	REFRESH,
	MAX_WAIT,
	SMALL,
	MEDIUM,
	CLIENTS,
	SEED,
	NUMBERS
};
static struct {
	const char *name;
	double value, min, max;
	bool whole;
	const char *text;
} numbers[NUMBERS] = {
    [NODES] = {"nodes", 10, 1, 10000, true, "nodes"},
    [BALANCERS] = {"balancers", 1, 1, 1000, true,
                   "balancers, each of which knows its own requests"},
    [LOAD] = {"load", 0.8, 0.001, 100, false, "requests, of those that all nodes can do"},
    [SECONDS] = {"seconds", 10, 0.001, 1e6, false, "how long requests come"},
    [WARMUP] = {"warmup", 0.2, 0, 0.9, false, "the share of that before anything is measured"},
    [SLOW] = {"slow", 1, 0.1, 1000, false, "how many times as long the first node takes"},
    [BURSTS] = {"bursts", 0, 0, 1, true, "1: a tenth of the time three times the load"},
    [WITHIN] = {"within", 1, 0.001, 1e6, false, "seconds after which an answer is of no use"},
    [REFRESH] = {"refresh", 2, 0.01, 1e6, false, "seconds after which a node's weight is new"},
    [MAX_WAIT] = {"max-wait", 60, 1, 86400, true, "the option of the nodes, in seconds"},
    [SMALL] = {"small", 0.7, 0, 1, false, "the share of requests for 256x256"},
    [MEDIUM] = {"medium", 0.25, 0, 1, false, "for 1024x1024; the others are for 4096x4096"},
    [CLIENTS] = {"clients", 1000, 1, 1e6, true, "clients, whose requests come alike"},
    [SEED] = {"seed", 1, 0, 4294967295, true, "of the random numbers"},
};

static const struct node_kind *kind;
static double mix[PHOTOGRAPHS]; /* their shares */
static unsigned node_count, balancer_count;

/* Latencies by their logarithms: a bucket is one per cent wide. */
enum { BUCKETS = 2400 };
static const double bucket_width = 0.01, bucket_min = 1e4; /* ns */

static struct {
	uint64_t arrived, answered, refused, retries; /* all requests */
	uint64_t offered, done, in_time, turned_away; /* after the warm-up, while requests come */
	uint64_t bucket[BUCKETS];
	double sum, max;
} count;

static struct node **nodes;
static unsigned *heap, *place; /* nodes by their next event; where each is there */
static unsigned *outstanding;  /* requests of a balancer at a node: [balancer * nodes + node] */
static unsigned *tree;         /* sums of weights (P. M. Fenwick, 1994); from 1 */
static unsigned *weight;
static double start_ns = 1e9, end_ns, time_ns, flip_ns;
/* Random numbers for requests, and for the choice of nodes: so that other ways to choose meet the
 * same requests. */
static uint64_t coming, drawing;
static bool bursting;

/* SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, 2014). */
static uint64_t random_bits(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* From 0 to below 1. */
static double random_share(uint64_t *state)
{
	return (double)(random_bits(state) >> 11) * 0x1p-53;
}

static unsigned random_below(uint64_t *state, unsigned limit)
{
	return (unsigned)(random_share(state) * limit);
}

static double random_wait(double mean)
{
	return -log1p(-random_share(&coming)) * mean;
}

static void heap_put(unsigned at, unsigned node)
{
	heap[at] = node;
	place[node] = at;
}

/* The node's next event has changed. */
static void heap_move(unsigned node)
{
	double next = node_next(nodes[node]);
	unsigned at = place[node], child;

	for (; at && node_next(nodes[heap[(at - 1) / 2]]) > next; at = (at - 1) / 2)
		heap_put(at, heap[(at - 1) / 2]);
	for (; (child = 2 * at + 1) < node_count; at = child) {
		if (child + 1 < node_count &&
		    node_next(nodes[heap[child + 1]]) < node_next(nodes[heap[child]]))
			child++;
		if (node_next(nodes[heap[child]]) >= next)
			break;
		heap_put(at, heap[child]);
	}
	heap_put(at, node);
}

static void weigh(unsigned node, unsigned to)
{
	for (unsigned i = node + 1; i <= node_count; i += i & -i)
		tree[i] += to - weight[node];
	weight[node] = to;
}

/* Returns a node, each as likely as its weight. */
static unsigned weighted_node(void)
{
	unsigned total = 0, at = 0, step = 1, wanted;

	for (unsigned i = node_count; i; i -= i & -i)
		total += tree[i];
	wanted = random_below(&drawing, total);
	while (step * 2 <= node_count)
		step *= 2;
	for (; step; step /= 2)
		if (at + step <= node_count && tree[at + step] <= wanted) {
			at += step;
			wanted -= tree[at];
		}
	return at;
}

static bool was_tried(const struct request *r, unsigned node)
{
	for (unsigned i = 0; i < r->tries; i++)
		if (r->tried[i] == node)
			return true;
	return false;
}

/* Returns one that has not refused the request: there are more nodes than that. */
static unsigned draw(const struct request *r)
{
	unsigned node;

	do
		node =
		    choices[WEIGHTS].value ? weighted_node() : random_below(&drawing, node_count);
	while (was_tried(r, node));
	return node;
}

/* Returns the node that has fewer requests of this balancer for its weight; the first of two equal
 * ones. */
static unsigned better(const struct request *r, unsigned a, unsigned b)
{
	const unsigned *mine = outstanding + (size_t)r->balancer * node_count;

	return mine[b] * weight[a] < mine[a] * weight[b] ? b : a;
}

/* From a random one on, so that equal ones take turns. */
static unsigned best_of_all(const struct request *r)
{
	unsigned best = draw(r), node = best;

	for (unsigned i = 1; i < node_count; i++) {
		node = node + 1 < node_count ? node + 1 : 0;
		if (!was_tried(r, node))
			best = better(r, best, node);
	}
	return best;
}

static unsigned choose(const struct request *r)
{
	unsigned node = draw(r);

	if (choices[BALANCING].value == TWO_CHOICES)
		return better(r, node, draw(r));
	return choices[BALANCING].value == LEASTCONN ? best_of_all(r) : node;
}

/* Events count from now on. */
static bool is_measured(void)
{
	return time_ns >= start_ns + numbers[WARMUP].value * numbers[SECONDS].value * 1e9 &&
	       time_ns <= end_ns;
}

static void note_answer(const struct request *r)
{
	double ns = time_ns - r->arrived;
	int bucket = (int)(log(fmax(ns / bucket_min, 1)) / bucket_width);

	count.answered++;
	if (!is_measured())
		return;
	count.done++;
	count.in_time += ns <= numbers[WITHIN].value * 1e9;
	count.bucket[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
	count.sum += ns;
	count.max = fmax(count.max, ns);
}

/* Sends it to nodes until one takes it, or it has been refused too often. */
static void pass_on(struct request *r)
{
	while (r->tries < TRIES_MAX && r->tries < node_count) {
		unsigned node = choose(r);
		bool taken = node_offer(nodes[node], r, time_ns);

		count.retries += r->tries > 0;
		r->tried[r->tries++] = node;
		heap_move(node);
		if (taken) {
			outstanding[(size_t)r->balancer * node_count + node]++;
			return;
		}
	}
	count.refused++;
	count.turned_away += is_measured();
	free(r);
}

static void arrive(void)
{
	struct request *r = calloc(1, sizeof *r);
	double share = random_share(&coming);

	if (!r)
		abort();
	while (r->photograph + 1 < PHOTOGRAPHS && share >= mix[r->photograph])
		share -= mix[r->photograph++];
	snprintf(r->client, sizeof r->client, "client %u",
	         random_below(&coming, (unsigned)numbers[CLIENTS].value));
	r->arrived = time_ns;
	r->balancer = random_below(&coming, balancer_count);
	count.arrived++;
	count.offered += is_measured();
	pass_on(r);
}

static void step(unsigned node)
{
	struct request *r = node_step(nodes[node]);

	heap_move(node);
	if (!r)
		return;
	outstanding[(size_t)r->balancer * node_count + node]--;
	if (!r->answered) {
		pass_on(r);
		return;
	}
	note_answer(r);
	free(r);
}

/* In per cent, at least 1, as agents say it. */
static void refresh(unsigned node)
{
	struct node *n = nodes[node];

	weigh(node, (unsigned)fmax(1, round(WEIGHT_MAX * (choices[WEIGHTS].value == WEIGHTS_WAIT
	                                                      ? node_free_wait(n)
	                                                      : node_free_jobs(n)))));
}

/* Requests a second that all nodes can do. */
static double capacity(void)
{
	return node_kind_capacity(kind, mix) * (node_count - 1 + 1 / numbers[SLOW].value);
}

/* When the next request comes. */
static double next_arrival(double from)
{
	double mean = 1e9 / (numbers[LOAD].value * capacity()), calm;

	if (numbers[BURSTS].value == 0)
		return from + random_wait(mean);
	calm = (1 - burst_rate * burst_share) / (1 - burst_share);
	for (;;) {
		double next = from + random_wait(mean / (bursting ? burst_rate : calm));

		if (next < flip_ns)
			return next;
		from = flip_ns;
		bursting = !bursting;
		flip_ns += random_wait(bursting ? burst_ns : burst_ns / burst_share - burst_ns);
	}
}

static void simulate(void)
{
	double arrival = next_arrival(start_ns),
	       refreshing = choices[WEIGHTS].value ? start_ns : INFINITY;
	unsigned asked = 0;

	for (;;) {
		double event = node_next(nodes[heap[0]]);

		if (arrival > end_ns)
			arrival = refreshing = INFINITY;
		time_ns = fmin(fmin(arrival, refreshing), event);
		if (time_ns == INFINITY)
			return;
		if (event <= time_ns) {
			step(heap[0]);
		} else if (arrival <= time_ns) {
			arrive();
			arrival = next_arrival(arrival);
		} else {
			refresh(asked);
			asked = asked + 1 < node_count ? asked + 1 : 0;
			refreshing += numbers[REFRESH].value * 1e9 / node_count;
		}
	}
}

static void mix_sizes(void)
{
	mix[PHOTOGRAPH_256] = numbers[SMALL].value;
	mix[PHOTOGRAPH_1024] = fmin(numbers[MEDIUM].value, 1 - mix[PHOTOGRAPH_256]);
	mix[PHOTOGRAPH_4096] = fmax(0, 1 - mix[PHOTOGRAPH_256] - mix[PHOTOGRAPH_1024]);
}

static bool prepare(void)
{
	const size_t n = node_count;

	nodes = calloc(n, sizeof *nodes);
	heap = calloc(n, sizeof *heap);
	place = calloc(n, sizeof *place);
	tree = calloc(n + 1, sizeof *tree);
	weight = calloc(n, sizeof *weight);
	outstanding = calloc(n * balancer_count, sizeof *outstanding);
	if (!nodes || !heap || !place || !tree || !weight || !outstanding ||
	    !nodes_init((uint64_t)numbers[MAX_WAIT].value))
		return false;
	for (unsigned i = 0; i < node_count; i++) {
		nodes[i] = node_new(kind, i ? 1 : numbers[SLOW].value);
		if (!nodes[i])
			return false;
		heap_put(i, i);
		weigh(i, WEIGHT_MAX);
	}
	coming = (uint64_t)numbers[SEED].value;
	drawing = ~coming;
	end_ns = start_ns + numbers[SECONDS].value * 1e9;
	flip_ns = start_ns + random_wait(burst_ns / burst_share - burst_ns);
	return true;
}

/* Tells whether every request was answered once or refused, and the nodes agree. */
static bool is_conserved(void)
{
	uint64_t total = 0, answered;
	bool empty = true;

	for (unsigned i = 0; i < node_count; i++) {
		empty = node_is_empty(nodes[i], &answered) && empty;
		total += answered;
	}
	for (size_t i = 0; i < (size_t)node_count * balancer_count; i++)
		empty = empty && !outstanding[i];
	return empty && total == count.answered && count.arrived == count.answered + count.refused;
}

/* Returns milliseconds that this share of the answers took at most. */
static double percentile(double share)
{
	uint64_t wanted = (uint64_t)ceil(share * (double)count.done), seen = 0;
	int bucket = 0;

	while (bucket < BUCKETS - 1 && (seen += count.bucket[bucket]) < wanted)
		bucket++;
	return bucket_min * exp((bucket + 0.5) * bucket_width) * 1e-6;
}

static void print(bool conserved)
{
	const double measured = numbers[SECONDS].value * (1 - numbers[WARMUP].value);
	const double done = (double)(count.done ? count.done : 1);

	for (enum choice i = 0; i < CHOICES; i++)
		printf("%s\"%s\": \"%s\"", i ? ", " : "{", choices[i].name,
		       choices[i].names[choices[i].value]);
	for (enum number i = 0; i < NUMBERS; i++)
		printf(", \"%s\": %.10g", numbers[i].name, numbers[i].value);
	printf(", \"capacity\": %.6g, \"offered\": %.6g, \"answered\": %.6g, \"goodput\": %.6g, "
	       "\"refused\": %.6g",
	       capacity(), (double)count.offered / measured, (double)count.done / measured,
	       (double)count.in_time / measured, (double)count.turned_away / measured);
	printf(", \"mean_ms\": %.4g, \"p50_ms\": %.4g, \"p99_ms\": %.4g, \"p999_ms\": %.4g, "
	       "\"max_ms\": %.4g",
	       count.sum / done * 1e-6, percentile(0.5), percentile(0.99), percentile(0.999),
	       count.max * 1e-6);
	printf(", \"requests\": %llu, \"requests_answered\": %llu, \"requests_refused\": %llu, "
	       "\"retries\": %llu, \"conserved\": %s}\n",
	       (unsigned long long)count.arrived, (unsigned long long)count.answered,
	       (unsigned long long)count.refused, (unsigned long long)count.retries,
	       conserved ? "true" : "false");
}

static int usage(FILE *to)
{
	fprintf(to, "usage: bench_simulate [--OPTION VALUE...]\n");
	for (enum choice i = 0; i < CHOICES; i++) {
		fprintf(to, "  --%-10s one of", choices[i].name);
		for (unsigned k = 0; k < choices[i].count; k++)
			fprintf(to, " %s", choices[i].names[k]);
		fprintf(to, "\n");
	}
	for (enum number i = 0; i < NUMBERS; i++)
		fprintf(to, "  --%-10s %s (%g to %.10g)\n", numbers[i].name, numbers[i].text,
		        numbers[i].min, numbers[i].max);
	return to == stderr ? 2 : 0;
}

static bool set_number(const char *name, const char *text)
{
	for (enum number i = 0; i < NUMBERS; i++) {
		char *rest;
		double value = strtod(text, &rest);

		if (strcmp(numbers[i].name, name) != 0)
			continue;
		numbers[i].value = value;
		return rest != text && !*rest && value >= numbers[i].min &&
		       value <= numbers[i].max && (!numbers[i].whole || value == floor(value));
	}
	return false;
}

static bool set_choice(enum choice choice, const char *value)
{
	for (unsigned i = 0; i < choices[choice].count; i++)
		if (!strcmp(choices[choice].names[i], value)) {
			choices[choice].value = i;
			return true;
		}
	return false;
}

/* False for a name that is not known, or a value that it cannot have. */
static bool set_option(const char *name, const char *value)
{
	for (enum choice i = 0; i < CHOICES; i++)
		if (!strcmp(choices[i].name, name))
			return set_choice(i, value);
	return set_number(name, value);
}

int main(int argc, char **argv)
{
	bool conserved;

	if (argc == 2 && !strcmp(argv[1], "--help"))
		return usage(stdout);
	for (int i = 1; i < argc; i += 2)
		if (strncmp(argv[i], "--", 2) != 0 || i + 1 == argc ||
		    !set_option(argv[i] + 2, argv[i + 1])) {
			fprintf(stderr, "bench_simulate: %s %s: expected one of these\n", argv[i],
			        i + 1 < argc ? argv[i + 1] : "");
			return usage(stderr);
		}
	node_count = (unsigned)numbers[NODES].value;
	balancer_count = (unsigned)numbers[BALANCERS].value;
	kind = node_kind(choices[KIND].value);
	mix_sizes();
	if (!prepare()) {
		fprintf(stderr, "bench_simulate: cannot prepare so many nodes\n");
		return 1;
	}
	simulate();
	conserved = is_conserved();
	print(conserved);
	return !conserved;
}
