"""The log's way out: the service goes on, however slowly its log is read."""
import contextlib
import fcntl
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
from jobs import PREFER
from service import ONE_DEVICE, SMALL, Service, multipart, poll, sanitized

LONG = "/" + "x" * 900  # nearly all that fits into a line


@pytest.fixture
def logged(tmp_path, cache):
    """One device and one codec worker, and every line; not yet started."""
    options = "--log-level", "debug", "--codecs", "1"
    service = Service(tmp_path, cache, *options, environment=ONE_DEVICE)
    with contextlib.ExitStack() as stack:
        stack.push(service)
        yield service


def start_with(service, *options):
    service.arguments += options
    return service.start()


def start_logging_to(service, descriptor):
    service.process = subprocess.Popen(service.arguments, stdin=subprocess.DEVNULL,
                                       stderr=descriptor, env=service.environment)
    service.wait_ready()


def lost(service, process="front"):
    return service.total("convolved_log_lines_lost_total", process=process)


def ask(service, count):
    """Requests that leave a line of a kilobyte each."""
    for _ in range(count):
        assert service.get(LONG).status == 404


def logs_to_small_pipe(service):
    """Starts it, and returns the end of the pipe for reading."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    start_logging_to(service, writing)
    os.close(writing)
    return reading


def test_faults_are_warnings(logged):
    """A 5xx is a fault of the service and not to be missed, at whatever level images are logged."""
    start_with(logged, "--log-level", "warning")
    assert logged.filter(SMALL, [("box", {})]).status == 200
    assert logged.filter(SMALL, [("box", {"size": 2})]).status == 400

    def late():
        for kind in ("codec", "device"):
            for worker in poll(lambda k=kind: logged.workers(k), 60, kind):  # /proc may leave some out
                worker.kill(signal.SIGSTOP)
        answer = logged.filter(SMALL, [("box", {})], deadline_ms=50)
        return answer.status != 200 and answer
    late = poll(late, what="an answer before others take their places")
    late.refused(504, "deadline-missed")
    line, = poll(lambda: re.findall(".*request.*\n", logged.log.read_text()))
    assert line.startswith(f"convolved: warning: request {late.headers['X-Request-Id']}")
    assert "deadline-missed" in line


@pytest.fixture
def told(logged):
    """The log as it is by default, each line an object."""
    return start_with(logged, "--log-level", "info", "--log-format", "json")


def lines_of(service, **fields):
    """Returns the lines with these fields, once there is one: answers do not wait for the log."""
    def found():
        whole = service.log.read_text().rpartition("\n")[0]
        lines = map(json.loads, whole.splitlines())
        return [line for line in lines if fields.items() <= line.items()]
    return poll(found, what=f"a line with {fields}")


def test_line_of_an_image(told):
    """The line says whose image it was, its filters, its kind and size, whatever became of it."""
    png = imagefiles.write_png(np.zeros((20, 30, 3), np.uint16))
    done = told.neighbour().post("/v1/chain?filters=box,sobel&luma=gaussian&format=tiff", png)
    line, = lines_of(told, request_id=done.headers["X-Request-Id"], level="info", status=200,
                     client="127.0.0.2", route="/v1/chain", filters="box,sobel,luma:gaussian",
                     format="png", image="30x20x3:u16", bytes_in=len(png), bytes_out=len(done.body))
    for word in ("127.0.0.2", "box,sobel,luma:gaussian", "png 30x20x3:u16",
                 f"{len(png)} bytes in", f"{len(done.body)} out"):
        assert word in line["message"], line
    failed = told.post("/v1/filters/box", png[:-30])
    line, = lines_of(told, request_id=failed.headers["X-Request-Id"], filters="box", status=422,
                     error="undecodable", client="127.0.0.1")
    assert "bytes_out" not in line
    late = told.post("/v1/filters/box", png, headers=PREFER)
    told.get(late.headers["Location"] + "?wait=30")
    lines_of(told, request_id=late.headers["X-Request-Id"], route="/v1/filters/{name}",
             image="30x20x3:u16")


def test_refusals(told):
    """One line a client and reason; others within a minute are counted and told together."""
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
        assert (line["level"], line["status"], line["route"]) == ("info", 400, "/v1/filters/{name}")
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
    for i in range(300):
        told.neighbour(f"127.0.{1 + i // 250}.{1 + i % 250}").get("/nowhere")
    poll(lambda: len(lines_of(told, error="not-found")) == 256, what="256 lines")
    assert told.stop() == 0
    assert "44 more of other clients were refused" in told.log.read_text()


def test_unread_pipe(logged):
    """Nobody reads for a while: no request waits, and how many lines were lost is said later."""
    text = []

    def read():
        with open(reading, encoding="utf-8") as lines:
            text.extend(lines)
    reading, reader = logs_to_small_pipe(logged), threading.Thread(target=read)
    logged.process.send_signal(signal.SIGHUP)  # sets the log up once more
    poll(lambda: ask(logged, 500) or lost(logged), what="lost lines")
    ask(logged, 500)
    gap = lost(logged)
    assert gap >= 500
    reader.start()
    said = poll(lambda: [int(match[1]) for line in list(text) if (match := re.match(
        r"convolved: warning: (\d+) lines of the log were lost", line))], 60, "the gap")
    assert said[0] >= gap
    before = lost(logged)
    ask(logged, 20)
    assert lost(logged) == before
    assert logged.stop() == 0
    reader.join()
    # Workers say theirs until the end.
    own = [line for line in text if line.startswith("convolved: ")]
    assert own[-1] == "convolved: notice: stopped\n"


def test_stopped_reader(logged):
    """A reader that hangs is waited for a second at the end, and no longer."""
    reading = logs_to_small_pipe(logged)
    ask(logged, 200)
    assert logged.stop() == 0
    os.close(reading)


@pytest.mark.parametrize("way", ["reader gone", "full disk"])
def test_nowhere_to_write(logged, way):
    """The service neither ends nor spins."""
    if way == "reader gone":
        os.close(logs_to_small_pipe(logged))
    else:
        with open("/dev/full", "w", encoding="ascii") as full:
            start_logging_to(logged, full)
    ask(logged, 20)
    poll(lambda: lost(logged) >= 20, what="20 lines lost")  # the log is written after answers
    before = logged.total("convolved_front_cpu_seconds_total")
    time.sleep(1)
    assert logged.total("convolved_front_cpu_seconds_total") - before < 0.5


def test_workers_lines(logged):
    """A worker's line has its level, its program and its process, though the front writes it."""
    start_with(logged, "--log-format", "json")
    codec, = logged.workers("codec")
    assert logged.identity(imagefiles.write_png(SMALL)[:-20]).status == 422
    lines_of(logged, program="convolved-codec", pid=codec.pid, level="debug", worker="codec-0")


@pytest.mark.skipif(sanitized(), reason="a sanitizer's report has no level, and must be seen")
@pytest.mark.parametrize("level, shown", [("debug", True), ("info", False)])
def test_lines_of_libraries(logged, level, shown):
    """Libraries' messages about clients' files are only for those who look for them."""
    start_with(logged, "--log-level", level)
    codec, = logged.workers("codec")
    with open(f"/proc/{codec.pid}/fd/2", "wb", buffering=0) as line:
        line.write(b"lib/decode.cc:99: FAILURE: a library's\n<4>the worker's\n")
    logged.says("convolved-codec: warning: the worker's")
    assert ("convolved-codec: debug: lib/decode.cc:99: FAILURE" in logged.log.read_text()) == shown
    assert "a library's" not in re.sub(".*: debug: .*", "", logged.log.read_text())


def test_worker_floods(logged):
    """A worker's output is bounded, is told from the front's lines, and holds nobody up."""
    logged.start()
    codec, = logged.workers("codec")
    begun = time.monotonic()
    with open(f"/proc/{codec.pid}/fd/2", "wb", buffering=0,
              opener=lambda path, flags: os.open(path, os.O_WRONLY | os.O_NONBLOCK)) as flood:
        while time.monotonic() - begun < 2:
            while flood.write(b"<3>convolved: error: \x1b[2J\xc2\x9b2J\x9b\xc3\xa9 a forged line\n"
                              b"<4,17>more\n"):
                pass
            assert logged.get("/livez", timeout=60).status == 200
    poll(lambda: lost(logged, "codec") >= 17, 60, "the count of lost lines")
    lines = [line for line in logged.log.read_text().splitlines() if "forged" in line]
    assert 10 < len(lines) < 1000 * (time.monotonic() - begun)
    shown = "convolved-codec: error: convolved: error: ?[2J??2J?é a"
    assert all(line.startswith(shown) for line in lines)
    logged.says("codec: warning: 17 lines of codec-0 were lost")
    assert logged.works()
