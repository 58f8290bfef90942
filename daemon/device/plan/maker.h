/* A maker loads or compiles programs for one thread, with its own queue and compiler process. */
#pragma once

#include "device/cl/compile_process.h"
#include "device/plan/step.h"

enum { OPTIONS_SIZE = 320 };

struct maker {
	const struct program_source *source;
	struct compile_process *compiler; /* NULL: compile in this process */
	cl_command_queue queue;
};

/* A program: all general kernels of a file, a special kernel, or a bare program, whose kernels
 * others create. */
struct recipe {
	const char *file;   /* below kernels/ */
	enum kernel kernel; /* for general kernels, any one of the file; KERNELS: a bare program */
	enum pixel_type type;
	char options[OPTIONS_SIZE];
	/* For special kernels: a step with the parameters of the first launch, because some drivers
	 * compile only then. Empty for others, whose drivers compile everything at once. */
	struct step like;
};

struct product {
	cl_program program;
	cl_kernel function[KERNELS]; /* NULL: not in this program */
	struct launch_record record[KERNELS];
};

/* Makes a product, as program_make() does. False on failure; the product is then empty. */
bool maker_make(const struct maker *maker, const struct recipe *recipe, enum way way,
                const struct binary *binary, struct product *product) MUST_CHECK;

/* Returns the number of launches by all makers since the start; thread-safe. */
uint64_t maker_launches(void);

/* Releases everything that the product holds. */
void product_fini(struct product *product);
