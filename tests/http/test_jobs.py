"""Asynchronous jobs: accepted at once, watched, fetched, cancelled, forgotten."""
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import re
import signal
import time

import pytest

import imagefiles
from fixtures import service_with
from jobs import HEAVY, LONG, MEDIUM, PREFER, submit
from pixels import random_pixels
from service import ONE_DEVICE, SMALL, poll, read_answer, request_head

OPEN = ("waiting", "running")
PIXELS = random_pixels(1, 300, 200, 3, "u8")
PNG = imagefiles.write_png(PIXELS)


# One codec worker, so one job runs, the others wait, however long that is on a busy machine; a device with one thread.
one = service_with("--codecs", "1", environment={**ONE_DEVICE, "POCL_MAX_PTHREAD_COUNT": "1"})
bounded = service_with("--codecs", "1", "--result-size", "100K", "--result-count", "4")


def look(service, job):
    answer = service.get(job)
    assert answer.status == 200, answer
    return answer.json()


def ended(service, job):
    description = service.get(f"{job}?wait=300").json()
    assert description["state"] not in OPEN
    return description


@contextlib.contextmanager
def busy(service):
    """A job that keeps the codec worker, in hundreds of tiles, and has done its first one."""
    job = submit(service, LONG, HEAVY)
    try:
        poll(lambda: look(service, job)["progress"]["tiles_done"], 60, "the first tile")
        yield job
    finally:
        service.request("DELETE", job)
        poll(service.works, 120, "room after a long job")


class Events:
    """The event stream of a job, as it comes: (name, data) of each event."""

    def __init__(self, service, job):
        self.connection = service.connect(120)
        self.connection.request("GET", f"{job}/events")
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.headers["Content-Type"] == "text/event-stream"

    def __iter__(self):
        return self

    def block(self):
        """Returns the lines of the next event or comment; nothing at the end."""
        return b"".join(itertools.takewhile(b"\n".__ne__, iter(self.answer.readline, b""))).decode()

    def __next__(self):
        while (text := self.block()) == ":\n":
            pass
        if not text:
            raise StopIteration
        name, data = re.fullmatch(r"event: (\w+)\ndata: (.*)\n", text).groups()
        data = json.loads(data)
        assert (name == "end") == (data["state"] not in OPEN)
        return name, data

    def close(self):
        self.answer.close()
        self.connection.close()


def test_accepted(one):
    """Described at once; forgotten when that is asked for."""
    answer = one.post("/v1/filters/box", PNG, headers=PREFER)
    assert answer.status == 202, answer
    assert answer.headers["Preference-Applied"] == "respond-async"
    job = answer.json()
    path = f"/v1/jobs/{job['id']}"
    assert answer.headers["Location"] == path
    assert job["state"] in OPEN
    assert job["links"] == {"self": path, "result": f"{path}/result", "events": f"{path}/events"}
    done = ended(one, path)
    assert done["state"] == "done" and 0 < done["kept_seconds"] <= 600 and done["lost"] == []
    assert one.request("DELETE", path).status == 204
    one.request("DELETE", path).refused(404, "not-found")
    one.get(f"{path}/result").refused(404, "not-found")


def test_ids_are_not_in_order(one):
    ids = [submit(one).rpartition("/")[2] for _ in range(3)]
    assert len(set(ids)) == 3 and all(len(i) == 16 and int(i, 16) for i in ids)
    assert len({int(i, 16) >> 32 for i in ids}) == 3


@pytest.mark.parametrize("headers, status", [
    (["Respond-Async"], 202), (["wait=5 ,respond-async;x=1"], 202),
    (["wait=3", "respond-async"], 202), (["respond-asynchronously"], 200),
    (["x=respond-async"], 200), (['x="a, respond-async"'], 200), ([",,;=\""], 200)])
def test_prefer(one, headers, status):
    """RFC 7240: a list of preferences, in any case, with values and parameters, perhaps quoted."""
    answer = one.send(request_head("/v1/filters/box", f"Content-Length: {len(PNG)}",
                                   *(f"Prefer: {value}" for value in headers)) + PNG)
    assert answer.status == status, answer
    assert ("Preference-Applied" in answer.headers) == (status == 202)


def test_nothing_to_do_later(one):
    """An error in the request is told at once; nor is there a job of what takes no time."""
    one.post("/v1/filters/box?size=4", PNG, headers=PREFER).refused(400, "bad-parameter")
    one.post("/v1/filters/box", b"", headers=PREFER).refused(400, "empty-body")
    answer = one.get("/v1/filters", headers=PREFER)
    assert answer.status == 200 and "Preference-Applied" not in answer.headers


def test_result_is_the_synchronous_answer(one):
    target = "/v1/filters/gaussian?sigma=2&variant=general&verify=1&format=webp"
    direct = one.post(target, PNG)
    job = one.post(target, PNG, headers=PREFER).headers["Location"]
    result = one.get(f"{job}/result?wait=120")
    assert (result.status, result.body) == (200, direct.body)
    assert list(result.timing) == list(direct.timing)
    assert look(one, job)["lost"] == direct.lost == ["subsampled", "lossy"]
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
    assert "lost" not in description
    assert one.get(f"{job}/result").refused(415, "not-an-image") == direct


def test_progress(one):
    with busy(one) as job:
        before = look(one, job)["progress"]
        poll(lambda: look(one, job)["progress"]["tiles_done"] > before["tiles_done"], 60, "a tile")
        last = look(one, job)
        assert last["progress"]["tiles_done"] > before["tiles_done"]
        assert last["progress"]["tiles"] == before["tiles"]
        assert last["state"] == "running" and last["left_seconds"] > 0
        assert last["progress"]["tiles_done"] < last["progress"]["tiles"]
        assert "kept_seconds" not in last
        waiting = look(one, submit(one))
        assert waiting["state"] == "waiting" and waiting["left_seconds"] is None
        assert waiting["progress"] == {"tiles_done": 0, "tiles": None}


def test_all_who_wait(one):
    """Long polls and listeners hear of the end; those that leave take nothing from others. Events:
    the present state at once, then tiles as they are done, not too often, then the end."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        with busy(one):  # the job waits for its listeners
            job, began = submit(one, MEDIUM, HEAVY), time.monotonic()
            present = [Events(one, job) for _ in range(4)]
            first = [next(events) for events in present]
        leaver = present.pop()
        listeners = [pool.submit(list, events) for events in present]
        result = pool.submit(one.get, f"{job}/result?wait=300")
        with one.socket() as connection:
            connection.sendall(request_head(f"{job}?wait=300", method="GET"))
            look(one, job)  # by then the poll waits
        leaver.close()
        assert ended(one, job)["state"] == "done"
        assert result.result(200).kind == (*MEDIUM.shape, "u8")
        heard = [[event, *listener.result(200)] for event, listener in zip(first, listeners)]
    took = time.monotonic() - began
    for events in heard:
        assert [name for name, _ in events] == ["progress"] * (len(events) - 1) + ["end"], events
        assert events[-1][1]["state"] == "done"
        done = [data["progress"]["tiles_done"] for _, data in events]
        assert done == sorted(done) and done[-1] == events[-1][1]["progress"]["tiles"] > 0
        pairs = [(data["state"], data["progress"]["tiles_done"]) for _, data in events]
        assert len(set(pairs)) == len(pairs) >= 2, "an event without news"
        assert len(events) <= 5 * took + 3
        assert {data["id"] for _, data in events} == {job.rpartition("/")[2]}


def test_long_poll_returns_in_time(one):
    """Also one with a body, which is dropped, as none belongs there."""
    with busy(one) as job:
        began = time.monotonic()
        answer = one.request("GET", f"{job}?wait=1", b"x" * 100000)
        assert time.monotonic() - began >= 1
        assert answer.json()["state"] == "running"
        for path in f"{job}/result?wait=1", f"{submit(one)}/result":  # none is predicted for the second
            answer = one.get(path)
            answer.refused(409, "not-finished")
            assert int(answer.headers["Retry-After"]) >= 1
        assert one.get(f"{job}?wait=0").json()["state"] == "running"


@pytest.mark.parametrize("wait", ["-1", "301", "x", "1.5", ""])
def test_bad_wait(one, wait):
    for suffix in "", "/result":
        answer = one.get(f"{submit(one)}{suffix}?wait={wait}")
        answer.refused(400, "bad-parameter", "0 to 300", parameter="wait", value=wait)


def test_cancel_frees_the_worker(one):
    """Whoever waits or listens hears of it at once; a job that waits can be cancelled, too."""
    with busy(one) as job, concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = submit(one)
        assert one.request("DELETE", waiting).status == 204
        assert look(one, waiting)["state"] == "cancelled"
        assert look(one, job)["state"] == "running"
        heard, events = pool.submit(one.get, f"{job}?wait=300"), Events(one, job)
        assert all(next(events)[1]["state"] == "running" for _ in range(3)), "as they happen"
        answer = one.request("DELETE", job)
        assert (answer.status, answer.body) == (204, b"")
        assert heard.result(100).json()["state"] == "cancelled"
        name, data = list(events)[-1]
        assert (name, data["state"]) == ("end", "cancelled")
        assert one.filter(SMALL, [("box", {})]).status == 200
        description = look(one, job)
        assert description["state"] == "cancelled"
        assert description["progress"]["tiles_done"] < description["progress"]["tiles"]
        for each in (job, waiting):
            one.get(f"{each}/result").refused(410, "cancelled")
        poll(lambda: "kept_seconds" in look(one, job), 60, "the end of its last tile")
        assert one.request("DELETE", job).status == 204, "forgets it"
        one.get(job).refused(404, "not-found")


def test_events_of_an_ended_job(one):
    """Also by HTTP/1.0, whose clients know no chunks: the connection's end tells them the end."""
    job = submit(one)
    ended(one, job)
    (name, data), = Events(one, job)
    assert name == "end" and data["state"] == "done"
    answer = one.request("HEAD", f"{job}/events")
    assert (answer.status, answer.type, answer.body) == (200, "text/event-stream", b"")
    with one.socket() as connection:
        connection.sendall(f"GET {job}/events HTTP/1.0\r\n\r\n".encode())
        head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    assert b"chunked" not in head and body.startswith(b"event: end\n") and body.endswith(b"\n\n")


@pytest.mark.slow
def test_silence_and_the_end_of_clients(one):
    """Comments while nothing happens; the sockets of listeners who left are closed."""
    def descriptors():
        return sum(len(os.listdir(f"/proc/{worker.pid}/fd")) for worker in one.workers("http"))

    with busy(one):
        waiting = submit(one)
        stream = Events(one, waiting)
        assert next(stream)[0] == "progress" and stream.block() == ":\n"
        before = descriptors()
        others = [Events(one, waiting) for _ in range(5)]
        poll(lambda: descriptors() >= before + 5, 60, "the listeners' sockets")
        for other in others:
            other.close()
        poll(lambda: descriptors() <= before, 60, "the end of the listeners' sockets")
        stream.close()


def fill(service, count, pixels=SMALL):
    """Returns new jobs, which have ended, in this order."""
    jobs = [submit(service, pixels) for _ in range(count)]
    for job in jobs:
        service.get(f"{job}?wait=300")  # it may be forgotten already
    return jobs


def kept(service, jobs):
    return [service.get(f"{job}/result").status == 200 for job in jobs]


def square(side):
    return random_pixels(4, side, side, 1, "u8")


def test_results_of_others_stay(bounded):
    """Whoever keeps most makes room by its oldest, however much it sends; by number, by size."""
    other = bounded.neighbour()
    theirs, mine = fill(other, 2), fill(bounded, 6)
    assert kept(other, theirs) == [True, True]
    assert kept(bounded, mine) == [False] * 4 + [True, True]
    bounded.get(mine[0]).refused(404, "not-found")
    # Two hold as many now, so the oldest goes; then who holds most.
    theirs += fill(other, 1)
    assert kept(bounded, mine[4:]) == [True, True]
    assert kept(other, theirs) == [False, True, True]

    assert kept(bounded, fill(bounded, 3, square(200))) == [False, True, True]
    assert kept(other, theirs[1:]) == [True, True]
    for job in theirs[1:]:
        assert other.request("DELETE", job).status == 204


def test_result_that_leaves_no_room(bounded):
    """One that fits only without the others' is not kept, nor one that never fits."""
    other = bounded.neighbour()
    theirs = fill(other, 1, square(200))
    for side, says in ((300, ["90000 bytes; beside other clients' at most 62"]),
                       (400, ["160000", str(100 << 10)])):
        mine = submit(bounded, square(side))
        assert ended(bounded, mine)["state"] == "failed"
        bounded.get(f"{mine}/result").refused(507, "result-too-large", *says)
    assert kept(other, theirs) == [True]
    assert other.request("DELETE", theirs[0]).status == 204


def test_bounded_by_time(launch):
    with launch("--codecs", "1", "--result-time", "1") as service:
        began = time.monotonic()
        job = submit(service)
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
        return (metrics.total("convolved_stored_jobs", state="open"),
                metrics.total("convolved_stored_jobs", state="ended"),
                metrics.total("convolved_stored_bytes"))

    fill(bounded, 5, PIXELS[:50, :50])
    assert stored() == (0, 4, 4 * 50 * 50 * 3)
    job = submit(bounded, LONG, HEAVY)
    assert stored()[0] == 1
    assert bounded.request("DELETE", job).status == 204
    poll(lambda: stored() == (0, 4, 3 * 50 * 50 * 3), 60, "the end of the job")


def test_drain_waits(launch):
    """An accepted job is finished, and is heard of; its result could not be kept of one more."""
    late = request_head("/v1/filters/box", "Prefer: respond-async", f"Content-Length: {len(PNG)}")
    with launch("--codecs", "1") as service, service.socket() as waits, service.socket() as other:
        job = submit(service, MEDIUM, HEAVY)
        waits.sendall(request_head(f"{job}/result?wait=60", method="GET"))
        other.sendall(late[:5])
        events = Events(service, job)
        poll(lambda: look(service, job)["state"] == "running", 60, "the job")
        service.process.send_signal(signal.SIGTERM)
        service.says("stopping: ")
        other.sendall(late[5:] + PNG)
        refused = read_answer(other)
        refused.refused(503, "draining")
        assert refused.headers["Retry-After"] == "1"
        assert read_answer(waits).status == 200
        name, data = list(events)[-1]
        assert (name, data["state"]) == ("end", "done")
        assert service.process.wait(60) == 0, service.tail()


def test_drain_ends(launch):
    """Jobs not finished in time are broken off, listeners and all."""
    with launch("--codecs", "1", "--drain-timeout", "1") as service:
        job = submit(service, LONG, HEAVY, variant="reference")
        events = Events(service, job)
        with service.socket() as connection:
            connection.sendall(request_head(f"{job}?wait=300", method="GET"))
            look(service, job)
            assert service.stop(60) == 0, service.tail()
            assert connection.recv(100).startswith(b"HTTP/1.1 503 ")
        with contextlib.suppress(http.client.HTTPException, ConnectionError):
            assert all(name == "progress" for name, _ in events)
