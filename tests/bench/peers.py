"""The service beside OpenCV in granian, and beside libjpeg-turbo alone: rows of the same work.

    peers.py [--rows PATTERN,...] [--cores N,...] [--rounds N] [--seconds N] [--connections N] [--json FILE]
             [--program COMMAND] [--wrk COMMAND] [--turbo COMMAND]

The Python that runs this runs granian, too; it needs granian, starlette and cv2. wrk posts images to each service in
turns, and the medians are compared: a machine that is shared drifts, and drifts for all alike. `by rate` and
`by processor` (time of all processes of a service for a request) say how many times as good as OpenCV's
the service's is. Both services and wrk run on the same N cores, one thread of each core before any second
one; OpenCV has a process for each. Both are first held to the same pixels.

libjpeg-turbo alone (`--turbo`, bench_jpeg) decodes and encodes the same file in as many processes, in turns
with them. On a host without this repository's build, name the commands; `--turbo ''` leaves it out.
"""
import argparse
import contextlib
import fnmatch
import json
import math
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import namedtuple

import cv2
import numpy

from peers_apps import FILTERS, FORMATS, decode, encode
from service import BUILD, PORT, POST, Service, own_seconds, picture, timed, wait_until, wrk

HERE = os.path.dirname(os.path.abspath(__file__))
Row = namedtuple("Row", "filter format side")
ROWS = {f"{row.filter}-{row.format}-{row.side}": row for row in (
    *(Row("gaussian", name, side) for name in FORMATS for side in (256, 1024, 4096)),
    *(Row(name, "jpeg", 1024) for name in FILTERS if name != "gaussian"))}
# Large bodies of many connections of one client fit.
LIMITS = ("--max-memory", "8G", "--client-share", "1", "--max-wait", "3600")
# Between files of the same pixels: libraries of other releases may encode otherwise.
ENCODED = 0.5
UNITS = {"us": 1e-3, "ms": 1, "s": 1e3, "m": 6e4}
HEAD = ("row", "cores", "requests/s", "OpenCV", "by rate", "by processor", "p50, p99 ms", "OpenCV", "bytes",
        "OpenCV", "of libjpeg-turbo")


def cores_in_order():
    """Returns the cores that may be used, one thread of each core before any second one."""
    def rank(core):
        try:
            with open(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list") as f:
                ranges = [list(map(int, part.split("-"))) for part in f.read().split(",")]
        except OSError:
            return 0
        return sum(min(core, part[-1] + 1) - part[0] for part in ranges if part[0] < core)
    return sorted(os.sched_getaffinity(0), key=lambda core: (rank(core), core))


def family(pid):
    """Returns a process and all below it."""
    children = {}
    for other in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{other}/stat") as f:
                children.setdefault(int(f.read().rpartition(")")[2].split()[1]), []).append(int(other))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def busy_seconds(pid):
    """Returns processor time of a process and all below it."""
    return sum(map(own_seconds, family(pid)))


def rest(pid):
    """Waits until a service has finished all work that clients have left, and its tuner has
    finished, too."""
    def idle():
        before = busy_seconds(pid)
        time.sleep(0.3)
        return busy_seconds(pid) - before < 0.03
    wait_until(idle, 600, "a service does not come to rest")


def start_granian(cores):
    return subprocess.Popen(
        [sys.executable, "-m", "granian", "--interface", "asgi", "--host", "127.0.0.1", "--port", str(PORT + 1),
         "--workers", str(cores), "--no-access-log", "--log-level", "warning", "peers_apps:app"],
        cwd=HERE)


@contextlib.contextmanager
def services(options, cores):
    """The service and OpenCV's on these cores, on which this program then is, too."""
    os.sched_setaffinity(0, cores)
    service = Service(*LIMITS, program=shlex.split(options.program))
    opencv = start_granian(len(cores))
    try:
        service.ready().settle()
        yield service, opencv
    finally:
        opencv.terminate()
        opencv.wait(60)
        service.stop()


def urls(row):
    return {"convolved": f"http://127.0.0.1:{PORT}/v1/filters/{FILTERS[row.filter][0]}{FORMATS[row.format][0]}",
            "opencv": f"http://127.0.0.1:{PORT + 1}/{row.filter}/{row.format}"}


def ask(url, body):
    with urllib.request.urlopen(url, body) as answer:
        return answer.read()


def answering(url, body):
    def asked():
        with contextlib.suppress(OSError):
            return ask(url, body)
    return asked


def compare(row, body, answers):
    """Ends the row unless both services did the same work; the mean difference of the filters' pixels."""
    name, by_opencv, limit = FILTERS[row.filter]
    filtered = decode(ask(f"http://127.0.0.1:{PORT}/v1/filters/{name}&format=png", body))
    expected = by_opencv(decode(body))
    if answers["opencv"] != encode(expected, row.format):
        raise SystemExit("OpenCV's service answers something else than OpenCV")
    apart = float(cv2.absdiff(filtered, expected).mean())
    encoded = float(cv2.absdiff(decode(answers["convolved"]), decode(encode(filtered, row.format))).mean())
    if apart > limit or encoded > ENCODED:
        raise SystemExit(f"pixels differ by {apart:.3f} in the mean, and by {encoded:.3f} as they are encoded")
    return apart


def milliseconds(text, share):
    number, unit = re.search(rf"{share}%\s+([\d.]+)([a-z]+)", text).groups()
    return float(number) * UNITS[unit]


def load(pid, command, seconds):
    """Runs a turn of a service; requests that its clients leave undone do not count."""
    begun = busy_seconds(pid)
    rate, text = wrk(command, seconds)
    spent = busy_seconds(pid) - begun
    rest(pid)
    return {"rate": rate, "processor_ms": spent * 1e3 / int(re.search(r"(\d+) requests in", text)[1]),
            "p50_ms": milliseconds(text, 50), "p99_ms": milliseconds(text, 99)}


def turbo(options, cores, source):
    """Runs a turn of libjpeg-turbo alone."""
    text = subprocess.run([*shlex.split(options.turbo), "-f", "-c", str(cores), "-s", str(options.seconds), source],
                          check=True, capture_output=True, text=True).stdout
    return {"rate": float(re.search(r"([\d.]+) images/s", text)[1])}


def measure(row, source, service, processes, options, cores):
    """Returns medians of the rounds: {"convolved", "opencv", "turbo": {"rate", …}, …}."""
    with open(source, "rb") as f:
        body = f.read()
    addresses = urls(row)
    for name, url in addresses.items():
        wait_until(answering(url, body), 60, f"{name} does not answer")
    service.settle()
    answers = {name: ask(url, body) for name, url in addresses.items()}
    apart = compare(row, body, answers)
    connections = min(options.connections, 4 * cores) if row.side > 1024 else options.connections
    # Long enough that most of the answered requests began within it.
    alone = max(timed(lambda: ask(url, body)) for url in addresses.values())
    seconds = max(options.seconds, math.ceil(2 * connections * alone / cores))
    command = [*shlex.split(options.wrk), f"-t{max(1, cores // 8)}", f"-c{connections}", "--latency",
               "--timeout", "300s", "-s", source + ".lua"]
    turns = {name: lambda pid=pid, url=addresses[name]: load(pid, [*command, url], seconds)
             for name, pid in processes.items()}
    for turn in turns.values():
        turn()
    service.tuned()
    rest(processes["convolved"])
    if options.turbo and (row.filter, row.format) == ("gaussian", "jpeg"):
        turns["turbo"] = lambda: turbo(options, cores, source)
    rounds = [{name: turn() for name, turn in turns.items()} for _ in range(options.rounds)]
    found = {name: {key: statistics.median(one[name][key] for one in rounds) for key in rounds[0][name]}
             for name in turns}
    for name, answer in answers.items():
        found[name]["bytes"] = len(answer)
    ours, theirs = found["convolved"], found["opencv"]
    return {**found, "by_rate": ours["rate"] / theirs["rate"],
            "by_processor": theirs["processor_ms"] / ours["processor_ms"],
            "of_turbo": ours["rate"] / found["turbo"]["rate"] if "turbo" in found else None,
            "difference": apart, "connections": connections, "seconds": seconds}


def line(cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def show(name, cores, found):
    """A row of a table in Markdown."""
    ours, theirs = found["convolved"], found["opencv"]
    line((name, cores, *(f"{one['rate']:.4g}" for one in (ours, theirs)),
          *(f"{found[key]:.2f}" for key in ("by_rate", "by_processor")),
          *(f"{one['p50_ms']:.4g}, {one['p99_ms']:.4g}" for one in (ours, theirs)),
          *(one["bytes"] for one in (ours, theirs)),
          f"{found['of_turbo']:.2f}" if found["of_turbo"] else "-"))


def summarize(results):
    """The table of rows by cores: requests a second, and how many times OpenCV's."""
    cores = list(dict.fromkeys(one["cores"] for one in results))
    print()
    line(("requests/s, times OpenCV", *(f"{n} cores" for n in cores)))
    line(["---"] * (len(cores) + 1))
    for name in dict.fromkeys(one["row"] for one in results):
        by_cores = {one["cores"]: one for one in results if one["row"] == name}
        line((name, *(f"{by_cores[n]['convolved']['rate']:.4g}, {by_cores[n]['by_rate']:.2f}" if n in by_cores else "-"
                      for n in cores)))


def write_file(directory, row):
    """Returns the image that a row posts, and its script for wrk; its path."""
    source = os.path.join(directory, f"{row.side}.{row.format}")
    if not os.path.exists(source):
        with open(source, "wb") as f:
            f.write(encode(numpy.ascontiguousarray(picture(row.side)[..., ::-1]), row.format))
        with open(source + ".lua", "w") as f:
            f.write(POST.format(source=source))
    return source


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="*", help="of " + ", ".join(ROWS))
    parser.add_argument("--cores", default=str(len(os.sched_getaffinity(0))))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="of a turn, or longer where requests are slow")
    parser.add_argument("--connections", type=int, default=32, help="images of 4096x4096: at most 4 a core")
    parser.add_argument("--json", metavar="FILE", help="writes all figures here, after each row")
    parser.add_argument("--program", default=os.path.join(BUILD, "convolved"))
    parser.add_argument("--wrk", default="wrk")
    parser.add_argument("--turbo", default=os.path.join(BUILD, "bench_jpeg"))
    options = parser.parse_args()
    options.rows = [name for name in ROWS if any(fnmatch.fnmatch(name, p) for p in options.rows.split(","))]
    options.cores = list(map(int, options.cores.split(",")))
    usable = cores_in_order()
    if not options.rows or not 1 <= min(options.cores) <= max(options.cores) <= len(usable):
        parser.error(f"no such rows, or other than 1 to {len(usable)} cores")
    return options, usable


def run(options, usable, directory):
    """Returns (the figures of all rows, whether one failed)"""
    results, failed = [], False
    for cores in options.cores:
        with services(options, usable[:cores]) as (service, opencv):
            processes = {"convolved": service.process.pid, "opencv": opencv.pid}
            for name in options.rows:
                source = write_file(directory, ROWS[name])
                try:
                    found = measure(ROWS[name], source, service, processes, options, cores)
                except (OSError, SystemExit, subprocess.SubprocessError) as problem:  # the others can do without it
                    print(f"{name}, {cores} cores: {problem}", file=sys.stderr, flush=True)
                    failed = True
                    continue
                show(name, cores, found)
                results.append({"row": name, "cores": cores, **found})
                if options.json:
                    with open(options.json, "w") as f:
                        json.dump(results, f, indent=1)
    return results, failed


def main():
    options, usable = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the services, too
    directory = tempfile.mkdtemp(prefix="convolved-bench-")
    line(HEAD)
    line(["---"] * len(HEAD))
    try:
        results, failed = run(options, usable, directory)
    finally:
        shutil.rmtree(directory)
    if len(options.cores) > 1:
        summarize(results)
    return failed


if __name__ == "__main__":
    sys.exit(main())
