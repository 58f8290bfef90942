/* Signals: a program begins as if it had inherited nothing of them. */
#ifndef COMMON_SIGNALS_H
#define COMMON_SIGNALS_H

/* Lets in what whoever started the program had blocked, and heeds what that had ignored: a parent
 * that ignores SIGCHLD gets no child's end. */
void signals_reset(void);

#endif
