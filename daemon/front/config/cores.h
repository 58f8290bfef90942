/* Processor time that the service may use. */
#ifndef FRONT_CONFIG_CORES_H
#define FRONT_CONFIG_CORES_H

/* How many cores this process can keep busy: those that it may run on, or fewer where its control
 * group has a smaller share of their time. At least 1. */
unsigned cores_usable(void);

/* The share, in whole cores and rounded up, of the control group (version 2) at `path`, which
 * begins with '/', below the directory `root`: the least of its own cpu.max and of those of the
 * groups around it. UINT_MAX: no limit, or none that can be read. */
unsigned cores_of_group(const char *root, const char *path);

#endif
