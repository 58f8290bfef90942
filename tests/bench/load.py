"""The service under more requests than it can do. First its capacity: as many connections as keep it
busy, each asking anew when it has its answer. Then an open loop: requests at 0.5, 1 and 3 times that
rate, at random (Poisson) times whatever is answered. `./dev bench load`.

The client is one thread around an epoll, which sends prepared bytes and looks only at status and length
of answers. It shares the processors with the service and so is a part of what is measured; how late
it sent, and how much of a processor it took, is printed beside. Latencies count from the time at which
a request was due, not from when the client came to send it."""
import argparse
import collections
import contextlib
import os
import pathlib
import random
import resource
import select
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))

import numpy as np  # noqa: E402

import imagefiles  # noqa: E402
from service import Service  # noqa: E402

ROUTE = "/v1/filters/{name}"
TARGET = "/v1/filters/gaussian?sigma=2&quality=85"
CONNECTIONS = 16  # that measure the capacity
LINGER = 60  # seconds in which the last answers must come

Exchange = collections.namedtuple("Exchange", "due sent ended status")


def picture(side):
    """A JPEG of smooth noise."""
    rng = np.random.default_rng(1)
    rough = rng.integers(0, 256, (side // 8 + 1, side // 8 + 1, 3)).astype(np.uint8)
    smooth = imagefiles.pil(rough).resize((side, side), 3)
    return imagefiles.written(smooth, "jpeg", quality=85)


def request(body, target=TARGET):
    return (f"POST {target} HTTP/1.1\r\nHost: bench\r\nContent-Type: image/jpeg\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


class Connection:
    """One request at a time over a socket."""

    def __init__(self, poller, address):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.poller = poller
        poller.register(self.socket, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)

    def begin(self, content, due):
        self.left, self.due, self.sent = memoryview(content), due, time.monotonic()
        self.head, self.needed, self.status, self.keep = b"", None, 0, True
        self.send()

    def send(self):
        with contextlib.suppress(BlockingIOError):
            while self.left:
                self.left = self.left[self.socket.send(self.left):]

    def receive(self):
        """True when the answer is complete, or the connection has ended (then the status is 0)."""
        try:
            while data := self.socket.recv(1 << 18):
                if self.take(data):
                    return True
        except BlockingIOError:
            return False
        self.status, self.keep = 0, False
        return True

    def take(self, data):
        if self.needed is None:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return False
            lines = self.head[:end].lower().split(b"\r\n")
            self.status = int(lines[0].split()[1])
            fields = dict(line.split(b": ", 1) for line in lines[1:])
            # What is left unsent could only end in the middle of a later request.
            self.keep = fields.get(b"connection") != b"close" and not self.left
            self.needed, data = int(fields[b"content-length"]), self.head[end + 4:]
        self.needed -= len(data)
        return self.needed <= 0

    def progress(self):
        """As receive(). A failure to send is no news: the answer, or the end, will come."""
        try:
            self.send()
        except (BrokenPipeError, ConnectionResetError):
            self.left = memoryview(b"")
        try:
            return self.receive()
        except ConnectionError:
            self.status, self.keep = 0, False
            return True

    def close(self):
        self.socket.close()


class Generator:
    """Sends requests and keeps account."""

    def __init__(self, address, content):
        self.address, self.content = address, content
        self.poller, self.idle, self.busy, self.done = select.epoll(), [], {}, []

    def start(self, due):
        connection = self.idle.pop() if self.idle else Connection(self.poller, self.address)
        self.busy[connection.socket.fileno()] = connection
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            connection.begin(self.content, due)

    def turn(self, timeout):
        """Returns how many requests have ended."""
        ended = 0
        for number, _ in self.poller.poll(max(0, timeout)):
            connection = self.busy.get(number)
            if not connection:
                self.drop_idle(number)
            elif connection.progress():
                self.end(connection)
                ended += 1
        return ended

    def drop_idle(self, number):
        """An idle connection that says something has ended."""
        for connection in [c for c in self.idle if c.socket.fileno() == number]:
            with contextlib.suppress(BlockingIOError, ConnectionError):
                if connection.socket.recv(1, socket.MSG_PEEK):
                    continue
                self.idle.remove(connection)
                connection.close()

    def end(self, connection):
        del self.busy[connection.socket.fileno()]
        self.done.append(Exchange(connection.due, connection.sent, time.monotonic(),
                                  connection.status))
        if connection.keep:
            self.idle.append(connection)
        else:
            connection.close()

    def linger(self, seconds=LINGER):
        """Waits for the answers that are missing; returns how many still are."""
        deadline = time.monotonic() + seconds
        while self.busy and time.monotonic() < deadline:
            self.turn(0.1)
        return len(self.busy)

    def closed_loop(self, connections, seconds):
        """Requests answered with 200, a second."""
        start = time.monotonic()
        for _ in range(connections):
            self.start(time.monotonic())
        while time.monotonic() < start + seconds:
            for _ in range(self.turn(0.1)):
                self.start(time.monotonic())
        self.linger()
        return goodput(self.done, start)

    def open_loop(self, rate, seconds, seed=1):
        """Requests at random times; returns how many got no answer."""
        rng = random.Random(seed)
        start = due = time.monotonic()
        while True:
            due += rng.expovariate(rate)
            if due > start + seconds:
                return self.linger()
            while (now := time.monotonic()) < due:
                self.turn(due - now)
            self.turn(0)
            self.start(due)

    def close(self):
        for connection in [*self.idle, *self.busy.values()]:
            connection.close()
        self.poller.close()


def goodput(done, start):
    """Answers with 200 a second, from the start to the last of them."""
    ends = [x.ended for x in done if x.status == 200]
    return len(ends) / (max(ends) - start) if ends else 0.0


def statuses(done):
    return dict(sorted(collections.Counter(x.status for x in done).items()))


# Counters -----------------------------------------------------------------------------------------

def counted(service):
    """What the service has counted so far, {what: number}."""
    metrics = service.metrics()
    counts = {int(labels["code"]): value for labels, value in
              metrics.samples("convolved_request_duration_seconds_count", route=ROUTE)}
    counts["jobs"] = metrics.total("convolved_stage_duration_seconds_count", stage="decode")
    for labels, value in metrics.samples("convolved_requests_rejected_total"):
        counts[labels["reason"]] = value
    return counts


def differences(before, after, seen):
    """Where the service's counters differ from what the client has seen ({status: number}): requests
    by status, jobs done, and refusals by reason; {what: (counted, seen)}."""
    expected = {**seen, "jobs": seen.get(200, 0), "queue-full": seen.get(429, 0)}
    grown = {what: value - before.get(what, 0) for what, value in after.items()}
    return {what: (grown.get(what, 0), expected.get(what, 0)) for what in {*grown, *expected}
            if grown.get(what, 0) != expected.get(what, 0)}


class Watch:
    """The memory of the service, looked at once in a while: {what: most bytes}."""

    def __init__(self, service, interval=0.5):
        self.service, self.interval = service, interval
        self.most = collections.Counter()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.wait(self.interval):
            spools = self.service.metrics().total("convolved_spool_memory_bytes")
            sizes = [process.read("smaps_rollup") for process in self.service.processes()]
            pss = sum(int(text.partition("Pss:")[2].split()[0]) * 1024 for text in sizes if text)
            for what, size in (("spools", spools), ("pss", pss)):
                self.most[what] = max(self.most[what], size)

    def __enter__(self):
        self.thread.start()
        return self.most

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


# Figures ------------------------------------------------------------------------------------------

def percentiles(values, *shares):
    return [float(np.percentile(values, share)) * 1e3 if values else 0.0 for share in shares]


def processor():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def overload(service, content, factor, capacity, seconds):
    """One line of figures; returns (goodput, p99 of refusals in ms, whether all was counted rightly)."""
    generator = Generator((service.host, service.port), content)
    before = counted(service)
    with Watch(service) as most:
        start, used = time.monotonic(), processor()
        missing = generator.open_loop(factor * capacity, seconds)
        used = (processor() - used) / (time.monotonic() - start)
    done = generator.done
    generator.close()
    wrong = differences(before, counted(service), statuses(done))
    good = goodput(done, start)
    p50, p90, p99 = percentiles([x.ended - x.due for x in done if x.status == 200], 50, 90, 99)
    refused = [x.ended - x.due for x in done if x.status == 429]
    r50, r99 = percentiles(refused, 50, 99)
    late, = percentiles([x.sent - x.due for x in done], 99)
    print(f"{factor:4} x{len(done):7} sent{good:8.1f}/s {p50:7.1f}{p90:8.1f}{p99:8.1f} ms  "
          f"{len(refused):6} refused{r50:6.2f}{r99:7.2f} ms   "
          f"client{late:6.2f} ms late, {used:4.0%} of a core   "
          f"PSS {most['pss'] / 1e6:.0f} MB, bodies and answers {most['spools'] / 1e6:.1f} MB")
    for problem in [f"{missing} without an answer"] * bool(missing) + [
            f"{what}: the service counted {a:.0f}, the client {b}" for what, (a, b) in wrong.items()]:
        print("     " + problem)
    return good, r99, not wrong and not missing


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(". ")[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--side", type=int, default=512)
    options = parser.parse_args()
    cache = os.path.join(os.path.expanduser("~"), ".cache", "convolved")
    os.makedirs(cache, exist_ok=True)
    content = request(picture(options.side))
    with tempfile.TemporaryDirectory(prefix="convolved-load-") as folder, \
            Service(folder, cache, "--log-level", "warning") as service:
        address = service.host, service.port
        Generator(address, content).closed_loop(CONNECTIONS, 3)
        service.rest()
        measure = Generator(address, content)
        capacity = measure.closed_loop(CONNECTIONS, options.seconds)
        measure.close()
        print(f"{options.side}x{options.side} JPEG, {len(content) / 1e3:.0f} kB; capacity "
              f"{capacity:.1f} requests/s over {CONNECTIONS} connections")
        print("rate              goodput    latency p50     p90     p99           refusals p50    p99")
        rows = [overload(service, content, factor, capacity, options.seconds)
                for factor in (0.5, 1, 3)]
    peak = max(capacity, *(good for good, _, _ in rows))
    good, refusal, _ = rows[-1]
    print(f"at 3 x: {good / peak:.1%} of the peak goodput (aim: 95 %), refusals within {refusal:.2f} ms "
          "(p99, aim: 10 ms)")
    sys.exit(not all(right for _, _, right in rows))


if __name__ == "__main__":
    main()
