/* The messages of codec, device and trace workers, and the ends of their processes, in any
 * order: the front treats each only as its state allows, tells the workers nothing that they cannot
 * know of, ends every job, and gives everything back. Processes, memory, files and the clock are
 * made up. */
#include "front/config/config.h"
#include "front/jobs/admission.h"
#include "front/workers/codecs.h"
#include "front/workers/device_load.h"
#include "front/workers/device_table.h"
#include "front/workers/discovery.h"
#include "front/workers/jpeg_router.h"
#include "front/workers/scheduler.h"
#include "front/workers/tracer.h"
#include "processes.h"
#include "reference/reference.h"

/* Test tiles come back as zeros, which are right or wrong; what is right need not be computed. */
static enum error decide_result(const struct image *image, struct reference *r)
{
	const size_t samples = image_pixels(image) * image->bands;
	const bool right = take(2);

	*r = (struct reference){.window = {0, 0, image->width, image->height},
	                        .bands = image->bands,
	                        .type = image->type,
	                        .pixels = malloc(image_size(image)),
	                        .slack = calloc(samples, sizeof *r->slack)};
	memset(r->pixels, right ? 0 : 1, image_size(image));
	return ERR_OK;
}

#define reference_filter(chain, image, pixels, result) decide_result(image, result)
#include "../../daemon/front/workers/self_test.c"
#undef reference_filter

/* Jobs ----------------------------------------------------------------------------------------- */

enum { JOBS = 8, ARENA = 1 << 20, WORKERS = 12 };

static struct config settings;
const struct config *config = &settings;

static struct held {
	struct job *job;
	bool ended;
} held[JOBS];

static void job_done(struct job *job, void *context)
{
	struct held *h = context;

	must(h->job == job && !h->ended && job->finished);
	h->ended = true;
}

static void let_go(struct held *h)
{
	if (h->job && h->ended) {
		job_release(h->job);
		h->job = NULL;
	}
}

static void post(void)
{
	static const struct {
		const char *chain;
		bool verify, target, pages, shares;
	} kinds[] = {{"gaussian=sigma=2", .verify = false},
	             {"box,median=radius=1", .verify = true},
	             {"equalize", .verify = false},
	             {"equalize,box", .pages = true},
	             {"canny=low=0.1", .verify = false},
	             {"sobel", .target = true},
	             {"gaussian=sigma=1%", .verify = false},
	             {"gaussian=sigma=20", .pages = true},
	             {"threshold=method=otsu,gaussian=sigma=1%", .verify = false}};
	struct held *h = &held[take(JOBS)];
	const unsigned kind = take(sizeof kinds / sizeof *kinds), terms = take(256);
	struct chain *chain, *copy;
	struct spool body = {.fd = -1, .writer = -1, .size = 1 + take(256) * 500};
	struct problem problem;
	struct job *job;

	let_go(h);
	if (h->job)
		return;
	chain = malloc(sizeof *chain);
	chain_init(chain);
	must(!chain_parse(chain, kinds[kind].chain, &problem) && !chain_check(chain, &problem));
	chain->variant = terms % 16 == 15 ? VARIANT_REFERENCE : VARIANT_ANY;
	copy = chain_copy(chain, 0);
	free(chain);
	body.fd = open_fd();
	spools++;
	job = job_new(copy, &body);
	must(job);
	job->options.pixels_max = 1 << 26;
	job->options.buffered_size_max = 1 << 20;
	job->options.verify = kinds[kind].verify;
	job->options.has_target = kinds[kind].target;
	job->options.page = kinds[kind].pages ? PAGES_ALL : PAGE_FIRST;
	job->terms.priority = terms & 16 ? PRIORITY_BATCH : PRIORITY_INTERACTIVE;
	job->terms.deadline = terms & 32 ? now + (terms & 64 ? 100 : 3000) * ms_ns : 0;
	job->terms.devices = terms & 128 ? 1 + take(3) : 0;
	job->terms.codec = (enum jpeg_by)(terms % 3);
	snprintf(job->terms.client, sizeof job->terms.client, "client%u", terms % 3);
	if (terms & 8)
		trace_record(&job->terms.trace, 1);
	*h = (struct held){job, false};
	must(!job_submit(job, job_done, h));
}

/* Messages ------------------------------------------------------------------------------------- */

/* Those of a codec worker about its job. */
static void say_of_job(const struct codec *c, struct message *m)
{
	static const struct image images[] = {{64, 48, 3, PIXEL_U8, 0, {0}},
	                                      {1000, 800, 1, PIXEL_U8, 0, {0}},
	                                      {500, 3000, 4, PIXEL_F32, 1, {0}},
	                                      {40, 40, 7, PIXEL_U16, 0, {0}}};
	const struct job *job = c->job;
	const unsigned what = take(8), how = take(256);
	const struct image *image = &images[how % 4];
	struct tiling tiling = {0};
	struct problem problem;
	const uint32_t pages = job->options.page == PAGES_ALL ? 1 + how / 4 % 4 : 1;
	const uint64_t most = load_samples_max(job->chain->chain);
	uint32_t index = c->run.next_tile;

	if (job->image_known)
		image = &job->image;
	if (!tiling_init(&tiling, job->chain->chain, image, ARENA, ARENA, most, &problem))
		tiling_set_pages(&tiling,
		                 job->image_known ? job_pages_read(job, job->pages) : pages);
	if (what == 0 || (what < 6 && !job->image_known)) {
		m->type = MSG_IMAGE;
		m->image =
		    (struct message_image){.job = job->options.job,
		                           .whole = *image,
		                           .image = *image,
		                           .answer = *image,
		                           .pages = pages,
		                           .input_format = how & 64 ? FORMAT_JPEG : FORMAT_PNG,
		                           .tiles = tiling.count,
		                           .late = tiling.count == 1 && how & 128};
		if (!(how & 64))
			m->image.jpeg[JPEG_DECODE] = JPEG_REASON_PIXELS;
		if (how & 32)
			m->image.jpeg[JPEG_ENCODE] = JPEG_REASON_PIXELS;
	} else if (what < 6 && tiling.count) {
		m->type = MSG_TILE;
		if (what < 2 && tiling_spread(&tiling, job->jpeg_form))
			tiling_whole_tile(&tiling, job->jpeg_form, 1000, &m->tile.tile);
		else
			tiling_tile(&tiling, c->run.next_tile % tiling.count, &m->tile.tile);
		m->tile.tile.job = job->options.job;
		m->tile.tile.arena = c->worker.number;
	} else if (what == 6) {
		m->type = MSG_VERIFIED;
		while (index && !c->run.verified.tile[index % SLOTS_MAX].known)
			index--;
		m->verified =
		    (struct message_verified){.job = job->options.job,
		                              .index = index,
		                              .run = c->run.verified.tile[index % SLOTS_MAX].run,
		                              .same = how / 16 % 2,
		                              .samples = 1,
		                              .mismatches = how / 32 % 2};
	} else {
		m->type = MSG_JOB_DONE;
		m->job_done =
		    (struct message_job_done){.job = job->options.job,
		                              .error = how & 128 ? how % ERR_COUNT : 0,
		                              .format = FORMAT_PNG,
		                              .image = images[0],
		                              .answer_size = job_gathers(job) * sizeof(double),
		                              .kept = how & 1,
		                              .jpeg = how / 2 % JPEG_CHECKS};
	}
}

static void say_of_device(const struct device *d, struct message *m)
{
	const unsigned what = take(8), how = take(256);
	const struct tile *tile = d->held_count ? &d->held[how % d->held_count]->tile : NULL;
	const uint64_t job = tile ? tile->job : SELF_TEST_JOB;
	const uint32_t index = tile ? tile->index : how % 4;

	if (what < 4) {
		m->type = MSG_TILE_DONE;
		m->tile_done = (struct message_tile_done){.job = job,
		                                          .index = index,
		                                          .error = what ? ERR_OK : ERR_DEVICE,
		                                          .stack = 1,
		                                          .launches = how % 3,
		                                          .size = tile && tile->form & TILE_ENCODE,
		                                          .jpeg_flags = how > 200,
		                                          .launch = {{how % KERNELS, 1000, 10}}};
	} else if (what == 4) {
		m->type = MSG_TILE_WAITS;
		m->tile_waits = (struct message_tile_waits){job, index, how % 2 * 5000};
	} else if (what == 5) {
		m->type = MSG_CHOICE;
		m->choice = (struct message_choice){.work = "work", .count = 1 + how % 3};
		m->choice.work[0] = (char)how;
	} else if (what == 6) {
		m->type = MSG_PROGRAMS;
		m->programs = (struct message_programs){
		    .compiled = d->programs.compiled + 1, .pending = how % 3, .jpeg = how / 4 % 2};
	} else {
		m->type = MSG_OBJECTS;
		m->objects.live[0] = how;
	}
}

static void say_likely(const struct worker *w, struct message *m)
{
	const bool codec = !strcmp(w->owner->kind, "codec"),
	           device = !strcmp(w->owner->kind, "device");

	if (!w->greeted) {
		m->type = MSG_HELLO;
		strcpy(m->hello.version, WIRE_VERSION);
	} else if (w->owner->once) {
		m->type = MSG_DEVICE;
		m->device = (struct message_device){.device = take(3), .type = (1 + take(4)) % 4};
		strcpy(m->device.name, "name");
	} else if (w->state == WORKER_STARTING) {
		m->type = MSG_READY;
		m->ready = (struct message_ready){.lanes = 1 + take(4),
		                                  .small_max = take(4) * 8,
		                                  .jpeg_pixels = take(2) << 20,
		                                  .formats = format_sets_known()};
	} else if (codec && codec_get(w->number)->job) {
		say_of_job(codec_get(w->number), m);
	} else if (codec && codec_get(w->number)->dropped) {
		m->type = MSG_JOB_DONE;
		m->job_done.job = codec_get(w->number)->dropped;
	} else if (device) {
		say_of_device(device_get(w->number), m);
	} else {
		m->type = MSG_SPANS_LOST;
	}
}

static struct worker *pick_worker(void)
{
	unsigned i = take(WORKERS);
	struct worker *w = LIST_FIRST(&workers);

	while (i-- && w)
		w = LIST_NEXT(w, place) ? LIST_NEXT(w, place) : LIST_FIRST(&workers);
	return w;
}

/* Puts a likely message into the worker's queue, after changes. */
static void say(struct worker *w, unsigned changes)
{
	static const uint64_t numbers[] = {0,          1,          2,          64,
	                                   UINT32_MAX, UINT64_MAX, 1ull << 62, 1ull << 31};
	struct process *p = process_of(w);
	struct message *m;

	if (!p || p->ended || p->killed || p->queued == QUEUE || !is_open(p->front))
		return;
	m = &p->queue[p->queued++];
	memset(m, 0, sizeof *m);
	say_likely(w, m);
	while (changes--) {
		const unsigned at = take(40), how = take(64);

		if (at == 39)
			m->type = how;
		else
			memcpy((char *)&m->hello + at * 4, &numbers[how % 8],
			       how & 8    ? 1
			       : how & 16 ? 8
			                  : 4);
	}
}

static void read_messages(struct worker *w)
{
	if (w && w->socket.fd >= 0)
		w->socket.callback(w);
}

static void end_process(struct worker *w, unsigned how)
{
	static const int statuses[] = {0, 1 << 8, SIGSEGV, SIGKILL, SIGTERM};
	struct process *p = process_of(w);

	if (!p)
		return;
	p->ended = true;
	p->status = statuses[how % 5];
	if (w->process.fd >= 0)
		w->process.callback(w);
}

static void reap(void)
{
	struct worker *w, *next;

	for (w = LIST_FIRST(&workers); w; w = next) {
		const struct process *p = process_of(w);

		next = LIST_NEXT(w, place);
		if (p && p->killed && !p->immortal && w->process.fd >= 0)
			w->process.callback(w);
	}
}

static void pass(uint64_t for_ms)
{
	now += for_ms * ms_ns;
	for (unsigned i = 0; i < TIMERS; i++) {
		struct timer *t = &timers[i];

		if (!t->timer || !t->due || t->due > now)
			continue;
		t->due = t->repeat ? now + t->repeat : 0;
		t->timer->callback(t->timer->context);
	}
	reap();
}

static void set_configuration(unsigned how)
{
	static char *const patterns[] = {"auto", "cpu", "gpu", "0:1"};

	settings.device.item[0] = patterns[how % 4];
	settings.codecs = 1 + how / 4 % 3;
}

/* Tiles are with a device or wait for one. */
static void check_tiles(void)
{
	unsigned tasks = 0, on_devices = 0;
	const struct codec *c;
	const struct device *d;

	for (unsigned i = 0; (c = codec_get(i)); i++) {
		must(c->tasks <= SLOTS_MAX && (!c->job || c->job->codec == c));
		tasks += c->tasks;
	}
	for (unsigned i = 0; (d = device_get(i)); i++) {
		must(d->held_count <= WINDOW_MAX && d->load.units >= -1e-3 &&
		     d->load.ns_per_unit > 0);
		on_devices += d->held_count;
	}
	must(tasks == on_devices + scheduler_waiting());
}

static void step(void)
{
	const unsigned what = take(16);
	struct worker *w = pick_worker();

	if (what == 0) {
		post();
	} else if (what == 1) {
		struct held *h = &held[take(JOBS)];

		if (h->job && !h->ended)
			job_cancel(h->job, ERR_DRAINING, NULL);
		let_go(h);
	} else if (what == 2) {
		wake_spools();
	} else if (what == 3) {
		end_process(w, take(5));
	} else if (what == 4) {
		static const uint64_t times[] = {1, 20, 300, 300};
		const unsigned how = take(8);

		pass(times[how % 4]);
		for (unsigned i = 0; how == 7 && i < 8; i++)
			pass(STEP_MS);
	} else if (what == 5) {
		set_configuration(take(12));
		codecs_reload();
		discovery_reload();
	} else if (what == 6 && process_of(w)) {
		const unsigned how = take(4);

		process_of(w)->deaf = how == 0;
		process_of(w)->immortal = how == 1;
		if (how == 2)
			worker_limit_files(w, 1000);
	} else {
		say(w, what > 14 ? 1 + take(3) : 0);
		if (what != 7)
			read_messages(w);
	}
	check_tiles();
}

/* Has a worker say what these bytes of input would make it say. */
static void say_so(struct worker *w, uint8_t first, uint8_t second, uint8_t third)
{
	const uint8_t *const before = input, script[] = {first, second, third};
	const size_t left_before = input_left;

	input = script;
	input_left = sizeof script;
	say(w, 0);
	read_messages(w);
	input = before;
	input_left = left_before;
}

/* A start at which nothing is wrong: two devices are found, one of which takes JPEGs. */
static void start_up(void)
{
	enum { PROGRAMS = 6, WITH_JPEG = 12 };
	struct worker *w;

	LIST_FOREACH(w, &workers, place)
		if (w->owner->once)
			break;
	say_so(w, 0, 0, 0);
	say_so(w, 0, DEVICE_GPU - 1, 0);
	say_so(w, 1, DEVICE_CPU - 1, 0);
	say_so(w, 0, DEVICE_ACCELERATOR, 0);
	LIST_FOREACH(w, &workers, place) {
		if (w->owner->once)
			continue;
		say_so(w, 0, 0, 0);
		say_so(w, 2, 1, 1);
		if (!strcmp(w->owner->kind, "device"))
			say_so(w, PROGRAMS, WITH_JPEG, 0);
	}
}

/* Processes that start, and do nothing more: jobs end at their limits of time. */
static void end_jobs(void)
{
	enum { STEPS_MAX = 400 };
	unsigned steps = 0;

	while (jobs_count().open && steps++ < STEPS_MAX) {
		struct worker *w, *next;

		wake_spools();
		for (w = LIST_FIRST(&workers); w; w = next) {
			struct process *p = process_of(w);

			next = LIST_NEXT(w, place);
			if (p)
				p->immortal = p->deaf = false;
			if (p && !p->queued && w->state == WORKER_STARTING && !w->owner->once)
				say(w, 0);
			read_messages(w);
		}
		pass(STEP_MS);
		check_tiles();
	}
	must(!jobs_count().open);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char endpoint[] = "http://localhost:4318", directory[] = "/nowhere";

	restore_front();
	input = data;
	input_left = size;
	now = 1000 * ms_ns;
	settings = (struct config){.codecs = 2,
	                           .arena_size = ARENA,
	                           .start_timeout = 10,
	                           .job_timeout = 10,
	                           .tile_timeout = 3,
	                           .quarantine_failures = 2,
	                           .verify_share = 0.5,
	                           .verify_taps = 1000,
	                           .max_jobs = 100,
	                           .max_wait = 60,
	                           .client_share = 0.75,
	                           .otlp_endpoint = endpoint,
	                           .otlp_share = 1,
	                           .cache_dir = directory,
	                           .state_dir = directory,
	                           .kernel_dir = directory,
	                           .device.count = 1};
	set_configuration(take(12));
	codec_count = 0;
	memset(codecs, 0, 4 * sizeof *codecs);
	mismatched = false;
	fini_until = 0;
	must(!loop_timer_init(&check, check_workers, NULL));
	loop_timer_repeat(&check, STALL_LOOK_MS);
	admission_init();
	must(!tracer_init() && !scheduler_init());
	if (take(4))
		start_up();
	while (input_left)
		step();
	end_jobs();
	for (unsigned i = 0; i < JOBS; i++)
		let_go(&held[i]);
	scheduler_fini();
	tracer_fini();
	loop_timer_fini(&check);
	g_clear_slist(&lost, NULL);
	for (unsigned i = 0; i < PROCESSES; i++)
		processes[i].used = false;
	for (unsigned i = 0; i < TIMERS; i++)
		must(!timers[i].timer);
	must(!fds_open && !spools && !share_total(SHARE_JOBS));
	return 0;
}
