#include "transfers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memfd.h"
#include "bench.h"
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

/* GB/s of each of these directions while all of them copy. */
static double measure(struct direction *directions, int count)
{
	double started = 0;

	for (int round = -2; round < ROUNDS; round++) {
		if (round == 0) {
			for (int i = 0; i < count; i++)
				clFinish(directions[i].queue);
			started = seconds_now();
		}
		for (int i = 0; i < count; i++)
			enqueue(&directions[i]);
	}
	for (int i = 0; i < count; i++)
		clFinish(directions[i].queue);
	return (double)ARENA_SIZE * ROUNDS / (seconds_now() - started) * 1e-9;
}

static bool open_direction(struct direction *d, const struct device *device, void *host,
                           bool to_device)
{
	cl_int code;

	*d = (struct direction){
	    .queue = device_queue(device, 0), .host = host, .to_device = to_device};
	d->buffer = device_buffer(device, CL_MEM_READ_WRITE, ARENA_SIZE, NULL, &code);
	return d->queue && !code;
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
	for (int i = 0; i < 2; i++) {
		object_release(OBJECT_BUFFER, p->direction[i].buffer);
		object_release(OBJECT_QUEUE, p->direction[i].queue);
	}
	device_arena_close(&p->arena);
	close(p->in);
	close(p->out);
	device_close(&p->device);
}

void print_transfers(void)
{
	static struct peer peers[DEVICES_LISTED];
	struct direction all[2 * DEVICES_LISTED];
	struct message_device list[DEVICES_LISTED];
	size_t listed = device_list(list, DEVICES_LISTED);
	int count = 0;

	for (size_t i = 0; i < listed; i++)
		if (list[i].type == DEVICE_GPU && open_peer(&peers[count], &list[i])) {
			memcpy(&all[2 * count], peers[count].direction, sizeof peers->direction);
			count++;
		}
	for (int i = 0; i < count; i++)
		printf("%s: %.1f GB/s to the device, %.1f from it; both at once %.1f each\n",
		       peers[i].device.name, measure(&all[2 * i], 1), measure(&all[2 * i + 1], 1),
		       measure(&all[2 * i], 2));
	if (count > 1)
		printf("all %d at once, both directions: %.1f GB/s each\n", count,
		       measure(all, 2 * count));
	for (int i = 0; i < count; i++)
		close_peer(&peers[i]);
	fflush(stdout);
}
