/* JPEG on a device, and on all cores by libjpeg-turbo.
 *
 * bench_jpeg [-f] [-s SECONDS] [-c PROCESSES] [-b BATCHES] FILE
 *
 * Prints the images a second that PROCESSES (one a core; 0: none) decode and encode, 4:2:0, by
 * libjpeg-turbo, and without -f: the same on the first GPU, or else the first device. There, for
 * each of BATCHES ("1,4,16"), three queues work for SECONDS (3) each, with the transfers of encoded
 * bytes from and to pinned memory; in the end one image at a time. `convolved-bench --filter jpeg`
 * times the kernels, and compares the results. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memfd.h"
#include "bench.h"
#include "device/cl/environment.h"
#include "device/jpeg.h"
#include "turbo.h"

enum { QUEUES = 3, BATCHES_MAX = 8, COPIES = 4, PAGE = 4096 };
enum { DECODE = TURBO_DECODE, ENCODE = TURBO_ENCODE, BOTH = DECODE | ENCODE };

static const char *const way_names[] = {
    [DECODE] = "decode", [ENCODE] = "encode", [BOTH] = "decode + encode"};

/* A queue and its buffers. */
struct lane {
	cl_command_queue queue;
	struct jpeg_decoder decoder;
	struct jpeg_encoder encoder;
	cl_mem samples;
	struct jpeg_result *results; /* pinned, of both directions */
	uint8_t *out;                /* pinned */
	uint64_t out_size;
	cl_event event;
	uint32_t count; /* images on their way */
};

static struct device device;
static struct programs *programs;
static struct device_arena arena;
static struct jpeg_file file;
/* The file's scan lies in the arena several times: bytes of each; and of an image's samples. */
static uint64_t scan_size, samples_size;
static uint32_t pitch;
static unsigned seconds = 3, processes;
static unsigned batches[BATCHES_MAX] = {1, 4, 16}, batch_count = 3;

static void check(cl_int code, const char *what)
{
	if (code)
		die("%s: %s", what, opencl_error_name(code));
}

static void pin_scans(void)
{
	const uint64_t size = COPIES * scan_size,
	               out = (scan_size * JPEG_BATCH_MAX + 65536) * QUEUES;
	int in_fd, out_fd;
	uint8_t *in;

	if (memfd_fixed("in", size, &in_fd) || memfd_fixed("out", out, &out_fd))
		die("cannot create an arena");
	/* The input is writable only where it is not used in place. */
	in = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, in_fd, 0);
	if (in == MAP_FAILED)
		die("cannot map an arena");
	for (unsigned copy = 0; copy < COPIES; copy++)
		memcpy(in + copy * scan_size, file.bytes + file.scan.offset, file.scan.size);
	munmap(in, size);
	if (device_arena_open(&arena, &device, in_fd, size, out_fd, out))
		die("cannot register an arena");
}

static void open_lane(struct lane *lane, uint32_t number, uint32_t batch)
{
	uint64_t each = arena.memory.out_size / QUEUES / 64 * 64;
	cl_int code;

	*lane = (struct lane){.queue = device_queue(&device, 0)};
	lane->samples =
	    device_buffer(&device, CL_MEM_READ_WRITE, samples_size * batch, NULL, &code);
	check(code, "clCreateBuffer");
	lane->results = (void *)((uint8_t *)arena.memory.out + number * each);
	lane->out = (uint8_t *)(lane->results + 2 * JPEG_BATCH_MAX);
	lane->out_size = each - 2 * JPEG_BATCH_MAX * sizeof *lane->results;
	if (!lane->queue || jpeg_decoder_init(&lane->decoder, programs) ||
	    jpeg_encoder_init(&lane->encoder, programs))
		die("no kernels");
}

static void close_lane(struct lane *lane)
{
	clFinish(lane->queue);
	jpeg_decoder_fini(&lane->decoder);
	jpeg_encoder_fini(&lane->encoder);
	object_release(OBJECT_BUFFER, lane->samples);
	object_release(OBJECT_QUEUE, lane->queue);
}

/* Enqueues a batch, up to its results. */
static void start(struct lane *lane, uint32_t batch, int way)
{
	const struct jpeg_scan *scan = &file.scan;
	struct jpeg_decode_job in[JPEG_BATCH_MAX];
	struct jpeg_encode_job out[JPEG_BATCH_MAX];

	for (uint32_t i = 0; i < batch; i++) {
		uint8_t *bytes = (uint8_t *)arena.memory.in + i % COPIES * scan_size;

		in[i] = (struct jpeg_decode_job){scan, bytes, i * samples_size, pitch};
		out[i] = (struct jpeg_encode_job){
		    scan->width, scan->height, 3, scan->h, scan->v, {{0}}, i * samples_size, pitch};
		memcpy(out[i].quantization[0], scan->quantization[0],
		       sizeof out[i].quantization[0]);
		memcpy(out[i].quantization[1], scan->quantization[1],
		       sizeof out[i].quantization[1]);
	}
	lane->count = batch;
	if (way & DECODE) {
		check(jpeg_decoder_enqueue(&lane->decoder, lane->queue, in, batch, lane->samples,
		                           NULL),
		      "jpeg_decoder_enqueue");
		check(jpeg_pipeline_results(&lane->decoder.pipeline, lane->queue, lane->results,
		                            way == DECODE ? &lane->event : NULL),
		      "results");
	}
	if (way & ENCODE) {
		check(jpeg_encoder_enqueue(&lane->encoder, lane->queue, out, batch, lane->samples,
		                           NULL),
		      "jpeg_encoder_enqueue");
		check(jpeg_pipeline_results(&lane->encoder.pipeline, lane->queue,
		                            lane->results + JPEG_BATCH_MAX, &lane->event),
		      "results");
	}
	check(clFlush(lane->queue), "clFlush");
}

static void wait_for(struct lane *lane)
{
	check(clWaitForEvents(1, &lane->event), "clWaitForEvents");
	clReleaseEvent(lane->event);
	lane->event = NULL;
}

/* Waits for a batch and reads its encoded bytes. */
static void finish(struct lane *lane, int way)
{
	uint64_t at = 0;

	wait_for(lane);
	for (uint32_t i = 0; i < lane->count; i++)
		if ((way & DECODE && lane->results[i].flags) ||
		    (way & ENCODE && lane->results[JPEG_BATCH_MAX + i].flags))
			die("an image is flagged");
	for (uint32_t i = 0; way & ENCODE && i < lane->count; i++) {
		uint32_t size = lane->results[JPEG_BATCH_MAX + i].size;

		if (size > lane->out_size - at)
			die("the output is larger than the input");
		check(jpeg_encoder_read(&lane->encoder, lane->queue, i, size, lane->out + at,
		                        i + 1 == lane->count ? &lane->event : NULL),
		      "jpeg_encoder_read");
		at += (size + 63) / 64 * 64;
	}
	if (way & ENCODE)
		wait_for(lane);
	lane->count = 0;
}

static void print_rate(uint32_t batch, uint32_t lanes, int way)
{
	struct lane lane[QUEUES];
	uint64_t images = 0, turn = 0;
	double started = 0, rate;

	for (uint32_t i = 0; i < lanes; i++) {
		open_lane(&lane[i], i, batch);
		/* Samples to encode; buffers of their size. */
		start(&lane[i], batch, BOTH);
		finish(&lane[i], BOTH);
	}
	for (uint32_t i = 0; i < lanes; i++)
		start(&lane[i], batch, way);
	do {
		struct lane *l = &lane[turn++ % lanes];

		finish(l, way);
		if (turn == 2 * lanes)
			started = seconds_now();
		if (turn > 2 * lanes)
			images += batch;
		start(l, batch, way);
	} while (turn <= 2 * lanes || seconds_now() - started < seconds);
	rate = (double)images / (seconds_now() - started);
	printf("batch %u, %u queues, %s: %.0f images/s, one in %.3f ms\n", batch, lanes,
	       way_names[way], rate, 1e3 / rate);
	fflush(stdout);
	for (uint32_t i = 0; i < lanes; i++) {
		finish(&lane[i], way);
		close_lane(&lane[i]);
	}
}

/* The first GPU, or else the first device. */
static void open_device(void)
{
	struct message_device list[16];
	size_t count, chosen = 0;
	double begun = seconds_now();

	environment_set(NULL);
	count = device_list(list, 16);
	while (chosen < count && list[chosen].type != DEVICE_GPU)
		chosen++;
	if (!count)
		die("no device");
	chosen %= count;
	if (device_open(&device, list[chosen].platform, list[chosen].device) ||
	    programs_new(&programs, &device, NULL, NULL, 0, -1))
		die("no device");
	programs_hurry(programs);
	programs_prepare(programs, true);
	programs_wait(programs);
	printf("%s: kernels compiled in %.1f s\n", device.name, seconds_now() - begun);
}

static void run_device(void)
{
	open_device();
	pin_scans();
	for (int way = DECODE; way < BOTH; way++)
		print_rate(batches[batch_count - 1], QUEUES, way);
	for (uint32_t i = 0; i < batch_count; i++)
		print_rate(batches[i], QUEUES, BOTH);
	print_rate(1, 1, BOTH);
	device_arena_close(&arena);
	programs_free(&programs);
	device_close(&device);
}

static void parse_batches(const char *text)
{
	char *end;

	for (batch_count = 0; batch_count < BATCHES_MAX && *text; batch_count++) {
		batches[batch_count] = (unsigned)strtoul(text, &end, 10);
		if (batches[batch_count] < 1 || batches[batch_count] > JPEG_BATCH_MAX)
			die("expected batches from 1 to 64");
		text = *end ? end + 1 : end;
	}
}

int main(int argc, char **argv)
{
	bool alone = false;
	int c;

	processes = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	while ((c = getopt(argc, argv, "fs:b:c:")) != -1)
		if (c == 'f')
			alone = true;
		else if (c == 's')
			seconds = parse_number('s', optarg, 3600);
		else if (c == 'b')
			parse_batches(optarg);
		else if (c == 'c')
			processes = (unsigned)strtoul(optarg, NULL, 10);
		else
			return 2;
	if (argc - optind != 1 || !batch_count)
		die("expected a JPEG, and options as its source describes");
	jpeg_file_read(&file, argv[optind]);
	scan_size = (file.size + PAGE - 1) / PAGE * PAGE;
	pitch = (file.wish.width * 3 + 63) / 64 * 64;
	samples_size = (uint64_t)pitch * file.wish.height;
	for (int way = alone ? BOTH : DECODE; way <= BOTH && processes; way++)
		printf("libjpeg-turbo, %u processes, %s: %.1f images/s\n", processes,
		       way_names[way], turbo_rate(&file, way, processes, seconds));
	if (!alone && !file.for_devices)
		die("%s: this file is not for devices", argv[optind]);
	if (!alone)
		run_device();
	return 0;
}
