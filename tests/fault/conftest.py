"""The fixtures of ../http, whose modules these tests use too."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))

import pytest  # noqa: E402

import service as service_module  # noqa: E402
from fixtures import cache  # noqa: E402, F401


@pytest.fixture(scope="session")
def launch(tmp_path_factory, cache):
    """launch(*options, environment={}) starts a service of its own, a context manager; with one
    device unless the environment says otherwise."""
    def launched(*options, environment=service_module.ONE_DEVICE):
        return service_module.Service(tmp_path_factory.mktemp("service"), cache, *options,
                                      environment=environment)
    return launched
