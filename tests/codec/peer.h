/* The other side of a codec worker, for tests: front and device in one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "filters/chain.h"
#include "wire/tile.h"
#include "wire/wire.h"

/* Pixels without padding between the rows. */
struct picture {
	struct image image;
	uint8_t *pixels; /* malloc'd */
};

struct file {
	void *bytes; /* g_malloc'd */
	size_t size;
};

struct peer {
	pid_t pid;
	int socket;
	struct arena arena;
};

/* A request, and the events on the way. */
struct request {
	struct file body;
	const struct picture *raw; /* in its place */
	const char *filters;       /* as chain_parse() takes it; NULL: a box of 3 */
	enum border border;
	const char *border_value;
	enum format format;
	bool strip;
	struct area roi;                                     /* width 0: none */
	const uint32_t *target;                              /* x, y; NULL: none */
	enum gather gather;                                  /* the answer is these numbers */
	uint64_t follows;                                    /* the run whose rows are kept */
	uint64_t pixels_max, buffered_size_max, samples_max; /* 0: plenty */
	int shift; /* the filter moves the image by -1 or 1 times its halo, to show that; 0: not */
	int fail_at, cancel_at; /* tile, from 1; 0: none */
	int leave_at; /* the same, but peer_run() returns false, and nothing is answered */
	bool reverse; /* tiles come back in reverse where several are waiting */
};

struct reply {
	struct message_job_done done;
	struct message_image header;
	bool has_header;
	int file[2];     /* that the answer is written to and read from, while the job lasts */
	uint8_t *answer; /* malloc'd; NULL after an error */
};

/* Starts the program and gives it an arena, both parts of this size. Exits if it does not start. */
void peer_start(struct peer *peer, const char *program, uint64_t size);
/* Hangs up and returns the program's exit status, or -1 if it was killed. */
int peer_stop(struct peer *peer);

/* Has a job done with the identity as its filter, or a shift. Returns false if the worker broke the
 * protocol. */
bool peer_run(struct peer *peer, const struct request *request, struct reply *reply);
void reply_fini(struct reply *reply);
