"""Compiled programs: kept in the cache folder, whatever happens to it; and kernels for particular
parameters, compiled while general ones do the work."""
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import oracle
from service import ONE_DEVICE, REPOSITORY, Service, children, poll, sanitized
from test_results import random_pixels

PIXELS = random_pixels(1, 400, 300, 3, "u8")
GAUSSIAN = [("gaussian", {"sigma": 2})]
TYPES = len(oracle.TYPES)  # a program of general kernels for each


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """start(cache, *options, …) is a service with a cache folder of its own and one PoCL device."""
    def started(cache, *options, environment=None):
        return Service(tmp_path_factory.mktemp("service"), cache, "--codecs", "1", *options,
                       environment={**ONE_DEVICE, **(environment or {})})
    return started


@pytest.fixture(scope="module")
def filled(tmp_path_factory, start):
    """A folder as a first start leaves it, and the seconds to its first answer."""
    folder = tmp_path_factory.mktemp("filled") / "cache"
    begun = time.monotonic()
    with start(folder) as service:
        answers_right(service)
        cold = time.monotonic() - begun
        assert builds(service) == (TYPES, 0, 0)
    return folder, cold


@pytest.fixture
def copy(filled, tmp_path):
    """A folder of the same content, to be spoilt."""
    shutil.copytree(filled[0], tmp_path / "cache")
    return tmp_path / "cache"


def builds(service):
    """(compiled, loaded from the cache, failed) of the programs so far."""
    metrics = service.metrics()
    return tuple(int(metrics.total("convolved_program_builds_total", result=result))
                 for result in ("compiled", "cached", "failed"))


def answers_right(service, filters=None, **options):
    filters = filters or GAUSSIAN
    answer = service.filter(PIXELS, filters, **{"variant": "general", **options})
    assert answer.status == 200, answer
    oracle.check(answer.pixels, oracle.filtered(PIXELS, filters))
    return answer


def programs(folder):
    """The files of the cache: named by 64 hexadecimal digits."""
    return sorted(p for p in pathlib.Path(folder).iterdir() if len(p.name) == 64)


def test_second_start(filled, start, capsys):
    """Nothing of the first is compiled again, and the first answer comes in a tenth of the time."""
    folder, cold = filled
    assert len(programs(folder)) >= TYPES
    begun = time.monotonic()
    with start(folder) as service:
        answers_right(service)
        warm = time.monotonic() - begun
        assert builds(service) == (0, TYPES, 0)
    with capsys.disabled():
        print(f"\n  first answer after {cold:.2f} s cold, {warm:.2f} s warm: 1/{cold / warm:.0f}")
    if not sanitized():
        assert warm <= cold / 10 + 0.3


def test_leaves_no_work_behind(filled, start):
    """A driver's folder is its process's, and goes with the next start."""
    folder, _ = filled
    with start(folder) as service:
        service.workers("device")[0].kill()
        poll(service.works, 60, "a served request")
    with start(folder):
        assert len([p for p in folder.iterdir() if p.name.startswith("driver-")]) == 1


# Damage -------------------------------------------------------------------------------------------

def truncated(files):
    for file in files:
        os.truncate(file, file.stat().st_size // 2)


def emptied(files):
    for file in files:
        os.truncate(file, 0)


def head_only(files):
    for file in files:
        os.truncate(file, 20)


def overwritten(files):
    rng = np.random.default_rng(1)
    for file in files:
        file.write_bytes(rng.bytes(file.stat().st_size))


def one_byte(files):
    for file in files:
        data = bytearray(file.read_bytes())
        data[len(data) * 2 // 3] ^= 1
        file.write_bytes(data)


def swapped(files):
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, contents[1:] + contents[:1]):
        file.write_bytes(content)


def longer(files):
    for file in files:
        with file.open("ab") as end:
            end.write(b"more")


@pytest.mark.parametrize("damages", [(truncated, overwritten), (one_byte, emptied),
                                     (head_only, longer), (swapped,)],
                         ids=lambda damages: "-".join(damage.__name__ for damage in damages))
def test_damaged(copy, start, damages):
    """Noticed, said, and made anew; the third start has all again."""
    files = programs(copy)[:2]
    for i, damage in enumerate(damages):
        damage(files if damage is swapped else files[i:i + 1])
    with start(copy) as service:
        answers_right(service)
        compiled, cached, failed = builds(service)
        assert compiled >= 1 and compiled + cached == TYPES and failed == 0
        poll(lambda: service.tail().count("is damaged") == compiled, 10, "the damage")
        assert service.restarts() == 0
    with start(copy) as service:
        answers_right(service)
        assert builds(service) == (0, TYPES, 0)
        assert "damaged" not in service.tail()


def test_made_by_another(copy, start):
    """A file that is sound but that the driver does not take: a link and a folder in its place."""
    first, second, *_ = programs(copy)
    target = copy / "elsewhere"
    first.rename(target)
    first.symlink_to(target)
    second.unlink()
    second.mkdir()
    with start(copy) as service:
        answers_right(service)
        assert service.restarts() == 0
        assert builds(service)[0] == 2


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of this size at a folder; the test is left out where one cannot be had."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def restarted(service):
    """Has the device's worker start anew; until then there is no device."""
    service.workers("device")[0].kill()
    poll(lambda: service.restarts() == 1 and service.works(), 60, "a new device worker")


def test_read_only(filled, start, tmp_path):
    """What is there is used; nothing is added, and nothing is lost but time. (A service does not
    start without a folder to write to: bodies may go there too.)"""
    with small_disk(tmp_path / "cache", "64M") as folder:
        for file in programs(filled[0]):
            shutil.copy(file, folder)
        with start(folder, environment={"POCL_CACHE_DIR": str(tmp_path / "pocl")}) as service:
            subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
            restarted(service)
            answers_right(service)
            assert builds(service) == (0, 2 * TYPES, 0)
            answers_right(service, variant="separable_wide")
            service.says("cannot be kept")
            assert service.restarts() == 1


def test_full_disk(start, tmp_path):
    """PoCL has a folder of its own elsewhere here: it ends the process when it cannot write."""
    with small_disk(tmp_path / "cache", "64K") as folder:
        with start(folder, environment={"POCL_CACHE_DIR": str(tmp_path / "pocl")}) as service:
            answers_right(service)
            service.says("cannot be kept")
            assert service.restarts() == 0
            assert not programs(folder), "half a program"


def test_folder_gone(copy, start):
    """Removed under a running service: made anew, by the next worker at the latest."""
    with start(copy) as service:
        shutil.rmtree(copy)
        answers_right(service)
        restarted(service)
        answers_right(service)
        assert builds(service) == (TYPES, TYPES, 0)
        assert len(programs(copy)) == TYPES


def test_unreadable(copy, start):
    """Files that may not be opened (by who is not root)."""
    for file in programs(copy):
        file.chmod(0)
    with start(copy) as service:
        answers_right(service)
        assert sum(builds(service)) == TYPES and service.restarts() == 0


# Kernels for particular parameters ----------------------------------------------------------------

def test_general_first(copy, start):
    """The first answer to what nobody has asked before comes by a general kernel and at once, later
    ones by one that has been compiled for it."""
    filters = [("gaussian", {"sigma": 1.2345})]
    with start(copy) as service:
        answers_right(service)
        first = service.filter(PIXELS, filters)
        assert "separable" in first.timing, first.timing
        before = builds(service)

        def special():
            answer = service.filter(PIXELS, filters)
            oracle.check(answer.pixels, oracle.filtered(PIXELS, filters))
            return {"separable_packed", "separable_wide"} & set(answer.timing)
        used = poll(special, 60, "a special kernel", 0.2)
        assert builds(service)[0] > before[0]
        kernels = {k["kernel"] for k in service.get("/v1/kernels").json()["kernels"]}
        assert used & kernels


def test_many_unseen(copy, start):
    """Parameters that keep changing are served, each by what there is; compiling gives way."""
    with start(copy) as service:
        for i in range(60):
            filters = [("gaussian", {"sigma": 1 + i / 97})]
            answer = service.filter(PIXELS[:40, :50], filters)
            oracle.check(answer.pixels, oracle.filtered(PIXELS[:40, :50], filters))
        answers_right(service, variant="separable_wide")  # before those that nobody waits for
        assert builds(service)[0] < 40
        assert service.restarts() == 0


@pytest.fixture
def known(cache, tmp_path):
    """A folder with what has been compiled in this run."""
    folder = tmp_path / "cache"
    folder.mkdir()
    for file in programs(cache):
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(file, folder)
    return folder


def test_driver_folder_is_bounded(known, start):
    """The driver's folder has the files of the programs in memory and no others, however many there
    have been; and all of theirs, also of one that was asked for, let go of and asked for again while
    a plan had it all the time."""
    plans, most = 128, 2
    filters = [[("gaussian", {"sigma": 0.5 + i / 3})] for i in range(5)]

    def loaded():
        return sorted(p.parent for p in known.glob("driver-*/*/*/program.bc"))

    def in_memory():
        return service.metrics().total("convolved_opencl_objects", kind="program")

    def special(one, width):
        def built():
            answer = service.filter(PIXELS[:40, :width], one, variant="separable_wide")
            return answer.status == 200 and answer
        answer = poll(built, 120, "a program")
        oracle.check(answer.pixels, oracle.filtered(PIXELS[:40, :width], one))

    def other_plans(least):
        for i in range(plans):
            assert service.filter(PIXELS[:9, :least + i], GAUSSIAN, variant="general").status == 200

    with start(known, "--verify-share", "0", "--programs", str(most)) as service:
        for one in filters:
            special(one, 50)
        special(filters[0], 60)
        other_plans(1)
        special(filters[0], 390)
        special([("gaussian", {"sigma": 2.9})], 50)
        service.rest()
        poll(lambda: in_memory() == len(loaded()), 10, "files as programs")
        assert in_memory() <= TYPES + most + 2, "others than those in use are let go of"
        assert all(any(folder.glob("*/*/*.so")) for folder in loaded())
        special(filters[0], 100)
        assert service.restarts() == 0


@pytest.fixture
def kernels(tmp_path):
    """A copy of the sources, to be spoilt."""
    shutil.copytree(REPOSITORY / "kernels", tmp_path / "kernels")
    return tmp_path / "kernels"


SPECIAL = "cpu/separable_packed.cl"


def test_does_not_compile(start, kernels, tmp_path):
    """A special kernel that is no OpenCL C: the general one goes on; who insists is told."""
    (kernels / SPECIAL).write_text("this is no kernel\n")
    with start(tmp_path / "cache", "--kernel-dir", str(kernels)) as service:
        answers_right(service, variant=None)
        poll(lambda: builds(service)[2] >= 1, 60, "a failure in the metrics")
        for _ in range(3):
            answers_right(service, variant=None)
        problem = service.filter(PIXELS, GAUSSIAN, variant="separable_packed").refused(
            500, "device-failed")
        assert "separable_packed" in problem["detail"] and "compile" in problem["detail"]
        service.says("compiler: ")
        assert service.restarts() == 0
        answers_right(service, variant=None)


@pytest.mark.parametrize("number, times", ((signal.SIGKILL, 1), (signal.SIGSTOP, 1),
                                           (signal.SIGKILL, 2)))
def test_compiler_killed(copy, start, number, times):
    """It is a process of its own: another takes its place, once; then who insists on what it was at is
    told, and nobody else notices."""
    with start(copy, "--codecs", "2") as service:
        device, seen = service.workers("device")[0], set()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            insisting = pool.submit(service.filter, PIXELS, GAUSSIAN, variant="sep_two_pass")
            for _ in range(times):
                compiler, = poll(lambda: [p for p in children(device.pid)
                                          if p.alive and p.pid not in seen], 20, "a compiler", 0.002)
                seen.add(compiler.pid)
                compiler.kill(number)
            if times == 1:
                assert insisting.result(60).status == 200
            else:
                insisting.result(60).refused(500, "device-failed")
        said = "is stopped" if number == signal.SIGSTOP else "ended by signal 9"
        poll(lambda: f"a compiler {said}" in service.tail(), 10, "the log")
        answers_right(service)
        assert service.restarts() == 0 and device.alive


def test_requests_beside_a_compilation(copy, start):
    """Many threads ask while programs are being built: every answer is right."""
    with start(copy) as service:
        failures = []

        def client(number):
            for i in range(8):
                filters = [("gaussian", {"sigma": 0.7 + number / 3 + i / 10})]
                answer = service.filter(PIXELS[:80], filters)
                try:
                    oracle.check(answer.pixels, oracle.filtered(PIXELS[:80], filters))
                except AssertionError as error:
                    failures.append(error)
        threads = [threading.Thread(target=client, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        assert service.restarts() == 0


def test_shares_of_compiling(copy, start):
    """A client that asks for ever new programs does not keep others from theirs."""
    pixels = random_pixels(3, 200, 200, 1, "u8")
    sizes = [(w, h) for w in range(3, 15, 2) for h in range(3, 15, 2) if w != h]
    wanted = [("convolve", {"kernel": np.arange(85).reshape(5, 17) % 7})]
    with start(copy) as service:
        for width, height in sizes:
            kernel = np.arange(width * height).reshape(height, width) % 5
            assert service.filter(pixels, [("convolve", {"kernel": kernel})]).status == 200
        before = sum(builds(service))

        def special():
            answer = service.neighbour().filter(pixels, wanted)
            assert answer.status == 200, answer
            return "matrix" not in answer.timing
        poll(special, 100, "a program of its own", interval=0.2)
        assert sum(builds(service)) - before <= 15
