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

#include "base/value.h"
#include "bench.h"
#include "node.h"

enum { WEIGHT_MAX = 100 };

enum balancing { RANDOM, TWO_CHOICES, LEASTCONN };

/* A node's weight: 1, or the free part of max-wait there, as its agent tells. */
enum weights { WEIGHTS_NONE, WEIGHTS_WAIT };

/* In a burst, for a tenth of the time, three times as many requests come as on average. */
static const double burst_rate = 3, burst_share = 0.1, burst_ns = 2e8;

/* The time after which an answer is of no use, and a node's weight is new. */
static const double within_ns = 1e9, refresh_ns = 2e9;

enum option {
#define OPTION(symbol, ...) symbol,
#include "simulate.def"
#undef OPTION
	OPTIONS
};
static struct {
	const char *name;
	double value;
	struct value_kind kind;
	const char *text;
} options[OPTIONS] = {
#define OPTION(symbol, name, value, type, min, max, words, text)                                   \
	{name, value, {type, min, max, words}, text},
#include "simulate.def"
#undef OPTION
};

static unsigned chosen(enum option option)
{
	return (unsigned)options[option].value;
}

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
static double *next_event;    /* at each */
static unsigned *outstanding; /* requests of a balancer at a node: [balancer * nodes + node] */
static unsigned *weight;      /* 1 to WEIGHT_MAX */
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

/* Returns the node with the next event. To look at all takes less than to put a node's state in
 * place. */
static unsigned soonest(void)
{
	unsigned node = 0;

	for (unsigned i = 1; i < node_count; i++)
		if (next_event[i] < next_event[node])
			node = i;
	return node;
}

static bool was_tried(const struct request *r, unsigned node)
{
	for (unsigned i = 0; i < r->tries; i++)
		if (r->tried[i] == node)
			return true;
	return false;
}

/* Returns one that has not refused the request, each as likely as its weight: there are more nodes
 * than that. */
static unsigned draw(const struct request *r)
{
	unsigned node;

	do
		node = random_below(&drawing, node_count);
	while (was_tried(r, node) ||
	       (chosen(WEIGHTS) && random_below(&drawing, WEIGHT_MAX) >= weight[node]));
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

	if (chosen(BALANCING) == TWO_CHOICES)
		return better(r, node, draw(r));
	return chosen(BALANCING) == LEASTCONN ? best_of_all(r) : node;
}

/* Events count from now on. */
static bool is_measured(void)
{
	return time_ns >= start_ns + options[WARMUP].value * options[SECONDS].value * 1e9 &&
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
	count.in_time += ns <= within_ns;
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
		next_event[node] = node_next(nodes[node]);
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
	struct request *r = must_have(calloc(1, sizeof *r));
	double share = random_share(&coming);

	while (r->photograph + 1 < PHOTOGRAPHS && share >= mix[r->photograph])
		share -= mix[r->photograph++];
	snprintf(r->client, sizeof r->client, "client %u", random_below(&coming, chosen(CLIENTS)));
	r->arrived = time_ns;
	r->balancer = random_below(&coming, balancer_count);
	count.arrived++;
	count.offered += is_measured();
	pass_on(r);
}

static void step(unsigned node)
{
	struct request *r = node_step(nodes[node]);

	next_event[node] = node_next(nodes[node]);
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

/* Requests a second that all nodes can do. */
static double capacity(void)
{
	return node_kind_capacity(kind, mix) * (node_count - 1 + 1 / options[SLOW].value);
}

/* When the next request comes. */
static double next_arrival(double from)
{
	double mean = 1e9 / (options[LOAD].value * capacity()), calm;

	if (options[BURSTS].value == 0)
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
	double arrival = next_arrival(start_ns), refreshing = chosen(WEIGHTS) ? start_ns : INFINITY;
	unsigned asked = 0;

	for (;;) {
		unsigned node = soonest();
		double event = next_event[node];

		if (arrival > end_ns)
			arrival = refreshing = INFINITY;
		time_ns = fmin(fmin(arrival, refreshing), event);
		if (time_ns == INFINITY)
			return;
		if (event <= time_ns) {
			step(node);
		} else if (arrival <= time_ns) {
			arrive();
			arrival = next_arrival(arrival);
		} else {
			/* In per cent, at least 1, as agents say it. */
			weight[asked] =
			    (unsigned)fmax(1, round(WEIGHT_MAX * node_free_wait(nodes[asked])));
			asked = asked + 1 < node_count ? asked + 1 : 0;
			refreshing += refresh_ns / node_count;
		}
	}
}

static void prepare(void)
{
	const size_t n = node_count;

	mix[PHOTOGRAPH_256] = options[SMALL].value;
	mix[PHOTOGRAPH_1024] = fmin(options[MEDIUM].value, 1 - mix[PHOTOGRAPH_256]);
	mix[PHOTOGRAPH_4096] = fmax(0, 1 - mix[PHOTOGRAPH_256] - mix[PHOTOGRAPH_1024]);
	nodes = must_have(calloc(n, sizeof *nodes));
	next_event = must_have(calloc(n, sizeof *next_event));
	weight = must_have(calloc(n, sizeof *weight));
	outstanding = must_have(calloc(n * balancer_count, sizeof *outstanding));
	nodes_init((uint64_t)options[MAX_WAIT].value);
	for (unsigned i = 0; i < node_count; i++) {
		nodes[i] = node_new(kind, i ? 1 : options[SLOW].value);
		next_event[i] = node_next(nodes[i]);
		weight[i] = WEIGHT_MAX;
	}
	coming = (uint64_t)options[SEED].value;
	drawing = ~coming;
	end_ns = start_ns + options[SECONDS].value * 1e9;
	flip_ns = start_ns + random_wait(burst_ns / burst_share - burst_ns);
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
	const double measured = options[SECONDS].value * (1 - options[WARMUP].value);
	const double done = (double)(count.done ? count.done : 1);

	for (enum option i = 0; i < OPTIONS; i++) {
		const char *quote = options[i].kind.type == VALUE_WORD ? "\"" : "";
		char value[32];

		value_print(&options[i].kind, options[i].value, value, sizeof value);
		printf("%s\"%s\": %s%s%s", i ? ", " : "{", options[i].name, quote, value, quote);
	}
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
	for (enum option i = 0; i < OPTIONS; i++) {
		char valid[128];

		value_describe(&options[i].kind, valid, sizeof valid);
		fprintf(to, "  --%-10s %s (%s)\n", options[i].name, options[i].text, valid);
	}
	return to == stderr ? 2 : 0;
}

/* False for a name that is not known, or a value that it cannot have. */
static bool set_option(const char *name, const char *text)
{
	for (enum option i = 0; i < OPTIONS; i++)
		if (!strcmp(options[i].name, name))
			return value_read(&options[i].kind, text, &options[i].value);
	return false;
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
	node_count = chosen(NODES);
	balancer_count = chosen(BALANCERS);
	kind = node_kind(chosen(KIND));
	prepare();
	simulate();
	conserved = is_conserved();
	print(conserved);
	return !conserved;
}
