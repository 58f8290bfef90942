/* The archive of jobs at a start: a database whose rows hold anything, or that is damaged. Its jobs
 * are found, told and forgotten like any others; nothing is opened but a job's file.
 *
 * The first byte says which: rows, each column of which says its kind; or changes of a database
 * with a few rows. */
#include <dirent.h>
#include <sqlite3.h>

#include "file.h"
#include "front/config/config.h"
#include "front/jobs/store.h"
#include "link/answer.h"
#include "link/link.h"
#include "quiet.h"

static struct config settings;
const struct config *config = &settings;

/* Files, and a database, in memory ---------------------------------------------------------------
 */

enum { FILE_SIZE = 5, ROOM = 1 << 16 };

static struct memory_file job_file, crash_file;
static uint8_t database_image[ROOM];
static size_t database_size;

static int open_in_memory(const char *name)
{
	const char *dot = strrchr(name, '.');

	if (!strcmp(name, "crashes"))
		return open(crash_file.path, O_RDONLY | O_CLOEXEC);
	if (!strcmp(name, "."))
		return -1;
	must(!strchr(name, '/') && dot > name &&
	     (!strcmp(dot, ".body") || !strcmp(dot, ".result")));
	return open(job_file.path, O_RDONLY | O_CLOEXEC);
}

/* Opens a copy of the image, if there is one. */
static int open_database_in_memory(sqlite3 **database)
{
	const int code = sqlite3_open(":memory:", database);
	unsigned char *copy;

	if (code || !database_size)
		return code;
	copy = sqlite3_malloc64(database_size);
	memcpy(copy, database_image, database_size);
	return sqlite3_deserialize(*database, "main", copy, (sqlite3_int64)database_size,
	                           (sqlite3_int64)database_size,
	                           SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
}

#define openat(directory, name, ...)             open_in_memory(name)
#define unlinkat(directory, name, flags)         ((void)(name), 0)
#define sqlite3_open_v2(path, to, flags, system) ((void)(path), open_database_in_memory(to))
#include "../../daemon/front/jobs/archive.c"
#undef openat

/* Rows ----------------------------------------------------------------------------------------- */

enum { COLUMN_COUNT = 19 };

static const uint8_t *input;
static size_t input_left;
static sqlite3_stmt *insert_row;

static unsigned take(void)
{
	if (!input_left)
		return 0;
	input_left--;
	return *input++;
}

static const void *take_bytes(size_t size)
{
	const void *at = input;

	input += size;
	input_left -= size;
	return at;
}

/* Binds what a column should have. */
static void bind_likely(int column, unsigned row)
{
	static const uint8_t digest[ARCHIVE_DIGEST] = {7}, head[] = "\1POST\0\2/v1/filters/box",
	                     answer[] = "200\0text/plain\0";
	static const char id[][12] = {"00000000a", "00000000b", "00000000c", "00000000d"};
	const bool ended = row & 1;

	switch (column) {
	case 1:
		sqlite3_bind_text(insert_row, column, id[row / 2 % 4], -1, SQLITE_STATIC);
		break;
	case 2:
		sqlite3_bind_text(insert_row, column, "user 1000", -1, SQLITE_STATIC);
		break;
	case 7:
		sqlite3_bind_blob(insert_row, column, digest, sizeof digest, SQLITE_STATIC);
		break;
	case 8:
		sqlite3_bind_blob(insert_row, column, head, ended ? 0 : sizeof head, SQLITE_STATIC);
		break;
	case 10:
		sqlite3_bind_int64(insert_row, column, ended ? archive_now() : 0);
		break;
	case 11:
		sqlite3_bind_text(insert_row, column, row & 64 ? "too-large" : NULL, -1,
		                  SQLITE_STATIC);
		break;
	case 18:
		sqlite3_bind_blob(insert_row, column, answer, ended ? sizeof answer : 0,
		                  SQLITE_STATIC);
		break;
	case 19:
		sqlite3_bind_int64(insert_row, column, FILE_SIZE);
		break;
	default:
		sqlite3_bind_int64(insert_row, column, 1);
	}
}

static void bind_column(int column, unsigned row)
{
	enum { LIKELY = 6 };
	static const int64_t numbers[] = {0, 1, -1, INT64_MIN, INT64_MAX, UINT32_MAX};
	const unsigned kind = take() % 12, size = kind < 2 ? take() % 200 : 0;
	const size_t some = size < input_left ? size : input_left;
	double number = 0;

	if (kind == 0) {
		sqlite3_bind_text(insert_row, column, take_bytes(some), (int)some, SQLITE_STATIC);
	} else if (kind == 1) {
		sqlite3_bind_blob(insert_row, column, take_bytes(some), (int)some, SQLITE_STATIC);
	} else if (kind == 2) {
		sqlite3_bind_null(insert_row, column);
	} else if (kind == 3) {
		sqlite3_bind_int64(insert_row, column, numbers[take() % 6]);
	} else if (kind == 4 && input_left >= sizeof number) {
		memcpy(&number, take_bytes(sizeof number), sizeof number);
		sqlite3_bind_double(insert_row, column, number);
	} else if (kind == 5 && input_left >= sizeof number) {
		sqlite3_bind_int64(insert_row, column, *(const int8_t *)take_bytes(1));
	} else {
		bind_likely(column, row);
	}
}

static void insert_rows(unsigned rows)
{
	const char *sql = "INSERT INTO job (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
	                  "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";

	must(!sqlite3_prepare_v2(database, sql, -1, &insert_row, NULL));
	while (rows--) {
		const unsigned row = take();

		for (int column = 1; column <= COLUMN_COUNT; column++)
			bind_column(column, row);
		(void)!sqlite3_step(insert_row); /* it may be refused */
		sqlite3_reset(insert_row);
	}
	sqlite3_finalize(insert_row);
}

/* The start ------------------------------------------------------------------------------------ */

static void ended(const char *id, const struct job *job)
{
	must(*id && job->finished);
}

static void pack(const struct stored *s, struct head_writer *answer)
{
	must(s->job->finished);
	head_append(answer, "200", 4);
}

/* No job is revived, because its request is wrong. */
static struct job *revive(const struct stored *s, enum error *e, struct problem *problem)
{
	struct head head;

	*e = problem_set(problem, ERR_BAD_REQUEST, "wrong");
	if (!head_read(&head, copy_of(s->record.head.data, s->record.head.size),
	               s->record.head.size))
		*e = problem_set(problem, ERR_NOT_FOUND, "nothing is at %s", head.text[HEAD_PATH]);
	head_fini(&head);
	return NULL;
}

/* Asks about each job what requests ask. */
static void look(void)
{
	for (struct stored *s = store_next(NULL), *next; s; s = next) {
		struct answer a;
		uint64_t left;

		next = store_next(s);
		must(*s->id && store_find_any(s->id) == s && stored_is_of(s, &s->job->terms));
		must(stored_state(s) < STORED_STATES && s->job->error < ERR_COUNT);
		must(s->job->terms.best < PRIORITIES);
		must(s->job->terms.share >= 0 && s->job->terms.share <= 100);
		must(stored_tiles_done(s) <= job_tiles(s->job));
		if (s->record.key)
			must(store_find_key(&s->job->terms, s->record.key));
		stored_time_left(s, &left);
		stored_kept_for(s);
		if (s->record.answer.size) {
			const struct link_message m = {.data = s->record.answer.data,
			                               .data_size = s->record.answer.size};

			(void)!answer_unpack(&a, m.data, m.data_size);
			answer_fini(&a);
		}
		if (s->job->finished)
			store_delete(s);
	}
}

static void stop(void)
{
	for (int i = 0; i < STATEMENTS; i++) {
		sqlite3_finalize(prepared[i]);
		prepared[i] = NULL;
	}
	sqlite3_close(database);
	database = NULL;
}

static void start(void)
{
	memset(prepared, 0, sizeof prepared);
	if (open_database(""))
		stop();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct store_owner owner = {ended, pack, revive};
	static uint8_t sound[ROOM];
	static size_t sound_bytes;
	sqlite3_stmt *whole_prepared[STATEMENTS];
	sqlite3 *whole;
	sqlite3_int64 serialized;
	unsigned char *bytes;

	restore_front();
	if (!sound_bytes) {
		must(!loop_init());
		fill_file(&job_file, "12345", FILE_SIZE);
		fill_file(&crash_file, "00000000a\n00000000a\n\n", 21);
		settings = (struct config){.result_time = 600,
		                           .result_size = 1 << 20,
		                           .result_count = 3,
		                           .client_share = 1,
		                           .max_jobs = 100};
		start();
		must(database);
		for (uint8_t row = 0; row < 6; row++) {
			input = &row;
			input_left = 1;
			insert_rows(1);
		}
		bytes = sqlite3_serialize(database, "main", &serialized, 0);
		sound_bytes = (size_t)serialized;
		must(sound_bytes && sound_bytes <= ROOM);
		memcpy(sound, bytes, sound_bytes);
		sqlite3_free(bytes);
	}
	if (size < 2)
		return 0;
	input = data + 1;
	input_left = size - 1;
	errands_batch(ERRAND_ARCHIVE, run);
	if (data[0] & 1) {
		whole = database;
		memcpy(whole_prepared, prepared, sizeof prepared);
		database_size = sound_bytes;
		memcpy(database_image, sound, sound_bytes);
		change(database_image, sound_bytes, input, input_left);
		start();
	} else {
		must(do_sql("DELETE FROM job"));
		insert_rows(1 + data[0] / 2 % 4);
	}
	must(!store_init(&owner));
	look();
	store_fini();
	if (data[0] & 1) {
		stop();
		database = whole;
		memcpy(prepared, whole_prepared, sizeof prepared);
		database_size = 0;
	}
	return 0;
}
