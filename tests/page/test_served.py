"""What is served for pages: their files, and the metrics as JSON and as events."""
import hashlib
import json
import re

import pytest

import exposition
from service import REPOSITORY, read_answer

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


def test_metrics(service):
    """As those of /metrics, but for what the two requests change."""
    text = exposition.parse(service.get("/metrics").body.decode())
    figures = service.get("/v1/metrics").json()
    assert len(figures["metrics"]) > 40 and figures["time"] > 1.6e9
    compared = 0
    for metric in figures["metrics"]:
        assert metric["text"]
        for series in metric["series"]:
            if metric["type"] == "histogram":
                count = text.total(f"convolved_{metric['name']}_count", **series["labels"])
                assert series["min_seconds"] <= series["p50_seconds"] <= series["p99_seconds"] <= series["max_seconds"]
                assert series["count"] >= count
            elif metric["name"] in ("jobs_limit", "device_up", "build_info", "requests_rejected_total", "spool_memory_limit_bytes"):
                assert series["value"] == pytest.approx(text.total(f"convolved_{metric['name']}", **series["labels"]), rel=1e-8)
                compared += 1
    assert compared > 20


def read_events(stream, count):
    events = []
    while len(events) < count:
        lines = iter(stream.readline, b"\n")
        event = dict(line.decode().rstrip("\n").split(": ", 1) for line in lines)
        assert event["event"] == "metrics"
        events.append(json.loads(event["data"]))
    return events


def test_events(service):
    """Streams get the same events, and new ones."""
    with service.socket() as first, service.socket() as second:
        answers = []
        for connection in (first, second):
            connection.sendall(b"GET /v1/metrics/events HTTP/1.0\r\n\r\n")
            stream = connection.makefile("rb")
            head = b"".join(iter(stream.readline, b"\r\n"))
            assert b"200 OK" in head and b"text/event-stream" in head
            answers.append(stream)
        one, other = ([event["time"] for event in read_events(stream, 4)] for stream in answers)
        for stream in answers:
            stream.close()
    assert one == sorted(set(one)) and other == sorted(set(other)) and set(one) & set(other)
    service.rest()


def test_streams_end_with_the_service(launch_alone):
    with launch_alone as service, service.socket() as connection:
        connection.sendall(b"GET /v1/metrics/events HTTP/1.1\r\nHost: a\r\n\r\n")
        stream = connection.makefile("rb")
        while b"event: metrics" not in stream.readline():
            pass
        service.process.terminate()
        assert stream.read().endswith(b"0\r\n\r\n")
        stream.close()


def test_tokens(launch_guarded):
    """The pages say nothing of the service, and need none."""
    with launch_guarded as service:
        for path in ("/", "/status", "/docs", "/page/app.js", "/convolved.js"):
            assert service.get(path, headers=HTML).status == 200
        for path in ("/v1/metrics", "/v1/metrics/events", "/openapi.json"):
            service.get(path).refused(401, "token-required")
        with service.socket() as connection:
            connection.sendall(b"GET /v1/metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret-token\r\n\r\n")
            assert read_answer(connection).status == 200
    assert hashlib.sha256(b"secret-token").hexdigest() in service.tokens.read_text()
