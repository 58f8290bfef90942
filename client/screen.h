/* The terminal on which a view is drawn repeatedly: its size, and the key that ends it. */
#pragma once

#include <stdbool.h>

/* Takes over the terminal: clears it, and makes keys arrive at once and without echo. Does nothing
 * if standard output is no terminal; reads keys only if standard input is a terminal, too, and this
 * process is in its foreground. */
void screen_begin(void);
void screen_end(void);

/* Replaces the text drawn before, cut to the terminal's size; without a terminal just writes it. */
void screen_show(const char *text);

/* Waits `ms` milliseconds, less if a signal arrives. Returns true if the user wants to end: by q or
 * by the signal. */
bool screen_wait(int ms);
