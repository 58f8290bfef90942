/* convolved-device: filters tiles on one OpenCL device. convolved starts it with a socket at
 * descriptor 3; it ends when the socket is closed or its parent ends. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

struct options {
	struct worker_options worker;
	enum log_level log_level;
	int probe, tune, unconfined;     /* 1 if given */
	const char *filter[FILTERS_MAX]; /* filters to tune */
	size_t filters;
	double jpeg_share;              /* of the device's memory */
	int compile, compile_patiently; /* 1 if given; see compile_process.h */
};

static struct options options = {.log_level = LOG_LEVEL_NOTICE, .worker.stack_max = STACK_MAX};

static const char help[] =
    "Usage: convolved-device [OPTION]...\n"
    "Filters tiles of images on one OpenCL device. convolved starts it. Run it by hand only to\n"
    "measure its kernels: convolved-device --tune --state-dir DIR --cache-dir DIR\n"
    "\n"
    "  --platform N      index of the OpenCL platform (0)\n"
    "  --device N        index of the device on it (0)\n"
    "  --kernel-dir DIR  read kernel sources from DIR, not the built-in ones\n"
    "  --cache-dir DIR   store compiled kernels in DIR\n"
    "  --cache-size N    maximum bytes of these; 0: no limit (0)\n"
    "  --state-dir DIR   store the fastest kernels for each kind of work in DIR\n"
    "  --programs N      maximum special programs kept in memory (512)\n"
    "  --stack N         maximum tiles per launch, 1 to 32 (32)\n"
    "  --jpeg-memory N   share of the device's memory for JPEGs, 0 to 1; 0: none are taken (0)\n"
    "  --log-level NAME  error, warning, notice, info or debug (notice)\n"
    "  --unconfined      no sandbox, for drivers that do not work in it\n"
    "  --probe           send convolved the list of devices and exit\n"
    "  --tune            measure the kernels of common filters, print the results and exit\n"
    "  --filter FILTER   tune this filter, e.g. gaussian=sigma=2; may be repeated\n"
    "  --help            print this and exit\n"
    "  --version         print the version and exit\n";

static const struct option long_options[] = {
    {"platform", required_argument, NULL, 'p'},
    {"device", required_argument, NULL, 'd'},
    {"kernel-dir", required_argument, NULL, 'k'},
    {"cache-dir", required_argument, NULL, 'c'},
    {"cache-size", required_argument, NULL, 'z'},
    {"state-dir", required_argument, NULL, 's'},
    {"programs", required_argument, NULL, 'R'},
    {"stack", required_argument, NULL, 'S'},
    {"jpeg-memory", required_argument, NULL, 'J'},
    {"log-level", required_argument, NULL, 'l'},
    {"filter", required_argument, NULL, 'f'},
    {"tune", no_argument, &options.tune, 1},
    {"compile", no_argument, &options.compile, 1}, /* internal: see compile_process.h */
    {"compile-patiently", no_argument, &options.compile_patiently, 1},
    {"unconfined", no_argument, &options.unconfined, 1},
    {"probe", no_argument, &options.probe, 1},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {0},
};

static void usage_exit(const char *what, const char *value)
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

static uint64_t parse_size(const char *name, const char *text)
{
	char *end;
	unsigned long long size = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end)
		usage_exit(name, text);
	return size;
}

static double parse_share(const char *name, const char *text)
{
	char *end;
	double share = strtod(text, &end);

	if (!*text || *end || !(share >= 0 && share <= 1))
		usage_exit(name, text);
	return share;
}

static void parse_option(int c)
{
	int level;

	switch (c) {
	case 0: /* a flag, which getopt_long() has set */
		break;
	case 'p':
		options.worker.platform = parse_index("--platform", optarg);
		break;
	case 'd':
		options.worker.device = parse_index("--device", optarg);
		break;
	case 'k':
		options.worker.kernel_dir = optarg;
		break;
	case 'c':
		options.worker.cache_dir = optarg;
		break;
	case 'z':
		options.worker.cache_size = parse_size("--cache-size", optarg);
		break;
	case 's':
		options.worker.state_dir = optarg;
		break;
	case 'R':
		options.worker.programs_max = parse_index("--programs", optarg);
		break;
	case 'S':
		options.worker.stack_max = parse_index("--stack", optarg);
		if (!options.worker.stack_max || options.worker.stack_max > STACK_MAX)
			usage_exit("--stack", optarg);
		break;
	case 'J':
		options.jpeg_share = parse_share("--jpeg-memory", optarg);
		break;
	case 'f':
		if (options.filters == FILTERS_MAX)
			usage_exit("--filter", optarg);
		options.filter[options.filters++] = optarg;
		break;
	case 'l':
		level = log_level_parse(optarg);
		if (level < 0)
			usage_exit("--log-level", optarg);
		options.log_level = (enum log_level)level;
		break;
	case 'h':
		fputs(help, stdout);
		exit(0);
	case 'V':
		puts("convolved-device " PACKAGE_VERSION);
		exit(0);
	default:
		exit(2);
	}
}

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

static enum error send_ready(const struct worker *worker, uint64_t started_ms)
{
	struct message message = {.type = MSG_READY};
	struct message_ready *ready = &message.ready;

	worker_describe(worker, ready);
	ready->startup_ms = (uint32_t)(now_ms() - started_ms);
	log_info("%s (%s) is ready, %u ms after the start", ready->name, ready->driver,
	         ready->startup_ms);
	return wire_send(WORKER_SOCKET, &message, NULL);
}

/* Decides whether kernels are compiled in another process: PoCL and NVIDIA's driver compile in the
 * way of running kernels. */
static enum error open_device(struct device *device)
{
	enum error e = device_open(device, options.worker.platform, options.worker.device);

	device->separate_compiler = !e && (device->pocl || device->nvidia);
	return e;
}

static enum error serve(uint64_t started_ms)
{
	struct device device = {0};
	struct worker *worker = NULL;
	enum error e = open_device(&device);

	options.worker.jpeg_memory = (uint64_t)(options.jpeg_share * (double)device.memory);
	if (!e)
		e = worker_new(&device, &options.worker, WORKER_SOCKET, &worker);
	if (!e)
		e = send_ready(worker, started_ms);
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
	const char *const writable[] = {options.worker.cache_dir,
	                                options.worker.state_dir,
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

static enum error tune(void)
{
	struct device device = {0};
	struct worker *worker = NULL;
	enum error e = tuner_check(options.filter, options.filters);

	if (!e)
		e = open_device(&device);
	if (!e)
		e = worker_new(&device, &options.worker, -1, &worker);
	if (!e) {
		printf("%s, %s\n", device.name, device.driver);
		e = tuner_run(worker_tuner(worker), options.filter, options.filters, print_choice);
	}
	worker_free(&worker);
	device_close(&device);
	return e;
}

int main(int argc, char **argv)
{
	uint64_t started_ms = now_ms();
	int c;

	announce("convolved-device", EXPENDABLE);
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		parse_option(c);
	if (optind < argc)
		usage_exit("argument", argv[optind]);
	signals_reset();
	log_init("convolved-device", options.log_level, LOG_FORMAT_AUTO);
	if (options.compile || options.compile_patiently)
		return compile_process_serve(options.compile_patiently, options.worker.platform,
		                             options.worker.device, options.worker.kernel_dir);
	environment_set(options.worker.cache_dir);
	if (options.tune)
		return tune() ? 1 : 0;
	/* The worker ends with its parent. Signals to the process group (^C in a terminal, a
	 * service manager's SIGTERM) are for the front, which first finishes the work in flight. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (fcntl(WORKER_SOCKET, F_GETFD) < 0) {
		log_error("descriptor %d is not open: this program is started by convolved",
		          WORKER_SOCKET);
		return 2;
	}
	if (options.unconfined) {
		log_notice("not confined");
	} else if (enter_sandbox()) {
		log_error("cannot enter the sandbox: %s", strerror(errno));
		return 1;
	}
	if (options.probe)
		return probe();
	return serve(started_ms) ? 1 : 0;
}
