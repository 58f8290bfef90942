"""A quarter of a minute of the soak; and a check that it would notice growth."""
import random

import pytest

import soak
from measure import measured
from service import TWO_DEVICES

MINUTES = [i / 100 for i in range(100)]


def noisy(value):
    """Returns a size in bytes at a time in minutes, with the noise of requests that come and go."""
    rng = random.Random(1)
    return [value(at) + rng.gauss(0, 3e6) for at in MINUTES]


@pytest.mark.parametrize("grows, value", [
    (False, lambda at: 50e6),
    (False, lambda at: 50e6 + (at % 0.2) * 30e6),       # freed again and again
    (False, lambda at: 50e6 + (at > 0.1) * 20e6),       # grew once, early
    (False, lambda at: 60e6 - at * 20e6),
    (True, lambda at: 50e6 + at * 20e6),
])
def test_judged(grows, value):
    assert soak.judge(MINUTES, noisy(value), soak.FLOORS["pss"]).grows == grows


def test_one_by_one():
    """A descriptor lost now and then is seen; one that was opened once is not."""
    assert soak.judge(MINUTES, [int(at * 12) for at in MINUTES], soak.FLOORS["fds"]).grows
    assert not soak.judge(MINUTES, [7 + (at > 0.5) for at in MINUTES], soak.FLOORS["fds"]).grows


@pytest.mark.slow
def test_quarter_of_a_minute(cache):
    """With an image of each type: most of the time would go into the programs of more."""
    with measured(*soak.OPTIONS, cache=cache, environment=TWO_DEVICES) as service:
        for row in soak.run(service, 0.25, soak.cases()[2:5], quiet=1):
            print(row)
