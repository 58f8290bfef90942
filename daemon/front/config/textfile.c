/* Reads files of secrets, and the configuration file. */
#include "front/config/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

enum { TEXT_MAX = 1 << 20 };

char *secret_path(const char *option, const char *credential)
{
	const char *directory = getenv("CREDENTIALS_DIRECTORY");
	char *path = NULL;

	if (*option)
		return strdup(option);
	if (!directory || asprintf(&path, "%s/%s", directory, credential) < 0)
		return NULL;
	if (!access(path, F_OK))
		return path;
	free(path);
	return NULL;
}

char *textfile_read(const char *option, const char *path, bool is_private, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *reason = NULL;
	struct stat status;
	char *text = NULL;

	if (fd < 0 || fstat(fd, &status))
		reason = strerror(errno);
	else if (!S_ISREG(status.st_mode))
		reason = "it is not a regular file";
	else if (status.st_size > TEXT_MAX)
		reason = "it is larger than 1 MB";
	else if (is_private && status.st_mode & S_IRWXO)
		reason = "others may read or write it (chmod o= prevents that)";
	else if (!(text = calloc(1, (size_t)status.st_size + 1)) ||
	         !file_read(fd, text, (size_t)status.st_size, 0))
		reason = strerror(errno);
	if (reason) {
		log_error("%s=%s: %s", option, path, reason);
		free(text);
		text = NULL;
	} else {
		*size = (size_t)status.st_size;
	}
	if (fd >= 0)
		close(fd);
	return text;
}

void textfile_free(char *text, size_t size)
{
	if (text)
		explicit_bzero(text, size);
	free(text);
}
