/* A table of clients and reasons; rows that were quiet for a whole period are removed. When it is
 * full, one extra row counts all others. */
#include "front/api/refusals.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/jobs/fair.h"

enum { PERIOD_S = 60, ROWS = 256 };

struct row {
	char client[FAIR_CLIENT_SIZE];
	char reason[32];
	enum log_level level;
	unsigned long long untold; /* since its last line */
};

/* The last row is for clients without one of their own. */
static struct row rows[ROWS + 1];
static unsigned used;
static struct loop_timer period;

static void tell(const struct refusal *r, enum log_level level)
{
	char span[TRACE_TEXT_SIZE] = "";

	if (r->trace)
		trace_text(r->trace, span);
	log_event(level,
	          LOG_FIELDS(.client = r->client, .error = r->reason, .request = r->request,
	                     .route = r->route, .status = (uint64_t)r->status,
	                     .trace = r->trace ? r->trace->id : NULL,
	                     .span = r->trace ? trace_span(r->trace) : NULL),
	          "request %s%s%s%s%s%.200s refused to %s: %s%s%s", r->request, span,
	          r->method ? ": " : "", r->method ? r->method : "", r->path ? " " : "",
	          r->path ? r->path : "", r->client, r->reason, r->detail && *r->detail ? ": " : "",
	          r->detail ? r->detail : "");
}

static void tell_count(struct row *row)
{
	if (row->untold && *row->client)
		log_event(row->level, LOG_FIELDS(.client = row->client, .error = row->reason),
		          "%llu more of %s were refused: %s", row->untold, row->client,
		          row->reason);
	else if (row->untold)
		log_event(row->level, NULL, "%llu more of other clients were refused", row->untold);
	row->untold = 0;
}

/* Rows that counted nothing are removed. */
void refusals_tell(void)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < used; i++) {
		if (!rows[i].untold)
			continue;
		tell_count(&rows[i]);
		rows[kept++] = rows[i];
	}
	used = kept;
	tell_count(&rows[ROWS]);
}

static void end_period(void *context)
{
	(void)context;
	refusals_tell();
	if (used)
		loop_timer_start(&period, PERIOD_S * 1000);
}

void refusals_note(const struct refusal *r)
{
	enum log_level level = r->status >= 500 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO;
	struct row *row = rows;

	metric_add(METRIC_REQUESTS_REJECTED, r->reason, NULL, 1);
	while (row < rows + used &&
	       (strcmp(row->client, r->client) || strcmp(row->reason, r->reason)))
		row++;
	if (row < rows + used) {
		row->untold++;
		return;
	}
	if (used == ROWS) {
		rows[ROWS].level = LOG_LEVEL_INFO;
		rows[ROWS].untold++;
		return;
	}
	*row = (struct row){.level = level};
	snprintf(row->client, sizeof row->client, "%s", r->client);
	snprintf(row->reason, sizeof row->reason, "%s", r->reason);
	used++;
	tell(r, level);
	if (!loop_timer_left(&period))
		loop_timer_start(&period, PERIOD_S * 1000);
}

enum error refusals_init(void)
{
	return loop_timer_init(&period, end_period, NULL);
}

void refusals_fini(void)
{
	refusals_tell();
	loop_timer_fini(&period);
}
