/* Values: a text is one or not, is printed as it is read, and what is valid is said. */
#include <math.h>

#include "base/value.h"
#include "unit.h"

TEST(test_values)
{
	static const struct value_kind number = {VALUE_NUMBER, 0.1, 100, "pixels"},
	                               integer = {VALUE_INTEGER, 0, 300, NULL},
	                               odd = {VALUE_ODD, 1, 601, ""},
	                               bytes = {VALUE_BYTES, 1, 1099511627776.0, NULL},
	                               words = {VALUE_WORD, .unit = "auto|on|off"},
	                               two = {VALUE_WORD, .unit = "no|yes"};
	static const struct {
		const struct value_kind *kind;
		const char *text;
		double value; /* NAN: it is none */
	} cases[] = {
	    {&number, "0.1", 0.1},   {&number, "+1e2", 100},
	    {&number, "0.09", NAN},  {&number, "", NAN},
	    {&number, "nan", NAN},   {&number, "0x1", NAN},
	    {&number, " 1", NAN},    {&number, "1e999", NAN},
	    {&integer, "300", 300},  {&integer, "0", 0},
	    {&integer, "5.0", 5},    {&integer, "1.5", NAN},
	    {&integer, "+1", 1},     {&integer, "-1", NAN},
	    {&integer, "301", NAN},  {&integer, "1x", NAN},
	    {&odd, "601", 601},      {&odd, "2", NAN},
	    {&odd, "3.5", NAN},      {&bytes, "1", 1},
	    {&bytes, "3K", 3072},    {&bytes, "1024G", 1099511627776.0},
	    {&bytes, "1025G", NAN},  {&bytes, "10X", NAN},
	    {&bytes, "1KB", NAN},    {&bytes, "K", NAN},
	    {&bytes, "0x1", NAN},    {&bytes, "1.5M", NAN},
	    {&words, "auto", 0},     {&words, "off", 2},
	    {&words, "o", NAN},      {&words, "", NAN},
	    {&words, "on|off", NAN}, {&two, "yes", 1},
	    {&two, "yes|", NAN},     {&odd, "5e+0", 5},
	};
	static const struct {
		const struct value_kind *kind;
		const char *valid;
	} descriptions[] = {
	    {&number, "a number from 0.1 to 100, in pixels"},
	    {&integer, "an integer from 0 to 300"},
	    {&odd, "an odd integer from 1 to 601"},
	    {&bytes, "an integer number of bytes (suffix K, M or G) from 1 to 1024G"},
	    {&words, "one of auto, on, off"},
	    {&two, "no or yes"},
	};
	struct problem problem;
	char text[128];
	double value, again;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(value_read(cases[i].kind, cases[i].text, &value),
		                 !isnan(cases[i].value));
		if (isnan(cases[i].value))
			continue;
		assert_true(value == cases[i].value);
		value_print(cases[i].kind, value, text, sizeof text);
		assert_true(value_read(cases[i].kind, text, &again) && again == value);
	}
	for (size_t i = 0; i < sizeof descriptions / sizeof *descriptions; i++) {
		value_describe(descriptions[i].kind, text, sizeof text);
		assert_string_equal(text, descriptions[i].valid);
	}
	assert_int_equal(value_parse(&odd, "size", "4", &value, &problem), ERR_BAD_PARAMETER);
	assert_string_equal(problem.parameter, "size");
	assert_string_equal(problem.value, "4");
	assert_string_equal(problem.detail, "size: expected an odd integer from 1 to 601");
}
