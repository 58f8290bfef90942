/* The first steps of a worker's program. */
#ifndef COMMON_ANNOUNCE_H
#define COMMON_ANNOUNCE_H

/* Sends HELLO to the front before anything that depends on the version, such as parsing options;
 * sets the process name, which the path that the front executes does not have; and sets how early
 * the kernel kills this process when memory runs out: `expendable`, from 0 to 1000, highest first.
 * Does nothing in a program that the front did not start. */
void announce(const char *name, unsigned expendable);

#endif
