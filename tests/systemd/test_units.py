"""The units in a booted systemd: what an administrator does to the service, and what befalls it."""
import contextlib
import ctypes
import os
import pathlib
import re
import stat
import socket
import threading
import time

import numpy as np
import pytest
from PIL import Image

import imagefiles
import oracle
from clients import Clients
from collector import Collector
from command import hashed
from jobs import submit
from pixels import random_pixels
from service import Client, agent_says, configuration, hurry, poll, raw_kind, read_answer, request_head, target_of

FILTERS = [("box", {"size": 3})]
SOCKET = "/run/convolved/convolved.sock"
SMALL = [random_pixels(seed, 60 + 30 * seed, 80, 3, "u8") for seed in range(3)]


def check_answer(client):
    answer = client.filter(SMALL[0], FILTERS)
    oracle.check(answer.pixels, oracle.filtered(SMALL[0], FILTERS))
    return answer


@pytest.fixture
def running(machine):
    """The machine with the service up, whatever a test before has left."""
    machine.systemctl("start", "convolved.service")
    poll(lambda: machine.get("/readyz").status == 200, what="/readyz", interval=0.2)
    return machine


def test_valid(machine):
    """Nothing in the units is unknown to systemd."""
    result = machine.run("systemd-analyze", "verify", "--man=no", "convolved.service",
                         "convolved.socket")
    assert result == ""


def test_activation(machine):
    """The sockets are there from boot on; who first connects starts the service."""
    assert machine.show("ActiveState", "convolved.socket") == "active"
    assert machine.show("ActiveState") == "inactive"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(machine.path(SOCKET)))
        connection.sendall(request_head("/livez", method="GET"))
        assert read_answer(connection).status == 200
    assert machine.show("ActiveState") == "active"
    assert machine.get("/livez").status == 200
    text = machine.journal_text()
    assert "listening on 127.0.0.1:8700, passed by systemd" in text
    assert f"listening on unix:{SOCKET}, passed by systemd" in text
    mode = machine.path(SOCKET).stat()
    assert mode.st_mode & 0o777 == 0o660
    assert mode.st_gid == machine.path("/var/lib/convolved").stat().st_gid != 0


def test_answers(running):
    """Within its bounds it compiles, filters, decodes and encodes; and says so."""
    check_answer(running)
    answer = running.filter_when_compiled(SMALL[0], FILTERS, variant="conv_naive")  # it has none in a cache
    oracle.check(answer.pixels, oracle.filtered(SMALL[0], FILTERS))
    png = imagefiles.write_png(SMALL[1])
    assert np.array_equal(running.decoded(png), SMALL[1])
    assert running.identity(png, format="jpeg").type == "image/jpeg"
    device, = running.get("/v1/devices").json()["devices"]
    assert device["memory_bytes"] > 1 << 26
    poll(lambda: running.show("StatusText").startswith("1 of 1 devices up, "), what="STATUS=", interval=0.2)


def test_confined(running):
    """No process of it has a privilege, a device or a network, nor may it write elsewhere."""
    processes = running.processes()
    assert {"convolved", "convolved-codec", "convolved-devic", "convolved-http"} <= processes.keys()
    for process in sum(processes.values(), []):
        status = dict(line.split(":\t", 1) for line in process.read("status").splitlines())
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0, status
        assert "0" not in status["Uid"].split(), status
        for space in "net", "mnt", "user":
            assert os.readlink(f"/proc/{process.pid}/ns/{space}") != os.readlink(
                f"/proc/{running.leader}/ns/{space}"), (process.name, space)
        devices = {entry.name for entry in running.path("/dev", process.pid).iterdir()
                   if stat.S_IFMT(entry.lstat().st_mode) in (stat.S_IFCHR, stat.S_IFBLK)}
        assert devices <= {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}, devices
        writable = [line.split()[4] for line in process.read("mountinfo").splitlines()
                    if line.split()[5].startswith("rw") and line.split()[4].startswith(
                        ("/etc", "/usr", "/boot", "/root", "/home"))]
        assert writable == [], writable
    for directory in ("/var/lib/convolved", "/var/cache/convolved"):
        assert running.path(directory).stat().st_mode & 0o777 == 0o700


def test_landlock(running):
    """The unit's filter lets workers of all kinds enter Landlock, if the kernel has it."""
    create_ruleset, ask_version = 444, 1
    version = max(ctypes.CDLL(None).syscall(create_ruleset, None, 0, ask_version), 0)
    text = f"seccomp, Landlock {version}" if version else "seccomp, no Landlock: 0"
    since = running.position()
    with configured(running, "log-level=debug", "restart"):
        for kind in "codec", "http", "device":
            running.says(f"convolved-{kind}: confined: {text}", since)


def test_journal(running):
    """Entries say in fields which job, request and device they are about, and how long it took."""
    good = check_answer(running)
    bad = running.identity(imagefiles.write_png(SMALL[1])[:200])
    assert bad.status == 422
    fields = {}
    for answer in good, bad:
        entry, = poll(lambda: running.journal(
            f"CONVOLVED_REQUEST_ID={answer.headers['X-Request-Id']}"), 60, "the entry", 0.2)
        fields[answer.status] = entry
        assert entry["PRIORITY"] == "6" and entry["SYSLOG_IDENTIFIER"] == "convolved"
        assert entry["_SYSTEMD_UNIT"] == "convolved.service"
        assert int(entry["CONVOLVED_JOB"]) > 0
        assert 0 < int(entry["CONVOLVED_DURATION_USEC"]) < 60e6
        assert entry["CONVOLVED_STATUS"] == str(answer.status)
    assert fields[200]["CONVOLVED_DEVICE"] == "cpu0" and "CONVOLVED_ERROR" not in fields[200]
    assert fields[422]["CONVOLVED_ERROR"] == bad.problem["type"].rpartition("/")[2]
    assert f"job {fields[200]['CONVOLVED_JOB']} is done" in fields[200]["MESSAGE"]
    up = [entry for entry in running.journal("CONVOLVED_DEVICE=cpu0") if
          "cpu0 is up" in entry["MESSAGE"]]
    assert up and int(up[-1]["CONVOLVED_DURATION_USEC"]) > 0
    # The workers' lines have their level, too.
    assert any(entry["MESSAGE"].startswith("convolved-device: ") and entry["PRIORITY"] == "6"
               for entry in running.journal("_SYSTEMD_UNIT=convolved.service"))


def configure(machine, text):
    machine.configuration.write_text(configuration(text))


@contextlib.contextmanager
def configured(machine, text, command="reload"):
    """The service has this configuration meanwhile, by a reload or a restart."""
    configure(machine, text)
    try:
        machine.systemctl(command, "convolved")
        yield
    finally:
        configure(machine, "")
        machine.systemctl(command, "convolved")


def test_reload(running):
    """Changes count at once; invalid ones fail the reload, and metrics say so. It goes on."""
    before, since = running.main_pid, running.position()
    with configured(running, "spool-size=0"):
        running.says("spool-size: 64M -> 0", since)
        running.says("the configuration has been read again", since)
        check_answer(running)  # now through files in the cache directory
        since = running.position()
        configure(running, "max-jobs=none")
        assert running.systemctl_fails("reload", "convolved")
        running.says("the configuration stays as it was", since)
        # lines of the service, and of the failed command
        words = poll(lambda: len(found := [m for m in running.messages(since) if "max-jobs=none" in m]) > 1
                     and found, 60, "two messages", 0.2)
        assert len(words) == 2, words
        poll(lambda: running.show("ActiveState") == "active", 60, "READY=1")
        assert running.total("convolved_config_last_reload_successful") == 0
        check_answer(running)
    assert running.main_pid == before


def test_restart_under_load(running):
    """The socket keeps those who connect meanwhile: nobody is refused."""
    with Clients(running, SMALL, FILTERS, 3) as clients:
        for _ in range(3):
            before = running.main_pid
            clients.more(5)
            running.systemctl("restart", "convolved")
            assert running.main_pid != before
        clients.more(5)
    assert not clients.problems, (clients.problems[:3], running.journal_text())
    assert running.show("Result") == "success"
    assert running.show("NRestarts") == "0"


def test_durable(running):
    """Asynchronous jobs are kept, where nobody else gets."""
    job = submit(running, SMALL[0], FILTERS)
    result = running.get(f"{job}/result?wait=300")
    assert result.status == 200
    files = running.path("/var/lib/convolved/jobs")
    owner = running.path("/var/lib/convolved").stat().st_uid
    assert stat.S_IMODE(files.stat().st_mode) == 0o700
    names = {file.name for file in files.iterdir()}
    assert names >= {"jobs.db", f"{job.rpartition('/')[2]}.result"}
    for file in files.iterdir():
        assert (stat.S_IMODE(file.stat().st_mode), file.stat().st_uid) == (0o600, owner), file
    running.systemctl("restart", "convolved.service")
    again = running.get(f"{job}/result")
    assert (again.status, again.body) == (200, result.body), running.journal_text()
    assert running.request("DELETE", job).status == 204


def test_killed(running):
    """A front that is killed is started again, its workers end, and who waits is served."""
    before, workers = running.main_pid, running.processes()
    since = running.position()
    running.run("kill", "-KILL", str(before))
    # One that has not noticed yet may still accept a connection.
    poll(lambda: not any(worker.alive for worker in workers["convolved-http"]), 60,
         "the end of HTTP workers", 0.01)
    check_answer(running)
    assert running.main_pid not in (0, before)
    assert running.show("NRestarts") == "1"
    running.says("status=9/KILL", since)
    left = set(sum(workers.values(), [])) & set(sum(running.processes().values(), []))
    assert not left, left


@contextlib.contextmanager
def drop_in(machine, text):
    """The service is started again with this in addition, and in the end again without it."""
    file = machine.path("/run/systemd/system/convolved.service.d/test.conf")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    try:
        machine.systemctl("daemon-reload")
        machine.systemctl("restart", "convolved")
        yield
    finally:
        file.unlink()
        machine.systemctl("daemon-reload")
        machine.systemctl("restart", "convolved")


def test_watchdog(running):
    """It does not bite while the loop turns, and bites when that stands still."""
    with drop_in(running, "[Service]\nWatchdogSec=6\n"):
        before, since = running.main_pid, running.position()
        check_answer(running)
        time.sleep(7)
        assert running.main_pid == before
        running.run("kill", "-STOP", str(before))
        running.says("Watchdog timeout (limit 6s)!", since)
        check_answer(running)
        assert running.main_pid not in (0, before)
        assert running.show("NRestarts") == "1"


@contextlib.contextmanager
def memory_limit(machine, size):
    """The service gets so much memory in addition; without the unified hierarchy in a group of
    this system, as the machine's systemd has no say about memory there."""
    groups = pathlib.Path("/sys/fs/cgroup/memory")
    if not groups.is_dir():
        used = int(machine.show("MemoryCurrent"))
        with drop_in(machine, f"[Service]\nMemoryMax={used + size}\n"):
            poll(lambda: machine.get("/readyz").status == 200, 60, "/readyz", 0.2)
            yield
        return
    group = groups / f"convolved-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(size))
        for process in sum(machine.processes().values(), []):
            (group / "cgroup.procs").write_text(str(process.pid))
        yield
    finally:
        machine.systemctl("restart", "convolved")  # which begins in its own group
        poll(lambda: not (group / "cgroup.procs").read_text(), 60, "an empty group")
        group.rmdir()


def test_out_of_memory(running):
    """The kernel takes decoders first, whoever is larger; the service goes on."""
    check_answer(running)
    before, devices = running.main_pid, running.processes()["convolved-devic"]
    restarted = running.total("convolved_worker_restarts_total", worker="device")
    assert running.show("OOMPolicy") == "continue"
    for name, score in (("convolved", 0), ("convolved-codec", 800), ("convolved-devic", 200),
                        ("convolved-http", 400)):
        for process in running.processes()[name]:
            assert int(process.read("oom_score_adj")) == score, name
    # Small as a file; the coefficients take six bytes a pixel.
    image = imagefiles.written(Image.new("RGB", (6000, 6000)), "JPEG", progressive=True, subsampling=0)
    with memory_limit(running, 150 << 20):
        answer = running.identity(image)
        assert answer.status in (422, 503), answer
        metrics = running.metrics()
        assert metrics.total("convolved_worker_restarts_total", worker="codec", reason="killed") > 0
        assert metrics.total("convolved_worker_restarts_total", worker="device") == restarted
        check_answer(running)
        assert running.processes()["convolved-devic"] == devices
        assert running.main_pid == before
        assert (running.show("ActiveState"), running.show("NRestarts")) == ("active", "0")


@pytest.fixture
def more_sockets(running):
    """The examples of further socket units, enabled as their texts say."""
    names = ["convolved-metrics.socket", "convolved-agent.socket"]
    for name in names:
        example, = running.installed.rglob(f"examples/{name}")
        running.path(f"/etc/systemd/system/{name}").write_text(example.read_text())
    running.systemctl("daemon-reload")
    running.systemctl("enable", *names)
    running.systemctl("restart", "convolved")
    yield names
    running.systemctl("disable", *names)
    running.systemctl("stop", *names, "convolved.service")
    for name in names:
        running.path(f"/etc/systemd/system/{name}").unlink(missing_ok=True)
    running.systemctl("daemon-reload")


def others_answer():
    other = Client("127.0.0.1", 9700)
    assert other.get("/livez").status == 200
    assert b"convolved_build_info" in other.get("/metrics").body
    assert agent_says("127.0.0.1", 9702).startswith("ready up ")


def test_more_sockets(running, more_sockets):
    """They are served beside the first, and come back with the service."""
    others_answer()
    check_answer(running)
    running.systemctl("stop", *more_sockets, "convolved.socket", "convolved.service")
    assert all(Client("127.0.0.1", port).refuses() for port in (8700, 9700, 9702))
    running.systemctl("start", "convolved")
    others_answer()
    check_answer(running)


def test_journal_that_hangs(running):
    """Nobody waits for it; what it did not take is counted, and said when it is back."""
    since = running.position()
    with configured(running, "log-level=debug"):
        running.says("the configuration has been read again", since)
        journal, = running.processes("systemd-journal")["systemd-journal"]
        with journal.stopped():
            connection = running.connect(20)

            def more_is_lost():
                for _ in range(1000):
                    connection.request("GET", "/" + "x" * 900)
                    assert connection.getresponse().read()
                return running.total("convolved_log_lines_lost_total", process="front")
            poll(more_is_lost, 120, "more than fits into any buffer")
    poll(lambda: any(re.match(r"\d+ lines of the log were lost", message)
                     for message in running.messages(since)), 60, "the gap", 0.5)


def test_otlp_drop_in(running):
    """With it the service reaches a collector on this host, which the unit forbids without."""
    example, = running.installed.rglob("examples/convolved.service.d/otlp.conf")
    trace = os.urandom(16).hex()
    with Collector() as collector:
        endpoint = f"Environment=CONVOLVED_OTLP_ENDPOINT={collector.endpoint}\n"
        for allowed in "[Service]\n", example.read_text():
            with drop_in(running, allowed + endpoint):
                since = running.position()
                answer = running.post("/v1/filters/box", imagefiles.write_png(SMALL[0]), headers={
                    "traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
                assert answer.status == 200
                if allowed == "[Service]\n":
                    running.says("the collector does not answer", since)
                    assert not collector.requests
                else:
                    poll(lambda: "request" in collector.of(trace), 60, "spans")


def test_gpu_drop_in(running):
    """It is valid, has devices and their nodes' groups, and waits for the drivers' own service."""
    example, = running.installed.rglob("examples/convolved.service.d/gpu.conf")
    drivers = running.path("/run/systemd/system/nvidia-persistenced.service")
    drivers.write_text("[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sleep 1\n")
    try:
        with drop_in(running, example.read_text()):
            test_valid(running)
            check_answer(running)
            assert running.show("PrivateDevices") == "no"
            groups = {running.run("getent", "group", name).split(":")[2]
                      for name in ("video", "render")}
            worker, = running.processes()["convolved-devic"]
            shown = worker.read("status")
            assert groups <= set(re.search(r"^Groups:\s(.*)$", shown, re.M)[1].split()), shown
            ready = int(running.show("ExecMainExitTimestampMonotonic", drivers.name))
            assert 0 < ready <= int(running.show("ExecMainStartTimestampMonotonic"))
    finally:
        drivers.unlink()
        running.systemctl("daemon-reload")


def test_not_valid(running, more_sockets):
    """It is tried once, and its sockets are closed; starting it again opens them."""
    sockets = ["convolved.socket", *more_sockets]
    running.systemctl("stop", "convolved.service")
    since = running.position()
    configure(running, "max-jobs=none")
    try:
        waiting = [socket.create_connection((host, port), timeout=60)
                   for host, port in [("127.0.0.1", 8700), ("127.0.0.1", 9700)] * 5]
        poll(lambda: running.show("ActiveState") == "failed", 60, "failed")
        for port in 8700, 9700:
            poll(Client("127.0.0.1", port).refuses, 60, "a closed socket")
        for connection in waiting:
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
            connection.close()
        running.says("max-jobs=none", since)
        assert len([m for m in running.messages(since) if "max-jobs=none" in m]) == 1
        assert (running.show("Result"), running.show("ExecMainStatus")) == ("exit-code", "78")
        assert running.show("NRestarts") == "0"
        for unit in sockets:
            assert (running.show("ActiveState", unit), running.show("Result", unit)) == (
                "inactive", "success"), unit
        assert running.systemctl_fails("start", "convolved")  # and again, for as long as it is
        configure(running, "")
        running.systemctl("start", "convolved")
        for unit in sockets:
            assert running.show("ActiveState", unit) == "active", unit
        assert running.show("ActiveState", "convolved-closed.target") == "inactive"
        others_answer()
        check_answer(running)
    finally:
        configure(running, "")


def test_credentials(running):
    """A reload's check sees the service's secrets: without tokens the address would be an error."""
    store = running.path("/etc/credstore")
    store.mkdir(exist_ok=True)
    try:
        (store / "convolved.tokens").write_text(f"[alice]\n{hashed('a-token-of-some-length')}")
        running.systemctl("restart", "convolved")
        since = running.position()
        with configured(running, "listen=0.0.0.0:8701"):
            running.says("the configuration has been read again", since)
    finally:
        (store / "convolved.tokens").unlink()
        running.systemctl("restart", "convolved")


@pytest.fixture
def hurried(running):
    """The service with a unit that has less patience than the drain limit."""
    configure(running, "drain-timeout=600")  # for a busy machine
    with drop_in(running, "[Service]\nTimeoutStopSec=1\n"):
        poll(lambda: running.get("/readyz").status == 200, 60, "/readyz", 0.2)
        yield running
    configure(running, "")


def test_stop(hurried):
    """Accepted requests are finished, then everything is gone, sockets too."""
    running, body = hurried, SMALL[0].tobytes()
    target = target_of(FILTERS, raw=raw_kind(SMALL[0]), format="raw")
    with running.socket() as client:
        head = request_head(target, f"Content-Length: {len(body)}").replace(b"Host: x", b"Host: localhost")
        client.sendall(head + body[:-1])
        poll(lambda: running.total("convolved_spool_memory_bytes") >= len(body), 60, "the request")
        since = running.position()
        stop = threading.Thread(target=running.systemctl, args=("stop", "convolved.socket", "convolved.service"))
        stop.start()
        stop.join(3)
        assert stop.is_alive(), "the unit's patience is at an end"
        client.sendall(body[-1:])
        answer = read_answer(client)
    while stop.is_alive():  # without, a compiler may take longer to die than systemd waits here
        for compiler in running.processes("convolved-compi").get("convolved-compi", []):
            hurry(compiler)
        stop.join(0.1)
    assert answer.status == 200, (answer, running.messages(since))
    oracle.check(answer.pixels, oracle.filtered(SMALL[0], FILTERS))
    running.says("Stopped convolved.service", since)
    messages = "\n".join(running.messages(since))
    assert re.search(r"stopping: [1-9]\d* requests to finish", messages), messages
    assert "stopped\n" in messages and "Deactivated successfully" in messages, messages
    assert running.show("Result") == "success"
    assert not running.processes()
    assert not running.path(SOCKET).exists()
    assert running.refuses()
