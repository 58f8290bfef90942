/* Trace contexts: which headers are one. */
#include <stdio.h>

#include "front/jobs/trace.h"
#include "unit.h"

TEST(test_trace)
{
	static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
	struct trace trace;
	char text[80], line[TRACE_TEXT_SIZE];

	assert_true(trace_parse(good, &trace));
	assert_string_equal(trace_text(&trace, line),
	                    " trace=4bf92f3577b34da6a3ce929d0e0e4736 span=00f067aa0ba902b7");
	/* An exemplar names a trace that is recorded. */
	assert_string_equal(trace_exemplar(&trace), "");
	trace_record(&trace, 1);
	assert_string_equal(trace_exemplar(&trace), "4bf92f3577b34da6a3ce929d0e0e4736");
	/* A later version may go on; this one may not. */
	snprintf(text, sizeof text, "cc%s-what-comes", good + 2);
	assert_true(trace_parse(text, &trace));
	snprintf(text, sizeof text, "cc%s.what-comes", good + 2);
	assert_false(trace_parse(text, &trace));
	snprintf(text, sizeof text, "%s-", good);
	assert_false(trace_parse(text, &trace));
	for (size_t i = 0; i < sizeof good - 1; i++) {
		snprintf(text, sizeof text, "%s", good);
		text[i] = text[i] == '-' ? '0' : 'g';
		assert_false(trace_parse(text, &trace));
		snprintf(text, sizeof text, "%.*s", (int)i, good);
		assert_false(trace_parse(text, &trace));
	}
	assert_string_equal(trace_text(&trace, line), "");
}
