"""Every OpenCL call that a device worker makes, made to fail in every way (layer.c), under load:
each answer is right or an honest error, nobody waits in vain, and the device comes back.

Two devices; the fault is in the first. A case whose call is made at a start gets one: its worker is
killed first. CALLED has the calls of a worker whose general programs are in the cache."""
import concurrent.futures
import contextlib
import functools
import itertools
import os
import re
import shutil
import signal
import time

import pytest

from clients import Load
from imagefiles import pil, written
from pixels import random_pixels, smooth
from service import BUILD, ONE_DEVICE, REPOSITORY, TWO_DEVICES, Process, poll, target_of
from strikes import Struck

LAYER = BUILD / "fault_layer.so"
FUNCTIONS = re.findall(r"^\tFUNCTION\((cl\w+)", (REPOSITORY / "tests/fault/layer.c").read_text(),
                       re.M)
ACTIONS = ("-30", "lost", "abort", "hang")  # -30: CL_INVALID_VALUE
AT_START = {"clGetPlatformIDs", "clGetPlatformInfo", "clGetDeviceIDs", "clGetDeviceInfo",
            "clCreateContext", "clCreateCommandQueue", "clCreateProgramWithBinary",
            "clBuildProgram", "clCreateKernel", "clCreateBuffer", "clReleaseMemObject",
            "clRetainKernel"}
CALLED = [*sorted(AT_START), "clEnqueueNDRangeKernel", "clFinish", "clGetEventProfilingInfo",
          "clGetKernelInfo", "clReleaseEvent", "clReleaseKernel", "clSetKernelArg"]
MAKING = {"clCreateProgramWithBinary", "clBuildProgram", "clCreateKernel"}
COPIES = ["clEnqueueReadBufferRect", "clEnqueueWriteBufferRect"]
JPEG_FAULTS = [("clEnqueueWriteBuffer", "-30"), ("clEnqueueNDRangeKernel", "lost"),
               ("clSetKernelArg", "abort"), ("clEnqueueReadBuffer", "hang"),
               ("clGetEventInfo", "endless"), ("clEnqueueReadBuffer", "-30"), ("clFlush", "hang")]
IMAGES = [(random_pixels(1, 61, 47, 3, "u8"), [("gaussian", {"sigma": 1.5}), ("sobel", {})]),
          (random_pixels(2, 700, 500, 3, "u8"), [("gaussian", {"sigma": 3.0})]),
          (random_pixels(3, 300, 200, 4, "u16"), [("unsharp", {}), ("sharpen", {})])]
HONEST = {(500, "device-failed"), (503, "no-device"), (504, "timeout")}
AS_GPU = {"CONVOLVED_FAULT_GPU": "1"}


class Fault:
    """The file through which the layer of the first device is told what to break."""

    def __init__(self, directory):
        self.path = directory / "fault"
        self.file = directory / "fault.0"

    def arm(self, text):
        new = self.path.with_name("new")
        new.write_text(text)
        new.rename(self.file)

    def armed(self):
        return self.file.exists()

    def disarm(self):
        self.file.unlink(missing_ok=True)


@pytest.fixture
def fault(tmp_path):
    return Fault(tmp_path)


def layered(fault):
    assert LAYER.exists(), f"{LAYER} is not built: make check TESTS="
    return {"OPENCL_LAYERS": str(LAYER), "CONVOLVED_FAULT": str(fault.path)}


@pytest.fixture(scope="module")
def warm(launch):
    """The cache has all general programs."""
    with launch():
        pass


@pytest.fixture
def faulty(launch, fault, warm):
    """faulty(*options, **environment): a service with the layer, all of whose devices are up; two,
    unless the environment says otherwise."""
    @contextlib.contextmanager
    def start(*options, **environment):
        with launch("--codecs", "3", "--verify-share", "0", *options, environment={
                **TWO_DEVICES, **layered(fault), **environment}) as service:
            all_up(service)
            yield service
    return start


TRIED_ALWAYS = ("--tile-timeout", "1", "--quarantine-failures", "100000", "--start-timeout", "3")


def asking(service, clients=3, requests=None, **options):
    """Clients that ask for the images, or for other requests."""
    requests = requests or [functools.partial(service.filter, *image) for image in IMAGES]
    right = [request(variant="general", codec="cpu").body for request in requests]

    def paced(request):
        time.sleep(0.05)
        return request(timeout=60, variant="general", **options)
    return Load([functools.partial(paced, request) for request in requests], clients, HONEST, right)


def devices(service):
    return {d["id"]: d for d in service.get("/v1/devices").json()["devices"]}


def state(service):
    return devices(service)["cpu0"]["state"]


def are_up(service):
    return {device["state"] for device in devices(service).values()} == {"up"}


def all_up(service):
    poll(lambda: are_up(service), what="all devices up")


def await_hang(service, load, function, known):
    """Until the worker whose call hangs, after `known` failures, is ended: by the service, or here
    if the call is a maker's and no tile waits for it: many were filtered since."""
    tiles = service.total("convolved_tiles_total", device="cpu0")

    def ended():
        metrics = service.metrics()
        return service.restarts(worker="device") > known or (
            function in MAKING and metrics.total("convolved_programs_pending", device="cpu0") > 0
            and metrics.total("convolved_tiles_total", device="cpu0") > tiles + 50)
    load.until(ended, f"the end of {function}", 0.005)
    if service.restarts(worker="device") <= known:
        Process(devices(service)["cpu0"]["pid"]).kill()


def arm_at_start(service, fault, text):
    """Not this worker is to make the call, but the next."""
    while True:
        worker = Process(poll(lambda: devices(service)["cpu0"].get("pid"), 60, "a worker to replace"))
        with contextlib.suppress(ProcessLookupError):  # it has ended since, and its successor began
            worker.kill(signal.SIGSTOP)
            fault.arm(text)
            worker.kill()
            return


def break_one(service, load, fault, function, action):
    """One case, from the fault until all is well again."""
    known = service.restarts(worker="device") + (function in AT_START)
    if function in AT_START:
        arm_at_start(service, fault, f"{function} 1 {action}")
    else:
        fault.arm(f"{function} 1 {action}")
    load.until(lambda: not fault.armed(), f"the call of {function}", 0.005)
    if action == "hang":
        await_hang(service, load, function, known)
    before = load.served
    load.until(lambda: load.served >= before + 5, f"answers after {function} {action}", 0.005)
    load.until(lambda: are_up(service), f"all devices up after {function} {action}")


def every(functions):
    """All failures of these calls. The quick case has one of each, and so five of each kind."""
    one_each = list(zip(functions, itertools.cycle(ACTIONS)))
    others = [[(f, action) for f in functions if (f, action) not in one_each] for action in ACTIONS]
    return pytest.mark.parametrize(
        "cases", [one_each, *(pytest.param(cases, marks=pytest.mark.slow) for cases in others)],
        ids=["one each", *ACTIONS])


def sweep(faulty, fault, cases, **environment):
    with faulty(*TRIED_ALWAYS, **environment) as service:
        with asking(service) as load:
            for function, action in cases:
                break_one(service, load, fault, function, action)
        assert "sent an invalid" not in service.said
        assert len(devices(service)) == 2
    print(f"{len(cases)} faults")  # for ./dev report


@pytest.mark.slow
@every(CALLED)
def test_calls_fail(faulty, fault, cases):
    sweep(faulty, fault, cases)


@every(COPIES)
def test_copies_fail(faulty, fault, cases):
    """On a GPU; also one that shares the host's memory, as this does, gets copies: OpenCL promises nobody
    that the host sees what a kernel wrote into memory that was never mapped."""
    sweep(faulty, fault, cases, **AS_GPU)


def jpeg_requests(service):
    """JPEGs both ways, and one way only."""
    pixels, filters = smooth(500, 300, 3), [("gaussian", {"sigma": 1.5})]
    body = written(pil(pixels), "jpeg")

    def post(timeout=60, **options):
        return service.post(target_of(filters, **options), body, timeout=timeout)
    return [post, functools.partial(post, format="ppm"),
            functools.partial(service.filter, pixels, filters, format="jpeg")]


@pytest.mark.slow
@pytest.mark.usefixtures("jpeg_programs")
def test_jpegs_fail(faulty, fault):
    """After a failure, hang or loss within a tile with scans the codec worker does the image, with
    tiles of pixels on the other device, and its bytes are right."""
    with faulty(*TRIED_ALWAYS, "--canary-interval", "3600", "--jpeg-on-any", "yes") as service:
        def failed():
            return service.total("convolved_jpeg_sides_total", reason="failed")

        with asking(service, requests=jpeg_requests(service), codec="gpu") as load:
            for function, action in JPEG_FAULTS:
                known = failed()

                def strikes(function=function, action=action, known=known):
                    """The call may have been one for pixels: then it strikes again."""
                    service.compiled(service.takes_jpeg, what="the programs for JPEG")
                    break_one(service, load, fault, function, action)
                    return failed() > known
                load.until(strikes, f"an image that {function} failed")
        assert "sent an invalid" not in service.said


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
    assert service.restarts(worker="device") == service.restarts(worker="device", reason="timeout"), service.tail()


@pytest.mark.slow
def test_small_device(faulty):
    """A GPU with small groups, little local memory and small image objects: kernels that do not fit
    are not chosen, and refused if asked for."""
    rgb, blur = IMAGES[1]
    small, wide = random_pixels(5, 40, 30, 4, "u8"), random_pixels(7, 100, 20, 4, "u8")
    emboss, limits = [("emboss", {})], "group=32 local=6000 image=64"
    with faulty(CONVOLVED_FAULT_LIMITS=limits, **ONE_DEVICE, **AS_GPU) as service:
        agree(service, (rgb, blur, None, None), (rgb, [("box", {"size": 41})], None, None),
              (rgb, emboss, "conv_naive", "groups of 128"),
              (rgb, blur, "sep_two_pass", "groups of 256"),
              (small, emboss, "conv_image", None), (wide, emboss, "conv_image", "image objects"),
              (small, emboss, "conv_local_coop", None), (wide, emboss, None, None))


@pytest.mark.slow
def test_no_images(faulty):
    """Kernels that stand in one file with those that read image objects are compiled without these
    (for pixels that no other test has them for: the cache does not know of the layer)."""
    pixels, rgba = random_pixels(8, 60, 40, 2, "u16"), random_pixels(9, 60, 40, 4, "u8")
    emboss, bilateral = [("emboss", {})], [("bilateral", {"radius": 2})]
    with faulty(CONVOLVED_FAULT_LIMITS="image=0", **ONE_DEVICE) as service:
        agree(service, (pixels, emboss, "conv_naive", None),
              (pixels, bilateral, "bilateral_unrolled", None),
              (rgba, bilateral, "bilateral_image", "image objects"))


def test_table_is_whole():
    """The layer has every OpenCL function that the device worker's sources name."""
    sources = "".join(p.read_text() for p in (REPOSITORY / "daemon/device").rglob("*.c"))
    releases = re.findall(r"\bcl[A-Z]\w+", (REPOSITORY / "daemon/wire/objects.def").read_text())
    assert set(FUNCTIONS) == {*re.findall(r"\b(cl[A-Z]\w+)\(", sources), *releases}


# At the start of a service -------------------------------------------------------------------------

LISTS, OPENS = "clGetDeviceInfo 1", "clCreateContext 1"


@pytest.mark.parametrize("call, restarts", [(LISTS, 0), (OPENS, 1)], ids=("lists", "opens"))
@pytest.mark.parametrize("action, reason", [("abort", "signal"), ("hang", "start-timeout")])
def test_first_process(launch, fault, warm, call, restarts, action, reason):
    """The process that lists the devices, and goes on as the first one's worker: in a list it is a failed
    discovery, which is repeated after 5 s, and then a failed worker, which has a successor at once."""
    fault.arm(f"{call} {action}")
    with launch("--start-timeout", "3", environment={**TWO_DEVICES, **layered(fault)}) as service:
        assert not fault.armed()
        all_up(service)
        assert service.said.count(f"device discovery failed: {reason}\n") == 1 - restarts
        assert service.restarts() == service.restarts(worker="device", reason=reason) == restarts
        assert len(service.workers("device")) == 2


def test_killed_before_it_serves(launch, fault, warm):
    """It is replaced like any worker, and nothing is listed again."""
    fault.arm(f"{OPENS} hang")
    with launch(environment={**ONE_DEVICE, **layered(fault)}).starting() as service:
        poll(lambda: not fault.armed(), 60, "the call")
        worker, = service.workers("device")
        worker.kill()
        service.wait_ready()
        assert service.restarts() == service.restarts(worker="device", reason="killed") == 1
        assert "discovery" not in service.said and service.said.count("is used") == 1
        assert Process(devices(service)["cpu0"]["pid"]) != worker


# One device, struck again and again ---------------------------------------------------------------

REFUSED_S, QUIET_S, SHARE = 4, 10, 1 / 20
STRIKES, EVERY_S = 10, 2.25


@pytest.mark.slow
def test_struck_again_and_again(launch, fault):
    """A brief run of `./dev bench strikes`. 503 for at most 4 s after a strike, for at most one answer in
    twenty, and for none 10 s after the last. Until the layer's device, as slow to start as a GPU, is
    back, requests wait for it, quarantine or not. With CONVOLVED_FAULT_GPU_HOST set it is the only
    device of this host instead."""
    environment = {} if "CONVOLVED_FAULT_GPU_HOST" in os.environ else {**ONE_DEVICE, **layered(fault)}
    with launch("--codecs", "4", "--quarantine-failures", "2", environment=environment) as service:
        with Struck(service, ("codec", *["device"] * 4)) as struck:  # as often one as the other
            fault.arm("clCreateContext 1 late keep")
            struck.again(STRIKES * EVERY_S, EVERY_S, struck.strike)
            time.sleep(QUIET_S)
            struck.load.more(20)
        assert not struck.wrong, struck.wrong[:3]
        load, moments = struck.load, [strike.at for strike in struck.strikes]
        refused = [at for _, at, status in load.answers if status != 200]
        for at, until in itertools.pairwise([*moments, time.monotonic()]):
            late = [refusal - at for refusal in refused if at + REFUSED_S < refusal < until]
            assert not late, f"{len(late)} refused, the last {max(late):.1f} s after a strike"
        assert len(refused) <= SHARE * load.done, (load.refused, load.done)
        poll(lambda: service.total("convolved_device_up") == 1, 60, "the device")
    print(f"{len(struck.strikes)} faults")


# Wrong pixels -------------------------------------------------------------------------------------

def suspected(service, reason):
    return service.total("convolved_device_suspected_total", reason=reason, device="cpu0")


def test_flipped_bit(faulty, fault):
    """A client that asked for verification never gets it, for the tile is run again. As that comes
    out otherwise the device is quarantined, filters a test tile and is up again. The next time
    within two minutes it has only to filter a test tile: whether the tile came out otherwise is a codec
    worker's word, and that is not to keep a device away."""
    with faulty() as service:
        with asking(service, clients=2, verify=1) as load:
            load.more(5)
            fault.arm("clEnqueueNDRangeKernel 1 flip")
            load.until(lambda: state(service) == "quarantined", "a quarantine", 0.005)
            assert service.total("convolved_device_up", device="cpu0") == 0
            assert service.get("/readyz").status == 200, "the other device is up"
            all_up(service)
            fault.arm("clEnqueueNDRangeKernel 1 flip")
            load.until(lambda: suspected(service, "repetition") == 2, "another repetition")
            load.more(5)
            all_up(service)
        assert not load.refused and suspected(service, "repetition") == 2
        assert service.restarts(worker="device", reason="mismatch") == 1 and state(service) == "up"
        service.says("filtered the test tiles correctly")


def test_always_wrong_alike(faulty, fault):
    """The tile comes out right of the other device, and a test tile finds it out. It stays in
    quarantine while it is wrong, and clients do not notice."""
    with faulty() as service:
        with asking(service, clients=2, verify=1) as load:
            fault.arm("clEnqueueNDRangeKernel 1 flip keep")
            load.until(lambda: state(service) == "quarantined", "a quarantine", 0.005)
            load.until(lambda: service.restarts(worker="device", reason="probe") >= 2, "failed tests")
            # With several launches at a time the flipped bit may be another's, so a repetition may tell, too.
            assert suspected(service, "test") >= 1
            assert not load.refused
            fault.disarm()
            all_up(service)


def test_repeated_failures(faulty, fault):
    """A device that fails again and again is quarantined, and tested before it is used."""
    with faulty("--quarantine-failures", "3") as service:
        fault.arm("clFinish 5 lost keep")
        with asking(service) as load:
            load.until(lambda: state(service) in ("quarantined", "probing"), "a quarantine")
            load.more(20)
            fault.disarm()
            all_up(service)
        service.says("cpu0 is quarantined")


@pytest.mark.parametrize("number", [TWO_DEVICES, ONE_DEVICE], ids=("two", "one"))
def test_vanishes(faulty, fault, number):
    """CL_DEVICE_NOT_AVAILABLE, whatever is called. The other device does its work; without one, requests
    are refused. It is looked for again and again, and used when it is there."""
    with faulty("--quarantine-failures", "3", "--job-timeout", "30", **number) as service:
        alone = len(devices(service)) == 1
        with asking(service) as load:
            load.more(20)
            known = service.restarts(worker="device")
            fault.arm("any 1 -2 keep")
            load.until(lambda: service.restarts(worker="device") >= known + 3, "tries to start it")
            if alone:
                load.until(lambda: load.refused[503, "no-device"], "a refusal")
                assert service.get("/readyz").status == 503 and service.get("/livez").status == 200
            else:
                served = load.served
                load.until(lambda: load.served >= served + 50, "answers of the other")
                assert service.get("/readyz").status == 200 and not load.refused
            assert state(service) in ("quarantined", "probing")
            fault.disarm()
            all_up(service)
            load.more(20)
        service.rest()


@pytest.mark.parametrize("number", [
    TWO_DEVICES, pytest.param(ONE_DEVICE, marks=pytest.mark.slow)], ids=("two", "one"))
def test_spinning_kernel(faulty, fault, number):
    """A kernel that computes for ever on a CPU is noticed by its predicted processor time, long
    before tile-timeout; and its tile runs elsewhere, or there again."""
    with faulty("--tile-timeout", "300", "--canary-interval", "3600", **number) as service:
        all_up(service)
        right = service.filter(*IMAGES[1], variant="general").body
        service.rest()
        worker = Process(devices(service)["cpu0"]["pid"])
        before = used = worker.busy
        fault.arm("clEnqueueNDRangeKernel 1 spin")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(service.filter, *IMAGES[1], variant="general")
            while not answer.done():
                used = max(used, worker.busy)  # 0 once it has gone
                time.sleep(0.02)
        assert not fault.armed(), "it had a tile"
        assert answer.result().status == 200 and answer.result().body == right
        assert service.restarts(worker="device", reason="timeout") == 1
        assert used - before < 60, "1 s, and 500 predictions, which are larger on a busy machine"
        all_up(service)


def test_endless_on_a_gpu(faulty, fault):
    """No command ends: the prediction is the limit, long before tile-timeout."""
    with faulty("--tile-timeout", "300", **AS_GPU) as service:
        for label in "gpu0", "gpu1":  # before its first tile a device may be pinning arenas
            assert service.filter(*IMAGES[1], device=label).status == 200
        with asking(service) as load:
            fault.arm("clFlush 1 endless")
            load.until(lambda: not fault.armed(), "a command")
            load.until(lambda: service.restarts(worker="device", reason="timeout") == 1, "its end; 2 s are meant")


@pytest.mark.slow
def test_slow_compiler(faulty, fault):
    """A tile that waits for the program that its request insists on is not its device's delay."""
    with faulty("--tile-timeout", "2") as service:
        fault.arm("clBuildProgram 1 slow")
        answer = service.filter_when_compiled(*IMAGES[1], variant="separable_wide", device="cpu0")
        assert answer.status == 200, answer
        assert not fault.armed() and service.restarts(worker="device") == 0


@pytest.mark.slow
def test_compiler_crashes(faulty, fault, tmp_path):
    """A compiler's crash is an error that names the kernel, costs no worker, and is retried."""
    def sobel():
        return service.filter(IMAGES[0][0], [("sobel", {})], variant="general", timeout=180)
    kernels = tmp_path / "kernels"
    shutil.copytree(REPOSITORY / "kernels", kernels)
    with (kernels / "general/gradient.cl").open("a", encoding="utf-8") as file:
        file.write(f"/* {os.urandom(8).hex()}: in no cache */\n")
    fault.arm("clCreateProgramWithSource 1 abort keep")
    with faulty("--kernel-dir", str(kernels), **ONE_DEVICE) as service:
        assert "gradient cannot be compiled" in sobel().refused(500, "device-failed")["detail"]
        assert service.filter(IMAGES[1][0], [("box", {})], variant="general").status == 200
        fault.disarm()
        poll(lambda: sobel().status == 200, 120, "another try")
        assert service.restarts(worker="device") == 0
