"""A browser, and a service for the pages."""
import hashlib

import pytest

import service as service_module
from browser import Browser


@pytest.fixture(scope="module")
def service(tmp_path_factory, cache):
    with service_module.Service(tmp_path_factory.mktemp("service"), cache, environment=service_module.ONE_DEVICE) as started:
        yield started


@pytest.fixture(scope="session")
def browser():
    with Browser() as started:
        yield started


@pytest.fixture
def guarded(tmp_path, cache):
    """guarded(*options) is a service that wants the token `secret-token`."""
    def launched(*options):
        tokens = tmp_path / "tokens"
        tokens.write_text(f"[alice]\ntoken-sha256={hashlib.sha256(b'secret-token').hexdigest()}\n")
        tokens.chmod(0o600)
        return service_module.Service(tmp_path, cache, "--tokens", str(tokens), *options,
                                      environment=service_module.ONE_DEVICE)
    return launched
