"""Asynchronous jobs: accepted at once, watched, fetched, cancelled, forgotten."""
import contextlib
import http.client
import json
import os
import signal
import subprocess
import threading
import time

import pytest

import imagefiles
from jobs import HEAVY, MEDIUM, PREFER, submit
from pixels import random_pixels
from service import ONE_DEVICE, SMALL, multipart, poll, tool

OPEN = ("waiting", "running")
PIXELS = random_pixels(1, 300, 200, 3, "u8")
PNG = imagefiles.write_png(PIXELS)
LONG = random_pixels(2, 3000, 3000, 3, "u8")   # nobody waits for its end
SLOW = [("bilateral", {"radius": 16})]  # takes 15 s on two idle cores, in hundreds of tiles
UNKNOWN = "/v1/jobs/0123456789abcdef"


@pytest.fixture(scope="module")
def one(launch):
    """A service with one codec worker: one job runs, the others wait. Its device has one thread, for
    jobs whose end nobody waits for."""
    with launch("--codecs", "1", environment={**ONE_DEVICE, "POCL_MAX_PTHREAD_COUNT": "1"}) as service:
        yield service


@pytest.fixture(scope="module")
def bounded(launch):
    with launch("--codecs", "1", "--result-size", "100K", "--result-count", "4") as service:
        yield service


def look(service, job):
    answer = service.get(job)
    assert answer.status == 200, answer
    return answer.json()


def ended(service, job):
    """The job's description once it has ended."""
    return poll(lambda: [d for d in [service.get(f"{job}?wait=60").json()]
                         if d["state"] not in OPEN], 300, f"the end of {job}")[0]


@contextlib.contextmanager
def busy(service):
    """A job that keeps the codec worker, and has done its first tile."""
    job = submit(service, LONG, SLOW)
    try:
        poll(lambda: look(service, job)["progress"]["tiles_done"], 60, "the first tile")
        yield job
    finally:
        service.request("DELETE", job)
        poll(service.works, 120, "room after a long job")


class Events:
    """The event stream of a job, as it comes."""

    def __init__(self, service, job, timeout=120):
        self.connection = http.client.HTTPConnection(service.host, service.port, timeout=timeout)
        self.connection.request("GET", f"{job}/events")
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.headers["Content-Type"] == "text/event-stream"

    def block(self):
        """Returns the next block of lines, without the empty one; None at the end of the stream."""
        lines = []
        while True:
            line = self.answer.readline().decode()
            if not line:
                assert not lines, "the stream ends within an event"
                return None
            if line == "\n":
                return lines
            lines.append(line.rstrip("\n"))

    def __iter__(self):
        """Yields (name, data) of each event."""
        while (lines := self.block()) is not None:
            if lines == [":"]:
                continue
            assert len(lines) == 2 and lines[0].startswith("event: "), lines
            assert lines[1].startswith("data: "), lines
            yield lines[0][7:], json.loads(lines[1][6:])

    def close(self):
        self.answer.close()
        self.connection.close()


# Accepting ----------------------------------------------------------------------------------------

def test_accepted(one):
    answer = one.post("/v1/filters/box", PNG, headers=PREFER)
    assert answer.status == 202, answer
    assert answer.headers["Preference-Applied"] == "respond-async"
    job = answer.json()
    path = f"/v1/jobs/{job['id']}"
    assert answer.headers["Location"] == path
    assert job["state"] in OPEN
    assert job["links"] == {"self": path, "result": f"{path}/result", "events": f"{path}/events"}
    done = ended(one, path)
    assert done["state"] == "done" and 0 < done["kept_seconds"] <= 600


def test_ids_are_not_in_order(one):
    ids = [submit(one).rpartition("/")[2] for _ in range(3)]
    assert len(set(ids)) == 3 and all(len(i) == 16 and int(i, 16) for i in ids)
    assert len({int(i, 16) >> 32 for i in ids}) == 3


@pytest.mark.parametrize("prefer, status", [
    ("Respond-Async", 202), ("wait=5, respond-async", 202), ("respond-async;x=1 , wait=5", 202),
    ('x="a\\", b" ,respond-async', 202), ("respond-asynchronously", 200), ("x=respond-async", 200),
    ('x="a, respond-async"', 200), ('x="\\"a, respond-async', 200), ("", 200), (",,;=\"", 200),
])
def test_prefer(one, prefer, status):
    """RFC 7240: a list of preferences, in any case, with values and parameters, perhaps quoted."""
    answer = one.post("/v1/filters/box", PNG, headers={"Prefer": prefer})
    assert answer.status == status, answer
    assert ("Preference-Applied" in answer.headers) == (status == 202)


def test_several_prefer_headers(one):
    with one.socket() as connection:
        connection.sendall(b"POST /v1/filters/box HTTP/1.1\r\nHost: x\r\nPrefer: wait=3\r\n"
                           b"Prefer: respond-async\r\nContent-Length: %d\r\n\r\n" % len(PNG) + PNG)
        assert connection.recv(100).startswith(b"HTTP/1.1 202 ")


def test_form(one):
    body, kind = multipart([("image", "in.png", PNG), ("size", None, b"5")])
    answer = one.post("/v1/filters/box", body, headers={**PREFER, "Content-Type": kind})
    assert answer.status == 202, answer
    result = one.get(answer.headers["Location"] + "/result?wait=120")
    assert result.body == one.post("/v1/filters/box?size=5", PNG).body


def test_refused_as_ever(one):
    """An error in the request is told at once, and no job is made."""
    one.post("/v1/filters/box?size=4", PNG, headers=PREFER).refused(400, "bad-parameter")
    one.post("/v1/filters/box", b"", headers=PREFER).refused(400, "empty-body")


def test_preference_where_there_is_nothing_to_do_later(one):
    answer = one.get("/v1/filters", headers=PREFER)
    assert answer.status == 200 and "Preference-Applied" not in answer.headers


def test_counts_as_a_job(launch):
    """Those that are open are bounded by max-jobs, as all are."""
    with launch("--codecs", "1", "--max-jobs", "2") as service:
        jobs = [submit(service, LONG, SLOW) for _ in range(2)]
        answer = service.post("/v1/filters/box", PNG, headers=PREFER)
        answer.refused(429, "queue-full")
        assert int(answer.headers["Retry-After"]) >= 1
        for job in jobs:
            assert service.request("DELETE", job).status == 204
        poll(service.works, 60, "room after the cancelling")


# Results ------------------------------------------------------------------------------------------

def test_result_is_the_synchronous_answer(one):
    target = "/v1/filters/gaussian?sigma=2&variant=general&verify=1&format=webp"
    direct = one.post(target, PNG)
    job = one.post(target, PNG, headers=PREFER).headers["Location"]
    result = one.get(f"{job}/result?wait=120")
    assert (result.status, result.body) == (200, direct.body)
    assert list(result.timing) == list(direct.timing)
    own = ("Date", "Server-Timing", "X-Request-Id", "Cache-Control", "ETag", "Vary")
    assert ([(k, v) for k, v in result.headers.items() if k not in own]
            == [(k, v) for k, v in direct.headers.items() if k not in own])
    assert one.get(f"{job}/result").body == direct.body, "a second time"
    head = one.request("HEAD", f"{job}/result")
    assert head.status == 200 and head.body == b""
    assert int(head.headers["Content-Length"]) == len(direct.body)


def test_failed(one):
    """The job's problem, where it is described and in place of the result."""
    direct = one.post("/v1/filters/box", b"this is no image").refused(415, "not-an-image")
    job = one.post("/v1/filters/box", b"this is no image", headers=PREFER).headers["Location"]
    description = ended(one, job)
    assert description["state"] == "failed" and description["problem"] == direct
    assert one.get(f"{job}/result").refused(415, "not-an-image") == direct


def test_not_finished(one):
    with busy(one) as job:
        answer = one.get(f"{job}/result")
        answer.refused(409, "not-finished")
        assert int(answer.headers["Retry-After"]) >= 1


# State and progress -------------------------------------------------------------------------------

def test_progress(one):
    with busy(one) as job:
        seen = []

        def three_different():
            seen.append(look(one, job))
            return len({d["progress"]["tiles_done"] for d in seen}) >= 3
        poll(three_different, 60, "tiles")
        for before, after in zip(seen, seen[1:]):
            assert before["progress"]["tiles_done"] <= after["progress"]["tiles_done"]
            assert before["progress"]["tiles"] == after["progress"]["tiles"]
        last = seen[-1]
        assert last["state"] == "running" and last["left_seconds"] > 0
        assert last["progress"]["tiles_done"] < last["progress"]["tiles"]
        assert "kept_seconds" not in last
        waiting = look(one, submit(one))
        assert waiting["state"] == "waiting" and waiting["left_seconds"] is None
        assert waiting["progress"] == {"tiles_done": 0, "tiles": None}


def test_progress_ends_with_all_tiles(one):
    for filters in HEAVY, [("box", {})]:
        job = submit(one, MEDIUM, filters)
        progress = ended(one, job)["progress"]
        assert progress["tiles_done"] == progress["tiles"] > 0


def test_time_left(one):
    """Said in the middle of a job of equal tiles; how right it is ./dev bench measures."""
    job = submit(one, MEDIUM, HEAVY)
    halfway = poll(lambda: [d for d in [look(one, job)] if d["state"] != "running"
                            or 2 * d["progress"]["tiles_done"] >= (d["progress"]["tiles"] or 99)],
                   120, "half of the tiles", interval=0.05)[0]
    assert ended(one, job)["state"] == "done"
    assert halfway["state"] == "running" and 0 < halfway["left_seconds"] < 300


# Long polling -------------------------------------------------------------------------------------

@pytest.mark.parametrize("suffix", ["", "/result"])
def test_long_poll_returns_at_the_end(one, suffix):
    job = submit(one, MEDIUM, HEAVY)
    answer = one.get(f"{job}{suffix}?wait=300", timeout=200)
    assert answer.status == 200
    assert suffix or answer.json()["state"] == "done"
    assert not suffix or answer.kind == (*MEDIUM.shape, "u8")


def test_long_poll_returns_in_time(one):
    with busy(one) as job:
        began = time.monotonic()
        answer = one.get(f"{job}?wait=1")
        assert time.monotonic() - began >= 1
        assert answer.json()["state"] == "running"
        one.get(f"{job}/result?wait=1").refused(409, "not-finished")
        assert one.get(f"{job}?wait=0").json()["state"] == "running"


def test_long_poll_and_delete(one):
    """Whoever waits for a job hears at once that it was cancelled."""
    with busy(one) as job:
        answers = []
        thread = threading.Thread(target=lambda: answers.append(one.get(f"{job}?wait=300")))
        thread.start()
        time.sleep(0.2)  # either order must do
        assert one.request("DELETE", job).status == 204
        thread.join(100)
        assert answers[0].json()["state"] == "cancelled"


def test_long_poll_with_a_body(one):
    """A body where none belongs is dropped, the answer comes."""
    with busy(one) as job:
        answer = one.request("GET", f"{job}?wait=1", b"x" * 100000)
        assert answer.json()["state"] == "running"


@pytest.mark.parametrize("wait", ["-1", "301", "x", "1.5", "", "99999999999", "1x", "+1"])
def test_bad_wait(one, wait):
    for suffix in "", "/result":
        answer = one.get(f"{submit(one)}{suffix}?wait={wait.replace('+', '%2B')}")
        problem = answer.refused(400, "bad-parameter")
        assert (problem["parameter"], problem["value"]) == ("wait", wait)
        assert "0 to 300" in problem["detail"]


def test_leaving_cancels_nothing(one):
    """A client that leaves a long poll, or the events, leaves the job alone."""
    job = submit(one, MEDIUM, HEAVY)
    events = Events(one, job)
    with one.socket() as connection:
        connection.sendall(f"GET {job}?wait=300 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        look(one, job)  # by then the poll waits
    events.close()
    assert ended(one, job)["state"] == "done"


# Cancelling ---------------------------------------------------------------------------------------

def test_cancel_frees_the_worker(one):
    with busy(one) as job:
        answer = one.request("DELETE", job)
        assert (answer.status, answer.body) == (204, b"")
        assert one.filter(SMALL, [("box", {})]).status == 200
        description = look(one, job)
        assert description["state"] == "cancelled"
        assert description["progress"]["tiles_done"] < description["progress"]["tiles"]
        one.get(f"{job}/result").refused(410, "cancelled")
        poll(lambda: "kept_seconds" in look(one, job), 60, "the end of its last tile")
        assert one.request("DELETE", job).status == 204, "forgets it"
        one.get(job).refused(404, "not-found")


def test_cancel_a_waiting_job(one):
    with busy(one) as running:
        waiting = submit(one)
        assert one.request("DELETE", waiting).status == 204
        assert look(one, waiting)["state"] == "cancelled"
        one.get(f"{waiting}/result").refused(410, "cancelled")
        assert look(one, running)["state"] == "running"


def test_forget(one):
    job = submit(one)
    assert ended(one, job)["state"] == "done"
    assert one.request("DELETE", job).status == 204
    one.request("DELETE", job).refused(404, "not-found")
    one.get(f"{job}/result").refused(404, "not-found")


# Events -------------------------------------------------------------------------------------------

def test_events(one):
    """The present state at once, then tiles as they are done, not too often, then the end."""
    job = submit(one, MEDIUM, [("bilateral", {"radius": 9})])
    began = time.monotonic()
    events = list(Events(one, job))
    took = time.monotonic() - began
    names = [name for name, _ in events]
    assert names == ["progress"] * (len(events) - 1) + ["end"] and len(events) >= 2
    assert events[-1][1]["state"] == "done"
    assert all(data["state"] in OPEN for _, data in events[:-1])
    done = [data["progress"]["tiles_done"] for _, data in events]
    assert done == sorted(done) and done[-1] == events[-1][1]["progress"]["tiles"]
    pairs = [(data["state"], data["progress"]["tiles_done"]) for _, data in events]
    assert len(set(pairs)) == len(pairs), "an event without news"
    assert len(events) <= 5 * took + 3
    assert {data["id"] for _, data in events} == {job.rpartition("/")[2]}


def test_events_come_as_they_happen(one):
    with busy(one) as job:
        stream = Events(one, job)
        events = iter(stream)
        seen = [next(events) for _ in range(3)]
        assert all(data["state"] == "running" for _, data in seen)
        assert one.request("DELETE", job).status == 204
        rest = list(events)
        assert rest[-1][0] == "end" and rest[-1][1]["state"] == "cancelled"
        stream.close()


def test_many_listeners(one):
    """Each hears all of it; one that leaves takes nothing from the others."""
    job = submit(one, MEDIUM, HEAVY)
    heard = [[], [], []]
    threads = [threading.Thread(target=lambda own=own: own.extend(Events(one, job)))
               for own in heard]
    for thread in threads:
        thread.start()
    leaver = Events(one, job)
    next(iter(leaver))
    leaver.close()
    for thread in threads:
        thread.join(200)
    for own in heard:
        assert own[0][0] == "progress" and own[-1][0] == "end", own
        assert own[-1][1]["state"] == "done"


def test_events_of_an_ended_job(one):
    job = submit(one)
    ended(one, job)
    (name, data), = Events(one, job)
    assert name == "end" and data["state"] == "done"


def test_silence_and_the_end_of_clients(one):
    """Comments while nothing happens; the sockets of listeners who left are closed."""
    def descriptors():
        return sum(len(os.listdir(f"/proc/{worker.pid}/fd")) for worker in one.workers("http"))

    with busy(one):
        waiting = submit(one)
        stream = Events(one, waiting)
        assert stream.block()[0] == "event: progress"
        assert stream.block() == [":"]
        before = descriptors()
        others = [Events(one, waiting) for _ in range(5)]
        poll(lambda: descriptors() >= before + 5, 60, "the listeners' sockets")
        for other in others:
            other.close()
        poll(lambda: descriptors() <= before, 60, "the end of the listeners' sockets")
        stream.close()


def test_head_of_events(one):
    job = submit(one)
    answer = one.request("HEAD", f"{job}/events")
    assert (answer.status, answer.type, answer.body) == (200, "text/event-stream", b"")


# Missing jobs -------------------------------------------------------------------------------------

@pytest.mark.parametrize("method, path", [
    ("GET", UNKNOWN), ("HEAD", UNKNOWN), ("DELETE", UNKNOWN), ("GET", f"{UNKNOWN}/result"),
    ("GET", f"{UNKNOWN}/events"), ("GET", f"{UNKNOWN}?wait=300"), ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/"), ("GET", "/v1/jobs//result"), ("GET", f"{UNKNOWN}/other"),
    ("GET", f"{UNKNOWN}/result/more"), ("GET", "/v1/jobs/%2E%2E"), ("GET", f"/v1/jobs/{'x' * 9000}"),
])
def test_not_found(one, method, path):
    answer = one.request(method, path)
    assert answer.status == 404, answer
    if method != "HEAD":
        answer.refused(404, "not-found")


@pytest.mark.parametrize("method, suffix, allowed", [
    ("POST", "", "OPTIONS, GET, HEAD, DELETE"), ("PUT", "", "OPTIONS, GET, HEAD, DELETE"),
    ("DELETE", "/result", "OPTIONS, GET, HEAD"), ("POST", "/events", "OPTIONS, GET, HEAD"),
])
def test_wrong_method(one, method, suffix, allowed):
    answer = one.request(method, UNKNOWN + suffix)
    answer.refused(405, "method-not-allowed")
    assert answer.headers["Allow"] == allowed


def test_index_says_it(one):
    text = one.get("/").body.decode()
    assert "respond-async" in text and "/v1/jobs/" in text


# The bounds of the store --------------------------------------------------------------------------

def kept(service, jobs):
    """Which of the jobs are still there."""
    return [service.get(f"{job}/result").status == 200 for job in jobs]


def test_bounded_by_size(bounded):
    """The oldest results make room; a fetched one has no other fate."""
    pixels = random_pixels(4, 200, 200, 1, "u8")
    jobs = []
    for _ in range(3):
        jobs.append(submit(bounded, pixels))
        assert bounded.get(f"{jobs[-1]}/result?wait=120").status == 200
    assert kept(bounded, jobs) == [False, True, True]
    bounded.get(jobs[0]).refused(404, "not-found")


def test_bounded_by_number(bounded):
    jobs = [submit(bounded) for _ in range(6)]
    for job in jobs:  # they end in this order
        bounded.get(f"{job}?wait=120")
    assert kept(bounded, jobs) == [False, False, True, True, True, True]


def test_results_of_others_stay(bounded):
    """Whoever keeps most makes room, however much it sends: by number, and by size."""
    other = bounded.neighbour()
    theirs = [submit(other), submit(other)]
    mine = [submit(bounded) for _ in range(6)]
    for job in theirs + mine:
        bounded.get(f"{job}?wait=120")
    assert kept(other, theirs) == [True, True]
    assert kept(bounded, mine) == [False] * 4 + [True, True]
    # Two hold as many now, so the oldest goes; then who holds most.
    theirs.append(submit(other))
    other.get(f"{theirs[-1]}?wait=120")
    assert kept(bounded, mine[4:]) == [True, True]
    assert kept(other, theirs) == [False, True, True]

    pixels = random_pixels(4, 200, 200, 1, "u8")
    mine = [submit(bounded, pixels) for _ in range(3)]
    for job in mine:
        bounded.get(f"{job}?wait=120")
    assert kept(bounded, mine) == [False, True, True]
    assert kept(other, theirs[1:]) == [True, True]
    for job in theirs[1:]:
        assert other.request("DELETE", job).status == 204


def test_result_that_leaves_no_room(bounded):
    """One that fits only without the others' is not kept."""
    other = bounded.neighbour()
    theirs = submit(other, random_pixels(4, 200, 200, 1, "u8"))
    other.get(f"{theirs}?wait=120")
    mine = submit(bounded, random_pixels(4, 300, 300, 1, "u8"))
    assert ended(bounded, mine)["state"] == "failed"
    problem = bounded.get(f"{mine}/result").refused(507, "result-too-large")
    assert "90000 bytes; beside other clients' at most 62" in problem["detail"]
    assert kept(other, [theirs]) == [True]
    assert other.request("DELETE", theirs).status == 204


def test_larger_than_the_store(bounded):
    job = submit(bounded, random_pixels(4, 400, 400, 1, "u8"))
    assert ended(bounded, job)["state"] == "failed"
    problem = bounded.get(f"{job}/result").refused(507, "result-too-large")
    assert "160000" in problem["detail"] and str(100 << 10) in problem["detail"]


def test_bounded_by_time(launch):
    with launch("--codecs", "1", "--result-time", "1") as service:
        job = submit(service)
        began = time.monotonic()
        poll(lambda: service.get(job).status == 404, 60, "the end of the time")
        assert time.monotonic() - began >= 0.9
        assert service.total("convolved_stored_jobs") == 0


def test_results_leave_memory_for_requests(launch):
    """Kept results alone never fill max-memory: the next request finds room."""
    pixels = random_pixels(5, 1024, 1024, 2, "u8")
    with launch("--codecs", "1", "--max-memory", "12M") as service:
        for _ in range(8):
            job = submit(service, pixels)
            assert service.get(f"{job}/result?wait=120").status == 200


def test_metrics(bounded):
    def stored():
        metrics = bounded.metrics()
        states = {labels["state"]: value
                  for labels, value in metrics.samples("convolved_stored_jobs")}
        return states, metrics.total("convolved_stored_bytes")

    for _ in range(5):
        ended(bounded, submit(bounded, PIXELS[:50, :50]))
    assert stored() == ({"open": 0, "ended": 4}, 4 * 50 * 50 * 3)
    job = submit(bounded, LONG, SLOW)
    assert stored()[0]["open"] == 1
    assert bounded.request("DELETE", job).status == 204
    poll(lambda: stored() == ({"open": 0, "ended": 4}, 3 * 50 * 50 * 3), 60, "the end of the job")


# The rest -----------------------------------------------------------------------------------------

def test_drain_waits(launch):
    """SIGTERM: the job is finished, and its listeners hear of it."""
    with launch("--codecs", "1") as service:
        job = submit(service, MEDIUM, HEAVY)
        events = Events(service, job)
        seen = iter(events)
        next(seen)
        service.process.send_signal(signal.SIGTERM)
        name, data = list(seen)[-1]
        assert (name, data["state"]) == ("end", "done")
        assert service.process.wait(60) == 0, service.tail()


def test_drain_ends(launch):
    """Jobs not finished in time are broken off, listeners and all."""
    with launch("--codecs", "1", "--drain-timeout", "1") as service:
        job = submit(service, LONG, HEAVY, variant="reference")
        events = Events(service, job)
        with service.socket() as connection:
            connection.sendall(f"GET {job}?wait=300 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            look(service, job)
            assert service.stop(60) == 0, service.tail()
            assert connection.recv(100).startswith(b"HTTP/1.1 503 ")
        with contextlib.suppress(http.client.HTTPException, ConnectionError):
            assert all(name == "progress" for name, _ in events)


def test_curl(one, tmp_path):
    """As a user of curl goes through it."""
    (tmp_path / "in.png").write_bytes(PNG)
    base = f"http://{one.host}:{one.port}"

    def curl(*arguments):
        return subprocess.run([tool("curl"), "-sS", *arguments], cwd=tmp_path, timeout=120,
                              check=True, capture_output=True).stdout

    head = curl("-H", "Prefer: respond-async", "--data-binary", "@in.png", "-D", "-", "-o",
                "job.json", f"{base}/v1/filters/gaussian?sigma=2&variant=general").decode()
    job = head.split("Location: ")[1].split("\r\n")[0]
    assert json.loads((tmp_path / "job.json").read_text())["links"]["self"] == job
    assert curl("-N", f"{base}{job}/events").decode().split("event: ")[-1].startswith("end\n")
    curl("-f", "-o", "out.png", f"{base}{job}/result")
    assert (tmp_path / "out.png").read_bytes() == one.post(
        "/v1/filters/gaussian?sigma=2&variant=general", PNG).body
    assert curl("-f", "-X", "DELETE", f"{base}{job}") == b""


def test_http_1_0(one):
    """A client that knows no chunks is told the end by the end of the connection."""
    job = submit(one)
    ended(one, job)
    with one.socket() as connection:
        connection.sendall(f"GET {job}/events HTTP/1.0\r\n\r\n".encode())
        text = b""
        while piece := connection.recv(4096):
            text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    assert b"chunked" not in head and body.startswith(b"event: end\n") and body.endswith(b"\n\n")
