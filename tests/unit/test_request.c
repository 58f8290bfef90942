/* Requests: parameters that tests/http does not try, and the memory of one. */
#include <malloc.h>

#include "front/api/request.h"
#include "front/api/routes.h"
#include "front/config/config.h"
#include "front/jobs/admission.h"
#include "front/workers/repertoire.h"
#include "link/head.h"
#include "unit.h"

static void begin(void)
{
	static const struct config settings = {
	    .node = "", .max_body = 1000, .max_jobs = 1, .max_wait = 60};

	config = &settings;
	admission_init();
	repertoire_init();
}

static struct request *gaussian_with(const char *name, const char *value)
{
	struct head_writer writer = {0};
	struct head head;

	head_add(&writer, HEAD_METHOD, "POST");
	head_add(&writer, HEAD_PATH, "/v1/filters/gaussian");
	head_add(&writer, HEAD_NAME, name);
	head_add(&writer, HEAD_VALUE, value);
	assert_int_equal(head_read(&head, writer.data, writer.size), ERR_OK);
	head.announced = 100;
	return request_new(&head, "");
}

TEST(test_invalid)
{
	static const char *const bad[][2] = {{"filters", "box"},   {"border_value", ""},
	                                     {"alpha", "1"},       {"priority", "high"},
	                                     {"deadline_ms", "0"}, {"deadline_ms", "86400001"},
	                                     {"deadline_ms", "5x"}};
	struct problem problem;
	struct chain chain;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct request *r = gaussian_with(bad[i][0], bad[i][1]);

		assert_int_equal(request_parse(r, "gaussian", &chain, &problem), ERR_BAD_PARAMETER);
		assert_string_equal(problem.parameter, bad[i][0]);
		request_free(r);
	}
}

/* A request's chain takes as much memory as it has filters and matrices. */
TEST(test_chain_memory)
{
	struct request *r = gaussian_with("sigma", "2");

	routes_begin(r);
	assert_non_null(r->chain);
	assert_in_range(malloc_usable_size(r->chain), chain_size(r->chain), 2000);
	request_free(r);
}

int main(void)
{
	begin();
	return unit_run();
}
