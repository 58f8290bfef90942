/* A codec worker that has been taken over: it does what CONVOLVED_HOSTILE says. The tests put it in
 * the place of convolved-codec.
 *
 * Only bare pixels are understood. All but `honest` do something that an honest worker does not. */
#include "hostile.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/memfd.h"
#include "filters/chain.h"
#include "process/start.h"
#include "wire/tile.h"

static const struct lie lies[] = {
    LIE("late", IMAGE, image.late, 2),
    LIE("huge", IMAGE, image.whole.width, IMAGE_SIDE_MAX),
    LIE("huge", IMAGE, image.whole.height, IMAGE_SIDE_MAX),
    LIE("huge", IMAGE, image.image.width, IMAGE_SIDE_MAX),
    LIE("huge", IMAGE, image.image.height, IMAGE_SIDE_MAX),
    LIE("times", JOB_DONE, job_done.decode_ns, UINT64_MAX),
    LIE("losses", JOB_DONE, job_done.lost, 1u << LOSSES),
    LIE("text", JOB_DONE, job_done.error, ERR_UNDECODABLE),
    LIE("text", JOB_DONE, job_done.problem, 0xfe),
};
enum { LIES = sizeof lies / sizeof *lies };

static struct message_arena arena;
static struct message_job job;
static struct chain *chain;
static struct tiling tiling;
static int body, answer = -1, reader;

/* Waits for a message; keeps the parts that are of use later. */
static enum message_type hear(void)
{
	static struct message message;
	int fds[MESSAGE_FDS_MAX];

	if (wire_receive(WORKER_SOCKET, &message, fds) != WIRE_MESSAGE)
		die("receive");
	if (message.type == MSG_ARENA) {
		arena = message.arena;
	} else if (message.type == MSG_JOB) {
		job = message.job;
		body = fds[0];
		free(chain);
		if (chain_take(fds[1], &chain))
			die("chain");
	} else if (message.type == MSG_ANSWER) {
		answer = fds[0];
		reader = fds[1];
	}
	return message.type;
}

static void hear_until(enum message_type type)
{
	while (hear() != type)
		;
}

static void make_tiling(void)
{
	struct problem problem;

	if (tiling_init(&tiling, chain, &job.raw_image, arena.in_size, arena.out_size,
	                job.samples_max, &problem))
		die("tiling");
}

static void say_image(void)
{
	struct message message = {0};
	struct message_image *m = &message.image;

	make_tiling();
	m->job = job.job;
	m->whole = m->image = m->answer = job.raw_image;
	m->pages = 1;
	m->tiles = is("flood") ? job.raw_image.width * job.raw_image.height : tiling.count;
	say_with_lies(&message, MSG_IMAGE, lies, LIES);
}

static void make_tile(struct tile *tile)
{
	tiling_tile(&tiling, 0, tile);
	tile->job = job.job;
	tile->arena = job.arena;
}

static void say_tile(uint32_t index)
{
	struct message message = {0};

	make_tile(&message.tile.tile);
	message.tile.tile.index = index;
	say(&message, MSG_TILE);
}

static void say_done(uint64_t size)
{
	struct message message = {0};
	struct message_job_done *m = &message.job_done;

	m->job = job.job;
	m->error = job.raw ? ERR_OK : ERR_NOT_AN_IMAGE;
	m->format = m->input_format = FORMAT_RAW;
	m->image = job.raw_image;
	m->answer_size = size;
	if (job.raw && is("kept")) {
		m->kept = job.gathering.kind ? 1 : 2;
		fprintf(stderr, "<4>hostile: run %llu follows %llu\n", (unsigned long long)job.job,
		        (unsigned long long)job.follows);
	}
	say_with_lies(&message, MSG_JOB_DONE, lies, job.raw ? LIES : 0);
}

/* Messages of every type, which are spoilt. */
static void say_anything(void)
{
	const uint64_t what = random_number(8);
	struct message message = {0};

	tiling_tile(&tiling, 0, &message.tile.tile);
	if (!random_number(4))
		tiling_whole_tile(&tiling, (enum tile_form)(1 + random_number(3)),
		                  random_number(1 << 20), &message.tile.tile);
	message.tile.tile.job = job.job;
	message.tile.tile.arena = job.arena;
	if (what == 0)
		say_image();
	else if (what == 1)
		say_done(10);
	else
		say(&message, what < 4 ? (enum message_type)random_number(MESSAGES + 1) : MSG_TILE);
}

static void flood(void)
{
	uint32_t next = 0, back = 0;

	for (;;) {
		while (next - back < SLOTS_MAX)
			say_tile(next++);
		back += hear() == MSG_TILE_DONE;
	}
}

/* As many as there should be of a grey image of bytes; unless "kept", one of them cannot be. */
static void answer_numbers(void)
{
	double numbers[256] = {[200] = is("kept") ? 1 : random_number(2) ? 1.5 : -0.0 / 0.0};

	if (pwrite(answer, numbers, sizeof numbers, 0) != sizeof numbers || !memfd_seal(answer))
		die("answer");
	say_done(sizeof numbers);
}

/* Writes a byte far out: with the limit that the front has set, and without it, as nothing here
 * forbids to lift it. */
static uint64_t write_far(void)
{
	const off_t far = (off_t)30 << 30;
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	if (pwrite(answer, "x", 1, far) >= 0)
		fprintf(stderr, "<4>hostile: AN ANSWER CAN BE OF ANY SIZE\n");
	if (getrlimit(RLIMIT_FSIZE, &limit))
		die("getrlimit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_FSIZE, &limit) || pwrite(answer, "x", 1, far) != 1)
		die("far");
	return (uint64_t)far + 1;
}

/* Keeps the answer's descriptors, and as "maps" a mapping too, by which it cannot be sealed. */
static void filter_honestly(void)
{
	uint64_t size;

	say_image();
	hear_until(MSG_ANSWER);
	if (is("flood"))
		flood();
	if (is("numbers") || (is("kept") && job.gathering.kind)) {
		answer_numbers();
		return;
	}
	if (pwrite(answer, "0123456789", 10, 0) != 10)
		die("answer");
	size = is("far") ? write_far() : is("size") ? UINT64_C(1) << 62 : is("more") ? 11 : 10;
	if (is("maps") && !can_map(answer))
		die("mmap");
	if (memfd_seal(answer) ? can_change(answer) || can_change(reader)
	                       : !is("maps") && (can_map(answer) || can_map(reader)))
		fprintf(stderr, "<4>hostile: THE ANSWER CAN BE CHANGED\n");
	say_done(size);
}

/* Uses so much processor time. */
static void work(double seconds)
{
	const uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + (uint64_t)(seconds * 1e9);

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
		;
}

static void misbehave(void)
{
	enum { ENDLESS = 1000000 };
	struct message message = {.type = MSG_CANCEL};

	if (can_change(body))
		fprintf(stderr, "<4>hostile: THE BODY CAN BE CHANGED\n");
	if (is("early")) {
		say_done(0);
	} else if (is("descriptors")) {
		say_with_descriptors(WORKER_SOCKET, &message, 8 + sizeof message.cancel, 4);
	} else if (is("closes")) {
		close(WORKER_SOCKET);
		pause();
	} else if (is("sleeps")) {
		pause();
	} else if (is("spins") && job.raw_image.width == 10) {
		work(ENDLESS);
	} else if (is("spins on") && job.raw_image.width == 10) {
		say_image();
		if (chain->variant != VARIANT_REFERENCE)
			say_tile(0);
		work(ENDLESS);
	} else if (is("random")) {
		make_tiling();
		if (random_number(2))
			say_image();
		for (spoils = true;;)
			say_anything();
	} else {
		work(is("works") ? 0.8 : 0);
		filter_honestly();
	}
}

int main(void)
{
	struct message ready = {0};

	mode = getenv("CONVOLVED_HOSTILE");
	if (!mode)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	start_announce("convolved-codec", 0);
	ready.ready.formats = format_sets_known();
	say(&ready, MSG_READY);
	for (;;) {
		hear_until(MSG_JOB);
		if (job.raw)
			misbehave();
		else
			say_done(0); /* the canary's */
	}
}
