"""Fixtures: one service shared by most tests, and a way to start others."""
import contextlib
import functools
import shutil

import pytest

import service as service_module


@pytest.fixture(scope="session")
def launch_one(launch):
    """launch() with a single device, whatever the host has."""
    return functools.partial(launch, environment=service_module.ONE_DEVICE)


@pytest.fixture(scope="module")
def general_cache(tmp_path_factory, cache):
    """A module's own directory with all general programs, as a first start leaves it in time."""
    directory = tmp_path_factory.mktemp("general") / "cache"
    shutil.copytree(service_module.general_programs(cache), directory)
    return directory


@pytest.fixture(scope="session")
def shared(launch):
    """The service with its defaults."""
    with launch() as started:
        yield started


@pytest.fixture
def service(shared):
    """The shared service; fails the test if it cost a worker its life."""
    before = shared.restarts()
    yield shared
    assert shared.process.poll() is None, f"the service ended:\n{shared.tail()}"
    assert shared.restarts() == before, f"a worker died:\n{shared.tail()}"


@pytest.fixture
def reloadable(launch, tmp_path):
    """reloadable(text, environment={}) starts a service by a configuration file of this text."""
    file = tmp_path / "convolved.conf"

    @contextlib.contextmanager
    def start(text, *options, environment=None):
        file.write_text(service_module.configuration(text))
        with launch("--config", str(file), *options,
                    environment={**service_module.TWO_DEVICES, **(environment or {})}) as started:
            started.file = file
            yield started
    return start
