"""Workers that die, hang or are taken away in the middle of work: one request pays at most, and the
next is served as if nothing had happened. Where bytes are compared, variant=general keeps the kernels
the same."""
import concurrent.futures
import signal
import threading
import time

import numpy as np
import pytest

import imagefiles
import oracle
from service import TWO_DEVICES, Process, children, poll
from test_results import random_pixels

# Some seconds of work in many tiles.
LARGE = random_pixels(1, 4000, 3000, 3, "u8")
SLOW = [("gaussian", {"sigma": 20.0}), ("box", {"size": 101}), ("gaussian", {"sigma": 20.0}),
        ("sobel", {})]
SMALL = random_pixels(2, 61, 47, 3, "u8")
PNG = imagefiles.write_png(SMALL)


def works(service):
    answer = service.post("/v1/filters/gaussian?sigma=1.5&format=raw", PNG)
    assert answer.status == 200, answer
    oracle.check(answer.pixels, oracle.filtered(SMALL, [("gaussian", {"sigma": 1.5})]))


def recovers(service, seconds=30):
    """Requests are served again; until then they are told to come again, by status and header."""
    def served():
        answer = service.post("/v1/filters/gaussian?sigma=1.5&format=raw", PNG)
        if answer.status != 200:
            assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1, answer
        return answer.status == 200
    poll(served, seconds, "a served request")
    works(service)


def restarts(service, worker):
    return service.metrics().total("convolved_worker_restarts_total", worker=worker)


class InFlight:
    """A large request on a thread of its own, begun when a device works on one of its tiles."""

    def __init__(self, service, pixels=LARGE, filters=SLOW):
        self.service, self.answer, self.error = service, None, None
        before = service.metrics().total("convolved_tiles_total")
        self.size = pixels.nbytes
        self.thread = threading.Thread(target=self.run, args=(pixels, filters), daemon=True)
        self.thread.start()

        def begun():
            metrics = service.metrics()
            return (metrics.total("convolved_tiles_in_flight") >= 1
                    and metrics.total("convolved_tiles_total") > before)
        poll(begun, 60, "a tile in flight", 0.005)

    def run(self, pixels, filters):
        try:
            self.answer = self.service.filter(pixels, filters, timeout=120,
                                              variant="general")
        except OSError as error:
            self.error = error

    @property
    def codec(self):
        """The codec worker that has the job: the one that has its body open."""
        return next(p for p in self.service.workers("codec") if self.size in p.open_sizes)

    def result(self):
        self.thread.join(120)
        assert not self.thread.is_alive(), f"no answer at all\n{self.service.tail()}"
        assert self.answer is not None, f"the connection broke: {self.error}\n{self.service.tail()}"
        return self.answer


@pytest.fixture(scope="module")
def expected(launch):
    """The answer of a service that nothing is done to."""
    with launch("--codecs", "1") as service:
        return service.filter(LARGE, SLOW, variant="general").body


def gone(process):
    return poll(lambda: process.gone, 10, f"the end of {process.pid}", 0.001)


# Codec workers ------------------------------------------------------------------------------------

def test_codec_killed_in_the_middle(launch):
    with launch("--codecs", "2") as service:
        for _ in range(2):
            before = restarts(service, "codec")
            job = InFlight(service)
            job.codec.kill()
            job.result().refused(422, "decoder-died")
            works(service)
            poll(lambda: len(service.workers("codec")) == 2, 10, "two codec workers")
            assert restarts(service, "codec") == before + 1
        assert restarts(service, "device") == 0
        poll(lambda: service.metrics().total("convolved_tiles_in_flight") == 0, 30, "idle devices")


def test_codec_killed_beside_others(launch):
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
            job.result().refused(422, "decoder-died")
            ended.set()
            assert others.result(60) >= 5


def test_idle_codecs_killed(launch):
    with launch("--codecs", "2") as service:
        works(service)
        for worker in service.workers("codec"):
            worker.kill()
            gone(worker)
        works(service)
        poll(lambda: restarts(service, "codec") == 2, 10, "two restarts in the metrics")
        for _ in range(4):
            works(service)


def test_only_codec_killed(launch):
    """With one codec worker the next request waits for its successor."""
    with launch("--codecs", "1") as service:
        job = InFlight(service)
        job.codec.kill()
        job.result().refused(422, "decoder-died")
        works(service)


def test_codec_hangs(launch, expected):
    """One that stops answering is ended with its job's time; the others go on."""
    with launch("--codecs", "2", "--job-timeout", "8") as service:
        job = InFlight(service)
        worker = job.codec
        worker.kill(signal.SIGSTOP)
        works(service)
        answer = job.result()
        assert answer.status in (422, 504), answer
        assert answer.problem["type"] in ("/problems/decoder-died", "/problems/timeout")
        gone(worker)
        poll(lambda: len(service.workers("codec")) == 2, 10, "two codec workers")
        works(service)


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
        poll(lambda: service.metrics().total("convolved_device_up") == 2, 30, "two devices up")
        assert restarts(service, "device") == 1


def test_device_hangs(launch, expected):
    """A kernel that does not come back: the worker is ended after tile-timeout."""
    with launch("--codecs", "2", "--tile-timeout", "2") as service:
        job = InFlight(service)
        worker = service.workers("device")[0]
        worker.kill(signal.SIGSTOP)
        answer = job.result()
        if answer.status == 200:
            assert answer.body == expected
        else:
            assert answer.status in (500, 503, 504) and answer.problem, answer
        gone(worker)
        recovers(service)
        assert restarts(service, "device") >= 1


def test_idle_device_killed(launch):
    with launch("--codecs", "2") as service:
        works(service)
        worker = service.workers("device")[0]
        worker.kill()
        gone(worker)
        recovers(service)
        assert restarts(service, "device") == 1
        poll(lambda: service.get("/readyz").status == 200, 30, "/readyz")
        assert service.metrics().total("convolved_device_up") == 1


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
        poll(ready, 30, "/readyz to fail and to come back", 0.001)
        recovers(service)


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
                    before = service.metrics().total("convolved_tiles_total")
                    poll(lambda b=before: service.metrics().total("convolved_tiles_total")
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
        poll(lambda: len(service.workers("codec")) == 3 and len(service.workers("device")) == 1, 20,
             "all workers back")
        poll(lambda: restarts(service, "codec") + restarts(service, "device") == killed, 10,
             f"{killed} restarts in the metrics")
        metrics = service.metrics()
        assert metrics.total("convolved_tiles_in_flight") == 0
        assert metrics.total("convolved_tiles_queued") == 0
        zombies = [p.pid for p in children(service.process.pid) if not p.alive]
        assert not zombies, "dead workers that nobody has reaped"


# The end of the service ---------------------------------------------------------------------------

def test_terminated(launch):
    with launch("--codecs", "2") as service:
        works(service)
        workers = service.workers("codec") + service.workers("device")
        assert len(workers) >= 3
        assert service.stop() == 0, service.tail()
        poll(lambda: not any(w.alive for w in workers), 5, "the end of all workers")


def test_terminated_in_the_middle(launch, expected):
    """What was accepted is finished; new requests are not accepted."""
    with launch("--codecs", "2") as service:
        workers = service.workers("codec") + service.workers("device")
        job = InFlight(service)
        service.process.send_signal(signal.SIGTERM)

        def refused():
            try:
                return service.post("/v1/filters/box", PNG).status == 503
            except OSError:
                return True
        poll(refused, 5, "no more requests")
        answer = job.result()
        assert answer.status == 200, answer
        assert answer.body == expected
        assert service.process.wait(30) == 0, service.tail()
        poll(lambda: not any(w.alive for w in workers), 5, "the end of all workers")


def test_front_killed(launch):
    """Nobody is left to supervise: the workers end too."""
    service = launch("--codecs", "2").start()
    try:
        workers = service.workers("codec") + service.workers("device")
        InFlight(service)
        service.process.kill()
        service.process.wait(10)
        poll(lambda: not any(w.alive for w in workers), 10, "the end of all workers")
    finally:
        for worker in workers:
            if worker.alive:
                Process(worker.pid).kill()
