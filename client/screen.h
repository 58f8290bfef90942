/* The terminal that a view is drawn on, again and again: its size, and the key that ends it. */
#pragma once

#include <stdbool.h>

/* Takes over the terminal: it is cleared, and keys come at once, without an echo. Nothing happens
 * where standard output is none; keys are only read where standard input is one, too, and ours. */
void screen_begin(void);
void screen_end(void);

/* Draws a text over the one before, cut to what fits; without a terminal it is just written. */
void screen_show(const char *text);

/* Waits so many milliseconds, less if a signal comes. True if the user wants to end: by q, or by
 * the signal. */
bool screen_wait(int ms);
