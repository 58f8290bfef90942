/* The canary: a 16x16 image, submitted as an ordinary job. */
#include "front/workers/canary.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/memfd.h"
#include "front/config/config.h"
#include "front/jobs/job.h"
#include "front/workers/device_table.h"

enum { CHECK_MS = 100, SIDE = 16 };

static uint64_t last_success, last_try;
static struct job *job; /* in progress, or NULL */
static struct loop_timer timer;

static uint64_t interval_ns(void)
{
	return config->canary_interval * 1000000000u;
}

void canary_success(void)
{
	last_success = loop_now();
}

bool canary_is_fresh(void)
{
	return last_success && loop_now() - last_success < 3 * interval_ns();
}

static void canary_done(struct job *done, void *)
{
	if (done->error)
		log_event(LOG_LEVEL_WARNING,
		          LOG_FIELDS(.job = done->id, .error = error_row(done->error)->slug),
		          "the test image failed: %s: %s", error_row(done->error)->title,
		          done->problem.detail);
	else
		canary_success();
	job = NULL;
	job_release(done);
}

static enum error canary_start(void)
{
	static const char header[] = "P5\n16 16\n255\n"; /* a binary PGM */
	enum { HEADER = sizeof header - 1, SIZE = HEADER + SIDE * SIDE };
	struct chain *chain = malloc(sizeof *chain);
	struct spool body = SPOOL_NONE;
	char file[SIZE];
	enum error e;
	int fd;

	if (!chain)
		return ERR_MEMORY;
	memcpy(file, header, HEADER);
	for (unsigned i = 0; i < SIDE * SIDE; i++) /* all pixels differ */
		file[HEADER + i] = (char)i;
	chain_init(chain);
	e = chain_add_filter(chain, "gaussian", NULL);
	if (!e)
		e = memfd_sealed("test image", file, SIZE, &fd);
	if (!e)
		e = spool_adopt(&body, SIZE, fd);
	if (!e)
		e = spool_settle(&body, SIZE);
	if (e)
		free(chain);
	else
		job = job_new(chain, &body);
	if (!job) {
		spool_close(&body);
		return e ? e : ERR_MEMORY;
	}
	job->options.accept[FORMAT_PNM] = ACCEPT_MOST;
	job->options.pixels_max = (uint64_t)SIDE * SIDE;
	e = job_submit(job, canary_done, NULL);
	if (e) {
		job_release(job);
		job = NULL;
	}
	return e;
}

static void canary_check(void *)
{
	const uint64_t now = loop_now(), interval = interval_ns();

	/* Until the first success, each check is a try. */
	if (job || !devices_up() ||
	    (last_success && (now - last_try < interval || now - last_success < interval)))
		return;
	last_try = now;
	if (canary_start())
		log_warning("cannot start the test image");
}

enum error canary_init(void)
{
	enum error e = loop_timer_init(&timer, canary_check, NULL);

	if (!e)
		loop_timer_repeat(&timer, CHECK_MS);
	return e;
}

void canary_stop(void)
{
	loop_timer_start(&timer, 0);
	if (!job)
		return;
	job->done = NULL;
	job_cancel(job, ERR_CANCELLED, NULL);
	job_release(job);
	job = NULL;
}

void canary_fini(void)
{
	loop_timer_fini(&timer);
}
