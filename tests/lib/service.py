"""The service as its users see it: started, asked over HTTP, watched through /proc, stopped."""
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import functools
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import numpy as np

import exposition

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CONVOLVED_BUILD", REPOSITORY / "build")).resolve()
PROGRAM = BUILD / "convolved"


# Environment of tests that need to know the number of devices: PoCL's, whatever else the host has.
ONE_DEVICE = {"OCL_ICD_VENDORS": "pocl.icd", "POCL_DEVICES": "basic"}
# Environment of most services under test. On a busy machine waits look long. Special kernels take a second each to
# compile: quick tests have none, but for those that ask for them.
UNDER_TEST = {"CONVOLVED_MAX_WAIT": "86400", **({} if os.environ.get("TEST_ALL") else {"CONVOLVED_PROGRAMS": "0"})}
# Special programs, compiled in half the time: where it matters what becomes of them, not how fast they are.
QUICK_COMPILER = {**ONE_DEVICE, "CONVOLVED_PROGRAMS": "512", "POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}
TWO_DEVICES = {"OCL_ICD_VENDORS": "pocl.icd", "POCL_DEVICES": "basic basic"}
CONNECTED, LISTENING = "01", "0A"  # in the state column of /proc/net/tcp


def sanitized():
    """True for a build with a sanitizer: slow, and its memory says nothing."""
    binary = PROGRAM.read_bytes() if PROGRAM.exists() else b""
    return b"__asan_init" in binary or b"__tsan_init" in binary


# seconds that a busy machine may take for anything: no test waits that long for the expected event
PATIENCE = 300


def poll(condition, seconds=PATIENCE, what="the condition", interval=None, more=lambda: ""):
    """Asks until the condition holds, ever less often, up to a tenth of a second, for it takes
    processor time from the awaited work. A passing condition needs an interval. `seconds`: if
    more than PATIENCE is needed. more(): what is there to say if it does not come to hold."""
    begun, seconds = time.monotonic(), max(seconds, PATIENCE)
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - begun
        if waited > seconds:
            raise AssertionError(f"{what}: not within {seconds} s\n{more()}")
        time.sleep(min(0.02 + waited / 10, 0.1) if interval is None else interval)


@contextlib.contextmanager
def meanwhile(*works):
    """Has each of these functions called again and again, on a thread of its own."""
    over = threading.Event()

    def again(work):
        while not over.is_set():
            work()
    threads = [threading.Thread(target=again, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


# Requests -----------------------------------------------------------------------------------------

def encoded(value):
    """Returns a parameter's value as text: that of a number, a list of them or a matrix."""
    if isinstance(value, str):
        return value
    if np.ndim(value):
        return " ,;"[np.ndim(value)].join(encoded(part) for part in value)
    whole = float(value).is_integer() and abs(value) < 1e15
    return repr(int(value) if whole else float(value))


def chain_text(filters):
    """NAME=key=value:key=value,NAME… with a matrix's columns separated by spaces."""
    links = []
    for name, parameters in filters:
        pairs = ":".join(f"{k}={encoded(v).replace(',', ' ')}" for k, v in parameters.items())
        links.append(f"{name}={pairs}" if pairs else name)
    return ",".join(links)


def target_of(filters, **options):
    """Returns the request target for these filters; luma and chroma are lists of filters, too."""
    options = {k: chain_text(v) if k in ("luma", "chroma") else v for k, v in options.items()}
    if not filters:
        path, query = "/v1/chain", {}
    elif len(filters) == 1 and not {"luma", "chroma"} & options.keys():
        path, query = f"/v1/filters/{filters[0][0]}", dict(filters[0][1])
    else:
        path, query = "/v1/chain", {"filters": chain_text(filters)}
    query.update((k, v) for k, v in options.items() if v is not None)
    text = urllib.parse.urlencode({k: encoded(v) for k, v in query.items()}, safe=",;:=")
    return f"{path}?{text}" if text else path


TYPES = {"u8": np.uint8, "u16": np.uint16, "f32": np.float32}

# Chains that need all general programs together; the even ones take about as long to be compiled as the odd ones.
CHAINS_OF_ALL = [
    [("gaussian", {"size": 3}), ("gaussian", {"sigma": 9}), ("bilateral", {"radius": 1}), ("unsharp", {"sigma": 0.3}), ("dog", {})],
    [("canny", {}), ("equalize", {"method": "clahe", "tiles": 2}), ("sobel", {}), ("convolve", {"kernel": "1,2,3;4,5,6;7,8,0"})],
    [("median", {}), ("erode", {}), ("pixelate", {}), ("gamma", {}), ("tophat", {})],
    [("threshold", {}), ("lut", {"table": "0,255"}), ("resize", {"width": 16})]]


def raw_kind(pixels):
    height, width, bands = pixels.shape
    name, = (name for name, dtype in TYPES.items() if pixels.dtype == dtype)
    return f"{width}x{height}x{bands}:{name}"


class Response:
    def __init__(self, status, reason, headers, body):
        self.status, self.reason, self.headers, self.body = status, reason, headers, body

    def __repr__(self):
        return f"<{self.status} {self.reason}: {self.body[:400]!r}>"

    def json(self):
        return json.loads(self.body)

    @property
    def type(self):
        return (self.headers.get("Content-Type") or "").split(";")[0].strip()

    @property
    def kind(self):
        """(width, height, bands, type) as X-Image says."""
        match = re.fullmatch(r"(\d+)x(\d+)x(\d+):(u8|u16|f32)", self.headers.get("X-Image") or "")
        assert match, f"X-Image is {self.headers.get('X-Image')!r}"
        return (*map(int, match.groups()[:3]), match[4])

    @property
    def pixels(self):
        """The pixels of a raw answer, (height, width, bands)."""
        assert self.status == 200, self
        width, height, bands, kind = self.kind
        dtype = np.dtype(TYPES[kind])
        assert len(self.body) == width * height * bands * dtype.itemsize, "size of the raw answer"
        return np.frombuffer(self.body, dtype).reshape(height, width, bands)

    @property
    def lost(self):
        return [token for token in self.headers.get("X-Lost", "").split(", ") if token]

    @property
    def timing(self):
        """Server-Timing as {name: milliseconds}."""
        entries = {}
        for name, duration in re.findall(r"([\w-]+)(?:;[^,]*?)?;dur=([\d.]+)",
                                         self.headers.get("Server-Timing", "")):
            entries[name] = entries.get(name, 0) + float(duration)
        return entries

    @property
    def accounted(self):
        """The share of the total that other entries come to; more than 1 if stages overlap."""
        timing = self.timing
        total = timing.pop("total")
        assert all(timing.get(name, 0) <= total * 1.001 for name in ("receive", "queue", "compile", "wait"))
        return sum(timing.values()) / total

    @property
    def problem(self):
        """The parsed problem, once it is sure that it is one."""
        assert self.status >= 400, self
        assert self.type == "application/problem+json", self
        problem = self.json()
        assert problem["status"] == self.status, problem
        assert problem["type"].startswith("/problems/"), problem
        assert problem["title"] and problem["detail"], problem
        return problem

    def refused(self, status, slug, *says, **members):
        """Asserts that this is the problem, these texts in its detail; returns it."""
        assert self.status == status, self
        problem = self.problem
        assert problem["type"] == f"/problems/{slug}", problem
        assert problem.items() >= members.items(), problem
        assert all(text in problem["detail"] for text in says), problem
        return problem


def multipart(fields):
    """Returns (body, content type) of form data; fields are (name, file name or None, bytes)."""
    boundary = "----------------------------8c2f1b7d"
    body = b""
    for name, filename, content in fields:
        disposition = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename else "")
        body += (f"--{boundary}\r\nContent-Disposition: {disposition}\r\n"
                 "Content-Type: application/octet-stream\r\n\r\n").encode() + content + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


# Kinds of a device worker's live objects that belong to jobs, tiles and measurements.
PASSING = ("image", "event", "tile")


def left_over(metrics):
    """Gauges of requests that are not zero, but for the one for these metrics: {name: value}."""
    gauges = [(name, labels, value) for name in (
        "jobs", "tiles_queued", "tiles_in_flight", "requests", "connections")
        for labels, value in metrics.samples(f"convolved_{name}")]
    if not metrics.total("convolved_stored_jobs"):
        gauges += [(name, labels, value) for name in ("spools", "spool_memory_bytes", "stored_bytes")
                   for labels, value in metrics.samples(f"convolved_{name}")]
    gauges += [("opencl_objects", labels, value)
               for labels, value in metrics.samples("convolved_opencl_objects")
               if labels["kind"] in PASSING]
    return {f"{name} {labels}": value for name, labels, value in gauges
            if value != (name in ("requests", "connections"))}


def lasting(metrics):
    """Returns {(device, kind): number} of the objects that a device worker keeps."""
    return {(labels["device"], labels["kind"]): value
            for labels, value in metrics.samples("convolved_opencl_objects")
            if labels["kind"] not in PASSING}


class Client:
    """Requests to one address, a connection each."""

    def __init__(self, host, port):
        self.host, self.port = host, port
        self.headers = {}  # sent with every request
        self.tls = None  # an ssl.SSLContext, or None for bare HTTP
        self.source = None  # the address (with a port, or 0) from which it comes
        self.socket_path = None  # a Unix socket, in place of host and port

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"

    def connect(self, timeout):
        options = {"timeout": timeout, "source_address": self.source}
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, context=self.tls, **options)
        connection = http.client.HTTPConnection(self.host, self.port, **options)
        if self.socket_path:
            connection.sock = self.open(timeout)
        return connection

    def open(self, timeout):
        if not self.socket_path:
            return socket.create_connection((self.host, self.port), timeout, self.source)
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout)
        connection.connect(self.socket_path)
        return connection

    def neighbour(self, address="127.0.0.2"):
        """Another client of the same service: clients are told apart by their addresses."""
        other = Client(self.host, self.port)
        other.source = (address, 0)
        return other

    def request(self, method, target, body=None, headers=None, timeout=PATIENCE):
        connection = self.connect(timeout)
        try:
            with contextlib.suppress(BrokenPipeError):  # refused early, in an answer that is there
                connection.request(method, target, body=body,
                                   headers={**self.headers, **(headers or {})})
            answer = connection.getresponse()
            return Response(answer.status, answer.reason, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, target, **options):
        return self.request("GET", target, **options)

    def post(self, target, body=b"", **options):
        return self.request("POST", target, body, **options)

    def filter(self, pixels, filters, timeout=PATIENCE, **options):
        """Bare pixels through filters; the answer is raw unless `format` says otherwise."""
        options = {"raw": raw_kind(pixels), "format": "raw", **options}
        return self.post(target_of(filters, **options), np.ascontiguousarray(pixels).tobytes(),
                         timeout=timeout)

    def filter_when_compiled(self, pixels, filters, **options):
        """As filter(), asked again while its kernel is being compiled."""
        def answered():
            answer = self.filter(pixels, filters, **options)
            if answer.status != 503:
                return answer
            assert answer.refused(503, "not-ready") and answer.headers["Retry-After"]
            return None
        return poll(answered, what="the kernel")

    def post_masked(self, image, mask, target, headers=None, fields=()):
        """Posts a form of an image, other fields, and a mask."""
        body, kind = multipart([("image", "in", image), *fields, ("mask", "mask", mask)])
        return self.post(target, body, headers={"Content-Type": kind, **(headers or {})})

    def identity(self, body, headers=None, **options):
        """Returns an image file through a filter that changes nothing."""
        return self.post(target_of([("convolve", {"kernel": "1"})], **options), body,
                         headers=headers or {})

    def converted(self, body, headers=None, **options):
        """As identity(), which must go well."""
        answer = self.identity(body, headers, **options)
        assert answer.status == 200, answer
        return answer

    def decoded(self, body, **options):
        """Returns the pixels that it finds in an image file."""
        return self.identity(body, format="raw", **options).pixels

    @contextlib.contextmanager
    def socket(self, timeout=PATIENCE):
        """A connection for bytes that a decent client would not send."""
        connection = self.open(timeout)
        if self.tls:
            connection = self.tls.wrap_socket(connection, server_hostname=self.host)
        with connection:
            yield connection

    @contextlib.contextmanager
    def connections(self, count, data=b""):
        """So many of them, on each of which this is sent."""
        with contextlib.ExitStack() as stack:
            found = [stack.enter_context(self.socket()) for _ in range(count)]
            for connection in found:
                connection.sendall(data)
            yield found

    def refuses(self):
        """Tells whether nobody listens there. A socket that closes meanwhile resets a connection; others may go on."""
        try:
            with self.socket():
                return False
        except ConnectionResetError:
            return False
        except ConnectionRefusedError:
            return True

    def send(self, data):
        """Returns the answer to these bytes."""
        with self.socket() as connection:
            connection.sendall(data)
            return read_answer(connection)

    def metrics_text(self):
        """Returns the metrics of now: a text made for another reader may be a second old."""
        asked = time.time()
        while True:
            answer = self.get("/metrics", headers={"Cache-Control": "no-cache"})
            assert answer.status == 200, answer
            text = answer.body.decode()
            if exposition.total(text, "convolved_time_seconds") >= asked:
                return text
            time.sleep(0.005)

    def metrics(self):
        return exposition.Metrics(self.metrics_text())

    def total(self, name, **labels):
        """Returns the sum of a metric's samples with at least these labels."""
        return exposition.total(self.metrics_text(), name, **labels)

    def rest(self, seconds=600, programs=False):
        """Waits until all devices are up and nothing is left of any request; with `programs`, also until
        all that have been asked for are there and what devices keep has stopped changing, which takes
        long on a busy machine, where compilers stand back. Returns the metrics."""
        found = {"kept": None}

        def resting():
            if programs:
                self.hurry()
            metrics = found["metrics"] = self.metrics()
            found["left"] = left_over(metrics)
            if programs and metrics.total("convolved_programs_pending"):
                found["left"]["programs"] = metrics.total("convolved_programs_pending")
            before, found["kept"] = found["kept"], lasting(metrics)
            if programs and found["kept"] != before:
                found["left"]["changing"] = found["kept"]
            for labels, _ in metrics.samples("convolved_device_up"):
                if not metrics.total("convolved_opencl_objects", **labels):
                    found["left"][labels["device"]] = "is not up"
            return not found["left"]
        poll(resting, seconds, "rest", more=lambda: found["left"])
        return found["metrics"]

    def ask_all(self, kinds=TYPES, chains=CHAINS_OF_ALL):
        """Has images wait for every general program of these kinds: nobody stands back who compiles for them."""
        def ask(kind, chain):
            def answered():
                answer = self.filter(np.zeros((32, 32, 4), kind), chain, variant="general", alpha=1, regions="1,1,9,9",
                                     luma=[("sobel", {})], timeout=600)
                if answer.status == 200:
                    return True
                answer.refused(503, "not-ready")  # on a busy machine: asked again
                return False
            poll(answered, 600, "all general programs")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(ask, *zip(*((TYPES[kind], chain) for kind in kinds for chain in chains))))

    def works(self):
        """Tells whether an image passes; for polls while the service recovers."""
        try:
            return self.filter(SMALL, [("box", {})], timeout=60).status == 200
        except OSError:
            return False


SMALL = np.arange(11 * 7 * 3, dtype=np.uint8).reshape(7, 11, 3)


def request_head(target, *headers, method="POST"):
    """Returns the head of a request, for a bare connection."""
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def read_answer(connection):
    """Returns the answer that a bare connection carries, read to its end by Content-Length."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return Response(answer.status, answer.reason, answer.headers, answer.read())


def agent_says(host, port):
    """Returns the line that a balancer's agent check gets, to the end of the connection."""
    with socket.create_connection((host, port), timeout=PATIENCE) as connection:
        with connection.makefile() as answer:
            return answer.read()


# Processes ----------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Process:
    """A process as /proc shows it."""
    pid: int

    def read(self, name):
        try:
            return pathlib.Path(f"/proc/{self.pid}/{name}").read_text()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return ""

    @property
    def stat(self):
        """The fields after the name: state first."""
        return self.read("stat").rpartition(")")[2].split()

    @property
    def name(self):
        return self.read("comm").strip()

    def catches(self, number):
        """Tells whether it has a handler for a signal, or blocks it to read it."""
        masks = re.findall(r"^Sig(?:Cgt|Blk):\s*(\w+)", self.read("status"), re.MULTILINE)
        return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)

    @property
    def alive(self):
        stat = self.stat
        return bool(stat) and stat[0] not in "ZX"

    @property
    def busy(self):
        """Seconds of processor time that it has used."""
        return sum(map(int, self.stat[11:13])) / os.sysconf("SC_CLK_TCK")

    @property
    def gone(self):
        """True when no thread of it lives, so that its descriptors are closed."""
        try:
            return all(Process(f"{self.pid}/task/{task}").stat[:1] in ([], ["Z"], ["X"])
                       for task in os.listdir(f"/proc/{self.pid}/task"))
        except OSError:
            return True

    @property
    def files(self):
        """The files that it has open: {descriptor: (what /proc says of it, its status)}."""
        found = {}
        for fd in pathlib.Path(f"/proc/{self.pid}/fd").glob("*"):
            with contextlib.suppress(OSError):  # closed meanwhile
                found[int(fd.name)] = os.readlink(fd), fd.stat()
        return found

    @property
    def descriptors(self):
        return {number: name for number, (name, _) in self.files.items()}

    @property
    def open_sizes(self):
        return {status.st_size for _, status in self.files.values()}

    @property
    def peak(self):
        """The most memory that it has had, in bytes."""
        return int(re.search(r"VmHWM:\s+(\d+) kB", self.read("status"))[1]) << 10

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)

    @contextlib.contextmanager
    def stopped(self):
        """It stands still meanwhile."""
        self.kill(signal.SIGSTOP)
        try:
            yield
        finally:
            self.kill(signal.SIGCONT)


def children(pid):
    """Returns the child processes of a process, of all its threads, zombies too."""
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Process(pid).read(f"task/{task}/children").split())
    return [Process(child) for child in sorted(found)]


def hurry(process):
    """Gives a process of the lowest priority a share, or it would not even die. Root may."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{process.pid}/task"):
            os.sched_setscheduler(int(task), os.SCHED_OTHER, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, int(task), 0)


@functools.cache
def sections():
    """Returns {option: section of the configuration file}, as the sample has them."""
    found, section = {}, None
    sample = subprocess.run([PROGRAM, "--print-config"], capture_output=True, text=True, check=True)
    for line in sample.stdout.splitlines():
        if line.startswith("["):
            section = line
        elif match := re.match(r"#([a-z-]+)=", line):
            found[match[1]] = section
    return found


def configuration(text):
    """Returns a configuration file of lines KEY=VALUE in their sections; unknown in the first."""
    lines = {}
    for line in text.splitlines():
        section = sections().get(line.partition("=")[0], "[service]")
        lines.setdefault(section, []).append(line)
    return "".join(f"{section}\n" + "".join(f"{line}\n" for line in under)
                   for section, under in lines.items())


def free_port():
    """Returns a port below those that the kernel gives to connections: it is still free at another start."""
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", random.SystemRandom().randrange(16384, 32768)))
            return probe.getsockname()[1]


def at_unix_socket(path):
    """Returns a client of this socket."""
    client = Client("localhost", 0)
    client.socket_path = str(path)
    return client


class Service(Client):
    """A service of its own; a context manager that stops it and sees that it ends well."""

    def __init__(self, directory, cache, *options, environment=None):
        super().__init__("127.0.0.1", free_port())
        self.directory, self.cache = pathlib.Path(directory), pathlib.Path(cache)
        self.state = self.directory / "state"
        self.state.mkdir(parents=True, exist_ok=True)
        self.log = self.directory / "log"
        self.arguments = [str(PROGRAM), "--listen", f"{self.host}:{self.port}",
                          "--cache-dir", str(cache), "--state-dir", str(self.state), *options]
        # Bare requests of the tests call the service by any name.
        self.environment = {**os.environ, "CONVOLVED_HOSTS": "*", **(environment or {})}
        self.process, self.passed = None, ()  # passed: descriptors

    def start(self, ready=True):
        assert shutil.which(self.arguments[0]), f"{self.arguments[0]} is not built; CONVOLVED_BUILD says where to look"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.environment, pass_fds=self.passed)
        if ready:
            self.wait_ready()
        return self

    @contextlib.contextmanager
    def starting(self):
        """It is started, but may never be ready; killed in the end."""
        try:
            yield self.start(ready=False)
        finally:
            self.kill()

    def wait_ready(self, seconds=600):
        def ready():
            assert self.process.poll() is None, f"the service ended:\n{self.tail()}"
            try:
                return self.get("/readyz", timeout=60).status == 200
            except OSError:
                return False
        poll(ready, seconds * (5 if sanitized() else 1), "/readyz", more=self.tail)

    @property
    def said(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self):
        """The end of the log, less the lines on images that went well."""
        return re.sub(r"^.*: request [\w.-]+: job \d+ is done .*\n", "", self.said, flags=re.M)[-6000:]

    def says(self, text):
        """Waits for this in the log, which is written while the service goes on."""
        poll(lambda: text in self.said, what=f"{text!r} in the log", more=self.tail)

    def request(self, *arguments, **options):
        """As a client's; says so if there is nobody any more."""
        try:
            return super().request(*arguments, **options)
        except ConnectionError as error:
            status = self.process.poll()
            if status is None:
                raise
            raise type(error)(f"the service has ended, status {status}:\n{self.tail()}") from error

    def workers(self, kind):
        """Returns the living worker processes: kind is "codec", "device" or "http"."""
        name = f"convolved-{kind}"[:15]
        return [p for p in children(self.process.pid) if p.name == name and p.alive]

    def sockets(self, state):
        """Returns the sockets at the service's port as Process.descriptors names them."""
        lines = [line.split() for name in ("tcp", "tcp6")
                 for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
        return {f"socket:[{fields[9]}]" for fields in lines
                if fields[3] == state and int(fields[1].rpartition(":")[2], 16) == self.port}

    def processes(self):
        return [Process(self.process.pid), *children(self.process.pid)]

    def serving(self):
        """Returns the processes that hold connections, bodies and answers for clients."""
        return [Process(self.process.pid), *self.workers("http")]

    def restarts(self, **labels):
        return self.total("convolved_worker_restarts_total", **labels)

    def hurry(self):
        """Lets the compilers that stand back come to an end on a busy machine."""
        for device in self.workers("device"):
            for compiler in children(device.pid):
                hurry(compiler)

    def compiled(self, condition, seconds=600, what="a program"):
        """Polls for what is there when programs have been compiled that no image waits for."""
        return poll(lambda: self.hurry() or condition(), seconds, what)

    def takes_jpeg(self):
        """Tells whether all devices have the programs for it."""
        return all(device["jpeg"] for device in self.get("/v1/devices").json()["devices"])

    def stop(self, seconds=PATIENCE):
        """SIGTERM; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, kind, *_):
        if kind:
            print(self.tail(), file=sys.stderr)  # stdout may be a JSON document
        self.end(kind)
        assert kind or not (report := self.sanitizer_report()), report

    def sanitizer_report(self):
        """Returns a sanitizer's message about any of its processes, which are started again."""
        text = self.said
        found = re.search(r"(ERROR|WARNING): (Address|Leak|Thread)Sanitizer|: runtime error: ", text)
        return found and text[max(found.start() - 300, 0):found.start() + 4000]

    def end(self, kind):
        if self.process.poll() is not None:
            assert kind or self.process.returncode == 0, f"the service ended:\n{self.tail()}"
            return
        try:
            status = self.stop()
        except subprocess.TimeoutExpired:
            self.kill()
            if not kind:
                raise AssertionError(f"SIGTERM did not end the service\n{self.tail()}") from None
            return
        assert kind or status == 0, f"exit status {status}\n{self.tail()}"

    def kill(self, number=signal.SIGKILL):
        """Ends the front by this signal, if there is one, and kills all of its other processes."""
        if self.process and self.process.poll() is None:
            workers = children(self.process.pid)
            self.process.send_signal(number)
            self.process.wait()
            for worker in workers:
                with contextlib.suppress(ProcessLookupError):
                    worker.kill()
            poll(lambda: all(worker.gone for worker in workers), what="the end of the workers")


@contextlib.contextmanager
def once(path):
    """Tells the first of several parallel parts that it is the first; the others wait until it is done."""
    with open(path, "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not os.fstat(lock.fileno()).st_size  # its position is that when it was opened
        lock.write("done\n")


def shared_cache(tmp_path_factory):
    """Returns one cache directory for all services of a test run, perhaps one of several parallel
    ones. The first part that asks has what every start needs compiled."""
    directory = os.environ.get("TEST_CACHE") or tmp_path_factory.getbasetemp() / "cache"
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with once(f"{directory}.lock") as first:
        if first:
            with Service(tmp_path_factory.mktemp("first"), directory) as service, concurrent.futures.ThreadPoolExecutor() as pool:
                # One of its compilers makes what is asked for, the patient one the rest.
                asked = pool.submit(service.ask_all, chains=CHAINS_OF_ALL[::2])
                service.compiled(lambda: asked.done() and not service.total("convolved_programs_pending"))
                asked.result()
                service.rest(programs=True)
            shutil.copytree(directory, general_programs(directory), dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("driver-*"))  # a driver's goes when it will
    return directory


def share_jpeg(tmp_path_factory, directory):
    """Has the programs for JPEG compiled into the shared cache."""
    with once(f"{directory}.jpeg") as first:
        if first:
            with Service(tmp_path_factory.mktemp("first"), directory, "--jpeg-on-any", "yes",
                         environment=ONE_DEVICE) as service:
                service.compiled(service.takes_jpeg, what="the programs for JPEG")


def general_programs(directory):
    """Returns the copy of a shared cache that has no program but the general ones."""
    return directory.with_name(directory.name + "-general")


def tool(name):
    """Returns the path of a program that the tests use beside the service."""
    path = shutil.which(name)
    assert path, f"{name} is not installed"
    return path
