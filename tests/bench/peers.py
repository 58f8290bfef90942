"""The service beside OpenCV in granian, which runs `app` in a process for each core with one thread
at work in each.

A body posted to /FILTER/FORMAT there is decoded, filtered and encoded. Borders are replicated, as
by the service's default."""
import contextlib
import fnmatch
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from collections import namedtuple

import cv2
import numpy as np
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from measure import HERE, measured, middle, picture, rest, timed, turbo, turns, used, wrk
from opencv import EDGE, gauss, sobel_magnitude
from service import Client, free_port, poll

cv2.setNumThreads(1)


def canny(image):
    """Edges in all bands, as the service's answer has them."""
    edges = cv2.Canny(gauss(11, 1.4)(image), 102, 204, apertureSize=3, L2gradient=True)
    return cv2.cvtColor(edges, cv2.COLOR_GRAY2BGR)


# name: the service's filter, the same by OpenCV, and how far their pixels are apart at most, in the
# mean (of 255): one level where both round, nothing where they choose a pixel; as distance of two
# colours OpenCV's bilateral filter adds up the differences of bands, and the service takes the root
# of the sum of squares.
FILTERS = {
    "gaussian": ("gaussian?sigma=1.1", gauss(9, 1.1), 0.2),
    "gaussian20": ("gaussian?sigma=20", gauss(121, 20), 0.2),
    "median5": ("median?radius=2", lambda image: cv2.medianBlur(image, 5), 0),
    "bilateral9": ("bilateral?radius=4&sigma_space=3&sigma_range=0.1",
                   lambda image: cv2.bilateralFilter(image, 9, 25.5, 3, borderType=EDGE), 4),
    "sobel": ("sobel?output=magnitude", sobel_magnitude, 0),
    "canny": ("canny?low=0.4&high=0.8&sigma=1.4", canny, 0.2),
    "erode7": ("erode?size=7", lambda image: cv2.erode(image, np.ones((7, 7), np.uint8), borderType=EDGE), 0),
}
# name: parameters for the service, and for OpenCV. A JPEG has its colours at half the resolution; a
# PNG is compressed as each of them does by default.
FORMATS = {
    "jpeg": ("&quality=85", (".jpg", [cv2.IMWRITE_JPEG_QUALITY, 85])),
    "png": ("", (".png", [])),
    "webp": ("&quality=80", (".webp", [cv2.IMWRITE_WEBP_QUALITY, 80])),
}
Row = namedtuple("Row", "filter format side")
ROWS = {f"{row.filter}-{row.format}-{row.side}": row for row in (
    *(Row("gaussian", name, side) for name in FORMATS for side in (256, 1024, 4096)),
    *(Row(name, "jpeg", 1024) for name in FILTERS if name != "gaussian"))}
# Large bodies of many connections of one client fit.
LIMITS = ("--max-memory", "8G", "--client-share", "1", "--max-wait", "3600")
# Between files of the same pixels: libraries of other releases may encode otherwise.
ENCODED = 0.5


# OpenCV's service ---------------------------------------------------------------------------------

def encode(image, name):
    return cv2.imencode(FORMATS[name][1][0], image, FORMATS[name][1][1])[1].tobytes()


def decode(body):
    return cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR)


async def answer(request):
    try:
        image = decode(await request.body())
    except ClientDisconnect:  # wrk's turn is over
        return Response(status_code=400)
    image = FILTERS[request.path_params["filter"]][1](image)
    name = request.path_params["format"]
    return Response(encode(image, name), media_type=f"image/{name}")


app = Starlette(routes=[Route("/{filter}/{format}", answer, methods=["POST"])])


# Measurements -------------------------------------------------------------------------------------

def peers(options):
    """The service beside OpenCV in granian, and beside libjpeg-turbo alone: rows of the same work.

    wrk posts images to each service in turns. `by rate` and `by processor` (time of all processes
    of a service for a request) say how many times as good as OpenCV's the service's is. Both
    services and wrk run on the same cores, one thread of each core before any second one; OpenCV
    has a process for each. Both are first held to the same pixels. libjpeg-turbo alone decodes and
    encodes the same file in as many processes, in turns with them.

    On a host without a build, name the commands, and run this by a Python with granian, starlette
    and cv2."""
    rows = [name for name in ROWS if any(fnmatch.fnmatch(name, pattern) for pattern in options.rows.split(","))]
    counts, usable = list(map(int, options.cores.split(","))), cores_in_order()
    if not rows or not 1 <= min(counts) <= max(counts) <= len(usable):
        sys.exit(f"no such rows, or other than 1 to {len(usable)} cores; rows are {', '.join(ROWS)}")
    failed, found = False, {}
    with tempfile.TemporaryDirectory(prefix="convolved-bench-") as directory:
        for count in counts:
            os.sched_setaffinity(0, usable[:count])
            with measured(*LIMITS, *options.service, program=options.program) as service, granian(count) as opencv:
                for name in rows:
                    source = write_file(pathlib.Path(directory), ROWS[name])
                    try:
                        row = measure(ROWS[name], source, service, opencv, count, options)
                    except (OSError, AssertionError, SystemExit) as problem:  # the others can do without it
                        print(f"{name}, {count} cores: {problem}", file=sys.stderr, flush=True)
                        failed = True
                        continue
                    found.setdefault(name, {})[count] = row
                    yield {"row": name, "cores": count, **row}
    for name, by_count in found.items() if len(counts) > 1 else ():
        cells = {count: f"{row['requests/s']:.4g} / {row['OpenCV']:.4g}" for count, row in by_count.items()}
        yield {"requests/s / OpenCV": name, **{f"{count} cores": cells.get(count) for count in counts}}
    if failed:
        sys.exit("rows are missing")


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


@contextlib.contextmanager
def granian(count):
    """OpenCV's service, a client of it with the process."""
    client = Client("127.0.0.1", free_port())
    client.process = subprocess.Popen(
        [sys.executable, "-m", "granian", "--interface", "asgi", "--host", client.host, "--port", str(client.port),
         "--workers", str(count), "--no-access-log", "--log-level", "warning", "peers:app"],
        cwd=HERE, env={**os.environ, "PYTHONPATH": os.pathsep.join(
            [str(HERE), str(HERE.parent / "lib"), os.environ.get("PYTHONPATH", "")])})
    try:
        yield client
    finally:
        client.process.terminate()
        client.process.wait(60)


def write_file(directory, row):
    """Returns the path of the image that rows of this format and side post."""
    source = directory / f"{row.side}.{row.format}"
    if not source.exists():
        source.write_bytes(encode(np.ascontiguousarray(picture(row.side)[..., ::-1]), row.format))
    return source


def measure(row, source, service, opencv, count, options):
    body = source.read_bytes()
    targets = {"convolved": (service, f"/v1/filters/{FILTERS[row.filter][0]}{FORMATS[row.format][0]}"),
               "opencv": (opencv, f"/{row.filter}/{row.format}")}
    answers = {name: first_answer(*target, body) for name, target in targets.items()}
    service.rest(programs=True)
    apart = compare(row, body, service, answers)
    connections = min(options.connections, 4 * count) if row.side > 1024 else options.connections
    # Long enough that most of the answered requests began within it.
    alone = max(timed(lambda: post(client, target, body)) for client, target in targets.values())
    seconds = max(options.seconds, math.ceil(2 * connections * alone / 1e3 / count))

    def ask(client, target):
        """Requests that its clients leave undone do not count."""
        before = sum(used(client.process.pid).values())
        figures = wrk(client.url + target, source, connections, seconds, max(1, count // 8), options.wrk)
        spent = sum(used(client.process.pid).values()) - before
        rest(client.process.pid)
        return {**figures, "processor_ms": spent * 1e3 / figures["requests"]}

    ways = {name: lambda target=target: ask(*target) for name, target in targets.items()}
    turns(0, ways)
    poll(lambda: service.get("/v1/kernels").json()["choices"], what="the tuner's choice")
    rest(service.process.pid)
    if options.turbo and (row.filter, row.format) == ("gaussian", "jpeg"):
        ways["turbo"] = lambda: turbo(options.turbo, source, count, options.seconds)
    found = {name: middle(rounds) for name, rounds in turns(options.rounds, ways, warm=False).items()}
    ours, theirs = found["convolved"], found["opencv"]
    return {"requests/s": ours["rate"], "OpenCV": theirs["rate"], "by rate": ours["rate"] / theirs["rate"],
            "by processor": theirs["processor_ms"] / ours["processor_ms"],
            "p50 ms": ours["p50_ms"], "p99 ms": ours["p99_ms"], "OpenCV p50": theirs["p50_ms"],
            "OpenCV p99": theirs["p99_ms"], "bytes": len(answers["convolved"]), "OpenCV bytes": len(answers["opencv"]),
            "of libjpeg-turbo": ours["rate"] / found["turbo"] if "turbo" in found else None,
            "apart": apart, "connections": connections, "seconds": seconds}


def first_answer(client, target, body):
    def there():
        with contextlib.suppress(OSError):
            return post(client, target, body)
    return poll(there, what=target)


def post(client, target, body):
    answer = client.post(target, body)
    assert answer.status == 200, answer
    return answer.body


def compare(row, body, service, answers):
    """Returns the mean difference of the filters' pixels, once it is sure that both services did
    the same work."""
    name, by_opencv, limit = FILTERS[row.filter]
    filtered, expected = decode(post(service, f"/v1/filters/{name}&format=png", body)), by_opencv(decode(body))
    assert answers["opencv"] == encode(expected, row.format), "OpenCV's service answers something else than OpenCV"
    apart = float(cv2.absdiff(filtered, expected).mean())
    encoded = float(cv2.absdiff(decode(answers["convolved"]), decode(encode(filtered, row.format))).mean())
    assert apart <= limit and encoded <= ENCODED, (
        f"pixels differ by {apart:.3f} in the mean, and by {encoded:.3f} as they are encoded")
    return apart
