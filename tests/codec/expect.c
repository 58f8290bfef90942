/* The worker under test, and the count of what held. */
#include "expect.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *program;
struct peer peer;
unsigned passed, failed;

bool expect(bool ok, const char *format, ...)
{
	va_list args;

	if (ok) {
		passed++;
		return true;
	}
	failed++;
	printf("FAILED ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	return false;
}

bool run(const struct request *request, struct reply *reply, const char *name)
{
	if (peer_run(&peer, request, reply))
		return true;
	expect(false, "%s: the worker broke the protocol or died", name);
	peer_stop(&peer);
	peer_start(&peer, program, 64 << 20);
	return false;
}

bool run_well(const struct request *request, struct reply *reply, const char *name)
{
	if (!run(request, reply, name))
		return false;
	return expect(reply->done.error == ERR_OK, "%s: %s (%s)", name,
	              error_row(reply->done.error)->slug, reply->done.problem.detail);
}

void expect_error(const struct request *request, enum error error, const char *name)
{
	struct reply reply;

	if (!run(request, &reply, name))
		return;
	expect(reply.done.error == error && *reply.done.problem.detail, "%s: %s (%s)", name,
	       error_row(reply.done.error)->slug, reply.done.problem.detail);
	reply_fini(&reply);
}

void expect_same(const struct reply *a, const struct reply *b, const char *name)
{
	expect(a->done.answer_size == b->done.answer_size &&
	           !memcmp(a->answer, b->answer, a->done.answer_size),
	       "%s: the answers differ", name);
}

void expect_alive(const char *after)
{
	struct picture p;
	struct file file;
	struct reply reply;

	picture_make(&p, 40, 300, 3, PIXEL_U8, false);
	file = file_of_picture(&p, ".png");
	struct request request = {.body = file, .format = FORMAT_RAW};
	if (run_well(&request, &reply, after)) {
		expect(reply.done.answer_size == image_size(&p.image) &&
		           !memcmp(reply.answer, p.pixels, reply.done.answer_size),
		       "job after %s: pixels differ", after);
		reply_fini(&reply);
	}
	file_fini(&file);
	picture_fini(&p);
}
