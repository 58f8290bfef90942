/* convolved-codec: decodes images into tiles and encodes filtered tiles, one job at a time.
 *
 * Three threads: this one listens to the front; for each job one encodes, and starts and joins one
 * that decodes. What they share is in struct tiles, under its lock. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/decode.h"
#include "codec/encode.h"
#include "codec/sandbox.h"
#include "codec/tiles.h"
#include "common/log.h"

/* The worker; this thread's, but for what the job's threads use of the job under way. */
static struct worker {
	struct tiles tiles;
	int body, answer; /* of the job under way */
	bool joinable;
	pthread_t job;
	uint64_t decode_ns, encode_ns;
	struct input input;
	struct output output;
} worker = {.tiles = {.socket = WORKER_SOCKET,
                      .lock = PTHREAD_MUTEX_INITIALIZER,
                      .changed = PTHREAD_COND_INITIALIZER}};

static void *decode(void *context)
{
	struct worker *w = context;

	w->decode_ns += input_decode(&w->input, &w->tiles);
	vips_thread_shutdown();
	return NULL;
}

/* Opens input and output and tells the front what is coming. */
static enum error prepare(struct worker *w, struct problem *problem)
{
	struct tiles *t = &w->tiles;
	struct message message = {.type = MSG_IMAGE, .image = {.job = t->job.job}};
	enum error e = input_open(&w->input, &t->job, w->body, problem);

	if (!e)
		e = chain_border_pixel(t->chain, &w->input.image, t->border_pixel, problem);
	if (!e)
		e = tiling_init(&t->tiling, t->chain, &w->input.image, t->arena.in_size, t->arena.out_size,
		                t->job.samples_max, problem);
	if (!e)
		e = output_open(&w->output, &w->input, t, w->answer, problem);
	if (e)
		return e;
	message.image.image = w->input.image;
	message.image.input_format = w->input.format;
	message.image.tiles = t->tiling.count;
	if (wire_send(t->socket, &message, NULL))
		return problem_set(problem, ERR_IO, "the front does not listen");
	return ERR_OK;
}

static void report(struct worker *w)
{
	struct tiles *t = &w->tiles;
	struct message message = {.type = MSG_JOB_DONE,
	                          .job_done = {.job = t->job.job,
	                                       .format = w->output.format,
	                                       .image = w->output.image,
	                                       .input_format = w->input.format,
	                                       .decode_ns = w->decode_ns,
	                                       .encode_ns = w->encode_ns}};
	struct stat status;

	pthread_mutex_lock(&t->lock);
	message.job_done.error = t->error;
	message.job_done.problem = t->problem;
	t->active = false;
	pthread_mutex_unlock(&t->lock);
	if (!message.job_done.error && !fstat(w->answer, &status))
		message.job_done.answer_size = (uint64_t)status.st_size;
	close(w->body);
	close(w->answer);
	if (wire_send(t->socket, &message, NULL))
		log_error("the front does not take the end of job %llu",
		          (unsigned long long)t->job.job);
}

/* The job's thread: opens, decodes on another thread while it encodes, reports. */
static void *run_job(void *context)
{
	struct worker *w = context;
	uint64_t start = tiles_now();
	struct problem problem;
	pthread_t decoder;
	enum error e;

	w->input = (struct input){0};
	w->output = (struct output){0};
	w->encode_ns = 0;
	e = prepare(w, &problem);
	w->decode_ns = tiles_now() - start;
	if (!e && pthread_create(&decoder, NULL, decode, w))
		e = problem_set(&problem, ERR_MEMORY, "no memory for the decoder");
	if (e) {
		tiles_fail(&w->tiles, e, &problem);
	} else {
		w->encode_ns = output_encode(&w->output);
		pthread_join(decoder, NULL);
	}
	output_close(&w->output);
	input_close(&w->input);
	report(w);
	vips_thread_shutdown();
	return NULL;
}

static void join_job(struct worker *w)
{
	if (w->joinable)
		pthread_join(w->job, NULL);
	w->joinable = false;
}

static enum error take_job(struct worker *w, const struct message_job *job, const int fds[3])
{
	struct tiles *t = &w->tiles;
	enum error e;

	join_job(w); /* it has reported, or the front would not send another */
	t->job = *job;
	w->body = fds[0];
	w->answer = fds[1];
	e = sealed_read(fds[2], t->chain, sizeof *t->chain);
	close(fds[2]);
	if (e || !chain_valid(t->chain) || !t->arena.in)
		return ERR_BAD_REQUEST;
	t->error = ERR_OK;
	t->problem = (struct problem){{0}, {0}, {0}};
	tiles_begin(t);
	if (pthread_create(&w->job, NULL, run_job, w))
		return ERR_MEMORY;
	w->joinable = true;
	return ERR_OK;
}

static enum error take_arena(struct worker *w, const struct message_arena *m, const int fds[2])
{
	enum error e = arena_map(&w->tiles.arena, fds[0], m->in_size, PROT_READ | PROT_WRITE, fds[1],
	                         m->out_size, PROT_READ);

	w->tiles.arena_number = m->arena;
	close(fds[0]);
	close(fds[1]);
	return e;
}

static void take_cancel(struct worker *w, const struct message_cancel *m)
{
	struct problem problem;

	if (m->job == w->tiles.job.job)
		tiles_fail(&w->tiles, problem_set(&problem, ERR_TIMEOUT, "the job was cancelled"),
		           &problem);
}

static enum error take(struct worker *w, const struct message *message, const int *fds)
{
	switch (message->type) {
	case MSG_ARENA:
		return take_arena(w, &message->arena, fds);
	case MSG_JOB:
		return take_job(w, &message->job, fds);
	case MSG_TILE_DONE:
		tiles_take_done(&w->tiles, &message->tile_done);
		return ERR_OK;
	case MSG_CANCEL:
		take_cancel(w, &message->cancel);
		return ERR_OK;
	default:
		return ERR_BAD_REQUEST;
	}
}

/* Until the front closes the socket; returns the exit status. The arena is mapped before the sandbox
 * counts the address space. */
static int serve(struct worker *w, uint64_t memory, uint64_t started)
{
	struct message message = {.type = MSG_READY};
	int fds[MESSAGE_FDS_MAX];
	bool locked = false;

	message.ready.startup_ms = (uint32_t)((tiles_now() - started) / 1000000);
	if (wire_send(WORKER_SOCKET, &message, NULL))
		return 1;
	for (;;) {
		enum wire_result result = wire_receive(WORKER_SOCKET, &message, fds);

		if (result != WIRE_MESSAGE)
			return result == WIRE_CLOSED ? 0 : 1;
		if (!locked && message.type != MSG_ARENA)
			return 1;
		if (take(w, &message, fds))
			return 1;
		if (!locked && sandbox_enter(memory))
			return 1;
		locked = true;
	}
}

/* Only the loaders of the formats that are served; and no thread of libvips' own, for their order. */
static bool vips_prepare(void)
{
	static const char *const loaders[] = {"VipsForeignLoadJpeg", "VipsForeignLoadPng",
	                                      "VipsForeignLoadWebp", "VipsForeignLoadTiff",
	                                      "VipsForeignLoadNsgif", "VipsForeignLoadPpm"};

	setenv("VIPS_WARNING", "0", 1);
	setenv("VIPS_DISC_THRESHOLD", "1000g", 1);
	if (VIPS_INIT("convolved-codec"))
		return false;
	vips_concurrency_set(1);
	vips_cache_set_max(0);
	vips_operation_block_set("VipsForeignLoad", TRUE);
	for (size_t i = 0; i < sizeof loaders / sizeof *loaders; i++)
		vips_operation_block_set(loaders[i], FALSE);
	return true;
}

static void print_help(void)
{
	puts("Usage: convolved-codec [--log-level LEVEL] [--memory BYTES]\n"
	     "Decodes and encodes images for convolved, which starts it with a socket as "
	     "descriptor 3.");
}

int main(int argc, char **argv)
{
	static const struct option flags[] = {{"log-level", required_argument, NULL, 'l'},
	                                      {"memory", required_argument, NULL, 'm'},
	                                      {"help", no_argument, NULL, 'h'},
	                                      {"version", no_argument, NULL, 'v'},
	                                      {NULL, 0, NULL, 0}};
	uint64_t memory = UINT64_C(2) << 30, started = tiles_now();
	int flag, level = LOG_LEVEL_INFO;

	while ((flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
		if (flag == 'h' || flag == 'v') {
			flag == 'h' ? print_help() : (void)puts(PACKAGE_STRING);
			return 0;
		}
		if (flag == 'l')
			level = log_level_parse(optarg);
		if (flag == 'm')
			memory = strtoull(optarg, NULL, 10);
		if (flag == '?' || level < 0)
			return 2;
	}
	log_init("convolved-codec", (enum log_level)level);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	worker.tiles.chain = malloc(sizeof *worker.tiles.chain);
	if (!worker.tiles.chain || !vips_prepare()) {
		log_error("cannot start libvips");
		return 1;
	}
	return serve(&worker, memory, started);
}
