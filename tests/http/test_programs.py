"""Compiled programs: when they are made, by which process, and the directory of them."""
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

import oracle
from pixels import random_pixels
from service import QUICK_COMPILER, REPOSITORY, children, hurry, poll

PIXELS = random_pixels(1, 400, 300, 3, "u8")
GAUSSIAN = [("gaussian", {"sigma": 2})]
# The general programs: one of each file and type of pixels. A service has some more: the special ones
# that its tuner tries in idle time.
PROGRAMS = len(oracle.TYPES) * len(list((REPOSITORY / "kernels/general").iterdir()))


@pytest.fixture(scope="module")
def start(launch):
    """start(cache, *options, …) is a service with this cache directory and one PoCL device."""
    def started(cache, *options, environment=None):
        return launch("--cache-dir", str(cache), "--codecs", "1", *options,
                      environment={**QUICK_COMPILER, **(environment or {})})
    return started


@pytest.fixture
def copy(general_cache, tmp_path):
    """A directory with all general programs, to be spoilt."""
    shutil.copytree(general_cache, tmp_path / "cache")
    return tmp_path / "cache"


def settled(service):
    """builds(), once nothing more is to be built."""
    service.compiled(lambda: not service.total("convolved_programs_pending"), what="all programs")
    return builds(service)


def compilers(service, patient):
    """Returns the processes that compile: the patient one, or that for waiting images."""
    word = "--compile-patiently" if patient else "--compile"
    return [p for device in service.workers("device") for p in children(device.pid)
            if p.alive and word in p.read("cmdline").split("\0")]


def builds(service):
    """Returns (compiled, loaded from the cache, failed) of the programs so far."""
    metrics = service.metrics()
    return tuple(int(metrics.total("convolved_program_builds_total", result=result))
                 for result in ("compiled", "cached", "failed"))


def answers_right(service, filters=GAUSSIAN, variant="general", pixels=PIXELS):
    answer = service.filter_when_compiled(pixels, filters, variant=variant)
    oracle.check(answer.pixels, oracle.filtered(pixels, filters))
    return answer


def programs(directory):
    """Returns the cache's files; first the small ones, which are compiled again most quickly."""
    return sorted((p for p in pathlib.Path(directory).iterdir() if len(p.name) == 64),
                  key=lambda file: (file.stat().st_size, file.name))


def inodes(directory):
    """Returns {file: inode}: a program that is compiled again is another file."""
    return {file: file.stat().st_ino for file in programs(directory)}


def test_second_start(general_cache, start):
    """Nothing is compiled again, and only what images need is loaded; no compiler stays; the next
    start removes a driver's directory."""
    first = inodes(general_cache)
    assert len(first) >= PROGRAMS
    with start(general_cache) as service:
        answers_right(service)
        _, cached, failed = settled(service)
        assert cached >= PROGRAMS and not failed
        assert 1 <= service.total("convolved_opencl_objects", kind="program") <= PROGRAMS / 2
        service.compiled(lambda: not compilers(service, True) and not compilers(service, False),
                         what="no compiler")
        service.workers("device")[0].kill()
        poll(service.works, 60, "a served request")
    assert first.items() <= inodes(general_cache).items()
    with start(general_cache):
        assert len(list(general_cache.glob("driver-*"))) == 1


@pytest.mark.slow
def test_one_for_all_parameters(copy, start):
    """A published kernel that takes its parameters at run time is compiled once for a type."""
    with start(copy) as service:
        for size in 3, 5, 9:
            answers_right(service, [("gaussian", {"size": size})], variant="conv_naive")
        answers_right(service, [("laplacian", {})], variant="conv_naive")
        settled(service)
        assert sum(b"conv_naive" in file.read_bytes() for file in programs(copy)) == 1


def test_first_what_is_waited_for(start, tmp_path):
    """An image waits for the programs that it needs; all others come later, and are told of."""
    with start(tmp_path / "cache") as service:
        pixels = random_pixels(4, 60, 50, 1, "u16")
        answer = service.filter(pixels, [("sobel", {})])
        oracle.check(answer.pixels, oracle.filtered(pixels, [("sobel", {})]))
        metrics = service.metrics()
        assert builds(service)[0] <= PROGRAMS / 4
        assert metrics.total("convolved_programs_pending") >= PROGRAMS / 2
        verbose = service.get("/readyz?verbose")
        assert verbose.status == 200 and b"programs are there" in verbose.body
        service.says("compiling kernels for the first time: 0 of ")
        assert service.stop() == 0


def test_stopped_while_compiling(start, tmp_path):
    """In directories that it has made. The end waits for work of clients, not for the service's own
    image nor its programs."""
    directory = tmp_path / "made" / "cache"
    with start(directory).starting() as service:
        service.says("compiling kernels for the first time")
        poll(lambda: list(directory.glob("driver-*")), what="the directory of a worker's driver")
        assert service.stop() == 0, service.tail()
    assert not programs(directory)


@pytest.mark.slow
def test_patient_compiler(start, tmp_path):
    """One process of the lowest priority compiles what nobody waits for, and stands back."""
    with start(tmp_path / "cache") as service:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(service.filter, random_pixels(5, 40, 40, 3, "f32"),
                                  [("bilateral", {})])
            compiler, = poll(lambda: compilers(service, False), 60, "a compiler", 0.002)
            assert os.sched_getscheduler(compiler.pid) == os.SCHED_OTHER
            assert compiler.stat[16] == str(os.nice(0)), "its nice value"
            assert waiting.result(300).status == 200
        patient, = poll(lambda: compilers(service, True), 60, "a patient compiler", 0.01)
        poll(lambda: os.sched_getscheduler(patient.pid) == os.SCHED_IDLE, 60, "the lowest priority")
        poll(lambda: service.total("convolved_processes", process="compiler"), 60, "it is counted")
        service.compiled(lambda: patient.busy > 0.1 or not patient.alive, what="its work")
        pixels = random_pixels(6, 2000, 1000, 3, "u8")
        answers_right(service)
        begun, before = time.monotonic(), patient.busy
        while time.monotonic() - begun < 1.5:
            assert service.filter(pixels, GAUSSIAN).status == 200
        assert patient.alive
        assert patient.busy - before < 0.2 * (time.monotonic() - begun)
        assert service.stop(60) == 0
        poll(lambda: hurry(patient) or not patient.alive, what="the compiler's end")


# One that is stopped is killed when it has not answered for long.
@pytest.mark.parametrize("number, patient", (
    (signal.SIGKILL, False), *(pytest.param(*row, marks=pytest.mark.slow) for row in (
        (signal.SIGSTOP, False), (signal.SIGKILL, True), (signal.SIGSTOP, True)))))
def test_compiler_killed(copy, start, number, patient):
    """Another takes its place, everything is there in the end, and nobody notices."""
    lost = programs(copy)[:2] if patient else ()
    for file in lost:
        file.unlink()

    def work():
        return list(copy.glob("driver-*/convolved-compile-*"))

    with start(copy) as service, concurrent.futures.ThreadPoolExecutor(1) as pool:
        device, = service.workers("device")
        if not patient:
            insisting = pool.submit(answers_right, service, variant="sep_two_pass")
        compiler, = poll(lambda: compilers(service, patient), 60, "a compiler", 0.002)
        poll(lambda: not patient or hurry(compiler) or work(), what="its directory", interval=0.005)
        compiler.kill(number)
        if not patient:
            insisting.result(300)
        compiled, cached, failed = settled(service)
        assert compiled >= len(lost) and cached >= PROGRAMS - len(lost) and not failed
        assert all(file.exists() for file in lost)
        service.says("a compiler is stopped" if number == signal.SIGSTOP
                     else "a compiler was killed by signal 9")
        answers_right(service)
        left = number == signal.SIGSTOP
        service.compiled(lambda: len(work()) <= left, what="an end of their directories")
        assert service.restarts() == 0 and device.alive


@pytest.mark.slow
def test_stop_while_a_compiler_is_stopped(start, tmp_path):
    with start(tmp_path / "cache") as service:
        patient, = poll(lambda: compilers(service, True), 60, "a patient compiler", 0.01)
        # It has asked to die with its parent before it takes this.
        poll(lambda: os.sched_getscheduler(patient.pid) == os.SCHED_IDLE, 60, "its priority", 0.005)
        patient.kill(signal.SIGSTOP)
        assert service.stop(60) == 0
        poll(lambda: hurry(patient) or not patient.alive, what="the compiler's end")


def flipped(data):
    at = len(data) * 2 // 3
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


DAMAGES = [
    lambda data: data[:len(data) // 2], lambda data: data[:20], lambda data: b"", flipped,
    lambda data: np.random.default_rng(1).bytes(len(data)), lambda data: data + b"more"]


@pytest.mark.parametrize("damages", [
    DAMAGES[3:4], pytest.param(DAMAGES, marks=pytest.mark.slow)], ids=len)
def test_damaged(copy, start, damages):
    """Noticed, said, and made anew for the next start; a link and a directory are no programs."""
    first, second, link, directory, *files = programs(copy)[:len(damages) + 4]
    for file, damage in zip(files, damages, strict=True):
        file.write_bytes(damage(file.read_bytes()))
    first.rename(copy / "swapped")
    second.rename(first)
    (copy / "swapped").rename(second)
    link.rename(copy / "elsewhere")
    link.symlink_to(copy / "elsewhere")
    directory.unlink()
    directory.mkdir()
    with start(copy) as service:
        service.ask_all()
        compiled, cached, failed = settled(service)
        assert compiled >= len(files) + 4 and compiled + cached >= PROGRAMS and not failed
        assert service.log.read_text().count("is damaged") >= len(files) + 2
        assert service.restarts() == 0
    assert link.is_file() and not link.is_symlink()
    directory.rmdir()  # nothing takes its place
    mended = inodes(copy)
    with start(copy) as service:
        answers_right(service)
        _, cached, failed = settled(service)
        assert cached >= PROGRAMS - 1 and not failed
        assert "damaged" not in service.tail()
    assert mended.items() <= inodes(copy).items()


@contextlib.contextmanager
def small_disk(directory, size):
    """A file system of this size at a directory; the test is left out where one cannot be had."""
    directory.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", directory], check=True)


def restarted(service):
    """Has the device's worker start anew; until then there is no device."""
    before = service.restarts()  # a driver whose files vanish may have ended one already
    service.workers("device")[0].kill()
    poll(lambda: service.restarts() > before and service.works(), 60, "a new device worker")


def test_full_disk(start, tmp_path):
    """PoCL has a directory of its own elsewhere here: it ends the process when it cannot write."""
    with small_disk(tmp_path / "cache", "32K") as directory:
        with start(directory, environment={"POCL_CACHE_DIR": str(tmp_path / "pocl")}) as service:
            answers_right(service)
            service.says("cannot be kept")
            assert service.restarts() == 0
            assert not programs(directory), "half a program"


def remove(directory):
    """A compiler may be making files in it meanwhile."""
    while directory.exists():
        shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.slow
def test_directory_gone(copy, start):
    """Removed under a running service: made anew, by the next worker at the latest."""
    with start(copy) as service:
        settled(service)
        remove(copy)
        answers_right(service)
        restarted(service)
        answers_right(service)
        compiled, cached, _ = builds(service)  # one that the tuner has asked for may have failed
        assert compiled >= 1 and cached >= PROGRAMS
        assert programs(copy)


def put_file(directory, _):
    def put():
        remove(directory)
        with contextlib.suppress(IsADirectoryError):  # a worker has made it again
            directory.write_bytes(b"")
        return directory.is_file()
    poll(put, what="the file in its place", interval=0.02)


def fill_disk(directory, _):
    """Filled again and again: a worker that looks for room holds 16 MB of it meanwhile."""
    with (directory.parent / "rest").open("wb", 0) as file:
        for _ in range(50):
            with contextlib.suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            time.sleep(0.01)


def write_protect(directory, service):
    def remounted():  # not while a compiler has a file open to write
        service.hurry()
        return subprocess.run(["mount", "-o", "remount,ro", directory.parent], check=False).returncode == 0
    poll(remounted, what="the disk is read-only", interval=0.02)


@pytest.mark.parametrize("spoil", (put_file, *(
    pytest.param(spoil, marks=pytest.mark.slow) for spoil in (fill_disk, write_protect))))
def test_unusable(start, tmp_path, spoil):
    """The worker that notices ends, and each next one gives its driver another place."""
    with small_disk(tmp_path / "disk", "64M") as disk:
        with start(disk / "cache") as service:
            answers_right(service)
            spoil(disk / "cache", service)
            answers_right(service, variant="separable_wide")
            assert service.restarts() == 1
            service.says("driver's files in")
            kept = builds(service)[1]
            restarted(service)
            answers_right(service)
            assert spoil != write_protect or builds(service)[1] > kept
            answers_right(service, variant="separable_wide")
            assert service.restarts() == 2


def test_unusable_for_the_driver(start, tmp_path):
    """The driver's directory is where its administrator has sent it."""
    (tmp_path / "file").write_bytes(b"")
    with start(tmp_path / "cache", environment={"POCL_CACHE_DIR": str(tmp_path / "file/pocl")}) as service:
        answers_right(service)
        service.says("cannot use POCL_CACHE_DIR")
        assert service.restarts() == 0


@pytest.mark.slow
def test_many_unseen(copy, start):
    """Each is served by what there is, whoever else asks meanwhile; compiling gives way."""
    with start(copy) as service, concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda i: answers_right(service, [("gaussian", {"sigma": 1 + i / 97})], None,
                                              PIXELS[:40, :50]), range(60)))
        answers_right(service, variant="separable_wide")  # before those that nobody waits for
        assert builds(service)[0] < 40
        assert service.restarts() == 0


@pytest.mark.slow
def test_driver_directory_is_bounded(copy, start):
    """It has the files of programs in memory only, and all of them, also of one loaded again."""
    plans, most = 128, 2
    filters = [[("gaussian", {"sigma": 0.5 + i / 3})] for i in range(5)]

    def loaded():
        return sorted(p.parent for p in copy.glob("driver-*/*/*/program.bc"))

    def in_memory():
        return service.total("convolved_opencl_objects", kind="program")

    def special(one, width):
        answers_right(service, one, "separable_wide", PIXELS[:40, :width])

    with start(copy, "--verify-share", "0", "--programs", str(most)) as service:
        for one in filters:
            special(one, 50)
        special(filters[0], 60)
        for i in range(plans):  # other plans push out those of the special programs
            assert service.filter(PIXELS[:9, :1 + i], GAUSSIAN, variant="general").status == 200
        special(filters[0], 390)
        special([("gaussian", {"sigma": 2.9})], 50)
        service.rest()
        # One that is being loaded has files before it is counted.
        service.compiled(lambda: len(loaded()) <= in_memory() + 1, what="no more files than programs")
        service.compiled(lambda: in_memory() <= PROGRAMS + most + 2, what="others than those in use to be let go of")
        service.compiled(lambda: all(any(directory.glob("*/*/*.so")) for directory in loaded()),
                         what="the files of all programs")
        special(filters[0], 100)
        assert service.restarts() == 0


def test_none_special(copy, start):
    """Without special programs general kernels do all; one that a request names is compiled."""
    with start(copy, "--programs", "0") as service:
        for width in 90, 300:
            assert service.filter(PIXELS[:, :width], GAUSSIAN).status == 200
        assert settled(service)[0] == 0
        answers_right(service, variant="separable_wide")
        assert settled(service)[0] == 1


@pytest.fixture
def kernels(tmp_path):
    """A copy of the sources, to be spoilt."""
    shutil.copytree(REPOSITORY / "kernels", tmp_path / "kernels")
    return tmp_path / "kernels"


SPECIAL = "cpu/separable_packed.cl"


def test_does_not_compile(start, kernels, copy):
    """The general kernel goes on; only the client that needs the other, or insists, is told."""
    for file in (SPECIAL, "general/gradient.cl"):
        (kernels / file).write_text("this is no kernel\n")
    with start(copy, "--kernel-dir", str(kernels)) as service:
        answers_right(service, variant=None)
        service.compiled(lambda: builds(service)[2] >= 1, what="a failure in the metrics")
        for _ in range(3):
            answers_right(service, variant=None)
        service.filter_when_compiled(PIXELS, GAUSSIAN, variant="separable_packed").refused(
            500, "device-failed", "separable_packed", "compile")
        service.filter(PIXELS, [("box", {}), ("sobel", {})]).refused(
            500, "device-failed", "gradient cannot be compiled")
        service.says("compiler: ")
        assert service.restarts() == 0
        answers_right(service, variant=None)


@pytest.mark.slow
def test_compiles_with_warnings(start, kernels, copy):
    """Compiler warnings are no concern of administrators, nor is their number."""
    for file in (kernels / "general/gradient.cl", kernels / SPECIAL):
        file.write_text(f"#warning of no consequence\n{file.read_text()}")
    with start(copy, "--kernel-dir", str(kernels)) as service:
        answers_right(service, [("sobel", {})])
        answers_right(service, variant="separable_packed")
        lines = [line for line in service.log.read_text().splitlines() if line.startswith("convolved-device: ")]
        assert lines and all(line.startswith("convolved-device: info: ") for line in lines), lines


@pytest.mark.slow
def test_shares_of_compiling(copy, start):
    """A client that asks for ever new programs does not keep others from theirs."""
    pixels = random_pixels(3, 200, 200, 1, "u8")
    sizes = [(w, h) for w in range(3, 15, 2) for h in range(3, 15, 2) if w != h]
    wanted = [("convolve", {"kernel": np.arange(85).reshape(5, 17) % 7})]
    with start(copy) as service:
        settled(service)
        for width, height in sizes:
            kernel = np.arange(width * height).reshape(height, width) % 5
            assert service.filter(pixels, [("convolve", {"kernel": kernel})]).status == 200
        before = sum(builds(service))

        def special():
            answer = service.neighbour().filter(pixels, wanted)
            assert answer.status == 200, answer
            return "matrix" not in answer.timing
        service.compiled(special, what="a program of its own")
        assert sum(builds(service)) - before <= 15
