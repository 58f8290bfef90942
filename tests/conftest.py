"""Fixtures and settings of several directories' tests."""
import contextlib
import os

import pytest

# Before numpy: its threads would wait for one another by turning round, on processors that others use.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import scripted  # noqa: E402
import service as service_module  # noqa: E402


def pytest_collection_modifyitems(items):
    """The files that take longest begin first, for each has one process."""
    items.sort(key=lambda item: not item.path.name.startswith(("test_deadlines", "test_durable", "test_layer")))


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """One cache directory for all: programs are built once."""
    return service_module.shared_cache(tmp_path_factory)


@pytest.fixture(scope="session")
def jpeg_programs(tmp_path_factory, cache):
    """For services that are to have devices take JPEGs."""
    service_module.share_jpeg(tmp_path_factory, cache)


@pytest.fixture(scope="session")
def launch(tmp_path_factory, cache):
    """launch(*options, environment={}) starts a service of its own, a context manager. Few tests need more
    than two codec workers, each of which takes a twentieth of a second of processor time to start."""
    def launched(*options, environment=None):
        codecs = {} if "--config" in options else {**service_module.UNDER_TEST, "CONVOLVED_CODECS": "2"}
        return service_module.Service(tmp_path_factory.mktemp("service"), cache, *options,
                                      environment={**codecs, **(environment or {})})
    return launched


@pytest.fixture
def server():
    """server(answer, certificate) starts a scripted.Server; it ends with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(
            scripted.Server(*arguments, **options))
