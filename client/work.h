/* An image on its way through its steps, in a batch. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "client/aws.h"
#include "client/exchange.h"
#include "client/inputs.h"
#include "client/manifest.h"
#include "client/output.h"
#include "client/records.h"
#include "client/report.h"

enum { RUN_DIGITS = 33 };

/* Steps of an image, in this order: the request that it waits for. */
enum step {
	STEP_LOOK,   /* whether a store has its result */
	STEP_FETCH,  /* its file, if that is elsewhere */
	STEP_FILTER, /* the service */
	STEP_RESULT, /* the service, which has made a job of it */
	STEP_STORE,  /* the store, which gets the result */
	STEP_DELETE  /* the service, which deletes the job */
};

/* An image under way. */
struct work {
	struct work *next; /* in the batch */
	struct task *task;
	enum step step;
	int input;
	struct stat info; /* file of the input, or of the copy of one elsewhere */
	char *version;    /* version of an input elsewhere, as store_version() has it; or NULL */
	struct output output;
	struct record *record;    /* record of the directory, if it is the input's, too; or NULL */
	char *type;               /* media type of the result, for a store */
	char *condition;          /* header by which the store keeps another object; or NULL */
	bool refused;             /* the store has done that: what is there is looked at */
	char *target;             /* at the service, by request_target() */
	char *job;                /* its id at the service; or NULL */
	unsigned posts;           /* times that it has been sent there as a job */
	bool gone;                /* its job is, or is of no use: it is sent again */
	char *address;            /* address for the step's peer, or the job's */
	struct curl_slist *heads; /* headers for it */
};

struct batch {
	const struct options *options;
	struct mask mask;
	struct inputs inputs;
	struct manifest *manifest; /* NULL: a single result, objects, or no directory for all */
	struct records records;
	char *root;           /* the output directory, for lists; or NULL */
	char run[RUN_DIGITS]; /* identifies this run where its results are recorded */
	struct aws aws;
	struct work *works; /* under way */
	char *unsynced;     /* directory whose latest results may not be on the disk yet, or NULL */
	struct progress progress;
	enum exit_code status;
	bool ended; /* no further images: there are none, or all would fail */
	bool full;  /* the disk is full: nothing further, not even images under way */
};

/* Takes the task. */
struct work *work_new(struct batch *batch, struct task *task);

/* Releases the image. */
void work_free(struct batch *batch, struct work *work);

/* Notes and, if there is a reason, prints that the image has failed; `what` is its name or its
 * result's. */
void work_fail(struct batch *batch, struct work *work, const char *what, const char *why);

/* Prepares the first request of an image; false if it has ended already. */
bool work_start(struct batch *batch, struct work *work, struct exchange *e);

/* Goes on after a step that has succeeded, or with the end of a job: prepares the next request;
 * false if the image has ended. */
bool work_take(struct batch *batch, struct work *work, struct exchange *e);

/* Tells whether work_take() goes on with this outcome. */
bool work_goes_on(const struct work *work, const struct exchange *e);

/* Syncs a directory of results when the results start to go elsewhere (`next`, which it takes), and
 * at the end (NULL). Syncing after each result would be slow; the exit status promises no more than
 * this. False: that failed, and has been told. */
bool work_sync_directory(struct batch *batch, char *next);
