"""A browser, and a service for the pages."""
import hashlib

import pytest

from browser import Browser
from fixtures import service_with
from service import ONE_DEVICE

service = service_with(environment=ONE_DEVICE)


@pytest.fixture(scope="session")
def browser():
    with Browser() as started:
        yield started


@pytest.fixture
def guarded(launch, tmp_path):
    """guarded(*options) is a service that wants the token `secret-token`."""
    def launched(*options):
        tokens = tmp_path / "tokens"
        tokens.write_text(f"[alice]\ntoken-sha256={hashlib.sha256(b'secret-token').hexdigest()}\n")
        tokens.chmod(0o600)
        return launch("--tokens", str(tokens), *options, environment=ONE_DEVICE)
    return launched
