/* Every kernel against the reference: random images of all types, bands and borders, of shapes from
 * 1x1, in tiles of several heights, by both modes of a lane; of all these and of the filters of a
 * set, pairs meet (pairwise.h). The options are those of harness.c.
 *
 * And the promise of variant=general: the same bytes on every device and in every release, those of
 * the first. A digest that is not that of the table: requests get other bytes than from the
 * releases before. The failure has the digest for a new line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sets.h"
#include "variants.h"

static const struct {
	struct group group;
	uint64_t digest;
} filters[] = {
#define DIGEST(chain, digest)             {{"", chain}, UINT64_C(digest)},
#define CHANNELS(channels, chain, digest) {{channels, chain}, UINT64_C(digest)},
#include "general.def"
#undef DIGEST
#undef CHANNELS
};

static const uint32_t sizes[][2] = {{67, 45}, {1, 1},   {1, 37},  {53, 1},
                                    {13, 9},  {700, 5}, {31, 150}};

enum { FILTERS_COUNT = sizeof filters / sizeof *filters, SIZES = sizeof sizes / sizeof *sizes };

/* Digests samples; all NaN are one (FNV-1a, of words). */
static uint64_t digest(uint64_t d, const void *samples, size_t size, enum pixel_type type)
{
	for (size_t i = 0; i < size / pixel_type_rows[type].size; i++) {
		uint32_t word = 0;
		float number;

		memcpy(&word, (const char *)samples + i * pixel_type_rows[type].size,
		       pixel_type_rows[type].size);
		memcpy(&number, &word, sizeof number);
		if (type == PIXEL_F32 && isnan(number))
			word = 0x7fc00000;
		d = (d ^ word) * UINT64_C(0x100000001b3);
	}
	return d;
}

/* The digests of a filter's results in tiles of two heights. */
static void digest_filter(struct harness *h, const struct group *group, uint64_t both[2])
{
	static const uint32_t rows[] = {5000, 7};

	both[0] = both[1] = UINT64_C(0xcbf29ce484222325);
	for (uint32_t i = 0; i < PIXEL_TYPES * KINDS; i++) {
		const uint32_t *wide = sizes[i * 3 % SIZES];
		struct trial t = {
		    .group = group,
		    .image = {.width = wide[0], .height = wide[1], .type = i % PIXEL_TYPES},
		    .border = (enum border)(i % BORDERS)};

		trial_set_kind(&t, (enum kind)(i / PIXEL_TYPES));
		if (*group->name && t.image.bands - t.image.alpha != 3)
			continue;
		while (*group->name && strcmp(group->name, channel_names[t.channels]) != 0)
			t.channels++;
		for (uint32_t k = 0; k < 2; k++) {
			size_t size;
			void *made;

			random_state = i + 1;
			t.mode = k ? LANE_COPY : LANE_ZERO_COPY;
			made = trial_make(h, &t, VARIANT_GENERAL, rows[k], false, &size);
			if (made)
				both[k] = digest(both[k], made, size, t.image.type);
			free(made);
		}
	}
}

/* Filters of single samples; the last two after it see each small difference. */
static const struct group chains[] = {
    {"", "linear=gain=1.37:bias=-0.11,gamma=gamma=1.8,linear=gain=10"},
    {"", "linear=gain=0.5,equalize,laplacian"},
    {"", "levels=black=0.1:white=0.83,lut=table=0 255 7 9,invert,gamma=gamma=0.3"},
    {"", "invert,linear=gain=1.5 -2 0.25:bias=0 1 -0.1,levels=gamma=0.4,linear=gain=30:bias=-9"},
    {"", "gamma,gamma=gamma=3,threshold=value=0.61,linear=gain=0.5"},
    {"",
     "linear=gain=0.1:bias=0.05,lut=points=10 0;64 40;65 200;255 255,colormatrix=matrix=0.4 0.8 "
     "0.2 0;-1 2 0.5 -0.25;9 -9 0.5 0.5,invert,gamma,equalize"},
};

/* A chain's bytes are those of its filters one by one. */
static void check_one_by_one(struct harness *h, const struct group *group, uint32_t variant)
{
	for (uint32_t i = 0; i < 2 * KINDS; i++) {
		struct trial t = {.group = group,
		                  .image = {.width = 640, .height = 120, .type = i % 2},
		                  .border = BORDER_REPLICATE};
		void *made[2] = {NULL, NULL};
		size_t size = 0;

		trial_set_kind(&t, (enum kind)(i / 2));
		for (int alone = 0; alone < 2; alone++) {
			random_state = i + 3;
			made[alone] = trial_make(h, &t, variant, 64, alone, &size);
		}
		if (!made[0] || !made[1] || memcmp(made[0], made[1], size))
			fail("otherwise than one by one (%s, %u bands, variant %u)",
			     pixel_type_rows[t.image.type].name, t.image.bands, variant);
		free(made[0]);
		free(made[1]);
	}
}

/* Compares digests of all filters, and chains with their filters one by one. A test each. */
static void general_run(struct harness *h)
{
	for (size_t i = 0; i < FILTERS_COUNT; i += (size_t)options.every) {
		uint64_t got[2];

		digest_filter(h, &filters[i].group, got);
		if (got[0] != got[1])
			fail("other tiles make other bytes");
		if (got[0] != filters[i].digest)
			fail("other bytes than before: 0x%016llx", (unsigned long long)got[0]);
		test_end("the same bytes: %s", filters[i].group.chain);
	}
	for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
		check_one_by_one(h, &chains[i], VARIANT_GENERAL);
		check_one_by_one(h, &chains[i], VARIANT_ANY);
		test_end("one by one: %s", chains[i].chain);
	}
}

/* Tells whether general kernels have not met the set as variants. */
static bool is_left(const struct set *set)
{
	for (enum kernel k = 0; set->operation < OPERATIONS && k < KERNELS; k++)
		if (variant_is_general(k) && kernel_row(k)->operations >> set->operation & 1)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct harness h;
	int status;

	options_parse(argc, argv);
	sets_init();
	harness_init(&h, 1 << 26);
	variants_run(&h, false);
	for (size_t i = 0; i < sets_count; i++) {
		struct tally tally = {0};

		if (options.only ? strcmp(options.only, sets[i].name) != 0 : !is_left(&sets[i]))
			continue;
		set_try(&h, &sets[i], 0, &tally);
		test_end("%s (%u images)", sets[i].name, tally.trials);
	}
	if (options.most > 1e6 && !options.only)
		general_run(&h);
	status = tests_end();
	harness_fini(&h);
	return status;
}
