/* Rates are differences between two readings of the service's counters; the first reading is not
 * shown. */
#include "client/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/metrics.h"
#include "client/report.h"
#include "client/screen.h"
#include "client/table.h"
#include "client/transfer.h"
#include "client/views.h"

/* One reading. */
struct look {
	double when;
	struct metrics metrics;
};

static json_t *devices; /* as the service describes them */

static void forget(struct look *look)
{
	metrics_fini(&look->metrics);
}

/* Returns the device's name, or NULL. */
static const char *name_of(const char *device)
{
	json_t *one;

	for (size_t i = 0; (one = views_element(devices, "devices", i)); i++)
		if (!strcmp(views_text(one, "id"), device))
			return views_text(one, "name");
	return NULL;
}

static enum exit_code take(const struct server *server, struct look *look)
{
	const struct sample *s;
	bool known = devices;
	const struct exchange request = {.target = "/metrics", .body = -1, .result = -1};
	char *text, id[64];
	enum exit_code status = transfer_ask(server, &request, NULL, &text);

	if (status)
		return status;
	metrics_init(&look->metrics, text);
	look->when = metrics_value(&look->metrics, "convolved_time_seconds", "");
	if (!(look->when > 0))
		look->when = report_now();
	for (size_t i = 0; (s = metrics_sample(&look->metrics, "convolved_device_up", i)); i++) {
		metrics_label(s, "device", id, sizeof id);
		known = known && name_of(id);
	}
	if (!known) {
		json_decref(devices);
		devices = NULL;
		status = views_get(server, "/v1/devices", &devices);
	}
	if (status)
		forget(look);
	report_clear();
	return status;
}

/* Returns the increase of a counter in a second; a restarted service counts from zero, and an older
 * text of the service says nothing new. */
static double rate(double now, double before, double seconds)
{
	return seconds > 0 ? (now >= before ? now - before : now) / seconds : 0;
}

static double metric_rate(const struct look *now, const struct look *before, const char *name,
                          const char *label)
{
	return rate(metrics_sum(&now->metrics, name, label),
	            metrics_sum(&before->metrics, name, label), now->when - before->when);
}

/* Images alone: this program's own requests would outnumber them. */
static double image_rate(const struct look *now, const struct look *before)
{
	static const char name[] = "convolved_request_duration_seconds_count";

	return metric_rate(now, before, name, "route=\"/v1/filters/{name}\"") +
	       metric_rate(now, before, name, "route=\"/v1/presets/{preset}\"") +
	       metric_rate(now, before, name, "route=\"/v1/chain\"");
}

static void print_service(FILE *file, const struct server *server, const struct look *now,
                          const struct look *before)
{
	char clock[16];
	time_t wall = time(NULL);
	struct tm local;

	strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&wall, &local));
	fprintf(file, "%s  %s\n", clock, server->shown);
	fprintf(file, "jobs      %.0f running, %.0f waiting; %.0f connections\n",
	        metrics_sum(&now->metrics, "convolved_jobs", "state=\"running\""),
	        metrics_sum(&now->metrics, "convolved_jobs", "state=\"waiting\""),
	        metrics_sum(&now->metrics, "convolved_connections", NULL));
	fprintf(file, "images    %.1f/s answered; %.1f requests/s refused or failed\n",
	        image_rate(now, before),
	        metric_rate(now, before, "convolved_requests_rejected_total", NULL) +
	            metric_rate(now, before, "convolved_jobs_failed_total", NULL));
	fprintf(file,
	        "tiles     %.0f queued, %.0f on devices, %.1f/s; %.1f MB of bodies and answers\n\n",
	        metrics_sum(&now->metrics, "convolved_tiles_queued", NULL),
	        metrics_sum(&now->metrics, "convolved_tiles_in_flight", NULL),
	        metric_rate(now, before, "convolved_tiles_total", NULL),
	        metrics_sum(&now->metrics, "convolved_spool_memory_bytes", NULL) * 1e-6);
}

/* Returns the state of a device: that whose gauge is 1. */
static void find_state(const struct look *now, const char *device, char *state, size_t size)
{
	char id[64];
	const struct sample *s;

	snprintf(state, size, "-");
	for (size_t i = 0; (s = metrics_sample(&now->metrics, "convolved_device_state", i)); i++) {
		metrics_label(s, "device", id, sizeof id);
		if (s->value > 0 && !strcmp(id, device))
			metrics_label(s, "state", state, size);
	}
}

static void print_devices(FILE *file, const struct look *now, const struct look *before)
{
	static const char *const headings[] = {"DEVICE", "STATE",     ">BUSY", ">TILES/S",
	                                       ">ON IT", ">RESTARTS", "NAME",  NULL};
	struct table *table = table_new(headings);
	char id[64], state[32], label[96];
	const struct sample *s;

	for (size_t i = 0; (s = metrics_sample(&now->metrics, "convolved_device_up", i)); i++) {
		metrics_label(s, "device", id, sizeof id);
		find_state(now, id, state, sizeof state);
		table_add(table, "%s", id);
		table_add(table, "%s", state);
		snprintf(label, sizeof label, "device=\"%s\"", id);
		table_add(
		    table, "%.0f %%",
		    100 * metric_rate(now, before, "convolved_kernel_duration_seconds_sum", label));
		table_add(table, "%.1f", metric_rate(now, before, "convolved_tiles_total", label));
		table_add(table, "%.0f",
		          metrics_sum(&now->metrics, "convolved_tiles_in_flight", label));
		snprintf(label, sizeof label, "worker=\"%s\"", id);
		table_add(table, "%.0f",
		          metrics_sum(&now->metrics, "convolved_worker_restarts_total", label));
		table_add(table, "%s", name_of(id) ? name_of(id) : "-");
	}
	table_print(table, file);
	fputc('\n', file);
}

/* Returns the increase in a second of the counter with the labels of a kernel on a device. */
static double kernel_rate(const struct look *now, const struct look *before, const char *name,
                          const struct sample *kernel)
{
	return rate(metrics_value(&now->metrics, name, kernel->labels),
	            metrics_value(&before->metrics, name, kernel->labels),
	            now->when - before->when);
}

static void print_kernels(FILE *file, const struct look *now, const struct look *before)
{
	static const char *const headings[] = {"KERNEL", "DEVICE", ">RUNS/S", ">BUSY",
	                                       ">GB/S",  ">P50",   ">P99",    NULL};
	static const char duration[] = "convolved_kernel_duration_seconds",
	                  runs[] = "convolved_kernel_duration_seconds_count";
	struct table *table = table_new(headings);
	char name[96], device[64];
	const struct sample *s;

	for (size_t i = 0; (s = metrics_sample(&now->metrics, runs, i)); i++) {
		double share = kernel_rate(now, before, "convolved_kernel_duration_seconds_sum", s);
		double bytes = kernel_rate(now, before, "convolved_kernel_bytes_total", s);

		metrics_label(s, "kernel", name, sizeof name);
		metrics_label(s, "device", device, sizeof device);
		table_add(table, "%s", name);
		table_add(table, "%s", device);
		table_add(table, "%.1f", kernel_rate(now, before, runs, s));
		table_add(table, "%.1f %%", 100 * share);
		table_add(table, "%.2f", share > 0 ? bytes / share * 1e-9 : 0);
		table_add_seconds(table, metrics_quantile(&now->metrics, &before->metrics, duration,
		                                          s->labels, 0.5));
		table_add_seconds(table, metrics_quantile(&now->metrics, &before->metrics, duration,
		                                          s->labels, 0.99));
	}
	table_print(table, file);
}

static void print(const struct server *server, const struct look *now, const struct look *before)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		abort();
	print_service(file, server, now, before);
	print_devices(file, now, before);
	print_kernels(file, now, before);
	if (fclose(file))
		abort();
	screen_show(text);
	free(text);
}

/* Shows views until --count were shown, or the user ends it. */
static enum exit_code show_views(const struct options *options, const struct server *server,
                                 struct look *before)
{
	enum exit_code status = EXIT_DONE;
	struct look now;

	for (unsigned shown = 0; !ferror(stdout);) {
		if (screen_wait((int)(options->interval * 1000)))
			break;
		now = (struct look){0};
		status = take(server, &now);
		if (status)
			break;
		print(server, &now, before);
		forget(before);
		*before = now;
		if (++shown == options->count)
			break;
	}
	return status;
}

enum exit_code top_run(const struct options *options, const struct server *server)
{
	struct look before = {0};
	enum exit_code status = take(server, &before);

	if (!status) {
		screen_begin();
		status = show_views(options, server, &before);
		screen_end();
	}
	forget(&before);
	json_decref(devices);
	devices = NULL;
	return status;
}
