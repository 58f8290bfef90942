"""A quarter of a minute of the soak; and a check that it would notice growth."""
import json
import random

import pytest

import report
import soak
from measure import measured
from service import TWO_DEVICES

MINUTES = [i / 100 for i in range(100)]


@pytest.mark.parametrize("what, noise, grows, value", [
    ("pss", 3e6, False, lambda at: 50e6), ("pss", 3e6, False, lambda at: 60e6 - at * 20e6),
    ("pss", 3e6, False, lambda at: 50e6 + (at % 0.2) * 30e6),  # freed again and again
    ("pss", 3e6, False, lambda at: 50e6 + (at > 0.1) * 20e6),  # grew once, early
    ("pss", 3e6, True, lambda at: 50e6 + at * 20e6),
    ("fds", 0, True, lambda at: int(at * 12)),      # lost now and then
    ("fds", 0, False, lambda at: 7 + (at > 0.5))])  # opened once
def test_judged(what, noise, grows, value):
    """noise: of requests that come and go."""
    rng = random.Random(1)
    sizes = [value(at) + rng.gauss(0, noise) for at in MINUTES]
    assert soak.judge(MINUTES, sizes, soak.FLOORS[what]).grows == grows


@pytest.mark.slow
def test_quarter_of_a_minute(cache):
    """With an image of each type: most of the time would go into the programs of more."""
    with measured(*soak.OPTIONS, cache=cache, environment=TWO_DEVICES) as service:
        rows = [*soak.run(service, 0.25, soak.cases()[2:5], quiet=1)]
    read = [*report.leaks("\n" + json.dumps(rows), "")]  # as its page does
    assert {row["memory of"] for row in read} > {"front", "codec-0", "device-1", "http-0"}
