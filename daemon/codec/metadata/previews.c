/* Removes pictures from blocks of metadata. Every block is copied piece by piece; pieces that are
 * not understood are dropped. */
#include "codec/metadata/previews.h"

#include <stdbool.h>
#include <string.h>

#include "codec/metadata/containers.h"

/* IPTC-IIM: data sets, each a mark, record, number, length and data ---------------------------- */

/* Returns the size in bytes of the first data set, 0 if there is none. If the highest bit of the
 * length is set, it is the length of the length that follows. */
static size_t data_set_size(const uint8_t *at, size_t size)
{
	size_t length, extra = 0;

	if (size < 5 || at[0] != 0x1c)
		return 0;
	length = bytes_number(at + 3, 2, true);
	if (length & 0x8000) {
		extra = length & 0x7fff;
		if (extra > 4 || size < 5 + extra)
			return 0;
		length = bytes_number(at + 5, extra, true);
	}
	return length <= size - 5 - extra ? 5 + extra + length : 0;
}

/* Leaves out previews (2:200 is the format, 2:202 the data) and pictures. */
static void copy_data_sets(GByteArray *kept, const uint8_t *at, size_t size)
{
	size_t length;

	for (; (length = data_set_size(at, size)); at += length, size -= length) {
		const bool is_preview = at[1] == 2 && at[2] >= 200 && at[2] <= 202;
		const bool is_picture = at[1] >= 7 && at[1] <= 9; /* an object record */

		if (!is_preview && !is_picture)
			g_byte_array_append(kept, at, (guint)length);
	}
}

/* Photoshop's resources: a mark, number, name, size and data ----------------------------------- */

struct resource {
	unsigned id;
	size_t head; /* bytes up to the data */
	size_t size; /* bytes of data */
	size_t all;  /* with padding to an even size */
};

enum { RESOURCE_IPTC = 1028 };

static bool resource_read(struct resource *r, const uint8_t *at, size_t size)
{
	if (size < 12 || (memcmp(at, "8BIM", 4) && memcmp(at, "MeSa", 4) && memcmp(at, "AgHg", 4) &&
	                  memcmp(at, "PHUT", 4) && memcmp(at, "DCSR", 4)))
		return false;
	r->id = (unsigned)bytes_number(at + 4, 2, true);
	r->head = 6 + (at[6] + 2u) / 2 * 2 + 4;
	if (size < r->head)
		return false;
	r->size = bytes_number(at + r->head - 4, 4, true);
	if (r->size > size - r->head)
		return false;
	r->all = r->head + r->size;
	r->all += r->size % 2 && r->all < size;
	return true;
}

GByteArray *previews_drop_from_resources(const uint8_t *block, size_t size)
{
	static const char title[] = "Photoshop 3.0"; /* the terminator belongs to it */
	bool titled = size >= sizeof title && !memcmp(block, title, sizeof title);
	guint head = titled ? sizeof title : 0;
	const uint8_t *at = block + head;
	size_t left = size - head;
	struct resource r;
	GByteArray *kept;

	if (size > G_MAXINT)
		return NULL;
	kept = g_byte_array_new();
	g_byte_array_append(kept, block, head);
	for (; resource_read(&r, at, left); at += r.all, left -= r.all) {
		/* Thumbnails, copies of EXIF and XMP, and unknown data of plug-ins. */
		const bool is_picture = r.id == 1033 || r.id == 1036 ||
		                        (r.id >= 1058 && r.id <= 1060) ||
		                        (r.id >= 4000 && r.id <= 4999);

		if (r.id == RESOURCE_IPTC) {
			const guint start = kept->len + (guint)r.head;

			g_byte_array_append(kept, at, (guint)r.head);
			copy_data_sets(kept, at + r.head, r.size);
			bytes_put(kept->data + start - 4, kept->len - start, 4, true);
			if ((kept->len - start) % 2)
				g_byte_array_append(kept, (const guint8 *)"", 1);
		} else if (!is_picture) {
			g_byte_array_append(kept, at, (guint)r.all);
		}
	}
	if (!kept->len)
		copy_data_sets(kept, block, size);
	if (kept->len > head)
		return kept;
	g_byte_array_unref(kept);
	return NULL;
}

/* XMP ------------------------------------------------------------------------------------------ */

enum { XMP_SIZE_MAX = 16 << 20, DEPTH_MAX = 200, ENCODED_MIN = 256 };

struct xmp {
	GString *kept;
	unsigned depth;
	unsigned within;  /* depth of the element that is being dropped with its content; 0: none */
	bool has_element; /* in `kept`: text alone is no XML */
};

/* xmp:Thumbnails, xmpGImg:image and GImage:Data, with any namespace prefix. */
static bool names_picture(const char *name)
{
	const char *colon = strrchr(name, ':'), *local = colon ? colon + 1 : name;

	return !strcmp(local, "Thumbnails") || !strcmp(local, "image") || !strcmp(local, "Data");
}

/* True for base64 too long to be a word or a number, maybe over several indented lines. */
static bool is_encoded(const char *text, size_t size)
{
	size_t run = 0;
	bool between = true; /* between lines */

	for (size_t i = 0; i < size && run < ENCODED_MIN; i++) {
		bool encoded = g_ascii_isalnum(text[i]) || (text[i] && strchr("+/=-_", text[i]));

		between = !encoded && (between || text[i] == '\n' || text[i] == '\r');
		run += encoded;
		if (!encoded && !(between && g_ascii_isspace(text[i])))
			run = 0;
	}
	return run >= ENCODED_MIN;
}

static void append_escaped(GString *to, const char *text, size_t size)
{
	char *escaped = g_markup_escape_text(text, (gssize)size);

	g_string_append(to, escaped);
	g_free(escaped);
}

static void start_element(GMarkupParseContext *, const char *name, const char **names,
                          const char **values, gpointer user, GError **error)
{
	struct xmp *x = user;

	if (++x->depth > DEPTH_MAX)
		g_set_error_literal(error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT,
		                    "too deep");
	if (!x->within && names_picture(name))
		x->within = x->depth;
	if (x->within)
		return;
	x->has_element = true;
	g_string_append_printf(x->kept, "<%s", name);
	for (; *names; names++, values++) {
		if (names_picture(*names) || is_encoded(*values, strlen(*values)))
			continue;
		g_string_append_printf(x->kept, " %s=\"", *names);
		append_escaped(x->kept, *values, strlen(*values));
		g_string_append_c(x->kept, '"');
	}
	g_string_append_c(x->kept, '>');
}

static void end_element(GMarkupParseContext *, const char *name, gpointer user, GError **)
{
	struct xmp *x = user;

	if (!x->within)
		g_string_append_printf(x->kept, "</%s>", name);
	else if (x->within == x->depth)
		x->within = 0;
	x->depth--;
}

/* Fails at faults that GLib accepts in a CDATA section and XML does not: control characters, and
 * text outside of all elements. Leaves out white space that comes first, as GLib does unless it is
 * such a section. */
static void append_text(GMarkupParseContext *, const char *text, gsize size, gpointer user,
                        GError **error)
{
	struct xmp *x = user;
	bool is_xml = true;

	for (gsize i = 0; i < size; i++)
		is_xml &= memchr(" \t\r\n", text[i], 4) || (x->depth && !g_ascii_iscntrl(text[i]));
	if (!is_xml)
		g_set_error_literal(error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT,
		                    "text that XML does not allow");
	else if (x->kept->len && !x->within && !is_encoded(text, size))
		append_escaped(x->kept, text, size);
}

/* Keeps the processing instructions at the packet's ends; drops all others, and comments. */
static void append_instruction(GMarkupParseContext *, const char *text, gsize size, gpointer user,
                               GError **)
{
	struct xmp *x = user;

	if (!x->within && size > 9 && !memcmp(text, "<?xpacket", 9) && !is_encoded(text, size))
		g_string_append_len(x->kept, text, (gssize)size);
}

GByteArray *previews_drop_from_xmp(const uint8_t *block, size_t size)
{
	static const GMarkupParser parser = {.start_element = start_element,
	                                     .end_element = end_element,
	                                     .text = append_text,
	                                     .passthrough = append_instruction};
	struct xmp x = {.depth = 0};
	GMarkupParseContext *context;
	bool whole;
	gsize kept;

	while (size && !block[size - 1])
		size--;
	if (size >= 3 && !memcmp(block, "\xef\xbb\xbf", 3)) {
		block += 3;
		size -= 3;
	}
	if (!size || size > XMP_SIZE_MAX)
		return NULL;
	x.kept = g_string_new(NULL);
	context = g_markup_parse_context_new(&parser, G_MARKUP_TREAT_CDATA_AS_TEXT, &x, NULL);
	whole = g_markup_parse_context_parse(context, (const char *)block, (gssize)size, NULL) &&
	        g_markup_parse_context_end_parse(context, NULL);
	g_markup_parse_context_free(context);
	kept = x.kept->len;
	if (whole && x.has_element)
		return g_byte_array_new_take((guint8 *)g_string_free(x.kept, FALSE), kept);
	g_string_free(x.kept, TRUE);
	return NULL;
}
