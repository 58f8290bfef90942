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
#include <strings.h>
#include <sys/file.h>
#include <unistd.h>

#include "client/hash.h"
#include "client/output.h"
#include "client/place.h"
#include "client/report.h"

#define NAME ".convolve.jsonl"

static const char head[] = "{\"convolve\":\"manifest\",\"version\":1}\n";

enum { HEAD_SIZE = sizeof head - 1, LINE_MAX_SIZE = 1 << 20, SLOTS_MIN = 1 << 10 };

/* The place of the last line about an output; offset 0: the slot is free. */
struct slot {
	uint64_t hash; /* hash of the output's name */
	off_t offset;
};

struct manifest {
	int fd; /* -1: not open yet */
	char *path;
	size_t prefix; /* length of the directory and slash of outputs, which entries leave out */
	const char *run;
	struct slot *slots; /* a table with open addresses */
	size_t size, used;  /* size: a power of two, more than 3/2 of those used */
	size_t lines;       /* lines of the file, as far as it was read */
	off_t end;          /* end of that part */
};

/* Returns a name as JSON; bytes that are not UTF-8 are percent-escaped, as in a URL. */
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

/* Returns the line of a result. Unknown members of its input are left out. */
static json_t *entry_of(const char *output, const struct making *making, const struct stat *result)
{
	const char *name = making->in_place ? "in_place" : "output";
	bool elsewhere = place_kind(making->input) != PLACE_FILE;
	char *path = elsewhere ? NULL : realpath(making->input, NULL);
	json_t *entry = json_pack("{s:o, s:I, s:o, s:o, s:s}", name, text_of(output), "size",
	                          (json_int_t)result->st_size, "mtime_ns", time_of(result), "input",
	                          text_of(path ? path : making->input), "request", making->request);

	free(path);
	if (making->info)
		json_object_set_new(entry, "input_size",
		                    json_integer((json_int_t)making->info->st_size));
	if (making->info && !elsewhere)
		json_object_set_new(entry, "input_mtime_ns", time_of(making->info));
	if (making->version)
		json_object_set_new(entry, "input_version", json_string(making->version));
	return entry;
}

/* The table of lines
 * ------------------------------------------------------------------------------ */

/* Returns the line at an offset; NULL if it cannot be read, or is damaged, as the last one on a
 * full disk may be. */
static json_t *read_entry(const struct manifest *m, off_t offset)
{
	char *line = NULL;
	json_t *entry = NULL;

	for (size_t room = 1 << 10; room <= LINE_MAX_SIZE; room *= 4) {
		ssize_t got;
		char *end;

		line = realloc(line, room);
		if (!line)
			abort();
		got = pread(m->fd, line, room, offset);
		end = got > 0 ? memchr(line, '\n', (size_t)got) : NULL;
		if (end)
			entry = json_loadb(line, (size_t)(end - line), 0, NULL);
		if (end || got < (ssize_t)room)
			break;
	}
	free(line);
	return entry;
}

static bool is_in_place(const json_t *entry)
{
	return json_object_get(entry, "in_place");
}

/* Returns the name of the file that a line is about. */
static const char *output_of(const json_t *entry)
{
	return json_string_value(
	    json_object_get(entry, is_in_place(entry) ? "in_place" : "output"));
}

/* Returns the slot of an output: the one that has it, or a free one. *entry is its line, or
 * NULL. */
static struct slot *find_slot(const struct manifest *m, const char *name, json_t **entry)
{
	uint64_t wanted = hash_short(hash_text(HASH_START, name));
	struct slot *slot;

	*entry = NULL;
	for (size_t i = wanted;; i++) {
		slot = &m->slots[i & (m->size - 1)];
		if (!slot->offset)
			return slot;
		if (slot->hash != wanted)
			continue;
		*entry = read_entry(m, slot->offset);
		if (output_of(*entry) && !strcmp(output_of(*entry), name))
			return slot;
		json_decref(*entry);
		*entry = NULL;
	}
}

static void grow(struct manifest *m)
{
	struct slot *old = m->slots, *const end = old + m->size;

	m->size = m->size ? 2 * m->size : SLOTS_MIN;
	m->slots = calloc(m->size, sizeof *m->slots);
	if (!m->slots)
		abort();
	for (const struct slot *slot = old; slot < end; slot++) {
		size_t i = slot->hash;

		while (slot->offset && m->slots[i & (m->size - 1)].offset)
			i++;
		if (slot->offset)
			m->slots[i & (m->size - 1)] = *slot;
	}
	free(old);
}

static void put(struct manifest *m, const char *name, off_t offset)
{
	json_t *known;
	struct slot *slot;

	if (2 * m->size <= 3 * (m->used + 1))
		grow(m);
	slot = find_slot(m, name, &known);
	m->used += !slot->offset;
	*slot = (struct slot){hash_short(hash_text(HASH_START, name)), offset};
	json_decref(known);
}

/* Finds the last line about each output, from the end of the part that was read. */
static void read_lines(struct manifest *m, FILE *file)
{
	char *line = NULL;
	size_t room = 0;

	for (ssize_t length; (length = getline(&line, &room, file)) > 0; m->lines++) {
		json_t *entry = json_loadb(line, (size_t)length, 0, NULL);

		if (output_of(entry))
			put(m, output_of(entry), m->end);
		json_decref(entry);
		m->end += length;
	}
	free(line);
}

static void forget_table(struct manifest *m)
{
	free(m->slots);
	m->slots = NULL;
	m->size = m->used = m->lines = 0;
	m->end = HEAD_SIZE;
	grow(m);
}

/* Reads the further lines of the open file. Returns 0 or an errno. */
static int read_table(struct manifest *m)
{
	struct stat info;
	FILE *file;
	int fd;

	if (fstat(m->fd, &info))
		return errno;
	if (info.st_size <= m->end)
		return 0;
	fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 3);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file)
		return errno;
	if (!fseeko(file, m->end, SEEK_SET))
		read_lines(m, file);
	fclose(file);
	return 0;
}

/* The file
 * ---------------------------------------------------------------------------------------- */

/* Appends one line; starts a new line first if the last one was cut off. */
static int append(int fd, const json_t *entry)
{
	char *json = json_dumps(entry, JSON_COMPACT), *line = NULL;
	off_t end = lseek(fd, 0, SEEK_END);
	char last = '\n';
	int length, error = 0;

	if (end > 0 && pread(fd, &last, 1, end - 1) < 0)
		error = errno;
	length = json ? asprintf(&line, "%s%s\n", last == '\n' ? "" : "\n", json) : -1;
	if (!error && (length < 0 || write(fd, line, (size_t)length) != length))
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

/* Locks the file that has the name: another process may have replaced it meanwhile. Reads what has
 * not been read of it. */
static int lock(struct manifest *m)
{
	struct stat ours, named;
	bool is_new = m->fd < 0;

	for (unsigned attempts = 0; attempts < 10; attempts++) {
		int error = m->fd < 0 ? open_file(m) : 0;

		if (error)
			return error;
		flock(m->fd, LOCK_EX);
		if (!fstat(m->fd, &ours) && !lstat(m->path, &named) &&
		    ours.st_dev == named.st_dev && ours.st_ino == named.st_ino) {
			error = check_head(m->fd);
			if (!error && is_new)
				forget_table(m);
			return error ? error : read_table(m);
		}
		close_file(m);
		is_new = true;
	}
	return ESTALE;
}

static int by_offset(const void *one, const void *other)
{
	const off_t *a = one, *b = other;

	return *a < *b ? -1 : *a > *b;
}

/* Writes the last line about each output to a new file, which replaces the manifest. */
static int write_anew(const struct manifest *m, int fd)
{
	off_t *offsets = malloc((m->used + 1) * sizeof *offsets);
	struct stat info;
	size_t count = 0;
	int error = fstat(m->fd, &info) || fchmod(fd, info.st_mode & 0777) ? errno : check_head(fd);

	if (!offsets)
		abort();
	for (size_t i = 0; i < m->size; i++)
		if (m->slots[i].offset)
			offsets[count++] = m->slots[i].offset;
	qsort(offsets, count, sizeof *offsets, by_offset);
	for (size_t i = 0; i < count && !error; i++) {
		json_t *entry = read_entry(m, offsets[i]);

		error = entry ? append(fd, entry) : EIO;
		json_decref(entry);
	}
	free(offsets);
	return error || !fsync(fd) ? error : errno;
}

/* Rewrites the manifest when most of its lines are out of date. On failure it stays as it is. The
 * lock is held, so a killed run has left any new file that exists already. */
static void renew(struct manifest *m, bool wanted)
{
	char *path = NULL;
	int fd;

	if (asprintf(&path, "%s-new", m->path) < 0)
		abort();
	unlink(path);
	fd = wanted ? open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600) : -1;
	if (fd >= 0 && (write_anew(m, fd) || rename(path, m->path)))
		unlink(path);
	else if (fd >= 0)
		close_file(m);
	if (fd >= 0)
		close(fd);
	free(path);
}

static int load(struct manifest *m)
{
	int error = lock(m);

	if (!error)
		renew(m, m->lines > 1000 + 2 * m->used);
	if (!error && m->fd < 0)
		error = lock(m);
	if (m->fd >= 0)
		flock(m->fd, LOCK_UN);
	return error;
}

static const char *explain(int error)
{
	return error == EBADMSG ? "the file is not a manifest of convolve: move it away"
	       : error == ELOOP ? "the manifest is a symbolic link, which convolve does not write "
	                          "through: move it away"
	                        : strerror(error);
}

bool manifest_exists(const char *directory)
{
	char *path = NULL;
	bool exists;

	if (asprintf(&path, "%s/" NAME, directory) < 0)
		abort();
	exists = !access(path, F_OK);
	free(path);
	return exists;
}

struct manifest *manifest_open(const char *directory, const char *run)
{
	struct manifest *m = calloc(1, sizeof *m);
	int error;

	if (!m || asprintf(&m->path, "%s/" NAME, directory) < 0)
		abort();
	m->prefix = strlen(directory) + 1;
	m->fd = -1;
	m->run = run;
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
	free(m->slots);
	free(m->path);
	free(m);
}

/* Returns the line of an output, or NULL; the caller releases it. */
static json_t *find(const struct manifest *m, const char *output)
{
	json_t *name = text_of(output + m->prefix), *entry;

	find_slot(m, json_string_value(name), &entry);
	json_decref(name);
	return entry;
}

/* Tells whether a file has the size and time of these members. */
static bool is_as(const json_t *entry, const char *size, const char *mtime,
                  const struct stat *there)
{
	json_t *changed = time_of(there);
	bool same = json_integer_value(json_object_get(entry, size)) == there->st_size &&
	            json_equal(json_object_get(entry, mtime), changed);

	json_decref(changed);
	return same;
}

bool manifest_knows(const struct manifest *m, const char *output, const struct stat *there)
{
	json_t *known = find(m, output);
	bool same = !is_in_place(known) && is_as(known, "size", "mtime_ns", there);

	json_decref(known);
	return same;
}

enum in_place manifest_in_place(const struct manifest *m, const char *path,
                                const struct making *making)
{
	json_t *known = find(m, path);
	const char *request = json_string_value(json_object_get(known, "request"));
	enum in_place state = IN_PLACE_CHANGED;

	if (!is_in_place(known) || !request || strcmp(request, making->request) != 0 ||
	    is_as(known, "input_size", "input_mtime_ns", making->info))
		state = IN_PLACE_NEW;
	else if (is_as(known, "size", "mtime_ns", making->info))
		state = IN_PLACE_MADE;
	json_decref(known);
	return state;
}

const char *manifest_refresh(struct manifest *m)
{
	int error = lock(m);

	if (m->fd >= 0)
		flock(m->fd, LOCK_UN);
	return error ? explain(error) : NULL;
}
bool manifest_is_place(const char *output)
{
	const char *slash = strrchr(output, '/');

	return !strcasecmp(slash ? slash + 1 : output, NAME);
}

bool manifest_has(const struct manifest *m, const char *output, const struct making *making,
                  struct stat *result, char **version)
{
	json_t *known = find(m, output), *now = NULL, *value;
	const char *key, *old = json_string_value(json_object_get(known, "input_version"));
	bool same = known && !stat(output, result);

	if (same)
		now = entry_of(output + m->prefix, making, result);
	json_object_foreach(now, key, value)
		same = same && json_equal(json_object_get(known, key), value);
	if (same && !making->info)
		*version = old ? strdup(old) : NULL;
	json_decref(now);
	json_decref(known);
	return same;
}

char *manifest_made_from(const struct manifest *m, const char *output)
{
	json_t *known = find(m, output);
	const char *run = json_string_value(json_object_get(known, "run"));
	const char *input = json_string_value(json_object_get(known, "input"));
	char *copy = run && input && !strcmp(run, m->run) ? strdup(input) : NULL;

	json_decref(known);
	return copy;
}

const char *manifest_add(struct manifest *m, const char *output, const struct making *making,
                         const struct stat *result)
{
	json_t *entry = entry_of(output + m->prefix, making, result);
	int error;

	json_object_set_new(entry, "run", json_string(m->run));
	error = lock(m);
	if (!error)
		error = append(m->fd, entry);
	if (!error && making->in_place && fdatasync(m->fd))
		error = errno;
	if (!error)
		error = read_table(m);
	if (m->fd >= 0)
		flock(m->fd, LOCK_UN);
	json_decref(entry);
	return error ? explain(error) : NULL;
}
