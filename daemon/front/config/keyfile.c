/* Key files. GLib parses a line, but reports no line numbers and silently takes the last of
 * duplicate keys. So each line is given to GLib alone; sections and duplicates are tracked here. */
#include "front/config/keyfile.h"

#include <glib.h>
#include <string.h>

#include "base/log.h"

struct reader {
	unsigned line;
	char *where;      /* FILE:LINE */
	char *section;    /* current section; NULL before the first */
	GHashTable *seen; /* "SECTION" and "SECTION\nKEY" → the line */
	bool (*see)(void *context, const struct keyfile_entry *entry);
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

static bool read_section(struct reader *r, char *line)
{
	size_t length = strlen(line);
	struct keyfile_entry entry = {.where = r->where};

	if (length < 3 || line[length - 1] != ']' || strpbrk(line + 1, "[]") != line + length - 1) {
		log_error("%s: %s: expected a section such as [limits]", r->where, line);
		return false;
	}
	g_free(r->section);
	r->section = g_strndup(line + 1, length - 2);
	entry.section = r->section;
	return first_time(r, NULL) && r->see(r->context, &entry);
}

/* Parses a line KEY=VALUE. Returns the key, or NULL if the line is malformed. The caller frees key
 * and value. */
static char *parse_key(const struct reader *r, const char *line, char **value)
{
	GKeyFile *keys = g_key_file_new();
	char *text = g_strdup_printf("[%s]\n%s\n", r->section, line), *key = NULL;
	char **names = NULL;

	*value = NULL;
	if (g_key_file_load_from_data(keys, text, (gsize)-1, G_KEY_FILE_NONE, NULL))
		names = g_key_file_get_keys(keys, r->section, NULL, NULL);
	if (names && names[0])
		*value = g_key_file_get_string(keys, r->section, names[0], NULL);
	if (*value)
		key = g_strdup(names[0]);
	g_strfreev(names);
	g_free(text);
	g_key_file_free(keys);
	return key;
}

static bool read_key(struct reader *r, const char *line)
{
	struct keyfile_entry entry = {.where = r->where, .section = r->section};
	char *value = NULL, *key;
	bool valid = false;

	if (!r->section) {
		log_error("%s: expected a [SECTION] above this line", r->where);
		return false;
	}
	key = parse_key(r, line, &value);
	if (!key) {
		log_error("%s: expected KEY=VALUE in UTF-8 (with \\\\ for a backslash), [SECTION] "
		          "or a # comment",
		          r->where);
	} else if (first_time(r, key)) {
		entry.key = key;
		entry.value = g_strstrip(value);
		valid = r->see(r->context, &entry);
	}
	g_free(key);
	g_free(value);
	return valid;
}

bool keyfile_read(const char *file, const char *text,
                  bool (*see)(void *context, const struct keyfile_entry *entry), void *context)
{
	struct reader r = {.see = see, .context = context};
	char **lines = g_strsplit(text, "\n", -1);
	bool valid = true;

	r.seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	for (char **line = lines; *line; line++) {
		r.line++;
		r.where = g_strdup_printf("%s:%u", file, r.line);
		g_strstrip(*line);
		if (**line == '[')
			valid &= read_section(&r, *line);
		else if (**line && **line != '#')
			valid &= read_key(&r, *line);
		g_free(r.where);
	}
	g_hash_table_destroy(r.seen);
	g_free(r.section);
	g_strfreev(lines);
	return valid;
}
