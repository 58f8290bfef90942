"""The client beside the service of ../http, and beside servers that answer as a test wants."""
import os
import subprocess
import threading

import pytest

import service as service_module
import store as store_module
from client import fill, ppm


@pytest.fixture(scope="session")
def service(tmp_path_factory, cache):
    """A service that listens on a Unix socket too, at `unix`."""
    directory = tmp_path_factory.mktemp("service")
    started = service_module.Service(directory, cache, "--listen", f"unix:{directory}/socket",
                                     environment={**service_module.UNDER_TEST, **service_module.ONE_DEVICE})
    started.unix = f"unix:{directory}/socket"
    with started:
        yield started


@pytest.fixture
def stalling(server):
    """A server that sends the first half of results with 100000 bytes."""
    end = threading.Event()

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        handler.wfile.write(b"x" * 50000)
        handler.wfile.flush()
        end.wait(60)

    yield server(answer)
    end.set()


@pytest.fixture
def store():
    """An object store with the buckets `from` and `into`."""
    with store_module.Store() as started:
        yield started


@pytest.fixture(scope="session")
def failing(tmp_path_factory):
    """Environment variables with which calls of the C library fail as FAIL says."""
    library = tmp_path_factory.mktemp("preloaded") / "fail.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library,
                    os.path.join(os.path.dirname(__file__), "fail.c"), "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0"}


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "in.ppm"
    path.write_bytes(ppm())
    return path


@pytest.fixture
def tree(tmp_path):
    """A directory with images in directories, and with files that are not to be taken."""
    root = fill(tmp_path / "images", "a.ppm", "b.PPM", "sub/a.ppm", "sub/deep/c d.ppm")
    for name in ("notes.txt", ".hidden.ppm", ".git/d.ppm"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b"x")
    return root
