"""The parts of measurements: a service, load on it by wrk, the time of processors, turns and
medians."""
import contextlib
import functools
import json
import os
import pathlib
import re
import resource
import shlex
import statistics
import subprocess
import tempfile
import time

import numpy as np

from service import Process, Service, children, poll

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "convolved"
GAUSSIAN = "/v1/filters/gaussian?sigma=1.1&quality=85"


@contextlib.contextmanager
def measured(*options, program=None, cache=CACHE, **more):
    """The service, with a cache that is kept between runs. program: the command that starts it."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="convolved-bench-") as directory:
        service = Service(directory, cache, "--log-level", "warning", *options, **more)
        if program:
            service.arguments[:1] = shlex.split(program)
        with service:
            yield service


def wrk(url, body=None, connections=8, seconds=5, threads=None, program="wrk"):
    """Returns the figures of posting this file, or of asking without one, again and again.
    `client`: how many cores wrk uses."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run([*shlex.split(program), f"-t{threads or min(4, connections)}", f"-c{connections}",
                          f"-d{seconds}", "--timeout", "300s", "-s", HERE / "wrk.lua", url, *([body] if body else [])],
                         capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"wrk fails: {ran.stderr or ran.stdout}")
    found = json.loads(ran.stdout.splitlines()[-1])
    if found["errors"] or not found["requests"]:
        raise SystemExit(f"not all answers are good: {ran.stdout}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {**found, "rate": found["requests"] / found["seconds"], "received": found["bytes"] / found["seconds"],
            "client": (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / found["seconds"]}


def turbo(program, file, processes, seconds):
    """Returns images a second that libjpeg-turbo alone decodes and encodes (bench_jpeg)."""
    ran = subprocess.run([*shlex.split(program), "-f", "-c", str(processes), "-s", str(seconds), file],
                         check=True, stdout=subprocess.PIPE, text=True)
    return float(re.search(r"([\d.]+) images/s", ran.stdout)[1])


def fastest(command):
    """Returns the row of the fastest variant that this convolved-bench has timed on its device."""
    # On an idle machine the system may leave both threads of PoCL on one core for as long as it
    # runs.
    ran = subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE,
                         env={**os.environ, "POCL_AFFINITY": "1"})
    results = [r for r in json.loads(ran.stdout)["results"] if not r["threads"]]
    assert results and all(r["verified"] for r in results), results
    return min(results, key=lambda r: r["median_seconds"])


# Processes ----------------------------------------------------------------------------------------

def memory(process, name="Pss"):
    """Returns bytes, 0 for a process that has ended. Pss: shared pages are divided among those that
    map them."""
    found = re.search(rf"^{name}:\s+(\d+) kB", process.read("smaps_rollup"), re.M)
    return int(found[1]) * 1024 if found else 0


def family(pid):
    """Returns a process and all below it."""
    return [Process(pid), *(process for child in children(pid) for process in family(child.pid))]


def used(pid):
    """Returns the seconds of processors that a process and all below it have used, {(name, pid):
    seconds}."""
    return {(process.name.removeprefix("convolved-"), process.pid): process.busy for process in family(pid)}


@contextlib.contextmanager
def cores(pid):
    """Gives a dictionary that has the cores that each kind of process has used meanwhile, when it
    is over. Processes that have ended since are not in it."""
    found, before, begun = {}, used(pid), time.monotonic()
    yield found
    took = time.monotonic() - begun
    for process, seconds in used(pid).items():
        found[process[0]] = found.get(process[0], 0) + (seconds - before.get(process, 0)) / took


def rest(pid):
    """Waits until nothing is left of requests whose clients have gone, and of tuning."""
    def idle():
        before = sum(used(pid).values())
        time.sleep(0.3)
        return sum(used(pid).values()) - before < 0.03
    poll(idle, 600, "a service at rest")


def go_first():
    """Has this process go before the service, if it may (as root): a client elsewhere does not wait
    for these processors."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)


# Turns --------------------------------------------------------------------------------------------

def turns(rounds, ways, warm=True):
    """Has each way ({name: function that returns figures}) take turns; returns {name: figures of
    each round}. warm: all have one before, which does not count."""
    found = {name: [] for name in ways}
    for number in range(-warm, rounds):
        for name, way in ways.items():
            figures = way()
            if number >= 0:
                found[name].append(figures)
    return found


def middle(rounds):
    """Returns the median of numbers, or of each figure of dictionaries. A missing one is 0: a
    process that has just ended."""
    if not isinstance(rounds[0], dict):
        return statistics.median(rounds)
    names = dict.fromkeys(name for one in rounds for name in one)
    return {name: middle([one.get(name, 0) for one in rounds]) for name in names}


def timed(action):
    """Returns milliseconds."""
    begun = time.perf_counter()
    action()
    return (time.perf_counter() - begun) * 1e3


# Pictures -----------------------------------------------------------------------------------------

@functools.cache
def picture(side):
    """Returns RGB of the statistics of a photograph: noise whose power falls with the square of its
    frequency. A JPEG of it has about two bits a pixel."""
    random = np.random.default_rng(1)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None, :])
    frequency[0, 0] = 1
    planes = []
    for _ in range(3):
        spectrum = np.fft.rfft2(random.standard_normal((side, side)).astype(np.float32))
        plane = np.fft.irfft2(spectrum / frequency ** 1.1, (side, side))
        planes.append(128 + 45 * plane / plane.std())
    pixels = planes[0][..., None] + 0.3 * (np.stack(planes, -1) - 128)
    return np.clip(pixels + random.normal(0, 2, pixels.shape), 0, 255).astype(np.uint8)


def photograph(side, size=None):
    """Returns a JPEG of it: quality 85, 4:2:0. size: about so many bytes, by less contrast or
    more."""
    import imagefiles  # needs PIL, which no host needs that only has what peers.py needs

    def made(contrast):
        pixels = picture(side) if contrast == 1 else np.clip(128 + contrast * (picture(side) - 128.0), 0, 255)
        return imagefiles.written(imagefiles.pil(pixels.astype(np.uint8)), "jpeg", quality=85)
    low, high = (0, 8) if size else (1, 1)
    while high - low > 0.02:
        half = (low + high) / 2
        low, high = (half, high) if len(made(half)) < size else (low, half)
    return made(low)


def make(options):
    """Writes a JPEG like a photograph, of about so many bytes if they are given: quality 85,
    4:2:0."""
    pathlib.Path(options.file).write_bytes(photograph(options.side, options.bytes))
    yield {"file": options.file, "side": options.side, "bytes": os.path.getsize(options.file)}


def write(directory, side):
    """Returns the path of the file."""
    path = pathlib.Path(directory) / f"{side}.jpg"
    path.write_bytes(photograph(side))
    return path
