/* JPEG on a device, and on all cores by libjpeg-turbo.
 *
 * bench_jpeg [-p PLATFORM] [-d DEVICE] [-k KERNEL-DIRECTORY] [-w SIDE] [-s SECONDS] [-q QUEUES]
 *            [-b BATCHES] [-c PROCESSES] PHOTOGRAPH
 * bench_jpeg -f [-s SECONDS] [-c PROCESSES] FILE
 *
 * With -f: only how often PROCESSES decode and encode FILE as it is, by libjpeg-turbo. Else two
 * sets of four files, 4:2:0, quality 85: the photograph enlarged to SIDE x SIDE (4096) with
 * noise, and the photograph itself with noise. First on PROCESSES (one a core) by libjpeg-turbo;
 * then on the device: every result is compared once, then for each of BATCHES ("1,4,16") the
 * microseconds an image of each launch by events (median of 15 batches), then images a second of
 * QUEUES (3) that work for SECONDS (3) each, with the transfers of encoded bytes from and to pinned
 * memory, and the time of one image alone. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/memfd.h"
#include "codec/jpeg_header.h"
#include "device/cl/environment.h"
#include "device/jpeg.h"
#include "photographs.h"

enum { FILES = 4, QUALITY = 85, REPEATS = 15, QUEUES_MAX = 8, BATCHES_MAX = 8 };
enum { ANY = 1000 }; /* platform */
enum { DECODE = TURBO_DECODE, ENCODE = TURBO_ENCODE, BOTH = DECODE | ENCODE };

static const char *const way_names[] = {
    [DECODE] = "decode", [ENCODE] = "encode", [BOTH] = "decode + encode"};

/* A set of files; in the arena their scans, each at a place of its own. */
struct set {
	const char *name;
	struct jpegs_wish wish;
	uint8_t *file[FILES];
	size_t size[FILES];
	struct jpeg_scan scan[FILES];
	uint64_t place[FILES]; /* in the arena */
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
static struct set sets[2];
static unsigned side = 4096, seconds = 3, queues = 3, processes;
static unsigned batches[BATCHES_MAX] = {1, 4, 16}, batch_count = 3;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench_jpeg: %s\n", what);
	exit(1);
}

static void check(cl_int code, const char *what)
{
	if (code) {
		fprintf(stderr, "bench_jpeg: %s: %s\n", what, opencl_error_name(code));
		exit(1);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Files ---------------------------------------------------------------------------------------- */

static void make_set(struct set *set, const char *name, const struct jpegs_picture *photograph,
                     uint32_t width, uint32_t height)
{
	*set = (struct set){.name = name,
	                    .wish = {width, height, JPEGS_420, QUALITY, 0, 0, 0, 0},
	                    .pitch = (width * 3 + 63) / 64 * 64};
	set->samples = (uint64_t)set->pitch * height;
	for (uint32_t i = 0; i < FILES; i++) {
		struct jpegs_picture p = photograph_enlarge(photograph, width, height, 2, i);

		set->file[i] = jpegs_encode(&p, &set->wish, &set->size[i]);
		free(p.samples);
		if (jpeg_header_read(set->file[i], set->size[i], &set->scan[i]))
			die("a file is not for the device");
	}
	printf("%s: %ux%u, 4:2:0, quality %d, %zu bytes\n", name, width, height, QUALITY,
	       set->size[0]);
}

static void print_cpu(const struct set *set, int way)
{
	printf("%s, libjpeg-turbo, %u processes, %s: %.1f images/s\n", set->name, processes,
	       way_names[way],
	       turbo_rate(set->file, set->size, FILES, &set->wish, way, processes, seconds));
}

/* Decodes and encodes a file unchanged, by libjpeg-turbo. */
static void print_file(const char *path)
{
	struct jpegs_picture p = photograph_read(path);
	struct jpegs_wish wish = {p.width, p.height, JPEGS_420, QUALITY, 0, 0, 0, 0};
	size_t size;
	uint8_t *file = photograph_file(path, &size);

	free(p.samples);
	printf("%s, libjpeg-turbo, %u processes, decode + encode: %.1f images/s\n", path, processes,
	       turbo_rate(&file, &size, 1, &wish, BOTH, processes, seconds));
	free(file);
}

/* On the device -------------------------------------------------------------------------------- */

static void pin_files(void)
{
	uint64_t size = 0, at = 0, out = 0;
	int in_fd, out_fd;
	uint8_t *in;

	for (int s = 0; s < 2; s++)
		for (int i = 0; i < FILES; i++) {
			size += (sets[s].size[i] + 4095) / 4096 * 4096;
			out = sets[s].size[i] > out ? sets[s].size[i] : out;
		}
	out = (out * JPEG_BATCH_MAX + 65536) * queues;
	if (memfd_fixed("in", size, &in_fd) || memfd_fixed("out", out, &out_fd))
		die("cannot create an arena");
	/* The input is writable only where it is not used in place. */
	in = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, in_fd, 0);
	if (in == MAP_FAILED)
		die("cannot map an arena");
	for (int s = 0; s < 2; s++)
		for (int i = 0; i < FILES; i++) {
			memcpy(in + at, sets[s].file[i] + sets[s].scan[i].offset,
			       sets[s].scan[i].size);
			sets[s].place[i] = at;
			at += (sets[s].size[i] + 4095) / 4096 * 4096;
		}
	munmap(in, size);
	if (device_arena_open(&arena, &device, in_fd, size, out_fd, out))
		die("cannot register an arena");
}

static void open_lane(struct lane *lane, uint32_t number, const struct set *set, uint32_t batch,
                      bool profile)
{
	uint64_t each = arena.memory.out_size / queues / 64 * 64;
	cl_int code;

	*lane = (struct lane){.count = 0};
	lane->queue = clCreateCommandQueue(device.context, device.id,
	                                   profile ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
	check(code, "clCreateCommandQueue");
	lane->samples =
	    clCreateBuffer(device.context, CL_MEM_READ_WRITE, set->samples * batch, NULL, &code);
	check(code, "clCreateBuffer");
	lane->results = (void *)((uint8_t *)arena.memory.out + number * each);
	lane->out = (uint8_t *)(lane->results + 2 * JPEG_BATCH_MAX);
	lane->out_size = each - 2 * JPEG_BATCH_MAX * sizeof *lane->results;
	if (jpeg_decoder_init(&lane->decoder, programs) ||
	    jpeg_encoder_init(&lane->encoder, programs))
		die("no kernels");
}

static void close_lane(struct lane *lane)
{
	clFinish(lane->queue);
	jpeg_decoder_fini(&lane->decoder);
	jpeg_encoder_fini(&lane->encoder);
	clReleaseMemObject(lane->samples);
	clReleaseCommandQueue(lane->queue);
}

/* Enqueues a batch, up to its results. */
static void start(struct lane *lane, const struct set *set, uint32_t batch, int way,
                  struct jpeg_trace *trace)
{
	struct jpeg_decode_job in[JPEG_BATCH_MAX];
	struct jpeg_encode_job out[JPEG_BATCH_MAX];

	for (uint32_t i = 0; i < batch; i++) {
		const struct jpeg_scan *scan = &set->scan[i % FILES];

		in[i] = (struct jpeg_decode_job){scan,
		                                 (uint8_t *)arena.memory.in + set->place[i % FILES],
		                                 i * set->samples, set->pitch};
		out[i] = (struct jpeg_encode_job){scan->width,      scan->height, 3,
		                                  scan->h,          scan->v,      {{0}},
		                                  i * set->samples, set->pitch};
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

/* Compares samples and encoded bytes of all files of a set. */
static void compare(const struct set *set)
{
	struct lane lane;
	uint8_t *samples = malloc(set->samples), *out;

	open_lane(&lane, 0, set, FILES, false);
	start(&lane, set, FILES, BOTH, NULL);
	finish(&lane, BOTH);
	out = lane.out;
	for (uint32_t i = 0; i < FILES; i++) {
		uint32_t size = lane.results[JPEG_BATCH_MAX + i].size;
		struct jpegs_picture p;
		struct jpeg_scan scan;
		uint8_t *file;
		size_t bytes;

		if (!samples || !jpegs_decode(set->file[i], set->size[i], &p))
			die("libjpeg");
		check(clEnqueueReadBuffer(lane.queue, lane.samples, CL_TRUE, i * set->samples,
		                          set->samples, samples, 0, NULL, NULL),
		      "clEnqueueReadBuffer");
		for (uint32_t y = 0; y < p.height; y++)
			if (memcmp(samples + (size_t)y * set->pitch,
			           p.samples + (size_t)y * p.width * 3, (size_t)p.width * 3))
				die("samples differ from libjpeg-turbo's");
		file = jpegs_encode(&p, &set->wish, &bytes);
		if (jpeg_header_read(file, bytes, &scan) || scan.size != size ||
		    memcmp(file + scan.offset, out, size))
			die("encoded bytes differ from libjpeg-turbo's");
		out += (size + 63) / 64 * 64;
		free(p.samples);
		free(file);
	}
	close_lane(&lane);
	free(samples);
	printf("%s, %s: all samples and bytes equal libjpeg-turbo's\n", set->name, device.name);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static cl_ulong event_time(cl_event event, cl_profiling_info what)
{
	cl_ulong time = 0;

	clGetEventProfilingInfo(event, what, sizeof time, &time, NULL);
	return time;
}

/* Medians of launches, those of one kernel added up. */
static void print_stages(const struct set *set, uint32_t batch)
{
	double times[JPEG_LAUNCHES_MAX][REPEATS], sum = 0;
	struct jpeg_trace trace = {0};
	struct lane lane;

	open_lane(&lane, 0, set, batch, true);
	printf("%s, batch %u, us an image:", set->name, batch);
	for (int r = -2; r < REPEATS; r++) {
		trace.count = 0;
		start(&lane, set, batch, BOTH, &trace);
		finish(&lane, BOTH);
		for (uint32_t i = 0; i < trace.count; i++) {
			cl_event e = trace.launch[i].event;

			if (r >= 0)
				times[i][r] = (double)(event_time(e, CL_PROFILING_COMMAND_END) -
				                       event_time(e, CL_PROFILING_COMMAND_START)) *
				              1e-3 / batch;
			clReleaseEvent(e);
		}
	}
	for (uint32_t i = 0; i < trace.count; i++) {
		static double kernel;
		const char *name = trace.launch[i].name;

		qsort(times[i], REPEATS, sizeof **times, by_value);
		kernel += times[i][REPEATS / 2];
		sum += times[i][REPEATS / 2];
		if (i + 1 < trace.count && !strcmp(name, trace.launch[i + 1].name))
			continue;
		printf(" %s %.1f", name, kernel);
		kernel = 0;
		if (!strcmp(name, "upsample_color") || i + 1 == trace.count) {
			printf(" = %s %.1f;", i + 1 == trace.count ? "encode" : "decode", sum);
			sum = 0;
		}
	}
	printf("\n");
	fflush(stdout);
	close_lane(&lane);
}

static void print_rate(const struct set *set, uint32_t batch, uint32_t lanes, int way)
{
	struct lane lane[QUEUES_MAX];
	uint64_t images = 0, turn = 0;
	double started = 0, elapsed, host = 0;

	for (uint32_t i = 0; i < lanes; i++) {
		open_lane(&lane[i], i, set, batch, false);
		start(&lane[i], set, batch, BOTH,
		      NULL); /* samples to encode; buffers of their size */
		finish(&lane[i], BOTH);
	}
	for (uint32_t i = 0; i < lanes; i++)
		start(&lane[i], set, batch, way, NULL);
	do {
		struct lane *l = &lane[turn++ % lanes];
		double before;

		finish(l, way);
		if (turn == 2 * lanes)
			started = now();
		if (turn > 2 * lanes)
			images += batch;
		before = now();
		start(l, set, batch, way, NULL);
		host += turn > 2 * lanes ? now() - before : 0;
	} while (turn <= 2 * lanes || now() - started < seconds);
	elapsed = now() - started;
	printf("%s, batch %u, %u queues, %s: %.0f images/s, host %.1f us an image\n", set->name,
	       batch, lanes, way_names[way], (double)images / elapsed, host * 1e6 / (double)images);
	fflush(stdout);
	for (uint32_t i = 0; i < lanes; i++) {
		finish(&lane[i], way);
		close_lane(&lane[i]);
	}
}

static void print_alone(const struct set *set)
{
	double times[REPEATS];
	struct lane lane;

	open_lane(&lane, 0, set, 1, false);
	for (int r = -2; r < REPEATS; r++) {
		double begun = now();

		start(&lane, set, 1, BOTH, NULL);
		finish(&lane, BOTH);
		if (r >= 0)
			times[r] = now() - begun;
	}
	qsort(times, REPEATS, sizeof *times, by_value);
	printf("%s, one image alone, decode + encode: %.3f ms\n", set->name,
	       times[REPEATS / 2] * 1e3);
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
	double begun = now();

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
	       now() - begun);
	pin_files();
}

static void run_device(const struct set *set)
{
	uint32_t largest = batches[batch_count - 1];

	compare(set);
	for (uint32_t i = 0; i < batch_count; i++)
		print_stages(set, batches[i]);
	for (int way = DECODE; way <= BOTH; way++)
		print_rate(set, largest, queues, way);
	for (uint32_t i = 0; i < batch_count; i++)
		print_rate(set, batches[i], queues, BOTH);
	print_rate(set, largest, 1, BOTH);
	print_alone(set);
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
	struct jpegs_picture photograph;
	bool alone = false;
	int c;

	processes = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	while ((c = getopt(argc, argv, "fp:d:k:w:s:q:b:c:")) != -1)
		if (c == 'f')
			alone = true;
		else if (c == 'p')
			platform = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'd')
			number = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'k')
			kernel_dir = optarg;
		else if (c == 'w')
			side = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 's')
			seconds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'q')
			queues = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'b')
			parse_batches(optarg);
		else if (c == 'c')
			processes = (unsigned)strtoul(optarg, NULL, 10);
		else
			return 2;
	if (optind + 1 != argc || side < 16 || side > JPEG_SIDE_MAX || queues < 1 ||
	    queues > QUEUES_MAX || !batch_count)
		die("expected the path of a photograph, and options as its source describes");
	if (alone) {
		print_file(argv[optind]);
		return 0;
	}
	photograph = photograph_read(argv[optind]);
	make_set(&sets[0], "large", &photograph, side, side);
	make_set(&sets[1], "small", &photograph, photograph.width, photograph.height);
	for (int s = 0; s < 2 && processes; s++)
		for (int way = DECODE; way <= BOTH; way++)
			print_cpu(&sets[s], way);
	open_device(platform, number, kernel_dir);
	run_device(&sets[0]);
	run_device(&sets[1]);
	device_arena_close(&arena);
	programs_free(&programs);
	device_close(&device);
	return 0;
}
