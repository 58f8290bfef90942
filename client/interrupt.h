/* SIGHUP, SIGINT and SIGTERM end the client cleanly: it abandons the work under way and removes
 * partial files. A second SIGINT or SIGTERM ends it at once. */
#pragma once

/* Catches them, unless they were ignored (nohup). SIGXFSZ becomes an errno. */
void interrupt_init(void);
/* Returns the signal that arrived, or 0. */
int interrupt_number(void);
/* Returns a descriptor that becomes readable when a signal has arrived. */
int interrupt_fd(void);
/* Ends the process by the signal that arrived, if any, so that the parent process sees the signal
 * and a shell ends its loop. */
void interrupt_end(void);
