/* Compiling in a process of its own: what a compiler takes, breaks or holds up is then not the
 * worker's. PoCL's lets no kernel be launched while it compiles one, and stays in memory. */
#ifndef DEVICE_APART_H
#define DEVICE_APART_H

#include <stddef.h>

#include "common/image.h"
#include "device/program.h"

/* What the other process is to compile: its arguments, beside those that every worker has. */
struct apart {
	const char *file, *options; /* as for program_build(); file: "" for the general kernels */
	int type;                   /* enum pixel_type */
};

/* Has a process of this program compile, and waits for it, some minutes at most. Returns the
 * binary, which the caller frees, or NULL; the log says why. */
unsigned char *apart_compile(const struct program_source *source, const char *file,
                             const char *options, enum pixel_type type, size_t *size) MUST_CHECK;

/* The other side: compiles on the device, and hands over the binary. The exit status. */
int apart_serve(const struct apart *apart, unsigned platform, unsigned index,
                const char *kernel_dir);

#endif
