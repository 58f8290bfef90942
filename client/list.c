/* Lists of names. */
#include "client/list.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, NAME_MAX_SIZE = 1 << 16 };

int list_open(struct list *list, const char *path, char separator)
{
	*list = (struct list){.separator = separator};
	list->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC)
	                             : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	return list->fd < 0 ? errno : 0;
}

void list_close(struct list *list)
{
	if (list->fd >= 0)
		close(list->fd);
	free(list->buffer);
	*list = (struct list){.fd = -1};
}

/* Reads the available bytes. */
static enum supply read_more(struct list *list)
{
	struct pollfd wait = {.fd = list->fd, .events = POLLIN};
	ssize_t got;

	if (list->start) {
		list->end -= list->start;
		memmove(list->buffer, list->buffer + list->start, list->end);
		list->start = 0;
	}
	if (list->end > NAME_MAX_SIZE) {
		list->error = EMSGSIZE;
		return SUPPLY_END;
	}
	if (list->room < list->end + BLOCK + 1) {
		list->room = list->end + BLOCK + 1;
		list->buffer = realloc(list->buffer, list->room);
		if (!list->buffer)
			abort();
	}
	if (poll(&wait, 1, 0) <= 0)
		return SUPPLY_LATER;
	got = read(list->fd, list->buffer + list->end, BLOCK);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return SUPPLY_LATER;
	if (got < 0) {
		list->error = errno;
		return SUPPLY_END;
	}
	list->ended = !got;
	list->end += (size_t)got;
	return SUPPLY_READY;
}

/* Takes a line of this length; false if it is empty. */
static bool take(struct list *list, size_t size, const char **name)
{
	char *line = list->buffer + list->start;

	line[size] = '\0';
	list->start += size + 1;
	if (size && list->separator == '\n' && line[size - 1] == '\r') /* from a Windows text */
		line[--size] = '\0';
	if (list->start > list->end) /* the last line has no end */
		list->start = list->end;
	if (!size)
		return false;
	*name = line;
	return true;
}

enum supply list_next(struct list *list, const char **name)
{
	enum supply supply = SUPPLY_READY;

	while (supply == SUPPLY_READY) {
		size_t size = list->end - list->start;
		char *line = list->buffer + list->start;
		char *end = size ? memchr(line, list->separator, size) : NULL;

		if (end || (list->ended && size)) {
			if (take(list, end ? (size_t)(end - line) : size, name))
				return SUPPLY_READY;
		} else if (list->ended) {
			return SUPPLY_END;
		} else {
			supply = read_more(list);
		}
	}
	return supply;
}
