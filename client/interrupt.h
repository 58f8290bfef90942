/* SIGHUP, SIGINT and SIGTERM end the client cleanly: the work under way is given up and its partial
 * files go. A second SIGINT or SIGTERM ends it at once. */
#pragma once

/* Catches them, unless they were ignored (nohup). What writes too much gets an errno, no signal. */
void interrupt_init(void);
/* The signal that came, or 0. */
int interrupt_number(void);
/* A descriptor that is readable from then on. */
int interrupt_fd(void);
/* Ends the process by the signal that came, if one did: whoever waits for it is told so, and a
 * shell ends its loop. */
void interrupt_end(void);
