/* Bodies that are no good, devices that fail, clients that leave: each must give its own error and
 * leave the worker able to do the next job. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "pictures.h"

static void test_not_images(void)
{
	static const char *const bodies[] = {"hello, this is text",
	                                     "%PDF-1.4 and so on",
	                                     "{\"a\": 1}",
	                                     "\x01\x02\x03",
	                                     "BMxxxx",
	                                     "P"};
	struct request request = {.body = "", .filters = "box=size=3"};

	expect_error(&request, ERR_EMPTY_BODY, "empty body");
	for (size_t i = 0; i < G_N_ELEMENTS(bodies); i++) {
		request.body = bodies[i];
		request.body_size = strlen(bodies[i]);
		expect_error(&request, ERR_NOT_AN_IMAGE, bodies[i]);
	}
	request.body = "\x89PNG\r\n\x1a\n garbage after the signature";
	request.body_size = 30;
	expect_error(&request, ERR_UNDECODABLE, "garbage after a PNG signature");
	request.body = "\xff\xd8\xff garbage";
	request.body_size = 11;
	expect_error(&request, ERR_UNDECODABLE, "garbage after a JPEG signature");
}

static void test_truncated(void)
{
	static const char *const suffixes[] = {".jpg",
	                                       ".jpg[interlace]",
	                                       ".png",
	                                       ".png[interlace]",
	                                       ".webp",
	                                       ".tif",
	                                       ".tif[compression=deflate]",
	                                       ".gif",
	                                       ".ppm",
	                                       ".ppm[ascii]"};
	struct picture p;
	char name[64];

	picture_make(&p, 200, 900, 3, PIXEL_U8, false);
	for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
		struct file file = file_of_picture(&p, suffixes[i]);
		struct request request = {
		    .body = file.bytes, .filters = "box=size=3", .samples_max = 10000};

		for (size_t part = 1; part < 10; part += 4) {
			request.body_size = file.size * part / 10;
			snprintf(name, sizeof name, "%s cut to %zu/10", suffixes[i], part);
			expect_error(&request, ERR_UNDECODABLE, name);
		}
		file_fini(&file);
	}
	picture_fini(&p);
	expect_alive("truncated files");
}

static void put_crc(uint8_t *chunk, size_t size)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 4; i < size + 8; i++) {
		crc ^= chunk[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	crc = ~crc;
	for (int i = 0; i < 4; i++)
		chunk[size + 8 + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
}

/* A few bytes that say they are an image of a million pixels a side. */
static void test_huge_header(void)
{
	struct picture p;
	struct file file;
	uint8_t *ihdr;

	picture_make(&p, 2, 2, 3, PIXEL_U8, false);
	file = file_of_picture(&p, ".png");
	ihdr = (uint8_t *)file.bytes + 8;
	memcpy(ihdr + 8, "\0\x0e\0\0\0\x0e\0\0", 8);
	put_crc(ihdr, 13);
	struct request request = {.body = file.bytes,
	                          .body_size = file.size,
	                          .filters = "box=size=3",
	                          .pixels_max = 1000000000};
	expect_error(&request, ERR_TOO_MANY_PIXELS, "huge PNG");
	file_fini(&file);
	picture_fini(&p);
}

static void test_limits(void)
{
	static const char *const buffered[] = {".jpg[interlace]", ".png[interlace]", ".webp",
	                                       ".gif"};
	struct picture p;
	struct reply reply;

	picture_make(&p, 100, 100, 3, PIXEL_U8, false);
	for (size_t i = 0; i < G_N_ELEMENTS(buffered); i++) {
		struct file file = file_of_picture(&p, buffered[i]);
		struct request request = {.body = file.bytes,
		                          .body_size = file.size,
		                          .filters = "box=size=3",
		                          .buffered_size_max = 9999};

		expect_error(&request, ERR_TOO_MANY_PIXELS, buffered[i]);
		file_fini(&file);
	}
	struct file file = file_of_picture(&p, ".jpg");
	struct request request = {.body = file.bytes,
	                          .body_size = file.size,
	                          .filters = "box=size=3",
	                          .buffered_size_max = 9999,
	                          .pixels_max = 10000};
	if (run_well(&request, &reply, "baseline JPEG at the limit"))
		reply_fini(&reply);
	request.pixels_max = 9999;
	expect_error(&request, ERR_TOO_MANY_PIXELS, "baseline JPEG above the limit");
	file_fini(&file);
	picture_fini(&p);
}

static void expect_unencodable(uint32_t width, uint32_t height, uint32_t bands, bool alpha,
                               enum format format, const char *name)
{
	struct picture p;

	picture_make(&p, width, height, bands, PIXEL_U8, alpha);
	struct request request = {.body = p.pixels,
	                          .body_size = image_size(&p.image),
	                          .raw = &p.image,
	                          .filters = "box=size=3",
	                          .format = format};
	expect_error(&request, ERR_UNENCODABLE, name);
	picture_fini(&p);
}

static void test_refusals(void)
{
	struct picture p;
	struct file file;

	expect_unencodable(65536, 2, 1, false, FORMAT_JPEG, "too wide for JPEG");
	expect_unencodable(2, 16384, 3, false, FORMAT_WEBP, "too high for WebP");
	expect_unencodable(65536, 2, 1, false, FORMAT_GIF, "too wide for GIF");
	expect_unencodable(9, 9, 4, true, FORMAT_PNM, "PNM with alpha");
	picture_make(&p, 9, 9, 4, PIXEL_U8, false);
	file = file_of_picture(&p, ".jpg");
	struct request request = {.body = file.bytes,
	                          .body_size = file.size,
	                          .filters = "box=size=3",
	                          .border = "constant",
	                          .border_value = "1,2"};
	expect_error(&request, ERR_BAD_PARAMETER, "border values");
	file_fini(&file);
	picture_fini(&p);
	picture_make(&p, 900000, 1, 3, PIXEL_U8, false);
	request = (struct request){.body = p.pixels,
	                           .body_size = image_size(&p.image),
	                           .raw = &p.image,
	                           .filters = "box=size=601"};
	expect_error(&request, ERR_DOES_NOT_FIT, "too wide for the arena");
	picture_fini(&p);
}

static void test_interruptions(void)
{
	static const char *const suffixes[] = {
	    ".jpg", ".jpg[interlace]", ".png", ".webp", ".tif", ".gif", ".ppm"};
	struct picture p;
	char name[64];

	picture_make(&p, 200, 900, 3, PIXEL_U8, false);
	for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
		struct file file = file_of_picture(&p, suffixes[i]);

		for (int at = 1; at <= 9; at += 4) {
			struct request request = {.body = file.bytes,
			                          .body_size = file.size,
			                          .filters = "box=size=3",
			                          .samples_max = 10000};

			snprintf(name, sizeof name, "%s, at tile %d", suffixes[i], at);
			request.fail_at = at;
			expect_error(&request, ERR_DEVICE, name);
			request.fail_at = 0;
			request.cancel_at = at;
			expect_error(&request, ERR_CANCELLED, name);
		}
		expect_alive(suffixes[i]);
		file_fini(&file);
	}
	picture_fini(&p);
}

/* A job that the main thread does by itself must hear from the front all the same. */
static void test_interrupted_short_job(void)
{
	struct picture p;
	struct reply reply;

	picture_make(&p, 60, 60, 3, PIXEL_U8, false);
	struct file file = file_of_picture(&p, ".jpg");
	struct request request = {
	    .body = file.bytes, .body_size = file.size, .filters = "box=size=3", .fail_at = 1};

	expect_error(&request, ERR_DEVICE, "short job, failed");
	request.fail_at = 0;
	request.cancel_at = 1;
	expect_error(&request, ERR_CANCELLED, "short job, cancelled");
	expect_alive("short jobs");
	request.leave_at = 1;
	expect(!peer_run(&peer, &request, &reply) && peer_stop(&peer) == 0,
	       "exit status after the front has gone during a short job");
	peer_start(&peer, program, 64 << 20, 64 << 20);
	file_fini(&file);
	picture_fini(&p);
}

/* While inks become colours: in libvips's own thread, or in the one that writes rows. */
static void test_interrupted_conversions(void)
{
	static const enum format formats[] = {FORMAT_PNG, FORMAT_PNM};
	struct picture p;
	struct file file;

	picture_make(&p, 200, 900, 4, PIXEL_U8, false);
	file = file_of_picture(&p, ".tif");
	for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
		struct request request = {.body = file.bytes,
		                          .body_size = file.size,
		                          .filters = "box=size=3",
		                          .format = formats[i],
		                          .samples_max = 10000,
		                          .fail_at = 5};

		expect_error(&request, ERR_DEVICE, format_name(formats[i]));
		request.fail_at = 0;
		request.cancel_at = 5;
		expect_error(&request, ERR_CANCELLED, format_name(formats[i]));
		expect_alive(format_name(formats[i]));
	}
	file_fini(&file);
	picture_fini(&p);
}

/* The worker leaves when its front does, and when it is told nonsense. */
static void test_ends(void)
{
	int status;

	expect(peer_stop(&peer) == 0, "exit status after the front has gone");
	peer_start(&peer, program, 1 << 20, 1 << 20);
	expect(send(peer.socket, "nonsense", 8, 0) == 8 &&
	           waitpid(peer.pid, &status, 0) == peer.pid && WIFEXITED(status) &&
	           WEXITSTATUS(status) == 1,
	       "exit status after nonsense");
	peer_stop(&peer);
	peer_start(&peer, program, 64 << 20, 64 << 20);
}

void test_failures(void)
{
	test_not_images();
	test_truncated();
	test_huge_header();
	test_limits();
	test_refusals();
	test_interruptions();
	test_interrupted_short_job();
	test_interrupted_conversions();
	test_ends();
}
