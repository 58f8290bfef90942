"""The service beside image services of Python, with the same work: a JPEG posted over eight
connections, blurred (Gaussian, sigma 1.1), and answered as a JPEG of quality 85.

    peers.py [--rounds N] [--seconds N] [--sides N,N] [--json] PYTHON

PYTHON is that of an environment with granian, starlette, opencv-python-headless and pyvips, and with
thumbor or not; thumbor takes no bodies, so it reads the image from a file. Each service has as many
processes as there are cores. All are loaded in turns, by wrk, and the medians are compared: a
machine that is shared drifts, and drifts for all alike. Beside the rates are the times that the
processors spend on a request, which other work on the machine changes less.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import urllib.request

from service import PORT, Service, photograph, wait_until, wrk

HERE = os.path.dirname(os.path.abspath(__file__))
CORES = os.cpu_count()
PORTS = {"convolved": PORT, "opencv": PORT + 1, "pyvips": PORT + 2, "thumbor": PORT + 3}
PATHS = {"convolved": "v1/filters/gaussian?sigma=1.1&quality=85", "opencv": "", "pyvips": "",
         "thumbor": "unsafe/filters:blur(4,1.1):quality(85)/{side}.jpg"}
POST = """wrk.method = "POST"
local f = io.open("{source}", "rb")
wrk.body = f:read("*a")
"""
THUMBOR = """LOADER = "thumbor.loaders.file_loader"
FILE_LOADER_ROOT_PATH = "{directory}"
STORAGE = "thumbor.storages.no_storage"
PROGRESSIVE_JPEG = False
"""
# What the service is to reach, as a ratio to a peer's rate.
GOALS = {(256, "opencv"): 1.15, (256, "pyvips"): 3.5, (1024, "opencv"): 1.1}


def url(name, side):
    return f"http://127.0.0.1:{PORTS[name]}/" + PATHS[name].format(side=side)


def start_granian(python, name):
    return subprocess.Popen(
        [python, "-m", "granian", "--interface", "asgi", "--host", "127.0.0.1", "--port", str(PORTS[name]),
         "--workers", str(CORES), "--no-access-log", "--log-level", "warning", f"peers_apps:{name}"],
        cwd=HERE, start_new_session=True)


def start_thumbor(python, directory):
    """None where it is not installed."""
    if subprocess.run([python, "-c", "import thumbor"], capture_output=True).returncode:
        return None
    configuration = os.path.join(directory, "thumbor.conf")
    with open(configuration, "w") as f:
        f.write(THUMBOR.format(directory=directory))
    return subprocess.Popen([python, "-m", "thumbor.server", "-i", "127.0.0.1", "-p", str(PORTS["thumbor"]),
                             "-c", configuration, "--processes", str(CORES), "-l", "error"],
                            start_new_session=True)


def start_peers(python, directory):
    peers = {name: start_granian(python, name) for name in ("opencv", "pyvips")}
    thumbor = start_thumbor(python, directory)
    return {**peers, "thumbor": thumbor} if thumbor else peers


def answers(name, side, body):
    body = None if name == "thumbor" else body

    def asked():
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(urllib.request.Request(url(name, side), body)) as answer:
                return answer.read(3) == b"\xff\xd8\xff"
    return asked


def family(pid):
    """A process and all below it."""
    children = {}
    for other in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{other}/stat") as f:
                children.setdefault(int(f.read().rpartition(")")[2].split()[1]), []).append(int(other))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def own_seconds(pid):
    """Processor time of a process, 0 if it has ended."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat") as f:
            return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return 0


def busy_seconds(pid):
    """Processor time of a process and all below it."""
    return sum(map(own_seconds, family(pid)))


def load(name, pid, command, seconds):
    """Requests per second, and processor seconds per request."""
    begun = busy_seconds(pid)
    rate, _ = wrk(command, seconds)
    return rate, (busy_seconds(pid) - begun) / (rate * seconds)


def make_command(name, side, source):
    script = source + ".lua"
    if name == "thumbor":
        return ["wrk", "-t1", "-c8", "--timeout", "30s", url(name, side)]
    with open(script, "w") as f:
        f.write(POST.format(source=source))
    return ["wrk", "-t1", "-c8", "--timeout", "30s", "-s", script, url(name, side)]


def compare(service, services, directory, side, options):
    """{name: {"rate", "busy"}}: medians of the rounds."""
    source = os.path.join(directory, f"{side}.jpg")
    photograph(source, side)
    with open(source, "rb") as f:
        body = f.read()
    commands = {name: make_command(name, side, source) for name in services}
    figures = {name: [] for name in services}
    for name, process in services.items():
        wait_until(answers(name, side, body), 60, f"{name} does not answer")
        if name == "convolved":
            service.tuned()
        load(name, process.pid, commands[name], 2)
    for _ in range(options.rounds):
        for name, process in services.items():
            figures[name].append(load(name, process.pid, commands[name], options.seconds))
    return {name: {"rate": statistics.median(rate for rate, _ in f),
                   "busy": statistics.median(busy for _, busy in f)} for name, f in figures.items()}


def show(side, figures):
    print(f"\n{side}x{side} JPEG, 8 connections, {CORES} cores")
    print(f"{'':12}{'requests/s':>12}{'processor ms':>14}{'our rate':>10}{'goal':>7}{'our time':>10}")
    ours = figures["convolved"]
    for name, f in figures.items():
        print(f"{name:12}{f['rate']:12.0f}{f['busy'] * 1e3:14.2f}{ours['rate'] / f['rate']:10.2f}"
              f"{GOALS.get((side, name), ''):>7}{ours['busy'] / f['busy']:10.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--sides", default="256,1024")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="convolved-bench-")
    service, peers, results = Service().ready(), {}, {}
    try:
        service.settle()
        peers = start_peers(options.python, directory)
        for side in map(int, options.sides.split(",")):
            results[side] = compare(service, {"convolved": service.process, **peers}, directory, side, options)
            if not options.json:
                show(side, results[side])
    finally:
        for peer in peers.values():  # with the processes that thumbor leaves behind
            os.killpg(peer.pid, signal.SIGTERM)
            peer.wait(30)
        service.stop()
        shutil.rmtree(directory)
    if options.json:
        json.dump({"cores": CORES, "sides": results}, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
