/* Files that are replaced by their results. */
#include "client/in_place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "client/place.h"
#include "image/formats.h"

const char *in_place_check_name(const char *input, const char *suffix, const char *format)
{
	enum format named = format_parse(suffix);

	if (place_kind(input) != PLACE_FILE)
		return "--in-place replaces files: choose another output";
	if (named == FORMAT_NONE)
		return "its name does not say the format, so that the result may have another: "
		       "choose another output";
	if (format && format_parse(format) != named)
		return "--format is not the format that its name says: choose another output";
	return NULL;
}

const char *in_place_check_file(const char *path, bool force, struct stat *info)
{
	if (lstat(path, info))
		return strerror(errno);
	if (S_ISLNK(info->st_mode))
		return "a symbolic link, which --in-place does not follow: name the file that it "
		       "leads to";
	if (S_ISDIR(info->st_mode))
		return strerror(EISDIR);
	if (!S_ISREG(info->st_mode))
		return "--in-place replaces files: choose another output";
	if (!force && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		return errno == EACCES ? "it is write-protected: --force replaces it"
		                       : strerror(errno);
	return NULL;
}

bool in_place_is_unchanged(const char *path, const struct stat *read)
{
	struct stat now;

	return !lstat(path, &now) && now.st_dev == read->st_dev && now.st_ino == read->st_ino &&
	       now.st_size == read->st_size && now.st_mtim.tv_sec == read->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == read->st_mtim.tv_nsec;
}

bool in_place_fits(const char *path, const char *type)
{
	const char *dot = strrchr(path, '.');

	return dot && format_parse_media_type(type) == format_parse(dot + 1);
}
