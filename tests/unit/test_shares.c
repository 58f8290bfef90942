/* Shares: who may take how much of what there is only so much of. */
#include <stdio.h>
#include <string.h>

#include "front/config/config.h"
#include "front/jobs/shares.h"
#include "unit.h"

enum { ALL = 100, HOLDERS = 400 };

static struct config settings = {.client_share = 0.75};
static struct share shares[HOLDERS];

/* The outcome: the share, nothing because nobody gets any, or because the client has enough. */
enum outcome { TAKEN, ALL_GONE, CLIENT_FULL };

static enum outcome outcome(enum error e, const struct problem *problem)
{
	if (!e)
		return TAKEN;
	assert_int_equal(e, ERR_QUEUE_FULL);
	return strncmp(problem->detail, "this client", 11) ? ALL_GONE : CLIENT_FULL;
}

static enum outcome take(unsigned i, const char *client, uint64_t amount)
{
	struct problem problem;
	enum error e = share_take(&shares[i], SHARE_BODIES, client, amount, ALL, &problem);

	return outcome(e, &problem);
}

/* Takes one after another; returns how many. */
static unsigned take_all(unsigned first, const char *client)
{
	unsigned i = first;

	while (take(i, client, 1) == TAKEN)
		i++;
	return i - first;
}

static void give_back(void)
{
	for (unsigned i = 0; i < HOLDERS; i++)
		share_give_all(&shares[i]);
	assert_int_equal(share_total(SHARE_BODIES), 0);
	assert_int_equal(share_greatest(SHARE_BODIES), 0);
}

TEST(test_alone)
{
	struct problem problem;

	assert_int_equal(take_all(0, "a"), 75);
	assert_int_equal(take(99, "a", 1), CLIENT_FULL);
	assert_int_equal(outcome(share_ask(SHARE_BODIES, "a", 1, ALL, &problem), &problem),
	                 CLIENT_FULL);
	assert_int_equal(share_of(SHARE_BODIES, "a"), 75);
	assert_int_equal(share_of(SHARE_CONNECTIONS, "a"), 0);
	share_give_all(&shares[0]);
	share_give_all(&shares[0]); /* nothing is left to give */
	assert_int_equal(share_of(SHARE_BODIES, "a"), 74);
	assert_int_equal(take(0, "a", 1), TAKEN);
	give_back();
}

/* However many clients take what they can get, the next one gets some. */
TEST(test_next_client)
{
	unsigned taken = 0, clients = 0, first = 0;
	char name[16];

	while (taken < ALL) {
		unsigned got;

		snprintf(name, sizeof name, "%u", clients++);
		got = take_all(taken, name);
		assert_in_range(got, 1, 75);
		first = first ? first : got;
		taken += got;
	}
	assert_in_range(clients, 4, ALL);
	assert_int_equal(take(taken, "late", 1), ALL_GONE);
	assert_int_equal(share_greatest(SHARE_BODIES), first);
	give_back();
}

/* A client that holds nothing may take whatever is free, at once. */
TEST(test_amounts)
{
	assert_int_equal(take(0, "a", ALL + 1), ALL_GONE);
	assert_int_equal(take(0, "a", UINT64_MAX), ALL_GONE);
	assert_int_equal(take(0, "a", 40), TAKEN);
	assert_int_equal(take(0, "a", 36), CLIENT_FULL);
	assert_int_equal(take(0, "a", 35), TAKEN);
	assert_int_equal(take(1, "b", 25), TAKEN);
	share_give(&shares[0], 70);
	assert_int_equal(shares[0].amount, 5);
	share_give(&shares[0], 6); /* no more than there is */
	assert_null(shares[0].client);
	assert_int_equal(share_total(SHARE_BODIES), 25);
	/* Shares that exist already count, also beyond the limit. */
	assert_int_equal(share_force(&shares[1], SHARE_BODIES, "b", ALL), ERR_OK);
	assert_int_equal(share_total(SHARE_BODIES), 125);
	assert_int_equal(take(0, "a", 1), ALL_GONE);
	give_back();
}

TEST(test_whole_share)
{
	settings.client_share = 1;
	assert_int_equal(take_all(0, "a"), ALL);
	give_back();
	settings.client_share = 0;
	assert_int_equal(take_all(0, "a"), 1);
	settings.client_share = 0.75;
	give_back();
}

/* A name is cut as that of a flow is. */
TEST(test_long_names)
{
	char name[2 * FAIR_CLIENT_SIZE];

	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	assert_int_equal(take_all(0, name), 75);
	assert_int_equal(share_of(SHARE_BODIES, name), 75);
	name[FAIR_CLIENT_SIZE - 1] = '\0';
	assert_int_equal(share_of(SHARE_BODIES, name), 75);
	give_back();
}

static void note_cut(void *context)
{
	++*(int *)context;
}

static bool begin_unread(struct unread *u, const char *client, uint64_t size, int *cut)
{
	struct problem problem;

	return !unread_begin(u, "id", client, size, note_cut, cut, &problem);
}

/* Above the bound the slowest reader goes if it is slow; otherwise what begins is refused. */
TEST(test_unread)
{
	enum { SIZE = 100 << 20 };
	const uint64_t minute = UINT64_C(60000000000);
	struct unread u[5];
	int cut[5] = {0};

	settings.unread_size = 3 * SIZE;
	settings.unread_client_size = 4 * SIZE;
	for (int i = 0; i < 3; i++)
		assert_true(begin_unread(&u[i], "client", SIZE, &cut[i]));
	assert_false(begin_unread(&u[3], "other", SIZE, &cut[3]));
	assert_int_equal(share_total(SHARE_ANSWERS), 3 * SIZE);
	for (int i = 0; i < 3; i++)
		u[i].since -= minute;
	unread_report(&u[0], SIZE);
	unread_report(&u[1], SIZE / 4);
	unread_report(&u[2], SIZE / 8);
	assert_true(begin_unread(&u[3], "other", SIZE, &cut[3]));
	assert_true(!cut[0] && !cut[1] && cut[2] && !cut[3]);
	unread_end(&u[2]);
	settings.unread_size = 100 * (uint64_t)SIZE;
	settings.unread_client_size = SIZE;
	assert_true(begin_unread(&u[4], "other", 9 * (uint64_t)SIZE, &cut[4]));
	assert_false(begin_unread(&u[2], "other", 1, &cut[2]));
	unread_end(&u[3]);
	assert_true(begin_unread(&u[2], "other", SIZE / 4, &cut[2]));
	assert_true(!cut[0] && !cut[1] && cut[2] == 1 && !cut[3] && !cut[4]);
	for (int i = 0; i < 5; i++)
		unread_end(&u[i]);
	assert_int_equal(share_total(SHARE_ANSWERS), 0);
}

int main(void)
{
	config = &settings;
	return unit_run();
}
