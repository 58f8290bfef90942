/* The test tile: a small image through filters of every kind, compared whole with the reference. It
 * is small enough to be made and compared here, in a few milliseconds: no codec worker is needed,
 * and none can vouch for a device. */
#include "front/proof.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/difference.h"
#include "common/log.h"
#include "front/loop.h"

enum { SIDE = 64, BANDS = 3, ARENA_SIZE = 1 << 18 };

/* In this order no filter makes much more of what one before it may be off. */
static const char filters[] =
    "sobel,bilateral=radius=1,gaussian=size=5,convolve=kernel=0 1 0;1 4 1;0 1 0";

static const struct image image = {.width = SIDE, .height = SIDE, .bands = BANDS, .type = PIXEL_U8};

struct proof {
	struct chain chain;
	struct arena memory;
	int in, out, chain_fd;
	bool mapped;
	struct tile tile;
	struct reference expected;
	uint64_t sent;
};

static int clamp(int i)
{
	return i < 0 ? 0 : i < SIDE ? i : SIDE - 1;
}

/* Neighbours differ, but not by so much that most gradients are out of range. */
static uint8_t sample(int x, int y, int band)
{
	return (uint8_t)(x * 5 + y * 3 + x * y % 8 * 4 + band * 40);
}

/* The tile's input with its halo, the image's edge repeated. */
static void fill_input(struct proof *p, int halo_x, int halo_y)
{
	uint8_t *in = (uint8_t *)p->memory.in + p->tile.in;

	for (int y = -halo_y; y < SIDE + halo_y; y++)
		for (int i = -halo_x * BANDS; i < (SIDE + halo_x) * BANDS; i++) {
			int x = (i + halo_x * BANDS) / BANDS - halo_x;

			in[y * (int)p->tile.in_pitch + i] =
			    sample(clamp(x), clamp(y), i - x * BANDS);
		}
}

static enum error compute_expected(struct proof *p)
{
	uint8_t pixels[SIDE * SIDE * BANDS];

	for (int i = 0; i < SIDE * SIDE * BANDS; i++)
		pixels[i] = sample(i / BANDS % SIDE, i / BANDS / SIDE, i % BANDS);
	return reference_filter(&p->chain, &image, pixels, &p->expected);
}

/* What is opened is what is not -1, and mapped. */
static enum error open_memory(struct proof *p)
{
	if (sealed_create("proof", &p->chain, chain_size(&p->chain), &p->chain_fd)) {
		p->chain_fd = -1;
		return ERR_IO;
	}
	if (arena_create("proof-in", ARENA_SIZE, &p->in)) {
		p->in = -1;
		return ERR_IO;
	}
	if (arena_create("proof-out", ARENA_SIZE, &p->out)) {
		p->out = -1;
		return ERR_IO;
	}
	p->mapped = !arena_map(&p->memory, p->in, ARENA_SIZE, PROT_READ | PROT_WRITE, p->out,
	                       ARENA_SIZE, PROT_READ);
	return p->mapped ? ERR_OK : ERR_IO;
}

static enum error proof_open(struct proof *p)
{
	struct tiling tiling;
	struct problem problem;
	enum error e;

	p->in = p->out = p->chain_fd = -1;
	chain_init(&p->chain);
	e = chain_parse(&p->chain, filters, &problem);
	if (!e)
		e = tiling_init(&tiling, &p->chain, &image, ARENA_SIZE, ARENA_SIZE, ARENA_SIZE,
		                &problem);
	if (!e)
		e = open_memory(p);
	if (e)
		return e;
	tiling_tile(&tiling, 0, UINT64_MAX, PROOF_ARENA, &p->tile);
	fill_input(p, (int)tiling.halo_x, (int)tiling.halo_y);
	return compute_expected(p);
}

struct proof *proof_new(void)
{
	struct proof *p = calloc(1, sizeof *p);

	if (p && proof_open(p)) {
		log_error("there is no room for a test tile");
		proof_free(&p);
	}
	return p;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void proof_free(struct proof **proof)
{
	struct proof *p = *proof;

	if (!p)
		return;
	reference_fini(&p->expected);
	if (p->mapped)
		arena_unmap(&p->memory);
	close_if_open(p->in);
	close_if_open(p->out);
	close_if_open(p->chain_fd);
	free(p);
	*proof = NULL;
}

bool proof_send(struct proof *p, struct worker *worker)
{
	struct message arena = {.type = MSG_ARENA,
	                        .arena = {PROOF_ARENA, 0, ARENA_SIZE, ARENA_SIZE}};
	struct message plan = {.type = MSG_PLAN, .plan = {.plan = UINT64_MAX, .image = image}};
	struct message tile = {.type = MSG_TILE, .tile = {p->tile, UINT64_MAX}};
	int fds[] = {p->in, p->out};

	p->sent = loop_now();
	return worker_send(worker, &arena, fds) && worker_send(worker, &plan, &p->chain_fd) &&
	       worker_send(worker, &tile, NULL);
}

uint64_t proof_sent(const struct proof *p)
{
	return p->sent;
}

bool proof_holds(const struct proof *p, const struct message_tile_done *done)
{
	struct difference difference = {0};

	if (done->job != p->tile.job || done->index != p->tile.index)
		return false;
	if (done->error) {
		log_warning("the test tile failed: %s (OpenCL %d)",
		            error_title((enum error)done->error), done->cl_error);
		return false;
	}
	difference_add(&difference, &p->expected, (const uint8_t *)p->memory.out + p->tile.out,
	               p->tile.out_pitch);
	if (difference.mismatches)
		log_warning("the test tile has %llu wrong samples",
		            (unsigned long long)difference.mismatches);
	return !difference.mismatches;
}
