/* The journal of a list. A new file takes the name at every save; the lock moves with it. */
#include "client/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/report.h"

enum { DIGITS = 33, JOURNAL_VERSION = 1 };

struct journal {
	char *path;
	int fd; /* holds the lock */
	char command[DIGITS];
	uint64_t done;
	char names[DIGITS]; /* hash of the names up to it */
	json_t *failed;     /* {number: hash of its name} */
};

static void write_hash(char digits[DIGITS], hash h)
{
	snprintf(digits, DIGITS, "%016" PRIx64 "%016" PRIx64, (uint64_t)(h >> 64), (uint64_t)h);
}

/* Takes the state from the file's text. Returns NULL, or what is wrong. */
static const char *parse(struct journal *j, const json_t *state, const char *command)
{
	const char *kind = json_string_value(json_object_get(state, "convolve"));
	const char *made_by = json_string_value(json_object_get(state, "command"));
	const char *names = json_string_value(json_object_get(state, "hash"));
	const json_t *done = json_object_get(state, "done");
	json_t *failed = json_object_get(state, "failed");

	if (!kind || strcmp(kind, "journal") != 0 || !made_by || !names ||
	    strlen(names) != DIGITS - 1 || json_integer_value(done) < 0 || !json_is_integer(done) ||
	    !json_is_object(failed) ||
	    json_integer_value(json_object_get(state, "version")) != JOURNAL_VERSION)
		return "the file is not a journal of convolve: choose another name";
	if (strcmp(made_by, command) != 0)
		return "the journal is of a command with other parameters or another place for "
		       "the results: choose another name, or remove it";
	j->done = (uint64_t)json_integer_value(done);
	memcpy(j->names, names, DIGITS);
	json_decref(j->failed);
	j->failed = json_incref(failed);
	return NULL;
}

static const char *read_state(struct journal *j, const char *command)
{
	json_t *state;
	const char *wrong;
	off_t size = lseek(j->fd, 0, SEEK_END);

	if (!size)
		return NULL;
	if (size < 0 || lseek(j->fd, 0, SEEK_SET))
		return "the file is not a plain one: choose another name";
	state = json_loadfd(j->fd, 0, NULL);
	wrong = parse(j, state, command);
	json_decref(state);
	return wrong;
}

/* Locks the file that has the name: another process may have replaced it meanwhile. */
static const char *open_locked(struct journal *j)
{
	struct stat ours, named;

	for (unsigned attempts = 0; attempts < 10; attempts++) {
		if (j->fd >= 0)
			close(j->fd);
		j->fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
		if (j->fd < 0)
			return strerror(errno);
		if (flock(j->fd, LOCK_EX | LOCK_NB))
			return "another convolve uses it";
		if (!fstat(j->fd, &ours) && !stat(j->path, &named) && ours.st_dev == named.st_dev &&
		    ours.st_ino == named.st_ino)
			return NULL;
	}
	return strerror(ESTALE);
}

struct journal *journal_open(const char *path, const char *command)
{
	struct journal *j = calloc(1, sizeof *j);
	const char *wrong;

	if (!j || !(j->path = strdup(path)) || !(j->failed = json_object()))
		abort();
	j->fd = -1;
	write_hash(j->command, hash_text(HASH_START, command));
	write_hash(j->names, HASH_START);
	wrong = open_locked(j);
	if (!wrong)
		wrong = read_state(j, j->command);
	if (!wrong)
		return j;
	report_error("%s: %s", path, wrong);
	journal_close(j);
	return NULL;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	if (j->fd >= 0)
		close(j->fd);
	json_decref(j->failed);
	free(j->path);
	free(j);
}

static json_t *find_failed(const struct journal *j, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, number);
	return json_object_get(j->failed, text);
}

enum journal_advice journal_ask(const struct journal *j, uint64_t number, hash names,
                                const char *name)
{
	const char *failed = json_string_value(find_failed(j, number));
	char digits[DIGITS];

	if (number > j->done)
		return JOURNAL_DO;
	write_hash(digits, names);
	if (number == j->done && strcmp(digits, j->names) != 0)
		return JOURNAL_OTHER_LIST;
	if (!failed)
		return JOURNAL_SKIP;
	write_hash(digits, hash_text(HASH_START, name));
	return strcmp(digits, failed) ? JOURNAL_OTHER_LIST : JOURNAL_DO;
}

bool journal_may_end(const struct journal *j, uint64_t number)
{
	return number >= j->done;
}

void journal_note(struct journal *j, uint64_t number, const char *name, bool failed)
{
	char text[24], digits[DIGITS];

	snprintf(text, sizeof text, "%" PRIu64, number);
	write_hash(digits, hash_text(HASH_START, name));
	if (failed)
		json_object_set_new(j->failed, text, json_string(digits));
	else
		json_object_del(j->failed, text);
}

/* Writes the state to a new file. Returns 0 or an errno. */
static int write_state(const struct journal *j, int fd)
{
	json_t *state = json_pack("{s:s, s:i, s:s, s:I, s:s, s:O}", "convolve", "journal",
	                          "version", JOURNAL_VERSION, "command", j->command, "done",
	                          (json_int_t)j->done, "hash", j->names, "failed", j->failed);
	int error = state && !json_dumpfd(state, fd, JSON_COMPACT) ? 0 : errno ? errno : EIO;

	json_decref(state);
	if (!error && (write(fd, "\n", 1) != 1 || fsync(fd)))
		error = errno ? errno : EIO;
	return error;
}

const char *journal_save(struct journal *j, uint64_t number, hash names)
{
	char *path = NULL;
	struct stat info;
	int fd, error = 0;

	if (number >= j->done) {
		j->done = number;
		write_hash(j->names, names);
	}
	if (asprintf(&path, "%s-XXXXXX", j->path) < 0)
		abort();
	errno = 0;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || fstat(j->fd, &info) ||
	    (fchmod(fd, info.st_mode & 0777) && errno != EPERM))
		error = errno;
	if (!error)
		error = write_state(j, fd);
	if (!error && rename(path, j->path))
		error = errno;
	if (error && fd >= 0) {
		unlink(path);
		close(fd);
	} else if (!error) {
		close(j->fd);
		j->fd = fd;
	}
	free(path);
	return error ? strerror(error) : NULL;
}
