#!/usr/bin/env python3
"""A service on one device, whose workers are killed, stopped and aborted in turns under mixed load:
are the answers right, and how long is anybody refused?

At each strike the device's worker and a codec worker get a signal each. Then the rest of the time must be
as if nothing had happened: 503 for at most 4 s after a strike, for at most one answer in twenty, and for
none 10 s after the last; every image of 200 has the bytes that it had before; and nothing else fails.

Needs the standard library only, and no GPU: `--pocl`, with `--layer build/fault_layer.so` for a start that
is as slow as a GPU's. On a host with a GPU and a bundle of the programs:

    tests/fault/one_device.py --program '/opt/bundle/run convolved'"""
import argparse
import collections
import contextlib
import hashlib
import http.client
import itertools
import json
import os
import pathlib
import random
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

REFUSED_S, QUIET_S, SHARE = 4, 10, 1 / 20
SIGNALS = {"device": (signal.SIGKILL, signal.SIGSTOP, signal.SIGABRT),
           "codec": (signal.SIGSTOP, signal.SIGABRT, signal.SIGKILL)}
PHOTOGRAPH = pathlib.Path(__file__).resolve().parents[1] / "photograph.jpg"
# (image, filters, weight)
CASES = [("small", "gaussian=sigma=1.5", 8), ("small", "median=radius=1,sobel", 4),
         ("photograph", "gaussian=sigma=2,sobel", 4), ("photograph", "unsharp", 4),
         ("photograph", "bilateral=radius=2", 2), ("large", "gaussian=sigma=3", 1), ("large", "emboss", 1)]
KINDS = {"plain": 6, "batch": 2, "async": 2}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Connection:
    """A client's connection, kept alive."""

    def __init__(self, port):
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, method, target, body=None, headers=None):
        self.http.request(method, target, body, headers or {})
        answer = self.http.getresponse()
        return answer.status, answer.headers, answer.read()


class Service:
    def __init__(self, directory, options):
        self.port, self.fault = free_port(), pathlib.Path(directory) / "fault"
        self.log = pathlib.Path(directory) / "log"
        environment = dict(os.environ)
        if options.pocl:
            environment.update(OCL_ICD_VENDORS="pocl.icd", POCL_DEVICES="basic")
        if options.layer:
            environment.update(OPENCL_LAYERS=str(pathlib.Path(options.layer).resolve()),
                               CONVOLVED_FAULT=str(self.fault))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*shlex.split(options.program), "--listen", f"127.0.0.1:{self.port}", "--codecs", "4",
                 "--cache-dir", options.cache_dir or f"{directory}/cache", "--state-dir", f"{directory}/state",
                 *options.option], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def get(self, target):
        status, _, body = Connection(self.port).ask("GET", target)
        return status, body

    def metric(self, name):
        """Returns {labels: value}"""
        lines = self.get("/metrics")[1].decode().splitlines()
        found = (line.rpartition(" ") for line in lines if line.startswith(f"convolved_{name}"))
        return {labels[len("convolved_" + name):]: float(value) for labels, _, value in found}

    def device(self):
        devices = json.loads(self.get("/v1/devices")[1])["devices"]
        if len(devices) != 1:
            raise SystemExit(f"{len(devices)} devices, not one: {[d['id'] for d in devices]}")
        return devices[0]

    def await_(self, condition, seconds, what):
        ends = time.monotonic() + seconds
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"the service has ended:\n{self.log.read_text(errors='replace')[-4000:]}")
            try:
                if condition():
                    return
            except OSError:
                pass
            if time.monotonic() > ends:
                raise SystemExit(f"{what}: not within {seconds} s\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.1)

    def worker(self, kind):
        """Returns the pid of a living worker of this kind, or None."""
        if kind == "device":
            return self.device().get("pid")
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            for pid in random.sample(children := (task / "children").read_text().split(), len(children)):
                stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
                if "(convolved-codec)" in stat and stat.rpartition(")")[2].split()[0] not in "ZXT":
                    return int(pid)
        return None

    def end(self):
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


# Load ---------------------------------------------------------------------------------------------

def target(filters, **more):
    return "/v1/chain?variant=general&filters=" + filters + "".join(f"&{k}={v}" for k, v in more.items())


def images(service):
    """JPEGs that the service makes: it is the only encoder here."""
    def jpeg(width, height):
        rows = [bytes((x * 7 + y * 3 + x * y // 16) % 251 for x in range(3 * width)) for y in range(64)]
        body = b"P6\n%d %d\n255\n" % (width, height) + b"".join(rows[y % 64] for y in range(height))
        status, _, answer = Connection(service.port).ask("POST", target("box=size=3", format="jpeg"), body)
        assert status == 200, answer
        return answer
    return {"small": jpeg(160, 120), "large": jpeg(3000, 2000), "photograph": PHOTOGRAPH.read_bytes()}


class Load:
    """Clients, until they are told to end. results: [(when, status, word)]"""

    def __init__(self, service, clients):
        self.service, self.images = service, images(service)
        self.right, self.results, self.longest = {}, [], 0
        self.aborts = []  # when a codec worker was made to look as if an image had crashed it
        for image, filters, _ in CASES:
            service.await_(lambda i=image, f=filters: self.learn(i, f), 600, filters)
        service.await_(lambda: not sum(service.metric("programs_pending").values()), 600, "the programs")
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(clients)]

    def learn(self, image, filters):
        status, _, body = Connection(self.service.port).ask("POST", target(filters), self.images[image])
        if status not in (200, 503):
            raise SystemExit(f"{filters}: {status} {body.decode()}")
        self.right[image, filters] = hashlib.sha256(body).digest()
        return status == 200

    def start(self):
        self.begun = time.monotonic()
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(150)
        if any(thread.is_alive() for thread in self.threads):
            self.note(0, "no answer")

    def note(self, status, word):
        self.results.append((time.monotonic() - self.begun, status, word))

    def ask(self, connection, kind, image, filters):
        if kind != "async":
            more = {"priority": "batch"} if kind == "batch" else {}
            return connection.ask("POST", target(filters, **more), self.images[image])
        status, headers, body = connection.ask("POST", target(filters), self.images[image],
                                               {"Prefer": "respond-async"})
        if status != 202:
            return status, headers, body
        job = headers["Location"]
        answer = connection.ask("GET", f"{job}/result?wait=100")
        connection.ask("DELETE", job)
        return answer

    def run(self, number):
        rng, connection = random.Random(number), Connection(self.service.port)
        while not self.ended.is_set():
            kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
            image, filters, _ = rng.choices(CASES, [weight for *_, weight in CASES])[0]
            asked = time.monotonic()
            try:
                status, headers, body = self.ask(connection, kind, image, filters)
                word = "" if status == 200 else json.loads(body)["type"].rpartition("/")[2]
                if status == 200 and hashlib.sha256(body).digest() != self.right[image, filters]:
                    word = "wrong pixels"
                if word == "decoder-died" and sum(at > asked for at in self.aborts) > 1:
                    word = ""  # it was on both
                if status in (429, 503) and int(headers["Retry-After"]) < 1:
                    word = "Retry-After"
            except Exception as error:  # pylint: disable=broad-except
                status, word, connection = 0, repr(error), Connection(self.service.port)
            self.note(status, word)
            self.longest = max(self.longest, time.monotonic() - asked)
            if status != 200:
                time.sleep(0.01)


# The run ------------------------------------------------------------------------------------------

def strike(service, number):
    struck = []
    for kind, signals in SIGNALS.items():
        pid, what = service.worker(kind), signals[number % len(signals)]
        with contextlib.suppress(ProcessLookupError):
            if pid:
                os.kill(pid, what)
            if pid and what == signal.SIGABRT:  # LLVM's handler, in PoCL, takes the first for itself
                time.sleep(0.05)
                os.kill(pid, what)
        struck.append(f"{kind} {what.name if pid else 'has no process'}")
    return ", ".join(struck)


def judge(results, strikes, ended):
    """Returns the errors."""
    wrong = []
    refused = [at for at, status, _ in results if status == 503]
    counts = collections.Counter((status, word) for _, status, word in results)
    for (status, word), count in counts.items():
        if word and (status, word) != (503, "no-device"):
            wrong.append(f"{count} × {status} {word}")
    for at, until in itertools.pairwise([*strikes, ended]):
        late = [r for r in refused if at + REFUSED_S < r < until]
        if late:
            wrong.append(f"{len(late)} × 503 later than {REFUSED_S} s after the strike at {at:.1f} s, the last "
                         f"after {max(late) - at:.1f} s")
    if len(refused) > SHARE * len(results):
        wrong.append(f"{len(refused)} of {len(results)} answers are 503")
    if any(r > strikes[-1] + QUIET_S for r in refused):
        wrong.append(f"503 later than {QUIET_S} s after the last strike")
    if not any(status == 200 and at > strikes[-1] + QUIET_S for at, status, _ in results):
        wrong.append(f"no image later than {QUIET_S} s after the last strike")
    return wrong


def run(options, directory):
    service, strikes = Service(directory, options), []
    try:
        service.await_(lambda: service.get("/readyz")[0] == 200, 600, "/readyz")
        print("device:", service.device().get("name"))
        load = Load(service, options.clients)
        if options.layer:
            service.fault.with_name("fault.0").write_text("clCreateContext 1 late keep")
        load.start()
        try:
            time.sleep(2)
            for number in range(options.strikes):
                strikes.append(time.monotonic() - load.begun)
                if SIGNALS["codec"][number % len(SIGNALS["codec"])] == signal.SIGABRT:
                    load.aborts.append(time.monotonic())
                print(f"{strikes[-1]:6.1f} s: {strike(service, number)}", flush=True)
                time.sleep(options.quiet if number == options.strikes - 1 else options.every)
        finally:
            ended = time.monotonic() - load.begun
            load.stop()
        counts = collections.Counter((status, word) for _, status, word in load.results)
        wrong = judge(load.results, strikes, ended)
        print(f"{len(load.results)} answers in {ended:.0f} s: "
              + ", ".join(f"{n} × {status} {word}".rstrip() for (status, word), n in sorted(counts.items()))
              + f"; the longest took {load.longest:.1f} s")
        after = [status for at, status, _ in load.results if at > strikes[-1]]
        print(f"after the last strike: {len(after)}, of which {after.count(503)} × 503")
        print("restarts:", service.metric("worker_restarts_total"))
        if service.device()["state"] != "up":
            wrong.append(f"the device is {service.device()['state']}")
    except BaseException:
        service.process.kill()
        raise
    if status := service.end():
        wrong.append(f"exit status {status}")
    if wrong or options.log:
        print(service.log.read_text(errors="replace")[-options.log or -3000:])
    print("\n".join(wrong) or "as it must be")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--program", default="build/convolved", help="the command that starts the service")
    parser.add_argument("--pocl", action="store_true", help="use PoCL's CPU device, whatever else there is")
    parser.add_argument("--layer", help="fault_layer.so: have the device start slowly")
    parser.add_argument("--cache-dir", help="compiled programs (default: none yet)")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--strikes", type=int, default=9)
    parser.add_argument("--every", type=float, default=7.5, help="seconds between two strikes")
    parser.add_argument("--quiet", type=float, default=15, help="seconds after the last strike")
    parser.add_argument("--log", type=int, default=0, help="print so many characters of the service's log")
    parser.add_argument("option", nargs="*", help="options of the service, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="convolved-one-device-") as directory:
        sys.exit(not run(options, directory))


if __name__ == "__main__":
    main()
