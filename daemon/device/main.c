/* convolved-device: filters tiles on one OpenCL device. convolved starts it with a socket at
 * descriptor 3; it ends when the socket is closed or its parent ends. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <glib.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/cl/compile_process.h"
#include "device/cl/environment.h"
#include "device/worker.h"
#include "process/sandbox.h"
#include "process/start.h"
#include "wire/wire.h"

/* OOM score: killed after codec workers, before the front. */
enum { EXPENDABLE = 200 };

static struct start how;

/* Sends the devices of this host, and an empty one. */
static enum error send_list(void)
{
	enum { ROOM = 64 };
	static struct message_device list[ROOM + 1];
	size_t count = device_list(list, ROOM);
	enum error e = ERR_OK;

	for (size_t i = 0; !e && i <= count; i++)
		e = wire_send(WORKER_SOCKET,
		              &(struct message){.type = MSG_DEVICE, .device = list[i]}, NULL);
	if (e)
		log_error("cannot send to the front: %s", strerror(errno));
	return e;
}

/* Decides whether kernels are compiled in another process: compilation by PoCL and by NVIDIA's
 * driver blocks running kernels. */
static enum error open_device(struct device *device)
{
	enum error e = device_open(device, how.platform, how.device);

	device->separate_compiler = !e && (device->pocl || device->nvidia);
	return e;
}

static enum error serve(uint64_t started_ms)
{
	struct message message = {.type = MSG_READY};
	struct message_ready *ready = &message.ready;
	struct device device = {0};
	struct worker *worker = NULL;
	enum error e = open_device(&device);

	if (!e)
		e = worker_new(&device, &how, WORKER_SOCKET, &worker);
	if (!e) {
		worker_describe(worker, ready);
		ready->startup_ms = (uint32_t)(now_ms() - started_ms);
		log_info("%s (%s) is ready, %u ms after the start", ready->name, ready->driver,
		         ready->startup_ms);
		e = wire_send(WORKER_SOCKET, &message, NULL);
	}
	if (!e)
		e = worker_run(worker);
	if (e) /* calls of a device in doubt may hang: make none */
		_exit(1);
	worker_free(&worker);
	device_close(&device);
	return e;
}

/* Takes a directory in state-dir, as a driver must not reach the jobs beside it. */
static void enter_state(void)
{
	const size_t used = strlen(how.state_dir);

	if (!used)
		return;
	snprintf(how.state_dir + used, sizeof how.state_dir - used, "/tuning");
	if (g_mkdir_with_parents(how.state_dir, 0700))
		log_warning("cannot create the directory %s: %s", how.state_dir, strerror(errno));
}

static void print_choice(const struct message_choice *choice)
{
	for (uint32_t i = 0; i < choice->count; i++) {
		const char *name = kernel_name(choice->candidate[i].kernel);
		const struct shape *shape = &choice->candidate[i].shape;
		double ns = (double)choice->candidate[i].ns;

		printf("%c %-36s %-20s %5ux%-3u by %ux%-4u", i == choice->chosen ? '*' : ' ',
		       choice->work, name, shape->x, shape->y, shape->group_x, shape->group_y);
		if (ns > 0)
			printf(" %10.1f us %8.4f ns/sample\n", ns * 1e-3,
			       ns / (double)choice->samples);
		else
			puts("     failed");
	}
	fflush(stdout);
}

static enum error tune(const char *const *filters, size_t count)
{
	struct device device = {0};
	struct worker *worker = NULL;
	enum error e = tuner_check(filters, count);

	if (!e)
		e = open_device(&device);
	if (!e)
		e = worker_new(&device, &how, -1, &worker);
	if (!e) {
		printf("%s, %s\n", device.name, device.driver);
		e = tuner_run(worker_tuner(worker), filters, count, print_choice);
	}
	worker_free(&worker);
	device_close(&device);
	return e;
}

/* Tunes or, internally (compile_process.h), compiles, as the command line says. */
static int run_by_hand(int argc, char **argv)
{
	static gboolean tunes, version, compile, patient;
	static char *kernels, *cache, *state, **filters;
	const GOptionEntry known[] = {
	    {"tune", 0, 0, G_OPTION_ARG_NONE, &tunes,
	     "Measure the kernels of common filters, and print the results", NULL},
	    {"filter", 0, 0, G_OPTION_ARG_STRING_ARRAY, &filters,
	     "Tune this filter, e.g. gaussian=sigma=2; may be repeated", "FILTER"},
	    {"platform", 0, 0, G_OPTION_ARG_INT, &how.platform, "Index of the OpenCL platform (0)",
	     "N"},
	    {"device", 0, 0, G_OPTION_ARG_INT, &how.device, "Index of the device on it (0)", "N"},
	    {"kernel-dir", 0, 0, G_OPTION_ARG_FILENAME, &kernels,
	     "Read kernel sources from DIR, not the built-in ones", "DIR"},
	    {"cache-dir", 0, 0, G_OPTION_ARG_FILENAME, &cache, "Store compiled kernels in DIR",
	     "DIR"},
	    {"state-dir", 0, 0, G_OPTION_ARG_FILENAME, &state,
	     "Store the fastest kernels for each kind of work in DIR", "DIR"},
	    {"version", 0, 0, G_OPTION_ARG_NONE, &version, "Print the version", NULL},
	    {"compile", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, &compile, NULL, NULL},
	    {"compile-patiently", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, &patient, NULL, NULL},
	    {0}};
	GOptionContext *context = g_option_context_new("- filters tiles for convolved");
	GError *error = NULL;
	bool right;

	g_option_context_add_main_entries(context, known, NULL);
	right = g_option_context_parse(context, &argc, &argv, &error) && argc == 1 &&
	        (tunes || version || compile || patient);
	g_option_context_free(context);
	if (!right) {
		fprintf(stderr, "convolved-device: %s\n",
		        error ? error->message : "workers are started by convolved; see --help");
		g_clear_error(&error);
		return 2;
	}
	if (version) {
		puts("convolved-device " PACKAGE_VERSION);
		return 0;
	}
	signals_reset();
	log_init("convolved-device", LOG_LEVEL_NOTICE, LOG_FORMAT_AUTO);
	if (!tunes)
		return compile_process_serve(patient, how.platform, how.device, kernels);
	how.stack = STACK_MAX;
	how.programs = SPECIALS_MANY;
	snprintf(how.kernel_dir, sizeof how.kernel_dir, "%s", kernels ? kernels : "");
	snprintf(how.cache_dir, sizeof how.cache_dir, "%s", cache ? cache : "");
	snprintf(how.state_dir, sizeof how.state_dir, "%s", state ? state : "");
	environment_set(cache);
	enter_state();
	return tune((const char *const *)filters, filters ? g_strv_length(filters) : 0) ? 1 : 0;
}

int main(int argc, char **argv)
{
	uint64_t started_ms = now_ms();

	if (!start_is_worker())
		return run_by_hand(argc, argv);
	start_receive("convolved-device", EXPENDABLE, &how);
	environment_set(how.cache_dir);
	enter_state();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (how.unconfined) {
		log_notice("not confined");
	} else {
		/* Drivers, too, write files. */
		const char *const writable[] = {how.cache_dir,
		                                how.state_dir,
		                                getenv("POCL_CACHE_DIR"),
		                                getenv("CUDA_CACHE_PATH"),
		                                g_get_tmp_dir(),
		                                "/dev",
		                                "/proc/self"};
		const struct sandbox_access access = {
		    .writable = writable, .writable_count = sizeof writable / sizeof *writable};

		if (sandbox_enter(SANDBOX_DEVICE, &access)) {
			log_error("cannot enter the sandbox: %s", strerror(errno));
			return 1;
		}
	}
	if (!how.has_device) {
		if (send_list())
			return 1;
		start_receive("convolved-device", EXPENDABLE, &how);
		enter_state();
	}
	return serve(started_ms) ? 1 : 0;
}
