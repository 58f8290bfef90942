/* convolved-device: filters tiles on one OpenCL device. convolved starts it with a socket at
 * descriptor 3; it ends when the socket is closed or its parent ends. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/cl/compile_process.h"
#include "device/cl/environment.h"
#include "device/worker.h"
#include "process/sandbox.h"
#include "process/start.h"
#include "wire/wire.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

enum {
	FILTERS_MAX = 64,
	EXPENDABLE = 200 /* OOM score: killed after codec workers, before the front */
};

static struct worker_options options = {.stack_max = STACK_MAX};

/* Sends the devices of this host. */
static int probe(void)
{
	enum { ROOM = 64 };
	static struct message_device list[ROOM];
	size_t count = device_list(list, ROOM);
	enum error e = ERR_OK;

	for (size_t i = 0; !e && i < count; i++)
		e = wire_send(WORKER_SOCKET,
		              &(struct message){.type = MSG_DEVICE, .device = list[i]}, NULL);
	if (e)
		log_error("cannot send to the front: %s", strerror(errno));
	return e ? 1 : 0;
}

static enum error send_ready(const struct device *device, const struct worker *worker,
                             uint64_t started_ms)
{
	struct message message = {.type = MSG_READY};
	struct message_ready *ready = &message.ready;

	memcpy(ready->name, device->name, sizeof ready->name);
	memcpy(ready->driver, device->driver, sizeof ready->driver);
	ready->memory = device->memory;
	ready->lanes = worker_lanes(worker);
	ready->small_max = worker_small_max(worker);
	ready->jpeg_pixels = worker_jpeg_pixels(worker);
	ready->startup_ms = (uint32_t)(now_ms() - started_ms);
	log_info("%s (%s) is ready, %u ms after the start", device->name, device->driver,
	         ready->startup_ms);
	return wire_send(WORKER_SOCKET, &message, NULL);
}

/* Decides whether kernels are compiled in another process: PoCL and NVIDIA's driver compile in the
 * way of running kernels. */
static enum error open_device(struct device *device)
{
	enum error e = device_open(device, options.platform, options.device);

	device->separate_compiler = !e && (device->pocl || device->nvidia);
	return e;
}

static enum error serve(double jpeg_share, uint64_t started_ms)
{
	struct device device = {0};
	struct worker *worker = NULL;
	enum error e = open_device(&device);

	options.jpeg_memory = (uint64_t)(jpeg_share * (double)device.memory);
	if (!e)
		e = worker_new(&device, &options, WORKER_SOCKET, &worker);
	if (!e)
		e = send_ready(&device, worker, started_ms);
	if (!e)
		e = worker_run(worker);
	if (e) /* calls of a device in doubt may hang: make none */
		_exit(1);
	worker_free(&worker);
	device_close(&device);
	return e;
}

/* Drivers, too, write files. */
static enum error enter_sandbox(void)
{
	const char *temporary = getenv("TMPDIR");
	const char *const writable[] = {options.cache_dir,
	                                options.state_dir,
	                                getenv("POCL_CACHE_DIR"),
	                                getenv("CUDA_CACHE_PATH"),
	                                temporary ? temporary : "/tmp",
	                                "/dev",
	                                "/proc/self"};

	return sandbox_enter(
	    SANDBOX_DEVICE,
	    &(struct sandbox_access){.writable = writable,
	                             .writable_count = sizeof writable / sizeof *writable});
}

static void print_choice(const struct message_choice *choice)
{
	for (uint32_t i = 0; i < choice->count; i++) {
		const char *name = kernel_name(choice->candidate[i].kernel);
		double ns = (double)choice->candidate[i].ns;

		printf("%c %-36s %-20s %5ux%-3u by %ux%-4u", i == choice->chosen ? '*' : ' ',
		       choice->work, name, choice->candidate[i].x, choice->candidate[i].y,
		       choice->candidate[i].group_x, choice->candidate[i].group_y);
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
		e = worker_new(&device, &options, -1, &worker);
	if (!e) {
		printf("%s, %s\n", device.name, device.driver);
		e = tuner_run(worker_tuner(worker), filters, count, print_choice);
	}
	worker_free(&worker);
	device_close(&device);
	return e;
}

static noreturn void usage_exit(const char *what, const char *value)
{
	fprintf(stderr, "convolved-device: %s: '%s' is not valid\n", what, value);
	exit(2);
}

static unsigned parse_index(const char *name, const char *text)
{
	char *end;
	unsigned long index = strtoul(text, &end, 10);

	if (!*text || *end || index > 1000)
		usage_exit(name, text);
	return (unsigned)index;
}

/* What the program does when it is not a worker: it tunes, or (internal: compile_process.h)
 * compiles. */
static int run_by_hand(int argc, char **argv)
{
	static const char help[] =
	    "Usage: convolved-device --tune [OPTION]...\n"
	    "Measures the kernels of common filters on one OpenCL device, and prints the results.\n"
	    "convolved starts this program without options, to filter tiles.\n"
	    "\n"
	    "  --filter FILTER   tune this filter, e.g. gaussian=sigma=2; may be repeated\n"
	    "  --platform N      index of the OpenCL platform (0)\n"
	    "  --device N        index of the device on it (0)\n"
	    "  --kernel-dir DIR  read kernel sources from DIR, not the built-in ones\n"
	    "  --cache-dir DIR   store compiled kernels in DIR\n"
	    "  --state-dir DIR   store the fastest kernels for each kind of work in DIR\n"
	    "  --help            print this and exit\n"
	    "  --version         print the version and exit\n";
	static int compile, patient, tunes; /* 1 if given */
	static const struct option known[] = {
	    {"platform", required_argument, NULL, 'p'},
	    {"device", required_argument, NULL, 'd'},
	    {"kernel-dir", required_argument, NULL, 'k'},
	    {"cache-dir", required_argument, NULL, 'c'},
	    {"state-dir", required_argument, NULL, 's'},
	    {"filter", required_argument, NULL, 'f'},
	    {"tune", no_argument, &tunes, 1},
	    {"compile", no_argument, &compile, 1},
	    {"compile-patiently", no_argument, &patient, 1},
	    {"help", no_argument, NULL, 'h'},
	    {"version", no_argument, NULL, 'V'},
	    {0},
	};
	const char *filters[FILTERS_MAX];
	size_t count = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 0: /* a flag, which getopt_long() has set */
			break;
		case 'p':
			options.platform = parse_index("--platform", optarg);
			break;
		case 'd':
			options.device = parse_index("--device", optarg);
			break;
		case 'k':
			options.kernel_dir = optarg;
			break;
		case 'c':
			options.cache_dir = optarg;
			break;
		case 's':
			options.state_dir = optarg;
			break;
		case 'f':
			if (count == FILTERS_MAX)
				usage_exit("--filter", optarg);
			filters[count++] = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'V':
			puts("convolved-device " PACKAGE_VERSION);
			return 0;
		default:
			return 2;
		}
	}
	if (optind < argc)
		usage_exit("argument", argv[optind]);
	signals_reset();
	log_init("convolved-device", LOG_LEVEL_NOTICE, LOG_FORMAT_AUTO);
	if (compile || patient)
		return compile_process_serve(patient, options.platform, options.device,
		                             options.kernel_dir);
	if (!tunes) {
		fputs(help, stderr);
		return 2;
	}
	environment_set(options.cache_dir);
	return tune(filters, count) ? 1 : 0;
}

/* Takes over what the front says. */
static void configure(const struct start *how)
{
	options = (struct worker_options){.platform = how->platform,
	                                  .device = how->device,
	                                  .kernel_dir = *how->kernel_dir ? how->kernel_dir : NULL,
	                                  .cache_dir = how->cache_dir,
	                                  .cache_size = how->cache_size,
	                                  .state_dir = how->state_dir,
	                                  .stack_max = how->stack,
	                                  .programs_max = how->programs};
	environment_set(options.cache_dir);
}

int main(int argc, char **argv)
{
	static struct start how;
	uint64_t started_ms = now_ms();

	if (argc > 1 && *argv[1] == '-')
		return run_by_hand(argc, argv);
	start_receive("convolved-device", EXPENDABLE, &how);
	configure(&how);
	/* The worker ends with its parent. Signals to the process group (^C in a terminal, a
	 * service manager's SIGTERM) are for the front, which first finishes the work in flight. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (how.unconfined) {
		log_notice("not confined");
	} else if (enter_sandbox()) {
		log_error("cannot enter the sandbox: %s", strerror(errno));
		return 1;
	}
	if (how.probe)
		return probe();
	return serve(how.jpeg_memory, started_ms) ? 1 : 0;
}
