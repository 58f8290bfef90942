/* Rates are differences between two readings of the service's counters; the first reading is not
 * shown. */
#include "client/top.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/report.h"
#include "client/screen.h"
#include "client/table.h"
#include "client/transfer.h"
#include "client/views.h"

/* One reading. */
struct look {
	double when;
	json_t *devices, *kernels;
	char *metrics;
};

static void forget(struct look *look)
{
	json_decref(look->devices);
	json_decref(look->kernels);
	free(look->metrics);
	*look = (struct look){0};
}

static enum exit_code take(const struct server *server, struct look *look)
{
	enum exit_code status = views_get(server, "/v1/devices", &look->devices);

	if (!status)
		status = views_get(server, "/v1/kernels", &look->kernels);
	if (!status)
		status = transfer_get(server, "/metrics", &look->metrics);
	look->when = report_now();
	if (status)
		forget(look);
	report_clear();
	return status;
}

/* The sum of a metric's samples, or of those with this label ("state=\"up\"") if it is not NULL, in
 * Prometheus's text format: NAME{LABELS} VALUE, one a line. */
static double metric(const char *text, const char *name, const char *label)
{
	size_t length = strlen(name);
	double sum = 0;

	for (const char *line = text, *end; *line; line = end + (*end == '\n')) {
		const char *value, *found;

		end = strchrnul(line, '\n');
		if (strncmp(line, name, length) || (line[length] != '{' && line[length] != ' '))
			continue;
		value = memrchr(line, ' ', (size_t)(end - line));
		found = label ? memmem(line, (size_t)(value - line), label, strlen(label)) : line;
		if (found)
			sum += strtod(value, NULL);
	}
	return sum;
}

/* The increase of a counter in a second; a restarted service counts from zero. */
static double rate(double now, double before, double seconds)
{
	return isnan(now) ? 0 : (now >= before ? now - before : now) / seconds;
}

static double metric_rate(const struct look *now, const struct look *before, const char *name,
                          const char *label)
{
	return rate(metric(now->metrics, name, label), metric(before->metrics, name, label),
	            now->when - before->when);
}

/* Images alone: this program's own requests would outnumber them. */
static double image_rate(const struct look *now, const struct look *before)
{
	static const char name[] = "convolved_request_duration_seconds_count";

	return metric_rate(now, before, name, "route=\"/v1/filters/{name}\"") +
	       metric_rate(now, before, name, "route=\"/v1/chain\"");
}

static void print_service(FILE *file, const struct server *server, const struct look *now,
                          const struct look *before)
{
	char clock[16];
	time_t wall = time(NULL);
	struct tm local;

	strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&wall, &local));
	fprintf(file, "%s  %s%s\n", clock, server->socket ? "unix:" : "",
	        server->socket ? server->socket : server->base);
	fprintf(file, "jobs      %.0f running, %.0f waiting; %.0f connections\n",
	        metric(now->metrics, "convolved_jobs", "state=\"running\""),
	        metric(now->metrics, "convolved_jobs", "state=\"waiting\""),
	        metric(now->metrics, "convolved_connections", NULL));
	fprintf(file, "images    %.1f/s answered; %.1f requests/s refused or failed\n",
	        image_rate(now, before),
	        metric_rate(now, before, "convolved_requests_rejected_total", NULL) +
	            metric_rate(now, before, "convolved_jobs_failed_total", NULL));
	fprintf(file,
	        "tiles     %.0f queued, %.0f on devices, %.1f/s; %.1f MB of bodies and answers\n\n",
	        metric(now->metrics, "convolved_tiles_queued", NULL),
	        metric(now->metrics, "convolved_tiles_in_flight", NULL),
	        metric_rate(now, before, "convolved_tiles_total", NULL),
	        metric(now->metrics, "convolved_spool_memory_bytes", NULL) * 1e-6);
}

/* The list's element whose two members equal those of the given one, or NULL. */
static const json_t *same(const json_t *list, const json_t *as, const char *one, const char *other)
{
	json_t *element;

	for (size_t i = 0; (element = json_array_get(list, i)); i++)
		if (!strcmp(views_text(element, one), views_text(as, one)) &&
		    !strcmp(views_text(element, other), views_text(as, other)))
			return element;
	return NULL;
}

/* The increase of a member of a kernel in a second. */
static double kernel_rate(const json_t *kernel, const json_t *before, const char *name,
                          double seconds)
{
	double was = before ? views_number(before, name) : 0;

	return rate(views_number(kernel, name), was, seconds);
}

/* The share of the time in which the device ran kernels. */
static double busy(const char *device, const struct look *now, const struct look *before)
{
	const json_t *was = json_object_get(before->kernels, "kernels");
	double share = 0;
	json_t *kernel;

	for (size_t i = 0; (kernel = views_element(now->kernels, "kernels", i)); i++)
		if (!strcmp(views_text(kernel, "device"), device))
			share += kernel_rate(kernel, same(was, kernel, "kernel", "device"),
			                     "total_seconds", now->when - before->when);
	return share;
}

static void print_devices(FILE *file, const struct look *now, const struct look *before)
{
	static const char *const headings[] = {"DEVICE", "STATE",     ">BUSY", ">TILES/S",
	                                       ">ON IT", ">RESTARTS", "NAME",  NULL};
	const json_t *was = json_object_get(before->devices, "devices");
	struct table *table = table_new(headings);
	json_t *device;

	for (size_t i = 0; (device = views_element(now->devices, "devices", i)); i++) {
		const char *id = views_text(device, "id");

		table_add(table, "%s", id);
		table_add(table, "%s", views_text(device, "state"));
		table_add(table, "%.0f %%", 100 * busy(id, now, before));
		table_add(table, "%.1f",
		          kernel_rate(device, same(was, device, "id", "id"), "tiles_done",
		                      now->when - before->when));
		table_add(table, "%.0f", views_number(device, "tiles_in_flight"));
		table_add(table, "%.0f", views_number(device, "restarts"));
		table_add(table, "%s", views_text(device, "name"));
	}
	table_print(table, file);
	fputc('\n', file);
}

static void print_kernels(FILE *file, const struct look *now, const struct look *before)
{
	static const char *const headings[] = {"KERNEL", "DEVICE", ">RUNS/S", ">BUSY",
	                                       ">GB/S",  ">P50",   ">P99",    NULL};
	const json_t *list = json_object_get(before->kernels, "kernels");
	struct table *table = table_new(headings);
	double seconds = now->when - before->when;
	json_t *kernel;

	for (size_t i = 0; (kernel = views_element(now->kernels, "kernels", i)); i++) {
		const json_t *was = same(list, kernel, "kernel", "device");
		double share = kernel_rate(kernel, was, "total_seconds", seconds);
		double bytes = kernel_rate(kernel, was, "bytes", seconds);

		table_add(table, "%s", views_text(kernel, "kernel"));
		table_add(table, "%s", views_text(kernel, "device"));
		table_add(table, "%.1f", kernel_rate(kernel, was, "count", seconds));
		table_add(table, "%.1f %%", 100 * share);
		table_add(table, "%.2f", share > 0 ? bytes / share * 1e-9 : 0);
		table_add_seconds(table, views_number(kernel, "p50_seconds"));
		table_add_seconds(table, views_number(kernel, "p99_seconds"));
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
	return status;
}
