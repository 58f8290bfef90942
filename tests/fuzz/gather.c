/* A codec worker's counts: numbers that are believed make a chain that is valid and can be worked
 * out, whatever they are; and counts make numbers that are believed. */
#include "filters/chain_gather.h"
#include "fuzz.h"

/* The next bytes of the input, and zeros after its end. */
static void take(const uint8_t **data, size_t *size, void *to, size_t bytes)
{
	const size_t some = bytes < *size ? bytes : *size;

	memset(to, 0, bytes);
	memcpy(to, *data, some);
	*data += some;
	*size -= some;
}

static void try_chain(const struct image *image, uint8_t luma, const double *numbers)
{
	static struct chain chain;
	struct problem problem;

	chain_init(&chain);
	must(!chain_parse(&chain, "equalize,box,threshold=method=otsu", &problem));
	chain_set_channels(&chain, luma ? CHANNELS_LUMA : CHANNELS_ALL);
	for (uint32_t i; (i = chain_gathering(&chain)) < chain.count;) {
		const uint32_t width =
		    gather_entries(filter_gathers(&chain.call[i]), (enum pixel_type)image->type);
		const uint32_t height = gather_rows(image, luma);
		struct chain *before = chain_before(&chain, i), *next;
		struct operation op;

		must(before && chain_valid(before) && chain_gathering(before) == before->count);
		free(before);
		if (!gather_valid(numbers, (size_t)width * height))
			return;
		next = chain_gathered(&chain, i, numbers, width, height, 1);
		must(next && chain_valid(next) && chain_gathering(next) > i);
		memcpy(&chain, next, chain_size(next));
		free(next);
		must(!filter_lower(&chain.call[i], chain.coefficient, &op));
		operation_fini(&op);
	}
}

static void try_counts(const uint64_t counts[256])
{
	double numbers[256];

	*numbers = counts_threshold(counts, 256);
	must(gather_valid(numbers, 1));
	counts_table(counts, 256, numbers, 256);
	must(gather_valid(numbers, 256));
	counts_table(counts, 256, numbers, 16);
	must(gather_valid(numbers, 16));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static double numbers[GATHER_NUMBERS_MAX];
	static uint64_t counts[256];
	const uint8_t *at = data;
	size_t left = size;
	uint8_t kind[4];
	struct image image = {9, 9, 1, PIXEL_U8, 0, {0}};

	take(&at, &left, kind, sizeof kind);
	image.bands = 1 + kind[0] % BANDS_MAX;
	image.alpha = image.bands % 2 == 0 && kind[1] % 2;
	image.type = kind[2] % PIXEL_TYPES;
	take(&at, &left, numbers, sizeof numbers);
	try_chain(&image, kind[3] % 2, numbers);
	at = data;
	left = size;
	take(&at, &left, counts, sizeof counts);
	try_counts(counts);
	return 0;
}
