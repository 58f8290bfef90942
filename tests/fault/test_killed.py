"""Workers that die, hang or are taken away in the middle of work: one request pays at most, and the
next is served as if nothing had happened. For comparisons of bytes, variant=general keeps the
kernels the same."""
import contextlib
import functools
import os
import signal
import time

import numpy as np
import pytest

from clients import Load
from in_flight import PNG, SLOW, InFlight, large, works
from jobs import HEAVY, MEDIUM, submit
from pixels import random_pixels
from service import (CHAINS_OF_ALL, CONNECTED, ONE_DEVICE, TWO_DEVICES, children, poll, read_answer,
                     request_head, sanitized)

CRASH = signal.SIGABRT if sanitized() else signal.SIGSEGV  # which a sanitizer would take
# A worker that stands still is noticed by that alone, long before these.
LONG_LIMITS = ("--tile-timeout", "300", "--job-timeout", "600")


def recovers(service):
    """Requests are served again; until then they are told to come again, by status and header."""
    def served():
        answer = service.post("/v1/filters/gaussian?sigma=1.5&format=raw", PNG)
        if answer.status != 200:
            assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1, answer
        return answer.status == 200
    poll(served, 60, "a served request")
    works(service)


def gone(process):
    return poll(lambda: process.gone, 60, f"the end of {process.pid}", 0.001)


def workers(service, *kinds):
    return [worker for kind in kinds for worker in service.workers(kind)]


# Codec workers ------------------------------------------------------------------------------------

@pytest.mark.parametrize("options, number, reason", [
    (("--codecs", "2"), signal.SIGKILL, "killed"), (("--codecs", "1"), signal.SIGKILL, "killed"),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        (("--codecs", "2", *LONG_LIMITS), signal.SIGSTOP, "stopped"),
        (("--codecs", "2", "--spool-size", "1M"), signal.SIGKILL, "killed")))],
    ids=("killed", "the only one", "stopped", "with an answer in a file"))
def test_codec_ends_in_the_middle(launch, expected, options, number, reason):
    """That is not the image's fault: it is filtered again, from the start, on another worker or the
    successor; no limit of time is waited for. Nothing of the first run is in the answer. Other
    requests do not notice."""
    with launch(*options) as service:
        job = InFlight(service)
        worker = job.codec
        worker.kill(number)
        gone(worker)
        works(service)
        job.gives(expected)
        assert service.restarts(worker="codec") == 1 and service.restarts(worker="device") == 0
        assert service.restarts(worker="codec", reason=reason) == 1
        poll(lambda: len(service.workers("codec")) == int(options[1]), 60, "all codec workers")
        service.rest()


@pytest.mark.parametrize("number", (CRASH, signal.SIGKILL))
def test_codec_killed_twice(launch, expected, number):
    """An image that crashes two workers is not tried on a third; if they are killed it is."""
    with launch("--codecs", "2") as service:
        job = InFlight(service)
        first = job.codec
        first.kill(number)
        gone(first)
        poll(lambda: any(job.size in p.open_sizes for p in service.workers("codec")), 60,
             "the second worker to have the job")
        job.codec.kill(number)
        if number == CRASH:
            job.result().refused(422, "decoder-died")
        else:
            job.gives(expected)
        works(service)
        assert service.restarts(worker="codec") == 2
        service.rest()


@pytest.mark.parametrize("kind, lives", [("codec", 0), ("http", 1.2)])
def test_killed_after_serving(launch, kind, lives):
    """One that serves is started again at once, however often somebody kills it. An HTTP worker has
    served once it has answered the front, which asks it twice a second."""
    with launch("--codecs", "1", "--http-workers", "1") as service:
        taken = []
        while len(taken) < 9 or (min(taken[5:]) >= min(taken[:2]) + 0.5 and len(taken) < 30):  # on a busy machine
            works(service)
            time.sleep(lives)
            begun = time.monotonic()
            worker, = service.workers(kind)
            worker.kill()
            gone(worker)
            poll(service.works, what="an image")
            taken.append(time.monotonic() - begun)
        assert min(taken[5:]) < min(taken[:2]) + 0.5, f"it waits for longer each time: {taken}"


CANNY = ("canny", {"sigma": 0, "low": 2, "high": 3})


@pytest.mark.parametrize("filters, kernel", [
    ([("equalize", {}), *SLOW], "curve"), *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        ([*SLOW, ("equalize", {})], None), ([*SLOW, CANNY], None), ([CANNY, *SLOW], "canny")))],
    ids=("when it has counted", "while it counts", "while it looks for edges", "with edges"))
def test_codec_ended_in_either_run(launch, filters, kernel):
    """An image is counted by a run of its own. Each has a successor, and earlier counts stay."""
    pixels = large()[:800]

    def copied():
        """Tiles of runs that only count."""
        total = service.total("convolved_kernel_duration_seconds_count", kernel=kernel)
        return total if kernel else 0

    def struck(number):
        """Tells whether a worker that had the job was struck once the job was counted: on a busy machine it may
        be done before."""
        before, job = copied(), InFlight(service, pixels, filters)
        poll(lambda: copied() >= before + once or job.done, 60, "the end of the counting run", 0.005)
        poll(lambda: job.done or any(job.size in w.open_sizes for w in service.workers("codec")), 60,
             "a worker that has the job", 0.005)
        found = [w.kill(number) for w in service.workers("codec") if job.size in w.open_sizes]
        job.gives(wanted)
        return found

    with launch("--codecs", "2", *LONG_LIMITS) as service:
        wanted = service.filter(pixels, filters, variant="general").body
        once = copied()
        assert (once > 0) == bool(kernel)
        for number in (signal.SIGKILL, signal.SIGSTOP):
            poll(lambda n=number: struck(n), what="a job that is struck")
        assert service.restarts(worker="codec") == 2
        service.rest()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_idle_workers_end(launch, number):
    with launch("--codecs", "2") as service:
        works(service)
        struck = workers(service, "codec", "device")
        for worker in struck:
            worker.kill(number)
        for worker in struck:
            gone(worker)
        recovers(service)
        poll(lambda: service.restarts() == len(struck), 60, "restarts in the metrics")
        poll(lambda: service.get("/readyz").status == 200, 60, "/readyz")
        assert service.total("convolved_device_up") == 1


# Device workers -----------------------------------------------------------------------------------

@pytest.mark.parametrize("devices, number, reason", [
    pytest.param(ONE_DEVICE, signal.SIGKILL, "killed", marks=pytest.mark.slow),
    (ONE_DEVICE, signal.SIGSTOP, "stopped"), (TWO_DEVICES, signal.SIGKILL, "killed")], ids=("killed", "stopped", "one of two killed"))
def test_device_ends_in_the_middle(launch, expected, devices, number, reason):
    """The other takes over, with the same bytes. The tiles of the only one wait for its successor,
    or if that takes too long the request fails as our fault. No codec worker pays for it."""
    with launch("--codecs", "2", *LONG_LIMITS, environment=devices) as service:
        count = len(service.workers("device"))
        job = InFlight(service)
        worker = service.workers("device")[0]
        worker.kill(number)
        gone(worker)
        answer = job.result()
        if answer.status == 200 or count == 2:
            assert (answer.status, answer.body) == (200, expected)
        else:
            answer.refused(503, "no-device")
        (recovers if count == 1 else works)(service)
        poll(service.restarts, 60, "a restart")
        poll(lambda: service.total("convolved_device_up") == count, 60, "all devices up")
        assert service.restarts(worker="device", reason=reason) == 1
        assert service.restarts() == 1


def test_device_is_not_at_fault(launch):
    """Whoever kills or stops its worker says nothing against a device."""
    with launch("--codecs", "1", "--quarantine-failures", "2") as service:
        for number in [signal.SIGSTOP, signal.SIGKILL] * 3:
            works(service)
            worker, = service.workers("device")
            worker.kill(number)
            gone(worker)
            recovers(service)
        assert service.restarts(worker="device") == 6 and "is quarantined" not in service.said


@pytest.mark.slow
def test_device_killed_without_a_cache(launch, cache, tmp_path):
    """Its successor, in whose directory nothing can be made, has its programs compiled."""
    directory = tmp_path / "cache"
    directory.symlink_to(cache)
    with launch("--codecs", "1", "--cache-dir", str(directory)) as service:
        works(service)
        worker, = service.workers("device")
        directory.unlink()
        directory.symlink_to(tmp_path / "nowhere")
        worker.kill()
        gone(worker)
        service.ask_all(["u8"], CHAINS_OF_ALL[3:])
        recovers(service)
        assert service.restarts(worker="device") == 1
        assert "rejects a program" not in service.said


# HTTP workers -------------------------------------------------------------------------------------

@pytest.mark.parametrize("number, reason", [(CRASH, "signal"), (signal.SIGSTOP, "stopped")])
def test_http_worker_ends(launch, number, reason):
    """Its connections break; asynchronous jobs go on, and another takes over."""
    with launch("--codecs", "1", "--http-workers", "1") as service:
        job = submit(service, MEDIUM, HEAVY)
        with service.socket() as connection:
            connection.sendall(request_head("/livez", method="GET"))
            assert read_answer(connection).status == 200
            worker, = service.workers("http")
            worker.kill(number)
            assert not connection.recv(1)
        gone(worker)
        works(service)
        poll(lambda: service.get(f"{job}?wait=20").json()["state"] == "done", 120, "the job")
        assert service.get(f"{job}/result").status == 200
        assert service.restarts(worker="http", reason=reason) == 1
        service.rest()


def test_one_of_two_http_workers_ends(launch, expected):
    """The front's other requests do not notice, whoever has them."""
    with launch("--codecs", "1", "--http-workers", "2") as service:
        job = InFlight(service)

        def idle():  # once the connections by which InFlight asked for metrics have ended
            connected = service.sockets(CONNECTED)
            return len(connected) == 1 and [worker for worker in service.workers("http")
                                            if not connected & {*worker.descriptors.values()}]
        worker, = poll(idle, 60, "the worker that does not have it")
        worker.kill()
        job.gives(expected)
        works(service)


# Everything at once -------------------------------------------------------------------------------

def test_storm(launch):
    """Workers are killed and stopped all the time, from outside: that is nobody's image's fault.
    All are served rightly, or told to come again where no device is left; nobody waits for a limit
    of time. In the end all is well."""
    seconds = float(os.environ.get("CONVOLVED_FAULT_SECONDS", "3"))
    images = [random_pixels(i, 300 + 200 * i, 200, 3, "u8") for i in range(3)]
    filters = [("gaussian", {"sigma": 3.0}), ("sobel", {})]
    random = np.random.default_rng(3)
    with launch("--codecs", "3", "--quarantine-failures", "100000", *LONG_LIMITS,
                environment=TWO_DEVICES) as service:
        struck = set()
        with Load([functools.partial(service.filter, image, filters, variant="general", timeout=150)
                   for image in images], 3, {(503, "no-device")}) as load:
            ends = time.monotonic() + seconds
            while time.monotonic() < ends:
                for worker in random.permutation(workers(service, "codec", "device"))[:1]:
                    with contextlib.suppress(ProcessLookupError):
                        worker.kill((signal.SIGKILL, signal.SIGSTOP)[random.integers(2)])
                        struck.add(worker)
                time.sleep(0.3)
            load.more(20)
        assert load.slowest < 150 and load.served > load.done / 2
        recovers(service)
        poll(lambda: len(service.workers("codec")) == 3 and len(service.workers("device")) == 2,
             60, "all workers back")
        poll(lambda: service.restarts() == len(struck), 60, f"{len(struck)} restarts")
        service.rest()
        assert all(p.alive for p in children(service.process.pid)), "dead workers are not reaped"


# The end of the service ---------------------------------------------------------------------------

@pytest.mark.slow
def test_terminated_in_the_middle(launch, expected):
    """Accepted requests are finished, also if a terminal signals all; new ones are not accepted."""
    with launch("--codecs", "2") as service:
        there = workers(service, "codec", "device", "http")
        assert len(there) >= 4
        job = InFlight(service)
        for worker in there:
            for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
                worker.kill(number)
        service.process.send_signal(signal.SIGTERM)

        def refused():
            try:
                return service.post("/v1/filters/box", PNG).status == 503
            except OSError:
                return True
        poll(refused, 60, "no more requests")
        job.gives(expected)
        assert service.process.wait(60) == 0, service.tail()
        assert "has ended: killed" not in service.tail()
        poll(lambda: not any(w.alive for w in there), 60, "the end of all workers")


def test_http_worker_killed_in_the_end(launch):
    """Its successor knows that the service is ending."""
    with launch("--codecs", "1", "--http-workers", "1", "--drain-timeout", "300") as service:
        submit(service, MEDIUM, HEAVY)
        service.process.send_signal(signal.SIGTERM)
        service.says("stopping: ")
        worker, = service.workers("http")
        worker.kill()
        assert service.process.wait(60) == 0, service.tail()


def test_front_killed(launch):
    """Nobody is left to supervise: the workers end too."""
    with launch("--codecs", "2").starting() as service:
        service.wait_ready()
        there = workers(service, "codec", "device", "http")
        InFlight(service)
        service.process.kill()
        service.process.wait(60)
        poll(lambda: not any(w.alive for w in there), 60, "the end of all workers")
