/* Throughput of the engine: the scheduler, the device workers and their lanes as the service has
 * them, fed from here instead of by codec workers and HTTP.
 *
 * bench_engine [-i IMAGE] [-f CHAIN] [-n STREAMS] [-s SECONDS] [-j JPEG] [-- OPTION...]
 * IMAGE as "4096x4096x1:u8" (u8 or u16), CHAIN as "gaussian=size=5,sobel"; the options after -- are
 * the service's (--device, --batch, --cache-dir, …).
 *
 * Each of the streams stands for a codec worker: it has an arena with random pixels and one job at
 * a time, whose tiles it announces as slots become free; the next job follows at once. Costs next
 * to nothing beside the scheduler, whose thread it shares: the last columns say how busy that
 * thread and the device workers were. Before that, the bandwidth of copies to and from each GPU is
 * measured.
 *
 * With -j images are that file, 4:2:0, decoded and encoded by the devices (`./dev bench lanes`
 * compares the bytes; bench_jpeg -f: the same by libjpeg-turbo). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <glib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "bench.h"
#include "codec/jpeg_header.h"
#include "front/config/load.h"
#include "front/jobs/job.h"
#include "front/workers/codecs.h"
#include "front/workers/device_load.h"
#include "front/workers/device_table.h"
#include "front/workers/scheduler.h"
#include "front/workers/supervisor.h"
#include "transfers.h"
#include "wire/tile.h"

enum { CHECK_MS = 20, WARM_S = 4, START_MAX_S = 300 };

struct stream {
	struct arena memory;
	struct tiling tiling;
	struct job *job;
	struct plan *plan;
	uint32_t next, back; /* tiles announced, and back */
	bool begun;
};

static const char *chain_text = "gaussian=size=5";
static struct image image;
static unsigned stream_count = 8, seconds = 5;
static struct stream streams[CODECS_MAX];
/* A file that images are, or NULL: they are pixels; and its scan. */
static uint8_t *jpeg;
static struct jpeg_scan scan;
static struct config settings;
static const struct codec_owner *owner;
static struct loop_timer timer;
static enum { STARTING, WARMING, MEASURING, ENDED } phase;
static struct sample {
	uint64_t time, images, tiles;
	double front, workers; /* seconds of processor time */
} now, before;

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
	struct chain *chain = must_have(malloc(sizeof *chain));
	struct problem problem;

	chain_init(chain);
	if (chain_parse(chain, chain_text, &problem) || chain_check(chain, &problem))
		die("%s", problem.detail);
	return chain;
}

static void whole_tile(const struct stream *s, struct tile *tile)
{
	tiling_whole_tile(&s->tiling, TILE_JPEG, scan.size, tile);
}

static void place_jpeg(const struct stream *s)
{
	struct jpeg_work work = {.scan = scan, .target = {.h = 2, .v = 2}};
	struct tile tile;
	char *in = s->memory.in;

	whole_tile(s, &tile);
	if (tile.in + tile.in_size > tile.work)
		die("an arena is smaller than a file");
	work.scan.offset = 0;
	memcpy(work.target.quantization, work.scan.quantization, sizeof work.target.quantization);
	memcpy(in + tile.work, &work, sizeof work);
	memcpy(in + tile.in, jpeg + scan.offset, scan.size);
}

/* Returns the number of devices that take JPEGs of this size; 0: not all of them yet. */
static uint64_t jpeg_devices(void)
{
	uint64_t devices = 0;
	const struct device *d;

	for (unsigned i = 0; (d = device_get(i)); i++) {
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
	struct task *task = must_have(calloc(1, sizeof *task));

	if (jpeg) {
		whole_tile(s, &task->tile);
		task->devices = jpeg_devices();
		task->units = cost_of_jpeg(&image, TILE_JPEG);
		s->next++;
	} else {
		tiling_tile(&s->tiling, s->next++, &task->tile);
	}
	task->tile.job = s->job->id;
	task->tile.arena = (uint32_t)(s - streams);
	task->job = s->job;
	task->plan = s->plan;
	task->units +=
	    cost_of_area(s->plan->chain->chain, &image, task->tile.width, task->tile.height) *
	    image.bands;
	owner->task_ready(task);
}

static void start_job(struct stream *s)
{
	struct spool none = SPOOL_NONE;
	struct problem problem;

	s->job = must_have(job_new(parse_chain(), &none));
	s->job->image = image;
	s->job->image_known = true;
	s->plan = plan_use(s->job->chain, &image);
	snprintf(s->job->terms.client, sizeof s->job->terms.client, "%td", s - streams);
	if (tiling_init(&s->tiling, s->job->chain->chain, &image, s->memory.in_size,
	                s->memory.out_size, load_samples_max(s->job->chain->chain), &problem))
		die("%s", problem.detail);
	if (jpeg && !s->begun)
		place_jpeg(s);
	s->begun = true;
	if (jpeg) /* one tile */
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

void codec_task_done(struct task *task, const struct message_tile_done *done)
{
	struct stream *s = &streams[task->tile.arena];

	if (phase == ENDED) {
		free(task);
		return;
	}
	if (done->error)
		die("%s", error_row((enum error)done->error)->title);
	if (done->jpeg_flags)
		die("a device has no result for a file");
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

static double processor_time(pid_t pid)
{
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock))
		die("a process has no clock");
	return (double)clock_ns(clock) * 1e-9;
}

static void take_sample(void)
{
	const struct device *d;

	now.time = loop_now();
	now.front = processor_time(getpid());
	now.workers = 0;
	for (unsigned i = 0; (d = device_get(i)); i++)
		now.workers += processor_time(d->worker.pid);
}

static void report(void)
{
	double s = (double)(now.time - before.time) * 1e-9;
	double images = (double)(now.images - before.images) / s;

	printf("%u devices, %s, %ux%ux%u:%s, %u streams: %.1f images/s, %.0f tiles/s, %.2f GB/s "
	       "each way; cores: front %.2f, workers %.2f\n",
	       devices_wanted(), chain_text, image.width, image.height, image.bands,
	       pixel_type_rows[image.type].name, stream_count, images,
	       (double)(now.tiles - before.tiles) / s, images * (double)image_size(&image) * 1e-9,
	       (now.front - before.front) / s, (now.workers - before.workers) / s);
}

static void look(void *context)
{
	uint64_t waited = loop_now() - now.time;
	unsigned warm_s = seconds < WARM_S ? seconds : WARM_S;

	(void)context;
	if (phase == STARTING && now.tiles == 0 && devices_wanted() &&
	    devices_up() == devices_wanted() && (!jpeg || jpeg_devices())) {
		now.tiles = 1;
		for (unsigned i = 0; i < stream_count; i++)
			start_job(&streams[i]);
	} else if (phase == STARTING && now.tiles > stream_count) {
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
	if (jpeg)
		return;
	word = s->memory.in;
	for (uint64_t i = 0; i < size / sizeof *word; i++) {
		state = state * 1664525 + 1013904223; /* Knuth, TAOCP 3.3.4 */
		word[i] = state ^ state >> 16;
	}
}

static void read_jpeg(const char *path)
{
	gchar *bytes;
	gsize size;

	if (!g_file_get_contents(path, &bytes, &size, NULL))
		die("%s: cannot read this file", path);
	jpeg = (uint8_t *)bytes;
	if (jpeg_header_read(jpeg, size, &scan) || scan.components != 3)
		die("%s: this file is not for devices", path);
}

static void read_arguments(int argc, char **argv)
{
	const char *image_text = "4096x4096x1:u8";
	int option;

	while ((option = getopt(argc, argv, "i:f:n:s:j:")) != -1)
		switch (option) {
		case 'i':
			image_text = optarg;
			break;
		case 'f':
			chain_text = optarg;
			break;
		case 'n':
			stream_count = parse_number('n', optarg, CODECS_MAX);
			break;
		case 's':
			seconds = parse_number('s', optarg, 3600);
			break;
		case 'j':
			read_jpeg(optarg);
			break;
		default:
			die("[-i IMAGE] [-f CHAIN] [-n STREAMS] [-s SECONDS] [-j JPEG] [-- "
			    "OPTION...]");
		}
	if (!image_parse(image_text, &image) || image.type == PIXEL_F32 || image_planes(&image) > 1)
		die("-i takes WIDTHxHEIGHTxBANDS:TYPE of type u8 or u16, and 1 to 4 bands");
	if (jpeg)
		image = (struct image){
		    .width = scan.width, .height = scan.height, .bands = 3, .type = PIXEL_U8};
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
