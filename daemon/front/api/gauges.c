/* Gauges that are read only when the metrics are requested: limits, directories, processes. */
#include "front/api/gauges.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "front/base/log_writer.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/jobs/admission.h"
#include "front/jobs/job.h"
#include "front/jobs/shares.h"
#include "front/jobs/spool.h"
#include "front/jobs/store.h"
#include "front/workers/device_table.h"
#include "front/workers/scheduler.h"

static double now_seconds(void)
{
	return (double)clock_ns(CLOCK_REALTIME) * 1e-9;
}

void gauges_reloaded(bool valid)
{
	metric_set(METRIC_RELOAD_SUCCESSFUL, NULL, NULL, valid);
	if (valid)
		metric_set(METRIC_RELOAD_TIME, NULL, NULL, now_seconds());
}

void gauges_init(void)
{
	metric_set(METRIC_BUILD_INFO, PACKAGE_VERSION, NULL, 1);
	metric_set(METRIC_START_TIME, NULL, NULL, now_seconds());
	gauges_reloaded(true);
	for (enum error e = ERR_OK + 1; e < ERR_COUNT; e++) {
		metric_add(METRIC_REQUESTS_REJECTED, error_row(e)->slug, NULL, 0);
		metric_add(METRIC_JOBS_FAILED, error_row(e)->slug, NULL, 0);
	}
	metric_add(METRIC_JOBS_FAILED, "client-gone", NULL, 0);
	metric_add(METRIC_UNREAD_ENDED, "client", NULL, 0);
	metric_add(METRIC_UNREAD_ENDED, "all", NULL, 0);
	metric_add(METRIC_JOBS_RECOVERED, "open", NULL, 0);
	metric_add(METRIC_JOBS_RECOVERED, "ended", NULL, 0);
	metric_add(METRIC_LOG_LOST, "codec", NULL, 0);
	metric_add(METRIC_LOG_LOST, "device", NULL, 0);
	metric_add(METRIC_LOG_LOST, "http", NULL, 0);
	metric_add(METRIC_LOG_LOST, "trace", NULL, 0);
}

/* A directory that cannot be read has no gauges. */
static void update_directory(const char *name, const char *path)
{
	struct statvfs fs;

	metric_forget_gauges(name);
	if (statvfs(path, &fs))
		return;
	metric_set(METRIC_DIRECTORY_FREE, name, NULL, (double)fs.f_bavail * (double)fs.f_frsize);
	metric_set(METRIC_DIRECTORY_SIZE, name, NULL, (double)fs.f_blocks * (double)fs.f_frsize);
}

static FILE *open_proc(long pid, const char *name)
{
	char path[80];

	snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
	return fopen(path, "re");
}

/* Adds a process to the gauges of its kind. Counts private memory, because arenas and bodies would
 * count once for each worker. */
static void add_process(const char *kind, long pid)
{
	unsigned long resident = 0, shared = 0;
	FILE *file = open_proc(pid, "statm");

	if (!file)
		return;
	if (fscanf(file, "%*u %lu %lu", &resident, &shared) == 2) {
		metric_add(METRIC_PROCESSES, kind, NULL, 1);
		metric_add(METRIC_PROCESS_MEMORY, kind, NULL,
		           (double)(resident - shared) * (double)sysconf(_SC_PAGESIZE));
	}
	fclose(file);
}

/* Kinds of processes by their names, which Linux cuts to 15 bytes. */
static const struct {
	const char *name, *kind;
} kinds[] = {
    {"convolved", "front"},        {"convolved-http", "http"},      {"convolved-codec", "codec"},
    {"convolved-devic", "device"}, {"convolved-compi", "compiler"}, {"convolved-trace", "trace"},
};

static const char *kind_of(long pid)
{
	char name[32] = "";
	FILE *file = open_proc(pid, "comm");
	size_t i = 1;

	if (!file)
		return NULL;
	if (fscanf(file, "%31s", name) != 1)
		name[0] = '\0';
	fclose(file);
	while (i < sizeof kinds / sizeof *kinds && strcmp(name, kinds[i].name))
		i++;
	return i < sizeof kinds / sizeof *kinds ? kinds[i].kind : NULL;
}

/* Adds the processes started by any thread of a process, and the compilers of devices. */
static void add_children(long parent)
{
	char pattern[64];
	glob_t lists;
	long pid;

	snprintf(pattern, sizeof pattern, "/proc/%ld/task/*/children", parent);
	if (glob(pattern, GLOB_NOSORT, NULL, &lists))
		return;
	for (size_t i = 0; i < lists.gl_pathc; i++) {
		FILE *children = fopen(lists.gl_pathv[i], "re");

		while (children && fscanf(children, "%ld", &pid) == 1) {
			const char *kind = kind_of(pid);

			if (kind)
				add_process(kind, pid);
			if (kind && !strcmp(kind, "device"))
				add_children(pid);
		}
		if (children)
			fclose(children);
	}
	globfree(&lists);
}

void gauges_update(bool ready)
{
	static const char *const classes[WORK_CLASSES] = {"light", "heavy", "batch", "verified"};
	DIR *open_files = opendir("/proc/self/fd");
	const double stored = (double)share_total(SHARE_RESULTS); /* ended */
	const struct store_survey survey = store_survey();
	struct rlimit limit = {0};
	struct problem problem;
	unsigned entries = 0;

	while (open_files && readdir(open_files))
		entries++;
	if (open_files)
		closedir(open_files);
	getrlimit(RLIMIT_NOFILE, &limit);
	metric_set(METRIC_TIME, NULL, NULL, now_seconds());
	metric_set(METRIC_READY, NULL, NULL, ready);
	metric_set(METRIC_CONNECTIONS_LIMIT, NULL, NULL, (double)share_connections_most());
	metric_set(METRIC_JOBS_LIMIT, NULL, NULL, (double)config->max_jobs);
	metric_set(METRIC_SPOOL_LIMIT, NULL, NULL, (double)config->max_memory);
	metric_set(METRIC_UNREAD_LIMIT, NULL, NULL, (double)config->unread_size);
	metric_set(METRIC_FREE, NULL, NULL, admission_free());
	metric_set(METRIC_STORED_LIMIT, NULL, NULL, (double)config->result_size);
	for (enum work_class class = 0; class < WORK_CLASSES; class ++)
		metric_set(METRIC_ADMISSION_WAIT, classes[class], NULL,
		           admission_predict(class, work_cost(0)));
	metric_set(METRIC_TILES_QUEUED, NULL, NULL, scheduler_waiting());
	devices_publish();
	metric_set(METRIC_JOBS, "waiting", NULL, jobs_count().waiting);
	metric_set(METRIC_JOBS, "running", NULL, jobs_count().open - jobs_count().waiting);
	metric_set(METRIC_STORED_JOBS, "open", NULL, survey.jobs - stored);
	metric_set(METRIC_STORED_JOBS, "ended", NULL, stored);
	metric_set(METRIC_STORED_OLDEST, NULL, NULL, (double)survey.oldest * 1e-9);
	metric_set(METRIC_STORED_CHANGES, NULL, NULL, survey.changes);
	metric_set(METRIC_ARCHIVE_REFUSES, NULL, NULL, archive_check(&problem) != ERR_OK);
	metric_set(METRIC_STORED_BYTES, NULL, NULL, (double)share_total(SHARE_RESULT_SIZE));
	metric_set(METRIC_UNREAD, NULL, NULL, (double)share_total(SHARE_ANSWERS));
	metric_set(METRIC_SPOOL_BYTES, NULL, NULL, (double)spool_use().memory);
	metric_set(METRIC_SPOOLS, "memory", NULL, spool_use().in_memory);
	metric_set(METRIC_SPOOLS, "file", NULL, spool_use().in_files);
	update_directory("cache", config->cache_dir);
	update_directory("state", config->state_dir);
	metric_set(METRIC_LOG_LOST, "front", NULL, (double)log_writer_lost());
	metric_set(METRIC_FRONT_CPU, NULL, NULL, (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) * 1e-9);
	/* Less ".", "..", and the directory's own descriptor. */
	metric_set(METRIC_OPEN_FDS, NULL, NULL, entries ? entries - 3 : 0);
	metric_set(METRIC_MAX_FDS, NULL, NULL, (double)limit.rlim_cur);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		metric_set(METRIC_PROCESSES, kinds[i].kind, NULL, 0);
		metric_set(METRIC_PROCESS_MEMORY, kinds[i].kind, NULL, 0);
	}
	add_process(kinds[0].kind, getpid());
	add_children(getpid());
}
