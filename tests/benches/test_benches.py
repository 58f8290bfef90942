"""The programs that measure: each of ../bench is run with tiny sizes, for it must still run; and
convolved-bench finds wrong pixels, refuses what it does not understand, and writes JSON."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from service import BUILD, ONE_DEVICE, REPOSITORY, poll

NUMBER = r"[1-9][\d.]*"


def run(*command, status=0, **environment):
    """What the program prints: (on its output, on its error output)."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                          check=False, env={**os.environ, **ONE_DEVICE, **environment})
    assert done.returncode == status, (done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout, done.stderr


@pytest.fixture(scope="session")
def bench(cache):
    """bench(*options, status=0) runs convolved-bench on one small image."""
    def bench_with(*options, status=0, **environment):
        return run(BUILD / "convolved-bench", "--iterations", 2, "--warmup", 0, "--pixels", "u8",
                   "--width", 300, "--height", 200, "--cache-dir", cache, *options, status=status,
                   **environment)
    return bench_with


@pytest.fixture(scope="session")
def home(tmp_path_factory, cache):
    """A home with the tests' cache in it."""
    directory = tmp_path_factory.mktemp("home")
    (directory / ".cache").mkdir()
    (directory / ".cache" / "convolved").symlink_to(cache)
    return directory


def python(home, name, *options, **environment):
    return run(sys.executable, REPOSITORY / "tests/bench" / name, *options, HOME=str(home),
               CONVOLVED_BUILD=str(BUILD), **environment)[0]


def test_json(bench):
    """Of every device an object, of every variant a row."""
    device = json.loads(bench("--json", "--filter", "sobel", "--variant", "gradient", "--verify")[0])
    row, = device["results"]
    assert (row["variant"], row["width"], row["height"], row["taps"]) == ("gradient", 300, 200, 9)
    assert row["verified"] and row["verified_samples"] == 300 * 200
    assert device["copy_bytes_per_second"] > 1e7 and 0 < row["median_seconds"] < 60 and row["runs"] >= 2


def test_compiled_as_in_the_service(bench, tmp_path):
    """PoCL compiles no kernel a second time for the local size of its launches."""
    bench("--filter", "box=size=3", "--variant", "separable", POCL_CACHE_DIR=str(tmp_path))
    programs = [path.parent.name for path in tmp_path.rglob("separable.so")]
    assert programs and set(programs) == {"0-0-0"}


def test_outlives_its_terminal(cache):
    """With nohup it is not ended by a hangup."""
    going = subprocess.Popen([BUILD / "convolved-bench", "--budget", "2", "--iterations", "10000", "--pixels",
                              "u8", "--width", "300", "--height", "200", "--filter", "box=size=3",
                              "--variant", "separable", "--cache-dir", cache, "--json"],
                             env={**os.environ, **ONE_DEVICE}, stdout=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    poll(lambda: len(os.listdir(f"/proc/{going.pid}/task")) > 1, 60, "threads of its driver")
    going.send_signal(signal.SIGHUP)
    assert json.loads(going.communicate(timeout=60)[0])["results"]
    assert going.returncode == 0


def test_table(bench):
    text = bench("--filter", "box=size=3", "--variant", "separable")[0]
    assert re.search(rf"copy {NUMBER} ms|copy 0\.\d+ ms", text)
    assert re.search(r"^  separable +.* right, 0$", text, re.M)


def test_wrong_pixel(bench, tmp_path):
    """One wrong pixel of 60,000 is found."""
    shutil.copytree(REPOSITORY / "kernels", tmp_path / "kernels")
    kernel = tmp_path / "kernels/general/gradient.cl"
    store = "pixel_store(result, TARGET_ROW(y + r) + at, width);"
    assert store in kernel.read_text()
    kernel.write_text(kernel.read_text().replace(
        store, "if (y + r == 101 && at == 160) result.s3 = result.s3 > 100 ? 0 : 200; " + store))
    row, = json.loads(bench("--kernel-dir", tmp_path / "kernels", "--filter", "sobel", "--verify",
                            "--variant", "gradient", "--json", status=1)[0])["results"]
    assert not row["verified"] and row["max_difference"] >= 100


@pytest.mark.parametrize("option, value, says", [
    ("--width", "0", "1 to 65536"), ("--height", "1x", "1 to 65536"), ("--iterations", "-1", "1 to 10000"),
    ("--budget", "0", "above 0"), ("--type", "tpu", "all, cpu, gpu"), ("--pixels", "u9", "u8, u16 or f32"),
    ("--pixels", "u8x5", "x1 to x4"), ("--filter", "box=size=4", "size"), ("--filter", "blur", "blur"),
    ("--filter", "sobel,box", "one filter"), ("--variant", "fastest", "--list"),
    ("--source-roi", "1,2,3", "X,Y,WIDTH,HEIGHT"), ("--target-roi", "0,0,3,3", "--source-roi"),
])
def test_refused(bench, option, value, says):
    error = bench(option, value, status=2)[1]
    assert error.startswith(f"convolved-bench: {option}") and says in error


def test_no_device(bench):
    assert "no such OpenCL device" in bench("--device", "abacus", status=1)[1]


def test_scheduler():
    head, *rows = run(BUILD / "bench_scheduler", 1, 20)[0].splitlines()
    assert head.endswith("(ns a tile)")
    assert [row.split()[0] for row in rows] == ["1", "20"]
    assert all(re.fullmatch(NUMBER, cell) for row in rows for cell in row.split()[1:])


def test_engine(cache, tmp_path):
    text = run(BUILD / "bench_engine", "-s", 1, "-n", 2, "-i", "64x64x1:u8", "-f", "box=size=3", "--",
               "--cache-dir", cache, "--state-dir", tmp_path)[0]
    assert re.search(rf"^1 devices, box=size=3, 64x64x1:u8, 2 streams: {NUMBER} images/s", text, re.M)


def test_load(home):
    text = python(home, "load.py", "--seconds", "0.3", "--rounds", "1", "--side", "64")
    for name in ("closed", "0.5 x", "1 x", "3 x"):
        assert re.search(rf"^{name} +{NUMBER} +{NUMBER}/s", text, re.M), text


def test_service(home):
    figures = json.loads(python(home, "service.py", "--side", "256", "--rounds", "1", "--seconds", "1",
                                "--json"))
    assert figures["large"]["sigma 10"]["service_seconds"] > 0
    assert figures["small"]["requests_per_second"] > 0
    assert 0 < figures["first_answer"]["warm_seconds"] and 0 < figures["first_answer"]["empty_seconds"]
    assert figures["while_compiling"]["to_warm"] > 0
    assert 0 < figures["recovery"]["killed_seconds"] and 0 < figures["recovery"]["stopped_seconds"]
    assert figures["time_left_to_taken"] >= 0
    assert any(name.startswith("convolved-codec") for name in figures["idle_pss_bytes"])


def test_thumbnail(home):
    text = python(home, "thumbnail.py", "64", CASES="tall", COUNT="10")
    assert re.search(r"^64x64, alone: p50 [\d.]+ ms", text, re.M)
    assert re.search(r"^64x64, beside tall: p50 [\d.]+ ms", text, re.M)
