"""The service under more requests than it can do. First its capacity: as many connections as keep
it busy, each asking anew when it has its answer. Then an open loop: requests at 0.5, 1 and 3 times
that rate, at random (Poisson) times whatever is answered. `./dev bench load`.

The client is one thread around an epoll, which sends prepared bytes and looks only at status and
length of answers. It shares the processors with the service and so is a part of the measurement;
how late it sent, and how much of a processor it took, is printed beside. If it may (as root) it
goes before the service, as a client elsewhere does not wait for these processors. Others use this
machine too, so the measurements take turns, and medians are compared; `a job` is the time of a
processor, in ms, that workers take for one: where that is alike, goodput was lost only to asking,
refusing and others. Latencies count from the time at which a request was due, not from when the
client came to send it."""
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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import numpy as np  # noqa: E402

import imagefiles  # noqa: E402
from service import Service  # noqa: E402

ROUTE = "/v1/filters/{name}"
TARGET = "/v1/filters/gaussian?sigma=2&quality=85"
CONNECTIONS = 16  # that measure the capacity
FACTORS = (0.5, 1, 3)
LINGER = 60  # seconds in which the last answers must come

Exchange = collections.namedtuple("Exchange", "due sent ended status")


def picture(side):
    """Returns a JPEG of smooth noise."""
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
            # The unsent rest could only end in the middle of a later request.
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
        """A new request for each that is answered; returns how many got no answer."""
        start = time.monotonic()
        for _ in range(connections):
            self.start(time.monotonic())
        while time.monotonic() < start + seconds:
            for _ in range(self.turn(0.1)):
                self.start(time.monotonic())
        return self.linger()

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
    """Returns answers with 200 a second, from the start to the last of them."""
    ends = [x.ended for x in done if x.status == 200]
    return len(ends) / (max(ends) - start) if ends else 0.0


def statuses(done):
    return dict(sorted(collections.Counter(x.status for x in done).items()))


# Counters -----------------------------------------------------------------------------------------

def counted(service):
    """Returns the service's counts so far, {what: number}."""
    metrics = service.metrics()
    counts = {int(labels["code"]): value for labels, value in
              metrics.samples("convolved_request_duration_seconds_count", route=ROUTE)}
    counts["jobs"] = metrics.total("convolved_stage_duration_seconds_count", stage="decode")
    for name in ("requests_rejected", "jobs_failed"):
        for labels, value in metrics.samples(f"convolved_{name}_total"):
            counts[labels["reason"]] = counts.get(labels["reason"], 0) + value
    return counts


def differences(before, after, seen):
    """Returns differences between the service's counters and the client's counts ({status:
    number}): requests by status, jobs done, and refusals by reason; {what: (counted, seen)}."""
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
            spools = self.service.total("convolved_spool_memory_bytes")
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


def processor_of(service):
    """Returns seconds that the front has used, and all of the service."""
    used = [sum(map(int, process.stat[11:13])) / os.sysconf("SC_CLK_TCK")
            for process in service.processes()]
    return np.array([used[0], sum(used)])


Row = collections.namedtuple("Row", "goodput latency refused refusals late client front service job pss "
                             "spools sent problems")


def measured(service, content, ask):
    """Returns the figures of ask(generator), which returns how many requests got no answer."""
    generator = Generator((service.host, service.port), content)
    before = counted(service)
    with Watch(service) as most:
        start, used, service_used = time.monotonic(), processor(), processor_of(service)
        missing = ask(generator)
        took = time.monotonic() - start
        used = (processor() - used) / took
        front, whole = (processor_of(service) - service_used) / took
    done = generator.done
    generator.close()
    good = goodput(done, start)
    problems = [f"{what}: the service counted {a:.0f}, the client {b}" for what, (a, b) in
                differences(before, counted(service), statuses(done)).items()]
    refused = [x.ended - x.due for x in done if x.status == 429]
    return Row(good,
               percentiles([x.ended - x.due for x in done if x.status == 200], 50, 90, 99),
               len(refused), percentiles(refused, 50, 99),
               *percentiles([x.sent - x.due for x in done], 99), used, front, whole,
               (whole - front) / good * 1e3 if good else 0.0, most["pss"], most["spools"], len(done), problems + [f"{missing} without an answer"] * bool(missing))


def median(rows):
    """Returns medians of every figure, over the rounds."""
    return Row(*(sum(column, []) if name == "problems" else np.median(np.array(column), axis=0)
                 for name, column in zip(Row._fields, zip(*rows))))


def show(name, r):
    print(f"{name:8}{r.sent:7.0f}{r.goodput:9.1f}/s" + "".join(f"{v:8.1f}" for v in r.latency)
          + f"{r.refused:9.0f}" + "".join(f"{v:8.2f}" for v in r.refusals)
          + f"{r.late:9.2f}{r.client:9.0%}{r.front:7.0%}{r.service:8.0%}{r.job:8.2f}"
          f"{r.pss / 1e6:8.0f}{r.spools / 1e6:8.1f}")
    for problem in r.problems:
        print("     " + problem)


def go_first():
    """Tells whether this thread's priority is now above the service's."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    except PermissionError:
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(". ")[0])
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", type=int, default=512)
    options = parser.parse_args()
    cache = os.path.join(os.path.expanduser("~"), ".cache", "convolved")
    os.makedirs(cache, exist_ok=True)
    content = request(picture(options.side))
    rows = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="convolved-load-") as directory, \
            Service(directory, cache, "--log-level", "warning") as service:
        def saturate(generator):
            return generator.closed_loop(CONNECTIONS, options.seconds)

        first = go_first()
        measured(service, content, saturate)
        service.rest(programs=options.rounds > 1)
        for _ in range(options.rounds):
            rows["closed"].append(measured(service, content, saturate))
            capacity = rows["closed"][-1].goodput
            for factor in FACTORS:
                rows[f"{factor} x"].append(measured(
                    service, content, lambda g: g.open_loop(factor * capacity, options.seconds)))
    medians = {name: median(of) for name, of in rows.items()}
    print(f"client {'before' if first else 'beside'} the service; "
          f"{options.side}x{options.side} JPEG, {len(content) / 1e3:.0f} kB; medians of "
          f"{options.rounds}, interleaved; ms, shares of a core, MB\n"
          "rate       sent    goodput     p50     p90     p99  refused     p50     p99     late   "
          "client  front service   a job     PSS  spools")
    for name, row in medians.items():
        show(name, row)
    over = f"{FACTORS[-1]} x"
    shares = [b.goodput / a.goodput for a, b in zip(rows["closed"], rows[over])]
    print(f"at {over} the capacity ({medians['closed'].goodput:.0f} requests/s over {CONNECTIONS} "
          f"connections): goodput {np.median(shares):.1%} of it (aim: 95 %; rounds "
          f"{min(shares):.0%} to {max(shares):.0%}), refusals within {medians[over].refusals[1]:.1f} ms "
          "(p99, aim: 10 ms)")
    sys.exit(any(row.problems for row in medians.values()))


if __name__ == "__main__":
    main()
