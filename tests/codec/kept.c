/* The rows that a gathering run keeps for the next run: they are the file's, and none of the file's
 * pixels are read again. */
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "pictures.h"

/* Spoils a file's second half, but for its end: the header stays right. */
static void spoil(const struct file *file)
{
	const size_t end = file->size - file->size / 8;

	for (size_t i = file->size / 2; i < end; i++)
		((uint8_t *)file->bytes)[i] ^= 0x5a;
}

/* Gathers; returns the run's number if the rows are kept, else 0. */
static uint64_t gather(struct request request, const char *name)
{
	struct reply reply;
	uint64_t kept = 0;

	request.gather = GATHER_TABLE;
	if (run_well(&request, &reply, name))
		kept = reply.done.kept ? reply.done.job : 0;
	reply_fini(&reply);
	return kept;
}

/* Both runs; `spoils`: the second has a body whose pixels cannot be read. */
static void test_file(const char *suffix, struct request request, bool spoils)
{
	struct picture p;
	struct file file;
	struct reply whole, again;

	picture_make(&p, 300, 200, 3, PIXEL_U8, false);
	file = file_of_picture(&p, suffix);
	picture_fini(&p);
	request.body = file.bytes;
	request.body_size = file.size;
	request.samples_max = 10000;
	if (!run_well(&request, &whole, suffix))
		return;
	request.follows = gather(request, suffix);
	expect(request.follows, "%s: rows are kept", suffix);
	if (spoils)
		spoil(&file);
	if (run_well(&request, &again, suffix))
		expect(again.done.answer_size == whole.done.answer_size &&
		           !memcmp(again.answer, whole.answer, whole.done.answer_size),
		       "%s: the same answer from kept rows", suffix);
	reply_fini(&again);
	reply_fini(&whole);
	file_fini(&file);
}

/* One run's rows are no other's: neither after another job, nor after the run that used them. */
static void test_others(void)
{
	struct picture p;
	struct file file;
	struct reply reply;
	struct request request = {.filters = "box=size=3", .format = FORMAT_RAW};
	uint64_t kept;

	picture_make(&p, 300, 200, 3, PIXEL_U8, false);
	file = file_of_picture(&p, ".png");
	picture_fini(&p);
	request.body = file.bytes;
	request.body_size = file.size;
	kept = gather(request, "kept");
	spoil(&file);
	request.follows = kept + 1000;
	expect_error(&request, ERR_UNDECODABLE, "rows of a run that was not");
	request.follows = kept;
	expect_error(&request, ERR_UNDECODABLE, "rows kept through another job");
	spoil(&file); /* again: right */
	request.follows = 0;
	kept = gather(request, "kept");
	request.follows = kept;
	if (run_well(&request, &reply, "from kept rows"))
		expect(!reply.done.kept, "the last run keeps none");
	reply_fini(&reply);
	spoil(&file);
	expect_error(&request, ERR_UNDECODABLE, "rows kept beyond the job");
	file_fini(&file);
}

/* A run that fails keeps nothing; nor does one on an image larger than an arena. */
static void test_none(void)
{
	struct picture p;
	struct file file;
	struct reply reply;
	struct peer large = peer;
	struct request request = {.filters = "box=size=3", .gather = GATHER_TABLE, .fail_at = 1};

	picture_make(&p, 300, 200, 3, PIXEL_U8, false);
	file = file_of_picture(&p, ".png");
	picture_fini(&p);
	request.body = file.bytes;
	request.body_size = file.size;
	if (run(&request, &reply, "a device fails"))
		expect(reply.done.error == ERR_DEVICE && !reply.done.kept, "a failed run's rows");
	reply_fini(&reply);
	peer_start(&peer, program, 128 << 10, 128 << 10);
	request.fail_at = 0;
	expect(!gather(request, "larger than an arena"), "larger than an arena: not kept");
	request.gather = GATHER_NONE;
	if (run_well(&request, &reply, "larger than an arena, again"))
		expect(reply.done.answer_size > 0, "larger than an arena: an answer");
	reply_fini(&reply);
	expect(peer_stop(&peer) == 0, "exit status with a small arena");
	peer = large;
	file_fini(&file);
}

void test_kept(void)
{
	static const char *const spoiled[] = {".jpg", ".png", ".webp", ".tif", ".ppm"};
	static const char *const others[] = {".jpg[interlace]",
	                                     ".png[interlace]",
	                                     ".webp[lossless]",
	                                     ".tif[compression=deflate,tile]",
	                                     ".gif",
	                                     ".ppm[ascii]"};
	const struct request plain = {.filters = "box=size=3"},
	                     wraps = {.filters = "box=size=15", .border = "wrap"},
	                     part = {.filters = "box=size=3",
	                             .roi = {.x = 31, .y = 17, .width = 101, .height = 99}};

	for (size_t i = 0; i < G_N_ELEMENTS(spoiled); i++) {
		test_file(spoiled[i], plain, true);
		test_file(spoiled[i], wraps, true);
		test_file(spoiled[i], part, true);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
		test_file(others[i], plain, false);
		test_file(others[i], wraps, false);
		test_file(others[i], part, false);
	}
	test_others();
	test_none();
	expect_alive("kept rows");
}
