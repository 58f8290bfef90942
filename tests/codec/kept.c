/* The rows that a gathering run keeps for the next run: they are the file's, and none of the file's
 * pixels are read again. */

#include "expect.h"

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

/* The second run has a body whose pixels cannot be read. */
static void test_file(const char *suffix, struct request request)
{
	struct file file = file_make(300, 200, 3, suffix);
	struct reply whole, again;

	request.body = file;
	request.samples_max = 10000;
	if (!run_well(&request, &whole, suffix))
		return;
	request.follows = gather(request, suffix);
	expect(request.follows, "%s: rows are kept", suffix);
	spoil(&file);
	if (run_well(&request, &again, suffix))
		expect_same(&again, &whole, suffix);
	reply_fini(&again);
	reply_fini(&whole);
	file_fini(&file);
}

/* One run's rows are no other's: neither after another job, nor after the run that used them. */
static void test_others(void)
{
	struct file file = file_make(300, 200, 3, ".png");
	struct reply reply;
	struct request request = {.body = file, .format = FORMAT_RAW};
	uint64_t kept = gather(request, "kept");

	spoil(&file);
	request.follows = kept + 1000;
	expect_error(&request, ERR_UNDECODABLE, "rows of a run that was not");
	request.follows = kept;
	expect_error(&request, ERR_UNDECODABLE, "rows kept through another job");
	spoil(&file); /* again: right */
	request.follows = 0;
	request.follows = gather(request, "kept");
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
	struct file file = file_make(300, 200, 3, ".png");
	struct reply reply;
	struct peer large = peer;
	struct request request = {.body = file, .gather = GATHER_TABLE, .fail_at = 1};

	if (run(&request, &reply, "a device fails"))
		expect(reply.done.error == ERR_DEVICE && !reply.done.kept, "a failed run's rows");
	reply_fini(&reply);
	request.fail_at = 0;
	peer_start(&peer, program, 128 << 10);
	expect(!gather(request, "larger than an arena"), "larger than an arena: not kept");
	expect(peer_stop(&peer) == 0, "exit status with a small arena");
	peer = large;
	file_fini(&file);
}

void test_kept(void)
{
	static const char *const suffixes[] = {".jpg", ".png", ".webp", ".tif", ".ppm"};

	for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++)
		test_file(suffixes[i], (struct request){.filters = "box=size=3"});
	test_file(".png", (struct request){.filters = "box=size=15", .border = BORDER_WRAP});
	test_file(".png", (struct request){.roi = {31, 17, 101, 99}});
	test_others();
	test_none();
	expect_alive("kept rows");
}
