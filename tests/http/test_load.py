"""Many requests at a time: their order, deadlines, and counters."""
import collections
import concurrent.futures

import numpy as np
import pytest

import imagefiles
import load
from jobs import begin, cancel, submit
from service import ONE_DEVICE, SMALL, poll, raw_kind, target_of

BOX = [("box", {})]
HEAVY = [("bilateral", {"radius": 6})]


@pytest.fixture(scope="module")
def busy(launch):
    with launch("--codecs", "3", "--max-jobs", "40", environment=ONE_DEVICE) as service:
        yield service
        assert service.works()
        assert service.restarts() == 0, service.tail()


def test_small_beside_large(busy):
    """Small images are answered while a large one of the same client is under way."""
    large = np.zeros((2500, 2500, 3), np.uint8)
    busy.filter(SMALL, BOX)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(busy.filter, large, HEAVY, variant="general")
        poll(lambda: busy.total("convolved_tiles_in_flight") > 0, 60, "tiles")
        for _ in range(5):
            assert busy.filter(SMALL, BOX).status == 200
        assert not under_way.done()
        assert under_way.result().status == 200


def running(service):
    return service.total("convolved_jobs", state="running")


BATCH = np.zeros((2000, 2000, 3), np.uint8)


@pytest.mark.parametrize("target, body", [
    ("/v1/filters/box?size=31&variant=reference", lambda: imagefiles.write_png(np.zeros((8200, 8200, 1), np.uint8))),
    (target_of(HEAVY, raw=raw_kind(BATCH), variant="reference", priority="batch"), BATCH.tobytes)],
    ids=["small files of large images", "batch"])
def test_heavy_jobs_leave_a_worker(busy, target, body):
    """However many there are. A job's cost is known from its header."""
    body = body()
    jobs = [begin(busy, target, body) for _ in range(4)]
    try:
        poll(lambda: running(busy) == 2, 60, "two heavy jobs at a time")
        for _ in range(5):
            assert busy.filter(SMALL, BOX).status == 200
        assert running(busy) == 2
        assert all(busy.get(job).json()["state"] != "done" for job in jobs)
    finally:
        cancel(busy, jobs)


def test_deadline_missed(busy):
    """504 when it has passed, and nothing is left of the job."""
    large = np.zeros((4000, 4000, 4), np.uint8)
    answer = busy.filter(large, HEAVY, variant="general", deadline_ms=2000, timeout=60)
    answer.refused(504, "deadline-missed", "done")
    poll(lambda: busy.total("convolved_tiles_in_flight") + running(busy) == 0, 60, "rest")
    assert busy.filter(SMALL, BOX, deadline_ms=60000).status == 200


def test_deadline_that_cannot_be_met(busy):
    """429 at once, before the body, when the measured rate says so."""
    pixels = np.zeros((250, 250, 3), np.uint8)  # light, also on a slow device
    jobs = [submit(busy, pixels, HEAVY) for _ in range(28)]
    try:
        poll(lambda: busy.get(jobs[2]).json()["state"] == "done", 60, "some to be done")
        answer = busy.filter(pixels, HEAVY, variant="general", deadline_ms=1)
    finally:
        cancel(busy, jobs)
    answer.refused(429, "deadline-too-short")
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.slow
def test_overload(launch):
    """Three times the possible load: all get an answer, and are counted; memory is bounded."""
    content = load.request(load.photograph(300))
    bound = 1 << 20
    with launch("--codecs", "2", "--max-jobs", "12", "--max-memory", str(bound)) as service:
        generator = load.Generator((service.host, service.port), content)
        with load.watching(service, 0.1) as most:
            assert not generator.closed_loop(4, 1)
            capacity = load.statuses(generator.done)[200]
            for times in 3, 6, 12:  # capacity as it was measured, perhaps while others had the processors
                assert not generator.open_loop(times * capacity, 2), "some are not answered"
                if 429 in load.statuses(generator.done):
                    break
        seen = load.statuses(generator.done)
        assert set(seen) == {200, 429}
        assert not load.differences(collections.Counter(), load.counted(service), seen)
        assert 0 < most["spools"] <= bound
        assert service.rest().total("convolved_worker_restarts_total") == 0
