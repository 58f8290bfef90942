/* SIGHUP, SIGINT and SIGTERM end the client cleanly: it abandons the work under way and removes
 * partial files. A second SIGINT or SIGTERM ends it at once. */
#pragma once

/* Catches them, unless they were ignored (nohup). SIGXFSZ becomes an errno. */
void interrupt_init(void);
/* The signal that arrived, or 0. */
int interrupt_number(void);
/* A descriptor that becomes readable when a signal has arrived. */
int interrupt_fd(void);
/* If a signal arrived, ends the process by it, so that the parent process sees the signal and a
 * shell ends its loop. */
void interrupt_end(void);
