"""The service under load, while its workers are killed, stopped and aborted: how soon it serves the
next client, and whether anybody ever gets wrong pixels, an error of its own making, or no answer."""
import collections
import contextlib
import functools
import http.client
import itertools
import math
import random
import signal
import sys
import threading
import time

import numpy as np

from clients import Load
from collector import Collector
from imagefiles import pil, written
from jobs import PREFER
from measure import measured
from pixels import random_pixels
from service import ONE_DEVICE, REPOSITORY, TWO_DEVICES, Client, poll, target_of

KINDS = ("codec", "device", "http", "trace")
ABORTS = ("codec", "device")  # an image survives one abort of such a worker
SIGNALS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGABRT)
HONEST = {(429, "queue-full"), (503, "no-device")}
CLIENTS, LONGEST_S, RECOVERY_S, CALM_S = 8, 120, 2.0, 30
DEVICES = {0: {}, 1: ONE_DEVICE, 2: TWO_DEVICES}

Strike = collections.namedtuple("Strike", "at kind signal")


def files_and_filters():
    """Small images, a photograph and a large one."""
    photograph, noise = (REPOSITORY / "tests/photograph.jpg").read_bytes(), random_pixels(1, 3000, 2000, 3, "u8")
    small, large = (written(pil(part), "jpeg") for part in (noise[:120, :160], noise))
    return [(small, [("gaussian", {"sigma": 1.5})]), (small, [("median", {}), ("sobel", {})]),
            (photograph, [("gaussian", {"sigma": 2}), ("sobel", {})]), (photograph, [("unsharp", {})]),
            (photograph, [("bilateral", {"radius": 2})]), (large, [("emboss", {})]),
            (large, [("resize", {"width": 500}), ("sharpen", {})]), (photograph, [("box", {}), ("resize", {"width": "40%"})])]


def ask(client, image, filters, kind):
    options = {"priority": "batch"} if kind == "batch" else {}
    if filters[0][0] == "resize":
        options["draft"] = 1
    target = target_of(filters, variant="general", **options)
    answer = client.post(target, image, headers=PREFER if kind == "async" else {})
    if answer.status != 202:
        return answer
    job = answer.headers["Location"]
    answer = client.get(f"{job}/result?wait=100")
    client.request("DELETE", job)
    return answer


class Patient(Client):
    """A client that asks again if its connection breaks because an HTTP worker is struck."""

    def __init__(self, struck, address):
        super().__init__(struck.service.host, struck.service.port)
        self.struck, self.source = struck, (address, 0)

    def request(self, *arguments, timeout=LONGEST_S, **options):
        while True:
            began = time.monotonic()
            try:
                return super().request(*arguments, timeout=timeout, **options)
            except (ConnectionError, http.client.HTTPException):
                if began > self.struck.ended:
                    raise
                self.struck.broken += 1


class Struck:
    """A service under load, whose workers are struck. Another client comes just after each strike, and
    asks until it is served: `recoveries` has the seconds, `wrong` what was not right."""

    def __init__(self, service, kinds=KINDS, clients=CLIENTS, honest=frozenset(HONEST)):
        self.service, self.kinds, self.random = service, kinds, random.Random(1)
        self.strikes, self.recoveries, self.visits, self.wrong, self.broken = [], [], [], [], 0
        # Until when a request may have met the end of an HTTP worker, and a job an abort; and when those
        # requests began that are not answered.
        self.ended, self.aborted, self.pending = 0.0, 0.0, {}
        cases, crowd, guest = files_and_filters(), Patient(self, "127.0.0.1"), Patient(self, "127.0.0.2")
        self.load = Load([functools.partial(self.ask, crowd, *case, kind) for case, kind in itertools.product(
            cases, ("plain", "plain", "plain", "batch", "async"))], clients, honest)
        self.visit, self.right = functools.partial(self.ask, guest, *cases[0], "plain"), self.load.right[0]

    def ask(self, *what):
        me = object()
        self.pending[me] = time.monotonic()
        try:
            return ask(*what)
        finally:
            del self.pending[me]

    def choose(self):
        """Returns (kind, worker, signal). An image on which two codec workers abort, or two devices, is given
        up by design (decoder-died, device-failed): one is aborted only if every image has come since the
        last abort."""
        kind, worker = self.random.choice([(kind, worker) for kind in self.kinds
                                           for worker in self.service.workers(kind)])
        number = self.random.choice(SIGNALS)
        if kind in ABORTS and number == signal.SIGABRT and any(at < self.aborted for at in [*self.pending.values()]):
            number = signal.SIGKILL
        return kind, worker, number

    def strike(self):
        """Sends a signal to a worker."""
        kind, worker, number = self.choose()
        self.ended = math.inf if kind == "http" else self.ended
        with contextlib.suppress(ProcessLookupError):
            worker.kill(number)
            if number == signal.SIGABRT:  # LLVM's handler, in PoCL, takes the first for itself
                time.sleep(0.05)
                worker.kill(number)
        self.note(kind, number)

    def note(self, kind, number=None):
        now = time.monotonic()
        soon = now + 0.1  # until it has ended
        self.ended = soon if kind == "http" else self.ended
        self.aborted = soon if kind in ABORTS and number == signal.SIGABRT else self.aborted
        self.strikes.append(Strike(now, kind, number))
        self.visits.append(threading.Thread(target=self.recover, args=self.strikes[-1:]))
        self.visits[-1].start()

    def recover(self, strike):
        try:
            while (answer := self.visit()).status != 200:
                self.load.refuse(answer)
            self.load.check(answer, self.right)
            self.recoveries.append((time.monotonic() - strike.at, strike))
        except Exception as error:
            self.wrong.append(repr(error))

    def again(self, seconds, each, what):
        """Calls a function each so many seconds, for so long."""
        begun = time.monotonic()
        for number in range(1, round(seconds / each) + 1):
            time.sleep(max(0, begun + number * each - time.monotonic()))
            what()

    def __enter__(self):
        self.load.__enter__()
        return self

    def __exit__(self, *_):
        """All are answered, and nothing is left of them."""
        self.load.stop()
        for visit in self.visits:
            visit.join()
        self.wrong += self.load.problems


def run(service, seconds, rate, clients):
    """Yields rows; in the end, raises AssertionError if something is wrong."""
    counts = {kind: len(service.workers(kind)) for kind in KINDS}
    with Struck(service, clients=clients) as struck:
        struck.again(min(seconds / 4, CALM_S), 1 / rate, lambda: struck.note("none"))
        struck.again(seconds, 1 / rate, struck.strike)
    sorts = itertools.product(((kind,) for kind in KINDS), SIGNALS)
    for kinds, number in [(("none",), None), *sorts, (KINDS, None)]:
        taken = [taken for taken, s in struck.recoveries if s.kind in kinds and number in (None, s.signal)]
        p50, p99, worst = np.percentile(taken or [math.nan], (50, 99, 100), method="higher")
        yield {"struck": kinds[0] if len(kinds) == 1 else "all", "by": signal.Signals(number).name if number else "",
               "times": len(taken), "p50 s": p50, "p99 s": p99, "longest s": worst}
    load, wrong = struck.load, collections.Counter(struck.wrong)
    yield {"answers": load.done, "200": load.served, "refused": {f"{status} {kind}": count for (status, kind), count in
                                                                 sorted(load.refused.items())},
           "slowest s": load.slowest, "broken with their HTTP worker": struck.broken, "finds": len(struck.wrong)}
    ends = collections.Counter()
    for labels, value in service.rest().samples("convolved_worker_restarts_total"):
        ends[f"{labels['worker']} {labels['reason']}"] += int(value)
    yield {"ended": dict(sorted(ends.items()))}
    poll(lambda: {kind: len(service.workers(kind)) for kind in KINDS} == counts, what="all workers")
    assert all(process.alive for process in service.processes()), "dead workers are not reaped"
    assert not wrong, wrong.most_common(5)
    assert p99 <= RECOVERY_S, f"recovery takes {p99:.2f} s"


def strikes(options):
    """Workers of all kinds are killed, stopped and aborted, so many a second, while clients ask for
    small images, photographs and large ones, some as batch work, some asynchronously.

    It fails at a wrong byte, at an answer other than 200, 429 and 503, at one that takes two
    minutes, at workers or requests that are left over, and at a recovery above 2 s at the 99th
    percentile: the time from a strike until a client that came just after it has its image,
    asking again if it is refused."""
    with Collector() as collector, measured(
            "--otlp-endpoint", f"http://localhost:{collector.server_port}", "--otlp-share", "0.01", *options.service,
            environment=DEVICES[options.devices]) as service:
        try:
            yield from run(service, options.seconds, options.rate, options.clients)
        except AssertionError as wrong:
            sys.exit(str(wrong))
