/* Reads files of secrets, and the configuration file.
 *
 * GLib parses a line of a key file, but reports no line numbers and silently takes the last of
 * duplicate keys. So each line is given to GLib alone; sections and duplicates are tracked here. */
#include "front/config/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

enum { TEXT_MAX = 1 << 20 };

char *textfile_secret(const char *option, const char *credential)
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
	const bool opened = fd >= 0 && !fstat(fd, &status);
	char *text = NULL;

	if (opened && !S_ISREG(status.st_mode))
		reason = "it is not a regular file";
	else if (opened && status.st_size > TEXT_MAX)
		reason = "it is larger than 1 MB";
	else if (opened && is_private && status.st_mode & S_IRWXO)
		reason = "others may read or write it (chmod o= prevents that)";
	else if (!opened || !(text = calloc(1, (size_t)status.st_size + 1)) ||
	         !file_read(fd, text, (size_t)status.st_size, 0))
		reason = strerror(errno);
	if (reason) {
		log_error("%s=%s: %s", option, path, reason);
		free(text);
		text = NULL;
	} else {
		*size = (size_t)status.st_size;
	}
	file_close(&fd);
	return text;
}

void textfile_free(char *text, size_t size)
{
	if (text)
		explicit_bzero(text, size);
	free(text);
}

/* Keys ----------------------------------------------------------------------------------------- */

struct reader {
	unsigned line;
	char *where;      /* FILE:LINE */
	char *section;    /* current section; NULL before the first */
	GHashTable *seen; /* "SECTION" and "SECTION\nKEY" → the line */
	bool (*see)(void *context, const struct textfile_entry *entry);
	void *context;
};

/* Returns false and logs an error if the section (key NULL) or key is a duplicate. */
static bool first_time(struct reader *r, const char *key)
{
	char *name = g_strconcat(r->section, key ? "\n" : "", key, NULL);
	unsigned before = GPOINTER_TO_UINT(g_hash_table_lookup(r->seen, name));

	if (!before) {
		g_hash_table_insert(r->seen, name, GUINT_TO_POINTER(r->line));
		return true;
	}
	log_error("%s: %s%s%s is a duplicate of line %u", r->where, key ? key : "[",
	          key ? "" : r->section, key ? "" : "]", before);
	g_free(name);
	return false;
}

static bool read_line(struct reader *r, const char *line)
{
	const size_t length = strlen(line);
	GKeyFile *keys;
	char *text, *value = NULL, **names = NULL;
	bool valid = false;

	if (*line == '[') {
		if (length < 3 || strpbrk(line + 1, "[]") != line + length - 1 ||
		    line[length - 1] != ']') {
			log_error("%s: %s: expected a section such as [limits]", r->where, line);
			return false;
		}
		g_free(r->section);
		r->section = g_strndup(line + 1, length - 2);
		return first_time(r, NULL) &&
		       r->see(r->context,
		              &(struct textfile_entry){.where = r->where, .section = r->section});
	}
	if (!r->section) {
		log_error("%s: expected a [SECTION] above this line", r->where);
		return false;
	}
	keys = g_key_file_new();
	text = g_strdup_printf("[%s]\n%s\n", r->section, line);
	if (g_key_file_load_from_data(keys, text, (gsize)-1, G_KEY_FILE_NONE, NULL))
		names = g_key_file_get_keys(keys, r->section, NULL, NULL);
	if (names && names[0])
		value = g_key_file_get_string(keys, r->section, names[0], NULL);
	if (!value)
		log_error("%s: expected KEY=VALUE in UTF-8 (with \\\\ for a backslash), [SECTION] "
		          "or a # comment",
		          r->where);
	else if (first_time(r, names[0]))
		valid = r->see(r->context, &(struct textfile_entry){r->where, r->section, names[0],
		                                                    g_strstrip(value)});
	g_free(value);
	g_strfreev(names);
	g_free(text);
	g_key_file_free(keys);
	return valid;
}

bool textfile_read_keys(const char *option, const char *path, bool is_private,
                        bool (*see)(void *context, const struct textfile_entry *entry),
                        void *context)
{
	struct reader r = {.see = see, .context = context};
	size_t size = 0;
	char *text = textfile_read(option, path, is_private, &size);
	bool valid = text;

	r.seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		r.line++;
		r.where = g_strdup_printf("%s:%u", path, r.line);
		g_strstrip(line);
		if (*line && *line != '#')
			valid &= read_line(&r, line);
		g_free(r.where);
	}
	g_hash_table_destroy(r.seen);
	g_free(r.section);
	textfile_free(text, size);
	return valid;
}
