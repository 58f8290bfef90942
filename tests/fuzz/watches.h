/* The loop's watches, which nothing waits at: whoever includes this calls the callbacks itself. */
#pragma once

#include "base/file.h"
#include "base/loop.h"

enum error loop_watch(struct loop_watch *watch, int fd, uint32_t events, loop_callback *callback,
                      void *context)
{
	(void)events;
	*watch = (struct loop_watch){fd, callback, context};
	return ERR_OK;
}

enum error loop_adopt(struct loop_watch *watch, int fd, uint32_t events, loop_callback *callback,
                      void *context)
{
	return loop_watch(watch, fd, events, callback, context);
}

void loop_unwatch(struct loop_watch *watch)
{
	watch->fd = -1;
}

void loop_close(struct loop_watch *watch)
{
	file_close(&watch->fd);
}
