"""Rights that workers have given up, as the kernel shows it."""
import pathlib
import re

import numpy as np
import pytest

from fixtures import service_with
from service import (LISTENING, ONE_DEVICE, Process, free_port, poll, raw_kind, read_answer,
                     request_head, sanitized)


def status(task):
    text = Process(task).read("status")
    return dict(re.findall(r"^(\w+):\s+(.*)$", text, re.M))


# It has a worker that speaks with a collector, too.
traced = service_with("--otlp-endpoint", f"http://127.0.0.1:{free_port()}", "--log-level", "debug",
                      environment=ONE_DEVICE)


@pytest.mark.parametrize("kind", ["codec", "device", "http", "trace"])
def test_every_thread_is_confined(traced, kind):
    """No thread of a worker has been left out, not those of libraries either."""
    assert traced.works()
    traced.rest()
    for worker in poll(lambda: traced.workers(kind), 60, kind):
        for task in pathlib.Path(f"/proc/{worker.pid}/task").iterdir():
            found = status(f"{worker.pid}/task/{task.name}")
            assert found["NoNewPrivs"] == "1"
            assert found["Seccomp"] == ("0" if sanitized() else "2")
            if kind != "device":
                assert int(found["CapEff"], 16) == int(found["CapPrm"], 16) == 0
        assert re.search(r"Max core file size +0 +0 ", worker.read("limits"))
    assert sanitized() or re.search(rf"{kind}.*: confined: seccomp, (no )?Landlock", traced.said)


def test_devices_may_be_left_as_they_are(launch_one):
    """A driver may need the rights that are taken: it is said in the log, not done in silence."""
    with launch_one("--confine-devices", "no") as service:
        assert service.works()
        worker, = service.workers("device")
        assert status(worker.pid)["Seccomp"] == status(service.process.pid)["Seccomp"]
        log = service.log.read_text()
        assert "not confined" in log and " confined: " not in log


def test_listening_sockets_have_numbers_of_their_own(service):
    """A worker may change descriptors of a higher number: connections, not the front's."""
    with service.socket() as connection:
        for worker in service.workers("http"):
            listening = service.sockets(LISTENING)
            found = worker.descriptors
            shared = [number for number, target in found.items() if target in listening]
            assert shared and max(shared) < 64, found
            assert all(number in found for number in range(64)), "a client would get one of these"
        connection.sendall(request_head("/livez", method="GET"))
        assert read_answer(connection).status == 200


def test_drain_with_a_request_under_way(launch_one):
    """Nothing that comes after the listening sockets are closed gets their numbers."""
    pixels = np.zeros((1000, 1000, 3), np.uint8)
    with launch_one("--http-workers", "1") as service:
        with service.socket() as connection:
            connection.sendall(request_head(f"/v1/filters/box?raw={raw_kind(pixels)}&format=raw",
                                    f"Content-Length: {pixels.nbytes}"))
            listening = service.sockets(LISTENING)
            worker, = service.workers("http")
            service.process.terminate()
            poll(lambda: not listening & set(worker.descriptors.values()), 60, "the drain")
            assert all(number in worker.descriptors for number in range(64))
            connection.sendall(pixels.tobytes())
            assert read_answer(connection).pixels.shape == pixels.shape
