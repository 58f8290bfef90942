"""Fixtures that modules make for themselves."""
import pytest


def service_with(*options, **more):
    """Returns the fixture of a module's own service, which the fixture launch starts with these."""
    @pytest.fixture(scope="module")
    def started(launch):
        with launch(*options, **more) as service:
            yield service
    return started
