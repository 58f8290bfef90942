"""How long a thumbnail takes while a 20000x20000 image is under way on the same device, beside how long it
takes alone. `./dev bench thumbnail [SIDE] [-- OPTION...]`: the options are the service's (`--device`, …); without any it
is one device of PoCL's.

Two clients: one posts the large image again and again, one small images with pauses, over a connection
that is kept. Where it may (as root) the client goes before the service, as one elsewhere does not wait for
these processors."""
import http.client
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))

import numpy as np  # noqa: E402

from load import go_first, picture  # noqa: E402
from service import ONE_DEVICE, Service  # noqa: E402

TARGET = "/v1/filters/gaussian?sigma=2"
LARGE, COUNT, PAUSE = 20000, 100, 0.02


def large_picture(folder):
    """A JPEG of many times the same picture."""
    part, whole = f"{folder}/part.jpg", f"{folder}/large.jpg"
    pathlib.Path(part).write_bytes(picture(1000))
    across = str(LARGE // 1000)
    subprocess.run(["vips", "replicate", part, whole + "[Q=85]", across, across], check=True)
    return pathlib.Path(whole).read_bytes()


class Client:
    def __init__(self, service):
        self.connection = http.client.HTTPConnection(service.host, service.port, timeout=600)

    def post(self, body):
        """Seconds until the answer is there."""
        begun = time.monotonic()
        self.connection.request("POST", TARGET, body)
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


def while_busy(service, large, measure):
    """What measure() returns while the large image is under way."""
    ended = threading.Event()
    seconds = []

    def work():
        client = Client(service)
        while not ended.is_set():
            seconds.append(client.post(large))

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(1)
    result = measure()
    ended.set()
    thread.join()
    print(f"the large image takes {np.median(seconds):.2f} s ({len(seconds)} times)")
    return result


def main():
    arguments = sys.argv[1:]
    options = arguments[arguments.index("--") + 1:] if "--" in arguments else []
    side = int(arguments[0]) if arguments and arguments[0] != "--" else 256
    cache = os.path.join(os.path.expanduser("~"), ".cache", "convolved")
    os.makedirs(cache, exist_ok=True)
    small = picture(side)
    with tempfile.TemporaryDirectory(prefix="convolved-thumbnail-") as folder, \
            Service(folder, cache, "--log-level", "warning", "--max-body", "1G", "--max-memory", "4G",
                    *options, environment=None if options else ONE_DEVICE) as service:
        large = large_picture(folder)
        go_first()
        client = Client(service)
        client.posts(small, 20)
        alone = client.posts(small, COUNT)
        busy = while_busy(service, large, lambda: client.posts(small, COUNT))
    for name, times in (("alone", alone), ("beside it", busy)):
        print(f"{side}x{side}, {name}: " + ", ".join(
            f"p{share} {np.percentile(times, share):.1f} ms" for share in (50, 90, 99)))
    print(f"median {np.median(busy) / np.median(alone):.1f} times as long (aim: 3)")


if __name__ == "__main__":
    main()
