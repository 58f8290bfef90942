"""Spans of requests, sent to a collector, and exemplars that name their traces. Whatever the
collector does, requests are answered."""
import contextlib
import os
import re
import signal
import socket
import threading
import time

import pytest

import imagefiles
from collector import Collector, attributes
from command import run
from service import ONE_DEVICE, PROGRAM, SMALL, free_port, poll

PARENT = "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def collector():
    with Collector() as server:
        yield server


@pytest.fixture(scope="module")
def traced(launch, collector):
    with launch("--otlp-endpoint", collector.endpoint, environment=ONE_DEVICE) as service:
        yield service


@pytest.fixture
def trace():
    """The id of a client's trace."""
    return os.urandom(16).hex()


def ask(service, trace, flags="01", **options):
    return service.post("/v1/filters/gaussian?size=3", imagefiles.write_png(SMALL),
                        headers={"traceparent": f"00-{trace}-{PARENT}-{flags}"} if trace else {}, **options)


def lost(service):
    return service.total("convolved_spans_lost_total")


def worker(service):
    return next(iter(service.workers("trace")), None)


def test_spans(traced, collector, trace):
    before = time.time_ns()
    answer = ask(traced, trace)
    assert answer.status == 200
    spans = poll(lambda: len(collector.of(trace)) >= 5 and collector.of(trace), what="spans")
    assert spans.keys() >= {"request", "queue", "decode", "tile", "encode"}
    request = spans.pop("request")
    assert request["parentSpanId"] == PARENT and request["kind"] == 2 and "status" not in request
    seen = attributes(request)
    assert seen.items() >= {
        "http.request.method": "POST", "http.route": "/v1/filters/{name}",
        "http.response.status_code": 200, "client.address": "127.0.0.1",
        "convolved.filters": "gaussian", "convolved.format": "png", "convolved.image": "11x7x3:u8",
        "convolved.request": answer.headers["X-Request-Id"], "convolved.tiles": 1,
        "http.response.body.size": len(answer.body)}.items()
    for span in spans.values():
        assert span["parentSpanId"] == request["spanId"] and span["kind"] == 1
        assert attributes(span)["convolved.job"] == seen["convolved.job"]
        assert (before <= int(request["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
                <= int(span["endTimeUnixNano"]) <= int(request["endTimeUnixNano"]) <= time.time_ns())
    tile = attributes(spans["tile"])
    assert tile["convolved.device"] == seen["convolved.device"] and tile["convolved.kernels"]
    assert len({span["spanId"] for span in spans.values()}) == len(spans)
    assert collector.resources[0]["service.name"] == "convolved"


def test_refused_and_failed(traced, collector):
    image = imagefiles.write_png(SMALL)
    for target, body, status in (("/v1/filters/gaussian?size=4", image, 400),
                                 ("/v1/filters/gaussian?size=3", image[:60], 422)):
        trace = os.urandom(16).hex()
        answer = traced.post(target, body, headers={"traceparent": f"00-{trace}-{PARENT}-01"})
        assert answer.status == status, answer
        span = poll(lambda: collector.of(trace).get("request"), what="a span")
        assert attributes(span)["http.response.status_code"] == status
        assert attributes(span)["error.type"] == answer.problem["type"].rpartition("/")[2]
        assert "status" not in span  # it was the client's fault


def test_asynchronous(traced, collector, trace):
    answer = traced.post("/v1/filters/gaussian?size=3", imagefiles.write_png(SMALL), headers={
        "traceparent": f"00-{trace}-{PARENT}-01", "Prefer": "respond-async"})
    assert answer.status == 202
    spans = poll(lambda: {"encode", "request"} <= collector.of(trace).keys()
                 and collector.of(trace), what="spans")
    assert attributes(spans["request"])["http.response.status_code"] == 202
    assert spans["encode"]["parentSpanId"] == spans["request"]["spanId"]


def test_what_is_recorded(launch, trace):
    """Clients decide for their traces, the share for requests without."""
    with Collector() as collector, launch("--otlp-endpoint", collector.endpoint, "--otlp-share", "0",
                                          environment=ONE_DEVICE) as service:
        assert ask(service, os.urandom(16).hex(), flags="00").status == ask(service, None).status == 200
        assert service.get("/v1/filters", headers={
            "traceparent": f"00-{os.urandom(16).hex()}-{PARENT}-01"}).status == 200  # no image
        assert ask(service, trace).status == 200
        poll(lambda: "request" in collector.of(trace), what="the last span")
        assert {span["traceId"] for span in collector.spans} == {trace}


def test_a_trace_of_its_own(launch):
    with Collector() as collector, launch("--otlp-endpoint", collector.endpoint,
                                          environment=ONE_DEVICE) as service:
        assert ask(service, None).status == 200
        request = poll(lambda: next((s for s in collector.spans if s["name"] == "request"), None),
                       what="a span")
        assert re.fullmatch("[0-9a-f]{32}", request["traceId"]) and "parentSpanId" not in request
        assert {span["traceId"] for span in collector.spans} == {request["traceId"]}


def test_repeated(traced, collector, trace):
    """What the collector refuses for now comes again, once; what it refuses for good is lost."""
    before = lost(traced)
    collector.answers = [(503, {"Retry-After": "1"})]
    assert ask(traced, trace).status == 200
    poll(lambda: "request" in collector.of(trace), what="the repetition")
    names = [span["name"] for span in collector.spans if span["traceId"] == trace]
    assert len(names) == len(set(names)) and not collector.answers and lost(traced) == before
    collector.answers = [(400, {})]
    assert ask(traced, trace[::-1]).status == 200
    poll(lambda: lost(traced) > before, what="the loss")
    assert "request" not in collector.of(trace[::-1])


def test_collector_that_hangs(traced, collector, trace):
    """Nothing waits for it; spans are lost when too many wait."""
    collector.held.clear()
    for _ in range(20):
        assert ask(traced, trace, timeout=60).status == 200
    assert traced.get("/readyz").status == 200
    collector.held.set()
    poll(lambda: "request" in collector.of(trace), what="spans after all")


def test_no_collector(launch, trace):
    with launch("--otlp-endpoint", f"http://127.0.0.1:{free_port()}/", environment=ONE_DEVICE) as service:
        assert ask(service, trace).status == 200
        service.says("the collector does not answer")
        assert ask(service, trace).status == 200


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_worker_ended(traced, collector, trace, number):
    first = poll(lambda: worker(traced), what="the worker")
    first.kill(number)
    assert ask(traced, trace).status == 200

    def replaced():
        now = worker(traced)
        return now and now.pid != first.pid
    poll(replaced, what="another worker")
    another = os.urandom(16).hex()

    def sent():
        ask(traced, another)
        return collector.of(another)
    poll(sent, what="spans")


def test_stop_sends_the_rest(launch, collector, trace):
    with launch("--otlp-endpoint", collector.endpoint, environment=ONE_DEVICE) as service:
        assert ask(service, trace).status == 200
        assert service.stop() == 0
        assert collector.of(trace).keys() >= {"request", "encode"}


def test_answer_without_end(launch, trace):
    """A collector that is none: it sends what it likes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    with contextlib.suppress(OSError), connection:
                        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                        for _ in range(1000):
                            connection.sendall(b"x" * 65536)
        threading.Thread(target=serve, daemon=True).start()
        with launch("--otlp-endpoint", f"http://127.0.0.1:{listener.getsockname()[1]}",
                    environment=ONE_DEVICE) as service:
            assert ask(service, trace).status == 200
            service.says("the collector does not answer")


def test_exemplars(traced, trace):
    assert ask(traced, trace).status == 200
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    answer = traced.get("/metrics", headers={"Accept": accept})
    assert answer.type == "application/openmetrics-text"
    text = answer.body.decode()
    assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1
    assert "# TYPE convolved_tiles counter\n" in text and "\nconvolved_tiles_total{" in text
    exemplar = (r'convolved_%s_bucket\{.*\} \d+ # \{trace_id="' + trace + r'"\} [\d.e-]+ \d{10}\.\d{3}\n')
    for name in ("request_duration_seconds", "stage_duration_seconds"):
        assert re.search(exemplar % name, text), name
    for other in ("*/*", "text/plain", "application/openmetrics-text;q=0.1, text/plain"):
        answer = traced.get("/metrics", headers={"Accept": other})
        assert answer.type == "text/plain" and trace not in answer.body.decode()


@pytest.mark.parametrize("endpoint", ["localhost:4318", "ftp://x", "http://"])
def test_bad_endpoint(endpoint):
    checked = run(PROGRAM, "--check-config", "--otlp-endpoint", endpoint)
    assert checked.returncode == 78 and "otlp-endpoint" in checked.stderr and "a URL" in checked.stderr
