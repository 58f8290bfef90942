/* The inputs of a batch: the images named on the command line and those in the directories named
 * there, or those of a list, which is read as the batch proceeds; with the place of each result: a
 * directory, or beside its input, or in its place. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "client/aws.h"
#include "client/guard.h"
#include "client/list.h"
#include "client/mask.h"
#include "client/options.h"
#include "client/server.h"

struct task {
	char *input;       /* a path, an address, or "-" */
	char *name;        /* the input's, for messages and records */
	char *output;      /* a path, s3://…, or "-"; NULL: see `wrong` */
	const char *wrong; /* the error in the input's name, or NULL */
	int64_t size;      /* bytes of the input, when it was found */
};

struct inputs {
	struct task *tasks; /* all but those of a list */
	size_t count, next;
	struct list list; /* fd: -1 if there is none */
	const char *format;
	/* place of the results; NULL if there is a single result, with a name of its own */
	char *directory;
	bool in_place; /* a result replaces its input */
	const struct texts *include, *exclude;
	const char *suffix; /* end of results' names, which lie beside their inputs; or NULL */
	size_t left_out;    /* files in directories whose names are not those of images */
	size_t links;       /* symbolic links in directories, if they are left out */
	size_t results;     /* names that end with the suffix, which are left out, too */
	bool failed;        /* something could not be read; the message has been printed */
	bool are_jobs;      /* ids of jobs at the service, which have results already */
	/* the mask, and the inputs but for a list's; their names live until inputs_fini() */
	struct guard guard;
};

static inline bool inputs_is_list(const struct inputs *inputs)
{
	return inputs->list.fd >= 0;
}

/* Tells whether results lie in the directories of their inputs. */
static inline bool inputs_are_beside(const struct inputs *inputs)
{
	return inputs->in_place || inputs->suffix;
}

/* Finds files on disks, and with `server` and `aws` objects below prefixes. Returns EXIT_DONE, or
 * another status after printing the error. */
enum exit_code inputs_find(struct inputs *inputs, const struct options *options,
                           const struct mask *mask, const struct server *server, struct aws *aws);
void inputs_fini(struct inputs *inputs);

/* Prints what was left out because of the places of results. */
void inputs_remark(const struct inputs *inputs);

/* Returns the next input. It is the caller's until inputs_release(). */
enum supply inputs_next(struct inputs *inputs, struct task **task);

/* Opens an input, and gets its status. Anything but a plain file at its start is first copied to
 * one, since a request may have to be sent again. Returns -1 and errno on failure. */
int inputs_open(const char *path, struct stat *info);
void inputs_release(const struct inputs *inputs, struct task *task);
