"""Every OpenCL call that a device worker makes, made to fail in every way (layer.c), under load:
each answer is right or an honest error, nobody waits in vain, and the device comes back.

Two devices; the fault is in the first. A case whose call is made at a start gets one: its worker is
killed first. CALLED has the calls of a worker whose general programs are in the cache."""
import concurrent.futures
import contextlib
import functools
import os
import re
import shutil
import signal
import threading
import time

import numpy as np
import pytest

import service as service_module
from imagefiles import pil, written
from pixels import random_pixels, smooth
from service import BUILD, REPOSITORY, TWO_DEVICES, children, poll

LAYER = BUILD / "fault_layer.so"
FUNCTIONS = re.findall(r"^\tFUNCTION\((cl\w+)", (REPOSITORY / "tests/fault/layer.c").read_text(), re.M)
ACTIONS = ("-30", "lost", "abort", "hang")  # -30: CL_INVALID_VALUE
AT_START = {"clGetPlatformIDs", "clGetPlatformInfo", "clGetDeviceIDs", "clGetDeviceInfo",
            "clCreateContext", "clCreateCommandQueue", "clCreateProgramWithBinary",
            "clBuildProgram", "clCreateKernel", "clCreateBuffer", "clReleaseMemObject",
            "clRetainKernel"}
CALLED = sorted(AT_START) + ["clEnqueueNDRangeKernel", "clFinish", "clGetEventProfilingInfo", "clGetKernelInfo",
                             "clReleaseEvent", "clReleaseKernel", "clSetKernelArg"]
MAKING = {"clCreateProgramWithBinary", "clBuildProgram", "clCreateKernel"}
COPIES = ["clEnqueueReadBufferRect", "clEnqueueWriteBufferRect"]
JPEG_FAULTS = [("clEnqueueWriteBuffer", "-30"), ("clEnqueueNDRangeKernel", "lost"), ("clSetKernelArg", "abort"),
               ("clEnqueueReadBuffer", "hang"), ("clGetEventInfo", "endless"),
               ("clEnqueueReadBuffer", "-30"), ("clFlush", "hang")]
CLIENTS = 3
TILE_TIMEOUT, START_TIMEOUT = 1, 3
IMAGES = [(random_pixels(1, 61, 47, 3, "u8"), [("gaussian", {"sigma": 1.5}), ("sobel", {})]),
          (random_pixels(2, 700, 500, 3, "u8"), [("gaussian", {"sigma": 3.0})]),
          (random_pixels(3, 300, 200, 4, "u16"), [("unsharp", {}), ("sharpen", {})])]
HONEST = {(500, "device-failed"), (503, "no-device"), (504, "timeout")}


class Fault:
    """The file through which layers are told what to break."""

    def __init__(self, directory):
        self.path = directory / "fault"

    def file(self, device):
        return self.path.with_name(f"fault.{device}")

    def arm(self, text, device=0):
        new = self.path.with_name("new")
        new.write_text(text)
        new.rename(self.file(device))

    def armed(self, device=0):
        return self.file(device).exists()

    def disarm(self, device=0):
        """Tells whether it had not happened."""
        try:
            self.file(device).unlink()
        except FileNotFoundError:
            return False
        return True

    @property
    def environment(self):
        assert LAYER.exists(), f"{LAYER} is not built: make check TESTS="
        return {**TWO_DEVICES, "OPENCL_LAYERS": str(LAYER), "CONVOLVED_FAULT": str(self.path)}


@pytest.fixture
def fault(tmp_path):
    return Fault(tmp_path)


class Load:
    """Clients that ask for the jobs in turn, by default the images. `refused`: statuses of honest
    errors."""

    def __init__(self, service, clients=CLIENTS, honest=HONEST, jobs=None, **options):
        self.service, self.honest = service, honest
        self.jobs = jobs or [functools.partial(service.filter, *image) for image in IMAGES]
        self.options = {"variant": "general", **options}
        self.right = [job(variant="general", codec="cpu").body for job in self.jobs]
        self.ended, self.served, self.refused = threading.Event(), 0, {}
        self.pool = concurrent.futures.ThreadPoolExecutor(clients)
        self.clients = [self.pool.submit(self.client, i) for i in range(clients)]

    def client(self, number):
        while not self.ended.is_set():
            number = (number + 1) % len(self.jobs)
            answer = self.jobs[number](timeout=60, **self.options)
            if answer.status == 200:
                assert answer.body == self.right[number], "wrong pixels"
                self.served += 1
            else:
                kind = answer.status, answer.problem["type"].split("/")[-1]
                assert kind in self.honest, answer
                self.refused[kind] = self.refused.get(kind, 0) + 1
            time.sleep(0.05)

    def check(self):
        """Raises the errors that a client has met."""
        for client in self.clients:
            if client.done():
                client.result()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.ended.set()
        results = [client.exception(60) for client in self.clients]
        self.pool.shutdown()
        assert kind or not any(results), f"{results}\n{self.service.tail()}"


def states(service):
    return {d["id"]: d["state"] for d in service.get("/v1/devices").json()["devices"]}


def pids(service):
    return {d["id"]: d.get("pid") for d in service.get("/v1/devices").json()["devices"]}


def all_up(service):
    poll(lambda: set(states(service).values()) == {"up"}, 60, "all devices up")


def arguments(*options):
    return ("--codecs", "3", "--verify-share", "0", "--tile-timeout", str(TILE_TIMEOUT), *options)


@pytest.fixture(scope="module")
def warm(launch):
    """The cache has all general programs."""
    with launch(environment=service_module.ONE_DEVICE):
        pass


def failures(service):
    return service.total("convolved_worker_restarts_total", worker="device")


def works_on(service, tiles):
    """Tells whether a program is not made, but no tile waits for it: many have been filtered since."""
    metrics = service.metrics()
    return (metrics.total("convolved_programs_pending", device="cpu0") > 0
            and metrics.total("convolved_tiles_total", device="cpu0") > tiles + 50)


def await_hang(service, load, function, known):
    """Until the worker whose call hangs, after `known` failures, is ended: by the service, or here if the
    call is a maker's and no tile waits for it."""
    tiles = service.total("convolved_tiles_total", device="cpu0")
    poll(lambda: load.check() or failures(service) > known or (function in MAKING and works_on(service, tiles)),
         60, f"the end of {function}", 0.005)
    if failures(service) <= known:
        os.kill(pids(service)["cpu0"], signal.SIGKILL)


def stopped(service):
    """The pid of cpu0's worker, which is stopped now; None if it ended since the service last looked."""
    pid = pids(service).get("cpu0")
    with contextlib.suppress(ProcessLookupError):
        if pid:
            os.kill(pid, signal.SIGSTOP)
            return pid
    return None


def break_one(service, load, fault, function, action):
    """One case, from the fault until all is well again."""
    # Not this one is to make the call, but the next.
    pid = poll(lambda: stopped(service), 60, "a worker to replace") if function in AT_START else None
    known = failures(service) + (function in AT_START)
    fault.arm(f"{function} 1 {action}")
    if pid:
        os.kill(pid, signal.SIGKILL)
    poll(lambda: load.check() or not fault.armed(), 60, f"the call of {function}", 0.005)
    if action == "hang":
        await_hang(service, load, function, known)
    before = load.served
    poll(lambda: load.check() or load.served >= before + 5, 60,
         f"answers after {function} {action}", 0.005)
    poll(lambda: load.check() or set(states(service).values()) == {"up"}, 60,
         f"all devices up after {function} {action}")


def sweep(launch, fault, functions, actions, environment=None, **options):
    with launch(*arguments("--quarantine-failures", "100000", "--start-timeout",
                           str(START_TIMEOUT)),
                environment={**fault.environment, **(environment or {})}) as service:
        all_up(service)
        with Load(service, **options) as load:
            for function in functions:
                for action in actions:
                    break_one(service, load, fault, function, action)
        assert load.served > 5 * len(functions)
        assert "sent an invalid" not in service.log.read_text(errors="replace")
        assert set(pids(service)) == {"cpu0", "cpu1"} or environment


@pytest.mark.parametrize("action", ACTIONS)
def test_calls_fail(launch, fault, warm, action):
    sweep(launch, fault, CALLED, [action])


@pytest.mark.parametrize("action", ACTIONS)
def test_copies_fail(launch, fault, warm, action):
    """On a GPU."""
    sweep(launch, fault, COPIES, [action], environment={"CONVOLVED_FAULT_GPU": "1"})


def jpeg_jobs(service):
    """JPEGs both ways, and one way only."""
    pixels, filters = smooth(500, 300, 3), [("gaussian", {"sigma": 1.5})]
    body = written(pil(pixels), "jpeg")

    def post(timeout, **options):
        return service.post(service_module.target_of(filters, **options), body, timeout=timeout)
    return [functools.partial(post, timeout=60), functools.partial(post, timeout=60, format="ppm"),
            functools.partial(service.filter, pixels, filters, format="jpeg")]


def test_jpegs_fail(launch, fault, warm):
    """After a failure, hang or loss within a tile with scans the codec worker does the image, with
    tiles of pixels on the other GPU, and its bytes are right."""
    with launch(*arguments("--quarantine-failures", "100000", "--start-timeout", str(START_TIMEOUT),
                           "--canary-interval", "3600"),
                environment={**fault.environment, "CONVOLVED_FAULT_GPU": "1"}) as service:
        def failed():
            return service.total("convolved_jpeg_sides_total", reason="failed")

        def ready():
            return all(d["jpeg"] for d in service.get("/v1/devices").json()["devices"])
        all_up(service)
        service.compiled(ready, what="the programs for JPEG")
        with Load(service, jobs=jpeg_jobs(service), codec="gpu") as load:
            for function, action in JPEG_FAULTS:
                known = failed()
                break_one(service, load, fault, function, action)
                poll(lambda: load.check() or failed() > known, 60, f"an image that {function} failed")
                service.compiled(ready, what="the programs for JPEG")
        assert "sent an invalid" not in service.log.read_text(errors="replace")


def test_unified_memory_is_copied(launch, fault, warm):
    """A GPU that shares the host's memory gets copies, as any other: OpenCL promises nobody that the
    host sees what a kernel wrote into memory that was never mapped."""
    with launch("--verify-share", "0",
                environment={**fault.environment, **service_module.ONE_DEVICE,
                             "CONVOLVED_FAULT_GPU": "1"}) as service:
        pixels, filters = IMAGES[0]
        assert service.filter(pixels, filters, verify=1).status == 200
        assert list(states(service)) == ["gpu0"]
        for direction in ("upload", "download"):
            assert service.total("convolved_transfer_bytes_total", device="gpu0",
                                           direction=direction) >= pixels.nbytes


def limited(limits):
    """Returns the environment of one device with these limits."""
    assert LAYER.exists(), f"{LAYER} is not built: make check TESTS="
    return {**service_module.ONE_DEVICE, "OPENCL_LAYERS": str(LAYER), "CONVOLVED_FAULT_LIMITS": limits}


def agree(service, *cases):
    """Each is answered rightly, or refused in these words; the device stays up."""
    for pixels, filters, variant, says in cases:
        def answered():  # a variant that a busy machine is long in compiling is asked for again
            answer = service.filter(pixels, filters, variant=variant, verify=1, timeout=120)
            return answer.status != 503 and answer
        answer = poll(answered, 600, "an answer")
        if says:
            assert says in answer.refused(400, "bad-parameter")["detail"]
        else:
            assert answer.status == 200, answer
    # A GPU that is really this machine's processor may seem hung while others use it.
    hung = service.total("convolved_worker_restarts_total", worker="device", reason="timeout")
    assert failures(service) == hung, service.tail()


def test_small_device(launch, warm):
    """A GPU with small groups, little local memory and small image objects: kernels that do not fit
    are not chosen, and refused if asked for."""
    rgb, small, wide = IMAGES[1][0], random_pixels(5, 40, 30, 4, "u8"), random_pixels(7, 100, 20, 4, "u8")
    emboss, blur = [("emboss", {})], [("gaussian", {"sigma": 3.0})]
    with launch("--codecs", "1", environment={**limited("group=32 local=6000 image=64"),
                                              "CONVOLVED_FAULT_GPU": "1"}) as service:
        agree(service, (rgb, blur, None, None), (rgb, [("box", {"size": 41})], None, None),
              (rgb, emboss, "conv_naive", "groups of 128"), (rgb, blur, "sep_two_pass", "groups of 256"),
              (small, emboss, "conv_image", None), (wide, emboss, "conv_image", "image objects"),
              (small, emboss, "conv_local_coop", None), (wide, emboss, None, None))


def test_no_images(launch, warm):
    """Kernels that stand in one file with those that read image objects are compiled without these
    (for pixels that no other test has them for: the cache does not know of the layer)."""
    pixels, rgba = random_pixels(8, 60, 40, 2, "u16"), random_pixels(9, 60, 40, 4, "u8")
    emboss, bilateral = [("emboss", {})], [("bilateral", {"radius": 2})]
    with launch("--codecs", "1", environment=limited("image=0")) as service:
        agree(service, (pixels, emboss, "conv_naive", None),
              (pixels, bilateral, "bilateral_unrolled", None),
              (rgba, bilateral, "bilateral_image", "image objects"))


def test_table_is_whole():
    """The layer has every OpenCL function that the device worker's sources name."""
    sources = "".join(p.read_text() for p in (REPOSITORY / "daemon/device").rglob("*.c"))
    releases = re.findall(r"\bcl[A-Z]\w+", (REPOSITORY / "daemon/wire/objects.def").read_text())
    assert set(FUNCTIONS) == {*re.findall(r"\b(cl[A-Z]\w+)\(", sources), *releases}


# Wrong pixels -------------------------------------------------------------------------------------

def test_flipped_bit(launch, fault, warm):
    """A client that asked for verification never gets it, for the tile is run again. As that comes out
    otherwise the device is quarantined, filters a test tile and is up again. The next time within
    two minutes it has only to filter a test tile: whether the tile came out otherwise is a codec
    worker's word, and that is not to keep a device away."""
    with launch(*arguments(), environment=fault.environment) as service:
        def suspected():
            return service.total("convolved_device_suspected_total", reason="repetition",
                                           device="cpu0")
        all_up(service)
        with Load(service, clients=2, verify=1) as load:
            poll(lambda: load.check() or load.served >= 5, 60, "answers")
            fault.arm("clEnqueueNDRangeKernel 1 flip")
            poll(lambda: load.check() or states(service)["cpu0"] == "quarantined", 60,
                 "a quarantine", 0.005)
            assert service.total("convolved_device_up", device="cpu0") == 0
            assert service.get("/readyz").status == 200, "the other device is up"
            all_up(service)
            fault.arm("clEnqueueNDRangeKernel 1 flip")
            poll(lambda: load.check() or suspected() == 2, 60, "another repetition")
            served = load.served
            poll(lambda: load.check() or load.served >= served + 5, 60, "answers")
            all_up(service)
        assert not load.refused
        assert suspected() == 2
        metrics = service.metrics()
        assert metrics.total("convolved_worker_restarts_total", reason="mismatch") == 1
        assert metrics.total("convolved_device_state", device="cpu0", state="up") == 1
        service.says("filtered the test tiles correctly")


def test_same_flip_each_time(launch, fault, warm):
    """A device that is always wrong alike: its tile comes out right of the other, and a test tile
    finds it out."""
    image = random_pixels(4, 61, 47, 3, "u8"), [("gaussian", {"sigma": 1.5})]
    with launch(*arguments("--verify-share", "1"), environment=fault.environment) as service:
        all_up(service)
        right = service.filter(*image, variant="general").body
        fault.arm("clEnqueueNDRangeKernel 1 flip keep")
        def quarantined():
            assert service.filter(*image, variant="general").body == right
            return states(service)["cpu0"] == "quarantined"
        poll(quarantined, 60, "a quarantine", 0)
        metrics = service.metrics()
        assert metrics.total("convolved_device_suspected_total", reason="test") >= 1
        assert metrics.total("convolved_device_suspected_total", reason="repetition") == 0
        fault.disarm()
        all_up(service)


def test_wrong_after_quarantine(launch, fault, warm):
    """One that is always wrong stays in quarantine, and clients get the other's results."""
    with launch(*arguments(), environment=fault.environment) as service:
        all_up(service)
        with Load(service, clients=2, verify=1) as load:
            fault.arm("clEnqueueNDRangeKernel 1 flip keep")
            poll(lambda: load.check() or states(service)["cpu0"] == "quarantined", 60,
                 "a quarantine", 0.005)
            refused = sum(load.refused.values())
            poll(lambda: service.total("convolved_worker_restarts_total",
                                                 reason="probe") >= 2, 60, "failed tests")
            assert sum(load.refused.values()) == refused == 0
            fault.disarm()
            all_up(service)


def test_repeated_failures(launch, fault, warm):
    """A device that fails again and again is quarantined, and tested before it is used."""
    with launch(*arguments("--quarantine-failures", "3"), environment=fault.environment) as service:
        all_up(service)
        fault.arm("clFinish 5 lost keep")
        with Load(service) as load:
            poll(lambda: load.check() or states(service)["cpu0"] in ("quarantined", "probing"), 60,
                 "a quarantine")
            served = load.served
            poll(lambda: load.check() or load.served > served + 20, 60, "answers")
            fault.disarm()
            all_up(service)
        service.says("cpu0 is quarantined")


def test_hangs_before_ready(launch, fault, warm):
    with launch(*arguments("--start-timeout", "3"), environment=fault.environment) as service:
        def late():
            return service.total("convolved_worker_restarts_total", reason="start-timeout")
        all_up(service)
        known = late()  # on a busy machine even those that start well
        fault.arm("clCreateContext 1 hang")
        os.kill(pids(service)["cpu0"], signal.SIGKILL)
        poll(lambda: late() > known, 60, "its end")
        all_up(service)


def used_seconds(pid):
    """Returns processor time of a process so far; 0 when it has gone."""
    stat = service_module.Process(pid).stat
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK") if stat else 0


@pytest.mark.parametrize("devices", (TWO_DEVICES, service_module.ONE_DEVICE), ids=("two", "one"))
def test_spinning_kernel(launch, fault, warm, devices):
    """A kernel that computes for ever on a CPU is noticed by its predicted processor time, long
    before tile-timeout; and its tile runs elsewhere, or there again."""
    with launch("--codecs", "3", "--tile-timeout", "300", "--verify-share", "0",
                "--canary-interval", "3600",
                environment={**fault.environment, **devices}) as service:
        all_up(service)
        right = service.filter(*IMAGES[1], variant="general").body
        service.rest()
        pid = pids(service)["cpu0"]
        before = used = used_seconds(pid)
        fault.arm("clEnqueueNDRangeKernel 1 spin")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            begun = time.monotonic()
            answer = pool.submit(service.filter, *IMAGES[1], variant="general")
            while not answer.done():
                used = max(used, used_seconds(pid))
                time.sleep(0.02)
        print(f"{used - before:.2f} s of processor time, answer after {time.monotonic() - begun:.2f} s")
        assert not fault.armed(), "it had a tile"
        assert answer.result().status == 200 and answer.result().body == right
        assert service.total("convolved_worker_restarts_total", reason="timeout") == 1
        assert used - before < 60, "1 s, and 500 predictions, which are larger on a busy machine"
        all_up(service)


def test_endless_on_a_gpu(launch, fault, warm):
    """Its worker looks and looks, and no command ends: the prediction is the limit, long before
    tile-timeout."""
    with launch("--codecs", "3", "--tile-timeout", "300",
                environment={**fault.environment, "CONVOLVED_FAULT_GPU": "1"}) as service:
        poll(lambda: len(pids(service)) == 2, 60, "two devices")
        all_up(service)
        for label in "gpu0", "gpu1":  # before its first tile a device may be pinning arenas
            assert service.filter(*IMAGES[1], device=label).status == 200
        with Load(service):
            fault.arm("clFlush 1 endless")
            poll(lambda: not fault.armed(), 60, "a command")
            poll(lambda: service.total("convolved_worker_restarts_total", worker="device",
                                                 reason="timeout") == 1, 60, "its end; 2 s are meant")


def test_slow_compiler(launch, fault, warm):
    """A tile that waits for the program that its request insists on is not held up by its device."""
    with launch(*arguments(), environment=fault.environment) as service:
        all_up(service)
        fault.arm("clBuildProgram 1 slow")
        answer = service.filter(*IMAGES[1], variant="separable_wide", device="cpu0", timeout=60)
        assert answer.status == 200, answer
        assert not fault.armed()
        assert failures(service) == 0


def test_compiler_crashes(launch, fault, tmp_path):
    """A kernel whose compiler crashes costs who needs it an error that names it, but no worker; it is
    tried again later."""
    kernels, sobel = tmp_path / "kernels", (IMAGES[0][0], [("sobel", {})])
    shutil.copytree(REPOSITORY / "kernels", kernels)
    with (kernels / "general/gradient.cl").open("a", encoding="utf-8") as file:
        file.write(f"/* {os.urandom(8).hex()}: in no cache */\n")
    fault.arm("clCreateProgramWithSource 1 abort keep")
    with launch(*arguments("--kernel-dir", str(kernels)),
                environment={**fault.environment, **service_module.ONE_DEVICE}) as service:
        all_up(service)
        problem = service.filter(*sobel, variant="general", timeout=180).refused(500, "device-failed")
        assert "gradient cannot be compiled" in problem["detail"]
        assert service.filter(IMAGES[1][0], [("box", {})], variant="general").status == 200
        fault.disarm()
        poll(lambda: service.filter(*sobel, variant="general", timeout=180).status == 200, 120, "another try")
        assert failures(service) == 0


# Signals ------------------------------------------------------------------------------------------

def test_signals_to_random_workers(launch, warm):
    """Workers die and freeze all the time: every answer is right or an honest error."""
    seconds = float(os.environ.get("CONVOLVED_FAULT_SECONDS", "8"))
    signals = (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV)
    random = np.random.default_rng(int(seconds))
    with launch(*arguments("--quarantine-failures", "100000"), environment=TWO_DEVICES) as service:
        all_up(service)
        with Load(service, honest=HONEST | {(422, "decoder-died"), (503, "not-ready")}) as load:
            ends, sent = time.monotonic() + seconds, 0
            while time.monotonic() < ends:
                load.check()
                workers = service.workers("codec") + service.workers("device")
                if workers:
                    with contextlib.suppress(ProcessLookupError):
                        workers[random.integers(len(workers))].kill(
                            signals[random.integers(len(signals))])
                        sent += 1
                time.sleep(0.05)
            served = load.served
            poll(lambda: load.check() or load.served > served + 20, 60, "answers afterwards")
        assert sent > seconds
        all_up(service)
        poll(lambda: len(service.workers("codec")) == 3, 60, "all codec workers")
        zombies = [p.pid for p in children(service.process.pid) if not p.alive]
        assert not zombies, "dead workers that nobody has reaped"
        metrics = service.metrics()
        assert metrics.total("convolved_tiles_in_flight") == 0
        assert metrics.total("convolved_tiles_queued") == 0
