/* The inputs of a batch: the images named on the command line and those in the directories named
 * there, with the place of each result. */
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
	char *directory; /* of the results; NULL if there is a single result, with a name of its own
	                  */
	bool several;    /* a directory of images, or more than one operand */
	bool inside;     /* the output directory is in an input one; its files were left out */
	bool failed;     /* something could not be read; the message has been printed */
	struct guard guard; /* the inputs; their names live until inputs_fini() */
};

/* Returns EXIT_DONE, or EXIT_USAGE after printing what is wrong. */
enum exit_code inputs_find(struct inputs *inputs, const struct options *options);
void inputs_fini(struct inputs *inputs);
