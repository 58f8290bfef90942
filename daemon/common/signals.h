/* Signals: a program begins as if it had inherited next to nothing of them. */
#ifndef COMMON_SIGNALS_H
#define COMMON_SIGNALS_H

/* Lets in what whoever started the program had blocked, and heeds what that had ignored: a parent
 * that ignores SIGCHLD gets no child's end. SIGHUP, SIGINT and SIGQUIT stay ignored: who starts a
 * program with nohup, or behind a shell's back, wants it to outlive the terminal. */
void signals_reset(void);

#endif
