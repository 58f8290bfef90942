"""Codec workers that have been taken over (hostile.c): whatever they send, the service goes on,
believes nothing impossible, and only their own client suffers."""
import concurrent.futures
import json
import os
import re
import time

import pytest

import service as service_module
from service import PATIENCE, poll, request_head, sanitized

BODY = bytes(range(100))
TARGET = "/v1/filters/box?size=3&raw=10x10x1:u8&format=raw"


@pytest.fixture
def hostile(taken_over):
    """hostile(mode, *options): a service all of whose codec workers are."""
    def started(mode, *options):
        service = taken_over("codec", [mode], *options)
        service.wait_ready = lambda: poll(lambda: "is up" in service.tail(), 60, "a device")
        return service
    return started


@pytest.mark.parametrize("mode, options, replaced", [
    ("honest", (), False), ("honest", ("--spool-size", "0"), True), ("maps", (), True)],
    ids=("memory", "file", "mapping"))
def test_honest(hostile, mode, options, replaced):
    """The program can do an honest job, and changes neither body nor answer. An answer that its
    worker could still change, by a descriptor or a mapping, counts once the worker has ended."""
    with hostile(mode, "--codecs", "1", *options) as service:
        for _ in range(3):
            before = poll(lambda: service.workers("codec"), 60, "a worker")
            answer = service.post(TARGET, BODY)
            assert (answer.status, answer.body) == (200, b"0123456789")
            assert (before != service.workers("codec")) == replaced
        assert "CAN BE CHANGED" not in service.said
        assert replaced or service.restarts() == 0


@pytest.mark.parametrize("mode, target", [
    *((mode, TARGET) for mode in ("size", "more", "far", "early", "times", "losses", "descriptors", "huge",
                                  "late", "closes")),
    # The counts of a run are checked like any message: an image in its place, and impossible numbers.
    *((mode, TARGET.replace("box?size=3", f"{name}?variant=general"))
      for mode in ("honest", "numbers") for name in ("equalize", "canny"))])
def test_refused(hostile, mode, target):
    """It is ended, and its messages book no memory and no time."""
    with hostile(mode, "--codecs", "2") as service:
        service.post(target, BODY).refused(422, "decoder-died")
        assert service.get("/livez").status == 200
        poll(lambda: service.total("convolved_spool_memory_bytes") == 0, 60, "no memory")
        assert service.restarts(worker="codec") == 2, service.tail()
        assert service.total("convolved_stage_duration_seconds_sum") < 100
        assert "OF ANY SIZE" not in service.said


def test_kept(hostile):
    """A worker that has kept rows gets the run that follows, and no other. The last run can keep none."""
    with hostile("kept", "--codecs", "2") as service:
        for _ in range(2):
            service.post(TARGET.replace("box?size=3", "equalize?variant=general"), BODY).refused(422, "decoder-died")

        def follows():  # a worker's lines come a moment later
            runs = [line.split() for line in service.tail().splitlines() if "hostile: run" in line]
            return {int(line[-3]): int(line[-1]) for line in runs}
        poll(lambda: sum(before > 0 for before in follows().values()) >= 2, 60, "runs that follow another")
        assert all(not before or follows()[before] == 0 for before in follows().values()), follows()


def test_text(hostile):
    with hostile("text", "--codecs", "1") as service:
        problem = service.post(TARGET, BODY).refused(422, "undecodable")
        assert json.dumps(problem).isascii()


def test_sleeps(hostile):
    """One that does nothing at all is noticed, whatever time a job may take."""
    with hostile("sleeps", "--codecs", "1") as service:
        service.post(TARGET, BODY).refused(422, "decoder-died")
        assert service.restarts(worker="codec", reason="stuck") == 2


def test_spins(hostile):
    """One that goes on when its client has left is ended."""
    with hostile("spins", "--codecs", "1") as service:
        with service.socket() as connection:
            connection.sendall(request_head(TARGET, f"Content-Length: {len(BODY)}") + BODY)
            poll(lambda: any(len(BODY) in p.open_sizes for p in service.workers("codec")), 60, "the job")
        poll(lambda: service.restarts(worker="codec", reason="cancelled") == 1, 60, "its end")


@pytest.mark.parametrize("mode, more, seconds", [
    pytest.param("spins", "", 2, marks=pytest.mark.slow),
    ("spins", "&variant=reference", 2), *(
        pytest.param("spins on", more, 5, marks=pytest.mark.slow) for more in ("", "&variant=reference"))],
    ids=("before the header", "before the header of a reference", "after a tile", "in a reference"))
def test_endless(hostile, mode, more, seconds):
    """A decoder that goes on and on is ended for the processor time that it takes, and its job not
    tried again. Others are served meanwhile, and afterwards by its successor too."""
    slower = 20 if sanitized() else 1
    other = TARGET.replace("10x10", "20x5")
    with hostile(mode, "--codecs", "2") as service, concurrent.futures.ThreadPoolExecutor(1) as pool:
        endless, served = pool.submit(service.post, TARGET + more, BODY, timeout=slower * PATIENCE), 0
        while not endless.done():
            assert service.post(other, BODY).status == 200
            served += 1
            time.sleep(0.1)
        detail = endless.result().refused(422, "too-complex")["detail"]
        limit = re.search(r"more processor time than one of its size may; the limit is ([\d.]+) s", detail)
        # A few pixels take more.
        assert seconds * slower <= float(limit[1]) < (seconds + 0.05) * slower, detail
        assert served > 1, "others wait"
        assert service.restarts(worker="codec", reason="complex") == 1
        assert service.restarts() == 1, service.tail()
        poll(lambda: len(service.workers("codec")) == 2, 60, "its successor")
        answers = [pool.submit(service.post, other, BODY), service.post(other, BODY)]
        assert answers[0].result().status == answers[1].status == 200


@pytest.mark.slow
def test_each_has_its_own_time(hostile):
    """A worker's earlier work for others, or while it was idle, does not count."""
    with hostile("works", "--codecs", "1") as service:
        for _ in range(5):
            assert service.post(TARGET, BODY).status == 200
        assert service.restarts() == 0, service.tail()


def test_flood(hostile):
    """Tiles without end: others have their turn."""
    with hostile("flood", "--codecs", "1", "--job-timeout", "60") as service:
        body = bytes(1000 * 1000)
        with service.socket() as connection:
            target = TARGET.replace("10x10", "1000x1000")
            connection.sendall(request_head(target, f"Content-Length: {len(body)}") + body)
            poll(lambda: service.total("convolved_tiles_total") > 100, 60, "a flood")
            for _ in range(5):
                assert service.get("/livez").status == 200
            assert service.restarts() == 0, "the flood has not ended"


def test_anything(hostile):
    """Random messages for some seconds: the front stands, and books nothing."""
    with hostile("random", "--codecs", "3") as service:
        ends = time.monotonic() + float(os.environ.get("CONVOLVED_FAULT_SECONDS", "2"))
        answers = []
        while time.monotonic() < ends or len(answers) < 4:
            answers.append(service.post(TARGET, BODY, timeout=60).status)
        assert set(answers) <= {200, 400, 401, 403, 404, 405, 406, 408, 413, 415, 417, 422, 429,
                                500, 503, 504}, answers
        assert service.get("/livez").status == 200
        poll(lambda: not service_module.left_over(service.metrics()), 60, "nothing left over")
