"""The service as a whole, on this machine."""
import contextlib
import pathlib
import subprocess
import tempfile
import time

import numpy as np

from measure import GAUSSIAN, measured, memory, middle, photograph, timed, turns, write, wrk
from service import Service, meanwhile, poll


def whole(options):
    """Times of whole requests. The service is warm (all its programs are there), but for the first
    answers."""
    with tempfile.TemporaryDirectory(prefix="convolved-bench-") as name:
        directory = pathlib.Path(name)
        yield from first_answers(directory)
        with measured(*options.service) as service:
            service.rest(programs=True)
            for process in service.processes():
                yield figure(f"memory (PSS) of {process.name} at rest", memory(process) / 1e6, "MB")
            yield from large_image(service, write(directory, options.side), options.rounds)
            yield from small_images(service, write(directory, 256), options)


def figure(name, value, unit):
    return {"figure": name, "value": float(value), "unit": unit}


def first_answers(directory):
    """From the start of a service to its first answer, without any compiled program and with those
    that the image needs."""
    body = photograph(256)
    for cache in ("an empty", "a warm"):
        service = Service(directory / "first", directory / "cache")

        def answers():
            with contextlib.suppress(OSError):
                return service.post(GAUSSIAN, body).status == 200

        def start():
            service.start(ready=False)
            poll(answers, what="an answer", interval=0.02)
        try:
            yield figure(f"first answer after a start with {cache} cache", timed(start) / 1e3, "s")
        finally:
            service.end(None)


def large_image(service, source, rounds):
    """JPEG in, JPEG out: the service by curl beside commands of libvips."""
    result = source.with_name("result.jpg")
    for sigma in (1.1, 10):
        target = f"/v1/filters/gaussian?sigma={sigma}&quality=85"
        commands = {
            "service": ["curl", "-sf", "--data-binary", f"@{source}", service.url + target, "-o", result],
            "gaussblur": ["vips", "gaussblur", source, f"{result}[Q=85]", str(sigma)],
            "copy": ["vips", "copy", source, f"{result}[Q=85]"]}
        for _ in range(5):
            subprocess.run(commands["service"], check=True)
        service.rest(programs=True)
        found = turns(rounds, {name: lambda command=command: timed(lambda: subprocess.run(command, check=True))
                               for name, command in commands.items()})
        ms = {name: middle(times) for name, times in found.items()}
        yield {"gaussian": f"sigma {sigma}", **{f"{name} ms": took for name, took in ms.items()},
               "service / gaussblur": ms["service"] / ms["gaussblur"], "service / copy": ms["service"] / ms["copy"],
               "ms of stages": service.post(target, source.read_bytes()).timing}


def small_images(service, source, options):
    """With nothing to compile, and while special programs are compiled, in turns."""
    def ask():
        return wrk(service.url + GAUSSIAN, source, seconds=options.seconds, threads=1)

    def warm():
        service.rest(programs=True)
        return ask()

    def beside():
        with compiling(service):
            return ask()

    found = turns(min(options.rounds, 5), {"all are there": warm, "some are compiled": beside})
    rates = {name: middle(rounds)["rate"] for name, rounds in found.items()}
    for name, rounds in found.items():
        figures = middle(rounds)
        yield {"256x256, 8 connections, programs": name, "requests/s": figures["rate"], "p50 ms": figures["p50_ms"],
               "p99 ms": figures["p99_ms"], "of the first": figures["rate"] / rates["all are there"]}


@contextlib.contextmanager
def compiling(service):
    """Special programs are pending all the time within it, each one that most likely nobody has
    asked for before: of one of a thousand sizes of a matrix."""
    random = np.random.default_rng()

    def pending():
        return service.total("convolved_programs_pending")

    def ask():
        time.sleep(0.1)
        if pending() < 8:
            width, height = random.choice(range(3, 64, 2), 2)
            row = ",".join(str(1 + i % 5) for i in range(width))
            matrix = ";".join([row] * (height - 1) + ["1" + row[1:-1] + "9"])
            service.post(f"/v1/filters/convolve?kernel={matrix}&raw=64x64x1:u8&format=raw", bytes(64 * 64))

    with meanwhile(ask):
        poll(pending, what="a pending program", interval=0.02)
        yield
