/* One job, from MSG_JOB to MSG_JOB_DONE: the order of its stages.
 *
 * The main thread (main.c) reads and checks the header. Most jobs then have two threads of their
 * own: the decoding thread decodes and cuts tiles, and starts and joins the encoding thread. All
 * three share only `tiles`.
 *
 * A short job, a small image in a single tile, has no thread, which would cost up to a quarter of
 * its time. Wherever a thread would wait for a change, the main thread reads messages of the front.
 * The header travels with the tile, and the answer's file with the result, because each message
 * wakes a process. */
#include "codec/job.h"

#include <malloc.h>
#include <pthread.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vips/vips.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/memfd.h"
#include "codec/decode.h"
#include "codec/encode.h"
#include "codec/tiles.h"
#include "filters/chain_check.h"

/* The job as one tile: a device decodes its JPEG, encodes its answer, or both (wire/tile.h). */
struct jpeg_tile {
	enum jpeg_reason reason[JPEG_SIDES]; /* why a side cannot be a scan; NONE: it can */
	enum tile_form form;                 /* the sides that can */
	struct jpeg_work work;
	const uint8_t *scan;  /* the decoder's; work.scan.size bytes */
	struct tiling tiling; /* with pixels where such a tile has them */
};

struct job {
	struct message_job message; /* about the image in the body */
	struct message_job mask;    /* about the mask behind it, if there is one */
	struct job_place *place;
	int body;
	struct answer_file answer; /* -1 until they arrive; guarded by the tiles' lock */
	struct chain *chain;       /* owned */
	struct tiles tiles;
	struct jpeg_tile jpeg;
	struct tiling tiling;       /* for tiles of pixels alone */
	struct jpeg_bytes compared; /* a device's scan, to be compared with ours; owned */
	enum jpeg_check check;
	pthread_t thread;
	bool was_short; /* done, without the thread */
	struct message header;
	struct decoded decoded;
	struct decoder *decoder;
	struct output_format output;
	struct composer *composer;
	struct encoder *encoder;
	uint64_t start_ns, decode_ns; /* processor time of the process */
};

/* Up to this size a job may keep the main thread from reading the front's messages. */
static const uint64_t SHORT_PIXELS = 1 << 18;

/* From this size on, an image's memory is returned to the system afterwards, and the front may
 * delay the image or choose another worker. */
static const uint64_t LARGE_PIXELS = 16000000;

static enum jpeg_reason find_reason(struct job *job, enum jpeg_side side)
{
	const struct image *image = &job->tiling.image;
	const uint64_t room = job->place->arena.in_size - JPEG_WORK_SIZE - ROW_ALIGNMENT;
	struct jpeg_work *work = &job->jpeg.work;
	enum jpeg_reason reason;

	if (!job->message.jpeg_pixels)
		return JPEG_REASON_REQUEST;
	if (side == JPEG_DECODE && image->draft.width)
		return JPEG_REASON_PIXELS;
	if (image_pixels(image) > job->message.jpeg_pixels)
		return JPEG_REASON_SIZE;
	if (side == JPEG_ENCODE)
		return encode_jpeg_target(job->encoder, &work->target) ? JPEG_REASON_NONE
		                                                       : JPEG_REASON_ANSWER;
	reason = decode_jpeg_scan(job->decoder, &work->scan, &job->jpeg.scan);
	return !reason && work->scan.size > room ? JPEG_REASON_SIZE : reason;
}

/* Finds out which sides of the job can be scans. */
static void plan_jpeg(struct job *job)
{
	struct jpeg_tile *jpeg = &job->jpeg;

	for (enum jpeg_side side = 0; side < JPEG_SIDES; side++) {
		jpeg->reason[side] = find_reason(job, side);
		jpeg->form |= jpeg->reason[side] ? 0 : 1 << side;
	}
	jpeg->tiling = job->tiling;
	if (!jpeg->form || tiling_spread(&jpeg->tiling, jpeg->form))
		return;
	jpeg->form = TILE_PIXELS;
	for (enum jpeg_side side = 0; side < JPEG_SIDES; side++)
		if (!jpeg->reason[side])
			jpeg->reason[side] = JPEG_REASON_ARENA;
}

/* e: how the job stands otherwise. */
static enum error announce(struct job *job, enum error e, struct problem *problem)
{
	if (tiles_announce(&job->tiles) && !e)
		e = problem_set(problem, ERR_IO, "the header cannot be sent");
	return e;
}

/* Checks that data, to be gathered or gathered before, fits these bands and pages. */
static enum error check_gathered(const struct job *job, struct problem *problem)
{
	const struct image *image = &job->decoded.image;
	const uint32_t known = chain_pages(job->chain);

	if (known > 1 && known != job->decoded.pages)
		return problem_set(problem, ERR_INTERNAL, "the chain is for other pages");
	if (!job->message.gathering.kind || image_planes(image) == 1)
		return ERR_OK;
	return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
	                   "the image has %u bands, and a filter of the request needs a pass "
	                   "over the whole image first, which up to %d may have",
	                   image->bands, BANDS_MAX);
}

/* Checks the result of a resize, which may be larger than the image. */
static enum error check_resized(const struct job *job, struct problem *problem)
{
	const struct tiling *t = &job->tiling;
	const uint64_t pixels = (uint64_t)t->width * t->height * t->pages;

	if (!t->geometry.resizes ||
	    (pixels <= job->message.pixels_max && (uint64_t)t->height * t->pages <= IMAGE_SIDE_MAX))
		return ERR_OK;
	return problem_set(problem, ERR_TOO_MANY_PIXELS,
	                   "the result would be %ux%u (pages: %u), %" PRIu64
	                   " pixels; the limit is %" PRIu64 ", and %d rows",
	                   t->width, t->height, t->pages, pixels, job->message.pixels_max,
	                   IMAGE_SIDE_MAX);
}

/* Makes all checks that are possible before decoding. */
static enum error prepare(struct job *job, struct problem *problem)
{
	const struct arena *arena = &job->place->arena;
	struct message_image *header = &job->header.image;
	struct tiling *tiling = &job->tiling;
	struct image answer;
	enum error e;

	e = decode_open(&job->decoder, &job->decoded, &job->message, job->chain, job->body,
	                &job->place->kept, problem);
	if (!e)
		e = check_gathered(job, problem);
	if (!e)
		e = chain_border_pixel(job->chain, &job->decoded.image, job->tiles.border_pixel,
		                       problem);
	if (!e)
		e = chain_check_image(job->chain, &job->decoded.image, job->decoded.cmyk, problem);
	if (!e)
		e = chain_check_channels((enum channels)job->message.gather_channels,
		                         &job->decoded.image, job->decoded.cmyk, problem);
	if (!e)
		e = tiling_init(tiling, job->chain, &job->decoded.image, arena->in_size,
		                arena->out_size, job->message.samples_max, problem);
	if (!e) {
		tiling_set_pages(tiling, job->decoded.pages);
		tiling->apart = chain_pages(job->chain) > 1;
		e = check_resized(job, problem);
	}
	if (!e)
		e = gather_check(&job->message, tiling, problem);
	answer = job->decoded.image;
	if (!e)
		e = compose_size(&job->message, &job->decoded.whole, tiling, &answer, problem);
	if (!e && job->mask.mask && !job->message.gathering.kind)
		e = mask_open(&job->tiles.mask, &job->mask, tiling, &job->decoded.whole, job->body,
		              problem);
	if (!e)
		e = output_format_choose(&job->output, &job->message, &job->decoded, &answer,
		                         problem);
	if (!e && !job->message.gathering.kind)
		e = compose_open(&job->composer, &job->tiles, job->body, problem);
	if (!e && !job->message.gathering.kind)
		e = encode_open(&job->encoder, &job->output, compose_rows(job->composer),
		                job->decoder, problem);
	if (e)
		return e;
	plan_jpeg(job);
	tiles_start(&job->tiles, tiling);
	job->header.type = MSG_IMAGE;
	*header = (struct message_image){.job = job->message.job,
	                                 .whole = job->decoded.whole,
	                                 .image = job->decoded.image,
	                                 .answer = job->output.result,
	                                 .input_format = job->decoded.format,
	                                 .pages = job->decoded.file_pages,
	                                 .tiles = tiling->count};
	memcpy(header->jpeg, job->jpeg.reason, sizeof header->jpeg);
	job->tiles.header = &job->header;
	return ERR_OK;
}

/* Waits until the front has sent the answer's file, or (consent) has agreed to the job in another
 * way. Returns false if the job was stopped. */
static bool await_answer(struct job *job, bool consent)
{
	pthread_mutex_lock(&job->tiles.lock);
	while (job->answer.writer < 0 && !(consent && job->tiles.whole != WHOLE_NONE) &&
	       !job->tiles.stopped)
		tiles_await_change(&job->tiles);
	pthread_mutex_unlock(&job->tiles.lock);
	return !tiles_stopped(&job->tiles);
}

static void encode(struct job *job)
{
	struct jpeg_bytes scan = {job->place->arena.out, 0};
	struct problem problem = {0};
	bool coded;
	enum error e;

	if (!await_answer(job, false))
		return;
	if (job->message.gathering.kind) {
		e = gather_run(&job->tiles, job->answer.writer, &problem);
	} else {
		/* Around the scan of a tile that was the whole job, or from pixels. */
		coded = tiles_await_whole(&job->tiles) && job->jpeg.form & TILE_ENCODE;
		if (coded && tiles_stopped(&job->tiles))
			return;
		scan.size = job->tiles.whole_size; /* known only now */
		e = encode_run(job->encoder, coded ? &scan : NULL, &job->answer, &problem);
	}
	if (e)
		tiles_stop(&job->tiles, e, &problem);
	if (tiles_stopped(&job->tiles))
		return;
	/* Frees the tiles that no later row frees. */
	tiles_free_above(&job->tiles, job->tiles.tiling.pages * job->tiles.tiling.height);
	/* A file has no seals. The front ends a worker whose memory has none when it is counted. */
	memfd_seal(job->answer.writer);
	if (job->compared.at)
		job->check = jpeg_check(&job->compared, job->answer.reader);
	if (job->tiles.compared)
		job->check = jpeg_compare_end(&job->tiles.compared);
}

static void *encode_thread(void *job)
{
	encode(job);
	vips_thread_shutdown();
	return NULL;
}

static bool is_large(const struct decoded *decoded)
{
	return (uint64_t)decoded->whole.width * decoded->whole.height * decoded->pages >=
	       LARGE_PIXELS;
}

/* Lets a device do the job as one tile, with pixels ready. False if tiles of pixels must do it. */
static bool do_whole(struct job *job)
{
	const struct jpeg_tile *jpeg = &job->jpeg;
	uint8_t *in = job->place->arena.in, *scan;
	struct tile tile;

	tiling_whole_tile(&jpeg->tiling, jpeg->form, jpeg->work.scan.size, &tile);
	memcpy(in + tile.work, &jpeg->work, sizeof jpeg->work);
	if (jpeg->form & TILE_DECODE)
		memcpy(in + tile.in, jpeg->scan, jpeg->work.scan.size);
	if (tiles_send_whole(&job->tiles, &tile, verify_chosen(&job->tiles)))
		return true;
	if (job->tiles.whole != WHOLE_COMPARED)
		return false;
	/* Keeps the device's result, because tiles will overwrite it. */
	if (!(jpeg->form & TILE_ENCODE)) {
		job->tiles.compared = jpeg_compare_new(&jpeg->tiling, job->place->arena.out);
		return false;
	}
	job->compared.at = scan = malloc(job->tiles.whole_size);
	if (scan) {
		memcpy(scan, job->place->arena.out, job->tiles.whole_size);
		job->compared.size = job->tiles.whole_size;
	}
	return false;
}

/* Lets a device decode the image, and maybe encode it, if the front agrees. Returns false if this
 * worker must decode it. */
static bool decode_by_device(struct job *job)
{
	if (!await_answer(job, true))
		return true;
	if (job->tiles.whole != WHOLE_EXPECTED)
		return false;
	tiles_start(&job->tiles, &job->jpeg.tiling);
	job->decode_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - job->start_ns;
	if (do_whole(job))
		return true;
	tiles_start(&job->tiles, &job->tiling);
	return false;
}

/* The front must agree to the decoding of a large image, and chooses who decodes one that a device
 * can. decode_ns counts all threads until decode_begin() returns, and this thread afterwards. */
static enum error decode(struct job *job, struct problem *problem)
{
	uint64_t begun_ns, thread_ns;
	enum error e;
	bool whole;

	if (job->jpeg.form == TILE_DECODE && decode_by_device(job))
		return ERR_OK;
	if ((is_large(&job->decoded) || job->jpeg.form) && !await_answer(job, true))
		return ERR_OK;
	whole = job->jpeg.form == TILE_ENCODE && job->tiles.whole == WHOLE_EXPECTED;
	e = decode_begin(job->decoder, problem);
	begun_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - job->start_ns;
	thread_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (!e && whole)
		tiles_start(&job->tiles, &job->jpeg.tiling);
	if (!e)
		e = cut_run(&job->tiles, job->decoder, !whole, problem);
	if (!e && whole && !tiles_stopped(&job->tiles) && !do_whole(job))
		e = cut_send(&job->tiles, problem);
	job->decode_ns =
	    begun_ns + clock_ns(CLOCK_THREAD_CPUTIME_ID) - thread_ns - job->tiles.reference_ns;
	return e;
}

static void end(struct job *job, enum error e, const struct problem *problem)
{
	if (e)
		tiles_stop(&job->tiles, e, problem);
	encode_close(&job->encoder);
	mask_close(&job->tiles.mask);
	compose_close(&job->composer);
	decode_close(&job->decoder);
	vips_error_clear();
}

static void *job_thread(void *data)
{
	struct job *job = data;
	struct problem problem = {0};
	pthread_t encoder;
	enum error e;

	if (pthread_create(&encoder, NULL, encode_thread, job)) {
		e = no_memory(&problem, "for a thread");
	} else {
		e = decode(job, &problem);
		if (e)
			tiles_stop(&job->tiles, e, &problem);
		pthread_join(encoder, NULL);
	}
	end(job, e, &problem);
	vips_thread_shutdown();
	loop_post(job->place->finished);
	return NULL;
}

/* Does the job, here or in a thread. e: the job has failed before, and only ends. */
static void start(struct job *job, enum error e, struct problem *problem)
{
	bool here, done;

	if (!e)
		e = prepare(job, problem);
	/* The reference would also keep the main thread busy for long. */
	here =
	    e ||
	    (job->tiles.tiling.count == 1 && !job->message.has_target && !job->message.verify &&
	     !job->tiles.mask && job->chain->variant != VARIANT_REFERENCE &&
	     (uint64_t)job->decoded.whole.width * job->decoded.whole.height <= SHORT_PIXELS &&
	     job->decoded.plain && (job->message.gathering.kind || encode_is_plain(job->encoder)));
	/* An empty chain may only ask for the header. */
	job->header.image.late = !e && here && !job->jpeg.form && job->chain->count;
	if (!job->header.image.late)
		e = announce(job, e, problem);
	job->tiles.hear = job->place->hear;
	job->tiles.context = job->place->context;
	/* Only bytes are copied if a device does both sides. */
	done = !e && job->jpeg.form == TILE_JPEG && decode_by_device(job);
	if (!e && !here && !done) {
		job->tiles.hear = NULL;
		if (!pthread_create(&job->thread, NULL, job_thread, job))
			return;
		e = no_memory(problem, "for a thread");
	}
	if (!e && !done)
		e = decode(job, problem);
	e = announce(job, e, problem); /* unless a tile did */
	if (!e)
		encode(job);
	end(job, e, problem);
	job->was_short = true;
}

bool job_start(struct job **job, struct job_place *place, const struct message_job *message,
               const int fds[2], struct message_job_done *done)
{
	struct job *new = calloc(1, sizeof *new);
	struct kept_rows *kept = &place->kept;
	struct problem problem = {0};
	const bool valid = message->format < FORMATS && gathering_valid(&message->gathering) &&
	                   message->page <= PAGES_ALL && message->gather_channels < CHANNELS &&
	                   !(message->gathering.kind && message->jpeg_pixels) &&
	                   message->mask <= message->body_size && coding_valid(&message->coding) &&
	                   (!message->raw || image_valid(&message->raw_image));
	enum error e;

	*done = (struct message_job_done){.job = message->job};
	*job = new;
	if (!new) {
		for (int i = 0; i < 2; i++)
			close(fds[i]);
		done->error = no_memory(&done->problem, "for the job");
		return true;
	}
	new->message = new->mask = *message;
	new->message.mask = 0;
	new->message.body_size = message->mask ? message->mask : message->body_size;
	new->mask.body_size -= message->mask;
	new->place = place;
	new->body = fds[0];
	new->answer.writer = -1;
	new->start_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	e = chain_take(fds[1], &new->chain);
	tiles_init(&new->tiles, &new->message, new->chain, place->socket, &place->arena);
	if (e == ERR_MEMORY)
		e = problem_set(&problem, e, "no memory for the job");
	else if (e || !valid)
		e = problem_set(&problem, ERR_INTERNAL, "the job's description is not valid");
	close(fds[1]);
	/* Rows that the last run kept. A run that gathers may keep an arena's size of rows. */
	if (!message->follows || kept->run != message->follows)
		kept_rows_free(kept);
	if (message->gathering.kind)
		kept->size_max = place->arena.in_size;
	start(new, e, &problem);
	if (new->was_short)
		job_finish(job, done);
	return !*job;
}

bool job_hear(struct job *job, const struct message *message, const int *fds)
{
	const uint64_t number = job->message.job;
	bool wanted;

	if (message->type == MSG_WHOLE && message->whole.job == number) {
		pthread_mutex_lock(&job->tiles.lock);
		if (job->jpeg.form && message->whole.form == job->jpeg.form &&
		    job->answer.writer < 0)
			tiles_set_whole(&job->tiles, WHOLE_EXPECTED);
		pthread_mutex_unlock(&job->tiles.lock);
	} else if (message->type == MSG_ANSWER && message->answer.job == number) {
		pthread_mutex_lock(&job->tiles.lock);
		wanted = job->answer.writer < 0;
		if (wanted)
			job->answer = (struct answer_file){fds[0], fds[1]};
		pthread_cond_broadcast(&job->tiles.change);
		pthread_mutex_unlock(&job->tiles.lock);
		for (int i = 0; !wanted && i < 2; i++)
			close(fds[i]);
	} else if (message->type == MSG_TILE_DONE && message->tile_done.job == number) {
		tiles_done(&job->tiles, &message->tile_done);
	} else if (message->type == MSG_CANCEL && message->cancel.job == number) {
		fail_with(tiles_stop, &job->tiles, ERR_CANCELLED, "the job was cancelled");
	} else {
		return false;
	}
	return true;
}

void job_finish(struct job **job, struct message_job_done *done)
{
	struct job *j = *job;
	struct kept_rows *kept = &j->place->kept;
	uint64_t busy_ns, other_ns;
	struct stat status;

	if (!j->was_short)
		pthread_join(j->thread, NULL);
	busy_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - j->start_ns;
	*done = (struct message_job_done){.job = j->message.job,
	                                  .error = j->tiles.error,
	                                  .problem = j->tiles.problem,
	                                  .input_format = j->decoded.format,
	                                  .decode_ns = j->decode_ns,
	                                  .verify_ns = j->tiles.verify_ns,
	                                  .reference_ns = j->tiles.reference_ns};
	other_ns = done->decode_ns + done->verify_ns + done->reference_ns;
	done->encode_ns = busy_ns > other_ns ? busy_ns - other_ns : 0;
	if (!done->error && fstat(j->answer.reader, &status))
		done->error = ERR_IO;
	if (!done->error) {
		done->format = j->output.format;
		done->image = j->output.image;
		done->lost = j->output.lost;
		done->jpeg = j->check;
		done->answer_size = (uint64_t)status.st_size;
	}
	/* Leaves the rows to the next run if there will be one; otherwise frees them. */
	done->kept = j->message.gathering.kind && !j->tiles.error && kept_rows_complete(kept);
	kept->run = j->message.job;
	if (!done->kept)
		kept_rows_free(kept);
	if (is_large(&j->decoded))
		malloc_trim(0);
	close(j->body);
	if (j->answer.writer >= 0) {
		close(j->answer.writer);
		close(j->answer.reader);
	}
	free((void *)(uintptr_t)j->compared.at);
	free(j->tiles.compared);
	tiles_fini(&j->tiles);
	free(j->chain);
	free(j);
	*job = NULL;
}
