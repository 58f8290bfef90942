/* A library may report several lines. The first line is the cause; the others are its
 * consequences. */
#include "codec/library_error.h"

#include <stdio.h>
#include <string.h>

/* Skips "module: ", if it is a single word. */
static const char *skip_module(const char *line)
{
	size_t word = strcspn(line, ": \n");

	return word && !strncmp(line + word, ": ", 2) ? line + word + 2 : line;
}

/* Copies the first line without its final full stop and without unprintable characters. */
static void copy_sentence(char *sentence, size_t size, const char *line)
{
	size_t length = strcspn(line, "\n");

	if (length >= size)
		length = size - 1;
	for (size_t i = 0; i < length; i++)
		sentence[i] = line[i] >= ' ' && line[i] < 127 ? line[i] : '?';
	while (length && strchr(" .", sentence[length - 1]))
		length--;
	sentence[length] = '\0';
}

/* An exceeded memory limit is caused by the file, so it is the file's error. */
static enum error classify(enum error e, const char *lines)
{
	if (strstr(lines, "out of memory") || strstr(lines, "nsufficient memory") ||
	    strstr(lines, "Cannot allocate memory") || strstr(lines, "creating thread"))
		return ERR_DECODER_DIED;
	return strstr(lines, "unix error") || strstr(lines, "system error") ? ERR_IO : e;
}

enum error library_error_describe(struct problem *problem, enum error e, const char *who,
                                  const char *lines)
{
	char sentence[160];

	copy_sentence(sentence, sizeof sentence, skip_module(lines));
	e = classify(e, lines);
	if (!*sentence || strchr(sentence, '/'))
		return problem_set(problem, e, "%s failed", who);
	if (!strncmp(sentence, "bad seek", 8))
		return problem_set(problem, e,
		                   "the file is truncated: it refers to bytes beyond its end");
	return problem_set(problem, e, "%s says: %s", who, sentence);
}
