/* Links, and the answers that go through them: the front's calls about them are watched. */
#include <string.h>

#include "front/api/request.h"
#include "front/config/config.h"
#include "front/jobs/job.h"
#include "front/workers/device_table.h"
#include "link/link.h"
#include "sim.h"

enum { LINK_BEYOND = 1 << 20 };

/* ---- links ---- */

static const struct link *fullest;

void __real_link_close(struct link *link);
void __wrap_link_close(struct link *link);

void __wrap_link_close(struct link *link)
{
	if (fullest == link)
		fullest = NULL;
	__real_link_close(link);
}

bool __real_link_send(struct link *link, const struct link_message *message);
bool __wrap_link_send(struct link *link, const struct link_message *message);

bool __wrap_link_send(struct link *link, const struct link_message *message)
{
	const bool sent = __real_link_send(link, message);

	sim_counts[COUNT_WAITS] += link->queued > 0;
	if (link->queued > LINK_FULL + LINK_BEYOND)
		violated("%zu bytes wait in a link, after %s", link->queued,
		         link_name(message->type));
	fullest = link_is_full(link) ? link : fullest;
	if (link->queued > sim_counts[COUNT_QUEUED])
		sim_counts[COUNT_QUEUED] = link->queued;
	return sent;
}

/* ---- answers keep their deadlines ---- */

/* The time after the last moment at which an answer is due: the store looks every 250 ms. And the
 * longest time for a job. */
static const uint64_t LATE = 500 * SIM_MS, LONGEST = 100 * SIM_S;
static uint64_t last_up; /* when a device was */

/* Requests and tiles that may use any device wait for one that is away for a short time. */
static void check_no_device(const char *what)
{
	const uint64_t look = SIM_S, tenth = config->job_timeout * SIM_S / 10,
	               most = (tenth > 4 * SIM_S ? tenth : 4 * SIM_S) - look;

	if (!device_get(devices_wanted()) && sim_now - last_up < most)
		violated("a %s finds no device, %.3f s after one was up", what,
		         (double)(sim_now - last_up) / SIM_S);
}

bool __real_scheduler_has_hope(uint64_t which);
bool __wrap_scheduler_has_hope(uint64_t which);

bool __wrap_scheduler_has_hope(uint64_t which)
{
	const bool has_hope = __real_scheduler_has_hope(which);

	if (!which && !has_hope)
		check_no_device("request");
	return has_hope;
}

void __real_codec_task_done(struct task *task, const struct message_tile_done *done);
void __wrap_codec_task_done(struct task *task, const struct message_tile_done *done);

void __wrap_codec_task_done(struct task *task, const struct message_tile_done *done)
{
	if (done->error == ERR_NO_DEVICE && !task->devices)
		check_no_device("tile");
	__real_codec_task_done(task, done);
}

/* Errors that only these faults explain. */
static void check_reason(const char *reason)
{
	static const struct {
		const char *reason;
		enum fault faults[3];
	} rows[] = {
	    {"internal", {FAULTS, FAULTS, FAULTS}},
	    {"out-of-memory", {FAULT_NO_DESCRIPTOR, FAULTS, FAULTS}},
	    {"input-output", {FAULT_DISK_FULL, FAULT_DISK_ERROR, FAULT_NO_DESCRIPTOR}},
	    {"storage-full", {FAULT_DISK_FULL, FAULTS, FAULTS}},
	    {"not-an-image", {FAULT_BAD_IMAGE, FAULTS, FAULTS}},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool excused = strcmp(rows[i].reason, reason) != 0;

		for (int j = 0; j < 3; j++)
			excused |= rows[i].faults[j] < FAULTS && sim_faults[rows[i].faults[j]];
		if (!excused)
			violated("a request is answered: %s", reason);
	}
	if (!strcmp(reason, "draining") && scenario_accepts())
		violated("a request is refused as if the service were being stopped");
}

/* Judges the time of an answer that may not be later than `due`, unless the front could not help
 * it. */
static void check_time(const struct request *r, uint64_t due)
{
	due = due > sim_excuse ? due : sim_excuse;
	if (sim_now > due + LATE)
		violated("request %s, %s %s, is answered %.3f s too late: %d", r->id, r->method,
		         r->path, (double)(sim_now - due) / SIM_S, r->answer.status);
}

const struct answer *__real_routes_answer(struct request *r);
const struct answer *__wrap_routes_answer(struct request *r);

const struct answer *__wrap_routes_answer(struct request *r)
{
	const uint64_t begun = r->job ? r->job->times.accepted : 0, deadline = r->terms.deadline;

	if (r->route && r->route->act && !strcmp(r->method, "GET"))
		check_time(r, r->arrived + SIM_WAIT_S * SIM_S);
	else if (deadline && begun && !r->async)
		check_time(r, deadline > begun ? deadline : begun);
	else if (begun && !r->async)
		check_time(r, begun + LONGEST);
	if (r->answer.reason)
		check_reason(r->answer.reason);
	return __real_routes_answer(r);
}

void check_answers_step(void)
{
	if (devices_up())
		last_up = sim_now;
	if (fullest && !link_is_full(fullest))
		fullest = NULL;
	if (fullest)
		sim_excuse = sim_now;
	sim_counts[COUNT_FULL] += fullest != NULL;
}

void check_answers_reset(void)
{
	fullest = NULL;
	last_up = 0;
}
