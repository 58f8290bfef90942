/* Forms: what is read of a body, however it is cut into pieces. tests/fuzz/form.c damages them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/form.h"
#include "unit.h"

#define TYPE  "multipart/form-data; boundary=b"
#define PART  "Content-Disposition: form-data; name=\"image\"\r\n\r\n"
#define IMAGE "--b\r\n" PART
#define END   "\r\n--b--\r\n"

enum { HEARD_MAX = 4096 };

/* The parsed form as text: (NAME) or (NAME|file), then data, a part. */
static char heard[HEARD_MAX];
static size_t heard_size;
static struct problem problem;

static void hear(const void *data, size_t size)
{
	assert_in_range(size, 0, sizeof heard - 1 - heard_size);
	memcpy(heard + heard_size, data, size);
	heard_size += size;
	heard[heard_size] = '\0';
}

static enum error begin(void *context, const char *name, bool file, struct problem *p)
{
	assert_ptr_equal(context, heard);
	assert_ptr_equal(p, &problem);
	hear("(", 1);
	hear(name, strlen(name));
	hear(file ? "|file)" : ")", file ? 6 : 1);
	return ERR_OK;
}

static enum error data(void *context, const char *bytes, size_t size, struct problem *p)
{
	(void)context, (void)p;
	assert_true(size);
	hear(bytes, size);
	return ERR_OK;
}

static const struct form_calls calls = {begin, data};

/* Reads a form in pieces: the first ends at `cut` and the others have `step` bytes. */
static enum error read_cut(const char *type, const char *body, size_t size, size_t cut, size_t step)
{
	struct form *form;
	enum error e = form_new(&form, type, &calls, heard, &problem);

	heard_size = 0;
	*heard = '\0';
	for (size_t at = 0; !e && at < size;) {
		size_t piece = at < cut ? cut - at : step;
		/* A copy of its own, so that sanitizers see who reads beyond it. */
		char *copy = malloc(piece);

		piece = piece < size - at ? piece : size - at;
		memcpy(copy, body + at, piece);
		e = form_read(form, copy, piece, &problem);
		free(copy);
		at += piece;
	}
	if (!e)
		e = form_finish(form, &problem);
	form_free(form);
	return e;
}

static enum error read_whole(const char *type, const char *body, size_t size)
{
	return read_cut(type, body, size, size, size);
}

static void assert_heard(const char *type, const char *body, const char *what)
{
	if (read_whole(type, body, strlen(body)))
		fail_msg("%s: %s", body, problem.detail);
	assert_string_equal(heard, what);
}

/* The problem names what is wrong. */
static void assert_refused(const char *type, const char *body, const char *words)
{
	if (read_whole(type, body, strlen(body)) != ERR_BAD_REQUEST)
		fail_msg("%s is not refused", body);
	if (!strstr(problem.detail, words))
		fail_msg("%s: %s does not say: %s", body, problem.detail, words);
	assert_true(strlen(problem.detail) < sizeof problem.detail - 1);
}

TEST(test_names)
{
	static const char *const rows[][2] = {
	    {"form-data; name=\"image\"", "(image)x"},
	    {"form-data; name=image", "(image)x"},
	    {"form-data; name=image; filename=a.png; filename*=utf-8''a.png", "(image|file)x"},
	    {"form-data; filename*=utf-8''%e2%82%ac.png; name=image", "(image|file)x"},
	    {"FORM-DATA;NAME=image;FileName=\"\"", "(image|file)x"},
	    {"  form-data ; name = \"image\" ; ", "(image)x"},
	    {"form-data; name=\"a\\\"b\\\\c;d=e\"", "(a\"b\\c;d=e)x"},
	    {"form-data; filename=\"C:\\tmp\\a.png\"; name=\"c\"", "(c|file)x"},
	    {"form-data;\r\n\tname=image;\r\n filename=\"a\"", "(image|file)x"},
	    {"form-data; name=\"\xc3\xa4\"", "(\xc3\xa4)x"},
	    {"form-data; size=3; name=image\r\nContent-Type: image/png; a=\"b\"", "(image)x"},
	    {"form-data; name=image\r\nContent-Transfer-Encoding: Binary", "(image)x"},
	    {"form-data; name=image\r\nX-Name: form-data; name=b", "(image)x"},
	};
	char body[256];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(body, sizeof body, "--b\r\nContent-Disposition:%s\r\n\r\nx" END,
		         rows[i][0]);
		assert_heard(TYPE, body, rows[i][1]);
	}
}

TEST(test_types)
{
	static const char body[] = "--b c\r\n" PART "x\r\n--b c--";

	assert_heard("multipart/form-data; boundary=\"b c\"", body, "(image)x");
	assert_heard("Multipart/Form-Data;charset=utf-8 ; BOUNDARY = \"b\"; a=b", "--b--", "");
}

TEST(test_boundaries)
{
	char type[160], body[400], boundary[72];

	memset(boundary, '-', sizeof boundary);
	for (int length = 1; length <= 71; length++) {
		snprintf(type, sizeof type, "multipart/form-data; boundary=%.*s", length, boundary);
		snprintf(body, sizeof body, "--%.*s\r\n" PART "x\r\n---\r\n--%.*s--", length,
		         boundary, length, boundary);
		if (length == 71)
			assert_refused(type, body, "71 characters");
		else if (length > 1)
			assert_heard(type, body, "(image)x\r\n---");
	}
}

TEST(test_types_refused)
{
	static const char *const rows[][2] = {
	    {"multipart/form-data", "boundary=TEXT"},
	    {"multipart/form-data; boundary", "malformed"},
	    {"multipart/form-data; boundary=", "malformed"},
	    {"multipart/form-data; boundary=\"b", "malformed"},
	    {"multipart/form-data; boundary=b c", "malformed"},
	    {"multipart/form-data boundary=b", "malformed"},
	    {"multipart/form-data; boundary=\"\"", "0 characters"},
	    {"multipart/form-data; boundary=\"b \"", "invalid character"},
	    {"multipart/form-data; boundary=\"b\r\n\"", "invalid character"},
	    {"multipart/form-data; boundary=b[]", "invalid character"},
	    {"multipart/form-data; boundary=b; boundary=c", "two boundaries"},
	    {"multipart/form-dat\xc3\xa4; boundary=b", "malformed"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_refused(rows[i][0], IMAGE "x" END, rows[i][1]);
	assert_true(form_is_one("MULTIPART/form-data;boundary=b"));
	assert_true(form_is_one("multipart/form-data"));
	assert_false(form_is_one("multipart/form-data2; boundary=b"));
	assert_false(form_is_one("application/x-www-form-urlencoded"));
	assert_false(form_is_one(""));
}

TEST(test_refused)
{
	static const char *const rows[][2] = {
	    {"", "not in the form"},
	    {"x", "not in the form"},
	    {"--c\r\n" PART "x\r\n--c--", "not in the form"},
	    {"--b\n" PART "x\n--b--", "followed by neither"},
	    {"--bb\r\n" PART "x" END, "followed by neither"},
	    {"--b-\r\n" PART "x" END, "followed by neither"},
	    {"--b \rx" PART "x" END, "followed by neither"},
	    {IMAGE "x\r\n--bc" END, "followed by neither"},
	    {"--b\r\n\r\nx" END, "no Content-Disposition"},
	    {"--b\r\nContent-Type: image/png\r\n\r\nx" END, "no Content-Disposition"},
	    {"--b\r\nContent-Disposition: attachment; name=image\r\n\r\nx" END, "not form-data"},
	    {"--b\r\nContent-Disposition:\r\n\r\nx" END, "not form-data"},
	    {"--b\r\nContent-Disposition: form-data\r\n\r\nx" END, "no name"},
	    {"--b\r\nContent-Disposition: form-data; filename=a\r\n\r\nx" END, "no name"},
	    {"--b\r\nContent-Disposition: form-data; name=\"\"\r\n\r\nx" END, "no name"},
	    {"--b\r\nContent-Disposition: form-data; name=\r\n\r\nx" END, "malformed"},
	    {"--b\r\nContent-Disposition: form-data; =a\r\n\r\nx" END, "malformed"},
	    {"--b\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx" END, "malformed"},
	    {"--b\r\nContent-Disposition: form-data name=a\r\n\r\nx" END, "malformed"},
	    {"--b\r\nContent-Disposition: form-data; name=a b\r\n\r\nx" END, "malformed"},
	    {"--b\r\nContent-Disposition: form-data; name=\"a\"b\r\n\r\nx" END, "malformed"},
	    {"--b\r\nContent-Disposition: form-data; name=a; name=b\r\n\r\nx" END, "two names"},
	    {"--b\r\nContent-Disposition: form-data; name=a\r\n" PART "x" END,
	     "two Content-Dispositions"},
	    {"--b\r\nimage\r\n" PART "x" END, "NAME: VALUE"},
	    {"--b\r\n: image\r\n" PART "x" END, "NAME: VALUE"},
	    {"--b\r\n folded: image\r\n" PART "x" END, "NAME: VALUE"},
	    {"--b\r\nContent-Disposition : form-data; name=a\r\n\r\nx" END, "NAME: VALUE"},
	    {"--b\r\nContent-Disposition: form-data; name=a\n\nx" END, "0x0a"},
	    {"--b\r\nContent-Disposition: form-data; name=a\r\rx" END, "CR alone"},
	    {"--b\r\nContent-Disposition: form-data; name=\"\x1b\"\r\n\r\nx" END, "0x1b"},
	    {"--b\r\nContent-Transfer-Encoding: base64\r\n" PART "eA==" END, "base64"},
	    {IMAGE "x\r\n--b\r\n" PART "y", "cut short"},
	    {IMAGE "x\r\n--b", "cut short"},
	    {IMAGE "x\r\n--b-", "cut short"},
	    {IMAGE "x\r\n--b\r\nContent-", "cut short"},
	    {IMAGE "x\n--b--", "cut short"},
	};
	static const char nul[] =
	    "--b\r\nContent-Disposition: form-data; name=\"a\0\"\r\n\r\nx" END;
	char *body = malloc(3 * FORM_HEADER_MAX);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_refused(TYPE, rows[i][0], rows[i][1]);
	assert_int_equal(read_whole(TYPE, nul, sizeof nul - 1), ERR_BAD_REQUEST);
	assert_non_null(strstr(problem.detail, "0x00"));
	for (int more = 0; more < 2; more++) {
		static const char before[] = "--b\r\nX: ", after[] = "\r\n" PART "x" END;
		/* A line end counts as one byte. */
		int fill = FORM_HEADER_MAX - (int)strlen("X: ") - 1 - (int)strlen(PART) + 2 + more;

		sprintf(body, "%s%*s%s", before, fill, "", after);
		if (more)
			assert_refused(TYPE, body, "at most 8192");
		else
			assert_heard(TYPE, body, "(image)x");
	}
	free(body);
}

/* The parsed form does not depend on how it is cut. */
TEST(test_pieces)
{
	static const struct {
		const char *body, *what;
	} rows[] = {
	    {IMAGE "x" END, "(image)x"},
	    {IMAGE END, "(image)"},
	    {"--b\r\nContent-Disposition: form-data; name=a\r\n" END, "(a)"},
	    {"--b--", ""},
	    {"--b\r\n" PART "\r\n--b--epilogue\r\n--b\r\n", "(image)"},
	    {"preamble\r\n--\r\n--c\r\n--b \t\r\n" PART "x\r\n--b-- \r\n", "(image)x"},
	    {"\r\n" IMAGE "\r\r\n\r\n-\r\n--\r\n--a--b\r\n\r" END,
	     "(image)\r\r\n\r\n-\r\n--\r\n--a--b\r\n\r"},
	    {IMAGE "x--b--\r" END, "(image)x--b--\r"},
	    {IMAGE "x\r\n" IMAGE "y" END, "(image)x(image)y"},
	    {IMAGE "x\r\n--b\r\nContent-Disposition: form-data;\r\n  name=\"size\"\r\n"
	           "X: y\r\n\r\n3" END,
	     "(image)x(size)3"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t size = strlen(rows[i].body);

		for (size_t cut = 0; cut <= size; cut++)
			for (size_t step = 1; step <= size; step += step > 3 ? size : 1)
				if (read_cut(TYPE, rows[i].body, size, cut, step) ||
				    strcmp(heard, rows[i].what))
					fail_msg("%zu cut at %zu, then %zu each: %s (%s)", i, cut,
					         step, heard, problem.detail);
	}
}
