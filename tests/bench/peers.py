"""The service beside OpenCV and libvips in granian, which runs `app` in a process for each core with
one thread at work in each.

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
os.environ["VIPS_CONCURRENCY"] = "1"  # before it is loaded


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
    "box25": ("resize?width=25%25&kernel=box",
              lambda image: cv2.resize(image, None, fx=.25, fy=.25, interpolation=cv2.INTER_AREA), 0.5),
    "erode7": ("erode?size=7", lambda image: cv2.erode(image, np.ones((7, 7), np.uint8), borderType=EDGE), 0),
}


def thumbnail(body, shrink):
    """shrink: the decoder makes it smaller, as far as twice the thumbnail's size."""
    import pyvips  # no other row needs it

    image = pyvips.Image.new_from_buffer(body, "", access="sequential")
    small = pyvips.Image.thumbnail_buffer(body, image.width // 4) if shrink else image.thumbnail_image(
        image.width // 4)
    return small.write_to_buffer(".jpg", Q=85)


# name: the service's filter, the same by libvips, from file to file, and how far the files' pixels
# are apart at most: libvips takes the mean of 2x2 pixels first, and each library's scaled decoding
# does something like that.
THUMBNAILS = {
    "thumbnail": ("resize?width=25%25", lambda body: thumbnail(body, shrink=False), 4),
    "draft": ("resize?width=25%25&draft=1", lambda body: thumbnail(body, shrink=True), 4),
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
    *(Row(name, "jpeg", 1024) for name in FILTERS if name not in ("gaussian", "box25")),
    *(Row(name, "jpeg", 4096) for name in ("box25", *THUMBNAILS)))}
# Large bodies of many connections of one client fit.
LIMITS = ("--max-memory", "8G", "--client-share", "1", "--max-wait", "3600")
# Between files of the same pixels: libraries of other releases may encode otherwise.
ENCODED = 0.5


# The other service --------------------------------------------------------------------------------

def encode(image, name):
    return cv2.imencode(FORMATS[name][1][0], image, FORMATS[name][1][1])[1].tobytes()


def decode(body):
    return cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR)


async def answer(request):
    try:
        body = await request.body()
    except ClientDisconnect:  # wrk's turn is over
        return Response(status_code=400)
    name = request.path_params["format"]
    return Response(instead(request.path_params["filter"], name, body), media_type=f"image/{name}")


def instead(name, form, body):
    """Returns the file that another library makes."""
    return THUMBNAILS[name][1](body) if name in THUMBNAILS else encode(FILTERS[name][1](decode(body)), form)


def library(row):
    return "libvips" if row.filter in THUMBNAILS else "OpenCV"


app = Starlette(routes=[Route("/{filter}/{format}", answer, methods=["POST"])])


# Measurements -------------------------------------------------------------------------------------

def peers(options):
    """The service beside OpenCV or libvips in granian, and beside libjpeg-turbo alone: rows of the
    same work.

    wrk posts images to each service in turns. `by rate` and `by processor` (time of all processes
    of a service for a request) say how many times as good as the library's the service's is. Both
    services and wrk run on the same cores, one thread of each core before any second one; granian
    has a process for each. Both are first held to the same pixels. libjpeg-turbo alone decodes and
    encodes the same file in as many processes, in turns with them.

    On a host without a build, name the commands, and run this by a Python with granian, starlette,
    cv2 and pyvips."""
    rows = [name for name in ROWS if any(fnmatch.fnmatch(name, pattern) for pattern in options.rows.split(","))]
    counts, usable = list(map(int, options.cores.split(","))), cores_in_order()
    if not rows or not 1 <= min(counts) <= max(counts) <= len(usable):
        sys.exit(f"no such rows, or other than 1 to {len(usable)} cores; rows are {', '.join(ROWS)}")
    failed, found = False, {}
    with tempfile.TemporaryDirectory(prefix="convolved-bench-") as directory:
        for count in counts:
            os.sched_setaffinity(0, usable[:count])
            with measured(*LIMITS, *options.service, program=options.program) as service, granian(count) as other:
                for name in rows:
                    source = write_file(pathlib.Path(directory), ROWS[name])
                    try:
                        row = measure(ROWS[name], source, service, other, count, options)
                    except (OSError, AssertionError, SystemExit) as problem:  # the others can do without it
                        print(f"{name}, {count} cores: {problem}", file=sys.stderr, flush=True)
                        failed = True
                        continue
                    found.setdefault(name, {})[count] = row
                    yield {"row": name, "cores": count, **row}
    for name, by_count in found.items() if len(counts) > 1 else ():
        cells = {count: f"{row['requests/s']:.4g} / {row[library(ROWS[name])]:.4g}" for count, row in by_count.items()}
        yield {f"requests/s / {library(ROWS[name])}": name, **{f"{count} cores": cells.get(count) for count in counts}}
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
    """The libraries' service, a client of it with the process."""
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


def measure(row, source, service, other, count, options):
    body, who = source.read_bytes(), library(row)
    ours = (FILTERS.get(row.filter) or THUMBNAILS[row.filter])[0]
    targets = {"convolved": (service, f"/v1/filters/{ours}{FORMATS[row.format][0]}"),
               who: (other, f"/{row.filter}/{row.format}")}
    answers = {name: first_answer(*target, body) for name, target in targets.items()}
    service.rest(programs=True)
    apart = compare(row, body, service, answers["convolved"], answers[who])
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
    ours, theirs = found["convolved"], found[who]
    return {"requests/s": ours["rate"], who: theirs["rate"], "by rate": ours["rate"] / theirs["rate"],
            "by processor": theirs["processor_ms"] / ours["processor_ms"],
            "p50 ms": ours["p50_ms"], "p99 ms": ours["p99_ms"], f"{who} p50": theirs["p50_ms"],
            f"{who} p99": theirs["p99_ms"], "bytes": len(answers["convolved"]), f"{who} bytes": len(answers[who]),
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


def compare(row, body, service, ours, theirs):
    """Returns the mean difference of the filters' pixels, once it is sure that both services did
    the same work."""
    assert theirs == instead(row.filter, row.format, body), "the other service answers something else than its library"
    if row.filter in THUMBNAILS:
        apart, limit, encoded = difference(decode(ours), decode(theirs)), THUMBNAILS[row.filter][2], 0
    else:
        name, by_opencv, limit = FILTERS[row.filter]
        filtered = decode(post(service, f"/v1/filters/{name}&format=png", body))
        apart = difference(filtered, by_opencv(decode(body)))
        encoded = difference(decode(ours), decode(encode(filtered, row.format)))
    assert apart <= limit and encoded <= ENCODED, (
        f"pixels differ by {apart:.3f} in the mean, and by {encoded:.3f} as they are encoded")
    return apart


def difference(a, b):
    return float(cv2.absdiff(a, b).mean())
