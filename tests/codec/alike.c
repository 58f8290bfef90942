/* libvips's result for a file, and a check that the worker makes the same of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codec/metadata/library_error.h"
#include "codec/metadata/previews.h"
#include "expect.h"

struct outcome {
	enum error error;
	struct problem problem;
	void *bytes; /* g_malloc'd; NULL after an error */
	size_t size;
};

static void set_outcome(struct outcome *o, enum error e, const char *name, const char *which)
{
	char who[32];

	snprintf(who, sizeof who, "the %s %s", name, which);
	o->error = vips_error_take(&o->problem, e, who);
}

/* EXIF tags, in any directory, of previews and their positions. */
static bool is_exif_picture(const char *field)
{
	static const char *const pictures[] = {"MakerNote",
	                                       "XMLPacket",
	                                       "ImageResources",
	                                       "IPTC/NAA",
	                                       "SubIFDs",
	                                       "Padding",
	                                       "StripByteCounts",
	                                       "StripOffsets",
	                                       "JPEGInterchangeFormat",
	                                       "JPEGInterchangeFormatLength",
	                                       NULL};

	if (!g_str_has_prefix(field, "exif-ifd"))
		return !strcmp(field, "jpeg-thumbnail-data");
	return g_strv_contains(pictures, field + strlen("exif-ifd0-")) ||
	       g_str_has_prefix(field, "exif-ifd1-");
}

static void copy_clean(VipsImage *in, const char *field, VipsImage *out,
                       GByteArray *(*clean)(const uint8_t *block, size_t size))
{
	const void *block;
	size_t size;
	GByteArray *kept =
	    vips_image_get_blob(in, field, &block, &size) ? NULL : clean(block, size);

	if (kept) {
		vips_image_set_blob_copy(out, field, kept->data, kept->len);
		g_byte_array_unref(kept);
	}
}

/* PNG's texts, too, which libvips's other savers do not know. */
static void *copy_field(VipsImage *in, const char *field, GValue *value, void *out)
{
	if (!strcmp(field, VIPS_META_XMP_NAME))
		copy_clean(in, field, out, previews_drop_from_xmp);
	else if (!strcmp(field, VIPS_META_IPTC_NAME))
		copy_clean(in, field, out, previews_drop_from_resources);
	else if (!strcmp(field, VIPS_META_EXIF_NAME) || g_str_has_prefix(field, "png-comment-"))
		vips_image_set(out, field, value);
	return NULL;
}

/* libvips writes EXIF without the fields that are removed; setting the block sets them again. */
static void copy_metadata(VipsImage *in, VipsImage *out, bool strip)
{
	static const char *const always[] = {VIPS_META_ICC_NAME, VIPS_META_RESOLUTION_UNIT};
	GValue value = G_VALUE_INIT;
	char **fields;

	if (!strip)
		vips_image_map(in, copy_field, out);
	for (size_t i = 0; i < G_N_ELEMENTS(always); i++)
		if (vips_image_get_typeof(in, always[i]) &&
		    !vips_image_get(in, always[i], &value)) {
			vips_image_set(out, always[i], &value);
			g_value_unset(&value);
		}
	fields = vips_image_get_fields(out);
	for (char **field = fields; field && *field; field++)
		if (is_exif_picture(*field))
			vips_image_remove(out, *field);
	g_strfreev(fields);
	vips_autorot_remove_angle(out);
}

static VipsImage *copy_decoded(VipsImage *in, void *pixels, size_t size, bool strip)
{
	VipsImage *out =
	    vips_image_new_from_memory(pixels, size, in->Xsize, in->Ysize, in->Bands, in->BandFmt);

	out->Type = in->Type;
	out->Xres = in->Xres;
	out->Yres = in->Yres;
	copy_metadata(in, out, strip);
	return out;
}

static bool full_chroma(VipsImage *in)
{
	const char *chroma;

	return vips_image_get_typeof(in, "jpeg-chroma-subsample") &&
	       !vips_image_get_string(in, "jpeg-chroma-subsample", &chroma) &&
	       !strcmp(chroma, "4:4:4");
}

static void save(struct outcome *o, VipsImage *in, enum format to, void *pixels, size_t size,
                 bool strip)
{
	VipsImage *out = copy_decoded(in, pixels, size, strip);
	int error;

	if (to == FORMAT_JPEG)
		error = vips_jpegsave_buffer(
		    out, &o->bytes, &o->size, "Q", 85, "subsample_mode",
		    full_chroma(in) ? VIPS_FOREIGN_SUBSAMPLE_OFF : VIPS_FOREIGN_SUBSAMPLE_ON, NULL);
	else
		error = vips_pngsave_buffer(out, &o->bytes, &o->size, NULL);
	if (error)
		set_outcome(o, ERR_UNENCODABLE, format_naming(to)->name, "encoder");
	g_object_unref(out);
}

static VipsImage *load(const void *bytes, size_t size, enum format format)
{
	VipsSource *source = vips_source_new_from_memory(bytes, size);
	VipsImage *image = NULL;

	vips_error_clear();
	if (vips_call(format_rows[format].loader, source, &image, "access", VIPS_ACCESS_SEQUENTIAL,
	              "fail_on", VIPS_FAIL_ON_ERROR, NULL))
		image = NULL;
	g_object_unref(source);
	return image;
}

static struct outcome by_libvips(const struct file *file, enum format from, enum format to,
                                 bool strip)
{
	struct outcome o = {0};
	VipsImage *in = load(file->bytes, file->size, from);
	void *pixels = NULL;
	size_t size;

	if (!in || !(pixels = vips_image_write_to_memory(in, &size)))
		set_outcome(&o, ERR_UNDECODABLE, format_naming(from)->title, "decoder");
	else if (to == FORMAT_RAW)
		o = (struct outcome){.bytes = g_memdup2(pixels, size), .size = size};
	else
		save(&o, in, to, pixels, size, strip);
	g_free(pixels);
	g_clear_object(&in);
	return o;
}

static void expect_bytes(const struct outcome *o, const struct reply *reply, const char *name)
{
	size_t size = reply->done.answer_size, at = 0;
	const uint8_t *theirs = o->bytes;

	while (at < size && at < o->size && theirs[at] == reply->answer[at])
		at++;
	expect(size == o->size && at == size, "%s: differs from libvips's at byte %zu of %zu (%zu)",
	       name, at, o->size, size);
}

static void expect_pixels(VipsImage *ours, VipsImage *theirs, const char *name)
{
	size_t size, their_size;
	void *a = vips_image_write_to_memory(ours, &size),
	     *b = vips_image_write_to_memory(theirs, &their_size);

	expect(a && b && ours->Xsize == theirs->Xsize && ours->Bands == theirs->Bands &&
	           ours->BandFmt == theirs->BandFmt && size == their_size && !memcmp(a, b, size),
	       "%s: pixels differ", name);
	g_free(a);
	g_free(b);
}

static void expect_blob(VipsImage *ours, VipsImage *theirs, const char *field, const char *name)
{
	const void *a = NULL, *b = NULL;
	size_t size = 0, their_size = 0;

	if (vips_image_get_typeof(ours, field) && vips_image_get_blob(ours, field, &a, &size) != 0)
		a = NULL;
	if (vips_image_get_typeof(theirs, field) &&
	    vips_image_get_blob(theirs, field, &b, &their_size) != 0)
		b = NULL;
	expect(!a == !b && size == their_size && (!a || !memcmp(a, b, size)),
	       "%s: %s of %zu bytes, not %zu, or others", name, field, size, their_size);
}

/* Texts by their keywords: libvips writes only the first word of one, in any order. */
static void *add_text(VipsImage *image, const char *field, GValue *value, void *texts)
{
	const char *text;
	char keyword[100];

	(void)value;
	if (sscanf(field, "png-comment-%*d-%99s", keyword) == 1 &&
	    !vips_image_get_string(image, field, &text))
		g_ptr_array_add(texts, g_strdup_printf("%s=%s", keyword, text));
	return NULL;
}

static int compare_texts(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *texts_of(VipsImage *image)
{
	GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
	GString *all = g_string_new(NULL);

	vips_image_map(image, add_text, texts);
	g_ptr_array_sort(texts, compare_texts);
	for (guint i = 0; i < texts->len; i++)
		g_string_append_printf(all, "%s\n", (const char *)texts->pdata[i]);
	g_ptr_array_unref(texts);
	return g_string_free(all, FALSE);
}

static void expect_metadata(VipsImage *ours, VipsImage *theirs, const char *name)
{
	char *a = texts_of(ours), *b = texts_of(theirs);
	/* From 8.16 on libvips adds EXIF where there was none, with a finer resolution. */
	bool adds = vips_version(1) >= 16 && !vips_image_get_typeof(ours, VIPS_META_EXIF_NAME);
	double off = adds ? 1e-3 : 1e-9;

	expect_blob(ours, theirs, VIPS_META_ICC_NAME, name);
	expect_blob(ours, theirs, VIPS_META_XMP_NAME, name);
	if (!adds)
		expect_blob(ours, theirs, VIPS_META_EXIF_NAME, name);
	expect(fabs(ours->Xres - theirs->Xres) < off && fabs(ours->Yres - theirs->Yres) < off,
	       "%s: resolution %g, %g, not %g, %g", name, ours->Xres, ours->Yres, theirs->Xres,
	       theirs->Yres);
	/* From 8.16 on it writes no texts if one is empty. */
	expect((vips_version(1) >= 16 && !*b) || !strcmp(a, b), "%s: texts are\n%snot\n%s", name, a,
	       b);
	g_free(a);
	g_free(b);
}

static void expect_png(const struct outcome *o, const struct reply *reply, const char *name)
{
	VipsImage *ours = load(reply->answer, reply->done.answer_size, FORMAT_PNG),
	          *theirs = load(o->bytes, o->size, FORMAT_PNG);

	if (expect(ours && theirs, "%s: the answer cannot be read", name)) {
		expect_metadata(ours, theirs, name);
		expect_pixels(ours, theirs, name);
		expect(reply->done.answer_size <= o->size + o->size / 8 + 200,
		       "%s: %llu bytes, libvips's has %zu", name,
		       (unsigned long long)reply->done.answer_size, o->size);
	}
	g_clear_object(&ours);
	g_clear_object(&theirs);
}

/* The same fault in two wordings: ours on the left, libvips's on the right. libvips 8.16
 * names a truncated JPEG otherwise than libjpeg; a damaged length of a PNG chunk is seen
 * before the decoder runs. */
static bool same_words(const char *ours, const char *theirs)
{
	static const char *const wordings[][2] = {
	    {"the JPEG decoder says: Premature end of input file",
	     "the JPEG decoder says: premature end of JPEG image"},
	    {"the file is truncated: a part of it is longer", "the PNG decoder failed"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(wordings); i++)
		if (strstr(ours, wordings[i][0]) && strstr(theirs, wordings[i][1]))
			return true;
	return !strcmp(ours, theirs);
}

void expect_alike(const struct file *file, enum format from, enum format to, bool strip,
                  const char *name)
{
	struct request request = {
	    .body = *file, .format = to, .strip = strip, .samples_max = 20000};
	struct outcome o = by_libvips(file, from, to, strip);
	struct reply reply;

	if (run(&request, &reply, name)) {
		expect(reply.done.error == o.error &&
		           same_words(reply.done.problem.detail, o.problem.detail),
		       "%s: %s (%s), where libvips has %s (%s)", name,
		       error_row(reply.done.error)->slug, reply.done.problem.detail,
		       error_row(o.error)->slug, o.problem.detail);
		if (!reply.done.error && !o.error)
			(to == FORMAT_PNG ? expect_png : expect_bytes)(&o, &reply, name);
		reply_fini(&reply);
	}
	g_free(o.bytes);
}
