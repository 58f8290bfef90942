"""The service's messages to whoever started it, word by word (sd_notify(3)); and the log as JSON."""
import json
import re
import signal
import socket
import time

import pytest

from service import ONE_DEVICE, Service, poll


class Listener:
    """The manager's end of NOTIFY_SOCKET."""

    def __init__(self, path):
        self.path, self.notes = str(path), []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)

    def read(self):
        """Returns all notes so far, each a list of its lines."""
        while True:
            try:
                self.notes.append(self.socket.recv(4096).decode().splitlines())
            except BlockingIOError:
                return self.notes

    def awaits(self, first, since=0):
        """Waits for a note that begins so; returns its place and its lines."""
        def found():
            return [(i, note) for i, note in enumerate(self.read())
                    if i >= since and note[0].startswith(first)]
        return poll(found, 60, first)[0]


@pytest.fixture
def told(tmp_path, cache):
    """A service that tells this listener, and wants to feed a watchdog of 0.8 s."""
    listener = Listener(tmp_path / "notify")
    environment = {**ONE_DEVICE, "NOTIFY_SOCKET": listener.path, "WATCHDOG_USEC": "800000"}
    service = Service(tmp_path, cache, "--log-format", "json", "--config", str(tmp_path / "conf"),
                      environment=environment)
    (tmp_path / "conf").write_text("")
    service.listener = listener
    service.start(ready=False)
    yield service
    service.kill()
    listener.socket.close()


def test_notes(told):
    listener, began = told.listener, time.monotonic()
    at, _ = listener.awaits("READY=1")
    assert listener.read()[:at] == [], "nothing comes before READY=1"
    _, status = listener.awaits("STATUS=")
    assert re.fullmatch(r"STATUS=\d of \d devices up, \d+ jobs \(\d+ tiles waiting\), "
                        r"\d+\.\d images/s", status[0]), status
    first, _ = listener.awaits("WATCHDOG=1")
    listener.awaits("WATCHDOG=1", first + 1)

    for text in ("", "not valid"):
        (told.directory / "conf").write_text(text)
        since, before = len(listener.read()), time.monotonic()
        told.process.send_signal(signal.SIGHUP)
        at, note = listener.awaits("RELOADING=1", since)
        assert len(note) == 2, note
        moment = int(re.fullmatch(r"MONOTONIC_USEC=(\d+)", note[1])[1]) * 1e-6
        assert before <= moment <= time.monotonic()
        listener.awaits("READY=1", at + 1)

    since = len(listener.read())
    assert told.stop() == 0
    _, note = listener.awaits("STOPPING=1", since)
    assert note[1] == "EXTEND_TIMEOUT_USEC=45000000"  # the drain limit's 30 s, and some
    statuses = [note for note in listener.read() if note[0].startswith("STATUS=")]
    assert all(a != b for a, b in zip(statuses, statuses[1:])), "it comes when something has changed"
    assert len(statuses) <= 2 + time.monotonic() - began, "and at most once a second"
    for line in told.said.splitlines():
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", json.loads(line)["time"]), line
