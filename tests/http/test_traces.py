"""Spans, sent to a collector, which may do what it likes; and exemplars that name their traces."""
import os
import re
import signal
import time

import pytest

import imagefiles
from certificates import localhost_certificate
from collector import Collector, attributes
from service import ONE_DEVICE, SMALL, free_port, poll

PARENT = "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def collector():
    with Collector() as server:
        yield server


@pytest.fixture(scope="module")
def traced(launch_one, collector):
    """By the collector's name, which is resolved with the files that the worker may read."""
    with launch_one("--otlp-endpoint", f"http://localhost:{collector.server_port}") as service:
        yield service


@pytest.fixture
def trace():
    return os.urandom(16).hex()


def of_trace(trace, flags="01"):
    """Returns the header of a client that has begun this trace."""
    return {"traceparent": f"00-{trace}-{PARENT}-{flags}"}


def ask(service, trace, flags="01", **headers):
    answer = service.post("/v1/filters/gaussian?size=3", imagefiles.write_png(SMALL),
                          headers={**(of_trace(trace, flags) if trace else {}), **headers})
    assert answer.status in (200, 202), answer
    return answer


def lost(service):
    return service.total("convolved_spans_lost_total")


def test_spans(traced, collector, trace):
    before = time.time_ns()
    answer = ask(traced, trace)
    assert traced.total("convolved_processes", process="trace") == 1
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
        answer = traced.post(target, body, headers=of_trace(trace))
        assert answer.status == status, answer
        span = poll(lambda: collector.of(trace).get("request"), what="a span")
        assert attributes(span)["http.response.status_code"] == status
        assert attributes(span)["error.type"] == answer.problem["type"].rpartition("/")[2]
        assert "status" not in span  # it was the client's fault


def test_asynchronous(traced, collector, trace):
    assert ask(traced, trace, Prefer="respond-async").status == 202
    spans = poll(lambda: {"encode", "request"} <= collector.of(trace).keys()
                 and collector.of(trace), what="spans")
    assert attributes(spans["request"])["http.response.status_code"] == 202
    assert spans["encode"]["parentSpanId"] == spans["request"]["spanId"]


def test_what_is_recorded(traced, collector, trace):
    """Only images, and no trace that its client does not record."""
    others = [os.urandom(16).hex() for _ in range(2)]
    ask(traced, others[0], flags="00")
    assert traced.get("/v1/filters", headers=of_trace(others[1])).status == 200
    ask(traced, trace)
    poll(lambda: "request" in collector.of(trace), what="the last span")
    assert not collector.of(others[0]) and not collector.of(others[1])


@pytest.mark.parametrize("share, least, most", [("0", 0, 0), ("0.25", 3, 60)])
def test_no_client_is_recorded_beyond_the_share(launch_one, share, least, most):
    """Whatever flag it sets: the collector and its cost are the operator's."""
    with Collector() as collector, \
            launch_one("--otlp-endpoint", collector.endpoint, "--otlp-share", share) as service:
        traces = {os.urandom(16).hex() for _ in range(100)}
        for one in traces:
            ask(service, one)
        service.stop()  # which sends what there is
        recorded = {span["traceId"] for span in collector.spans}
        assert recorded <= traces and least <= len(recorded) <= most
        assert all(collector.of(one).keys() >= {"request", "encode"} for one in recorded)


def test_a_trace_of_its_own(traced, collector):
    ask(traced, None)
    request, = poll(lambda: [span for span in collector.spans if span["name"] == "request"
                             and "parentSpanId" not in span], what="a span")
    assert re.fullmatch("[0-9a-f]{32}", request["traceId"])
    poll(lambda: "encode" in collector.of(request["traceId"]), what="its other spans")


def test_endpoint_through_a_proxy(launch, server, trace):
    """A proxy that the environment names has another port."""
    proxy = server([(200, {}, b"{}")])
    with launch("--otlp-endpoint", "http://collector.invalid:4318",
                environment={**ONE_DEVICE, "http_proxy": proxy.url}) as service:
        ask(service, trace)
        poll(lambda: proxy.requests, what="spans")
    assert proxy.requests[0].path == "http://collector.invalid:4318/v1/traces"


def test_endpoint_by_tls(launch_one, trace, tmp_path):
    """The certificate is checked, with the files that the worker may read."""
    with Collector(localhost_certificate(tmp_path)) as collector:
        with launch_one("--otlp-endpoint", collector.endpoint) as service:
            ask(service, trace)
            service.says("self-signed certificate")
        assert not collector.spans


def test_repeated(traced, collector, trace):
    """Spans that the collector refuses for now come again, once; those refused for good are lost."""
    before = lost(traced)
    collector.answers = [(503, {"Retry-After": "1"})]
    ask(traced, trace)
    poll(lambda: "request" in collector.of(trace), what="the repetition")
    names = [span["name"] for span in collector.spans if span["traceId"] == trace]
    assert len(names) == len(set(names)) and not collector.answers and lost(traced) == before
    collector.answers = [(400, {})]
    ask(traced, trace[::-1])
    poll(lambda: lost(traced) > before, what="the loss")
    assert "request" not in collector.of(trace[::-1])


def test_collector_that_hangs(traced, collector, trace):
    """Nothing waits for it; spans are lost when too many wait."""
    collector.held.clear()
    for _ in range(20):
        ask(traced, trace)
    assert traced.get("/readyz").status == 200
    collector.held.set()
    poll(lambda: "request" in collector.of(trace), what="spans after all")


def test_no_collector(launch_one, trace):
    with launch_one("--otlp-endpoint", f"http://127.0.0.1:{free_port()}/") as service:
        ask(service, trace)
        service.says("the collector does not answer")
        ask(service, trace)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_worker_ended(traced, collector, trace, number):
    first, = poll(lambda: traced.workers("trace"), what="the worker")
    first.kill(number)
    ask(traced, trace)
    poll(lambda: set(traced.workers("trace")) - {first}, what="another worker")
    another = os.urandom(16).hex()

    def sent():
        ask(traced, another)
        return collector.of(another)
    poll(sent, what="spans")


def test_answer_without_end(launch_one, server, trace):
    """A collector that is none: it sends anything."""
    endless = server([(200, {"Content-Length": None, "Connection": "close"}, bytes(64 << 20))])
    with launch_one("--otlp-endpoint", endless.url) as service:
        ask(service, trace)
        service.says("the collector does not answer")


def test_exemplars(traced, trace):
    ask(traced, trace)
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
