/* Chance: numbers that follow from the seed, and the faults that it has. */
#include "sim.h"

static uint64_t state;

uint64_t sim_faults[FAULTS];
bool sim_calm;

void sim_seed(uint64_t seed)
{
	state = seed;
}

/* SplitMix64, by S. Vigna. */
uint64_t sim_random(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t sim_below(uint64_t n)
{
	return sim_random() % n;
}

uint64_t sim_between(uint64_t least, uint64_t most)
{
	return least + sim_below(most - least + 1);
}

bool sim_once_in(uint64_t n)
{
	return !sim_below(n);
}

uint64_t sim_while(uint64_t most)
{
	const uint64_t part = sim_once_in(8) ? most : most / 16;

	return part ? sim_below(part + 1) : 0;
}

bool sim_fault(enum fault fault)
{
	return sim_faults[fault] && !sim_calm && sim_once_in(sim_faults[fault]);
}

static const uint64_t usual[FAULTS] = {
#define FAULT(symbol, one_in, text) [FAULT_##symbol] = one_in,
#include "faults.def"
#undef FAULT
};

static const char *const texts[FAULTS] = {
#define FAULT(symbol, one_in, text) [FAULT_##symbol] = text,
#include "faults.def"
#undef FAULT
};

void sim_choose_faults(void)
{
	const uint64_t share = sim_between(1, 10);

	for (enum fault f = 0; f < FAULTS; f++) {
		/* These take long. */
		const bool rare =
		    f == FAULT_HERD || f == FAULT_BIG_ANSWERS || f == FAULT_CRASH_FRONT;

		sim_faults[f] = 0;
		if (!sim_once_in(share + 1) || (rare && !sim_once_in(3)))
			continue;
		sim_faults[f] = usual[f] * (uint64_t[]){1, 3, 10}[sim_below(3)];
		sim_trace("fault: %s, once in %lu", texts[f], sim_faults[f]);
	}
	if (sim_faults[FAULT_HERD]) /* a worker that does not read what they get */
		sim_faults[FAULT_PAUSED] = 4;
	if (sim_faults[FAULT_CRASH_FRONT]) /* less might be kept then */
		sim_faults[FAULT_RELOAD] = 0;
}
