/* Reads a mask. */
#include "client/mask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/interrupt.h"
#include "client/output.h"
#include "client/place.h"
#include "client/report.h"
#include "client/request.h"
#include "client/smprint.h"

/* Copies the file and names its bytes. Returns 0 or an errno. */
static int copy(struct mask *mask, int file)
{
	hash made = HASH_START;
	struct stat info;
	int error = 0;

	mask->copy = output_nameless();
	if (mask->copy < 0)
		return errno;
	error = output_copy(file, mask->copy);
	if (!error)
		error = request_hash(mask->copy, &made);
	if (!error && fstat(mask->copy, &info))
		error = errno;
	if (error)
		return error;
	mask->size = info.st_size;
	hash_print(made, mask->digits);
	return 0;
}

/* Reads the file. Returns NULL, or why it is no mask. A pipe is not waited for. */
static const char *read_file(struct mask *mask, const char *path)
{
	int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int error = file < 0 || fstat(file, &mask->info) ? errno : 0;
	bool plain = !error && S_ISREG(mask->info.st_mode);

	if (plain)
		error = copy(mask, file);
	if (file >= 0)
		close(file);
	return error         ? strerror(error)
	       : !plain      ? "expected a plain file, not a directory, a pipe or a device"
	       : !mask->size ? "the file is empty"
	                     : NULL;
}

enum exit_code mask_open(struct mask *mask, const struct options *options)
{
	const char *path = options->mask, *wrong;
	char *shown = path ? place_shown(path) : NULL;

	mask->copy = -1;
	if (!path)
		return EXIT_DONE;
	if (*options->command == '@')
		wrong = "a preset takes no mask";
	else if (!strcmp(path, "-") || place_kind(path) != PLACE_FILE)
		wrong = "expected the path of a file";
	else
		wrong = read_file(mask, path);
	if (wrong && !interrupt_number())
		report_error("--mask %s: %s", shown, wrong);
	mask->name = smprint("the mask %s", shown);
	free(shown);
	return wrong ? EXIT_USAGE : EXIT_DONE;
}

void mask_close(struct mask *mask)
{
	if (mask->copy >= 0)
		close(mask->copy);
	free(mask->name);
}
