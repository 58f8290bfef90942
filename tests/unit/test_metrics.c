/* Metrics: their sums, quantiles and texts. */
#include <stdlib.h>
#include <string.h>

#include "front/base/metrics.h"
#include "unit.h"

TEST(test_metrics)
{
	struct metric_summary s;
	size_t size;
	char *text;

	metrics_fini();
	for (int i = 1; i <= 100; i++)
		metric_observe(METRIC_KERNEL_DURATION, "matrix", "a\"b\\c\n", (uint64_t)i * 1000000,
		               "");
	metric_add(METRIC_TILE_RETRIES, NULL, NULL, 2);
	metric_add(METRIC_TILE_RETRIES, NULL, NULL, 1);
	assert_int_equal(metric_summary(METRIC_KERNEL_DURATION, 0, &s), 1);
	assert_int_equal(metric_summary(METRIC_KERNEL_DURATION, 1, &s), 0);
	assert_int_equal(s.count, 100);
	assert_true(s.p50 > 0.0499 && s.p50 < 0.0511 && s.p99 > 0.0989 && s.p99 < 0.1001);
	text = metrics_text(METRICS_PROMETHEUS, &size);
	assert_non_null(
	    strstr(text, "kernel=\"matrix\",device=\"a\\\"b\\\\c\\n\",le=\"0.05\"} 50\n"));
	assert_non_null(strstr(text, "le=\"+Inf\"} 100\n"));
	assert_non_null(strstr(text, "\nconvolved_tile_retries_total 3\n"));
	free(text);
	metrics_fini();
}
