"""Figures of the service on this machine, as ratios within one run.

Every pair is measured interleaved, A B A B …, and the median of each is compared: a machine that is
shared drifts, and drifts for both alike. The service is warm (all its programs are there, and ten requests
before the first that counts), but for the first answers, which others of their own give.
`--json` prints the figures as JSON instead of a table.
"""
import argparse
import contextlib
import functools
import http.client
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import numpy

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CONVOLVED_BUILD", os.path.join(TOP, "build"))
PORT = 8709
# A script for wrk.
POST = """wrk.method = "POST"
local f = io.open("{source}", "rb")
wrk.body = f:read("*a")
"""


def wait_until(condition, seconds, complaint):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(complaint)
        time.sleep(0.02)


class Service:
    """The daemon on a port of its own; its cache is kept between runs, its state is not. `program` is the
    command that starts it."""

    def __init__(self, *flags, cache=None, program=(os.path.join(BUILD, "convolved"),)):
        self.directory = tempfile.mkdtemp(prefix="convolved-bench-")
        cache = cache or os.path.join(os.path.expanduser("~"), ".cache", "convolved")
        self.process = subprocess.Popen(
            [*program, "--listen", f"127.0.0.1:{PORT}", "--cache-dir", cache,
             "--state-dir", self.directory, "--log-level", "warning", *flags])

    def ready(self):
        def answers():
            with contextlib.suppress(OSError):
                return urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz").status == 200
        wait_until(answers, 120, "the service did not become ready")
        return self

    def settle(self):
        """Waits until every program that has been asked for is there."""
        wait_until(lambda: not self.pending(), 600, "the programs are still not all there")

    def pending(self):
        """Returns the number of programs that are still to be made."""
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics") as metrics:
            found = re.findall(r"^convolved_programs_pending\{.*\} (\d+)", metrics.read().decode(), re.M)
        return sum(map(int, found))

    def tuned(self):
        """Waits until the tuner has chosen a kernel for each request so far, as in a service that
        is idle now and then."""
        def chosen():
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v1/kernels") as kernels:
                return json.load(kernels)["choices"]
        wait_until(chosen, 600, "the tuner has not chosen")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        shutil.rmtree(self.directory)

    def processes(self):
        """Returns the daemon and its workers: (name, pid)."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/status") as f:
                    status = f.read()
            except OSError:
                continue
            parent = int(re.search(r"PPid:\s+(\d+)", status)[1])
            if self.process.pid in (int(pid), parent):
                found.append((re.search(r"Name:\s+(\S+)", status)[1], int(pid)))
        return sorted(found)


def pss(pid):
    """Proportional set size, in bytes: shared pages are divided among those that map them."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return int(re.search(r"^Pss:\s+(\d+) kB", f.read(), re.M)[1]) * 1024


def own_seconds(pid):
    """Returns processor time of a process, 0 if it has ended."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat") as f:
            return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return 0


@functools.cache
def picture(side):
    """RGB of the statistics of a photograph: noise whose power falls with the square of its frequency. A JPEG of it
    has about two bits a pixel."""
    random = numpy.random.default_rng(1)
    frequency = numpy.hypot(numpy.fft.fftfreq(side)[:, None], numpy.fft.rfftfreq(side)[None, :])
    frequency[0, 0] = 1
    planes = []
    for _ in range(3):
        spectrum = numpy.fft.rfft2(random.standard_normal((side, side)).astype(numpy.float32))
        plane = numpy.fft.irfft2(spectrum / frequency ** 1.1, (side, side))
        planes.append(128 + 45 * plane / plane.std())
    luma = planes[0][..., None]
    pixels = luma + 0.3 * (numpy.stack(planes, -1) - 128)
    return numpy.clip(pixels + random.normal(0, 2, pixels.shape), 0, 255).astype(numpy.uint8)


def photograph(path, side):
    """Writes a JPEG (quality 85, 4:2:0) of it."""
    with tempfile.NamedTemporaryFile(suffix=".ppm") as f:
        f.write(b"P6\n%d %d\n255\n" % (side, side) + picture(side).tobytes())
        f.flush()
        subprocess.run(["vips", "jpegsave", f.name, path, "--Q", "85", "--subsample-mode", "on"],
                       check=True)


def timed(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def post(path, body, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    connection.request("POST", path, body, headers or {})
    answer = connection.getresponse()
    data = answer.read()
    if answer.status not in (200, 202):
        raise SystemExit(f"{path}: {answer.status} {data!r}")
    return answer


def interleaved(rounds, **actions):
    """Returns medians of each action, run in turns."""
    times = {name: [] for name in actions}
    for action in actions.values():
        action()
    for _ in range(rounds):
        for name, action in actions.items():
            times[name].append(timed(action))
    return {name: statistics.median(t) for name, t in times.items()}


def large_image(service, directory, side, rounds):
    """JPEG in, JPEG out: the service by curl against the command of libvips."""
    source, result = os.path.join(directory, "in.jpg"), os.path.join(directory, "out.jpg")
    photograph(source, side)
    figures = {"bytes": os.path.getsize(source)}

    def curl(sigma):
        url = f"http://127.0.0.1:{PORT}/v1/filters/gaussian?sigma={sigma}&quality=85"
        return lambda: subprocess.run(
            ["curl", "-sf", "--data-binary", f"@{source}", url, "-o", result], check=True)

    def vips(*words):
        return lambda: subprocess.run(["vips", *words], check=True)

    for sigma in (1.1, 10):
        for _ in range(5):
            curl(sigma)()
        service.settle()
        medians = interleaved(
            rounds, service=curl(sigma),
            gaussblur=vips("gaussblur", source, result + "[Q=85]", str(sigma)),
            copy=vips("copy", source, result + "[Q=85]"))
        timing = post(f"/v1/filters/gaussian?sigma={sigma}&quality=85",
                      open(source, "rb").read()).headers["Server-Timing"]
        figures[f"sigma {sigma}"] = {
            "service_seconds": medians["service"], "vips_gaussblur_seconds": medians["gaussblur"],
            "vips_copy_seconds": medians["copy"],
            "to_vips_gaussblur": medians["service"] / medians["gaussblur"],
            "to_decode_and_encode": medians["service"] / medians["copy"],
            "server_timing": timing}
    return figures


def small_image(directory):
    """Returns a 256x256 JPEG, and the command by which wrk posts it over eight connections."""
    source = os.path.join(directory, "small.jpg")
    photograph(source, 256)
    script = os.path.join(directory, "post.lua")
    with open(script, "w") as f:
        f.write(POST.format(source=source))
    return source, ["wrk", "-t1", "-c8", "--latency", "-s", script,
                    f"http://127.0.0.1:{PORT}/v1/filters/gaussian?sigma=1.1"]


def wrk(command, seconds):
    """Returns (requests a second, output)."""
    text = subprocess.run([*command, f"-d{seconds}"], check=True, capture_output=True,
                          text=True).stdout
    if "Non-2xx" in text or "Socket errors" in text:
        raise SystemExit(text)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]), text


def small_images(directory, seconds):
    source, command = small_image(directory)
    wrk(command, 2)
    rate, text = wrk(command, seconds)
    return {"bytes": os.path.getsize(source), "requests_per_second": rate,
            "p50": re.search(r"50%\s+(\S+)", text)[1], "p99": re.search(r"99%\s+(\S+)", text)[1]}


def first_answers(directory):
    """Returns seconds from the start of a service to its first answer, without any compiled program
    and with that which the image needs."""
    source, _ = small_image(directory)
    with open(source, "rb") as f:
        body = f.read()
    cache, seconds = os.path.join(directory, "cache"), []

    def answers():
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", PORT)
            connection.request("POST", "/v1/filters/gaussian?sigma=1.1", body)
            return connection.getresponse().status == 200
    for _ in range(2):
        begun = time.monotonic()
        service = Service(cache=cache)
        wait_until(answers, 120, "the service does not answer")
        seconds.append(time.monotonic() - begun)
        service.stop()
    return dict(zip(("empty_seconds", "warm_seconds"), seconds))


def ask_for_programs(service, random, stop):
    """Keeps special programs pending until `stop` is set, each one that most likely nobody has asked for
    before: of one of a thousand sizes of a matrix."""
    pixels = bytes(64 * 64)
    while not stop.wait(0.1):
        if service.pending() >= 8:
            continue
        width, height = random.choice(range(3, 64, 2)), random.choice(range(3, 64, 2))
        row = ",".join(str(1 + i % 5) for i in range(width))
        matrix = ";".join([row] * (height - 1) + ["1" + row[1:-1] + "9"])
        post(f"/v1/filters/convolve?kernel={matrix}&raw=64x64x1:u8&format=raw", pixels)


@contextlib.contextmanager
def compiling(service, random):
    """Special programs are being compiled all the time within it."""
    stop = threading.Event()
    asking = threading.Thread(target=ask_for_programs, args=(service, random, stop))
    asking.start()
    try:
        wait_until(service.pending, 60, "no program is pending")
        yield
    finally:
        stop.set()
        asking.join()


def while_compiling(service, folder, rounds, seconds):
    """The small images, with nothing to compile and while special programs are compiled, in turns."""
    random = numpy.random.default_rng()
    _, command = small_image(folder)
    rates = {"warm": [], "compiling": []}
    for _ in range(rounds):
        service.settle()
        rates["warm"].append(wrk(command, seconds)[0])
        with compiling(service, random):
            rates["compiling"].append(wrk(command, seconds)[0])
    warm, beside = (statistics.median(rates[name]) for name in ("warm", "compiling"))
    return {"warm_requests_per_second": warm, "compiling_requests_per_second": beside,
            "to_warm": beside / warm}


def recovery(service):
    """Returns seconds from when the device workers are killed, or stand still, until an image
    passes again; the median of two times each, which is too few for a quarantine."""
    def passes():
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v1/filters/box?raw=64x64x1:u8&format=raw",
                                          bytes(64 * 64)).status == 200

    def after(number):
        begun = time.monotonic()
        for name, pid in service.processes():
            if name.startswith("convolved-devic"):
                os.kill(pid, number)
        wait_until(passes, 120, "no device came back")
        return time.monotonic() - begun
    return {f"{name}_seconds": statistics.median(after(number) for _ in range(2))
            for name, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP))}


def time_left():
    """Compares the time left that a job tells when half of its tiles are done with the time that it
    then takes."""
    side = 900
    answer = post(f"/v1/filters/bilateral?radius=16&raw={side}x{side}x3:u8&format=raw",
                  numpy.random.default_rng(3).bytes(side * side * 3), {"Prefer": "respond-async"})
    job = f"http://127.0.0.1:{PORT}{answer.headers['Location']}"

    def look(query=""):
        with urllib.request.urlopen(job + query) as description:
            return json.load(description)

    def halfway():
        seen.append(look())
        tiles = seen[-1]["progress"]
        return seen[-1]["state"] == "done" or tiles["tiles"] and 2 * tiles["tiles_done"] >= tiles["tiles"]
    seen = []
    wait_until(halfway, 120, "the job does not get on")
    begun = time.monotonic()
    while look("?wait=60")["state"] != "done":
        pass
    return (seen[-1]["left_seconds"] or 0) / (time.monotonic() - begun)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--side", type=int, default=4096, help="of the large image")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="convolved-bench-")
    first = first_answers(directory)
    service = Service().ready()
    try:
        service.settle()
        idle = {f"{name} {pid}": pss(pid) for name, pid in service.processes()}
        large = large_image(service, directory, options.side, options.rounds)
        small = small_images(directory, options.seconds)
        left = time_left()
        beside = while_compiling(service, directory, min(options.rounds, 5),
                                 min(options.seconds, 4))
        recovered = recovery(service)
    finally:
        service.stop()
        shutil.rmtree(directory)
    if options.json:
        json.dump({"first_answer": first, "large": large, "small": small,
                   "time_left_to_taken": left, "recovery": recovered,
                   "while_compiling": beside, "idle_pss_bytes": idle}, sys.stdout, indent=2)
        print()
        return
    print(f"{options.side}x{options.side} JPEG ({large['bytes'] / 1e6:.1f} MB, quality 85, 4:2:0) in, JPEG out; median of"
          f" {options.rounds}, interleaved")
    print(f"{'gaussian':12}{'service':>10}{'gaussblur':>11}{'copy':>9}{'/gaussblur':>12}{'/copy':>8}")
    for sigma in ("sigma 1.1", "sigma 10"):
        f = large[sigma]
        print(f"{sigma:12}{f['service_seconds'] * 1e3:8.0f}ms{f['vips_gaussblur_seconds'] * 1e3:9.0f}ms"
              f"{f['vips_copy_seconds'] * 1e3:7.0f}ms{f['to_vips_gaussblur']:12.2f}"
              f"{f['to_decode_and_encode']:8.2f}")
        print("            " + f["server_timing"].replace(";dur=", " "))
    print(f"\n256x256 JPEG ({small['bytes'] / 1e3:.0f} kB), 8 connections: "
          f"{small['requests_per_second']:.0f} requests/s, p50 {small['p50']}, p99 {small['p99']}")
    print(f"while special programs are compiled: {beside['compiling_requests_per_second']:.0f} requests/s,"
          f" {beside['to_warm']:.2f} of the {beside['warm_requests_per_second']:.0f} when all are there")
    print(f"\nfirst answer: {first['empty_seconds']:.2f} s after a start with an empty cache,"
          f" {first['warm_seconds']:.2f} s with a warm one")
    print(f"an image passes {recovered['killed_seconds']:.2f} s after the device workers were killed,"
          f" {recovered['stopped_seconds']:.2f} s after they were stopped")
    print(f"halfway, a job says {left:.2f} of the time that it takes yet")
    print("\nidle memory (PSS) of each process, in MB")
    for name, size in idle.items():
        print(f"  {name:28}{size / 1e6:8.1f}")


if __name__ == "__main__":
    main()
