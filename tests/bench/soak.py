"""The service under a mix of requests for some minutes: does anything grow, is an answer ever wrong, is
anything left in the end? `./dev soak MINUTES`.

Sampled are memory, descriptors and threads of the front and of every worker, and the objects that
device workers keep. Growth is judged on the whole measured time: the time is cut into blocks, the
medians of blocks (which are nearly independent, as single samples are not) get a least-squares line,
and it fails where the lower end of the slope's one-sided 99.9 % interval, times the minutes, is above
what FLOORS allows: an allocator and a cache of programs settle late (a codec worker's by 6 MB in
the second minute), a leak goes on. So the longer it runs, the smaller a leak it finds: 8 MB in a
minute of 5000 requests are 1.6 kB each, in ten minutes 160 bytes."""
import argparse
import collections
import math
import os
import pathlib
import random
import re
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import numpy as np  # noqa: E402
from scipy import stats  # noqa: E402

import imagefiles  # noqa: E402
import oracle  # noqa: E402
from service import TWO_DEVICES, Service, lasting, sanitized, target_of  # noqa: E402

CLIENTS = 3
BLOCKS = 8
TRIES = 3  # tries of a measurement in which programs are made
FLOORS = {"pss": 8e6, "rss": 8e6, "fds": 2, "threads": 2, "objects": 2}
PREFER = {"Prefer": "respond-async"}


# Requests -----------------------------------------------------------------------------------------

def pixels(seed, width, height, bands, kind):
    rng = np.random.default_rng(seed)
    shape = (height, width, bands)
    if kind == "f32":
        return rng.random(shape, np.float32)
    return rng.integers(0, int(oracle.FULL_SCALE[kind]) + 1, shape).astype(oracle.TYPES[kind])


class Case:
    """An image with filters, and what must come out."""

    def __init__(self, image, filters):
        self.image, self.filters = image, filters
        self.expected = oracle.filtered(image, filters)
        self.files = [imagefiles.write_pnm(image)] if image.dtype != np.float32 else []
        if image.dtype == np.uint8:
            self.files.append(imagefiles.write_png(image))

    def target(self, **options):
        return target_of(self.filters, **options)


def cases():
    return [Case(pixels(1, 40, 30, 3, "u8"), [("box", {"size": 3})]),
            Case(pixels(2, 640, 480, 3, "u8"), [("gaussian", {"sigma": 2.0})]),
            Case(pixels(3, 333, 217, 1, "u16"), [("sharpen", {})]),
            Case(pixels(4, 200, 150, 3, "f32"), [("gaussian", {"sigma": 1.5})]),
            Case(pixels(5, 301, 200, 3, "u8"), [("gaussian", {"sigma": 1.4}), ("sobel", {})]),
            Case(pixels(6, 900, 700, 1, "u8"), [("gaussian", {"sigma": 12.0})])]


class Wrong(Exception):
    pass


def demand(condition, what):
    if not condition:
        raise Wrong(what)


def ask_raw(service, case, rng):
    oracle.check(service.filter(case.image, case.filters).pixels, case.expected)


def ask_file(service, case, rng):
    """A file for a file: decoded by another program than the service."""
    if not case.files:
        return ask_raw(service, case, rng)
    file = rng.choice(case.files)
    answer = service.post(case.target(format="png" if rng.random() < 0.3 else None), file)
    demand(answer.status == 200, answer)
    got = (imagefiles.read_pnm(answer.body) if answer.body[:1] == b"P"
           else imagefiles.read_pil(answer.body)[0])
    oracle.check(got, case.expected)


def ask_lossy(service, case, rng):
    if not case.files:
        return ask_raw(service, case, rng)
    format = rng.choice(("jpeg", "webp"))
    answer = service.post(case.target(format=format), case.files[0])
    height, width, bands = case.image.shape
    demand(answer.status == 200 and answer.type == f"image/{format}", answer)
    demand(answer.kind[:2] == (width, height), answer.kind)


def ask_verified(service, case, rng):
    answer = service.filter(case.image, case.filters, verify=1)
    demand(answer.headers["X-Verify-Mismatches"] == "0", answer)
    oracle.check(answer.pixels, case.expected)


def post_async(service, case):
    height, width, bands = case.image.shape
    answer = service.post(case.target(raw=f"{width}x{height}x{bands}:"
                                      f"{oracle.type_name(case.image.dtype)}", format="raw"),
                          case.image.tobytes(), headers=PREFER)
    demand(answer.status == 202, answer)
    return answer.headers["Location"]


def forget(service, job):
    """Once while it runs, once as an ended one: the first of two may be the only one needed."""
    while True:
        answer = service.request("DELETE", job)
        demand(answer.status in (204, 404), answer)
        if answer.status == 404:
            return
        service.get(job + "?wait=30")


def ask_async(service, case, rng):
    job = post_async(service, case)
    answer = service.get(job + "/result?wait=60")
    oracle.check(answer.pixels, case.expected)
    forget(service, job)


def ask_cancelled(service, case, rng):
    forget(service, post_async(service, case))


def leave(service, case, rng):
    """A client that goes in the middle of its body, or when it has sent all."""
    body = case.image.tobytes()
    height, width, bands = case.image.shape
    target = case.target(raw=f"{width}x{height}x{bands}:{oracle.type_name(case.image.dtype)}")
    with service.socket() as connection:
        connection.sendall(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
                           .encode() + body[:rng.choice((0, len(body) // 2, len(body)))])


def ask_wrongly(service, case, rng):
    png = imagefiles.write_png(pixels(9, 64, 64, 3, "u8"))
    body, target, status = rng.choice((
        (png[:-500], "/v1/filters/box", 422), (b"no image", "/v1/filters/box", 415),
        (png, "/v1/filters/box?size=2", 400), (png, "/v1/filters/nothing", 404),
        (b"", "/v1/filters/box", 400), (png, "/v1/chain?filters=box,,", 400)))
    answer = service.post(target, body)
    demand(answer.status == status, answer)


MIX = [(ask_raw, 6), (ask_file, 6), (ask_lossy, 2), (ask_verified, 1), (ask_async, 3),
       (ask_cancelled, 1), (leave, 1), (ask_wrongly, 2)]


class Clients:
    """Threads that ask until they are stopped."""

    def __init__(self, service, every):
        self.service, self.cases = service, every
        self.asked, self.wrong = collections.Counter(), []
        self.end = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(random.Random(i),))
                        for i in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, rng):
        kinds, weights = zip(*MIX)
        while not self.end.is_set() and not self.wrong:
            kind = rng.choices(kinds, weights)[0]
            try:
                kind(self.service, rng.choice(self.cases), rng)
            except Exception as error:
                self.wrong.append(f"{kind.__name__}: {type(error).__name__}: {error}")
            self.asked[kind.__name__] += 1

    def stop(self):
        self.end.set()
        for thread in self.threads:
            thread.join()


# Samples ------------------------------------------------------------------------------------------

def rollup(process, name):
    match = re.search(rf"^{name}:\s+(\d+) kB", process.read("smaps_rollup"), re.M)
    return int(match[1]) * 1024 if match else 0


def sample(service, named):
    """Returns {(process or device, measure): value}"""
    seen = {}
    for name, process in named.items():
        demand(process.alive, f"{name} has died:\n{service.tail()}")
        seen[name, "pss"] = rollup(process, "Pss")
        seen[name, "rss"] = rollup(process, "Rss")
        seen[name, "fds"] = len(os.listdir(f"/proc/{process.pid}/fd"))
        seen[name, "threads"] = len(os.listdir(f"/proc/{process.pid}/task"))
    for (device, kind), value in lasting(service.metrics()).items():
        seen[f"{device} {kind}", "objects"] = value
    return seen


def name_processes(service):
    front, *_ = service.processes()
    named = {"front": front}
    for kind in ("codec", "device", "http"):
        for i, process in enumerate(sorted(service.workers(kind), key=lambda p: p.pid)):
            named[f"{kind}-{i}"] = process
    return named


Slope = collections.namedtuple("Slope", "slope error scatter first last grows")


def judge(minutes, values, floor):
    """Returns the line through the medians of blocks; see the top."""
    cut = [range(i * len(values) // BLOCKS, (i + 1) * len(values) // BLOCKS) for i in range(BLOCKS)]
    x = np.array([statistics.mean(minutes[i] for i in block) for block in cut])
    y = np.array([statistics.median(values[i] for i in block) for block in cut])
    spread = ((x - x.mean()) ** 2).sum()
    slope = ((x - x.mean()) * y).sum() / spread
    left = y - y.mean() - slope * (x - x.mean())
    error = math.sqrt((left ** 2).sum() / (BLOCKS - 2) / spread)
    surely = (slope - stats.t.ppf(0.999, BLOCKS - 2) * error) * (minutes[-1] - minutes[0])
    return Slope(slope, error, left.std(), y[0], y[-1], surely > floor)


def warm_up(service, every, quiet):
    """Every case in every way, until tuning has added no programs for `quiet` seconds; for 3 minutes at
    most."""
    kept, started = None, time.monotonic()
    changed = started
    while time.monotonic() - changed < quiet and time.monotonic() - started < 180:
        rng = random.Random(0)
        for case in every:
            for kind, _ in MIX:
                kind(service, case, rng)
        before, kept = kept, lasting(service.rest(programs=True))
        if kept != before:
            changed = time.monotonic()


def measure(service, every, minutes):
    """Samples, [(minutes, sample)]: of the whole time, without the first third, at most 2 minutes."""
    clients = Clients(service, every)
    settle = min(minutes / 3, 2) * 60
    interval = max(0.2, min(5, minutes * 60 / 100))
    taken, start = [], time.monotonic()
    try:
        named = name_processes(service)
        while not clients.wrong and time.monotonic() - start < minutes * 60:
            time.sleep(interval)
            if time.monotonic() - start >= settle:
                taken.append(((time.monotonic() - start) / 60, sample(service, named)))
    finally:
        clients.stop()
    demand(not clients.wrong, clients.wrong)
    return taken, clients.asked


def report(taken):
    """Returns {(what, measure): Slope}"""
    minutes = [at for at, _ in taken]
    series = {key: [seen.get(key, 0) for _, seen in taken] for key in taken[-1][1]}
    return {key: judge(minutes, values, FLOORS[key[1]]) for key, values in series.items()}


def programs(sampled):
    """Returns number of all devices' programs in a sample, (minutes, {…})."""
    return sum(value for (what, kind), value in sampled[1].items()
               if kind == "objects" and what.endswith(" program"))


def show(slopes, out=print):
    out(f"{'':22}{'':8}{'first':>12}{'last':>12}{'a minute':>12}{'± error':>12}{'scatter':>12}")
    for (what, kind), s in sorted(slopes.items(), key=lambda item: (item[0][1], item[0][0])):
        if kind == "objects" and abs(s.slope) < 1e-6:
            continue  # they are many, and constant
        unit, name = (1e-6, f"{kind} MB") if kind in ("pss", "rss") else (1, kind)
        figures = "".join(f"{v * unit:12.3f}" for v in (s.first, s.last, s.slope, s.error,
                                                       s.scatter))
        out(f"{what:22}{name:8}{figures}{'  GROWS' if s.grows else ''}")


def run(directory, cache, minutes, out=print, every=None, quiet=10):
    """Returns the errors, as a list of texts."""
    every = every or cases()
    with Service(directory, cache, "--codecs", "3", "--arena-size", "8M",
                 environment=TWO_DEVICES) as service:
        started = time.monotonic()
        warm_up(service, every, quiet)
        out(f"warm after {time.monotonic() - started:.0f} s")
        for _ in range(TRIES):
            taken, asked = measure(service, every, minutes)
            if programs(taken[0]) == programs(taken[-1]):
                break
            out("a device made programs meanwhile: it was not warm")
        slopes = report(taken)
        show(slopes, out)
        out(f"{sum(asked.values())} requests: "
            + ", ".join(f"{n} {kind}" for kind, n in sorted(asked.items())))
        wrong = [f"{what}: {kind} grows" for (what, kind), s in slopes.items()
                 if s.grows and not (kind in ("pss", "rss") and sanitized())]
        metrics = service.rest()
        for gauge in ("stored_jobs", "stored_bytes", "spools", "spool_memory_bytes"):
            if metrics.total(f"convolved_{gauge}"):
                wrong.append(f"{gauge} is not zero at rest")
        if service.restarts():
            wrong.append("a worker has died")
        out("at rest nothing is left of any request" if not wrong else "\n".join(wrong))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("minutes", type=float, nargs="?", default=10)
    options = parser.parse_args()
    cache = os.path.join(os.path.expanduser("~"), ".cache", "convolved")
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="convolved-soak-") as directory:
        sys.exit(bool(run(directory, cache, options.minutes)))


if __name__ == "__main__":
    main()
