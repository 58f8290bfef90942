/* The manifest of a folder. Several processes may work in one folder: each takes the file's lock to
 * read it and to append to it. */
#include "client/manifest.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "client/output.h"

struct manifest {
	int fd;
	size_t prefix; /* of outputs: the folder and the slash, which are not noted */
	json_t *entries;
};

/* A name as JSON; bytes that are not UTF-8 are escaped as in a URL. */
static json_t *text_of(const char *name)
{
	json_t *text = json_string(name);
	char *escaped = text ? NULL : curl_easy_escape(NULL, name, 0);

	if (escaped)
		text = json_string(escaped);
	curl_free(escaped);
	return text;
}

static json_t *time_of(const struct stat *info)
{
	return json_integer((json_int_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec);
}

static json_t *entry_of(const char *output, const struct stat *result, const char *input,
                        const struct stat *info, const char *request)
{
	char *path = realpath(input, NULL);
	json_t *entry =
	    json_pack("{s:o, s:I, s:o, s:o, s:I, s:o, s:s}", "output", text_of(output), "size",
	              (json_int_t)result->st_size, "mtime_ns", time_of(result), "input",
	              text_of(path ? path : input), "input_size", (json_int_t)info->st_size,
	              "input_mtime_ns", time_of(info), "request", request);

	free(path);
	return entry;
}

/* Keeps the last entry of each output; returns the number of lines. A line that is damaged, as the
 * last one of a disk that was full, is as if it were not there. */
static size_t read_lines(struct manifest *m, FILE *file)
{
	char *line = NULL;
	size_t room = 0, lines = 0;

	for (ssize_t length; (length = getline(&line, &room, file)) > 0; lines++) {
		json_t *entry = json_loadb(line, (size_t)length, 0, NULL);
		const char *output = json_string_value(json_object_get(entry, "output"));

		if (output)
			json_object_set(m->entries, output, entry);
		json_decref(entry);
	}
	free(line);
	return lines;
}

/* One line; it starts on a line of its own even if the last one was cut off. */
static int append(const struct manifest *m, const json_t *entry)
{
	char *json = json_dumps(entry, JSON_COMPACT), *line = NULL;
	off_t end = lseek(m->fd, 0, SEEK_END);
	char last = '\n';
	int length, error = 0;

	if (end > 0 && pread(m->fd, &last, 1, end - 1) < 0)
		error = errno;
	length = json ? asprintf(&line, "%s%s\n", last == '\n' ? "" : "\n", json) : -1;
	if (!error && (length < 0 || write(m->fd, line, (size_t)length) != length))
		error = length < 0 ? ENOMEM : ENOSPC;
	free(line);
	free(json);
	return error;
}

/* When most lines have been overtaken by later ones. What is lost if the process ends meanwhile
 * costs time and nothing else. */
static void compact(const struct manifest *m)
{
	if (ftruncate(m->fd, 0))
		return;
	for (void *at = json_object_iter(m->entries); at;
	     at = json_object_iter_next(m->entries, at))
		if (append(m, json_object_iter_value(at)))
			return;
}

static void load(struct manifest *m)
{
	int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 3);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (!file)
		return;
	flock(m->fd, LOCK_EX);
	if (read_lines(m, file) > 1000 + 2 * json_object_size(m->entries))
		compact(m);
	flock(m->fd, LOCK_UN);
	fclose(file);
}

struct manifest *manifest_open(const char *folder)
{
	struct manifest *m = calloc(1, sizeof *m);
	char *path = NULL;
	int error;

	if (!m || asprintf(&path, "%s/.convolve.jsonl", folder) < 0)
		abort();
	error = output_make_folders(path);
	m->prefix = strlen(folder) + 1;
	m->fd = error ? -1 : open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	free(path);
	if (m->fd < 0) {
		error = error ? error : errno;
		free(m);
		errno = error;
		return NULL;
	}
	m->entries = json_object();
	load(m);
	return m;
}

void manifest_close(struct manifest *m)
{
	if (!m)
		return;
	close(m->fd);
	json_decref(m->entries);
	free(m);
}

bool manifest_has(const struct manifest *m, const char *output, const char *input,
                  const struct stat *info, const char *request)
{
	struct stat result;
	json_t *name = text_of(output + m->prefix), *known, *now;
	bool same;

	known = json_object_get(m->entries, json_string_value(name));
	json_decref(name);
	if (!known || stat(output, &result))
		return false;
	now = entry_of(output + m->prefix, &result, input, info, request);
	same = json_equal(known, now) == 1;
	json_decref(now);
	return same;
}

int manifest_add(struct manifest *m, const char *output, const struct stat *result,
                 const char *input, const struct stat *info, const char *request)
{
	json_t *entry = entry_of(output + m->prefix, result, input, info, request);
	int error;

	flock(m->fd, LOCK_EX);
	error = append(m, entry);
	flock(m->fd, LOCK_UN);
	json_object_set_new(m->entries, json_string_value(json_object_get(entry, "output")), entry);
	return error;
}
