"""Fixtures and settings of several directories' tests."""
import os

import pytest

# Before numpy: its threads would wait for one another by turning round, on processors that others use.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import service as service_module  # noqa: E402


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """One cache directory for all: programs are built once."""
    return service_module.shared_cache(tmp_path_factory)
