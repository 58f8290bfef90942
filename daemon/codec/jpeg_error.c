/* Only here is setjmp(): a function that has no variables of its own loses none to a jump.
 *
 * A warning means damaged data that libjpeg has replaced by a guess. Real files have a few, as
 * between segments; a file with a hundred is refused, as libvips does. */
#include "codec/jpeg_error.h"

#include <string.h>

#include "codec/library_error.h"

enum { WARNINGS_MAX = 99 };

static struct jpeg_error *error_of(j_common_ptr object)
{
	return (struct jpeg_error *)object->err;
}

static void add_line(j_common_ptr object)
{
	char text[JMSG_LENGTH_MAX], *lines = error_of(object)->lines;
	size_t used = strlen(lines);

	object->err->format_message(object, text);
	snprintf(lines + used, sizeof error_of(object)->lines - used, "%s\n", text);
}

static void leave(j_common_ptr object)
{
	add_line(object);
	longjmp(error_of(object)->leave, 1);
}

static void take_message(j_common_ptr object, int level)
{
	if (level >= 0) /* not a warning */
		return;
	if (++object->err->num_warnings == 1)
		add_line(object);
	else if (object->err->num_warnings > WARNINGS_MAX)
		leave(object);
}

struct jpeg_error_mgr *jpeg_error_init(struct jpeg_error *error)
{
	jpeg_std_error(&error->manager);
	error->manager.error_exit = leave;
	error->manager.emit_message = take_message;
	error->manager.output_message = add_line;
	*error->lines = '\0';
	return &error->manager;
}

bool jpeg_error_catch(struct jpeg_error *error, void (*step)(void *context), void *context)
{
	if (setjmp(error->leave))
		return false;
	step(context);
	return true;
}

enum error jpeg_error_take(const struct jpeg_error *error, struct problem *problem, enum error e,
                           const char *who)
{
	return library_error_describe(problem, e, who, error->lines);
}
