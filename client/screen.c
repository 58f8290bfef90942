/* The text is cut to the terminal's current size: a line that is too long, or one line too many,
 * would scroll all others. */
#include "client/screen.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "client/interrupt.h"
#include "client/report.h"

static bool drawing, reading;
static struct termios before;

void screen_begin(void)
{
	struct termios keys;

	drawing = isatty(STDOUT_FILENO) == 1;
	/* Only the foreground process group may set a terminal; others would be stopped. */
	reading =
	    drawing && !tcgetattr(STDIN_FILENO, &before) && tcgetpgrp(STDIN_FILENO) == getpgrp();
	if (reading) {
		keys = before;
		keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		keys.c_cc[VSUSP] = _POSIX_VDISABLE; /* the shell would inherit it */
		keys.c_cc[VMIN] = 1;
		keys.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &keys);
	}
	if (drawing)
		fputs("\033[2J", stdout);
}

void screen_end(void)
{
	if (reading)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	reading = false;
}

/* Returns the number of bytes of `count` UTF-8 characters. */
static int fitting(const char *line, size_t length, unsigned columns)
{
	size_t i = 0;

	for (unsigned column = 0; i < length; i++)
		if (((unsigned char)line[i] & 0xc0) != 0x80 && column++ == columns)
			break;
	return (int)i;
}

void screen_show(const char *text)
{
	struct winsize size = {0};
	unsigned rows, columns;

	if (!drawing) {
		printf("%s\n", text);
		fflush(stdout);
		return;
	}
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	rows = size.ws_row ? size.ws_row - 1u : 1000; /* the last line holds the cursor */
	columns = size.ws_col ? size.ws_col : 1000;
	fputs("\033[H", stdout);
	for (const char *end; *text && rows--; text = end + (*end == '\n')) {
		end = strchrnul(text, '\n');
		printf("%.*s\033[K\n", fitting(text, (size_t)(end - text), columns), text);
	}
	fputs("\033[J", stdout);
	fflush(stdout);
}

bool screen_wait(int ms)
{
	struct pollfd sources[] = {{.fd = interrupt_fd(), .events = POLLIN},
	                           {.fd = reading ? STDIN_FILENO : -1, .events = POLLIN}};
	double end = report_now() + ms * 1e-3;
	char key;

	while (ms >= 0 && poll(sources, 2, ms) > 0 && !interrupt_number()) {
		if (read(STDIN_FILENO, &key, 1) != 1)
			sources[1].fd = -1; /* the terminal has closed */
		else if (key == 'q' || key == 'Q')
			return true;
		ms = (int)((end - report_now()) * 1000);
	}
	return interrupt_number() != 0;
}
