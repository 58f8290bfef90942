/* SIGINT and SIGTERM end the client cleanly: the work under way is given up and its partial files
 * go. A second one ends it at once. */
#pragma once

/* Catches both, and ignores SIGPIPE. */
void interrupt_init(void);
/* The signal that came, or 0. */
int interrupt_number(void);
/* A descriptor that is readable from then on. */
int interrupt_fd(void);
