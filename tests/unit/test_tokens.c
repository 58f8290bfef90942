/* Tokens: a line of their file reaches the terms of its jobs. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "front/api/tokens.h"
#include "front/config/config.h"
#include "unit.h"

TEST(test_terms)
{
	static const char hash[] = /* SHA-256 of "a-token-of-some-length" */
	    "4f0d205b316ab19696f52d3dc08107a4186c12b117a2a23581353b462001edee";
	struct config settings = {.tokens = "tokens"};
	struct job_terms terms = {0};
	struct problem problem;
	int fd = open(settings.tokens, O_WRONLY | O_CREAT, 0600);

	assert_true(dprintf(fd,
	                    "[alice]\ntoken-sha256=%s\nclass=batch\nshare=2.5\npresets-only=yes\n",
	                    hash) > 0);
	close(fd);
	assert_true(tokens_read(&settings));
	assert_int_equal(tokens_admit(NULL, &terms, &problem), ERR_OK); /* not yet in force */
	tokens_commit();
	assert_int_equal(tokens_admit("Bearer a-token-of-some-lengtH", &terms, &problem),
	                 ERR_TOKEN_UNKNOWN);
	assert_false(terms.named);
	assert_int_equal(tokens_admit("Bearer a-token-of-some-length", &terms, &problem), ERR_OK);
	assert_true(terms.named && terms.share == 2.5 && terms.best == PRIORITY_BATCH);
	assert_string_equal(terms.client, "alice");
	assert_true(terms.presets_only);
	tokens_fini();
}
