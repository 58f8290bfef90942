"""The program as its administrator starts it: flags, configuration file, sockets, signals."""
import pathlib
import signal
import subprocess

import pytest

import imagefiles
from pixels import random_pixels
from service import BUILD, PATIENCE, Service, children, poll, request_head

PNG = imagefiles.write_png(random_pixels(1, 30, 20, 3, "u8"))


@pytest.mark.parametrize("kind", ["codec", "device", "http", "trace"])
def test_worker_by_hand(kind):
    done = subprocess.run([BUILD / f"convolved-{kind}"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and "started by convolved" in done.stderr


def test_restart_over_an_old_socket(tmp_path, launch):
    """A socket file that a killed service left does not keep the next from starting."""
    path = tmp_path / "socket"
    first = launch("--listen", f"unix:{path}").start()
    first.kill()
    assert path.exists()
    with launch("--listen", f"unix:{path}") as second:
        assert second.post("/v1/filters/box", PNG).status == 200


def test_port_in_use(launch, shared):
    """Said, with the address, instead of a service that nobody can reach."""
    with launch("--listen", f"{shared.host}:{shared.port}").starting() as other:
        assert other.process.wait(60) not in (0, -6, -11)
        other.says(str(shared.port))


def test_interrupted(launch):
    with launch("--codecs", "1") as service:
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(60) == 0, service.tail()


def test_ends_soon_after_clients_that_left(launch):
    """The drain waits for work, not for clients that broke off in the middle of a body."""
    with launch("--codecs", "1") as service:
        for _ in range(200):
            with service.socket() as connection:
                connection.sendall(request_head("/v1/filters/box", "Content-Length: 500000"))
                connection.sendall(b"x" * 100)
        assert service.stop(60) == 0


def test_inherited_signals(launch):
    """Signals that the parent ignored or blocked still work: for ended workers, and to end."""
    service = launch("--codecs", "1")
    service.arguments[:0] = ["env", "--ignore-signal", "--block-signal=CHLD,TERM"]
    with service:
        worker = service.workers("codec")[0]
        worker.kill()
        poll(lambda: not pathlib.Path(f"/proc/{worker.pid}").exists(), 60, "the worker reaped")
        assert poll(service.works)
        assert service.restarts() == 1


def test_machine_just_booted(launch):
    """It is ready although no time to wait for has passed since the clock began."""
    service = launch("--codecs", "1", "--canary-interval", "3600")
    up = int(float(pathlib.Path("/proc/uptime").read_text().split()[0])) - 5
    if subprocess.run(["unshare", "--time", "true"], check=False).returncode:
        pytest.skip("no clock of its own can be made")
    service.arguments[:0] = ["unshare", "--time", "--fork", f"--monotonic=-{up}", f"--boottime=-{up}"]
    with service:
        children(service.process.pid)[0].kill(signal.SIGTERM)
        assert service.process.wait(60) == 0


@pytest.mark.parametrize("line, found", [
    ("convolved: info: listening", False),
    ("==7==ERROR: LeakSanitizer: detected memory leaks", True),
    ("==7==ERROR: AddressSanitizer: heap-use-after-free", True),
    ("WARNING: ThreadSanitizer: data race", True),
    ("tile.c:9:3: runtime error: division by zero", True),
])
def test_sanitizer_report(tmp_path, line, found):
    """A test fails if a sanitizer ended one of its service's workers, although another took over."""
    service = Service(tmp_path, tmp_path)
    service.log.write_text(f"convolved: info: started\n{line}\nconvolved: info: cpu0 is up\n")
    assert bool(service.sanitizer_report()) == found


def test_no_home(launch):
    """No other directory than the cache's is needed: no home, no temporary files."""
    nowhere = {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}
    with launch("--codecs", "1", environment=nowhere) as service:
        assert service.post("/v1/filters/gaussian", PNG).status == 200
