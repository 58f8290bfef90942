"""Fixtures that modules make for themselves, choices of cases, and what cases are made of."""
import collections

import pytest


def some(cases, every=2):
    """Cases for parametrize, the first of every so many; the others are slow."""
    return [pytest.param(*(case if isinstance(case, tuple) else [case]), marks=() if i % every == 0 else pytest.mark.slow)
            for i, case in enumerate(cases)]


class Made(collections.UserDict):
    """{name: function}: each value is made when it is first asked for."""
    def __getitem__(self, name):
        if callable(self.data[name]):
            self.data[name] = self.data[name]()
        return self.data[name]


def service_with(*options, **more):
    """Returns the fixture of a module's own service, which the fixture launch starts with these."""
    @pytest.fixture(scope="module")
    def started(launch):
        with launch(*options, **more) as service:
            yield service
    return started
