/* convolved-codec: decodes images into tiles and encodes the results for the front at the other end
 * of its socket. Handles one job at a time, whose threads (job.c) write to the socket too. Nothing
 * must be saved: the worker exits as soon as the front is gone, even during a job. */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <vips/vips.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "codec/job.h"
#include "codec/repertoire.h"
#include "image/formats.h"
#include "process/sandbox.h"
#include "process/start.h"

/* OOM score: codec workers are killed first. Their job is repeated, or its client gets an error. */
enum { EXPENDABLE = 800 };

struct worker {
	struct job_place place;
	struct job *job; /* NULL: idle */
};

/* Decoders start a thread for each core that they may use. There is a worker for each core; and its
 * sandbox forbids the system call that asks for a thread's affinity. */
int pthread_getaffinity_np(pthread_t, size_t size, cpu_set_t *cores)
{
	memset(cores, 0, size);
	CPU_SET_S(0, size, cores);
	return 0;
}

static void drop_library_log(const char *domain, GLogLevelFlags, const char *text, void *)
{
	log_debug("%s: %s", domain ? domain : "glib", text);
}

static void hear(void *context);

static enum error start(struct worker *worker, const struct start *how)
{
	const uint64_t begun = now_ms();
	struct message message = {.type = MSG_READY};

	*worker = (struct worker){.place = {.socket = WORKER_SOCKET,
	                                    .finished = eventfd(0, EFD_CLOEXEC),
	                                    .hear = hear,
	                                    .context = worker}};
	/* Fewer heaps: freed memory is returned to the system sooner. */
	mallopt(M_ARENA_MAX, 4);
	/* But memory of a small job is kept for the next one, and memory of a piece of the
	 * reference for the next piece. */
	mallopt(M_TRIM_THRESHOLD, 32 << 20);
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	if (worker->place.finished < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return ERR_INTERNAL;
	/* libvips has one thread, which requests rows in order (encode.c depends on it, and readers
	 * that make rows need no lock), no cache and no temporary files. VIPSHOME keeps it from
	 * loading all existing modules. */
	setenv("VIPS_WARNING", "0", 1);
	setenv("VIPS_DISC_THRESHOLD", "1000g", 1);
	setenv("VIPSHOME", "/nonexistent", 1);
	if (VIPS_INIT("convolved-codec")) {
		log_error("cannot start libvips: %s", vips_error_buffer());
		return ERR_INTERNAL;
	}
	vips_concurrency_set(1);
	vips_cache_set_max(0);
	repertoire_init(how->formats);
	g_log_set_default_handler(drop_library_log, NULL);
	if (sandbox_enter(SANDBOX_CODEC, &(struct sandbox_access){.memory = how->memory})) {
		log_error("cannot enter the sandbox: %s", strerror(errno));
		return ERR_INTERNAL;
	}
	message.ready.formats = repertoire();
	message.ready.startup_ms = (uint32_t)(now_ms() - begun);
	return wire_send(worker->place.socket, &message, NULL);
}

static enum error send_done(const struct worker *worker, const struct message_job_done *done)
{
	struct message message = {.type = MSG_JOB_DONE, .job_done = *done};

	if (done->error)
		log_debug("job %" PRIu64 ": %s: %s", done->job, error_row(done->error)->title,
		          done->problem.detail);
	return wire_send(worker->place.socket, &message, NULL);
}

static enum error handle_message(struct worker *worker, const struct message *message,
                                 const int *fds)
{
	struct message_job_done done;
	enum error e = ERR_INTERNAL;

	switch (message->type) {
	case MSG_ARENA:
		if (!worker->place.arena.in && message->arena.in_size && message->arena.out_size)
			e = arena_map(&worker->place.arena, fds[0], message->arena.in_size,
			              PROT_READ | PROT_WRITE, fds[1], message->arena.out_size,
			              PROT_READ | PROT_WRITE);
		close(fds[0]);
		close(fds[1]);
		worker->place.arena_number = message->arena.arena;
		return e;
	case MSG_JOB:
		/* A second job, or a job before the arena, is the front's error. */
		if (worker->job || !worker->place.arena.in ||
		    message->job.arena != worker->place.arena_number)
			return ERR_INTERNAL;
		return job_start(&worker->job, &worker->place, &message->job, fds, &done)
		           ? send_done(worker, &done)
		           : ERR_OK;
	case MSG_WHOLE:
	case MSG_ANSWER:
	case MSG_TILE_DONE:
	case MSG_CANCEL:
		if (worker->job && job_hear(worker->job, message, fds))
			return ERR_OK;
		for (unsigned i = 0; i < message_fds(message->type); i++)
			close(fds[i]);
		if (message->type == MSG_CANCEL && !worker->job)
			kept_rows_free(&worker->place.kept);
		return ERR_OK;
	default:
		return ERR_INTERNAL;
	}
}

/* Receives and handles one message. Returns the exit status if the worker must end, else -1. */
static int receive(struct worker *worker)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX];

	switch (wire_receive(worker->place.socket, &message, fds)) {
	case WIRE_NOTHING:
		return -1;
	case WIRE_CLOSED:
		return 0;
	case WIRE_MESSAGE:
		if (handle_message(worker, &message, fds) == ERR_OK)
			return -1;
		log_error("cannot continue after the message %s", message_name(message.type));
		break;
	case WIRE_BROKEN:
		log_error("the front sent an invalid message");
		break;
	}
	return 1;
}

/* For a short job, which waits in the main thread. */
static void hear(void *context)
{
	const int status = receive(context);

	if (status >= 0)
		_exit(status);
}

/* Waits for the front, and for the end of the job in its thread. Without a job receive() waits. */
static int serve(struct worker *worker)
{
	int status = -1;

	while (status < 0) {
		struct pollfd events[] = {
		    {.fd = worker->place.socket, .events = POLLIN, .revents = POLLIN},
		    {.fd = worker->place.finished, .events = POLLIN}};
		struct message_job_done done;

		if (worker->job && poll(events, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return 1;
		}
		if (events[1].revents) {
			loop_await(worker->place.finished);
			job_finish(&worker->job, &done);
			if (send_done(worker, &done))
				return 1;
		}
		if (events[0].revents)
			status = receive(worker);
	}
	return status;
}

int main(void)
{
	static struct start how;
	struct worker worker;
	int status;

	start_receive("convolved-codec", EXPENDABLE, &how);
	status = start(&worker, &how) ? 1 : serve(&worker);
	/* The job's threads may still run: exit without waiting for them or freeing their data. */
	if (worker.job)
		_exit(status);
	close(worker.place.finished);
	if (worker.place.arena.in)
		arena_unmap(&worker.place.arena);
	vips_shutdown();
	return status;
}
