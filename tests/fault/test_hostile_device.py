"""Device workers that have been taken over (hostile_device.c): whatever they send, they are ended for it,
nothing that cannot be is booked, and another device serves on."""
import math
import os
import time

import numpy as np
import pytest

from service import SMALL, poll

BOX = [("box", {"size": 3})]
# Unasked acts of workers, and the messages for which they are then ended, again and again.
UNASKED = {
    "no-hello": "READY", "hello-twice": "HELLO",
    "before-ready": "OBJECTS", "ready-lanes": "READY", "ready-no-lanes": "READY", "ready-stack": "READY",
    "ready-memory": "READY", "ready-time": "READY", "ready-twice": "READY", "objects": "OBJECTS",
    "programs-back": "PROGRAMS", "choice-count": "CHOICE", "choice-none": "CHOICE", "choice-chosen": "CHOICE",
    "choice-kernel": "CHOICE", "choice-time": "CHOICE", "choice-samples": "CHOICE", "no-tile": "TILE_DONE",
    "codecs-word": "IMAGE", "descriptors": "packet", "truncated": "packet", "oversized": "packet", "tiny": "packet",
    "unknown": "packet", "flood": "OBJECTS"}
# Acts of workers that have a tile, instead of the right message about it.
OF_A_TILE = (
    "other-job", "test-job", "other-tile", "launch-times", "upload-time", "times-wrap", "kernel", "launches",
    "stack", "stack-huge", "place", "error", "error-of-others", "reason", "twice", "waits")
HARMLESS = ("names", "choice-text")


@pytest.fixture
def hostile(taken_over):
    """hostile(word...): a service with a device for each word, which its worker follows."""
    def started(*words, options=()):
        return taken_over("device", words, "--codecs", "2", *options, environment={
            "OCL_ICD_VENDORS": "pocl.icd", "POCL_DEVICES": " ".join(["basic"] * len(words))})
    return started


def devices(service):
    return service.get("/v1/devices").json()["devices"]


def check_honest(service):
    """The first device filters."""
    answer = service.filter(SMALL, BOX, device="cpu0", timeout=60)
    assert answer.status == 200 and np.shape(answer.pixels) == SMALL.shape, answer


def check_metrics(service):
    """Nothing in them is beyond what can be, but the bytes and programs that workers tell of."""
    metrics = service.metrics()
    most = {"opencl_objects": 1e6, "kernel_duration_seconds_sum": 100, "transfer_duration_seconds_sum": 100}
    for name, limit in most.items():
        assert metrics.total(f"convolved_{name}") < limit, name
    for line in service.get("/metrics").body.decode().splitlines():
        value = float(line.rpartition(" ")[2]) if line[0] != "#" else 0
        told = line.startswith(("convolved_kernel_bytes_total", "convolved_transfer_bytes_total"))
        assert math.isfinite(value) and 0 <= value and (told or value < 1e15), line


def test_unasked(hostile):
    """Each is ended, again and again, till it is quarantined; the log says what for."""
    words = ("honest", *HARMLESS, *UNASKED)
    with hostile(*words) as service:
        check_honest(service)
        assert len(devices(service)) == len(words)
        seen = set()

        def all_seen():  # one of them is always about to be tried again
            seen.update(number for number, d in enumerate(devices(service)) if d["state"] in ("quarantined", "probing"))
            return seen >= set(range(1 + len(HARMLESS), len(words)))
        poll(all_seen, 60, "the quarantine")
        for number, word in enumerate(words):
            if word in UNASKED:
                assert f"device-{number} sent an invalid {UNASKED[word]}\n" in service.said, word
        assert devices(service)[1]["name"] == "?" * 63
        assert "?" * 63 in [c["work"] for c in service.get("/v1/kernels").json()["choices"]]
        check_metrics(service)
        check_honest(service)


def test_of_a_tile(hostile):
    """Each is ended, clients without another device are told, and others are served."""
    with hostile("honest", *OF_A_TILE, options=("--quarantine-failures", "1000")) as service:
        for number, word in enumerate(OF_A_TILE, 1):
            poll(lambda: devices(service)[number]["state"] == "up", 60, word)
            answer = service.filter(SMALL, BOX, device=f"cpu{number}", timeout=60)
            if word != "twice":  # it was believed the first time
                answer.refused(500, "device-failed")
            message = "TILE_WAITS" if word == "waits" else "TILE_DONE"
            poll(lambda: f"device-{number} sent an invalid {message}\n" in service.said, 60, word)
        assert "CAN BE CHANGED" not in service.said
        check_metrics(service)
        for _ in range(5):
            check_honest(service)


@pytest.mark.parametrize("word, says, restarts", [
    ("listed-wrong", "device discovery failed: protocol\n", 0), ("listed-twice", "cpu0 is down (protocol)", 1)])
def test_list(hostile, word, says, restarts):
    """A list that goes wrong, or goes on when it has ended. A device that was on it is used."""
    with hostile(word) as service:
        assert "device-0 sent an invalid DEVICE\n" in service.said and says in service.said
        assert service.restarts() == restarts and service.restarts(worker="device", reason="protocol") == restarts
        check_honest(service)


def test_anything(hostile):
    """Random messages for some seconds: the front stands, and books nothing."""
    with hostile("honest", *["random"] * 3) as service:
        ends = time.monotonic() + float(os.environ.get("CONVOLVED_FAULT_SECONDS", "2"))
        answers = []
        while time.monotonic() < ends or len(answers) < 4:
            answers.append(service.filter(SMALL, BOX, timeout=60).status)
        assert set(answers) <= {200, 400, 500, 503}, answers
        check_metrics(service)
        check_honest(service)
