"""The service under more requests than it can do, under slow clients, and beside another client's
work."""
import asyncio
import collections
import contextlib
import multiprocessing
import pathlib
import random
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np

from certificates import localhost_certificate
from measure import go_first, measured, middle, photograph, turns
from service import ONE_DEVICE, free_port, meanwhile

TARGET = "/v1/filters/gaussian?sigma=2&quality=85"


# Requests whatever is answered --------------------------------------------------------------------

CONNECTIONS = 16  # that measure the capacity
FACTORS = (0.5, 1, 3)
LINGER = 60  # seconds in which the last answers must come

Exchange = collections.namedtuple("Exchange", "due sent ended status")


def request(body, target=TARGET):
    return (f"POST {target} HTTP/1.1\r\nHost: bench\r\nContent-Type: image/jpeg\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


class Generator:
    """Sends prepared bytes from one thread, and looks only at status and length of answers: so it
    takes little of the processors that it shares with the service. `done`: the exchanges that have
    ended."""

    def __init__(self, address, content):
        self.address, self.content, self.done = address, content, []
        self.idle = []

    async def ask(self, due):
        """One request, over a connection that is idle or new. If the connection ends first, the
        status is 0."""
        sent, status, keep = time.monotonic(), 0, False
        if not self.idle:
            self.idle.append(await asyncio.open_connection(*self.address))
        reader, writer = self.idle.pop()
        writer.write(self.content)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(re.search(rb"\ncontent-length: (\d+)", head)[1]))
            status = int(head.split()[1])
            # The unsent rest could only end in the middle of a later request.
            keep = (b"\nconnection: close" not in head
                    and not writer.transport.get_write_buffer_size())
        self.done.append(Exchange(due, sent, time.monotonic(), status))
        if keep:
            self.idle.append((reader, writer))
        else:
            writer.close()

    async def count_missing(self, tasks, seconds):
        """Waits for the answers; returns how many tasks still do."""
        _, missing = await asyncio.wait(tasks, timeout=seconds + LINGER)
        while self.idle:
            self.idle.pop()[1].close()
        return len(missing)

    def closed_loop(self, connections, seconds):
        """A new request for each that is answered; returns how many got no answer."""
        end = time.monotonic() + seconds

        async def again():
            while time.monotonic() < end:
                await self.ask(time.monotonic())

        async def all_of_them():
            tasks = [asyncio.create_task(again()) for _ in range(connections)]
            return await self.count_missing(tasks, seconds)
        return asyncio.run(all_of_them())

    def open_loop(self, rate, seconds, seed=1):
        """Requests at random times; returns how many got no answer."""
        async def all_of_them():
            rng, tasks = random.Random(seed), []
            due = begun = time.monotonic()
            while (due := due + rng.expovariate(rate)) <= begun + seconds:
                await asyncio.sleep(max(0, due - time.monotonic()))
                tasks.append(asyncio.create_task(self.ask(due)))
            return await self.count_missing(tasks, 0)
        return asyncio.run(all_of_them())


def statuses(done):
    return dict(sorted(collections.Counter(x.status for x in done).items()))


def counted(service):
    """Returns the service's counts so far, {what: number}."""
    metrics = service.metrics()
    counts = collections.Counter({int(labels["code"]): value for labels, value in metrics.samples(
        "convolved_request_duration_seconds_count", route="/v1/filters/{name}")})
    counts["jobs"] = metrics.total("convolved_stage_duration_seconds_count", stage="decode")
    for name in ("requests_rejected", "jobs_failed"):
        for labels, value in metrics.samples(f"convolved_{name}_total"):
            counts[labels["reason"]] += value
    return counts


def differences(before, after, seen):
    """Returns differences between the service's counters and the client's counts ({status:
    number}): requests by status, jobs done, and refusals by reason; {what: (counted, seen)}."""
    expected = {**seen, "jobs": seen.get(200, 0), "queue-full": seen.get(429, 0)}
    grown = {what: value - before[what] for what, value in after.items()}
    return {what: (grown.get(what, 0), expected.get(what, 0)) for what in {*grown, *expected}
            if grown.get(what, 0) != expected.get(what, 0)}


@contextlib.contextmanager
def watching(service, interval=0.5):
    """Gives the most bytes of bodies and answers that the service had meanwhile, {"spools"}."""
    most = {"spools": 0}

    def watch():
        time.sleep(interval)
        most["spools"] = max(most["spools"], service.total("convolved_spool_memory_bytes"))
    with meanwhile(watch):
        yield most


def overload(options):
    """The service under more requests than it can do.

    First its capacity: as many connections as keep it busy, each asking anew when it has its
    answer. Then an open loop: requests at 0.5, 1 and 3 times that rate, at random (Poisson) times
    whatever is answered.

    The client shares the processors with the service and so is a part of the measurement; how late
    it sent, and how much of a processor it took, stand beside. Latencies count from the time at
    which a request was due, not from when the client came to send it."""
    content, problems, capacity = request(photograph(options.side)), [], 0
    with measured(*options.service) as service:
        def once(ask):
            figures, wrong = exchange(service, content, ask)
            problems.extend(wrong)
            return figures

        def closed():
            nonlocal capacity
            figures = once(lambda generator: generator.closed_loop(CONNECTIONS, options.seconds))
            capacity = figures["goodput/s"]
            return figures

        go_first()
        closed()
        service.rest(programs=options.rounds > 1)
        ways = {"closed": closed} | {
            f"{factor} x": lambda factor=factor: once(lambda g: g.open_loop(factor * capacity, options.seconds))
            for factor in FACTORS}
        found = turns(options.rounds, ways, warm=False)
    for name, rounds in found.items():
        yield {"rate": name, **middle(rounds)}
    shares = [b["goodput/s"] / a["goodput/s"] for a, b in zip(found["closed"], found[f"{FACTORS[-1]} x"])]
    yield {f"goodput at {FACTORS[-1]} x, of the capacity": middle(shares), "aim": 0.95,
           "rounds": f"{min(shares):.2f} to {max(shares):.2f}"}
    if problems:
        sys.exit("\n".join(problems))


def exchange(service, content, ask):
    """Returns the figures of ask(generator), which returns how many requests got no answer, and a
    list of where the service's counters differ from what the client saw."""
    generator = Generator((service.host, service.port), content)
    before = counted(service)
    with watching(service) as most:
        start, spent = time.monotonic(), time.process_time()
        missing = ask(generator)
        client = (time.process_time() - spent) / (time.monotonic() - start)
    done = generator.done
    ends = [x.ended for x in done if x.status == 200]
    goodput = len(ends) / (max(ends) - start) if ends else 0.0
    problems = [f"{what}: the service counted {a:.0f}, the client {b}" for what, (a, b) in
                differences(before, counted(service), statuses(done)).items()]
    answered, refused = ([x.ended - x.due for x in done if x.status == status] for status in (200, 429))
    if missing:
        problems.append(f"{missing} without an answer")
    figures = {
        "sent": len(done), "goodput/s": goodput, "p50 ms": percentile(answered, 50),
        "p99 ms": percentile(answered, 99), "refused": len(refused),
        "refused p99": percentile(refused, 99),
        "late p99": percentile([x.sent - x.due for x in done], 99), "client": client,
        "spools MB": most["spools"] / 1e6}
    return figures, problems


def percentile(seconds, share):
    """Returns milliseconds."""
    return float(np.percentile(seconds, share)) * 1e3 if seconds else 0.0


# Slow clients -------------------------------------------------------------------------------------

SIDE = 500  # sides of the images whose answers are read slowly
HELLO = b"\x16\x03\x01\x02\0\1\0\1\xfc\3\3"  # start of a TLS handshake
HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: "
IMAGE = request(bytes(SIDE * SIDE * 3), f"/v1/filters/box?size=3&format=raw&raw={SIDE}x{SIDE}x3:u8")

Load = collections.namedtuple("Load", "count first more tls reads", defaults=(b"", b"", False, True))
# first: what each sends at once; more: what it then sends each second; reads: not a byte a second
# only.
LOADS = {
    "nothing": Load(0),
    "heads": Load(1100, HEAD, b"y"),
    "readers": Load(500, IMAGE, reads=False),
    "idle": Load(1000),
    "handshakes": Load(500, HELLO, b"\0", tls=True),
    "bodies": Load(80, IMAGE[:200], b"\0"),
}


def slow_clients(options):
    """Clients that take their time, hundreds at once, and whether another one notices.

    LOADS are nothing, heads, readers, idle, handshakes, bodies. Each is held for some seconds by a
    process of its own: a connection that the service ends (for its deadline, its share, or because
    the limit is reached) is opened anew. Meanwhile a probe from an address of its own asks twice a
    second, on a new connection, for an image; a load is passed if the probes' 99th percentile is
    within 100 ms and each is answered 200. With --one, the shares must keep the slow clients from
    others' places."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    passed = True
    with tempfile.TemporaryDirectory(prefix="convolved-bench-") as directory:
        certificate, key = localhost_certificate(pathlib.Path(directory))
        secure = free_port()
        with measured("--listen", f"tls:127.0.0.1:{secure}", "--tls-certificate", str(certificate), "--tls-key",
                      str(key), "--max-jobs", "1000", "--max-bodies", "1000", *options.service) as service:
            service.works()
            service.rest(programs=True)
            for name, load in LOADS.items():
                if name in (options.loads or LOADS):
                    row = beside_load(service, name, secure if load.tls else service.port, options)
                    passed = row["passed"] == "yes" and passed
                    yield row
    sys.exit(0 if passed else "a load was noticed")


def beside_load(service, name, port, options):
    load = LOADS[name]
    count = max(min(load.count, 1), round(load.count * options.share))
    held, opened = multiprocessing.Value("i"), multiprocessing.Value("i")
    holder = multiprocessing.Process(target=hold, args=(name, count, port, options.one, held, opened), daemon=True)
    holder.start()
    least, took = load.count, []
    try:
        time.sleep(options.ramp)
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            due = time.monotonic() + 0.5
            took.append(probe(service))
            least = min(least, held.value)
            time.sleep(max(0, due - time.monotonic()))
        if not holder.is_alive():
            sys.exit(f"the process that holds `{name}` has ended")
    finally:
        holder.kill()
        holder.join()
    answered = [seconds for seconds in took if seconds is not None]
    p99 = percentile(answered, 99)
    return {"load": name, "held": least, "opened": opened.value, "probes": len(took),
            "not answered": len(took) - len(answered), "p50 ms": percentile(answered, 50), "p99 ms": p99,
            "max ms": percentile(answered, 100), "passed": "yes" if p99 <= 100 and len(answered) == len(took) else "NO"}


def probe(service):
    """Returns seconds until an image is answered on a new connection; None if it was not answered
    200."""
    begun = time.monotonic()
    with contextlib.suppress(OSError):
        if service.neighbour().post("/v1/filters/box?size=3&format=raw&raw=64x64x3:u8", bytes(64 * 64 * 3),
                                    timeout=60).status == 200:
            return time.monotonic() - begun


def hold(name, count, port, one, held, opened):
    """Keeps the connections of a load open, for ever."""
    load = LOADS[name]

    async def connect(loop):
        with socket.socket() as connection:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not load.reads:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            opened.value += 1
            connection.bind((f"127.0.1.{1 if one else opened.value % 250 + 1}", 0))
            held.value += 1
            try:
                await loop.sock_connect(connection, ("127.0.0.1", port))
                await loop.sock_sendall(connection, load.first)
                while not await has_ended(connection):
                    await loop.sock_sendall(connection, load.more)
            except ConnectionError:
                pass
            finally:
                held.value -= 1

    async def has_ended(connection):
        """A second passes meanwhile. An answer, too, ends a connection."""
        await asyncio.sleep(1)
        with contextlib.suppress(BlockingIOError):
            return not connection.recv(1) or load.reads

    async def again():
        while True:
            await asyncio.sleep(random.random() / 2)
            await connect(asyncio.get_running_loop())

    async def all_of_them():
        await asyncio.gather(asyncio.Event().wait(), *(again() for _ in range(count)))
    asyncio.run(all_of_them())


# Beside another client ----------------------------------------------------------------------------

SMALL = "/v1/filters/gaussian?sigma=2"


def large_picture(directory, side):
    """Returns a JPEG: 400 times the same picture."""
    part, whole = directory / "part.jpg", directory / "large.jpg"
    part.write_bytes(photograph(side // 20))
    subprocess.run(["vips", "replicate", part, f"{whole}[Q=85]", "20", "20"], check=True)
    return whole.read_bytes()


def thumbnail(options):
    """Latency of small images beside a large one of another client on the same device, and alone.

    Without options of the service there is one device of PoCL's. Two clients, of two addresses: one
    posts its image again and again, one small images with pauses, over a connection that is
    kept."""
    small = photograph(options.side)
    with tempfile.TemporaryDirectory(prefix="convolved-bench-") as directory, \
            measured("--max-body", "1G", "--max-memory", "4G", *options.service,
                     environment=None if options.service else ONE_DEVICE) as service:
        large = large_picture(pathlib.Path(directory), options.other)
        go_first()
        connection = service.connect(600)

        def small_ones(count):
            times = []
            for _ in range(count):
                times.append(post(connection, small))
                time.sleep(0.02)
            return {f"p{share} ms": percentile(times, share) for share in (50, 90, 99)}

        small_ones(20)
        alone = small_ones(options.count)
        yield {"beside": "nothing", **alone, "times as long": 1.0, "the other's s": None}
        with posting(service.neighbour(), large) as took:
            figures = small_ones(options.count)
        yield {"beside": "large", **figures, "times as long": figures["p50 ms"] / alone["p50 ms"],
               "the other's s": middle(took)}


def post(connection, body):
    """Returns seconds until the whole answer is there."""
    begun = time.monotonic()
    connection.request("POST", SMALL, body)
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    return time.monotonic() - begun


@contextlib.contextmanager
def posting(client, body):
    """Another client has its image under way all the time; gives the seconds of each."""
    connection, took = client.connect(600), []
    with meanwhile(lambda: took.append(post(connection, body))):
        time.sleep(1)
        yield took
