/* Bodies that are no good, devices that fail, clients that leave: each must give its own error and
 * leave the worker able to do the next job. */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "expect.h"

/* A file that is decoded whole, or held twice for a target, or for rows from its other end, is
 * bounded by bytes; others by their pixels. */
static void test_limits(void)
{
	static const uint32_t target[2] = {0, 0};
	static const struct {
		const char *suffix;
		bool fits;
		struct request request;
	} limits[] = {
	    {".jpg[interlace]", false, {.buffered_size_max = 9999}},
	    {".png[interlace]", false, {.buffered_size_max = 9999}},
	    {".webp", false, {.buffered_size_max = 9999}},
	    {".gif", false, {.buffered_size_max = 9999}},
	    {".jpg", true, {.buffered_size_max = 9999, .pixels_max = 10000}},
	    {".jpg", false, {.pixels_max = 9999}},
	    {".jpg[interlace]", true, {.buffered_size_max = 59999}},
	    {".jpg[interlace]", false, {.buffered_size_max = 59999, .target = target}},
	    {".jpg[interlace]", true, {.buffered_size_max = 60000, .target = target}},
	    {".jpg[interlace]",
	     false,
	     {.buffered_size_max = 60000, .target = target, .border = BORDER_WRAP}},
	    {".jpg[interlace]", true, {.buffered_size_max = 60000, .border = BORDER_WRAP}},
	    {".jpg[interlace]", false, {.buffered_size_max = 59999, .border = BORDER_WRAP}},
	    {".jpg[interlace]",
	     true,
	     {.buffered_size_max = 59999, .border = BORDER_WRAP, .filters = "invert"}},
	};
	struct reply reply;
	char name[64];

	for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
		struct file file = file_make(100, 100, 3, limits[i].suffix);
		struct request request = limits[i].request;

		request.body = file;
		snprintf(name, sizeof name, "limit %zu of %s", i, limits[i].suffix);
		if (!limits[i].fits)
			expect_error(&request, ERR_TOO_MANY_PIXELS, name);
		else if (run_well(&request, &reply, name))
			reply_fini(&reply);
		file_fini(&file);
	}
}

static void test_unencodable(void)
{
	struct picture p;
	const struct request request = {.raw = &p, .format = FORMAT_PNM};

	picture_make(&p, 9, 9, 4, PIXEL_U8, true);
	expect_error(&request, ERR_UNENCODABLE, "alpha in PNM");
	picture_fini(&p);
}

/* Devices fail and clients leave, at an early tile and at later ones. */
static void test_interruptions(void)
{
	static const uint32_t target[2] = {0, 0};
	static const struct {
		const char *suffix;
		uint32_t height, bands;
		enum format format;
		const uint32_t *target;
	} jobs[] = {
	    {".jpg", 300, 3, FORMAT_NONE, NULL},
	    {".jpg[interlace]", 300, 3, FORMAT_NONE, NULL},
	    {".png", 300, 3, FORMAT_NONE, NULL},
	    {".png", 300, 3, FORMAT_NONE, target},
	    {".webp", 300, 3, FORMAT_NONE, NULL},
	    {".tif", 300, 3, FORMAT_NONE, NULL},
	    {".gif", 300, 3, FORMAT_NONE, NULL},
	    {".ppm", 300, 3, FORMAT_NONE, NULL},
	    /* While inks become colours: in libvips's thread, or in the one that writes rows. */
	    {".tif", 300, 4, FORMAT_PNG, NULL},
	    {".tif", 300, 4, FORMAT_PNM, NULL},
	    /* The main thread does it by itself, but must hear from the front all the same. */
	    {".jpg", 12, 3, FORMAT_NONE, NULL},
	};
	char name[64];

	for (size_t i = 0; i < G_N_ELEMENTS(jobs); i++) {
		struct file file = file_make(200, jobs[i].height, jobs[i].bands, jobs[i].suffix);
		struct request request = {.body = file,
		                          .format = jobs[i].format,
		                          .target = jobs[i].target,
		                          .samples_max = 10000};

		if (request.target)
			request.roi = (struct area){10, 40, 150, 250};
		for (int at = 1; at <= (jobs[i].height < 300 ? 1 : 9); at += 4) {
			snprintf(name, sizeof name, "job %zu, %s, at tile %d", i, jobs[i].suffix,
			         at);
			request.fail_at = at;
			expect_error(&request, ERR_DEVICE, name);
			request.fail_at = 0;
			request.cancel_at = at;
			expect_error(&request, ERR_CANCELLED, name);
			request.cancel_at = 0;
		}
		expect_alive(name);
		file_fini(&file);
	}
}

/* The worker leaves when its front does, also during a short job, and when it is told nonsense. */
static void test_ends(void)
{
	struct file file = file_make(60, 60, 3, ".jpg");
	struct request request = {.body = file, .leave_at = 1};
	struct reply reply;
	int status;

	expect(peer_stop(&peer) == 0, "exit status after the front has gone");
	peer_start(&peer, program, 1 << 20);
	expect(!peer_run(&peer, &request, &reply) && peer_stop(&peer) == 0,
	       "exit status after the front has gone during a short job");
	file_fini(&file);
	peer_start(&peer, program, 1 << 20);
	expect(send(peer.socket, "nonsense", 8, 0) == 8 &&
	           waitpid(peer.pid, &status, 0) == peer.pid && WIFEXITED(status) &&
	           WEXITSTATUS(status) == 1,
	       "exit status after nonsense");
	peer_stop(&peer);
	peer_start(&peer, program, 64 << 20);
}

void test_failures(void)
{
	test_limits();
	test_unencodable();
	test_interruptions();
	test_ends();
}
