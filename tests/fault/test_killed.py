"""Workers that die, hang or are taken away in the middle of work: one request pays at most, and the
next is served as if nothing had happened. For comparisons of bytes, variant=general keeps the
kernels the same."""
import concurrent.futures
import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest

from in_flight import LARGE, PNG, SLOW, InFlight, restarts, works
from jobs import HEAVY, MEDIUM, submit
from pixels import random_pixels
from service import TWO_DEVICES, Process, children, poll, read_answer

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


# Codec workers ------------------------------------------------------------------------------------

def test_codec_killed_in_the_middle(launch, expected):
    """That is not the image's fault: it is filtered again, from the start, on another worker."""
    with launch("--codecs", "2") as service:
        for round_ in range(2):
            job = InFlight(service)
            job.codec.kill()
            answer = job.result()
            assert answer.status == 200, answer
            assert answer.body == expected
            works(service)
            poll(lambda: len(service.workers("codec")) == 2, 60, "two codec workers")
            assert restarts(service, "codec") == round_ + 1
        assert restarts(service, "device") == 0
        poll(lambda: service.total("convolved_tiles_in_flight") == 0, 60, "idle devices")


@pytest.mark.parametrize("number", (signal.SIGSEGV, signal.SIGKILL))
def test_codec_killed_twice(launch, expected, number):
    """An image that takes two workers with it is not tried on a third, unless somebody else killed
    them."""
    with launch("--codecs", "2") as service:
        job = InFlight(service)
        first = job.codec
        first.kill(number)
        gone(first)
        poll(lambda: any(job.size in p.open_sizes for p in service.workers("codec")), 60,
             "the second worker to have the job")
        job.codec.kill(number)
        if number == signal.SIGSEGV:
            job.result().refused(422, "decoder-died")
        else:
            answer = job.result()
            assert (answer.status, answer.body) == (200, expected)
        works(service)
        assert restarts(service, "codec") == 2
        service.rest()


def test_codec_killed_with_an_answer_in_a_file(launch, expected):
    """The first run's output is not in the answer of the second; and a worker that has written to a
    file ends before that is an answer."""
    with launch("--codecs", "2", "--spool-size", "1M") as service:
        first = service.workers("codec")
        job = InFlight(service)
        worker = job.codec
        worker.kill()
        answer = job.result()
        assert answer.status == 200, answer
        assert answer.body == expected
        assert restarts(service, "codec") == 1, "an end that was asked for is no failure"
        poll(lambda: len(service.workers("codec")) == 2, 60, "two codec workers")
        assert len({p.pid for p in first} & {p.pid for p in service.workers("codec")}) <= 1
        works(service)
        service.rest()


def test_codec_killed_beside_others(launch, expected):
    """Requests of other clients do not notice."""
    with launch("--codecs", "3") as service:
        job = InFlight(service)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            ended = threading.Event()

            def others():
                count = 0
                while not ended.is_set() or count < 5:
                    works(service)
                    count += 1
                return count
            others = pool.submit(others)
            job.codec.kill()
            answer = job.result()
            assert (answer.status, answer.body) == (200, expected)
            ended.set()
            assert others.result(60) >= 5


def test_idle_codecs_killed(launch):
    with launch("--codecs", "2") as service:
        works(service)
        for worker in service.workers("codec"):
            worker.kill()
            gone(worker)
        works(service)
        poll(lambda: restarts(service, "codec") == 2, 60, "two restarts in the metrics")
        for _ in range(4):
            works(service)


def test_only_codec_killed(launch, expected):
    """With one codec worker all wait for its successor."""
    with launch("--codecs", "1") as service:
        job = InFlight(service)
        job.codec.kill()
        answer = job.result()
        assert (answer.status, answer.body) == (200, expected)
        works(service)


def test_codec_killed_after_each_image(launch):
    """One that serves is started again at once, however often somebody kills it."""
    with launch("--codecs", "1") as service:
        taken = []
        for _ in range(9):
            works(service)
            begun = time.monotonic()
            worker, = service.workers("codec")
            worker.kill()
            gone(worker)
            works(service)
            taken.append(time.monotonic() - begun)
        print(" ".join(f"{t:.2f}" for t in taken))
        assert min(taken[5:]) < 0.5, "it waits for longer each time"


def test_codec_stopped(launch, expected):
    """It is ended, and its job runs on another; no limit of time is waited for."""
    with launch("--codecs", "2", *LONG_LIMITS) as service:
        job = InFlight(service)
        worker = job.codec
        worker.kill(signal.SIGSTOP)
        gone(worker)
        works(service)
        answer = job.result()
        assert (answer.status, answer.body) == (200, expected)
        assert service.total("convolved_worker_restarts_total", worker="codec",
                                       reason="stopped") == 1


CANNY = ("canny", {"sigma": 0, "low": 2, "high": 3})


@pytest.mark.parametrize("filters, kernel", [([*SLOW, ("equalize", {})], None), ([("equalize", {}), *SLOW], "curve"),
                                             ([*SLOW, CANNY], None), ([CANNY, *SLOW], "canny")],
                         ids=("while it counts", "when it has counted", "while it looks for edges", "with edges"))
def test_codec_ended_in_either_run(launch, filters, kernel):
    """An image is counted by a run of its own. Each has a successor, and earlier counts stay."""
    pixels = LARGE[:800]

    def copied():
        """Tiles of runs that only count."""
        return kernel and service.total("convolved_kernel_duration_seconds_count", kernel=kernel) or 0

    with launch("--codecs", "2", *LONG_LIMITS) as service:
        wanted = service.filter(pixels, filters, variant="general").body
        once = copied()
        assert (once > 0) == bool(kernel)
        for number in (signal.SIGKILL, signal.SIGSTOP):
            before = copied()
            job = InFlight(service, pixels, filters)
            poll(lambda n=before + once: copied() >= n, 60, "the end of a run that only counts", 0.005)
            poll(lambda j=job: [w.kill(number) for w in service.workers("codec") if j.size in w.open_sizes],
                 60, "a worker that has the job", 0.005)
            answer = job.result()
            assert (answer.status, answer.body) == (200, wanted)
        assert restarts(service, "codec") == 2
        service.rest()


def test_idle_workers_stopped(launch):
    with launch("--codecs", "2") as service:
        workers = service.workers("codec") + service.workers("device")
        for worker in workers:
            worker.kill(signal.SIGSTOP)
        for worker in workers:
            gone(worker)
        recovers(service)


# Device workers -----------------------------------------------------------------------------------

def test_device_killed_in_the_middle(launch, expected):
    """The only device: its tiles wait for its successor, or the request fails as our fault."""
    with launch("--codecs", "2") as service:
        for round_ in range(2):
            job = InFlight(service)
            service.workers("device")[0].kill()
            answer = job.result()
            if answer.status == 200:
                assert answer.body == expected
            else:
                assert answer.status in (500, 503, 504), answer
                assert answer.problem
            recovers(service)
            assert restarts(service, "device") == round_ + 1
            assert len(service.workers("device")) == 1
        assert restarts(service, "codec") == 0, "no codec worker is to pay for it"


def test_one_of_two_devices_killed(launch, expected):
    """The other takes over: the same bytes come back."""
    with launch("--codecs", "2", environment=TWO_DEVICES) as service:
        job = InFlight(service)
        service.workers("device")[0].kill()
        answer = job.result()
        assert answer.status == 200, answer
        assert answer.body == expected
        works(service)
        poll(lambda: restarts(service, "device"), 60, "a restart")  # its death may come after the answer
        poll(lambda: service.total("convolved_device_up") == 2, 60, "two devices up")
        assert restarts(service, "device") == 1


def test_device_stopped(launch, expected):
    """The only one: its tiles wait for its successor."""
    with launch("--codecs", "2", *LONG_LIMITS) as service:
        job = InFlight(service)
        worker = service.workers("device")[0]
        worker.kill(signal.SIGSTOP)
        gone(worker)
        answer = job.result()
        if answer.status == 200:
            assert answer.body == expected
        else:
            answer.refused(503, "no-device")  # its successor took too long
        recovers(service)
        assert service.total("convolved_worker_restarts_total", worker="device",
                                       reason="stopped") == 1


def test_idle_device_killed(launch):
    with launch("--codecs", "2") as service:
        works(service)
        worker = service.workers("device")[0]
        worker.kill()
        gone(worker)
        recovers(service)
        assert restarts(service, "device") == 1
        poll(lambda: service.get("/readyz").status == 200, 60, "/readyz")
        assert service.total("convolved_device_up") == 1


def test_device_killed_without_a_cache(launch, cache, tmp_path):
    """Its successor finds a directory in which nothing can be made: it has every program compiled."""
    directory = tmp_path / "cache"
    directory.symlink_to(cache)
    with launch("--codecs", "1", "--cache-dir", str(directory)) as service:
        works(service)
        worker = service.workers("device")[0]
        directory.unlink()
        directory.symlink_to(tmp_path / "nowhere")
        worker.kill()
        gone(worker)
        service.ask_all()
        recovers(service)
        assert restarts(service, "device") == 1
        assert "rejects a program" not in service.log.read_text()


def test_not_ready_without_a_device(launch):
    """While a device cannot be had, /readyz says so and /livez does not."""
    with launch("--codecs", "1", "--tile-timeout", "600") as service:
        worker = service.workers("device")[0]
        worker.kill()
        seen = []

        def ready():
            seen.append(service.get("/readyz").status)
            assert service.get("/livez").status == 200
            return seen[-1] == 200 and 503 in seen
        poll(ready, 60, "/readyz to fail and to come back", 0.001)
        recovers(service)


# HTTP workers -------------------------------------------------------------------------------------

@pytest.mark.parametrize("number, reason", [(signal.SIGSEGV, "signal"), (signal.SIGSTOP, "stopped")])
def test_http_worker_ends(launch, number, reason):
    """Its connections break, those of others do not; asynchronous jobs go on, and another takes over."""
    with launch("--codecs", "1", "--http-workers", "1") as service:
        job = submit(service, MEDIUM, HEAVY)
        with service.socket() as connection:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            assert read_answer(connection).status == 200
            worker, = service.workers("http")
            worker.kill(number)
            assert not connection.recv(1)
        gone(worker)
        works(service)
        poll(lambda: service.get(f"{job}?wait=20").json()["state"] == "done", 120, "the job")
        assert service.get(f"{job}/result").status == 200
        assert service.total("convolved_worker_restarts_total", worker="http", reason=reason) == 1
        service.rest()


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def test_one_of_two_http_workers_ends(launch, expected):
    """The front's other requests do not notice, whoever has them."""
    with launch("--codecs", "1", "--http-workers", "2") as service:
        before = {worker: descriptors(worker) for worker in service.workers("http")}
        job = InFlight(service)

        def idle():  # once the connections by which InFlight asked for metrics have ended
            same = [worker for worker in before if descriptors(worker) == before[worker]]
            return same if len(same) == 1 else None
        poll(idle, 60, "the worker that does not have it")[0].kill()
        answer = job.result()
        assert (answer.status, answer.body) == (200, expected)
        works(service)


# Everything at once -------------------------------------------------------------------------------

def test_killed_under_load(launch):
    """Workers die at random among concurrent requests: every answer is right or an honest error,
    and in the end all is well."""
    images = [random_pixels(i, 300 + i, 200, 3, "u8") for i in range(4)]
    filters = [("gaussian", {"sigma": 3.0}), ("sobel", {})]
    with launch("--codecs", "3") as service:
        right = [service.filter(image, filters, variant="general").body for image in images]
        ended = threading.Event()
        rng = np.random.default_rng(7)

        def client(number):
            statuses = {}
            while not ended.is_set():
                i = number % len(images)
                answer = service.filter(images[i], filters, variant="general")
                statuses[answer.status] = statuses.get(answer.status, 0) + 1
                if answer.status == 200:
                    assert answer.body == right[i], "wrong pixels"
                else:
                    assert (answer.status, answer.problem["type"].split("/")[-1]) in (
                        (422, "decoder-died"), (500, "device-failed"), (503, "no-device")), answer
                    # A client that is told to come again does not come at once.
                    time.sleep(0.02 if answer.status == 503 else 0)
            return statuses

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            clients = [pool.submit(client, i) for i in range(4)]
            killed = 0
            try:
                for kind in ("codec", "device", "codec", "codec", "device"):
                    before = service.total("convolved_tiles_total")
                    poll(lambda b=before: service.total("convolved_tiles_total")
                         >= b + 20, 60, "some work between two kills")
                    workers = service.workers(kind)
                    if workers:
                        workers[rng.integers(len(workers))].kill()
                        killed += 1
            finally:
                ended.set()
            statuses = [c.result(60) for c in clients]
        assert killed >= 3
        assert sum(s.get(200, 0) for s in statuses) >= 50, statuses
        recovers(service)
        poll(lambda: len(service.workers("codec")) == 3 and len(service.workers("device")) == 1, 60,
             "all workers back")
        poll(lambda: restarts(service, "codec") + restarts(service, "device") == killed, 60,
             f"{killed} restarts in the metrics")
        metrics = service.metrics()
        assert metrics.total("convolved_tiles_in_flight") == 0
        assert metrics.total("convolved_tiles_queued") == 0
        zombies = [p.pid for p in children(service.process.pid) if not p.alive]
        assert not zombies, "dead workers that nobody has reaped"


def test_storm(launch):
    """Workers are killed and stopped all the time, from outside: that is nobody's image's fault. All are
    served, or told to come again where no device is left; nobody waits for a limit of time."""
    seconds, longest = float(os.environ.get("CONVOLVED_FAULT_SECONDS", "6")), 60
    images = [random_pixels(i, 300 + 200 * i, 200, 3, "u8") for i in range(3)]
    filters = [("gaussian", {"sigma": 3.0}), ("sobel", {})]
    with launch("--codecs", "3", "--quarantine-failures", "100000", *LONG_LIMITS,
                environment=TWO_DEVICES) as service:
        right = [service.filter(image, filters, variant="general").body for image in images]
        ended, random = threading.Event(), np.random.default_rng(3)

        def client(i):
            taken, refused = [], 0
            while not ended.is_set():
                begun = time.monotonic()
                answer = service.filter(images[i], filters, variant="general", timeout=60)
                if answer.status == 200:
                    assert answer.body == right[i], "wrong pixels"
                else:
                    answer.refused(503, "no-device")
                    refused += 1
                    time.sleep(0.05)
                taken.append(time.monotonic() - begun)
            return taken, refused

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            clients = [pool.submit(client, i) for i in range(3)]
            sent, ends = 0, time.monotonic() + seconds
            while time.monotonic() < ends and not any(c.done() for c in clients):
                workers = service.workers("codec") + service.workers("device")
                if workers:
                    with contextlib.suppress(ProcessLookupError):
                        workers[random.integers(len(workers))].kill(
                            (signal.SIGKILL, signal.SIGSTOP)[sent % 2])
                    sent += 1
                time.sleep(0.3)
            ended.set()
            results = [c.result(70) for c in clients]
        taken = np.concatenate([r[0] for r in results])
        print(f"{sent} signals, {len(taken)} requests, {sum(r[1] for r in results)} refused; seconds: "
              f"median {np.median(taken):.3f}, longest {taken.max():.2f}")
        assert taken.max() < longest
        recovers(service)
        service.rest()


# The end of the service ---------------------------------------------------------------------------

def test_terminated(launch):
    with launch("--codecs", "2") as service:
        works(service)
        workers = service.workers("codec") + service.workers("device") + service.workers("http")
        assert len(workers) >= 3
        assert service.stop() == 0, service.tail()
        poll(lambda: not any(w.alive for w in workers), 60, "the end of all workers")


def test_terminated_in_the_middle(launch, expected):
    """Accepted requests are finished, also if a terminal tells the workers, too; new requests are
    not accepted."""
    with launch("--codecs", "2") as service:
        workers = service.workers("codec") + service.workers("device") + service.workers("http")
        job = InFlight(service)
        for worker in workers:
            for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
                worker.kill(number)
        service.process.send_signal(signal.SIGTERM)

        def refused():
            try:
                return service.post("/v1/filters/box", PNG).status == 503
            except OSError:
                return True
        poll(refused, 60, "no more requests")
        answer = job.result()
        assert answer.status == 200, answer
        assert answer.body == expected
        assert service.process.wait(60) == 0, service.tail()
        assert "has ended: killed" not in service.tail()
        poll(lambda: not any(w.alive for w in workers), 60, "the end of all workers")


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
    service = launch("--codecs", "2").start()
    try:
        workers = service.workers("codec") + service.workers("device") + service.workers("http")
        InFlight(service)
        service.process.kill()
        service.process.wait(60)
        poll(lambda: not any(w.alive for w in workers), 60, "the end of all workers")
    finally:
        for worker in workers:
            if worker.alive:
                Process(worker.pid).kill()
