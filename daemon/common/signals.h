/* Signals: resets what a program inherited. */
#ifndef COMMON_SIGNALS_H
#define COMMON_SIGNALS_H

/* Unblocks all signals and restores the default for ignored ones: a parent that ignores SIGCHLD
 * would never learn of a child's end. SIGHUP, SIGINT and SIGQUIT stay ignored if they were: a
 * program started with nohup, or in a shell's background, shall outlive its terminal. */
void signals_reset(void);

#endif
