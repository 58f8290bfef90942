"""The files that are served for pages."""
import re

import pytest

from service import REPOSITORY

HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
FILES = sorted(path.name for path in (REPOSITORY / "page").iterdir() if path.suffix in (".js", ".css", ".svg"))
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@pytest.mark.parametrize("accept, page", [
    (None, False), ("*/*", False), ("text/plain", False), ("text/*", False), ("text/html, text/plain", False),
    ("text/html;q=0.5, text/plain", False), ("text/html;q=0", False), ("application/json", False),
    ("text/html", True), ("TEXT/HTML", True), (HTML["Accept"], True), ("text/html, text/plain;q=0.9", True),
])
def test_index(service, accept, page):
    answer = service.get("/", headers={"Accept": accept} if accept else {})
    assert (answer.status, answer.type) == (200, "text/html" if page else "text/plain")
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script" if page else "default-src 'none'")


@pytest.mark.parametrize("path", ["/", "/status", "/docs", "/convolved.js", *(f"/page/{name}" for name in FILES)])
def test_files(service, path):
    answer = service.get(path, headers=HTML)
    assert answer.status == 200 and answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.type == TYPES.get(re.sub(r".*(?=\.)", "", path), "text/html")
    policy = dict(part.split(maxsplit=1) for part in answer.headers["Content-Security-Policy"].split("; "))
    assert policy.pop("default-src") == policy.pop("frame-ancestors") == "'none'"
    assert {"script-src": "'self'", "style-src": "'self'"}.items() <= policy.items()
    assert set(policy.values()) == {"'self'", "'none'"}
    etag = {**HTML, "If-None-Match": answer.headers["ETag"]}
    assert service.get(path, headers=etag).status == 304 and "no-cache" in answer.headers["Cache-Control"]
    head = service.request("HEAD", path, headers=HTML)
    assert (head.status, head.body, head.headers["ETag"]) == (200, b"", answer.headers["ETag"])
    text = answer.body.decode()
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=\"|style=\"", text) or not path.startswith(("/s", "/d"))
    assert not re.search(r"(?:src|href|from|import)\s*[=(]?\s*[\"'](?:https?:)?//", text), "asks elsewhere"
    assert not re.search(r"(?:src|href)=\"/", text), "does not work below a prefix"


def test_no_such_file(service):
    for path in ("/page/none.js", "/page/..%2Findex.html", "/page/"):
        service.get(path).refused(404, "not-found")


def test_links_to_here(service):
    """A page elsewhere may link to the pages, and use nothing else."""
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert service.get("/", headers={**HTML, **link}).status == 200
    for other in ("iframe", "script", "empty", "image"):
        service.get("/", headers={**HTML, **link, "Sec-Fetch-Dest": other}).refused(403, "cross-site")
    service.post("/v1/filters/box", b"x", headers=link).refused(403, "cross-site")


@pytest.mark.parametrize("path", ["/v1/metrics", "/v1/metrics/events"])
def test_no_second_form_of_metrics(service, path):
    """A program that asks for what there was until now is told where it is."""
    assert "GET /metrics has the metrics" in service.get(path).refused(404, "not-found")["detail"]


def test_tokens(guarded):
    """The pages say nothing of the service, and need none."""
    with guarded() as service:
        for path in ("/", "/status", "/docs", "/page/app.js", "/convolved.js"):
            assert service.get(path, headers=HTML).status == 200
        service.get("/openapi.json").refused(401, "token-required")
