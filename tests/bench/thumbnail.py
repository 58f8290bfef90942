"""Latency of a thumbnail beside another client's work on the same device, and alone: beside a
20000x20000 image, six small files of 11000x11000 pixels under a large matrix, and one column of
pixels under six tall windows. `./dev bench thumbnail [SIDE] [-- OPTION...]`: the options are the
service's (`--device`, …); without any it is one device of PoCL's. CASES=tall (or large, files) in
the environment: only that; COUNT=N: this many small images.

Two clients, of two addresses: one posts its images again and again, one small images with pauses, over a
connection that is kept. If it may (as root) the client goes before the service, as one elsewhere does not wait for
these processors."""
import http.client
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import numpy as np  # noqa: E402

from load import go_first, picture  # noqa: E402
from service import ONE_DEVICE, Service  # noqa: E402

TARGET = "/v1/filters/gaussian?sigma=2"
MATRIX = ";".join([",".join(str(1 + (3 * x + 5 * y) % 7) for x in range(63)) for y in range(63)])
TALL = "/v1/chain?raw=1x2400x1:u8&filters=" + ",".join(["gaussian=size=601"] * 6)
LARGE, PAUSE = 20000, 0.02
COUNT = int(os.environ.get("COUNT", "100"))


def large_picture(directory):
    """Returns a JPEG of many times the same picture."""
    part, whole = f"{directory}/part.jpg", f"{directory}/large.jpg"
    pathlib.Path(part).write_bytes(picture(1000))
    across = str(LARGE // 1000)
    subprocess.run(["vips", "replicate", part, whole + "[Q=85]", across, across], check=True)
    return pathlib.Path(whole).read_bytes()


def matrix_file(directory):
    """Returns a PNG of some 200 kB."""
    path = f"{directory}/file.png"
    subprocess.run(["vips", "black", path + "[compression=9]", "11000", "11000"], check=True)
    wide = f"{directory}/file16.png"
    subprocess.run(["vips", "cast", path, f"{wide}[compression=9]", "ushort"], check=True)
    return pathlib.Path(wide).read_bytes()


class Client:
    def __init__(self, service, target=TARGET, address="127.0.0.1"):
        self.connection = http.client.HTTPConnection(service.host, service.port, timeout=600,
                                                     source_address=(address, 0))
        self.target = target

    def post(self, body):
        """Seconds until the answer is there."""
        begun = time.monotonic()
        self.connection.request("POST", self.target, body)
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return time.monotonic() - begun

    def posts(self, body, count):
        seconds = []
        for _ in range(count):
            seconds.append(self.post(body))
            time.sleep(PAUSE)
        return np.array(seconds) * 1e3


def while_busy(service, others, measure):
    """Returns the result of measure() while others = (body, target, how many at a time) are under
    way."""
    body, target, count = others
    ended = threading.Event()
    seconds = []

    def work():
        client = Client(service, target, "127.0.0.2")
        while not ended.is_set():
            seconds.append(client.post(body))

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    result = measure()
    ended.set()
    for thread in threads:
        thread.join()
    print(f"  the other client's images take {np.median(seconds):.2f} s ({len(seconds)} times)")
    return result


def report(name, times):
    print(f"{name}: " + ", ".join(
        f"p{share} {np.percentile(times, share):.1f} ms" for share in (50, 90, 99)), flush=True)


def main():
    arguments = sys.argv[1:]
    options = arguments[arguments.index("--") + 1:] if "--" in arguments else []
    side = int(arguments[0]) if arguments and arguments[0] != "--" else 256
    cache = os.path.join(os.path.expanduser("~"), ".cache", "convolved")
    os.makedirs(cache, exist_ok=True)
    small = picture(side)
    with tempfile.TemporaryDirectory(prefix="convolved-thumbnail-") as directory, \
            Service(directory, cache, "--log-level", "warning", "--max-body", "1G", "--max-memory",
                    "4G", *options, environment=None if options else ONE_DEVICE) as service:
        cases = {
            "large": lambda: (large_picture(directory), TARGET, 1),
            "files": lambda: (matrix_file(directory), f"/v1/filters/convolve?kernel={MATRIX}", 6),
            "tall": lambda: (os.urandom(2400), TALL, 1),
        }
        chosen = os.environ.get("CASES", "").split() or list(cases)
        others = {name: cases[name]() for name in chosen}
        go_first()
        client = Client(service)
        client.posts(small, 20)
        alone = client.posts(small, COUNT)
        report(f"{side}x{side}, alone", alone)
        for name, other in others.items():
            busy = while_busy(service, other, lambda: client.posts(small, COUNT))
            report(f"{side}x{side}, beside {name}", busy)
            print(f"  median {np.median(busy) / np.median(alone):.1f} times as long (aim: 3)")


if __name__ == "__main__":
    main()
