/* A list of manifests, the latest first. */
#include "client/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/output.h"
#include "client/report.h"

/* Those that stay open although nobody uses them: a list may go to and fro among directories. */
enum { KEPT = 16 };

static void close_record(struct record *record)
{
	manifest_close(record->manifest);
	free(record->directory);
	free(record);
}

/* Closes what nobody uses, but for the first ones. */
static void close_unused(struct record **link, unsigned kept)
{
	while (*link) {
		struct record *record = *link;

		if (record->users || kept) {
			kept -= kept > 0;
			link = &record->next;
		} else {
			*link = record->next;
			close_record(record);
		}
	}
}

/* Opens the manifest. That it exists is on the disk before a result takes the place of its input.
 */
static void open_record(struct record *record, const char *run, bool look)
{
	int error;

	if (look && !manifest_exists(record->directory))
		return;
	record->manifest = manifest_open(record->directory, run);
	record->failed = !record->manifest;
	error = record->failed || look ? 0 : output_sync_directory(record->directory);
	if (!error)
		return;
	report_error("%s: %s", record->directory, strerror(error));
	record->failed = true;
}

struct record *records_use(struct records *records, const char *output, const char *run, bool look)
{
	const char *slash = strrchr(output, '/');
	size_t size = slash > output ? (size_t)(slash - output) : 1;
	struct record *record = records->first;

	while (record && (strncmp(record->directory, output, size) || record->directory[size]))
		record = record->next;
	if (!record) {
		record = calloc(1, sizeof *record);
		if (!record || !(record->directory = strndup(output, size)))
			abort();
		open_record(record, run, look);
		record->next = records->first;
		records->first = record;
	}
	record->users++;
	close_unused(&records->first, KEPT);
	return record;
}

void records_leave(struct records *records, struct record *record)
{
	record->users--;
	close_unused(&records->first, KEPT);
}

void records_close(struct records *records)
{
	close_unused(&records->first, 0);
}
