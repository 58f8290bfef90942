"""A host that is not as it should be (host.c): its clock jumps, its buffers are small, descriptors or
memory run out, the state directory is read-only."""
import contextlib
import functools
import os
import resource
import struct
import subprocess
import time

import pytest

from clients import Load
from durable import LIBRARY as DISK
from in_flight import works
from jobs import PREFER, submit
from pixels import random_pixels
from imagefiles import pil, written
from service import BUILD, ONE_DEVICE, SMALL, Process, multipart, poll, raw_kind, sanitized, target_of

HOST = BUILD / "fault_host.so"
DAY = 86400
BLUR = target_of([("gaussian", {"sigma": 1.5})], raw=raw_kind(SMALL), format="raw", variant="general")


@pytest.fixture
def hosted(launch, tmp_path):
    """hosted(*options, **environment): a service on such a host."""
    assert HOST.exists(), f"{HOST} is not built: make check TESTS="

    def launched(*options, preload=(), **environment):
        return launch("--codecs", "2", *options, environment={
            **ONE_DEVICE, "LD_PRELOAD": " ".join(map(str, (HOST, *preload))),
            "ASAN_OPTIONS": "verify_asan_link_order=0", **environment})
    return launched


def ask_async(service):
    """As a client that wants the answer later."""
    accepted = service.post(BLUR, SMALL.tobytes(), headers=PREFER)
    if accepted.status != 202:
        return accepted
    answer = service.get(accepted.headers["Location"] + "/result?wait=60")
    service.request("DELETE", accepted.headers["Location"])
    return answer


def asking(service, honest=()):
    return Load([lambda: service.post(BLUR, SMALL.tobytes()), lambda: ask_async(service)], 3, honest)


# The clock ----------------------------------------------------------------------------------------

class Clock:
    """The file by which clocks are ahead."""

    def __init__(self, path):
        self.path, self.ahead = path, 0
        self.set(0)

    def set(self, seconds):
        with open(self.path, "r+b" if self.path.exists() else "wb") as file:
            file.write(struct.pack("q", seconds))
        self.ahead = seconds


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path / "clock")


@pytest.mark.parametrize("durable", ["yes", "no"])
def test_clock_jumps(hosted, clock, durable):
    """Nothing is early or late for it: results stay, requests and jobs end."""
    with hosted("--durable", durable, "--result-time", "3600", CONVOLVED_HOST_CLOCK=str(clock.path)) as service:
        kept = [submit(service)]
        right = service.get(kept[0] + "/result?wait=60").body
        with asking(service) as load:
            for seconds in (DAY, -DAY, 4000 * DAY, 0):
                clock.set(seconds)
                load.more(30)
                kept.append(submit(service))
                for job in kept:
                    assert service.get(job + "/result?wait=60").body == right
        service.rest()
        assert service.restarts() == 0 and service.get("/readyz").status == 200


def test_stop_while_the_clock_is_set_back(hosted, clock, tmp_path):
    """Again and again, while a disk that hangs holds a thread up: the service ends all the same."""
    state, test = tmp_path / "disk", tmp_path / "test"
    state.mkdir()
    test.mkdir()
    with hosted("--durable", "yes", "--state-dir", str(state), "--drain-timeout", "1", preload=[DISK],
                CONVOLVED_DISK=os.path.realpath(state), CONVOLVED_DISK_TEST=str(test),
                CONVOLVED_HOST_CLOCK=str(clock.path)) as service, service.socket() as connection:
        works(service)
        (test / "fault").write_text("slow 10000000")
        connection.sendall(f"POST {BLUR} HTTP/1.1\r\nHost: x\r\nPrefer: respond-async\r\nContent-Length: "
                           f"{SMALL.nbytes}\r\n\r\n".encode() + SMALL.tobytes())
        poll(lambda: any("sync" in line for line in (test / "calls").read_text().splitlines()[-1:]), what="a sync")
        service.process.terminate()

        def ended():
            clock.set(clock.ahead - 60)
            return service.process.poll() is not None
        poll(ended, what="the end", interval=0.5)
        assert service.process.returncode == 0, service.tail()


# Small buffers ------------------------------------------------------------------------------------

def test_small_socket_buffers(hosted):
    """net.core.wmem_max of 4 KB: messages between front and HTTP worker still are as long as they are."""
    form, kind = multipart([("filters", None, b"gaussian,box," * 900 + b"box"), ("image", "a", SMALL.tobytes())])
    long = {"Authorization": "x" * 60000}
    with hosted(CONVOLVED_HOST_WMEM="4096") as service, hosted() as other:
        right = other.post(BLUR, SMALL.tobytes()).body

        def same(answer, expected):
            assert (answer.status, answer.body) == (expected.status, expected.body)
            return answer
        for headers in {}, long:
            assert service.post(BLUR, SMALL.tobytes(), headers=headers).body == right
            for path in "/openapi.json", "/v1/filters", "/convolved.js":
                same(service.get(path, headers=headers), other.get(path, headers=headers))
            answer = service.post("/v1/chain?raw=" + raw_kind(SMALL), form, headers={**headers, "Content-Type": kind})
            assert answer.refused(400, "bad-parameter"), "it has too many filters"
        with asking(service) as load:
            load.more(100)
        service.rest()
        assert service.restarts() == 0


def test_no_socket_buffers(hosted):
    """A default that is too small, too, is named, and nobody waits for an answer."""
    with hosted(CONVOLVED_HOST_WMEM="4096", CONVOLVED_HOST_WMEM_DEFAULT="4608").starting() as service:
        service.says("net.core.wmem_default is too small")


# Descriptors and memory ---------------------------------------------------------------------------

SHORT = {(500, "out-of-memory"), (500, "input-output"), (500, "device-failed"), (503, "no-device")}
PAGE = os.sysconf("SC_PAGESIZE")


def file_descriptors(process):
    return max(process.descriptors) + 1


def address_space(process):
    return int(process.read("statm").split()[0]) * PAGE


def limited(processes, limit, most):
    """No process gets more of this, until the function is called that it returns. One may end; its
    successor may have as much as it likes."""
    before = {}

    def restore():
        for process, limits in before.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process.pid, limit, limits)
    for process in processes:
        before[process] = resource.prlimit(process.pid, limit)
        resource.prlimit(process.pid, limit, (most(process), before[process][1]))
    return restore


class Short(Load):
    """While something is short; there may be no memory for a problem's text."""

    def refuse(self, answer):
        if answer.status != 500 or answer.body:
            super().refuse(answer)


def patiently(request):
    """Asks again when the connection breaks."""
    while True:
        with contextlib.suppress(ConnectionError):
            return request()


DESCRIPTORS = (resource.RLIMIT_NOFILE, file_descriptors, (3, 1, 0))
MEMORY = (resource.RLIMIT_AS, address_space, (1 << 20, 1 << 18, 0))


@pytest.mark.parametrize("kind, limit, used, spares", [
    ("front", *DESCRIPTORS),
    *(pytest.param(kind, *DESCRIPTORS, marks=pytest.mark.slow) for kind in ("device", "http")),
    *(pytest.param(kind, *MEMORY, marks=pytest.mark.slow) for kind in ("front", "codec", "device", "http"))])
def test_nothing_left(launch, kind, limit, used, spares):
    """Each client is answered rightly or told that something has failed; an HTTP worker may do without a
    connection. Then all is as before."""
    if sanitized() and limit == resource.RLIMIT_AS:
        pytest.skip("a sanitizer's memory says nothing")
    with launch("--codecs", "4", "--http-workers", "2", "--quarantine-failures", "1000", "--log-level", "debug") as service:
        for worker in "codec-0", "codec-1", "codec-2", "codec-3", "http-0", "http-1":  # the front could not start it later
            service.says(f"{worker} is up")
        png = written(pil(random_pixels(1, 1500, 1000, 3, "u8")), "png")
        requests = [lambda: service.post(BLUR, SMALL.tobytes()), lambda: ask_async(service),
                    lambda: service.post("/v1/filters/sharpen?format=png&variant=general", png),
                    lambda: service.get("/openapi.json")]
        wrapped = [functools.partial(patiently, request) for request in requests] if kind == "http" else requests
        right = [request().body for request in requests]
        for spare in spares:
            processes = [Process(service.process.pid)] if kind == "front" else service.workers(kind)
            restore = limited(processes, limit, lambda process, spare=spare: used(process) + spare)
            with Short(wrapped, 4, SHORT, right) as load:
                try:
                    if kind == "http":
                        time.sleep(1)  # clients may have to wait for a descriptor
                    else:
                        load.more(60)
                finally:
                    restore()
            with Load(requests, 4, right=right) as load:
                load.more(20)
        service.rest()
        assert service.restarts() == (service.restarts(worker=kind) if kind in ("codec", "device") else 0)


# A read-only state directory (test_disk.py has one that becomes so) -----------------------------------

def test_starts_read_only(launch, tmp_path):
    """It says so, and leaves it to systemd to try again."""
    state = tmp_path / "state"
    state.mkdir()
    read_only = ["unshare", "-m", "mount", "--bind", "-o", "ro", state, state]
    tried = subprocess.run(read_only, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no file system can be mounted: {tried.stderr.strip()}")
    service = launch("--state-dir", str(state))
    service.arguments[:0] = [*read_only[:2], "sh", "-euc", 'mount --bind -o ro "$0" "$0"; exec "$@"', str(state)]
    with service.starting():
        assert service.process.wait(60) == 1
        service.says(f"state-dir={state}: expected a writable directory: Read-only file system")
