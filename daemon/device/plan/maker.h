/* What a thread needs to make programs: a queue, and a process that compiles. */
#ifndef DEVICE_PLAN_MAKER_H
#define DEVICE_PLAN_MAKER_H

#include "device/cl/program.h"
#include "device/plan/step.h"

enum { OPTIONS_SIZE = 320 };

struct maker {
	const struct program_source *source;
	struct compile_process *compiler; /* NULL: compiles here */
	cl_command_queue queue;
};

/* What a program is to be: that of all general kernels of a file, or of one kernel. */
struct recipe {
	enum kernel kernel; /* of the general ones of a file, any */
	enum pixel_type type;
	char options[OPTIONS_SIZE];
	/* The step that asked first, for the first launch: some drivers compile only then. Not of
	 * general kernels, whose drivers are known to compile all at once. */
	struct step like;
};

struct product {
	cl_program program;
	cl_kernel function[KERNELS]; /* NULL where it has no such kernel */
};

/* Completes a maker whose source is set; stop_fd as for compile_process_new(). A process is
 * patient, if there is one. ERR_DEVICE or ERR_MEMORY, the reason in the log; maker_fini() is right
 * in any case. */
enum error maker_init(struct maker *maker, bool separate_compiler, bool patient,
                      int stop_fd) MUST_CHECK;
void maker_fini(struct maker *maker);

/* What another process has compiled. */
struct binary {
	unsigned char *data; /* NULL: it has failed */
	size_t size;
};

/* Has the other process compile, and keeps what it made in the cache too; the data is the caller's
 * to free. */
void maker_ask_compiler(const struct maker *maker, const struct recipe *recipe,
                        struct binary *binary);

/* Make a program: from the cache, from a binary (which the others take no heed of), or by compiling
 * in this process. False if that fails; the log says why, unless it is not in the cache. */
bool maker_load(const struct maker *maker, const struct recipe *recipe, const struct binary *binary,
                struct product *product) MUST_CHECK;
bool maker_take(const struct maker *maker, const struct recipe *recipe, const struct binary *binary,
                struct product *product) MUST_CHECK;
bool maker_compile_here(const struct maker *maker, const struct recipe *recipe,
                        const struct binary *binary, struct product *product) MUST_CHECK;

/* Releases all that it holds. */
void product_fini(struct product *product);

#endif
