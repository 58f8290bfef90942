#include "filters/chain_gather.h"

#include <stdlib.h>
#include <string.h>

uint32_t chain_gathering(const struct chain *chain)
{
	uint32_t i = 0;

	while (i < chain->count &&
	       (!filter_gathers(&chain->call[i]) || chain->call[i].gathered.width))
		i++;
	return i;
}

/* True if the chain's variant is a kernel that finds edges. */
static bool names_canny_kernel(const struct chain *chain)
{
	return kernel_row(chain_kernel(chain))->operations >> OPERATION_CANNY & 1;
}

struct chain *chain_before(const struct chain *chain, uint32_t call)
{
	const struct filter_call *gathering = &chain->call[call];
	const bool canny = filter_gathers(gathering) == GATHER_EDGES;
	const bool luma = canny && gathering->channels == CHANNELS_LUMA;
	const enum channels channels = luma ? CHANNELS_ALL : gathering->channels;
	const double sigma = canny ? filter_canny_sigma(gathering) : 0;
	struct chain *before = chain_copy(chain, 0);
	double *edges;

	if (!before)
		return NULL;
	before->regions = (struct regions){0};
	if (before->variant < VARIANT_REFERENCE && !(canny && names_canny_kernel(chain)))
		before->variant = VARIANT_ANY;
	memset(&before->call[call], 0, (chain->count - call) * sizeof *before->call);
	before->count = call;
	if (!canny && !call)
		chain_append(before, FILTER_LINEAR, CHANNELS_ALL);
	if (!canny)
		return before;
	/* The luma's edges are found in grey: pixels cannot hold all luma beside all chroma. */
	if (luma)
		chain_append(before, FILTER_GRAYSCALE, channels);
	if (sigma > 0)
		chain_append(before, FILTER_GAUSSIAN, channels)->value[GAUSSIAN_SIGMA] = sigma;
	edges = chain_append(before, FILTER_CANNY, channels)->value;
	edges[CANNY_LOW] = gathering->value[CANNY_LOW];
	edges[CANNY_HIGH] = gathering->value[CANNY_HIGH];
	edges[CANNY_SIGMA] = 0;
	return before;
}

struct chain *chain_gathered(const struct chain *chain, uint32_t call, const double *numbers,
                             const struct image *image, uint32_t pages)
{
	const struct gathering gathering = filter_gathering(&chain->call[call]);
	struct numbers of_page = {.first = chain->coefficients_used};
	struct filter_call *knows;
	struct chain *gathered;
	uint32_t count;

	gather_size(&gathering, image, &of_page.width, &of_page.height);
	count = pages * of_page.width * of_page.height;
	gathered = chain_copy(chain, count);
	if (!gathered)
		return NULL;
	knows = &gathered->call[call];
	knows->more_pages = pages - 1;
	knows->gathered = of_page;
	knows->gathered_from[0] = image->width;
	knows->gathered_from[1] = image->height;
	memcpy(gathered->coefficient + of_page.first, numbers, count * sizeof *numbers);
	gathered->coefficients_used += count;
	if (gathering.kind == GATHER_EDGES && names_canny_kernel(chain))
		gathered->variant = VARIANT_ANY; /* it has done its work */
	return gathered;
}

/* Counts the numbers that a call has per page. */
static uint32_t page_numbers(const struct filter_call *call)
{
	return call->gathered.width * call->gathered.height;
}

struct chain *chain_of_page(const struct chain *chain, uint32_t page)
{
	uint32_t numbers = 0, used = chain->coefficients_used; /* per page; before all gathered */
	struct chain *of_page;
	size_t given;

	for (uint32_t i = 0; i < chain->count; i++) {
		const struct filter_call *call = &chain->call[i];

		numbers += page_numbers(call);
		if (call->gathered.width && call->gathered.first < used)
			used = call->gathered.first;
	}
	given = offsetof(struct chain, coefficient) + used * sizeof *chain->coefficient;
	of_page = calloc(1, given + numbers * sizeof *chain->coefficient);
	if (!of_page)
		return NULL;
	memcpy(of_page, chain, given);
	of_page->coefficients_used = used + numbers;
	for (uint32_t i = 0; i < chain->count; i++) {
		struct filter_call *call = &of_page->call[i];
		const uint32_t count = page_numbers(call);

		memcpy(of_page->coefficient + used,
		       chain->coefficient + call->gathered.first + (size_t)page * count,
		       count * sizeof *chain->coefficient);
		call->gathered.first = count ? used : 0;
		call->more_pages = 0;
		used += count;
	}
	return of_page;
}
