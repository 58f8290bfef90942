/* All parameters of a request, also its chain as text and as JSON, and the last value as the query
 * of a preset, with the others beside it: one that is not refused makes a chain that workers
 * believe, that is cut into tiles they believe, and whose operations can be worked out. Four bytes
 * for the image come before the block of the head. */
#include "front/api/presets.h"
#include "front/api/request.h"
#include "front/config/config.h"
#include "front/jobs/admission.h"
#include "front/workers/repertoire.h"
#include "fuzz.h"
#include "wire/tile.h"

/* Returns true if there is no error; one has a text. */
static bool is_right(enum error e, const struct problem *problem)
{
	must(!e || *problem->detail);
	must(strlen(problem->detail) < sizeof problem->detail &&
	     strlen(problem->value) < sizeof problem->value &&
	     strlen(problem->parameter) < sizeof problem->parameter);
	return !e;
}

static void check_calls(const struct chain *chain)
{
	for (uint32_t i = 0; i < chain->count; i++) {
		struct operation op;

		if (filter_gathers(&chain->call[i]))
			return;
		if (!filter_lower(&chain->call[i], chain->coefficient, &op))
			operation_fini(&op);
	}
}

static void check_tiles(const struct chain *chain, const struct image *image)
{
	const uint64_t arena = 1 << 20;
	struct problem problem = {0};
	struct tiling tiling;
	struct tile tile;

	if (!is_right(tiling_init(&tiling, chain, image, arena, arena, 1 << 16, &problem),
	              &problem))
		return;
	must(tiling.count);
	for (uint32_t i = 0; i < tiling.count; i += 1 + tiling.count / 16) {
		tiling_tile(&tiling, i, &tile);
		must(tile_valid(&tile, image, chain, arena, arena));
	}
}

static void check(const struct chain *chain, struct image *image)
{
	struct problem problem = {0};
	struct chain *sized = NULL;

	must(chain_has_shares(chain) || chain_valid(chain));
	if (!is_right(chain_size_to(chain, image->width, image->height, &sized, &problem),
	              &problem))
		return;
	must(chain_valid(sized) && !chain_has_shares(sized));
	check_calls(sized);
	check_tiles(sized, image);
	free(sized);
}

/* Returns true if it may be that of a preset. The request for it has no more than its own. */
static bool check_preset(const char *query)
{
	struct problem problem = {0};
	struct head head = {0};
	char *copy = strdup(query);
	const bool valid = is_right(presets_append(&head, copy, &problem), &problem) &&
	                   is_right(request_check_preset(&head, &problem), &problem);

	must(!valid || (head.parameters && head.parameters <= HEAD_PARAMETERS_MAX));
	free(copy);
	return valid;
}

/* Parses the request as one for a preset with this query. */
static void parse_beside(struct request *r, const char *query, struct chain *chain)
{
	const unsigned own = r->head.parameters;
	struct problem problem = {0};

	r->preset = strdup(query);
	if (is_right(presets_append(&r->head, r->preset, &problem), &problem)) {
		r->fixed = r->head.parameters - own;
		if (is_right(request_parse(r, NULL, chain, &problem), &problem))
			must(chain->count);
	}
}

static void begin(void)
{
	static const struct config settings = {
	    .node = "", .max_body = 1000, .max_jobs = 1, .max_wait = 60, .max_pixels = 1 << 24};

	if (config)
		return;
	config = &settings;
	admission_init();
	repertoire_init();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct chain chain;
	struct problem problem = {0};
	struct image image = {0};
	struct request *r;
	struct head head;
	const char *name;

	begin();
	if (size < 4)
		return 0;
	image.width = 1 + data[0] + 256u * (data[2] & 15);
	image.height = 1 + data[1] + 256u * (data[2] >> 4);
	image.bands = 1 + data[3] % BANDS_MAX;
	image.alpha = data[3] / 4 % 2 && image.bands % 2 == 0;
	image.type = data[3] / 8 % PIXEL_TYPES;
	if (head_read(&head, copy_of(data + 4, size - 4), size - 4)) {
		head_fini(&head);
		return 0;
	}
	head.announced = 100;
	r = request_new(&head, "");
	must(r);
	name = strrchr(r->path, '/');
	if (is_right(request_parse(r, name && name[1] ? name + 1 : NULL, &chain, &problem),
	             &problem) &&
	    chain.count)
		check(&chain, &image);
	if (r->head.parameters && r->head.parameters <= HEAD_PARAMETERS_MAX) {
		const char *query = r->head.parameter[--r->head.parameters].value;

		if (check_preset(query))
			parse_beside(r, query, &chain);
	}
	request_free(r);
	return 0;
}
