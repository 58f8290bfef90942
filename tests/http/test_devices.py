"""device=: which devices may filter a request."""
import concurrent.futures
import contextlib
import functools
import signal
import time

import pytest

from pixels import random_pixels
from reloads import devices, reload
from service import ONE_DEVICE, TWO_DEVICES, Process, poll

FILTERS = [("gaussian", {"size": 5})]
SMALL = random_pixels(1, 120, 90, 3, "u8")
large = functools.cache(lambda: random_pixels(2, 3000, 3000, 1, "u8"))  # more tiles than a device holds
BOTH = {"cpu0": "up", "cpu1": "up"}


@pytest.fixture
def pair(reloadable):
    """A service with two devices; its option tile-timeout can be reloaded."""
    with reloadable("codecs=3\ntile-timeout=60\n") as service:
        poll(lambda: devices(service) == BOTH, 60, "both devices")
        yield service


def used(answer):
    """Returns the labels of the devices that filtered it."""
    assert answer.status == 200, answer
    return {device.split()[0] for device in answer.headers["X-Device"].split(", ")}


def worker_of(service, label):
    listed = service.get("/v1/devices").json()["devices"]
    return Process(next(d["pid"] for d in listed if d["id"] == label))


def filter_on(service, pixels, pattern):
    return service.filter(pixels, FILTERS, device=pattern, variant="general")


def test_patterns(pair):
    """Labels, indices, types and names; the bytes are the same wherever they are made."""
    expected = pair.filter(large(), FILTERS, variant="general").body
    listed = pair.get("/v1/devices").json()["devices"]
    assert [d["index"] for d in listed] == ["0:0", "0:1"]
    name = listed[0]["name"][:4] + "*"  # "basic-…" with PoCL 3, "cpu-minimal-…" with PoCL 6
    for pattern, most in (("cpu0", {"cpu0"}), ("cpu1", {"cpu1"}), ("CPU1", {"cpu1"}),
                          ("0:1", {"cpu1"}), ("?:0", {"cpu0"}), ("cpu", set(BOTH)),
                          ("cpu*", set(BOTH)), (name, set(BOTH)), ("auto", set(BOTH))):
        for _ in range(2):
            answer = filter_on(pair, large(), pattern)
            assert used(answer) <= most, pattern
            assert answer.body == expected


def test_no_such_device(pair):
    for pattern in ("gpu", "cpu2", "", "0:2", "cpu0,cpu1"):
        filter_on(pair, SMALL, pattern).refused(
            400, "bad-parameter", "cpu0 (0:0, ", "cpu1 (0:1, ", parameter="device", value=pattern)
    answer = filter_on(pair, SMALL, "cpu0" + "*" * 5000)
    answer.refused(400, "bad-parameter", "at most 255 bytes")


def signalled(pair, number):
    with contextlib.suppress(ProcessLookupError):
        worker_of(pair, "cpu1").kill(number)


def waits(pair):
    """True once a tile waits for cpu1, whose replaced workers are stopped, too."""
    signalled(pair, signal.SIGSTOP)
    return pair.total("convolved_tiles_queued") >= 1


def test_others_pass(pair):
    """Work for the other device goes on; requests for the stuck one end when there is one again."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        asked = []

        def stuck():
            if not asked or asked[-1].done():  # a new worker has done it
                asked.append(pool.submit(filter_on, pair, large(), "cpu1"))
            return waits(pair)
        try:
            waits(pair)
            poll(stuck, 60, "a queued tile", 0.05)
            for pixels in [SMALL] * 10 + [large()]:
                assert used(filter_on(pair, pixels, "cpu0")) == {"cpu0"}
        finally:
            signalled(pair, signal.SIGCONT)
        assert used(asked[-1].result()) == {"cpu1"}
    assert pair.rest().total("convolved_tiles_queued") == 0


def test_tried_again(pair):
    """The tiles of a device that dies are tried again there, since the request may use no other."""
    worker_of(pair, "cpu1").kill(signal.SIGSTOP)
    answer = filter_on(pair, large(), "cpu1")
    assert used(answer) == {"cpu1"}
    assert answer.body == filter_on(pair, large(), "cpu0").body
    assert pair.restarts() == 1


def test_gone(pair):
    """If none of its devices comes back the request is told, and a later one at once."""
    waits(pair)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        stuck = pool.submit(filter_on, pair, large(), "cpu1")
        poll(lambda: waits(pair) or stuck.done(), 60, "a queued tile", 0.05)
        early = stuck.done()  # on a busy machine the device may have been away for too long by now
        begun = time.monotonic()
        reload(pair, "codecs=3\ntile-timeout=2\njob-timeout=40\ndevice=0:0\n")
        detail = stuck.result().refused(503, "no-device")["detail"]
        assert "may use" in detail or (early and "matches is up" in detail), detail
        assert early or time.monotonic() - begun > 2, "it may come back"
    assert "cpu1" not in filter_on(pair, SMALL, "cpu1").refused(400, "bad-parameter")["detail"]
    assert used(filter_on(pair, SMALL, "cpu")) == {"cpu0"}


def test_only_one_restarts(launch):
    """Requests that come meanwhile wait for it."""
    with launch(environment=ONE_DEVICE) as service:
        for _ in range(3):
            poll(lambda: devices(service) == {"cpu0": "up"}, 60, "the device")
            worker, = service.workers("device")
            worker.kill()
            poll(lambda: devices(service) != {"cpu0": "up"} or worker.gone, 60, "its end")
            assert service.filter(SMALL, [("box", {})]).status == 200


@pytest.mark.parametrize("environment", (ONE_DEVICE, TWO_DEVICES), ids=("one", "two"))
def test_a_process_each(launch, environment):
    """The one that lists the devices is the first one's worker: no process of the service has ended."""
    with launch(environment=environment) as service:
        poll(lambda: set(devices(service).values()) == {"up"}, 60, "the devices")
        listed = service.get("/v1/devices").json()["devices"]
        assert sorted(d["pid"] for d in listed) == [p.pid for p in service.workers("device")]
        assert len(listed) == len(environment["POCL_DEVICES"].split())
        assert Process(service.process.pid).stat[8] == "0", "cminflt: page faults of children that have ended"


def test_without_a_gpu(reloadable):
    """That processors are used for want of a GPU is said, and measured, unless they are asked for."""
    def fallback():
        return service.total("convolved_cpu_fallback")

    with reloadable("codecs=1\n") as service:
        assert fallback() == 1
        assert service.tail().count("warning: no GPU was found") == 1
        reload(service, "codecs=1\ndevice=cpu\n")
        assert fallback() == 0
        reload(service, "codecs=1\n")
        assert fallback() == 1
        poll(lambda: service.tail().count("warning: no GPU was found") == 2, 60, "the warning")
