/* The manifest of a directory. Several processes may work in one directory: each takes the file's
 * lock to read it and to append to it. */
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
#include "client/report.h"

static const char head[] = "{\"convolve\":\"manifest\",\"version\":1}\n";

enum { HEAD_SIZE = sizeof head - 1 };

struct manifest {
	int fd; /* -1: not open yet */
	char *path;
	size_t prefix; /* length of the directory and slash of outputs, which entries leave out */
	json_t *entries;
};

/* A name as JSON; bytes that are not UTF-8 are percent-escaped, as in a URL. */
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

/* Reads the last entry of each output; returns the number of lines. A damaged line, such as the
 * last one on a full disk, is ignored. */
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

/* Appends one line; starts a new line first if the last one was cut off. */
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

/* Checks that the locked file is a manifest; an empty file becomes one. */
static int check_head(int fd)
{
	char first[HEAD_SIZE];
	ssize_t got = pread(fd, first, sizeof first, 0);

	if (got < 0)
		return errno;
	if (got)
		return got == HEAD_SIZE && !memcmp(first, head, HEAD_SIZE) ? 0 : EBADMSG;
	if (write(fd, head, HEAD_SIZE) == HEAD_SIZE)
		return 0;
	return ftruncate(fd, 0) ? errno : ENOSPC;
}

static int open_file(struct manifest *m)
{
	struct stat info;
	int error = 0;

	m->fd = open(m->path,
	             O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
	             0666);
	if (m->fd < 0 || fstat(m->fd, &info))
		error = errno;
	else if (!S_ISREG(info.st_mode))
		error = EBADMSG;
	return error;
}

static void close_file(struct manifest *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

/* Locks the file that has the name: another process may have replaced it meanwhile. */
static int lock(struct manifest *m)
{
	struct stat ours, named;

	for (unsigned attempts = 0; attempts < 10; attempts++) {
		int error = m->fd < 0 ? open_file(m) : 0;

		if (error)
			return error;
		flock(m->fd, LOCK_EX);
		if (!fstat(m->fd, &ours) && !lstat(m->path, &named) &&
		    ours.st_dev == named.st_dev && ours.st_ino == named.st_ino)
			return check_head(m->fd);
		close_file(m);
	}
	return ESTALE;
}

/* Writes all entries to a new file, which replaces the manifest. */
static int write_anew(const struct manifest *m, int fd)
{
	struct manifest copy = {.fd = fd};
	struct stat info;
	int error = fstat(m->fd, &info) || fchmod(fd, info.st_mode & 0777) ? errno : check_head(fd);

	for (void *at = json_object_iter(m->entries); at && !error;
	     at = json_object_iter_next(m->entries, at))
		error = append(&copy, json_object_iter_value(at));
	return error || !fsync(fd) ? error : errno;
}

/* Rewrites the manifest when most of its lines are out of date. On failure it stays as it is. */
static void renew(struct manifest *m)
{
	char *path = NULL;
	int fd = asprintf(&path, "%s-XXXXXX", m->path) < 0 ? -1 : mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		free(path);
	if (fd < 0)
		return;
	if (write_anew(m, fd) || rename(path, m->path))
		unlink(path);
	else
		close_file(m);
	close(fd);
	free(path);
}

static int load(struct manifest *m)
{
	int error = lock(m), fd = error ? -1 : fcntl(m->fd, F_DUPFD_CLOEXEC, 3);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	bool stale;

	if (!file)
		return error ? error : errno;
	stale = !fseek(file, HEAD_SIZE, SEEK_SET) &&
	        read_lines(m, file) > 1000 + 2 * json_object_size(m->entries);
	fclose(file);
	if (stale)
		renew(m);
	if (m->fd >= 0)
		flock(m->fd, LOCK_UN);
	return 0;
}

static const char *explain(int error)
{
	return error == EBADMSG ? "the file is not a manifest of convolve: move it away"
	       : error == ELOOP ? "the manifest is a symbolic link, which convolve does not write "
	                          "through: move it away"
	                        : strerror(error);
}

struct manifest *manifest_open(const char *directory)
{
	struct manifest *m = calloc(1, sizeof *m);
	int error;

	if (!m || asprintf(&m->path, "%s/.convolve.jsonl", directory) < 0)
		abort();
	m->prefix = strlen(directory) + 1;
	m->fd = -1;
	m->entries = json_object();
	error = output_make_directories(m->path);
	if (!error)
		error = load(m);
	if (!error)
		return m;
	report_error("%s: %s", m->path, explain(error));
	manifest_close(m);
	return NULL;
}

void manifest_close(struct manifest *m)
{
	if (!m)
		return;
	close_file(m);
	json_decref(m->entries);
	free(m->path);
	free(m);
}

static json_t *find(const struct manifest *m, const char *output)
{
	json_t *name = text_of(output + m->prefix);
	json_t *entry = json_object_get(m->entries, json_string_value(name));

	json_decref(name);
	return entry;
}

bool manifest_knows(const struct manifest *m, const char *output)
{
	return find(m, output) != NULL;
}

bool manifest_has(const struct manifest *m, const char *output, struct stat *result,
                  const char *input, const struct stat *info, const char *request)
{
	json_t *known = find(m, output), *now;
	bool same;

	if (!known || stat(output, result))
		return false;
	now = entry_of(output + m->prefix, result, input, info, request);
	same = json_equal(known, now) == 1;
	json_decref(now);
	return same;
}

const char *manifest_add(struct manifest *m, const char *output, const struct stat *result,
                         const char *input, const struct stat *info, const char *request)
{
	json_t *entry = entry_of(output + m->prefix, result, input, info, request);
	int error;

	error = lock(m);
	if (!error)
		error = append(m, entry);
	if (m->fd >= 0)
		flock(m->fd, LOCK_UN);
	json_object_set_new(m->entries, json_string_value(json_object_get(entry, "output")), entry);
	return error ? explain(error) : NULL;
}
