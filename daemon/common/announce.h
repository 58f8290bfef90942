/* What a worker's program does first. */
#ifndef COMMON_ANNOUNCE_H
#define COMMON_ANNOUNCE_H

/* Says HELLO to the front, before anything may go wrong that depends on the version, as its
 * options; takes the name, which the path that the front starts it by does not have; and takes its
 * place in the line of those that the kernel kills where memory runs out: first the highest
 * `expendable`, from 0 to 1000. Does nothing in a program that the front has not started. */
void announce(const char *name, unsigned expendable);

#endif
