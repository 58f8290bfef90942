"""The service under a mix of requests for some minutes: does anything grow, is an answer ever
wrong, is anything left in the end?"""
import collections
import contextlib
import functools
import os
import random
import sys
import time

import numpy as np
import scipy

import imagefiles
import oracle
from collector import Collector
from jobs import submit
from measure import measured, memory
from pixels import random_pixels
from service import TWO_DEVICES, lasting, meanwhile, raw_kind, request_head, sanitized, target_of

CLIENTS = 3
BLOCKS = 8
TRIES = 3  # tries of a measurement in which programs are made
OPTIONS = ("--codecs", "3", "--arena-size", "8M")
FLOORS = {"pss": 8e6, "rss": 8e6, "fds": 2, "threads": 2, "objects": 2}


# Requests -----------------------------------------------------------------------------------------

class Case:
    """An image with filters, and what must come out."""

    def __init__(self, image, filters):
        self.image, self.filters = image, filters
        self.expected, self.right = oracle.filtered(image, filters), set()
        self.files = [imagefiles.write_pnm(image)] if image.dtype != np.float32 else []
        if image.dtype == np.uint8:
            self.files.append(imagefiles.write_png(image))

    def post(self, service, body, **options):
        return service.post(target_of(self.filters, **options), body)

    def check(self, answer, pixels=lambda answer: answer.pixels):
        """The same bytes are compared once: by other variants they are others."""
        assert answer.status == 200, answer
        if hash(answer.body) not in self.right:
            oracle.check(pixels(answer), self.expected)
            self.right.add(hash(answer.body))


def cases():
    return [Case(random_pixels(seed, *kind), filters) for seed, (kind, filters) in enumerate((
        ((40, 30, 3, "u8"), [("box", {"size": 3})]),
        ((640, 480, 3, "u8"), [("gaussian", {"sigma": 2.0})]),
        ((333, 217, 1, "u16"), [("sharpen", {})]),
        ((200, 150, 3, "f32"), [("gaussian", {"sigma": 1.5})]),
        ((301, 200, 3, "u8"), [("gaussian", {"sigma": 1.4}), ("sobel", {})]),
        ((900, 700, 1, "u8"), [("gaussian", {"sigma": 12.0})])))]


def ask_raw(service, case, rng):
    case.check(service.filter(case.image, case.filters))


def ask_file(service, case, rng):
    """A file for a file: decoded by another program than the service."""
    if not case.files:
        return ask_raw(service, case, rng)
    case.check(case.post(service, rng.choice(case.files), format="png" if rng.random() < 0.3 else None),
               lambda answer: imagefiles.read_pnm(answer.body) if answer.body[:1] == b"P"
               else imagefiles.read_pil(answer.body)[0])


def ask_lossy(service, case, rng):
    if not case.files:
        return ask_raw(service, case, rng)
    format = rng.choice(("jpeg", "webp"))
    answer = case.post(service, case.files[0], format=format)
    assert answer.status == 200 and answer.type == f"image/{format}", answer
    assert answer.kind[1::-1] == case.image.shape[:2], answer.kind


def ask_verified(service, case, rng):
    answer = service.filter(case.image, case.filters, verify=1)
    assert answer.headers["X-Verify-Mismatches"] == "0", answer
    case.check(answer)


def forget(service, job):
    """Once while it runs, once as an ended one: the first of two may be the only one needed."""
    while (answer := service.request("DELETE", job)).status != 404:
        assert answer.status == 204, answer
        service.get(job + "?wait=30")


def ask_async(service, case, rng):
    job = submit(service, case.image, case.filters, variant=None)
    case.check(service.get(job + "/result?wait=60"))
    forget(service, job)


def ask_cancelled(service, case, rng):
    forget(service, submit(service, case.image, case.filters, variant=None))


def leave(service, case, rng):
    """A client that goes in the middle of its body, or when it has sent all."""
    body, target = case.image.tobytes(), target_of(case.filters, raw=raw_kind(case.image))
    with service.socket() as connection:
        connection.sendall(request_head(target, f"Content-Length: {len(body)}")
                           + body[:rng.choice((0, len(body) // 2, len(body)))])


def ask_wrongly(service, case, rng):
    png = imagefiles.write_png(random_pixels(9, 64, 64, 3, "u8"))
    body, target, status = rng.choice((
        (png[:-500], "/v1/filters/box", 422), (b"no image", "/v1/filters/box", 415),
        (png, "/v1/filters/box?size=2", 400), (png, "/v1/filters/nothing", 404),
        (b"", "/v1/filters/box", 400), (png, "/v1/chain?filters=box,,", 400)))
    answer = service.post(target, body)
    assert answer.status == status, answer


MIX = {ask_raw: 6, ask_file: 6, ask_lossy: 2, ask_verified: 1, ask_async: 3, ask_cancelled: 1, leave: 1, ask_wrongly: 2}


@contextlib.contextmanager
def asking(service, every):
    """Threads ask meanwhile. Gives how many requests there were of each sort, and a list that gets
    what is wrong."""
    asked, wrong = collections.Counter({kind.__name__: 0 for kind in MIX}), []

    def work(rng):
        kind, = rng.choices(list(MIX), MIX.values())
        try:
            kind(service, rng.choice(every), rng)
        except Exception as error:
            wrong.append(f"{kind.__name__}: {type(error).__name__}: {error}")
        asked[kind.__name__] += 1
    with meanwhile(*(functools.partial(work, random.Random(i)) for i in range(CLIENTS))):
        yield asked, wrong


# Samples ------------------------------------------------------------------------------------------

def sample(service, named):
    """Returns {(process or device, measure): value}"""
    seen = {}
    for name, process in named.items():
        assert process.alive, f"{name} has died:\n{service.tail()}"
        seen[name, "pss"] = memory(process)
        seen[name, "rss"] = memory(process, "Rss")
        seen[name, "fds"] = len(os.listdir(f"/proc/{process.pid}/fd"))
        seen[name, "threads"] = len(os.listdir(f"/proc/{process.pid}/task"))
    for (device, kind), value in lasting(service.metrics()).items():
        seen[f"{device} {kind}", "objects"] = value
    return seen


Slope = collections.namedtuple("Slope", "slope error first last grows")


def judge(passed, values, floor):
    """Returns the line through the medians of blocks; see soak(). passed: minutes, or requests."""
    x, y = ([np.median(block) for block in np.array_split(series, BLOCKS)] for series in (passed, values))
    line = scipy.stats.linregress(x, y)
    surely = line.slope - scipy.stats.t.ppf(0.999, BLOCKS - 2) * line.stderr
    return Slope(line.slope, line.stderr, y[0], y[-1], surely * (passed[-1] - passed[0]) > floor)


def warm_up(service, every, quiet):
    """Every case in every way, until tuning has added no programs for `quiet` seconds; for 3
    minutes at most."""
    kept, started = None, time.monotonic()
    changed = started
    while time.monotonic() - changed < quiet and time.monotonic() - started < 180:
        rng = random.Random(0)
        for case in every:
            for kind in MIX:
                kind(service, case, rng)
        before, kept = kept, lasting(service.rest(programs=True))
        if kept != before:
            changed = time.monotonic()


def measure(service, every, minutes):
    """Returns ([(millions of requests, sample)], requests): of the whole time, without the first sixth."""
    settle, interval = minutes * 10, max(0.2, min(5, minutes * 60 / 100))
    taken, start = [], time.monotonic()
    named = {"front": service.processes()[0]} | {
        f"{kind}-{i}": process for kind in ("codec", "device", "http", "trace")
        for i, process in enumerate(service.workers(kind))}
    with asking(service, every) as (asked, wrong):
        while not wrong and time.monotonic() - start < minutes * 60:
            time.sleep(interval)
            if time.monotonic() - start >= settle:
                taken.append((sum(asked.values()) / 1e6, sample(service, named)))
    assert not wrong, wrong[:3]
    return taken, asked


def programs(sampled):
    """Returns number of all devices' programs in a sample, (requests, {…})."""
    return sum(value for (what, kind), value in sampled[1].items()
               if kind == "objects" and what.endswith(" program"))


def run(service, minutes, every, quiet=10):
    """Yields rows; in the end, raises AssertionError if something is wrong."""
    warm_up(service, every, quiet)
    for _ in range(TRIES):
        taken, asked = measure(service, every, minutes)
        if programs(taken[0]) == programs(taken[-1]):
            break
        yield {"requests": sum(asked.values()), "of them": "a device made programs meanwhile: it was not warm"}
    wrong, passed = [], [at for at, _ in taken]
    for what, kind in sorted(taken[-1][1], key=lambda key: key[::-1]):
        s = judge(passed, [seen.get((what, kind), 0) for _, seen in taken], FLOORS[kind])
        unit = 1e-6 if kind in ("pss", "rss") else 1
        if s.grows and not (unit < 1 and sanitized()):
            wrong.append(f"{what}: {kind} grows")
        if kind != "objects" or abs(s.slope) > 1e-6:  # they are many, and constant
            yield {"of": what, "measure": f"{kind} MB" if unit < 1 else kind, "first": s.first * unit,
                   "last": s.last * unit, "a million requests": s.slope * unit, "± error": s.error * unit,
                   "grows": "yes" if s.grows else ""}
    yield {"requests": sum(asked.values()), "minutes": minutes, "of them": dict(sorted(asked.items()))}
    metrics = service.rest()
    wrong += [f"{gauge} is not zero at rest"
              for gauge in ("stored_jobs", "stored_bytes", "spools", "spool_memory_bytes")
              if metrics.total(f"convolved_{gauge}")]
    wrong += ["a worker has died"] * bool(service.restarts())
    assert not wrong, "\n".join(wrong)


def soak(options):
    """The service under a mix of requests: does anything grow, is an answer ever wrong, is anything
    left in the end?

    Sampled are memory, descriptors and threads of the front and of every worker, and the objects
    that device workers keep; megabytes a million requests are bytes a request. Growth is judged on the
    whole measured time: it is cut into blocks, the medians of blocks (which are nearly independent, as
    single samples are not) get a least-squares line, and it fails where the lower end of the slope's
    one-sided 99.9 % interval, times the requests, is above what FLOORS allows: an allocator and a cache
    of programs settle late (a codec worker's by 6 MB in the second minute), a leak goes on. So the
    longer it runs, the smaller a leak it finds: 8 MB in a minute of 5000 requests are 1.6 kB each, in
    ten minutes 160 bytes."""
    with Collector() as collector, measured(
            *OPTIONS, "--otlp-endpoint", f"http://localhost:{collector.server_port}", "--otlp-share", "0.1",
            *options.service, environment=TWO_DEVICES) as service:
        try:
            yield from run(service, options.minutes, cases())
        except AssertionError as wrong:
            sys.exit(str(wrong))
