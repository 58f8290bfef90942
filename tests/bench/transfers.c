#include "transfers.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/memfd.h"
#include "device/cl/opencl.h"

enum { ARENA_SIZE = 128 << 20, ROUNDS = 20, DEVICES_LISTED = 64 };

/* One direction's queue and buffer. */
struct direction {
	cl_command_queue queue;
	cl_mem buffer;
	void *host;
	bool to_device;
};

static void enqueue(struct direction *d)
{
	if (d->to_device)
		clEnqueueWriteBuffer(d->queue, d->buffer, CL_FALSE, 0, ARENA_SIZE, d->host, 0, NULL,
		                     NULL);
	else
		clEnqueueReadBuffer(d->queue, d->buffer, CL_FALSE, 0, ARENA_SIZE, d->host, 0, NULL,
		                    NULL);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* GB/s of each of these directions while all of them copy. */
static double measure(struct direction *directions, int count)
{
	double started = 0;

	for (int round = -2; round < ROUNDS; round++) {
		if (round == 0) {
			for (int i = 0; i < count; i++)
				clFinish(directions[i].queue);
			started = seconds();
		}
		for (int i = 0; i < count; i++)
			enqueue(&directions[i]);
	}
	for (int i = 0; i < count; i++)
		clFinish(directions[i].queue);
	return (double)ARENA_SIZE * ROUNDS / (seconds() - started) * 1e-9;
}

static bool open_direction(struct direction *d, const struct device *device, void *host,
                           bool to_device)
{
	cl_int code;

	*d = (struct direction){.host = host, .to_device = to_device};
	d->queue = clCreateCommandQueue(device->context, device->id, 0, &code);
	if (!code)
		d->buffer =
		    clCreateBuffer(device->context, CL_MEM_READ_WRITE, ARENA_SIZE, NULL, &code);
	return !code;
}

static void close_direction(struct direction *d)
{
	if (d->buffer)
		clReleaseMemObject(d->buffer);
	if (d->queue)
		clReleaseCommandQueue(d->queue);
}

/* A device with memory of the host for each direction. */
struct peer {
	struct device device;
	struct device_arena arena;
	struct direction direction[2];
	int in, out;
};

static bool open_peer(struct peer *p, const struct message_device *listed)
{
	return !device_open(&p->device, listed->platform, listed->device) &&
	       !memfd_fixed("in", ARENA_SIZE, &p->in) && !memfd_fixed("out", ARENA_SIZE, &p->out) &&
	       !device_arena_open(&p->arena, &p->device, p->in, ARENA_SIZE, p->out, ARENA_SIZE) &&
	       open_direction(&p->direction[0], &p->device, p->arena.memory.in, true) &&
	       open_direction(&p->direction[1], &p->device, p->arena.memory.out, false);
}

static void close_peer(struct peer *p)
{
	for (int i = 0; i < 2; i++)
		close_direction(&p->direction[i]);
	device_arena_close(&p->arena);
	close(p->in);
	close(p->out);
	device_close(&p->device);
}

static void print_peers(struct peer *peers, int count)
{
	struct direction all[2 * DEVICES_LISTED];

	for (int i = 0; i < count; i++) {
		struct peer *p = &peers[i];

		printf("%s: %.1f GB/s to the device, %.1f from it; both at once %.1f each\n",
		       p->device.name, measure(&p->direction[0], 1), measure(&p->direction[1], 1),
		       measure(p->direction, 2));
		all[2 * i] = p->direction[0];
		all[2 * i + 1] = p->direction[1];
	}
	if (count > 1)
		printf("all %d at once, both directions: %.1f GB/s each\n", count,
		       measure(all, 2 * count));
}

void print_transfers(void)
{
	static struct peer peers[DEVICES_LISTED];
	struct message_device list[DEVICES_LISTED];
	size_t listed = device_list(list, DEVICES_LISTED);
	int count = 0;

	for (size_t i = 0; i < listed; i++)
		if (list[i].type == DEVICE_GPU && open_peer(&peers[count], &list[i]))
			count++;
	print_peers(peers, count);
	for (int i = 0; i < count; i++)
		close_peer(&peers[i]);
	fflush(stdout);
}
