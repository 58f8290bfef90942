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

/* text: a chain of calls whose numbers are so many at most. */
static void try_chain(const char *text, const struct image *image, uint8_t luma,
                      const double *numbers)
{
	static struct chain chain;
	struct problem problem;

	chain_init(&chain);
	must(!chain_parse(&chain, text, &problem));
	chain_set_channels(&chain, luma ? CHANNELS_LUMA : CHANNELS_ALL);
	for (uint32_t i; (i = chain_gathering(&chain)) < chain.count;) {
		const struct gathering gathering = filter_gathering(&chain.call[i]);
		struct chain *before = chain_before(&chain, i), *next;
		struct operation op;
		uint32_t width, height;

		must(before && chain_valid(before) && chain_gathering(before) == before->count);
		free(before);
		gather_size(&gathering, image, &width, &height);
		must((size_t)width * height <= GATHER_NUMBERS_MAX);
		if (!gather_valid((enum gather)gathering.kind, numbers, (size_t)width * height))
			return;
		next = chain_gathered(&chain, i, numbers, image, 1);
		must(next && chain_valid(next) && chain_gathering(next) > i);
		memcpy(&chain, next, chain_size(next));
		free(next);
		must(!filter_lower(&chain.call[i], chain.coefficient, &op));
		operation_fini(&op);
	}
}

static void try_counts(const uint32_t counts[256])
{
	uint64_t bits[8];
	uint32_t clipped[256];
	uint16_t table[256];
	double numbers[256];

	*numbers = counts_threshold(counts, 256);
	must(gather_valid(GATHER_THRESHOLD, numbers, 1));
	counts_table(counts, 256, numbers, 256);
	must(gather_valid(GATHER_TABLE, numbers, 256));
	counts_table(counts, 256, numbers, 16);
	must(gather_valid(GATHER_TABLE, numbers, 16));
	for (int i = 0; i < 256; i++)
		clipped[i] = counts[i] >> 8; /* a sum is a number of pixels */
	counts_clahe(clipped, 256, (double)(counts[0] % 512) / 16, bits);
	memcpy(numbers, bits, sizeof bits);
	clahe_table(numbers, 256, table);
	for (int i = 1; i < 256; i++)
		must(table[i] >= table[i - 1] && table[i] <= 255);
	memcpy(numbers, counts, sizeof bits);
	clahe_table(numbers, 256, table);
	must(table[0] <= 255 && table[255] <= 255);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static double numbers[GATHER_NUMBERS_MAX];
	static uint32_t counts[256];
	const uint8_t *at = data;
	size_t left = size;
	uint8_t kind[4];
	struct image image = {9, 9, 1, PIXEL_U8, 0, {0}};

	take(&at, &left, kind, sizeof kind);
	image.bands = 1 + kind[0] % BANDS_MAX;
	image.alpha = image.bands % 2 == 0 && kind[1] % 2;
	image.type = kind[2] % PIXEL_TYPES;
	take(&at, &left, numbers, sizeof numbers);
	try_chain("equalize,box,threshold=method=otsu", &image, kind[3] % 2, numbers);
	image.type = PIXEL_U8; /* others have longer tables */
	try_chain("equalize=method=clahe:tiles=4,box", &image, kind[3] % 2, numbers);
	at = data;
	left = size;
	take(&at, &left, counts, sizeof counts);
	try_counts(counts);
	return 0;
}
