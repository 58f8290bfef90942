/* Lists in headers: what a client accepts. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "front/api/accept.h"
#include "unit.h"

static struct problem problem;

/* Raw pixels are no image/, and the most specific range counts, wherever it stands. */
TEST(test_formats)
{
	static const struct {
		const char *accept;
		uint16_t jpeg, png, webp, tiff, raw; /* all 0: the header is refused */
	} rows[] = {
	    {NULL, 1000, 1000, 1000, 1000, 1000},
	    {"", 1000, 1000, 1000, 1000, 1000},
	    {"*/*", 1000, 1000, 1000, 1000, 1000},
	    {"image/*", 1000, 1000, 1000, 1000, 0},
	    {"text/html, image/webp;q=0.5 , image/png;q=0.8", 0, 800, 500, 0, 0},
	    {"*/*;q=0.1, image/png;q=0, image/*;q=0.5, image/JPEG", 1000, 0, 500, 500, 100},
	    {"image/jpeg, image/*;q=0.5, image/png;q=0, */*;q=0.1", 1000, 0, 500, 500, 100},
	    {"image/png; a=b ;\tQ=0.2 , image/webp ;charset=q=1;q=0.1, */x", 0, 200, 100, 0, 0},
	    {"image/jpeg;q=0.0005,image/png;q=7,image/webp;q=1e300,image/tiff;q=inf", 0, 1000, 1000,
	     1000, 0},
	    {"image/png;q=0", 0, 0, 0, 0, 0},
	    {"application/json", 0, 0, 0, 0, 0},
	    {"*/*;q=0", 0, 0, 0, 0, 0},
	    {"image/*; q=0, text/html", 0, 0, 0, 0, 0},
	    {"image/svg*", 0, 0, 0, 0, 0},
	    {"*", 0, 0, 0, 0, 0},
	    {"*/*;q=nan", 0, 0, 0, 0, 0},
	    {"image/png;q=-1", 0, 0, 0, 0, 0},
	    {"image/png;q=none", 0, 0, 0, 0, 0},
	};
	uint16_t w[FORMATS];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		enum error e =
		    accept_parse(rows[i].accept, format_sets_known().written, w, &problem);

		if (w[FORMAT_JPEG] != rows[i].jpeg || w[FORMAT_PNG] != rows[i].png ||
		    w[FORMAT_WEBP] != rows[i].webp || w[FORMAT_TIFF] != rows[i].tiff ||
		    w[FORMAT_RAW] != rows[i].raw)
			fail_msg("%s: %u %u %u %u %u", rows[i].accept, w[FORMAT_JPEG],
			         w[FORMAT_PNG], w[FORMAT_WEBP], w[FORMAT_TIFF], w[FORMAT_RAW]);
		assert_int_equal(e, rows[i].png || rows[i].jpeg ? ERR_OK : ERR_NOT_ACCEPTABLE);
	}
}

TEST(test_names)
{
	static const struct {
		const char *list, *name, *any;
		bool accepts;
	} rows[] = {
	    {NULL, "gzip", "*", false},
	    {"", "gzip", "*", false},
	    {"identity, br", "gzip", "*", false},
	    {"gzip;q=0, *", "gzip", "*", false},
	    {"*;q=0", "gzip", "*", false},
	    {"gzipped", "gzip", "*", false},
	    {"gzip", "gzip", "*", true},
	    {"br;q=1.0, GZIP;q=0.001", "gzip", "*", true},
	    {"*", "gzip", "*", true},
	    {"*;q=0, gzip", "gzip", "*", true},
	    {"a=\"b\", gzip; c", "gzip", NULL, true},
	    {"a=\"b, gzip, \\\", gzip\"; gzip, *", "gzip", NULL, false},
	    {"\"0\",W/\"1\"", "W/\"1\"", "*", true},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!accept_weigh(rows[i].list, rows[i].name, rows[i].any) == rows[i].accepts)
			fail_msg("%s", rows[i].list);
}

/* The time that a header takes grows as its length. */
TEST(test_long_accept)
{
	static const char element[] = "a/b;c;", end[] = ",image/png";
	enum { COUNT = 500000, LENGTH = sizeof element - 1 };
	char *header = malloc(COUNT * LENGTH + sizeof end);
	uint16_t weights[FORMATS];

	for (char last = ';'; last != 'x'; last = last == ';' ? ',' : 'x') {
		clock_t began = clock();

		for (size_t i = 0; i < COUNT; i++) {
			memcpy(header + i * LENGTH, element, LENGTH);
			header[(i + 1) * LENGTH - 1] = last;
		}
		memcpy(header + COUNT * LENGTH, end, sizeof end);
		assert_int_equal(accept_parse(header, UINT32_MAX, weights, &problem), ERR_OK);
		assert_int_equal(weights[FORMAT_PNG], 1000);
		assert_true(clock() - began < 20 * CLOCKS_PER_SEC);
	}
	free(header);
}
