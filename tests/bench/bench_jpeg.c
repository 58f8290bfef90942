/* JPEG on a device, and on all cores by libjpeg-turbo.
 *
 * bench_jpeg [-p PLATFORM] [-d DEVICE] [-k KERNEL-DIRECTORY] [-s SECONDS] [-q QUEUES] [-b BATCHES]
 *            [-c PROCESSES] FILE...
 * bench_jpeg -f [-s SECONDS] [-c PROCESSES] FILE...
 *
 * Prints the images a second that PROCESSES (one a core; 0: none) decode and encode, 4:2:0, by
 * libjpeg-turbo, and without -f: the same on a device. For each of BATCHES ("1,4,16") the
 * microseconds an image of each kernel by events (median of 15 batches), then images a second of
 * QUEUES (3) that work for SECONDS (3) each, with the transfers of encoded bytes from and to pinned
 * memory, and the time of one image alone. `convolved-bench --filter jpeg` compares the results. */
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

enum { REPEATS = 15, QUEUES_MAX = 8, BATCHES_MAX = 8, FILES_MAX = 8, COPIES = 4, PAGE = 4096 };
enum { ANY = 1000 }; /* platform */
enum { DECODE = TURBO_DECODE, ENCODE = TURBO_ENCODE, BOTH = DECODE | ENCODE };

static const char *const way_names[] = {
    [DECODE] = "decode", [ENCODE] = "encode", [BOTH] = "decode + encode"};

/* A file whose scan lies in the arena, several times. */
struct source {
	const char *name;
	struct jpeg_file file;
	uint64_t place, size; /* the first one's; bytes of each */
	uint32_t pitch;
	uint64_t samples; /* bytes of an image's samples */
};

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
static struct source sources[FILES_MAX];
static unsigned source_count, seconds = 3, queues = 3, processes;
static unsigned batches[BATCHES_MAX] = {1, 4, 16}, batch_count = 3;

static void check(cl_int code, const char *what)
{
	if (code)
		die("%s: %s", what, opencl_error_name(code));
}

static void read_source(struct source *s, const char *path)
{
	s->name = path;
	jpeg_file_read(&s->file, path);
	s->size = (s->file.size + PAGE - 1) / PAGE * PAGE;
	s->pitch = (s->file.wish.width * 3 + 63) / 64 * 64;
	s->samples = (uint64_t)s->pitch * s->file.wish.height;
}

static void print_cpu(const struct source *s, int way)
{
	printf("%s, libjpeg-turbo, %u processes, %s: %.1f images/s\n", s->name, processes,
	       way_names[way], turbo_rate(&s->file, way, processes, seconds));
}

/* On the device -------------------------------------------------------------------------------- */

static void pin_files(void)
{
	uint64_t size = 0, out = 0;
	int in_fd, out_fd;
	uint8_t *in;

	for (unsigned i = 0; i < source_count; i++) {
		sources[i].place = size;
		size += COPIES * sources[i].size;
		out = sources[i].size > out ? sources[i].size : out;
	}
	out = (out * JPEG_BATCH_MAX + 65536) * queues;
	if (memfd_fixed("in", size, &in_fd) || memfd_fixed("out", out, &out_fd))
		die("cannot create an arena");
	/* The input is writable only where it is not used in place. */
	in = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, in_fd, 0);
	if (in == MAP_FAILED)
		die("cannot map an arena");
	for (unsigned i = 0; i < source_count; i++)
		for (unsigned copy = 0; copy < COPIES; copy++)
			memcpy(in + sources[i].place + copy * sources[i].size,
			       sources[i].file.bytes + sources[i].file.scan.offset,
			       sources[i].file.scan.size);
	munmap(in, size);
	if (device_arena_open(&arena, &device, in_fd, size, out_fd, out))
		die("cannot register an arena");
}

static void open_lane(struct lane *lane, uint32_t number, const struct source *source,
                      uint32_t batch, bool profile)
{
	uint64_t each = arena.memory.out_size / queues / 64 * 64;
	cl_int code;

	*lane = (struct lane){.count = 0};
	lane->queue = device_queue(&device, profile ? CL_QUEUE_PROFILING_ENABLE : 0);
	lane->samples =
	    device_buffer(&device, CL_MEM_READ_WRITE, source->samples * batch, NULL, &code);
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
static void start(struct lane *lane, const struct source *source, uint32_t batch, int way,
                  struct jpeg_trace *trace)
{
	struct jpeg_decode_job in[JPEG_BATCH_MAX];
	struct jpeg_encode_job out[JPEG_BATCH_MAX];

	for (uint32_t i = 0; i < batch; i++) {
		const struct jpeg_scan *scan = &source->file.scan;
		const uint64_t place = source->place + i % COPIES * source->size;

		in[i] = (struct jpeg_decode_job){scan, (uint8_t *)arena.memory.in + place,
		                                 i * source->samples, source->pitch};
		out[i] = (struct jpeg_encode_job){
		    scan->width,         scan->height, 3, scan->h, scan->v, {{0}},
		    i * source->samples, source->pitch};
		memcpy(out[i].quantization[0], scan->quantization[0],
		       sizeof out[i].quantization[0]);
		memcpy(out[i].quantization[1], scan->quantization[1],
		       sizeof out[i].quantization[1]);
	}
	lane->count = batch;
	if (way & DECODE) {
		check(jpeg_decoder_enqueue(&lane->decoder, lane->queue, in, batch, lane->samples,
		                           trace),
		      "jpeg_decoder_enqueue");
		check(jpeg_pipeline_results(&lane->decoder.pipeline, lane->queue, lane->results,
		                            way == DECODE ? &lane->event : NULL),
		      "results");
	}
	if (way & ENCODE) {
		check(jpeg_encoder_enqueue(&lane->encoder, lane->queue, out, batch, lane->samples,
		                           trace),
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

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *times)
{
	qsort(times, REPEATS, sizeof *times, by_value);
	return times[REPEATS / 2];
}

/* Medians of launches, those of one kernel added up. */
static void print_stages(const struct source *source, uint32_t batch)
{
	double times[JPEG_LAUNCHES_MAX][REPEATS], kernel = 0, sum = 0;
	const char *names[JPEG_LAUNCHES_MAX + 1] = {NULL};
	struct lane lane;

	open_lane(&lane, 0, source, batch, true);
	printf("%s, batch %u, us an image:", source->name, batch);
	for (int r = -2; r < REPEATS; r++) {
		struct jpeg_trace trace = {0};

		start(&lane, source, batch, BOTH, &trace);
		finish(&lane, BOTH);
		for (uint32_t i = 0; i < trace.count; i++) {
			uint64_t ns;

			check(
			    opencl_time_between(trace.launch[i].event, trace.launch[i].event, &ns),
			    "events");
			times[i][r < 0 ? 0 : r] = (double)ns * 1e-3 / batch;
			names[i] = trace.launch[i].name;
		}
		jpeg_trace_release(&trace);
	}
	for (uint32_t i = 0; names[i]; i++) {
		kernel += median(times[i]);
		if (names[i + 1] && !strcmp(names[i], names[i + 1]))
			continue;
		printf(" %s %.1f", names[i], kernel);
		sum += kernel;
		kernel = 0;
		if (!strcmp(names[i], "upsample_color") || !names[i + 1]) {
			printf(" = %s %.1f;", names[i + 1] ? "decode" : "encode", sum);
			sum = 0;
		}
	}
	printf("\n");
	fflush(stdout);
	close_lane(&lane);
}

static void print_rate(const struct source *source, uint32_t batch, uint32_t lanes, int way)
{
	struct lane lane[QUEUES_MAX];
	uint64_t images = 0, turn = 0;
	double started = 0, elapsed, host = 0;

	for (uint32_t i = 0; i < lanes; i++) {
		open_lane(&lane[i], i, source, batch, false);
		/* Samples to encode; buffers of their size. */
		start(&lane[i], source, batch, BOTH, NULL);
		finish(&lane[i], BOTH);
	}
	for (uint32_t i = 0; i < lanes; i++)
		start(&lane[i], source, batch, way, NULL);
	do {
		struct lane *l = &lane[turn++ % lanes];
		double before;

		finish(l, way);
		if (turn == 2 * lanes)
			started = seconds_now();
		if (turn > 2 * lanes)
			images += batch;
		before = seconds_now();
		start(l, source, batch, way, NULL);
		host += turn > 2 * lanes ? seconds_now() - before : 0;
	} while (turn <= 2 * lanes || seconds_now() - started < seconds);
	elapsed = seconds_now() - started;
	printf("%s, batch %u, %u queues, %s: %.0f images/s, host %.1f us an image\n", source->name,
	       batch, lanes, way_names[way], (double)images / elapsed, host * 1e6 / (double)images);
	fflush(stdout);
	for (uint32_t i = 0; i < lanes; i++) {
		finish(&lane[i], way);
		close_lane(&lane[i]);
	}
}

static void print_alone(const struct source *source)
{
	double times[REPEATS];
	struct lane lane;

	open_lane(&lane, 0, source, 1, false);
	for (int r = -2; r < REPEATS; r++) {
		double begun = seconds_now();

		start(&lane, source, 1, BOTH, NULL);
		finish(&lane, BOTH);
		if (r >= 0)
			times[r] = seconds_now() - begun;
	}
	printf("%s, one image alone, decode + encode: %.3f ms\n", source->name,
	       median(times) * 1e3);
	close_lane(&lane);
}

/* The first GPU, or else the first device. */
static void choose_device(unsigned *platform, unsigned *number)
{
	struct message_device list[16];
	size_t count = device_list(list, 16), chosen = 0;

	while (chosen < count && list[chosen].type != DEVICE_GPU)
		chosen++;
	if (!count)
		die("no device");
	chosen %= count;
	*platform = list[chosen].platform;
	*number = list[chosen].device;
}

static void open_device(unsigned platform, unsigned number, const char *kernel_dir)
{
	double begun = seconds_now();

	environment_set(NULL);
	if (platform == ANY)
		choose_device(&platform, &number);
	if (device_open(&device, platform, number) ||
	    programs_new(&programs, &device, kernel_dir, NULL, 0, -1))
		die("no device");
	programs_hurry(programs);
	programs_prepare(programs, true);
	programs_wait(programs);
	printf("%s, platform %u: kernels compiled in %.1f s\n", device.name, platform,
	       seconds_now() - begun);
	pin_files();
}

static void run_device(const struct source *source)
{
	uint32_t largest = batches[batch_count - 1];

	for (uint32_t i = 0; i < batch_count; i++)
		print_stages(source, batches[i]);
	for (int way = DECODE; way <= BOTH; way++)
		print_rate(source, largest, queues, way);
	for (uint32_t i = 0; i < batch_count; i++)
		print_rate(source, batches[i], queues, BOTH);
	print_rate(source, largest, 1, BOTH);
	print_alone(source);
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
	unsigned platform = ANY, number = 0;
	const char *kernel_dir = NULL;
	bool alone = false;
	int c;

	processes = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	while ((c = getopt(argc, argv, "fp:d:k:s:q:b:c:")) != -1)
		if (c == 'f')
			alone = true;
		else if (c == 'p')
			platform = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'd')
			number = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'k')
			kernel_dir = optarg;
		else if (c == 's')
			seconds = parse_number('s', optarg, 3600);
		else if (c == 'q')
			queues = parse_number('q', optarg, QUEUES_MAX);
		else if (c == 'b')
			parse_batches(optarg);
		else if (c == 'c')
			processes = (unsigned)strtoul(optarg, NULL, 10);
		else
			return 2;
	source_count = (unsigned)(argc - optind);
	if (!source_count || source_count > FILES_MAX || !batch_count)
		die("expected 1 to %u JPEGs, and options as its source describes", FILES_MAX);
	for (unsigned i = 0; i < source_count; i++)
		read_source(&sources[i], argv[optind + (int)i]);
	for (unsigned i = 0; i < source_count; i++)
		for (int way = alone ? BOTH : DECODE; way <= BOTH && processes; way++)
			print_cpu(&sources[i], way);
	if (alone)
		return 0;
	for (unsigned i = 0; i < source_count; i++)
		if (!sources[i].file.for_devices)
			die("%s: this file is not for devices", sources[i].name);
	open_device(platform, number, kernel_dir);
	for (unsigned i = 0; i < source_count; i++)
		run_device(&sources[i]);
	device_arena_close(&arena);
	programs_free(&programs);
	device_close(&device);
	return 0;
}
