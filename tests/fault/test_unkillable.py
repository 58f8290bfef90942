"""Processes that SIGKILL does not end, as one in an uninterruptible system call, and programs that
cannot be started any more."""
import contextlib
import ctypes
import os
import pathlib
import re
import signal
import time

import pytest

import service as service_module
from in_flight import SLOW, InFlight, large, works
from service import TWO_DEVICES, Process, children, poll

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


@pytest.mark.slow
def test_device(launch):
    """Its tiles run elsewhere; the arenas that it may yet write to are replaced, so their jobs start
    again. When it ends at last it is reaped."""
    with launch("--codecs", "2", environment=TWO_DEVICES) as service:
        job = InFlight(service, large(), SLOWER)
        device = poll(lambda: max(service.get("/v1/devices").json()["devices"],
                                  key=lambda d: d["tiles_in_flight"]), 60, "a device with tiles", 0)
        worker = Process(device["pid"])
        with kept(worker) as release:
            worker.kill()
            answer = job.result()
            assert answer.status == 200, answer
            poll(lambda: service.restarts(worker="device") == 1, 60, "its end")
            service.says("it is abandoned")
            service.says("may still write to")
            poll(lambda: len(service.workers("codec")) == 2, 60, "two codec workers")
            poll(lambda: len(service.workers("device")) == 2, 60, "two devices")
            for _ in range(4):
                works(service)
            release()
        assert answer.body == service.filter(large(), SLOWER, variant="general").body
        poll(lambda: not [p for p in children(service.process.pid) if not p.alive], 60,
             "nothing to be reaped")
        service.rest()


@pytest.mark.slow
def test_codec(launch, expected):
    """Its arena is replaced, its job runs on another."""
    with launch("--codecs", "2") as service:
        job = InFlight(service)
        worker = job.codec
        with kept(worker):
            worker.kill()
            job.gives(expected)
            poll(lambda: len(service.workers("codec")) == 2, 60, "two codec workers")
            for _ in range(4):
                works(service)
        service.rest()


def test_at_the_end(launch):
    """The end of the service does not wait for it."""
    with launch("--codecs", "2", "--drain-timeout", "300") as service:
        works(service)
        with contextlib.ExitStack() as stack:
            for worker in service.workers("codec") + service.workers("device"):
                stack.enter_context(kept(worker))
            assert service.stop() == 0, service.tail()


# Programs that cannot be started, or are others --------------------------------------------------------

WORKERS = ("convolved-codec", "convolved-device", "convolved-http")


def replace(program, content):
    """As a package manager does it: the file that is there stays whole for those who have it open."""
    new = program.with_suffix(".new")
    new.write_bytes(content)
    new.chmod(0o755)
    new.rename(program)


def make_another_version(program):
    """The program gets another name for itself."""
    content, count = re.subn(rb"(\d+\.\d+\.\d+) \(\d+\)\0",
                             lambda found: found[0][:-3] + b"?)\0", program.read_bytes())
    assert count == 1, f"{count} versions in {program}"
    replace(program, content)


def refused_soon(service):
    service.filter(service_module.SMALL, [("box", {})], timeout=60).refused(503, "no-device")
    assert service.get("/readyz").status == 503 and service.get("/livez").status == 200


def test_no_device_program(launch, programs):
    """The search for devices has failed: requests are refused, not kept for ever."""
    (programs / "convolved-device").chmod(0o600)
    with launch("--codecs", "1").starting() as service:
        poll(lambda: "cannot start" in service.tail(), 60, "a failed start")
        refused_soon(service)
        (programs / "convolved-device").chmod(0o700)
        service.wait_ready()
        works(service)
        assert service.stop() == 0


def test_no_device(launch):
    """The process that finds none ends, and the next one is started after 5 s."""
    with launch("--codecs", "1", environment={"OCL_ICD_VENDORS": "/nowhere"}).starting() as service:
        service.says("no OpenCL device was found; next discovery in 5 s")
        first = time.monotonic()
        refused_soon(service)
        poll(lambda: not service.workers("device"), 60, "the end of the process")
        poll(lambda: service.said.count("next discovery") == 2, 60, "another discovery")
        assert time.monotonic() - first > 4
        poll(lambda: not service.workers("device"), 60, "its end")
        assert "discovery failed" not in service.said and service.restarts() == 0
        assert service.stop() == 0


def test_none_matches(launch, tmp_path):
    """Then the process that lists them ends. One that a reload wants gets a process of its own at once."""
    file = tmp_path / "conf"
    file.write_text("[workers]\ndevice=none of these\n")
    with launch("--codecs", "1", "--config", str(file)).starting() as service:
        service.says("no OpenCL device matches `device`")
        refused_soon(service)
        file.write_text("[workers]\ndevice=*\n")
        service.process.send_signal(signal.SIGHUP)
        service.wait_ready()
        works(service)
        assert len(service.workers("device")) == 1 and service.restarts() == 0
        assert service.stop() == 0


def test_device_program_goes(launch, programs, tmp_path):
    """A device that is wanted again but cannot be started is not about to come up."""
    file = tmp_path / "conf"
    file.write_text("[workers]\ndevice=*\n")
    with launch("--codecs", "1", "--config", str(file), "--job-timeout", "40") as service:
        file.write_text("[workers]\ndevice=none of these\n")
        service.process.send_signal(signal.SIGHUP)
        poll(lambda: not service.workers("device"), 60, "the device's end")
        (programs / "convolved-device").chmod(0o600)
        file.write_text("[workers]\ndevice=*\n")
        service.process.send_signal(signal.SIGHUP)
        poll(lambda: service.restarts(worker="device") >= 1, 60, "a failed start")
        refused_soon(service)
        (programs / "convolved-device").chmod(0o700)
        poll(lambda: service.get("/readyz").status == 200, 60, "/readyz")
        works(service)


def test_upgrade(launch, programs):
    """A service goes on with the programs that it began with, whatever lies in their place."""
    with launch("--codecs", "2") as service:
        works(service)
        for name in WORKERS:
            make_another_version(programs / name)
        replace(programs / "convolved", b"not a program")
        before = {*service.workers("codec"), *service.workers("device")}
        for worker in before:
            worker.kill()
        poll(lambda: service.restarts(worker="codec") == 2 and service.restarts(worker="device") == 1, 60, "restarts")
        poll(service.works, 60, "an image that passes")

        def replaced():
            return {*service.workers("codec"), *service.workers("device")} - before
        poll(lambda: len(replaced()) == 3, 60, "all workers")
        assert service.restarts(worker="codec") == 2 and service.restarts(worker="device") == 1, service.tail()


@pytest.mark.parametrize("name", WORKERS)
@pytest.mark.parametrize("change, says", [
    (pathlib.Path.unlink, "{}: No such file"), (make_another_version, "{} is of version")],
    ids=("missing", "another version"))
def test_wrong_program(launch, programs, name, change, says):
    """Without one of them there is no service, and it says once which one."""
    change(programs / name)
    with launch("--codecs", "1").starting() as service:
        assert service.process.wait(60) == 1
        assert service.tail().count(says.format(name)) == 1, service.tail()
