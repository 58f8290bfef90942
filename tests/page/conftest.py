"""A browser, and a service for the pages."""
import hashlib

import pytest

from browser import Browser
from fixtures import service_with
from service import ONE_DEVICE

service = service_with(environment=ONE_DEVICE)


# Cards are never in sight, and so ask for no pictures: a page has so many that they take more time than
# all else.
UNSEEN = "window.IntersectionObserver = class { observe() {} disconnect() {} };"


@pytest.fixture(scope="session")
def browser():
    with Browser() as started:
        started.unseen = started.command("Page.addScriptToEvaluateOnNewDocument", source=UNSEEN)
        yield started


@pytest.fixture
def pictures(browser):
    """Cards have pictures, for once."""
    browser.command("Page.removeScriptToEvaluateOnNewDocument", **browser.unseen)
    yield
    browser.unseen = browser.command("Page.addScriptToEvaluateOnNewDocument", source=UNSEEN)


@pytest.fixture
def guarded(launch, tmp_path):
    """guarded(*options) is a service that wants the token `secret-token`."""
    def launched(*options):
        tokens = tmp_path / "tokens"
        tokens.write_text(f"[alice]\ntoken-sha256={hashlib.sha256(b'secret-token').hexdigest()}\n")
        tokens.chmod(0o600)
        return launch("--tokens", str(tokens), *options, environment=ONE_DEVICE)
    return launched
