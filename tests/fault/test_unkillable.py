"""Processes that SIGKILL does not end, as one in an uninterruptible system call, and programs that
cannot be started any more."""
import contextlib
import ctypes
import os
import shutil
import signal
import time

import pytest

import service as service_module
from service import BUILD, TWO_DEVICES, children, poll
from test_killed import LARGE, SLOW, InFlight, expected, restarts, works  # noqa: F401

PTRACE_DETACH, PTRACE_SEIZE = 17, 0x4206
WALL = 0x40000000


@contextlib.contextmanager
def kept(process):
    """A dead process that is traced cannot be reaped by its parent until its tracer has: to that it
    looks like one that has not ended. Yields a function that lets go of it."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.ptrace(PTRACE_SEIZE, process.pid, None, None) == 0, os.strerror(ctypes.get_errno())
    held = [process.pid]

    def release():
        if held:
            os.waitpid(held.pop(), WALL)
    try:
        yield release
    finally:
        if held:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            release()


SLOWER = SLOW + [("bilateral", {"radius": 3})]


def test_device(launch):
    """Its tiles run elsewhere; the arenas that it may yet write to are replaced, so their jobs start
    again. When it ends at last it is reaped."""
    with launch("--codecs", "2", environment=TWO_DEVICES) as service:
        job = InFlight(service, LARGE, SLOWER)
        device = poll(lambda: max(service.get("/v1/devices").json()["devices"],
                                  key=lambda d: d["tiles_in_flight"]), 30, "a device with tiles", 0)
        worker = next(p for p in service.workers("device") if p.pid == device["pid"])
        with kept(worker) as release:
            worker.kill()
            answer = job.result()
            assert answer.status == 200, answer
            assert restarts(service, "device") == 1
            service.says("it is left to itself")
            service.says("may yet be written to")
            poll(lambda: len(service.workers("codec")) == 2, 10, "two codec workers")
            poll(lambda: len(service.workers("device")) == 2, 10, "two devices")
            for _ in range(4):
                works(service)
            release()
        assert answer.body == service.filter(LARGE, SLOWER, variant="general").body
        poll(lambda: not [p for p in children(service.process.pid) if not p.alive], 10,
             "nothing to be reaped")
        service.rest()


def test_codec(launch, expected):  # noqa: F811
    """Its arena is replaced, its job runs on another."""
    with launch("--codecs", "2") as service:
        job = InFlight(service)
        worker = job.codec
        with kept(worker):
            worker.kill()
            answer = job.result()
            assert (answer.status, answer.body) == (200, expected)
            poll(lambda: len(service.workers("codec")) == 2, 10, "two codec workers")
            for _ in range(4):
                works(service)
        service.rest()


def test_at_the_end(launch):
    """The end of the service does not wait for it."""
    with launch("--codecs", "2") as service:
        works(service)
        with contextlib.ExitStack() as stack:
            for worker in service.workers("codec") + service.workers("device"):
                stack.enter_context(kept(worker))
            begun = time.monotonic()
            assert service.stop() == 0, service.tail()
            assert time.monotonic() - begun < 8, "2 s are meant, for all of them"


# Programs that are gone ---------------------------------------------------------------------------

@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder of the programs, to be changed."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("convolved", "convolved-codec", "convolved-device"):
        shutil.copy(BUILD / name, folder / name)
    monkeypatch.setattr(service_module, "PROGRAM", folder / "convolved")
    return folder


def refused_soon(service):
    begun = time.monotonic()
    service.filter(service_module.SMALL, [("box", {})], timeout=60).refused(503, "no-device")
    assert time.monotonic() - begun < 15
    assert service.get("/readyz").status == 503


def test_no_device_program(launch, programs):
    """The search for devices has failed: requests are refused, not kept for ever."""
    (programs / "convolved-device").rename(programs / "gone")
    service = launch("--codecs", "1")
    try:
        service.start(ready=False)
        poll(lambda: "cannot start" in service.tail(), 20, "a failed start")
        refused_soon(service)
        (programs / "gone").rename(programs / "convolved-device")
        service.wait_ready()
        works(service)
        assert service.stop() == 0
    finally:
        service.kill()


def test_device_program_goes(launch, programs, tmp_path):
    """A device that is wanted again but cannot be started is not about to come up."""
    file = tmp_path / "conf"
    file.write_text("[workers]\ndevice=*\n")
    with launch("--codecs", "1", "--config", str(file)) as service:
        file.write_text("[workers]\ndevice=none of these\n")
        service.process.send_signal(signal.SIGHUP)
        poll(lambda: not service.workers("device"), 20, "the device's end")
        (programs / "convolved-device").rename(programs / "gone")
        file.write_text("[workers]\ndevice=*\n")
        service.process.send_signal(signal.SIGHUP)
        poll(lambda: restarts(service, "device") >= 1, 20, "a failed start")
        refused_soon(service)
        (programs / "gone").rename(programs / "convolved-device")
        poll(lambda: service.get("/readyz").status == 200, 60, "/readyz")
        works(service)
