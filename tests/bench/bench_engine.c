/* Throughput of the engine: the scheduler, the device workers and their lanes as the service has
 * them, fed from here instead of by codec workers and HTTP.
 *
 * bench_engine [-i IMAGE] [-f CHAIN] [-n STREAMS] [-s SECONDS] [-j PHOTOGRAPH] [-b BYTES]
 *              [-c PROCESSES] [-- OPTION...]
 * IMAGE as "4096x4096x1:u8" (u8 or u16), CHAIN as "gaussian=size=5,sobel"; the options after -- are
 * the service's (--device, --batch, --cache-dir, …).
 *
 * Each of the streams stands for a codec worker: it has an arena with random pixels and one job at
 * a time, whose tiles it announces as slots become free; the next job follows at once. Costs next
 * to nothing beside the scheduler, whose thread it shares: the last columns say how busy that
 * thread and the device workers were. Before that, the first tiles of every stream are compared
 * with the reference, and the bandwidth of copies to and from the first device is measured, each
 * direction alone.
 *
 * With -j images are JPEGs, decoded and encoded by the devices: the photograph, enlarged to the
 * size of IMAGE (of bands 3), 4:2:0, quality 85, with as much noise as makes files of about BYTES
 * (1700000). Before that as many PROCESSES (one a core; 0: none) decode and encode them by
 * libjpeg-turbo, without a filter. The first result is decoded and compared with the reference. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/loop.h"
#include "codec/jpeg_header.h"
#include "front/config/load.h"
#include "front/jobs/job.h"
#include "front/workers/codecs.h"
#include "front/workers/device_load.h"
#include "front/workers/device_table.h"
#include "front/workers/scheduler.h"
#include "front/workers/supervisor.h"
#include "photographs.h"
#include "reference/reference.h"
#include "transfers.h"
#include "wire/tile.h"

enum { CHECK_MS = 20, WARM_S = 4, CHECKED = 3, START_MAX_S = 300, FILES = 4, QUALITY = 85 };

struct stream {
	struct arena memory;
	struct tiling tiling;
	struct job *job;
	struct plan *plan;
	uint32_t next, back; /* tiles announced, and back */
	unsigned checked;
};

static const char *chain_text = "gaussian=size=5";
static struct image image;
static unsigned stream_count = 8, seconds = 5;
static struct stream streams[CODECS_MAX];
static struct {
	const char *photograph; /* NULL: images are pixels */
	size_t bytes;
	unsigned processes;
	struct jpegs_wish wish;
	uint8_t *file[FILES];
	size_t size[FILES];
	struct jpeg_scan scan[FILES];
} jpeg = {.bytes = 1700000};
static struct config settings;
static const struct codec_owner *owner;
static struct loop_timer timer;
static enum { STARTING, WARMING, MEASURING, ENDED } phase;
static struct sample {
	uint64_t time, images, tiles;
	uint64_t stacked;                  /* sum of the stacks that tiles were in */
	uint64_t upload, kernel, download; /* nanoseconds by the devices' clocks */
	double front, workers;             /* seconds of processor time */
} now, before;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench_engine: %s\n", what);
	exit(1);
}

enum error codecs_init(const struct codec_owner *o)
{
	owner = o;
	return ERR_OK;
}

void codecs_fini(void)
{
}

void codecs_retire(unsigned arena)
{
	(void)arena;
}

static struct chain *parse_chain(void)
{
	struct chain *chain = malloc(sizeof *chain);
	struct problem problem;

	if (!chain)
		die("no memory");
	chain_init(chain);
	if (chain_parse(chain, chain_text, &problem) || chain_check(chain, &problem))
		die(problem.detail);
	return chain;
}

static void check_tile(const struct stream *s, const struct tile *tile)
{
	struct window window = {tile->x0, tile->y0, tile->width, tile->height};
	struct difference difference = {0};
	struct reference expected;

	if (reference_window(s->job->chain->chain, &image, &window, (char *)s->memory.in + tile->in,
	                     tile->in_pitch, &expected))
		die("the reference failed");
	difference_add(&difference, &expected, (char *)s->memory.out + tile->out, tile->out_pitch);
	reference_fini(&expected);
	if (difference.mismatches)
		die("a result is wrong");
}

/* Encodes the photograph with noise of this deviation; frees *file before. */
static void make_file(const struct jpegs_picture *from, float deviation, uint32_t i)
{
	struct jpegs_picture p =
	    photograph_enlarge(from, jpeg.wish.width, jpeg.wish.height, deviation, i);

	free(jpeg.file[i]);
	jpeg.file[i] = jpegs_encode(&p, &jpeg.wish, &jpeg.size[i]);
	free(p.samples);
}

/* Finds the noise that makes files of the wanted size, and makes them. */
static void make_files(void)
{
	enum { HALVINGS = 8 };
	struct jpegs_picture from = photograph_read(jpeg.photograph);
	float least = 0, most = 40;

	jpeg.wish = (struct jpegs_wish){.width = image.width,
	                                .height = image.height,
	                                .sampling = JPEGS_420,
	                                .quality = QUALITY};
	for (int i = 0; i < HALVINGS; i++) {
		float middle = (least + most) / 2;

		make_file(&from, middle, 0);
		*(jpeg.size[0] < jpeg.bytes ? &least : &most) = middle;
	}
	for (uint32_t i = 0; i < FILES; i++) {
		make_file(&from, least, i);
		if (jpeg_header_read(jpeg.file[i], jpeg.size[i], &jpeg.scan[i]))
			die("a file is not for devices");
	}
	free(from.samples);
	printf("%u JPEGs of %ux%u, 4:2:0, quality %d, %zu bytes\n", FILES, image.width,
	       image.height, QUALITY, jpeg.size[0]);
	if (jpeg.processes)
		printf("libjpeg-turbo, %u processes: %.1f images/s\n", jpeg.processes,
		       turbo_rate(jpeg.file, jpeg.size, FILES, &jpeg.wish,
		                  TURBO_DECODE | TURBO_ENCODE, jpeg.processes, seconds));
	fflush(stdout);
}

/* Returns the file that a stream works on. */
static uint32_t file_of(const struct stream *s)
{
	return (uint32_t)(s - streams) % FILES;
}

static void whole_tile(const struct stream *s, struct tile *tile)
{
	tiling_whole_tile(&s->tiling, TILE_JPEG, jpeg.scan[file_of(s)].size, tile);
}

static void place_jpeg(const struct stream *s)
{
	const uint32_t f = file_of(s);
	struct jpeg_work work = {.scan = jpeg.scan[f], .target = {.h = 2, .v = 2}};
	struct tile tile;
	char *in = s->memory.in;

	whole_tile(s, &tile);
	if (tile.in + tile.in_size > tile.work)
		die("an arena is smaller than a file");
	work.scan.offset = 0;
	memcpy(work.target.quantization, work.scan.quantization, sizeof work.target.quantization);
	memcpy(in + tile.work, &work, sizeof work);
	memcpy(in + tile.in, jpeg.file[f] + jpeg.scan[f].offset, work.scan.size);
}

/* Returns the picture of a result: its header is that of the file, which was encoded alike. */
static struct jpegs_picture decode_result(const struct stream *s, size_t size)
{
	static const uint8_t end[] = {0xFF, 0xD9};
	const uint32_t f = file_of(s);
	const size_t header = jpeg.scan[f].offset;
	struct jpegs_picture picture;
	uint8_t *result = malloc(header + size + sizeof end);

	if (!result)
		die("no memory");
	memcpy(result, jpeg.file[f], header);
	memcpy(result + header, s->memory.out, size);
	memcpy(result + header + size, end, sizeof end);
	if (!jpegs_decode(result, header + size + sizeof end, &picture) ||
	    picture.width != image.width || picture.height != image.height)
		die("a result is no JPEG of this size");
	free(result);
	return picture;
}

/* Compares a part of the middle, in the mean: encoding loses something. */
static void check_jpeg(const struct stream *s, size_t size)
{
	enum { PART = 64, LOST = 6 };
	const struct tiling *t = &s->tiling;
	struct jpegs_picture got = decode_result(s, size), from;
	struct window window = {t->halo_x, t->halo_y, image.width - 2 * t->halo_x,
	                        image.height - 2 * t->halo_y};
	const size_t pitch = image_row_size(&image);
	struct reference expected;
	double sum = 0;

	if (image.width <= 2 * t->halo_x || image.height <= 2 * t->halo_y)
		die("the image is smaller than the window");
	window.width = window.width < PART ? window.width : PART;
	window.height = window.height < PART ? window.height : PART;
	if (!jpegs_decode(jpeg.file[file_of(s)], jpeg.size[file_of(s)], &from) ||
	    reference_window(s->job->chain->chain, &image, &window,
	                     from.samples + window.y0 * pitch + window.x0 * 3, pitch, &expected))
		die("the reference failed");
	for (uint32_t y = 0; y < window.height; y++)
		for (uint32_t i = 0; i < window.width * 3; i++)
			sum += abs(((uint8_t *)expected.pixels)[y * window.width * 3 + i] -
			           got.samples[(window.y0 + y) * pitch + window.x0 * 3 + i]);
	if (sum > (double)LOST * window.width * window.height * 3)
		die("a result is wrong");
	reference_fini(&expected);
	free(from.samples);
	free(got.samples);
}

/* Returns the number of devices that take JPEGs of this size; 0: not all of them yet. */
static uint64_t jpeg_devices(void)
{
	uint64_t devices = 0;

	for (unsigned i = 0; i < devices_count(); i++) {
		const struct device *d = device_get(i);

		if (device_state(d) == DEVICE_UP && !d->ready.jpeg_pixels)
			die("a device takes no JPEG: see --jpeg-memory and --jpeg-on-any");
		if (!d->programs.jpeg)
			return 0;
		if (d->ready.jpeg_pixels < (uint64_t)image.width * image.height)
			die("images are larger than --jpeg-memory allows");
		devices |= UINT64_C(1) << i;
	}
	return devices;
}

static void announce(struct stream *s)
{
	struct task *task = calloc(1, sizeof *task);

	if (!task)
		die("no memory");
	if (jpeg.photograph) {
		whole_tile(s, &task->tile);
		task->tile.job = s->job->id;
		task->tile.arena = (uint32_t)(s - streams);
		task->devices = jpeg_devices();
		task->units = cost_of_jpeg(&image, TILE_JPEG);
		s->next++;
	} else {
		tiling_tile(&s->tiling, s->next++, s->job->id, (uint32_t)(s - streams),
		            &task->tile);
	}
	task->job = s->job;
	task->plan = s->plan;
	task->units +=
	    cost_of_area(s->plan->chain->chain, task->tile.width, task->tile.height) * image.bands;
	owner->task_ready(task);
}

static void start_job(struct stream *s)
{
	struct spool none = SPOOL_NONE;
	struct problem problem;

	s->job = job_new(parse_chain(), &none);
	if (!s->job)
		die("no memory for a job");
	s->job->image = image;
	s->job->image_known = true;
	s->plan = plan_use(s->job->chain, &image);
	snprintf(s->job->terms.client, sizeof s->job->terms.client, "%td", s - streams);
	if (tiling_init(&s->tiling, s->job->chain->chain, &image, s->memory.in_size,
	                s->memory.out_size, load_samples_max(s->job->chain->chain), &problem))
		die(problem.detail);
	if (jpeg.photograph && !s->checked)
		place_jpeg(s);
	if (jpeg.photograph) /* one tile */
		s->tiling.count = s->tiling.slots = s->tiling.columns = s->tiling.strip_tiles = 1;
	s->next = s->back = 0;
	while (s->next < s->tiling.slots * s->tiling.strip_tiles)
		announce(s);
}

static void end_job(struct stream *s)
{
	struct job *job = s->job;

	owner->job_ended(job);
	plan_release(s->plan);
	job_release(job);
	now.images++;
}

static void add_times(const struct message_tile_done *done)
{
	now.stacked += done->stack;
	now.upload += done->upload_ns;
	now.download += done->download_ns;
	for (uint32_t i = 0; i < done->launches; i++)
		now.kernel += done->launch[i].ns / done->stack;
}

void codec_task_done(struct task *task, const struct message_tile_done *done)
{
	struct stream *s = &streams[task->tile.arena];

	if (phase == ENDED) {
		free(task);
		return;
	}
	if (done->error)
		die(error_title((enum error)done->error));
	if (done->jpeg_flags)
		die("a device has no result for a file");
	if (jpeg.photograph && s == streams && !s->checked)
		check_jpeg(s, done->size);
	else if (!jpeg.photograph && phase == STARTING && s->checked < CHECKED)
		check_tile(s, &task->tile);
	s->checked++;
	add_times(done);
	now.tiles++;
	s->back++;
	free(task);
	if (s->next < s->tiling.count)
		announce(s);
	if (s->back < s->tiling.count)
		return;
	end_job(s);
	start_job(s);
}

static double processor_time(int pid)
{
	char path[64];
	unsigned long user = 0, system = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
	                 &system) != 2)
		die("cannot read /proc");
	fclose(f);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void take_sample(void)
{
	now.time = loop_now();
	now.front = processor_time(getpid());
	now.workers = 0;
	for (unsigned i = 0; i < devices_count(); i++)
		now.workers += processor_time(device_get(i)->worker.pid);
}

/* Returns a time of the device, in microseconds a tile. */
static double each(uint64_t ns)
{
	return (double)ns / (double)(now.tiles - before.tiles) * 1e-3;
}

static void report(void)
{
	double s = (double)(now.time - before.time) * 1e-9;
	double images = (double)(now.images - before.images) / s;

	printf("%u devices, %s, %ux%ux%u:%s, %u streams: %.1f images/s, %.0f tiles/s, %.2f GB/s "
	       "each way; a tile: stack of %.1f, upload %.1f us, kernels %.1f, download %.1f; "
	       "cores: front %.2f, "
	       "workers %.2f\n",
	       devices_count(), chain_text, image.width, image.height, image.bands,
	       pixel_type_name(image.type), stream_count, images,
	       (double)(now.tiles - before.tiles) / s, images * (double)image_size(&image) * 1e-9,
	       (double)(now.stacked - before.stacked) / (double)(now.tiles - before.tiles),
	       each(now.upload - before.upload), each(now.kernel - before.kernel),
	       each(now.download - before.download), (now.front - before.front) / s,
	       (now.workers - before.workers) / s);
}

static void look(void *context)
{
	uint64_t waited = loop_now() - now.time;
	unsigned warm_s = seconds < WARM_S ? seconds : WARM_S;

	(void)context;
	if (phase == STARTING && now.tiles == 0 && devices_count() &&
	    devices_up() == devices_count() && (!jpeg.photograph || jpeg_devices())) {
		now.tiles = 1;
		for (unsigned i = 0; i < stream_count; i++)
			start_job(&streams[i]);
	} else if (phase == STARTING && now.tiles > (uint64_t)CHECKED * stream_count) {
		phase = WARMING;
		take_sample();
	} else if (phase == STARTING && waited > START_MAX_S * UINT64_C(1000000000)) {
		die("no device came up");
	} else if (phase == WARMING && waited > warm_s * UINT64_C(1000000000)) {
		phase = MEASURING;
		take_sample();
		before = now;
	} else if (phase == MEASURING && waited > seconds * UINT64_C(1000000000)) {
		take_sample();
		report();
		phase = ENDED;
		loop_stop();
	}
}

static void open_stream(struct stream *s)
{
	uint64_t size = settings.arena_size / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
	uint32_t number = (uint32_t)(s - streams), state = number + 1;
	const struct arena_files *files;
	uint32_t *word;

	if (arenas_open(number, size))
		die("no memory for an arena");
	files = arenas_get(number);
	if (arena_map(&s->memory, files->in, size, PROT_READ | PROT_WRITE, files->out, size,
	              PROT_READ))
		die("no memory for an arena");
	if (jpeg.photograph)
		return;
	word = s->memory.in;
	for (uint64_t i = 0; i < size / sizeof *word; i++) {
		state = state * 1664525 + 1013904223; /* Knuth, TAOCP 3.3.4 */
		word[i] = state ^ state >> 16;
	}
}

static void read_arguments(int argc, char **argv)
{
	const char *image_text = "4096x4096x1:u8";
	int option;

	jpeg.processes = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	while ((option = getopt(argc, argv, "i:f:n:s:j:b:c:")) != -1)
		switch (option) {
		case 'i':
			image_text = optarg;
			break;
		case 'f':
			chain_text = optarg;
			break;
		case 'n':
			stream_count = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 's':
			seconds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'j':
			jpeg.photograph = optarg;
			break;
		case 'b':
			jpeg.bytes = strtoul(optarg, NULL, 10);
			break;
		case 'c':
			jpeg.processes = (unsigned)strtoul(optarg, NULL, 10);
			break;
		default:
			die("[-i IMAGE] [-f CHAIN] [-n STREAMS] [-s SECONDS] [-j PHOTOGRAPH] "
			    "[-b BYTES] [-c PROCESSES] [-- OPTION...]");
		}
	if (!image_parse(image_text, &image) || image.type == PIXEL_F32 || image_planes(&image) > 1)
		die("-i takes WIDTHxHEIGHTxBANDS:TYPE of type u8 or u16, and 1 to 4 bands");
	if (jpeg.photograph && (image.bands != 3 || image.type != PIXEL_U8))
		die("JPEGs need an image as 4096x4096x3:u8");
	if (!stream_count || stream_count > CODECS_MAX)
		die("-n takes 1 to 64");
	argc -= optind - 1;
	argv += optind - 1;
	*argv = "bench_engine";
	optind = 0; /* getopt begins anew */
	config = &settings;
	if (config_load(&settings, argc, argv) != CONFIG_RUN)
		die("the options after -- are not the service's");
}

static int wait_for_ever(void)
{
	return -1;
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv);
	log_init("bench_engine", (enum log_level)(LOG_LEVEL_ERROR + settings.log_level),
	         LOG_FORMAT_AUTO);
	if (jpeg.photograph)
		make_files();
	print_transfers();
	for (unsigned i = 0; i < stream_count; i++)
		open_stream(&streams[i]);
	if (loop_init() || loop_timer_init(&timer, look, NULL) || supervisor_init() ||
	    scheduler_init())
		die("cannot start");
	now.time = loop_now();
	loop_timer_repeat(&timer, CHECK_MS);
	loop_run(wait_for_ever);
	scheduler_fini();
	loop_fini();
	return 0;
}
