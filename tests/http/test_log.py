"""The log's way out: the service goes on, however slowly its log is read."""
import fcntl
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import imagefiles
from service import ONE_DEVICE, PATIENCE, SMALL, Service, multipart, poll, sanitized

LONG = "/" + "x" * 900  # nearly all that fits into a line


class Logged(Service):
    """A service whose standard error is this descriptor."""

    def start_logging_to(self, descriptor):
        self.process = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stderr=descriptor,
                                        env=self.environment)
        return self

    def __enter__(self):
        return self

    def lost(self, process="front"):
        return self.total("convolved_log_lines_lost_total", process=process)


@pytest.fixture
def logged(tmp_path, cache):
    """One device and one codec worker, and every line."""
    with Logged(tmp_path, cache, "--log-level", "debug", "--codecs", "1",
                environment=ONE_DEVICE) as service:
        yield service


def ask(service, count):
    """Requests that leave a line of a kilobyte each."""
    connection = http.client.HTTPConnection(service.host, service.port, timeout=60)
    for _ in range(count):
        connection.request("GET", LONG)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 404
    connection.close()


def small_pipe():
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    return reading, writing


def test_faults_are_warnings(logged):
    """A 5xx is a fault of the service and not to be missed, at whatever level images are logged."""
    logged.arguments += ["--log-level", "warning"]
    with logged.log.open("wb") as log:
        logged.start_logging_to(log)
    logged.wait_ready()
    assert logged.filter(SMALL, [("box", {})]).status == 200
    assert logged.filter(SMALL, [("box", {"size": 2})]).status == 400
    for kind in ("codec", "device"):
        for worker in poll(lambda k=kind: logged.workers(k), 60, kind):  # /proc may leave some out
            os.kill(worker.pid, signal.SIGSTOP)
    late = logged.filter(SMALL, [("box", {})], deadline_ms=50)  # before others take their places
    late.refused(504, "deadline-missed")
    line, = poll(lambda: re.findall(".*request.*\n", logged.log.read_text()))
    assert line.startswith(f"convolved: warning: request {late.headers['X-Request-Id']}")
    assert "deadline-missed" in line
    assert logged.stop() == 0


@pytest.fixture
def told(tmp_path, cache):
    """The log as it is by default, each line an object."""
    with Logged(tmp_path, cache, "--log-format", "json", "--codecs", "1",
                environment=ONE_DEVICE) as service:
        with service.log.open("wb") as log:
            service.start_logging_to(log)
        service.wait_ready()
        yield service


def lines_of(service, **fields):
    """Returns the lines that have these fields, once there is one: answers do not wait for the log."""
    def found():
        whole = service.log.read_text().rpartition("\n")[0]
        lines = [json.loads(line) for line in whole.splitlines()]
        return [line for line in lines if fields.items() <= line.items()]
    return poll(found, what=f"a line with {fields}")


def test_line_of_an_image(told):
    """The line says whose image it was, its filters, its kind and size, whatever became of it."""
    png = imagefiles.write_png(np.zeros((20, 30, 3), np.uint16))
    done = told.neighbour().post("/v1/chain?filters=box,sobel&luma=gaussian&format=tiff", png)
    line, = lines_of(told, request_id=done.headers["X-Request-Id"])
    wanted = {"level": "info", "client": "127.0.0.2", "route": "/v1/chain",
              "filters": "box,sobel,luma:gaussian", "format": "png", "image": "30x20x3:u16",
              "bytes_in": len(png), "bytes_out": len(done.body), "status": 200}
    assert wanted.items() <= line.items()
    for word in ("127.0.0.2", wanted["filters"], "png 30x20x3:u16", f"{len(png)} bytes in",
                 f"{len(done.body)} out"):
        assert word in line["message"], line
    failed = told.post("/v1/filters/box", png[:-30])
    line, = lines_of(told, request_id=failed.headers["X-Request-Id"])
    assert {"filters": "box", "error": "undecodable", "status": 422,
            "client": "127.0.0.1"}.items() <= line.items()
    assert "bytes_out" not in line
    late = told.post("/v1/filters/box", png, headers={"Prefer": "respond-async"})
    told.get(late.headers["Location"] + "?wait=30")
    line, = lines_of(told, request_id=late.headers["X-Request-Id"])
    assert {"route": "/v1/filters/{name}", "image": "30x20x3:u16"}.items() <= line.items()


def test_refusals(told):
    """There is one line a client and reason; others within a minute are counted and told together."""
    for _ in range(30):
        assert told.post("/v1/filters/box?size=2", b"x").status == 400
        assert told.neighbour().post("/v1/filters/box?size=2", b"x").status == 400
    assert told.get("/nowhere").status == 404
    form, kind = multipart([("image", "a", b"x"),
                            ("chain", None, b'[{"filter": "box", "no\\nparameter": null}]')])
    assert told.neighbour("127.0.0.3").post("/v1/chain", form,
                                            headers={"Content-Type": kind}).status == 400
    for client in ("127.0.0.1", "127.0.0.2"):
        line, = lines_of(told, client=client, error="bad-parameter")
        assert {"level": "info", "status": 400, "route": "/v1/filters/{name}"}.items() <= line.items()
        assert "size: expected an odd integer" in line["message"] and client in line["message"]
    line, = lines_of(told, error="not-found")
    assert "GET /nowhere" in line["message"]
    line, = lines_of(told, client="127.0.0.3")
    assert "no?parameter" in line["message"]
    assert told.neighbour().get("/" + 5000 * "x").status == 404
    line, = lines_of(told, error="not-found", client="127.0.0.2")
    assert "refused to 127.0.0.2: not-found" in line["message"], "a long path hides no reason"
    assert told.stop() == 0
    for client in ("127.0.0.1", "127.0.0.2"):
        line = lines_of(told, client=client, error="bad-parameter")[-1]
        assert line["message"] == f"29 more of {client} were refused: bad-parameter"


def test_many_who_are_refused(told):
    """However many they are, they do not fill the log."""
    for i in range(300):
        told.neighbour(f"127.0.{1 + i // 250}.{1 + i % 250}").get("/nowhere")
    poll(lambda: len(lines_of(told, error="not-found")) == 256, what="256 lines")
    assert told.stop() == 0
    assert "44 more of other clients were refused" in told.log.read_text()


def test_unread_pipe(logged):
    """Nobody reads for a while: no request waits, and how many lines were lost is said later."""
    reading, writing = small_pipe()
    logged.start_logging_to(writing)
    os.close(writing)
    text = []

    def read():
        with open(reading, encoding="utf-8") as lines:
            text.extend(lines)
    reader = threading.Thread(target=read)
    ask_until = time.monotonic() + PATIENCE
    logged.wait_ready()
    logged.process.send_signal(signal.SIGHUP)  # sets the log up once more
    while not logged.lost():
        assert time.monotonic() < ask_until
        ask(logged, 500)
    ask(logged, 500)
    lost = logged.lost()
    assert lost >= 500
    reader.start()
    said = poll(lambda: [int(match[1]) for line in list(text) if (match := re.match(
        r"convolved: warning: (\d+) lines of the log were lost", line))], 60, "the gap")
    assert said[0] >= lost
    before = logged.lost()
    ask(logged, 20)
    assert logged.lost() == before
    assert logged.stop() == 0
    reader.join()
    own = [line for line in text if line.startswith("convolved: ")]  # workers say theirs until the end
    assert own[-1] == "convolved: notice: stopped\n"


def test_stopped_reader(logged):
    """A reader that hangs is waited for a second at the end, and no longer."""
    reading, writing = small_pipe()
    reader = subprocess.Popen(["cat"], stdin=reading, stdout=subprocess.DEVNULL)
    try:
        os.close(reading)
        reader.send_signal(signal.SIGSTOP)
        logged.start_logging_to(writing)
        os.close(writing)
        logged.wait_ready()
        ask(logged, 200)
        assert logged.stop() == 0
    finally:
        reader.kill()
        reader.wait()


def test_reader_gone(logged):
    """Broken pipe: the service neither ends nor spins."""
    reading, writing = small_pipe()
    logged.start_logging_to(writing)
    os.close(writing)
    os.close(reading)
    logged.wait_ready()
    ask(logged, 20)
    poll(lambda: logged.lost() >= 20, what="20 lines lost")  # the log is written after answers
    before = logged.total("convolved_front_cpu_seconds_total")
    time.sleep(1)
    assert logged.total("convolved_front_cpu_seconds_total") - before < 0.5
    assert logged.stop() == 0


def test_full_disk(logged):
    with open("/dev/full", "w", encoding="ascii") as full:
        logged.start_logging_to(full)
    logged.wait_ready()
    ask(logged, 20)
    poll(lambda: logged.lost() >= 20, what="20 lines lost")  # the log is written after answers
    assert logged.stop() == 0


def test_workers_lines(logged):
    """A worker's line has its level, its program and its process, though the front writes it."""
    logged.arguments += ["--log-format", "json"]
    with logged.log.open("wb") as log:
        logged.start_logging_to(log)
    logged.wait_ready()
    codec, = logged.workers("codec")
    assert logged.identity(imagefiles.write_png(SMALL)[:-20]).status == 422

    def lines():
        entries = [json.loads(line) for line in logged.log.read_text().splitlines()]
        return [entry for entry in entries if entry["program"] == "convolved-codec"]
    line = poll(lines, 60, "a line of the codec worker")[-1]
    assert line["pid"] == codec.pid
    assert line["level"] == "debug"
    assert line["worker"] == "codec-0"
    assert logged.stop() == 0


@pytest.mark.skipif(sanitized(), reason="a sanitizer's report has no level, and must be seen")
@pytest.mark.parametrize("level, shown", [("debug", True), ("info", False)])
def test_lines_of_libraries(logged, level, shown):
    """Messages of a worker's libraries about clients' files are only for those who look for them."""
    logged.arguments += ["--log-level", level]
    with logged.log.open("wb") as log:
        logged.start_logging_to(log)
    logged.wait_ready()
    codec, = logged.workers("codec")
    with open(f"/proc/{codec.pid}/fd/2", "wb", buffering=0) as line:
        line.write(b"lib/decode.cc:99: FAILURE: a library's\n<4>the worker's\n")
    logged.says("convolved-codec: warning: the worker's")
    assert ("convolved-codec: debug: lib/decode.cc:99: FAILURE" in logged.log.read_text()) == shown
    assert "a library's" not in re.sub(".*: debug: .*", "", logged.log.read_text())
    assert logged.stop() == 0


def test_worker_floods(logged):
    """A worker's output is bounded, is told from the front's lines, and holds nobody up."""
    with logged.log.open("wb") as log:
        logged.start_logging_to(log)
    logged.wait_ready()
    codec, = logged.workers("codec")
    begun = time.monotonic()
    with open(f"/proc/{codec.pid}/fd/2", "wb", buffering=0,
              opener=lambda path, flags: os.open(path, os.O_WRONLY | os.O_NONBLOCK)) as flood:
        while time.monotonic() - begun < 2:
            while flood.write(b"<3>convolved: error: \x1b[2J\xc2\x9b2J\x9b\xc3\xa9 a forged line\n<4,17>more\n"):
                pass
            assert logged.get("/livez", timeout=60).status == 200
    poll(lambda: logged.lost("codec") >= 17, 60, "the count of lost lines")
    lines = [line for line in logged.log.read_text().splitlines() if "forged" in line]
    assert 10 < len(lines) < 1000 * (time.monotonic() - begun)
    assert all(line.startswith("convolved-codec: error: convolved: error: ?[2J??2J?é a") for line in lines)
    logged.says("codec: warning: 17 lines of codec-0 were lost")
    assert logged.works()
    assert logged.stop() == 0
