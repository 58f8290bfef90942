/* The manifests of the directories in which results lie beside their inputs, or in their places. A
 * batch may go through any number of directories: the manifests of those with images under way are
 * open, and some of the latest. */
#pragma once

#include "client/manifest.h"

struct record {
	struct record *next;
	char *directory;
	struct manifest *manifest; /* NULL: there is none, or it cannot be opened */
	bool failed;               /* it cannot be opened; the message has been printed */
	unsigned users;
};

struct records {
	struct record *first;
};

/* Returns the record of the directory of a result, until records_leave(). `run` is as for
 * manifest_open(). A manifest that does not exist is created, unless `look`. */
struct record *records_use(struct records *records, const char *output, const char *run, bool look);
void records_leave(struct records *records, struct record *record);
void records_close(struct records *records);
