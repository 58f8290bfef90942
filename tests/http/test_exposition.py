"""The reader of metrics, which must refuse whatever a scraper would."""
import math

import pytest

import exposition

GOOD = """# HELP a_total Things.
# TYPE a_total counter
a_total{kind="x y",path="C:\\\\n\\"q\\""} 3
a_total{kind="z"} 4.5
# HELP d_seconds Time.
# TYPE d_seconds histogram
d_seconds_bucket{le="0.1"} 1
d_seconds_bucket{le="+Inf"} 2
d_seconds_sum 0.7
d_seconds_count 2
# HELP up Whether.
# TYPE up gauge
up 1
"""


def test_good():
    metrics = exposition.parse(GOOD)
    assert metrics.total("a_total") == 7.5
    assert metrics.total("a_total", kind="z") == 4.5
    assert metrics.total("a_total", kind="none") == 0
    assert metrics.samples("a_total", kind="x y")[0][0]["path"] == 'C:\\n"q"'
    assert metrics.total("d_seconds_count") == 2
    assert metrics.total("d_seconds_bucket", le="+Inf") == 2
    assert math.isinf(exposition.parse_value("+Inf"))


@pytest.mark.parametrize("old, new", [
    ("a_total{kind=\"z\"} 4.5", "a_total{kind=\"z\"}4.5"),
    ("a_total{kind=\"z\"} 4.5", "a_total{kind=z} 4.5"),
    ("a_total{kind=\"z\"} 4.5", "a_total{kind=\"z\"} -1"),
    ("kind=\"z\"", "kind=\"z\",kind=\"y\""),
    ("# TYPE up gauge\n", ""),
    ("# TYPE up gauge", "# TYPE up guage"),
    ("up 1\n", "up 1"),
    ("up 1\n", "up 1\nup 2\n"),
    ("up 1\n", "up 1\na_total{kind=\"late\"} 1\n"),
    ("# TYPE a_total counter", "# TYPE a_total counter\n# TYPE a_total counter"),
    ("d_seconds_count 2", "d_seconds_count 3"),
    ("d_seconds_bucket{le=\"0.1\"} 1", "d_seconds_bucket{le=\"0.1\"} 5"),
    ("d_seconds_bucket{le=\"+Inf\"} 2\n", ""),
    ("d_seconds_sum 0.7\n", ""),
])
def test_bad(old, new):
    assert old in GOOD
    with pytest.raises(ValueError):
        exposition.parse(GOOD.replace(old, new, 1))
