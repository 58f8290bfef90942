"""What the tests of several directories use."""
import pytest

import service as service_module


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """One cache directory for all: programs are built once."""
    return service_module.shared_cache(tmp_path_factory)
