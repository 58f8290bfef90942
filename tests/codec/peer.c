/* Front and device in one: sends a job, copies the middle of every tile, or what lies beside it, to
 * the output arena, and collects the answer. */
#include "base/log.h"
#include "base/memfd.h"
#include "peer.h"
#include "process/start.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void run_program(const char *program, int socket)
{
	if (socket == WORKER_SOCKET)
		fcntl(socket, F_SETFD, 0);
	else
		dup2(socket, WORKER_SOCKET);
	execl(program, program, "codec-0", (char *)NULL);
	die(program);
}

static void expect_type(struct peer *peer, enum message_type type)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX];

	if (wire_receive(peer->socket, &message, fds) != WIRE_MESSAGE || message.type != type)
		die(message_name(type));
}

void peer_start(struct peer *peer, const char *program, uint64_t size)
{
	const struct start start = {.log_level = LOG_LEVEL_WARNING,
	                            .formats = format_sets_known().read,
	                            .memory = UINT64_C(2) << 30};
	struct message message = {.type = MSG_START};
	int sockets[2], fds[MESSAGE_FDS_MAX];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		die("socketpair");
	peer->pid = fork();
	if (peer->pid == 0)
		run_program(program, sockets[1]);
	close(sockets[1]);
	peer->socket = sockets[0];
	expect_type(peer, MSG_HELLO);
	if (memfd_sealed("start", &start, sizeof start, &fds[0]) ||
	    wire_send(peer->socket, &message, fds))
		die("MSG_START");
	close(fds[0]);
	expect_type(peer, MSG_READY);
	if (memfd_fixed("in", size, &fds[0]) || memfd_fixed("out", size, &fds[1]) ||
	    arena_map(&peer->arena, fds[0], size, PROT_READ, fds[1], size, PROT_READ | PROT_WRITE))
		die("arena");
	message = (struct message){.type = MSG_ARENA};
	message.arena = (struct message_arena){.arena = 7, .in_size = size, .out_size = size};
	if (wire_send(peer->socket, &message, fds))
		die("MSG_ARENA");
	close(fds[0]);
	close(fds[1]);
}

int peer_stop(struct peer *peer)
{
	int status;

	close(peer->socket);
	waitpid(peer->pid, &status, 0);
	arena_unmap(&peer->arena);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void filter_tile(const struct peer *peer, const struct tile *t, const struct chain *chain,
                        const struct image *image, int shift)
{
	const size_t pixel = image_pixel_size(image);
	uint32_t halo_x, halo_y;

	chain_halo(chain, &halo_x, &halo_y);
	for (uint32_t y = 0; y < t->height; y++) {
		int64_t row = (int64_t)y + shift * (int64_t)halo_y;

		memcpy((uint8_t *)peer->arena.out + t->out + (uint64_t)y * t->out_pitch,
		       (const uint8_t *)peer->arena.in + t->in + row * t->in_pitch +
		           shift * (int64_t)(halo_x * pixel),
		       t->width * pixel);
	}
}

static bool send_answer_file(const struct peer *peer, const struct reply *reply)
{
	struct message message = {.type = MSG_ANSWER, .answer = {.job = reply->header.job}};

	return !wire_send(peer->socket, &message, reply->file);
}

static bool handle_tile(const struct peer *peer, const struct request *request,
                        const struct chain *chain, const struct tile *tile, struct reply *reply)
{
	struct message message = {.type = MSG_TILE_DONE};
	const struct image image = image_plane(&reply->header.image);

	if (!reply->has_header ||
	    !tile_valid(tile, &image, chain, peer->arena.in_size, peer->arena.out_size))
		return false;
	if (request->leave_at == (int)tile->index + 1)
		return false;
	if (request->cancel_at == (int)tile->index + 1) {
		message = (struct message){.type = MSG_CANCEL, .cancel = {.job = tile->job}};
		return !wire_send(peer->socket, &message, NULL);
	}
	message.tile_done.job = tile->job;
	message.tile_done.index = tile->index;
	if (request->fail_at == (int)tile->index + 1) {
		message.tile_done.error = ERR_DEVICE;
		message.tile_done.cl_error = -5;
	} else {
		filter_tile(peer, tile, chain, &image, request->shift);
	}
	if (reply->header.late && !send_answer_file(peer, reply))
		return false;
	return !wire_send(peer->socket, &message, NULL);
}

static bool readable(int socket)
{
	struct pollfd event = {.fd = socket, .events = POLLIN};

	return poll(&event, 1, 0) == 1;
}

/* Handles messages until the job is done. Tiles are held back as long as more messages wait. */
static bool converse(struct peer *peer, const struct request *request, const struct chain *chain,
                     struct reply *reply)
{
	static struct message message;
	struct tile held[SLOTS_MAX];
	uint32_t count = 0;
	int fds[MESSAGE_FDS_MAX];

	for (;;) {
		if (wire_receive(peer->socket, &message, fds) != WIRE_MESSAGE)
			return false;
		if (message.type == MSG_JOB_DONE) {
			reply->done = message.job_done;
			return true;
		}
		if (message.type == MSG_IMAGE) {
			reply->header = message.image;
			reply->has_header = true;
			if (!reply->header.late && !send_answer_file(peer, reply))
				return false;
		} else if (message.type == MSG_TILE && count < SLOTS_MAX) {
			held[count++] = message.tile.tile;
		} else {
			return false;
		}
		if (count < SLOTS_MAX && request->reverse && readable(peer->socket))
			continue;
		while (count)
			if (!handle_tile(peer, request, chain, &held[--count], reply))
				return false;
	}
}

static void make_chain(const struct request *request, struct chain *chain)
{
	struct problem problem;

	chain_init(chain);
	chain->border = request->border;
	if (chain_parse(chain, request->filters ? request->filters : "box=size=3", &problem) ||
	    (request->border_value &&
	     chain_set_border_value(chain, request->border_value, &problem)))
		die(problem.detail);
}

static void make_job(const struct request *request, const struct file *body,
                     struct message *message)
{
	static uint64_t number;
	const uint64_t plenty = UINT64_C(1) << 40;

	*message = (struct message){.type = MSG_JOB};
	message->job.job = ++number;
	message->job.arena = 7;
	message->job.format = request->format;
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		message->job.accept[f] = ACCEPT_MOST;
	message->job.strip = request->strip;
	message->job.roi = request->roi;
	if (request->target) {
		message->job.has_target = 1;
		message->job.target_x = request->target[0];
		message->job.target_y = request->target[1];
	}
	message->job.gathering.kind = request->gather;
	message->job.follows = request->follows;
	if (request->raw) {
		message->job.raw = 1;
		message->job.raw_image = request->raw->image;
	}
	message->job.body_size = body->size;
	message->job.pixels_max = request->pixels_max ? request->pixels_max : plenty;
	message->job.buffered_size_max =
	    request->buffered_size_max ? request->buffered_size_max : plenty;
	message->job.samples_max = request->samples_max ? request->samples_max : 1 << 22;
}

static void read_answer(struct reply *reply)
{
	size_t size = reply->done.answer_size;

	if (reply->done.error)
		return;
	reply->answer = malloc(size + 1);
	if (!reply->answer || pread(reply->file[1], reply->answer, size, 0) != (ssize_t)size)
		die("answer");
	if ((fcntl(reply->file[0], F_GET_SEALS) & SEALS_FINAL) != SEALS_FINAL)
		die("the worker has not sealed the answer");
}

bool peer_run(struct peer *peer, const struct request *request, struct reply *reply)
{
	static struct chain chain;
	static struct message message;
	struct file body = request->body;
	int fds[2];
	bool ok;

	if (request->raw)
		body = (struct file){request->raw->pixels, image_size(&request->raw->image)};
	memset(reply, 0, sizeof *reply);
	make_chain(request, &chain);
	make_job(request, &body, &message);
	reply->file[0] = memfd_create("answer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	reply->file[1] = dup(reply->file[0]);
	if (reply->file[1] < 0 || memfd_sealed("body", body.bytes, body.size, &fds[0]) ||
	    memfd_sealed("chain", &chain, chain_size(&chain), &fds[1]))
		die("job");
	ok = !wire_send(peer->socket, &message, fds) && converse(peer, request, &chain, reply) &&
	     reply->done.job == message.job.job;
	if (ok)
		read_answer(reply);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(reply->file[i]);
	}
	return ok;
}

void reply_fini(struct reply *reply)
{
	free(reply->answer);
	reply->answer = NULL;
}
