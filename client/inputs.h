/* What a batch is made of: the images named on the command line, those of the folders named there,
 * and the place of each result. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/guard.h"
#include "client/options.h"

struct task {
	char *input;  /* a path, or "-" */
	char *output; /* likewise */
	int64_t size; /* bytes of the input, when it was found */
};

struct inputs {
	struct task *tasks;
	size_t count;
	char *folder; /* of the results; NULL if there is but one result, with a name of its own */
	bool several; /* a folder of images, or more than one operand */
	bool inside;  /* the folder of results lies in one of images, and what is there was left out
	               */
	bool failed;  /* something could not be read; it has been said */
	struct guard guard; /* the inputs; named by what stays until inputs_fini() */
};

/* Returns EXIT_DONE, or EXIT_USAGE when it has said what is wrong. */
enum exit_code inputs_find(struct inputs *inputs, const struct options *options);
void inputs_fini(struct inputs *inputs);
