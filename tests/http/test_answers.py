"""Headers of every answer, the trace that a request belongs to, and clients that fall silent."""
import concurrent.futures
import contextlib
import gzip
import re
import time

import pytest

import exposition
import imagefiles
from fixtures import service_with
from jobs import PREFER, begin
from pixels import random_pixels
from service import Process, multipart, read_answer, request_head

PIXELS = random_pixels(5, 40, 30, 3, "u8")
PNG = imagefiles.write_png(PIXELS)
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


# A client that says nothing for four seconds has lost.
impatient = service_with("--idle-timeout", "4", "--codecs", "2", "--max-body", "100000",
                         "--log-level", "debug")


@pytest.mark.parametrize("path", ["/v1/filters", "/v1/filters/box", "/openapi.json", "/"])
def test_not_modified(impatient, path):
    whole = impatient.get(path)
    etag = whole.headers["ETag"]
    assert re.fullmatch('W/"[0-9a-f]{16}"', etag) and whole.status == 200
    for method in ("GET", "HEAD"):
        for known in (etag, etag[2:], f'"other", {etag}', f'"a",W/"b" ,{etag[2:]}', "*"):
            answer = impatient.request(method, path, headers={"If-None-Match": known})
            assert (answer.status, answer.body) == (304, b""), known
            assert answer.headers["ETag"] == etag and "Vary" in answer.headers
            assert answer.headers["Content-Length"] == whole.headers["Content-Length"]
            protected(answer)
    for other in ('"other"', etag[:-2] + '"', etag[3:-1], "", ",", 'W/""'):
        answer = impatient.get(path, headers={"If-None-Match": other})
        assert (answer.status, answer.body) == (200, whole.body), other


def test_nothing_follows_not_modified(impatient):
    """The length that is said is that of what there is; nothing is sent."""
    result = begin(impatient, "/v1/filters/box", PNG) + "/result"
    impatient.get(result + "?wait=30")
    with impatient.socket(timeout=60) as connection:
        for path in ("/v1/filters", "/openapi.json", result):
            connection.sendall(request_head(path, "If-None-Match: *", "Accept-Encoding: gzip",
                                            method="GET"))
        connection.sendall(request_head("/livez", "Connection: close", method="GET"))
        text = connection.makefile("rb").read()
    *unchanged, last = text.split(b"HTTP/1.1 ")[1:]
    assert [one[:4] for one in unchanged] == 3 * [b"304 "] and last.startswith(b"200 ")
    assert all(one.endswith(b"\r\n\r\n") and one.count(b"\r\n\r\n") == 1 for one in unchanged)
    assert b"Content-Length: 0" not in text


@pytest.mark.parametrize("path", ["/v1/devices", "/v1/kernels", "/metrics", "/livez", "/readyz"])
def test_what_changes(impatient, path):
    answer = impatient.get(path, headers={"If-None-Match": "*"})
    assert answer.status == 200 and "ETag" not in answer.headers


def test_result_not_modified(impatient):
    """A result never changes; a failed job's problem, and the job itself, have no version."""
    job, broken = (begin(impatient, "/v1/filters/box", body) for body in (PNG, PNG[:-99]))
    whole = impatient.get(job + "/result?wait=30")
    again = impatient.get(job + "/result", headers={"If-None-Match": whole.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    assert "ETag" not in impatient.get(job).headers
    failed = impatient.get(broken + "/result?wait=30", headers={"If-None-Match": "*"})
    assert failed.status == 422 and "ETag" not in failed.headers


@pytest.mark.parametrize("path", ["/v1/filters", "/openapi.json", "/metrics", "/v1/kernels"])
def test_gzip(impatient, path):
    plain = impatient.get(path, headers={"Accept-Encoding": "identity"})
    packed = impatient.get(path, headers={"Accept-Encoding": "br, gzip;q=0.5"})
    refused = impatient.get(path, headers={"Accept-Encoding": "gzip;q=0, *"})
    assert packed.headers["Content-Encoding"] == "gzip" and packed.type == plain.type
    assert "Content-Encoding" not in plain.headers and "Content-Encoding" not in refused.headers
    assert len(packed.body) * 2 < len(plain.body)
    text = gzip.decompress(packed.body)
    if "ETag" in plain.headers:
        assert text == plain.body and packed.headers["ETag"] == plain.headers["ETag"]
    else:
        assert text.splitlines()[0] == plain.body.splitlines()[0]
    vary = "Accept, Accept-Encoding" if path == "/metrics" else "Accept-Encoding"
    for answer in (plain, packed, refused):
        assert answer.headers["Vary"].endswith(vary)
        assert int(answer.headers["Content-Length"]) == len(answer.body)


@pytest.mark.parametrize("path, known", [
    ("/openapi.json", False), ("/openapi.json", True), ("/metrics", False),
    *(pytest.param(path, known, marks=pytest.mark.slow) for path, known in (
        ("/v1/filters", False), ("/v1/filters", True), ("/page/style.css", False),
        ("/page/style.css", True), ("/v1/kernels", False)))])
def test_made_once_for_all(impatient, path, known):
    """A long text costs the front's only thread no more than a short one, nor does its 304."""
    front = Process(impatient.process.pid)

    def cost(target, headers, requests=25):  # within a second, where some texts are made again
        with contextlib.closing(impatient.connect(60)) as connection:
            before = int(front.read("schedstat").split()[0])
            for _ in range(requests):
                connection.request("GET", target, headers=headers)
                connection.getresponse().read()
            return (int(front.read("schedstat").split()[0]) - before) * 1e-9 / requests

    impatient.post("/v1/filters/box", PNG)
    headers = {"Accept-Encoding": "gzip"}
    if known:
        headers["If-None-Match"] = impatient.get(path, headers=headers).headers["ETag"]
    least = min(cost("/livez", {}) for _ in range(3))
    assert any(cost(path, headers) < 3 * least + 20e-6 for _ in range(60))  # a busy machine's caches are cold


def test_shared_no_longer_than_a_second(impatient):
    """However many ask, metrics are made once a second, and nobody gets older ones."""
    def made(answer):
        return exposition.total(answer.body.decode(), "convolved_time_seconds")

    found, end = [], time.monotonic() + 1.5

    def ask(_):
        while time.monotonic() < end or len({when for _, when in [*found]}) < 2:
            found.append((time.time(), made(impatient.get("/metrics"))))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    ages = sorted(asked - when for asked, when in found)
    assert ages[len(ages) * 9 // 10] < 1.1  # a front that is not scheduled makes a few wait
    times = sorted({when for _, when in found})
    assert len(times) > 1 and min(b - a for a, b in zip(times, times[1:])) >= 0.999
    time.sleep(1)
    asked = time.time()
    assert made(impatient.get("/metrics")) >= asked


def test_clients_share_no_secrets(impatient):
    """A job's state is not shared, nor is what depends on Accept."""
    first, second = (begin(impatient, "/v1/filters/box", PNG) for _ in range(2))
    assert impatient.get(first).json()["id"] != impatient.get(second).json()["id"]
    for path, kind in (("/", "text/html"), ("/metrics", "application/openmetrics-text")) * 3:
        assert impatient.get(path, headers={"Accept": kind}).type == kind
        assert impatient.get(path).type == "text/plain"
    ids = {impatient.get("/metrics").headers["X-Request-Id"] for _ in range(3)}
    assert len(ids) == 3


def test_not_gzipped(impatient):
    """Images are compressed already, and a few words are not worth it."""
    for method, path, body in (("POST", "/v1/filters/box", PNG), ("GET", "/livez", None),
                               ("GET", "/v1/filters/none", None)):
        answer = impatient.request(method, path, body, headers={"Accept-Encoding": "gzip"})
        assert "Content-Encoding" not in answer.headers


def test_vary(impatient):
    assert impatient.post("/v1/filters/box", PNG).headers["Vary"] == "Accept"
    refused = impatient.post("/v1/filters/box", PNG, headers={"Accept": "text/html"})
    assert refused.status == 406 and refused.headers["Vary"] == "Accept, Accept-Encoding"


REQUESTS = [
    ("GET", "/", b"", 200), ("GET", "/v1/filters", b"", 200), ("GET", "/v1/filters/box", b"", 200),
    *(("HEAD", path, b"", 200) for path in ("/v1/filters", "/livez", "/readyz", "/metrics")),
    ("GET", "/v1/devices", b"", 200),
    ("GET", "/v1/kernels", b"", 200), ("GET", "/metrics", b"", 200), ("GET", "/livez", b"", 200),
    ("GET", "/readyz?verbose", b"", 200), ("GET", "/openapi.json", b"", 200),
    ("GET", "/nowhere", b"", 404), ("PUT", "/v1/chain", PNG, 405),
    ("GET", "/v1/filters/none", b"", 404), ("GET", "/v1/jobs/0123456789abcdef", b"", 404),
    ("POST", "/v1/filters/box?size=2", PNG, 400), ("POST", "/v1/filters/none", PNG, 404),
    ("POST", "/v1/filters/box", b"text", 415), ("POST", "/v1/filters/box", PNG[:-99], 422),
    ("POST", "/v1/filters/box", b"", 400), ("POST", "/v1/filters/box", bytes(100001), 413),
    ("POST", "/v1/filters/box", PNG, 200), ("POST", "/v1/chain?filters=box,sobel", PNG, 200),
]


@pytest.mark.parametrize("method, target, body, status", REQUESTS)
def test_server_timing(impatient, method, target, body, status):
    answer = impatient.request(method, target, body)
    assert answer.status == status and bool(answer.body) == (method != "HEAD"), answer
    assert answer.timing["total"] >= 0, answer.headers
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["X-Request-Id"])
    assert len(answer.headers.get_all("Server-Timing")) == 1
    protected(answer)


def protected(answer):
    """No browser guesses what an answer is, or runs anything in it; caches ask first."""
    for name, value in (("X-Content-Type-Options", "nosniff"),
                        ("Content-Security-Policy", "default-src 'none'")):
        assert answer.headers.get_all(name) == [value]
    control, = answer.headers.get_all("Cache-Control")
    assert control == ("private, no-cache" if "ETag" in answer.headers else "no-store")


def test_server_timing_async(impatient):
    accepted = impatient.post("/v1/filters/box", PNG, headers=PREFER)
    job = accepted.headers["Location"]
    result = impatient.get(f"{job}/result?wait=30")
    events = impatient.get(f"{job}/events")
    deleted = impatient.request("DELETE", job)
    assert [a.status for a in (accepted, result, events, deleted)] == [202, 200, 200, 204]
    for answer in (accepted, result, events, deleted):
        assert "total" in answer.timing, answer.headers
        protected(answer)
    assert {"receive", "queue", "decode", "encode"} <= result.timing.keys()


@pytest.mark.parametrize("body, more", [(PNG, {}), (b"text", {}), (b"text", PREFER)])
def test_trace_is_logged(impatient, body, more):
    answer = impatient.post("/v1/filters/box", body,
                            headers={"traceparent": f"00-{TRACE}-{SPAN}-01", **more})
    impatient.says(f"request {answer.headers['X-Request-Id']} trace={TRACE} span={SPAN}:")


def head(length, *headers):
    return request_head("/v1/filters/box", f"Content-Length: {length}", *headers)


FORM, FORM_TYPE = multipart([("image", "a.png", PNG)])
STALLED = [head(len(PNG)), head(len(PNG)) + PNG[:100], head(len(PNG), "Expect: 100-continue"),
           head(len(FORM), f"Content-Type: {FORM_TYPE}") + FORM[:150]]


def test_stalled_body(impatient):
    """408, the connection ends, and nothing is left of the request."""
    def rejected():
        return impatient.total("convolved_requests_rejected_total", reason="request-timeout")

    before, began = rejected(), time.monotonic()
    with impatient.connections(len(STALLED)) as connections:
        for connection, sent in zip(connections, STALLED):
            connection.sendall(sent)
        for connection in connections:
            answer = read_answer(connection)
            assert time.monotonic() - began > 3.9
            answer.refused(408, "request-timeout")
            assert answer.headers["Connection"] == "close" and not connection.recv(1)
            assert "total" in answer.timing and answer.headers["X-Request-Id"]
    impatient.rest()
    assert rejected() == before + len(STALLED)


def test_stalled_refused_body(impatient):
    """A request whose body is refused and dropped is answered when nothing more comes."""
    answer = impatient.send(request_head("/v1/filters/none", "Content-Length: 5000") + b"abc")
    answer.refused(404, "unknown-filter")


def test_slow_body_is_served(impatient):
    """Silences that are shorter than that, and longer together, are no reason."""
    with impatient.socket(timeout=60) as connection:
        connection.sendall(head(len(PNG)))
        step = len(PNG) // 5
        for i in range(0, len(PNG), step):
            time.sleep(1)
            connection.sendall(PNG[i:i + step])
        assert read_answer(connection).status == 200


def test_silence_between_requests(impatient):
    """A connection that is kept alive may rest as long, and is then closed without a word."""
    with impatient.socket(timeout=60) as connection:
        connection.sendall(head(len(PNG)) + PNG)
        assert read_answer(connection).status == 200
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_answer(connection).status == 200
        assert connection.recv(1) == b""


def test_body_of_a_request_that_needs_none(impatient):
    """It comes in part. An answer is whole, or it is an error: never an empty image."""
    job = begin(impatient, "/v1/filters/box", PNG)
    image = impatient.get(job + "/result?wait=30")
    requests = [("GET", job + "/result"), ("GET", job + "/events"), ("GET", "/livez"),
                ("HEAD", job + "/result")]
    with impatient.connections(len(requests)) as connections:
        for connection, (method, path) in zip(connections, requests):
            connection.sendall(request_head(path, "Content-Length: 9", method=method) + b"ab")
        *problems, live = answers = [read_answer(connection) for connection in connections[:3]]
        head = connections[3].makefile("rb").read().decode()
    assert live.status in (200, 408) and all(answer.body for answer in answers)
    assert all(answer.status in (400, 408) and answer.problem for answer in problems)
    assert "(null)" not in head + "".join(str(answer.headers) for answer in answers)
    status = int(head.split()[1])
    assert status in (200, 408) and head.endswith("\r\n\r\n")
    assert status == 408 or f"Content-Length: {len(image.body)}\r\n" in head
