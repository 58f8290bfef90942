/* A simulated codec worker: reads a job, announces its image, hands out tiles as its slots allow,
 * may doubt results, and writes an answer. The image follows from the body's size, so that each run
 * of a job finds the same. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memfd.h"
#include "filters/chain.h"
#include "sim.h"

enum { IN_WORK_MAX = 6, ANSWER_MAX = 400000 };

struct codec_state {
	struct process *p;
	uint64_t arena; /* bytes */
	struct message_job job;
	uint64_t run; /* number of the events that count; grows with each job */
	bool has_job, has_result;
	struct image image, answer;
	struct tiling tiling;
	/* The sides that a device may do, and the tile for it: announced, sent, done. */
	enum tile_form form;
	enum { NO_WHOLE, WHOLE_AWAITED, WHOLE_SENT, WHOLE_DONE, WHOLE_COMPARED } whole;
	uint32_t next, back; /* tiles handed out, and the first that is not finished */
	struct {
		bool finished;
		uint32_t run; /* that is awaited */
	} tile[IN_WORK_MAX];
	int writer; /* -1: not here yet */
};

/* Bytes of the answer: the numbers that a run gathers, or of an image, which may be long. */
static size_t answer_size(const struct codec_state *c)
{
	const size_t pages = c->tiling.pages, small = 1 + c->job.body_size * 7 % 3000;

	struct image result = c->image;
	uint32_t width, height;

	result.width = c->tiling.width;
	result.height = c->tiling.height;
	gather_size(&c->job.gathering, &result, &width, &height);
	if (c->job.gathering.kind)
		return pages * width * height * sizeof(double);
	return sim_faults[FAULT_BIG_ANSWERS] ? ANSWER_MAX : small;
}

static void finish(struct codec_state *c, enum error error)
{
	static const uint32_t checks[] = {JPEG_SAME, JPEG_SAME, JPEG_DIFFERS};

	struct message done = {.type = MSG_JOB_DONE, .job_done = {.job = c->job.job}};

	done.job_done.error = error;
	done.job_done.input_format = FORMAT_PNM;
	if (error) {
		problem_set(&done.job_done.problem, error, "simulated");
	} else {
		done.job_done.format = FORMAT_PNM;
		done.job_done.image = c->answer;
		done.job_done.answer_size = answer_size(c);
		if (c->whole == WHOLE_COMPARED)
			done.job_done.jpeg = checks[sim_below(3)];
		done.job_done.kept = c->job.gathering.kind && sim_once_in(2);
	}
	file_close(&c->writer);
	c->has_job = false;
	c->run++;
	sim_work(c->p, false);
	sim_send(c->p, &done);
}

/* Writes the answer once its place is known and all tiles are back. */
static void write_answer(void *context, uint64_t run)
{
	static const char bytes[ANSWER_MAX];
	struct codec_state *c = context;

	if (run != c->run || c->p->has_ended || c->p->is_hung || sim_may_fail(c->p) ||
	    c->p->is_hung)
		return;
	must(file_write(c->writer, bytes, answer_size(c), 0));
	if (!sim_fault(FAULT_UNSEALED))
		memfd_seal(c->writer); /* fails for a file */
	finish(c, ERR_OK);
}

static void go_on(struct codec_state *c)
{
	if (c->has_result || c->writer < 0 || (c->whole != WHOLE_DONE && c->back < c->tiling.count))
		return;
	c->has_result = true;
	sim_after(sim_while(SIM_MS), write_answer, c, c->run);
}

static void send_tiles(struct codec_state *c)
{
	const uint32_t room = c->tiling.slots < IN_WORK_MAX ? c->tiling.slots : IN_WORK_MAX;
	struct message message = {.type = MSG_TILE};

	if (c->whole == WHOLE_AWAITED || c->whole == WHOLE_SENT || c->whole == WHOLE_DONE)
		return;
	while (c->has_job && c->next < c->tiling.count && c->next - c->back < room) {
		if (c->next > c->back &&
		    tiling_begins_anew(&c->tiling, c->next / c->tiling.strip_tiles))
			return;
		tiling_tile(&c->tiling, c->next++, &message.tile.tile);
		message.tile.tile.job = c->job.job;
		message.tile.tile.arena = c->p->number;
		sim_send(c->p, &message);
	}
}

/* Chooses sides that a device may do, if it may do any. */
static void choose_sides(struct codec_state *c)
{
	struct tiling spread = c->tiling;
	const enum tile_form form = (enum tile_form)sim_below(TILE_FORMS);

	c->form = TILE_PIXELS;
	c->whole = NO_WHOLE;
	if (form && c->tiling.pages == 1 && image_pixels(&c->image) <= c->job.jpeg_pixels &&
	    tiling_spread(&spread, form)) {
		c->form = form;
		c->whole = WHOLE_AWAITED;
	}
}

/* The front has agreed that a device does the announced sides. */
static void send_whole(struct codec_state *c)
{
	struct message message = {.type = MSG_TILE};
	struct tiling spread = c->tiling;

	must(c->whole == WHOLE_AWAITED && tiling_spread(&spread, c->form));
	tiling_whole_tile(&spread, c->form, 1000, &message.tile.tile);
	message.tile.tile.job = c->job.job;
	message.tile.tile.arena = c->p->number;
	c->whole = WHOLE_SENT;
	sim_send(c->p, &message);
}

/* That tile is back. If it has failed, tiles of pixels replace it; sometimes they are compared. */
static void take_whole(struct codec_state *c, const struct message_tile_done *done)
{
	c->whole = done->error || done->jpeg_flags ? NO_WHOLE
	           : sim_once_in(4)                ? WHOLE_COMPARED
	                                           : WHOLE_DONE;
	sim_counts[COUNT_WHOLE] += c->whole != NO_WHOLE;
	send_tiles(c);
	go_on(c);
}

static void announce(void *context, uint64_t run)
{
	struct codec_state *c = context;
	struct message m = {.type = MSG_IMAGE, .image = {.job = c->job.job}};

	if (run != c->run || sim_may_fail(c->p) || c->p->is_hung)
		return;
	if (sim_fault(FAULT_BAD_IMAGE)) {
		finish(c, ERR_NOT_AN_IMAGE);
		return;
	}
	m.image.whole = m.image.image = c->image;
	m.image.answer = c->answer;
	m.image.pages = c->tiling.pages;
	m.image.input_format = FORMAT_PNM;
	m.image.tiles = c->tiling.count;
	choose_sides(c);
	m.image.late = c->tiling.count == 1 && !c->form && sim_once_in(2);
	for (int side = 0; side < JPEG_SIDES; side++)
		m.image.jpeg[side] = c->form >> side & 1 ? JPEG_REASON_NONE : JPEG_REASON_BODY;
	sim_send(c->p, &m);
	if (!c->p->has_ended)
		send_tiles(c);
}

static void begin_job(struct codec_state *c, const struct message_job *job, const int *fds)
{
	struct problem problem;
	struct chain *chain;
	enum error e;

	must(!c->has_job && job->arena == c->p->number && c->arena);
	must(!chain_take(fds[1], &chain));
	close(fds[0]);
	close(fds[1]);
	c->job = *job;
	c->has_job = true;
	c->has_result = false;
	c->next = c->back = 0;
	memset(c->tile, 0, sizeof c->tile);
	c->image = (struct image){.width = 16 + (uint32_t)(job->body_size * 13 % 200),
	                          .height = 16 + (uint32_t)(job->body_size * 31 % 900),
	                          .bands = job->body_size % 2 ? 1 : 3};
	if (image_pixels(&c->image) > job->pixels_max) /* the canary's */
		c->image = (struct image){.width = 16, .height = 16, .bands = 1};
	c->answer = c->image;
	sim_work(c->p, true);
	e = tiling_init(&c->tiling, chain, &c->image, c->arena, c->arena, job->samples_max,
	                &problem);
	if (!e && job->page == PAGES_ALL) {
		tiling_set_pages(&c->tiling, 1 + (uint32_t)(job->body_size % 3));
		c->tiling.apart = chain_pages(chain) > 1;
	}
	c->answer.width = c->tiling.width;
	c->answer.height = c->tiling.height;
	free(chain);
	if (e)
		finish(c, e);
	else
		sim_after(sim_while(2 * SIM_MS), announce, c, c->run);
}

/* A tile is finished unless it is doubtful; it then runs again, on the same device and perhaps on
 * another one. */
static void take_tile(struct codec_state *c, const struct message_tile_done *done)
{
	struct message m = {.type = MSG_VERIFIED, .verified = {.job = c->job.job}};
	const unsigned place = done->index % IN_WORK_MAX;
	const uint32_t run = c->tile[place].run;
	const bool doubts = sim_devices_are_wrong() || sim_fault(FAULT_DOUBT);

	if (!c->has_job || done->job != c->job.job)
		return;
	if (c->whole == WHOLE_SENT) {
		take_whole(c, done);
		return;
	}
	must(done->index >= c->back && done->index < c->next && !c->tile[place].finished);
	if (done->error) {
		finish(c, (enum error)done->error);
		return;
	}
	if (run || c->job.verify || doubts) {
		m.verified.index = done->index;
		m.verified.run = run;
		m.verified.samples = 100;
		m.verified.same = !sim_devices_are_wrong();
		m.verified.mismatches = doubts ? 3 : 0;
		sim_send(c->p, &m);
		if (doubts && (!run || (run == 1 && done->others))) {
			c->tile[place].run++;
			return;
		}
	}
	c->tile[place].finished = true;
	for (; c->tile[c->back % IN_WORK_MAX].finished; c->back++)
		memset(&c->tile[c->back % IN_WORK_MAX], 0, sizeof *c->tile);
	send_tiles(c);
	go_on(c);
}

static void cancel(void *context, uint64_t run)
{
	struct codec_state *c = context;

	if (run == c->run && c->has_job && !c->p->has_ended && !c->p->is_hung)
		finish(c, ERR_CANCELLED);
}

static void message(struct process *p, const struct message *m, const int *fds)
{
	struct codec_state *c = p->state;

	switch ((enum message_type)m->type) {
	case MSG_ARENA:
		c->arena = m->arena.in_size;
		close(fds[0]);
		close(fds[1]);
		break;
	case MSG_JOB:
		begin_job(c, &m->job, fds);
		break;
	case MSG_WHOLE:
		if (c->has_job && m->whole.job == c->job.job)
			send_whole(c);
		break;
	case MSG_ANSWER:
		close(fds[1]);
		if (!c->has_job || m->answer.job != c->job.job) {
			close(fds[0]);
			break;
		}
		must(c->writer < 0);
		c->writer = fds[0];
		if (c->whole == WHOLE_AWAITED) { /* the front prefers pixels */
			c->whole = NO_WHOLE;
			send_tiles(c);
		}
		go_on(c);
		break;
	case MSG_TILE_DONE: /* a hang without a job shows only at the next one */
		if (c->has_job && !sim_may_fail(p) && !p->is_hung)
			take_tile(c, &m->tile_done);
		break;
	case MSG_CANCEL:
		if (c->has_job && m->cancel.job == c->job.job && !sim_fault(FAULT_DEAF))
			sim_after(sim_while(5 * SIM_MS), cancel, c, c->run);
		break;
	default:
		violated("a codec got %s", message_name(m->type));
	}
}

static void prepare(struct process *p, struct message_ready *ready)
{
	struct codec_state *c = p->state = calloc(1, sizeof *c);

	must(c);
	c->p = p;
	c->writer = -1;
	ready->formats = format_sets_known();
}

static void down(struct process *p)
{
	struct codec_state *c = p->state;

	if (!c)
		return;
	file_close(&c->writer);
	c->run++;
}

const struct program sim_codec = {"convolved-codec", prepare, message, down};
