/* The first line that a library reports is the cause; the others are consequences. libvips collects
 * lines "module: text" in one buffer for the process.
 *
 * setjmp() is only here: a function without variables of its own loses none to a jump. */
#include "codec/metadata/library_error.h"

#include <string.h>

#include <vips/vips.h>

/* Pieces of damaged data that libjpeg may replace by a guess. Real files have some, for example
 * between segments; libvips refuses as many. */
enum { WARNINGS_MAX = 99 };

/* Describes the problem by the first of the library's lines: "the JPEG decoder says: ...". If the
 * memory limit was exceeded, the file caused it, so it is the file's error. */
static enum error describe(struct problem *problem, enum error e, const char *who,
                           const char *lines)
{
	size_t word = strcspn(lines, ": \n");
	bool has_module = word && !strncmp(lines + word, ": ", 2);
	const char *line = has_module ? lines + word + 2 : lines;
	char sentence[160];
	size_t length = MIN(strcspn(line, "\n"), sizeof sentence - 1);

	/* The line without its final full stop and without unprintable characters. */
	for (size_t i = 0; i < length; i++)
		sentence[i] = line[i] >= ' ' && line[i] < 127 ? line[i] : '?';
	while (length && strchr(" .", sentence[length - 1]))
		length--;
	sentence[length] = '\0';
	if (strstr(lines, "out of memory") || strstr(lines, "nsufficient memory") ||
	    strstr(lines, "Cannot allocate memory") || strstr(lines, "creating thread"))
		e = ERR_DECODER_DIED;
	else if (strstr(lines, "unix error") || strstr(lines, "system error"))
		e = ERR_IO;
	if (!*sentence || strchr(sentence, '/'))
		return problem_set(problem, e, "%s failed", who);
	if (!strncmp(sentence, "bad seek", 8))
		return problem_set(problem, e,
		                   "the file is truncated: it refers to bytes beyond its end");
	return problem_set(problem, e, "%s says: %s", who, sentence);
}

enum error vips_error_take(struct problem *problem, enum error e, const char *who)
{
	char *lines = vips_error_buffer_copy();

	e = describe(problem, e, who, lines);
	g_free(lines);
	return e;
}

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

static void count_warning(j_common_ptr object, int level)
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
	error->manager.emit_message = count_warning;
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
	return describe(problem, e, who, error->lines);
}
