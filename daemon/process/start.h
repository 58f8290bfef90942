/* The first steps of a worker's program: it tells the front its version, and receives the data that
 * it needs before it is confined. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* The content of MSG_START's memfd. A program reads the members for its kind of worker. */
struct start {
	uint32_t log_level; /* enum log_level */
	/* codec: a bit (1 << enum format) for each allowed format; its memory's bound, bytes */
	uint32_t formats;
	uint64_t memory;
	/* device: 0: it lists the devices, and says HELLO again; 1: it has no sandbox, for a driver
	 * that does not work in one */
	uint32_t has_device, unconfined;
	uint32_t platform, device; /* indices, as OpenCL lists them */
	uint32_t stack;            /* tiles that may share a launch, 1 to STACK_MAX */
	uint32_t programs;         /* special programs in memory; 0: as programs_new() */
	uint64_t cache_size;       /* maximum bytes of compiled programs; 0: no limit */
	double jpeg_memory; /* share of the device's memory for JPEGs, 0 to 1; 0: none are taken */
	char cache_dir[PATH_MAX], state_dir[PATH_MAX]; /* compiled programs, measurements */
	char kernel_dir[PATH_MAX];                     /* empty: the built-in sources */
	/* trace: the collector, as http://localhost:4318. */
	char endpoint[PATH_MAX];
};

/* True if the front started this process: it has a socket to it. */
bool start_is_worker(void);

/* Sends HELLO to the front before anything that depends on the version; sets the process name,
 * which the path executed by the front does not contain; and sets how early the kernel kills this
 * process when memory runs out: `expendable`, from 0 to 1000, highest first. */
void start_announce(const char *name, unsigned expendable);

/* Does start_announce() and signals_reset(), ignores the signals by which a terminal or a service
 * manager ends programs, and receives START. Exits if the front has not started this program. */
void start_receive(const char *name, unsigned expendable, struct start *start);

/* Unblocks all signals, and restores the default for ignored ones such as SIGCHLD, except for
 * SIGHUP, SIGINT and SIGQUIT: a program started with nohup must outlive its terminal. */
void signals_reset(void);
