/* The fair queue: who is served, in which order and how much. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/jobs/fair.h"
#include "unit.h"

enum { FIRST, SECOND, CLASSES, ALL = (1 << CLASSES) - 1, ITEMS = 4000 };

static const double weights[CLASSES] = {9, 1};

struct entry {
	struct fair_item item;
	unsigned flow;
};

static struct fair fair;
static struct fair_flow flows[8];
static struct entry entries[ITEMS];

static void open_flow(unsigned i, unsigned class, const char *client)
{
	assert_int_equal(fair_open(&fair, &flows[i], class, client, 1), ERR_OK);
}

/* Begins with a flow for each letter, which is its client; capitals are of the second class. */
static void begin(const char *letters)
{
	fair_init(&fair, weights, CLASSES);
	for (unsigned i = 0; letters[i]; i++)
		open_flow(i, isupper(letters[i]) ? SECOND : FIRST,
		          (char[]){(char)tolower(letters[i]), '\0'});
}

static void push(struct entry *e, unsigned flow, double cost)
{
	*e = (struct entry){.item.cost = cost, .flow = flow};
	fair_push(&fair, &flows[flow], &e->item);
}

/* Serves items until their costs reach a sum; adds each flow's part to `served`. */
static void serve(double sum, double served[8])
{
	while (sum > 0) {
		struct entry *e = (struct entry *)fair_pop(&fair, ALL);

		assert_non_null(e);
		served[e->flow] += e->item.cost;
		sum -= e->item.cost;
	}
}

static void close_all(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		fair_take_all(&fair, &flows[i]);
		fair_close(&fair, &flows[i]);
	}
	assert_int_equal(fair.count, 0);
	assert_null(fair_next(&fair, ALL));
	for (unsigned i = 0; i < CLASSES; i++)
		assert_true(RB_EMPTY(&fair.clients[i]));
}

/* Clients share by their weights, whatever their items cost and however many jobs they have; a
 * class gets its part and no more while the other has work. */
TEST(test_parts)
{
	static const struct {
		struct {
			unsigned class;
			const char *client;
			double weight, cost; /* the cost of each item */
			double served;
		} flow[3];
		double sum, within;
	} rows[] = {
	    {{{FIRST, "a", 1, 1, 750}, {FIRST, "b", 1, 5, 375}, {FIRST, "b", 1, 2, 375}}, 1500, 10},
	    {{{FIRST, "a", 3, 1, 300}, {FIRST, "b", 1, 1, 50}, {FIRST, "b", 1, 1, 50}}, 400, 2},
	    {{{FIRST, "a", 1, 1, 900}, {SECOND, "a", 1, 1, 50}, {SECOND, "b", 1, 1, 50}}, 1000, 5},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		double served[8] = {0};

		fair_init(&fair, weights, CLASSES);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(fair_open(&fair, &flows[k], rows[i].flow[k].class,
			                           rows[i].flow[k].client, rows[i].flow[k].weight),
			                 ERR_OK);
		for (unsigned k = 0; k < 3 * 1000; k++)
			push(&entries[k], k % 3, rows[i].flow[k % 3].cost);
		serve(rows[i].sum, served);
		for (unsigned k = 0; k < 3; k++)
			if (fabs(served[k] - rows[i].flow[k].served) > rows[i].within)
				fail_msg("row %zu, flow %u: %g", i, k, served[k]);
		close_all(3);
	}
}

/* A change of a client's weight counts from its next job on. */
TEST(test_changed_weight)
{
	double served[8] = {0};

	begin("ab");
	for (unsigned i = 0; i < 1000; i++)
		push(&entries[i], i % 2, 1);
	serve(100, served);
	assert_int_equal(fair_open(&fair, &flows[2], FIRST, "b", 3), ERR_OK);
	serve(400, served);
	assert_in_range((unsigned)served[0], 148, 152);
	close_all(3);
}

/* A client that has had nothing waiting is next, but has saved up nothing; a client's own small job
 * does not wait for its large one either. */
TEST(test_newcomer)
{
	double served[8] = {0};

	begin("aab");
	for (int i = 0; i < 1000; i++)
		push(&entries[i], 0, 1);
	serve(500, served);
	push(&entries[1000], 1, 1);
	/* One of the large job may have the same tag. */
	serve(1, served);
	if (served[1] == 0)
		serve(1, served);
	assert_int_equal((int)served[1], 1);
	for (int i = 1001; i < 1101; i++)
		push(&entries[i], 2, 1);
	memset(served, 0, sizeof served);
	serve(100, served);
	assert_in_range((uintmax_t)served[2], 49, 51);
	close_all(3);
}

/* Newcomers without end, as many as can be served, do not pass one who has been served once: with
 * four of them waiting, its second item comes when about as many have been served. */
TEST(test_newcomers)
{
	enum { WAITING = 4 };
	char name[16];
	struct entry *served;

	begin("a");
	push(&entries[0], 0, 1);
	push(&entries[1], 0, 1);
	assert_ptr_equal(fair_pop(&fair, ALL), &entries[0].item);
	for (unsigned i = 0;; i++) {
		unsigned flow = 1 + i % (WAITING + 1);

		assert_in_range(i, 0, 3 * WAITING);
		snprintf(name, sizeof name, "new-%u", i);
		open_flow(flow, FIRST, name);
		push(&entries[2 + i], flow, 1);
		if (i + 1 < WAITING)
			continue;
		served = (struct entry *)fair_pop(&fair, ALL);
		if (served == &entries[1])
			break;
		fair_close(&fair, &flows[served->flow]);
	}
	close_all(WAITING + 2);
}

/* Within a flow order is kept, also for what comes back. */
TEST(test_order)
{
	begin("a");
	for (int i = 0; i < 3; i++)
		push(&entries[i], 0, 1);
	assert_ptr_equal(fair_pop(&fair, ALL), &entries[0].item);
	fair_return(&fair, &flows[0], &entries[0].item);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(fair_pop(&fair, ALL), &entries[i].item);
	assert_null(fair_pop(&fair, ALL));
	close_all(1);
}

/* Turns of several items: order within a flow, and the same shares in the end. */
TEST(test_turns)
{
	double served[8] = {0};

	begin("ab");
	for (int i = 0; i < 2000; i++)
		push(&entries[i], (unsigned)i / 1000, i < 1000 ? 1 : 2);
	for (int turn = 0; turn < 150; turn++) {
		struct fair_flow *flow = fair_next(&fair, ALL);

		for (int i = 0; i < 5; i++) {
			struct entry *e = (struct entry *)flow->head;

			assert_ptr_equal(fair_take(&fair, flow), &e->item);
			assert_ptr_equal(flow, &flows[e->flow]);
			served[e->flow] += e->item.cost;
		}
	}
	assert_in_range((uintmax_t)served[0], 490, 510);
	assert_in_range((uintmax_t)served[1], 490, 510);
	close_all(2);
}

TEST(test_mask)
{
	begin("aA");
	push(&entries[0], 0, 1);
	assert_null(fair_next(&fair, 1 << SECOND));
	push(&entries[1], 1, 1);
	assert_ptr_equal(fair_next(&fair, 1 << SECOND), &flows[1]);
	assert_ptr_equal(fair_pop(&fair, 1 << SECOND), &entries[1].item);
	assert_ptr_equal(fair_pop(&fair, 1 << FIRST), &entries[0].item);
	close_all(2);
}

/* A parked flow is passed over, keeps its place among others when it is let in again, and neither
 * saves up turns meanwhile nor is lost when it is emptied. */
TEST(test_parked)
{
	double served[8] = {0};

	begin("abC");
	for (int i = 0; i < 600; i++)
		push(&entries[i], (unsigned)i % 2, 1);
	push(&entries[600], 2, 1);
	fair_park(&fair, &flows[0]);
	fair_park(&fair, &flows[2]);
	assert_int_equal(fair.count, 601);
	serve(200, served);
	assert_true(served[1] == 200);
	fair_unpark(&fair);
	serve(101, served);
	assert_in_range((long)served[0], 49, 51);
	assert_true(served[2] == 1);
	assert_in_range((long)served[1], 249, 251);

	fair_park(&fair, &flows[0]);
	push(&entries[601], 0, 1);
	serve(2, served);
	assert_in_range((long)served[0], 50, 52);
	fair_park(&fair, &flows[1]);
	fair_park(&fair, &flows[0]);
	assert_null(fair_next(&fair, ALL));
	close_all(3);
	assert_true(LIST_EMPTY(&fair.parked));
}

/* Whatever happens, all that is pushed comes out once, and each flow's in order. */
TEST(test_random)
{
	unsigned pushed = 0, out = 0, last[8] = {0};

	srand(1);
	begin("aBcAbCaB");
	while (out < ITEMS) {
		unsigned mask = rand() % 4 ? ALL : 1u << rand() % CLASSES;
		struct fair_flow *flow;
		struct entry *e;

		if (pushed < ITEMS && rand() % 5 < 3) {
			push(&entries[pushed], (unsigned)rand() % 8, 1 + rand() % 100);
			pushed++;
			continue;
		}
		flow = fair_next(&fair, mask);
		if (!flow) {
			assert_null(fair_pop(&fair, mask));
			continue;
		}
		e = (struct entry *)flow->head;
		assert_ptr_equal(e, fair_pop(&fair, mask));
		assert_true((unsigned)(e - entries) + 1 > last[e->flow]);
		last[e->flow] = (unsigned)(e - entries) + 1;
		out++;
	}
	close_all(8);
}

/* A client whose job cost more than was known when it was served makes up for it, whether it has a
 * job waiting or not. */
TEST(test_charge)
{
	double served[8] = {0};

	begin("ab");
	for (int i = 0; i < 100; i++) {
		push(&entries[2 * i], 0, 1);
		push(&entries[2 * i + 1], 1, 1);
	}
	serve(20, served);
	fair_charge(&fair, &flows[0], 50);
	serve(50, served);
	assert_in_range((unsigned)served[1], 58, 62);
	serve(20, served);
	assert_in_range((unsigned)served[0], 18, 22);
	close_all(2);
	begin("ab");
	fair_charge(&fair, &flows[0], 10);
	push(&entries[0], 0, 1);
	push(&entries[1], 1, 1);
	assert_ptr_equal(fair_pop(&fair, ALL), &entries[1].item);
	close_all(2);
}
