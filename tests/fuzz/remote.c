/* The messages of an HTTP worker: whatever comes, in any order, a request is treated only as its
 * state allows, and its resources are given back. The link and the requests' routes are made up. */
#include <stdio.h>

#include "base/log.h"
#include "front/api/remote.h"
#include "front/api/request.h"
#include "front/api/routes.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/jobs/shares.h"
#include "fuzz.h"
#include "link/answer.h"
#include "link/link.h"

/* That of a message, which need not be one. */
enum { FILE_FD = 1 << 30 };

/* A request, and its history. */
struct treated {
	struct request request; /* must be first */
	bool said, finished, abandoned, most, waits;
	uint64_t lent;
};

static unsigned requests, pieces, guests;
static const struct link_owner *owner;
static void *owner_context;

/* The link ------------------------------------------------------------------------------------ */

static const struct {
	uint32_t flags;
	size_t data;
} types[LINK_TYPES] = {
#define LINK(symbol, flags, data) {flags, data},
#include "link/link.def"
};

enum error link_open(struct link *link, int fd, const struct link_owner *o, void *context)
{
	(void)link, (void)fd;
	owner = o;
	owner_context = context;
	return ERR_OK;
}

bool link_send(struct link *link, const struct link_message *message)
{
	(void)link;
	must(!(message->flags & ~types[message->type].flags));
	must(message->data_size <= types[message->type].data);
	pieces += message->type == LINK_PIECE;
	return true;
}

void link_flush(struct link *link)
{
	(void)link;
}

void link_close(struct link *link)
{
	(void)link;
}

const char *link_name(uint32_t type)
{
	return type < LINK_TYPES ? "known" : "unknown";
}

void metric_add(enum metric metric, const char *label1, const char *label2, double value)
{
	(void)label1, (void)label2;
	if (metric == METRIC_CONNECTIONS)
		guests = (unsigned)(guests + value);
}

void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...)
{
	(void)level, (void)fields, (void)format;
}

/* Requests, whose path names their wish -------------------------------------------------------- */

static struct treated *treated(struct request *r)
{
	return (struct treated *)r;
}

static void answer(struct request *r)
{
	must(!r->answer.status);
	r->answer.status = 200;
}

static void check_problem(enum error error, const struct problem *problem)
{
	must(error > ERR_OK && error < ERR_COUNT);
	must(strlen(problem->detail) < sizeof problem->detail);
}

static bool next_piece(struct request *r)
{
	must(treated(r)->said);
	if (r->path[2] == 'l') /* longer than a message may be */
		answer_piece(&r->answer, calloc(1, LINK_DATA_MAX + 1), LINK_DATA_MAX + 1);
	return r->path[2] != 'e';
}

static struct request *make(void)
{
	struct treated *t = calloc(1, sizeof *t);

	answer_init(&t->request.answer);
	requests++;
	return &t->request;
}

struct request *routes_open(struct head *head, enum error refused, const struct problem *why,
                            void (*wake)(void *context), void (*cut)(void *context), void *context)
{
	struct request *r = make();

	r->head = *head;
	*head = (struct head){0};
	r->path = r->head.text[HEAD_PATH];
	r->waiter.wake = wake;
	r->waiter.context = context;
	r->cut = cut;
	treated(r)->waits = r->path[0] == 'l';
	r->expected = r->path[0] == 'w' || treated(r)->waits;
	if (r->path[0] && r->path[1] == 's')
		r->stream = next_piece;
	if (refused)
		check_problem(refused, why);
	if (refused || r->path[0] == 'a')
		answer(r);
	return r;
}

struct request *routes_refuse(const char *client, enum error error, const struct problem *problem)
{
	struct request *r = make();

	must(strlen(client) < HEAD_CLIENT_SIZE);
	check_problem(error, problem);
	answer(r);
	return r;
}

/* Tells whether a job would go on for it: that must not be for nobody. */
static bool works(struct request *r)
{
	return treated(r)->finished && !r->answer.status && !treated(r)->abandoned;
}

void routes_close(struct request *r)
{
	must(!works(r));
	head_fini(&r->head);
	answer_fini(&r->answer);
	free(r);
	requests--;
}

static void wake(struct request *r)
{
	r->waiter.wake(r->waiter.context);
}

enum error request_lend(struct request *r, uint64_t size, struct lent *lent,
                        struct problem *problem)
{
	struct treated *t = treated(r);

	must(request_wants_body(r) && !t->finished && !t->most && size > t->lent);
	*lent = (struct lent){.fd = -1};
	if (t->waits) { /* once */
		t->waits = false;
		wake(r);
		return ERR_OK;
	}
	if (size > 1000)
		return problem_set(problem, ERR_BODY_TOO_LARGE, "too large");
	t->most = size > 100;
	t->lent = size;
	*lent = (struct lent){.fd = 0, .limit = size, .most = t->most};
	return ERR_OK;
}

enum error request_take(struct request *r, int fd, uint64_t size, struct problem *problem)
{
	(void)problem;
	must(fd == FILE_FD && request_wants_body(r) && !treated(r)->finished && !treated(r)->lent);
	must(size && size <= LINK_WHOLE_MAX && size == r->head.announced);
	treated(r)->lent = size;
	return ERR_OK;
}

void routes_finish(struct request *r, uint64_t size)
{
	must(!r->answer.status && !treated(r)->finished && size <= treated(r)->lent);
	must(r->head.parameters <= HEAD_PARAMETERS_MAX && r->head.mask <= size);
	for (unsigned i = 0; i < r->head.parameters; i++)
		must(strlen(r->head.parameter[i].name) + strlen(r->head.parameter[i].value) <
		     HEAD_FORM_MAX);
	treated(r)->finished = true;
	r->expected = false;
	wake(r);
}

void routes_resume(struct request *r)
{
	must(!request_wants_body(r) && !r->answer.status && !treated(r)->abandoned);
	answer(r);
}

void routes_fail(struct request *r, enum error error, const struct problem *problem)
{
	must(!works(r));
	check_problem(error, problem);
	answer(r);
}

void routes_abandon(struct request *r)
{
	must(treated(r)->finished && !r->answer.status);
	treated(r)->abandoned = true;
}

const struct answer *routes_answer(struct request *r)
{
	must(r->answer.status && !treated(r)->said);
	treated(r)->said = true;
	r->unread.id = "x";
	return &r->answer;
}

/* The messages -------------------------------------------------------------------------------- */

static bool broken;

static void note_broken(void *context, const char *what)
{
	(void)context, (void)what;
	must(!broken);
	broken = true;
}

/* Makes data that is mostly right, which could hardly be found by chance. Returns its size. */
static size_t likely_data(uint32_t type, unsigned which, char *data)
{
	static const char *const paths[] = {"w", "ws", "as", "ase", "asl", "a", "l", "n"};
	size_t size = (type == LINK_FAIL ? sizeof(struct problem) : 0) + which % 60;

	if (type == LINK_HEAD || type == LINK_FORM)
		return (size_t)sprintf(
		           data, "%cPOST%c%c%s", type == LINK_HEAD ? HEAD_METHOD : HEAD_NAME, 0,
		           type == LINK_HEAD ? HEAD_PATH : HEAD_VALUE, paths[which % 8]) +
		       1;
	size = size < types[type].data ? size : types[type].data;
	memset(data, 'x', size);
	return size;
}

/* Gives the owner the message that the next bytes make, with as much data as they say and there is,
 * or such that is likely. Returns how many bytes it takes. */
static size_t give_message(const uint8_t *input, size_t left)
{
	enum { FIXED = 8 };
	static const uint64_t sizes[] = {0, 1, 50, 100, 101, 1000, 1001, UINT64_MAX};
	static char likely[sizeof(struct problem) + 60];
	const uint32_t type = input[0] % LINK_TYPES;
	const uint32_t flags = (input[1] | (uint32_t)input[2] << 8) & types[type].flags;
	const bool is_likely = input[2] & 0x80;
	size_t size = input[6] | (size_t)input[7] << 8;
	char *data;

	size = size < left - FIXED ? size : left - FIXED;
	size = size < types[type].data ? size : types[type].data;
	if (is_likely)
		size = likely_data(type, input[6], likely);
	data = calloc(1, size + 1);
	memcpy(data, is_likely ? likely : (const char *)input + FIXED, size);
	owner->message(owner_context,
	               &(struct link_message){.type = type,
	                                      .flags = flags,
	                                      .number = input[3] % 8,
	                                      .guest = input[4] % 4,
	                                      .room = input[5] < 8 ? sizes[input[5]] : input[5],
	                                      .data = data,
	                                      .data_size = size,
	                                      .fd = flags & LINK_HAS_FILE ? FILE_FD : -1});
	free(data);
	return FIXED + (is_likely ? 0 : size);
}

const struct config *config;

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const struct config settings = {
	    .max_connections = 100, .max_client_connections = 2, .client_share = 50};
	struct remote *remote;

	config = &settings;
	remote = remote_new(0, note_broken, NULL);
	broken = false;
	while (size >= 8) {
		const size_t taken = give_message(input, size);

		if (input[2] & 0x40)
			remotes_turn();
		if (broken) {
			remotes_end();
			remote_free(remote);
			remote = remote_new(0, note_broken, NULL);
			broken = false;
		}
		input += taken;
		size -= taken;
	}
	if (size)
		remotes_end();
	remotes_turn();
	remote_free(remote);
	must(!requests && !guests && !share_total(SHARE_CONNECTIONS));
	return 0;
}

/* A case that chance does not find: a stream whose pieces are longer than a message may be. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	enum { LIKELY = 0x80 | 0x40 /* and a turn */, GUEST = 1, REQUEST = 2, LONG_STREAM = 4 };
	static const uint8_t messages[][8] = {
	    {LINK_GUEST, 0, LIKELY, GUEST},
	    {LINK_HEAD, 0, LIKELY | LINK_IS_COMPLETE >> 8, REQUEST, GUEST, 0, LONG_STREAM},
	    {LINK_NEXT, 0, LIKELY, REQUEST},
	    {LINK_NEXT, 0, LIKELY, REQUEST},
	    {LINK_NEXT, 0, LIKELY, REQUEST},
	};

	(void)argc, (void)argv;
	LLVMFuzzerTestOneInput(messages[0], sizeof messages);
	must(pieces == 3);
	return 0;
}
