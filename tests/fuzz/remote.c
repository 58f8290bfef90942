/* The messages of an HTTP worker: whatever comes, in any order, the service is called only as
 * link/serve.h allows, and what a request holds is given back. The link and the service are
 * made up. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "front/api/remote.h"
#include "front/jobs/shares.h"
#include "link/answer.h"
#include "link/link.h"
#include "link/serve.h"

/* That of a message, which need not be one. */
enum { FILE_FD = 1 << 30 };

struct request {
	struct head head;
	const struct serve_calls *calls;
	void *context;
	struct answer answer;
	bool wants, answered, said, finished, abandoned, parameter, most, waits;
	uint64_t lent;
};

struct guest {
	unsigned requests;
};

static unsigned requests, guests, pieces;
static const struct link_owner *owner;
static void *owner_context;

static void expect(bool what)
{
	if (!what)
		abort();
}

/* The link ------------------------------------------------------------------------------------ */

static const struct {
	uint32_t flags;
	size_t data;
	int fds;
} types[LINK_TYPES] = {
#define LINK(symbol, flags, data, fds) {flags, data, fds},
#include "link/link.def"
#undef LINK
};

enum error link_open(struct link *link, int fd, const struct link_owner *o, void *context)
{
	(void)link, (void)fd;
	owner = o;
	owner_context = context;
	return ERR_OK;
}

bool link_send(struct link *link, const struct link_message *message, const void *data, size_t size,
               int fd)
{
	(void)link, (void)data, (void)fd;
	expect(!message->flags || message->flags & types[message->type].flags);
	expect(size <= types[message->type].data);
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

uint64_t share_connections_most(void)
{
	return 100;
}

/* The service, which decides by what the path begins with ------------------------------------- */

struct guest *guest_new(guest_refuse *refuse, void *context)
{
	(void)refuse, (void)context;
	guests++;
	return calloc(1, sizeof(struct guest));
}

void guest_name(struct guest *guest, const char *client, bool proxy)
{
	(void)guest, (void)proxy;
	expect(strlen(client) < HEAD_CLIENT_SIZE);
}

void guest_free(struct guest *guest)
{
	guests -= guest ? 1 : 0;
	free(guest);
}

static void answer(struct request *r)
{
	expect(!r->answered);
	r->answered = true;
	r->answer.status = 200;
}

static struct request *make(const struct serve_calls *calls, void *context)
{
	struct request *r = calloc(1, sizeof *r);

	answer_init(&r->answer);
	r->calls = calls;
	r->context = context;
	requests++;
	return r;
}

struct request *serve_begin(struct guest *guest, struct head *head, const struct serve_calls *calls,
                            void *context)
{
	struct request *r = make(calls, context);

	expect(guest);
	r->head = *head;
	*head = (struct head){0};
	r->wants = r->head.text[HEAD_PATH][0] == 'w';
	r->waits = r->head.text[HEAD_PATH][0] == 'l';
	r->wants |= r->waits;
	if (r->head.text[HEAD_PATH][0] == 'a')
		answer(r);
	return r;
}

struct request *serve_refuse(const char *client, enum error error, const struct problem *problem,
                             const struct serve_calls *calls, void *context)
{
	struct request *r = make(calls, context);

	expect(strlen(client) < HEAD_CLIENT_SIZE && error > ERR_OK && error < ERR_COUNT);
	expect(strlen(problem->detail) < sizeof problem->detail);
	answer(r);
	return r;
}

/* True while a job would go on for it: that must not be for nobody. */
static bool works(const struct request *r)
{
	return r->finished && !r->answered && !r->abandoned;
}

void serve_end(struct request *r)
{
	expect(!works(r));
	head_fini(&r->head);
	answer_fini(&r->answer);
	free(r);
	requests--;
}

const struct head *serve_head(const struct request *r)
{
	return &r->head;
}

bool serve_is_decided(const struct request *r)
{
	(void)r;
	return true;
}

bool serve_is_answered(const struct request *r)
{
	return r->answered;
}

bool serve_wants_body(const struct request *r)
{
	return r->wants && !r->answered;
}

bool serve_lend(struct request *r, uint64_t size, struct lent *lent)
{
	expect(serve_wants_body(r) && !r->finished && !r->most && size > r->lent);
	if (r->waits) { /* once */
		r->waits = false;
		r->calls->wake(r->context);
		return false;
	}
	if (size > 1000)
		answer(r);
	r->most = size > 100;
	r->lent = size;
	*lent = (struct lent){.fd = 0, .limit = size, .most = r->most};
	return !r->answered;
}

enum error serve_part(struct request *r, const char *name, bool file, bool *image,
                      struct problem *problem)
{
	expect(r->head.form && !r->answered && !r->finished);
	*image = serve_is_image(name, file);
	r->parameter = !*image;
	return *name ? ERR_OK : problem_set(problem, ERR_BAD_REQUEST, "no name");
}

enum error serve_value(struct request *r, const char *data, size_t size, struct problem *problem)
{
	expect(r->parameter && !r->answered && !r->finished);
	return memchr(data, '!', size) ? problem_set(problem, ERR_BAD_REQUEST, "no!") : ERR_OK;
}

void serve_finish(struct request *r, uint64_t size)
{
	expect(!r->answered && !r->finished && size <= r->lent);
	r->finished = true;
	r->wants = false;
	r->calls->wake(r->context);
}

bool serve_take(struct request *r, int fd, uint64_t size)
{
	expect(fd == FILE_FD && serve_wants_body(r) && !r->finished && !r->lent);
	expect(size && size <= SERVE_WHOLE_MAX && size == r->head.announced);
	r->finished = true;
	r->wants = false;
	r->calls->wake(r->context);
	return true;
}

void serve_look(struct request *r)
{
	expect(!r->wants && !r->answered && !r->abandoned);
	answer(r);
}

void serve_fail(struct request *r, enum error error, const struct problem *problem)
{
	expect(!r->answered && !works(r) && error > ERR_OK && error < ERR_COUNT);
	expect(strlen(problem->detail) < sizeof problem->detail);
	answer(r);
}

void serve_abandon(struct request *r)
{
	expect(r->finished && !r->answered);
	r->abandoned = true;
}

const struct answer *serve_answer(struct request *r)
{
	expect(r->answered && !r->said);
	r->said = true;
	return &r->answer;
}

bool serve_streams(const struct request *r)
{
	return r->head.text[HEAD_PATH] && r->head.text[HEAD_PATH][1] == 's';
}

const struct answer *serve_piece(struct request *r)
{
	expect(r->said && serve_streams(r));
	answer_piece(&r->answer, NULL, 0);
	if (r->head.text[HEAD_PATH][2] == 'l') /* longer than a message may be */
		answer_piece(&r->answer, calloc(1, LINK_DATA_MAX + 1), LINK_DATA_MAX + 1);
	return r->head.text[HEAD_PATH][2] == 'e' ? NULL : &r->answer;
}

void serve_read(struct request *r, uint64_t bytes)
{
	(void)bytes;
	expect(r->said);
}

/* The messages -------------------------------------------------------------------------------- */

static bool broken;

static void note_broken(void *context, const char *what)
{
	(void)context, (void)what;
	expect(!broken);
	broken = true;
}

/* Data that is mostly right, which could hardly be found by chance. The caller frees it. */
static char *likely_data(uint32_t type, unsigned which, size_t *size)
{
	static const char *const paths[] = {"w", "ws", "as", "ase", "asl", "a", "l", "n"};
	struct head_writer writer = {0};
	char *data;

	if (type == LINK_HEAD || type == LINK_WHOLE) {
		head_add(&writer, HEAD_METHOD, "POST");
		head_add(&writer, HEAD_PATH, paths[which % 8]);
		*size = writer.size;
		writer.data = realloc(writer.data, writer.size + 1);
		writer.data[writer.size] = '\0';
		return writer.data;
	}
	*size = type == LINK_FAIL ? sizeof(struct problem) : sizeof(struct problem) + which % 60;
	*size = *size < types[type].data ? *size : types[type].data;
	data = malloc(*size + 1);
	memset(data, 'x', *size);
	data[*size] = '\0';
	return data;
}

/* The message that the next bytes make, with as much data as they say and there is. */
static void next_message(const uint8_t *input, size_t left, struct link_message *message,
                         size_t *size)
{
	static const uint64_t sizes[] = {0, 1, 50, 100, 101, 1000, 1001, UINT64_MAX};

	message->type = input[0] % LINK_TYPES;
	message->flags = (input[1] | (uint32_t)input[2] << 8) & types[message->type].flags;
	message->number = input[3] % 8;
	message->guest = input[4] % 4;
	message->size = input[5] < 8 ? sizes[input[5]] : input[5];
	*size = input[6] | (size_t)input[7] << 8;
	left -= 8;
	*size = *size < left ? *size : left;
	*size = *size < types[message->type].data ? *size : types[message->type].data;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const struct remote_calls calls = {note_broken};
	struct remote *remote = remote_new(0, &calls, NULL);
	struct link_message message = {0};
	bool likely, turn;
	size_t data_size;
	char *data;

	broken = false;
	while (size >= 8) {
		likely = input[2] & 0x80;
		turn = input[2] & 0x40;
		next_message(input, size, &message, &data_size);
		if (likely) {
			data = likely_data(message.type, input[6], &data_size);
		} else {
			data = malloc(data_size + 1);
			memcpy(data, input + 8, data_size);
			data[data_size] = '\0';
			input += data_size;
			size -= data_size;
		}
		input += 8;
		size -= 8;
		owner->message(owner_context, &message, data, data_size,
		               types[message.type].fds ? FILE_FD : -1);
		free(data);
		if (turn)
			remote_turn(remote);
		if (broken) {
			remote_end(remote);
			remote_free(remote);
			remote = remote_new(0, &calls, NULL);
			broken = false;
		}
	}
	if (size)
		remote_end(remote);
	remote_turn(remote);
	remote_free(remote);
	expect(!requests && !guests);
	return 0;
}

/* What chance does not find: a stream whose pieces are longer than a message may be. */
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
	expect(pieces == 3);
	return 0;
}
