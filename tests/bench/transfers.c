#include "transfers.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "device/memory.h"

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

static void measure_device(const struct message_device *listed)
{
	struct device device;
	struct device_arena arena;
	struct direction direction[2] = {0};
	int in, out;

	if (device_open(&device, listed->platform, listed->device))
		return;
	if (arena_create("in", ARENA_SIZE, &in) || arena_create("out", ARENA_SIZE, &out) ||
	    device_arena_open(&arena, &device, in, ARENA_SIZE, out, ARENA_SIZE))
		return;
	if (open_direction(&direction[0], &device, arena.memory.in, true) &&
	    open_direction(&direction[1], &device, arena.memory.out, false))
		printf("%s: %.1f GB/s to the device, %.1f from it; both at once %.1f each\n",
		       device.name, measure(&direction[0], 1), measure(&direction[1], 1),
		       measure(direction, 2));
	for (int i = 0; i < 2; i++)
		close_direction(&direction[i]);
	device_arena_close(&arena);
	close(in);
	close(out);
	device_close(&device);
}

void print_transfers(void)
{
	struct message_device list[DEVICES_LISTED];
	size_t count = device_list(list, DEVICES_LISTED);

	for (size_t i = 0; i < count; i++)
		if (list[i].type == DEVICE_GPU)
			measure_device(&list[i]);
	fflush(stdout);
}
