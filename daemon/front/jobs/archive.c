/* All changes are made by the errands' thread, a transaction for each batch. The database is locked
 * for this process alone, and its write-ahead log is flushed at each commit, after all new files
 * and their directory. */
#include "front/jobs/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memfd.h"
#include "front/config/config.h"

/* FILES_FEW: so many new files are flushed one by one. */
enum { SCHEMA = 1, NAME_SIZE = 128, DURABLE_AUTO = 2, FILES_FEW = 4, CRASHES_SIZE = 1 << 16 };

static const char directory_name[] = "jobs", database_name[] = "jobs.db",
                  crashes_name[] = "crashes";
static const char body_suffix[] = ".body", result_suffix[] = ".result";

#define COLUMNS                                                                                    \
	"id, client, named, best, share, key, digest, head, arrived, finished, error, parameter, " \
	"value, detail, lost, tiles, tiles_done, answer, size"

static const char schema[] =
    "CREATE TABLE job (id TEXT PRIMARY KEY NOT NULL, client TEXT NOT NULL, named INTEGER NOT NULL, "
    "best INTEGER NOT NULL, share REAL NOT NULL, key TEXT, digest BLOB, head BLOB, "
    "arrived INTEGER NOT NULL, finished INTEGER NOT NULL, error TEXT, parameter TEXT, value TEXT, "
    "detail TEXT, lost INTEGER, tiles INTEGER, tiles_done INTEGER, answer BLOB, size INTEGER NOT "
    "NULL)";

static const char *const statements[] = {
    [ARCHIVE_ADD] = "INSERT INTO job (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, "
                    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ?19)",
    [ARCHIVE_END] = "UPDATE job SET finished = ?10, error = ?11, parameter = ?12, "
                    "value = ?13, detail = ?14, lost = ?15, tiles = ?16, tiles_done = ?17, answer "
                    "= ?18, size = ?19 "
                    "WHERE id = ?1",
    [ARCHIVE_DROP] = "DELETE FROM job WHERE id = ?1",
};

enum { STATEMENTS = sizeof statements / sizeof *statements };

static sqlite3 *database;
static sqlite3_stmt *prepared[STATEMENTS];
static int directory = -1;
static struct problem
    unusable; /* why jobs cannot be kept; no detail: they can be, or need not be */

static bool directory_changed; /* since its last flush; the thread's */

int64_t archive_now(void)
{
	return (int64_t)clock_ns(CLOCK_REALTIME) / 1000000;
}

bool archive_is_open(void)
{
	return database;
}

enum error archive_check(struct problem *problem)
{
	if (!*unusable.detail)
		return ERR_OK;
	*problem = unusable;
	return ERR_STORAGE_UNUSABLE;
}

/* ---- the thread ---- */

static void file_name(char name[NAME_SIZE], const char *id, const char *suffix)
{
	snprintf(name, NAME_SIZE, "%s%s", id, suffix);
}

/* Records why a step has failed, once. number: of errno, or 0 if the database says why. */
static void fail(struct archive_step *s, const char *what, int number)
{
	const int code = number ? 0 : sqlite3_errcode(database);
	const bool full = number == ENOSPC || number == EDQUOT || code == SQLITE_FULL;

	if (s->error)
		return;
	s->error =
	    problem_set(&s->problem, full ? ERR_STORAGE_FULL : ERR_STORAGE_UNUSABLE, "%s: %s", what,
	                number ? strerror(number) : sqlite3_errmsg(database));
}

/* Records that a step's file is not on disk. Only the disk's own errors are no_file. */
static void fail_file(struct archive_step *s, const char *what, int number)
{
	fail(s, what, number);
	file_close(&s->kept);
	s->no_file = number == ENOSPC || number == EDQUOT || number == EFBIG || number == EIO;
}

/* Returns 0, or errno. */
static int remove_file(const char *id, const char *suffix)
{
	char name[NAME_SIZE];

	file_name(name, id, suffix);
	if (unlinkat(directory, name, 0))
		return errno == ENOENT ? 0 : errno;
	directory_changed = true;
	return 0;
}

static const struct spool *content_of(const struct archive_step *s)
{
	return s->act == ARCHIVE_ADD ? &s->job->body : &s->job->answer;
}

/* Writes the step's file, which flush() flushes. */
static void write_file(struct archive_step *s, const struct spool *from, const char *suffix)
{
	const size_t size = from->size;
	char name[NAME_SIZE];
	off_t offset = 0;
	ssize_t moved = 1;

	file_name(name, s->record->id, suffix);
	s->writer = openat(directory, name, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
	if (s->writer < 0) {
		fail_file(s, "a file cannot be made", errno);
		return;
	}
	directory_changed = true;
	while ((size_t)offset < size && (moved > 0 || (moved < 0 && errno == EINTR)))
		moved = sendfile(s->writer, from->fd, &offset, size - (size_t)offset);
	if ((size_t)offset < size)
		fail_file(s, "a file cannot be written", moved ? errno : EIO);
	else if (memfd_reopen(s->writer, O_RDONLY, &s->kept))
		fail_file(s, "a file cannot be opened", errno);
	else
		sync_file_range(s->writer, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static void bind_block(sqlite3_stmt *statement, int column, const struct head_writer *block)
{
	sqlite3_bind_blob64(statement, column, block->data, block->size, SQLITE_STATIC);
}

static void bind_text(sqlite3_stmt *statement, int column, const char *text)
{
	sqlite3_bind_text(statement, column, text, -1, SQLITE_STATIC);
}

static struct archive_step *next_of(const struct archive_step *s)
{
	return (struct archive_step *)s->errand.next;
}

static void change_files(struct archive_step *s)
{
	int failed;

	s->kept = s->writer = -1;
	s->error = ERR_OK;
	s->no_file = false;
	if (s->act == ARCHIVE_DROP) {
		failed = remove_file(s->record->id, result_suffix);
		failed = failed ? failed : remove_file(s->record->id, body_suffix);
		if (failed)
			fail(s, "a file cannot be removed", failed);
	} else if (content_of(s)->fd >= 0 && !s->has_file) {
		write_file(s, content_of(s), s->act == ARCHIVE_ADD ? body_suffix : result_suffix);
	}
}

/* Flushes a batch's files, each of which may fail, and their directory; returns errno of that. */
static int flush(struct archive_step *batch)
{
	unsigned files = 0;

	for (const struct archive_step *s = batch; s; s = next_of(s))
		files += s->writer >= 0;
	/* A flush of the file system takes about as long as two of files. If it fails, any file
	 * there may be the reason. */
	if (files <= FILES_FEW || syncfs(directory))
		for (struct archive_step *s = batch; s; s = next_of(s))
			if (s->writer >= 0 && !s->error && fdatasync(s->writer))
				fail_file(s, "a file cannot be written", errno);
	if (directory_changed && fsync(directory))
		return errno;
	directory_changed = false;
	return 0;
}

/* Changes the rows of a batch whose files are on disk, in one transaction. */
static bool commit(struct archive_step *batch)
{
	if (sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL))
		return false;
	/* Some errors roll all back. */
	for (struct archive_step *s = batch; s && !sqlite3_get_autocommit(database);
	     s = next_of(s)) {
		sqlite3_stmt *statement = prepared[s->act];
		const struct record *r = s->record;
		const struct job *job = s->job;

		if (s->error)
			continue;
		/* All columns by their numbers in COLUMNS; a statement takes those that it has. */
		bind_text(statement, 1, r->id);
		bind_text(statement, 2, job->terms.client);
		sqlite3_bind_int(statement, 3, job->terms.named);
		sqlite3_bind_int64(statement, 4, job->terms.best);
		sqlite3_bind_double(statement, 5, job->terms.share);
		bind_text(statement, 6, r->key);
		sqlite3_bind_blob(statement, 7, r->key ? r->digest : NULL, ARCHIVE_DIGEST,
		                  SQLITE_STATIC);
		bind_block(statement, 8, &r->head);
		sqlite3_bind_int64(statement, 9, r->arrived);
		sqlite3_bind_int64(statement, 10, r->finished);
		bind_text(statement, 11, job->error ? error_row(job->error)->slug : NULL);
		bind_text(statement, 12, job->problem.parameter);
		bind_text(statement, 13, job->problem.value);
		bind_text(statement, 14, job->problem.detail);
		sqlite3_bind_int64(statement, 15, s->lost);
		sqlite3_bind_int64(statement, 16, s->tiles);
		sqlite3_bind_int64(statement, 17, s->tiles_done);
		bind_block(statement, 18, &r->answer);
		sqlite3_bind_int64(statement, 19, (int64_t)content_of(s)->size);
		if (sqlite3_step(statement) != SQLITE_DONE)
			fail(s, "the database cannot be changed", 0);
		sqlite3_reset(statement);
		sqlite3_clear_bindings(statement);
	}
	return !sqlite3_get_autocommit(database) &&
	       !sqlite3_exec(database, "COMMIT", NULL, NULL, NULL);
}

/* Makes the changes of a batch durable. A file that fails is its own job's; what is common to all,
 * the directory and the transaction, fails all. */
static void run(struct errand *errand)
{
	struct archive_step *const batch = (struct archive_step *)errand;
	uint64_t began;
	int failed;

	for (struct archive_step *s = batch; s; s = next_of(s))
		change_files(s);
	began = clock_ns(CLOCK_MONOTONIC);
	failed = flush(batch);
	if (failed || !commit(batch))
		for (struct archive_step *s = batch; s; s = next_of(s))
			fail(s, "the disk cannot be written", failed);
	if (!sqlite3_get_autocommit(database))
		sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
	began = clock_ns(CLOCK_MONOTONIC) - began;
	for (struct archive_step *s = batch; s; s = next_of(s)) {
		s->ns = began;
		file_close(&s->writer);
		s->has_file |= s->kept >= 0;
		if (s->act == ARCHIVE_ADD && s->error)
			file_close(&s->kept);
		/* A file is not needed any more, or was made in vain. */
		if (s->act == (s->error ? ARCHIVE_ADD : ARCHIVE_END))
			remove_file(s->record->id, body_suffix);
		else if (s->act == ARCHIVE_END && !s->has_file)
			remove_file(s->record->id, result_suffix);
	}
}

void archive_note_crash(const char *id)
{
	const struct iovec line[] = {{(void *)(uintptr_t)id, strlen(id)}, {"\n", 1}};
	const int file =
	    openat(directory, crashes_name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (file >= 0 && writev(file, line, 2) >= 0)
		close(file);
}

/* ---- the start ---- */

static bool do_sql(const char *sql)
{
	return !sqlite3_exec(database, sql, NULL, NULL, NULL);
}

static int get_text(void *context, int count, char **values, char **)
{
	snprintf(context, NAME_SIZE, "%s", count && values[0] ? values[0] : "");
	return 0;
}

/* Returns the reason why the database cannot be used, or NULL. Until it is known to be sound
 * nothing is written. */
static const char *open_database(const char *path)
{
	char check[NAME_SIZE] = "", version[NAME_SIZE] = "";

	if (sqlite3_open_v2(path, &database,
	                    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL))
		return sqlite3_errmsg(database);
	/* It may be unsound or another version's: closing it must not write its log into it. */
	sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (!do_sql("PRAGMA locking_mode = EXCLUSIVE") ||
	    sqlite3_exec(database, "PRAGMA user_version", get_text, version, NULL))
		return sqlite3_errcode(database) == SQLITE_BUSY ? "another process uses it"
		                                                : sqlite3_errmsg(database);
	if (atoi(version) > SCHEMA)
		return "a later version of convolved has written it";
	if (sqlite3_exec(database, "PRAGMA quick_check(1)", get_text, check, NULL) ||
	    strcmp(check, "ok"))
		return *check ? "it is damaged" : sqlite3_errmsg(database);
	if (!do_sql("PRAGMA journal_mode = WAL") || !do_sql("PRAGMA synchronous = FULL") ||
	    !do_sql("BEGIN IMMEDIATE") ||
	    (!atoi(version) && !(do_sql(schema) && do_sql("PRAGMA user_version = 1"))) ||
	    !do_sql("COMMIT"))
		return sqlite3_errmsg(database);
	for (int i = 0; i < STATEMENTS; i++)
		if (sqlite3_prepare_v3(database, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
		                       &prepared[i], NULL))
			return sqlite3_errmsg(database);
	return NULL;
}

static void copy_text(sqlite3_stmt *row, int column, char *text, size_t room)
{
	const unsigned char *value = sqlite3_column_text(row, column);

	snprintf(text, room, "%s", value ? (const char *)value : "");
}

static struct head_writer get_block(sqlite3_stmt *row, int column)
{
	const size_t size = (size_t)sqlite3_column_bytes(row, column);
	struct head_writer block = {0};

	head_append(&block, sqlite3_column_blob(row, column), size);
	return block;
}

/* Opens the file of a row; -1 with errno: ENOENT if it is not there, or has another size. */
static int open_file(const char *id, const char *suffix, uint64_t size)
{
	struct stat status;
	char name[NAME_SIZE];
	int file;

	file_name(name, id, suffix);
	file = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (file < 0)
		return -1;
	if (!fstat(file, &status) && S_ISREG(status.st_mode) && (uint64_t)status.st_size == size)
		return file;
	close(file);
	errno = ENOENT;
	return -1;
}

static void drop_row(const char *id)
{
	sqlite3_stmt *statement = prepared[ARCHIVE_DROP];

	bind_text(statement, 1, id);
	if (sqlite3_step(statement) != SQLITE_DONE)
		log_warning("the row of the job %s stays: %s", id, sqlite3_errmsg(database));
	sqlite3_reset(statement);
}

static struct job *read_job(sqlite3_stmt *row)
{
	struct job *job = job_new_empty();
	const char *slug = (const char *)sqlite3_column_text(row, 10);

	if (!job)
		return NULL;
	copy_text(row, 1, job->terms.client, sizeof job->terms.client);
	job->terms.named = sqlite3_column_int(row, 2);
	job->terms.best = (enum priority)sqlite3_column_int(row, 3);
	job->terms.share = sqlite3_column_double(row, 4);
	job->finished = sqlite3_column_int64(row, 9);
	while (slug && job->error < ERR_COUNT && strcmp(slug, error_row(job->error)->slug))
		job->error++;
	if (job->error == ERR_COUNT)
		job->error = ERR_INTERNAL;
	copy_text(row, 11, job->problem.parameter, sizeof job->problem.parameter);
	copy_text(row, 12, job->problem.value, sizeof job->problem.value);
	copy_text(row, 13, job->problem.detail, sizeof job->problem.detail);
	job->lost = (uint32_t)sqlite3_column_int64(row, 14);
	job->tiles_before = (uint32_t)sqlite3_column_int64(row, 16);
	job->tiles = (uint32_t)sqlite3_column_int64(row, 15) - job->tiles_before;
	return job;
}

/* True for a row that the service may have written; nothing checks what damage has left. */
static bool is_sound(sqlite3_stmt *row)
{
	static const char letters[] =
	    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-";
	/* A blob of the same bytes is another key. */
	const bool is_text = sqlite3_column_type(row, 0) == SQLITE_TEXT;
	const char *id = (const char *)sqlite3_column_text(row, 0);
	const double share = sqlite3_column_double(row, 4);
	const int64_t best = sqlite3_column_int64(row, 3), tiles = sqlite3_column_int64(row, 15),
	              done = sqlite3_column_int64(row, 16);

	return id && *id && is_text &&
	       strspn(id, letters) == (size_t)sqlite3_column_bytes(row, 0) &&
	       strlen(id) + sizeof result_suffix <= NAME_SIZE && best >= 0 && best < PRIORITIES &&
	       share >= 0 && share <= 100 && sqlite3_column_int64(row, 8) >= 0 &&
	       sqlite3_column_int64(row, 9) >= 0 && done >= 0 && done <= tiles &&
	       tiles <= UINT32_MAX;
}

/* Returns the number of crashes of an open job. */
static unsigned read_row(sqlite3_stmt *row, const char *crashes,
                         void (*found)(struct record *record, struct job *job))
{
	struct record r = {
	    .id = (const char *)sqlite3_column_text(row, 0),
	    .key = (const char *)sqlite3_column_text(row, 5),
	    .head = get_block(row, 7),
	    .arrived = sqlite3_column_int64(row, 8),
	    .finished = sqlite3_column_int64(row, 9),
	    .answer = get_block(row, 17),
	};
	const uint64_t size = (uint64_t)sqlite3_column_int64(row, 18);
	struct job *job = r.head.failed || r.answer.failed ? NULL : read_job(row);
	const bool has_file = job && !job->error;
	const size_t length = strlen(r.id);
	int file = -1;

	if (r.key && sqlite3_column_bytes(row, 6) == ARCHIVE_DIGEST)
		memcpy(r.digest, sqlite3_column_blob(row, 6), ARCHIVE_DIGEST);
	for (const char *at = crashes; !r.finished && (at = strstr(at, r.id)); at += length)
		r.crashes += at[length] == '\n' && (at == crashes || at[-1] == '\n');
	if (has_file)
		file = open_file(r.id, r.finished ? result_suffix : body_suffix, size);
	if (file >= 0)
		spool_replace(r.finished ? &job->answer : &job->body, file, size);
	if (!has_file || file >= 0) {
		found(&r, job);
	} else {
		if (errno == ENOENT)
			drop_row(r.id);
		else
			log_error("the file of the job %s cannot be opened: %m", r.id);
		job_release(job);
	}
	free(r.head.data);
	free(r.answer.data);
	return r.crashes;
}

/* Removes files without a row, and those that a row needs no more. */
static void remove_orphans(void)
{
	static const char find[] = "SELECT 1 FROM job WHERE id = ?1 AND (finished > 0) = ?2 AND "
	                           "error IS NULL";
	const int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *all = again >= 0 ? fdopendir(again) : NULL;
	sqlite3_stmt *row = NULL;
	struct dirent *entry;

	if (!all || sqlite3_prepare_v2(database, find, -1, &row, NULL))
		log_warning("%s/%s cannot be tidied", config->state_dir, directory_name);
	while (row && (entry = readdir(all))) {
		const char *dot = strrchr(entry->d_name, '.');
		const bool result = dot && !strcmp(dot, result_suffix);

		if (!result && !(dot && !strcmp(dot, body_suffix)))
			continue;
		sqlite3_bind_text(row, 1, entry->d_name, (int)(dot - entry->d_name), SQLITE_STATIC);
		sqlite3_bind_int(row, 2, result);
		if (sqlite3_step(row) == SQLITE_DONE)
			unlinkat(directory, entry->d_name, 0);
		sqlite3_reset(row);
	}
	sqlite3_finalize(row);
	if (all)
		closedir(all);
}

enum error archive_init(void)
{
	const bool wanted =
	    config->durable == DURABLE_AUTO ? getenv("STATE_DIRECTORY") != NULL : config->durable;
	char path[4096];
	const char *why = NULL;
	int above;

	errands_batch(ERRAND_ARCHIVE, run);
	if (!wanted)
		return ERR_OK;
	snprintf(path, sizeof path, "%s/%s/%s", config->state_dir, directory_name, database_name);
	/* No loss of power takes the directory. */
	above = open(config->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above >= 0 && (!mkdirat(above, directory_name, 0700) || errno == EEXIST) &&
	    !fsync(above))
		directory = openat(above, directory_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	file_close(&above);
	why = directory >= 0 ? open_database(path) : strerror(errno);
	if (!why)
		return ERR_OK;
	problem_set(&unusable, ERR_STORAGE_UNUSABLE,
	            "the database of jobs cannot be used: %s. Synchronous requests (without "
	            "Prefer: respond-async) work",
	            why);
	log_error("asynchronous jobs are refused: %s cannot be used: %s", path, why);
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(prepared[i]);
	sqlite3_close(database);
	database = NULL;
	return ERR_OK;
}

void archive_read(void (*found)(struct record *record, struct job *job))
{
	static char crashes[CRASHES_SIZE];
	sqlite3_stmt *row = NULL;
	unsigned left = 0;
	ssize_t size;
	int file;

	if (!database)
		return;
	file = openat(directory, crashes_name, O_RDONLY | O_CLOEXEC);
	size = file < 0 ? 0 : read(file, crashes, CRASHES_SIZE - 1);
	crashes[size > 0 ? size : 0] = '\0';
	file_close(&file);
	sqlite3_prepare_v2(database, "SELECT " COLUMNS " FROM job ORDER BY finished, rowid", -1,
	                   &row, NULL);
	while (row && sqlite3_step(row) == SQLITE_ROW)
		if (is_sound(row))
			left += read_row(row, crashes, found);
		else
			log_error("a row of the archive of jobs is damaged, and left out");
	if (!row || sqlite3_finalize(row))
		log_error("the archive of jobs cannot be read: %s", sqlite3_errmsg(database));
	if (*crashes && !left)
		unlinkat(directory, crashes_name, 0);
	remove_orphans();
}
