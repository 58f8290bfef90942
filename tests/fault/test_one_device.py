"""A service on one device, whose workers are killed, stopped and aborted in turns under mixed load:
are the answers right, and how long is anybody refused? Until the layer's device, as slow to start
as a GPU, is back, requests wait for it, quarantine or not. With CONVOLVED_FAULT_GPU_HOST set it is
the only device of this host instead."""
import contextlib
import functools
import itertools
import os
import signal
import time

import numpy as np
import pytest

from clients import Load
from imagefiles import pil, written
from jobs import PREFER
from service import BUILD, ONE_DEVICE, REPOSITORY, poll, target_of

REFUSED_S, QUIET_S, SHARE = 4, 10, 1 / 20
STRIKES, EVERY_S = int(os.environ.get("CONVOLVED_FAULT_STRIKES", "5")), 4.5
SIGNALS = {"device": (signal.SIGKILL, signal.SIGSTOP, signal.SIGABRT),
           "codec": (signal.SIGSTOP, signal.SIGABRT, signal.SIGKILL)}
PHOTOGRAPH = (REPOSITORY / "tests/photograph.jpg").read_bytes()
NOISE = np.random.default_rng(1).integers(0, 256, (2000, 3000, 3), np.uint8)
SMALL, LARGE = (written(pil(part), "jpeg") for part in (NOISE[:120, :160], NOISE))
CASES = [(SMALL, [("gaussian", {"sigma": 1.5})]), (SMALL, [("median", {}), ("sobel", {})]),
         (PHOTOGRAPH, [("gaussian", {"sigma": 2}), ("sobel", {})]), (PHOTOGRAPH, [("unsharp", {})]),
         (PHOTOGRAPH, [("bilateral", {"radius": 2})]), (LARGE, [("emboss", {})])]


def ask(service, image, filters, kind):
    options = {"priority": "batch"} if kind == "batch" else {}
    target = target_of(filters, variant="general", **options)
    answer = service.post(target, image, headers=PREFER if kind == "async" else {})
    if answer.status != 202:
        return answer
    job = answer.headers["Location"]
    answer = service.get(f"{job}/result?wait=100")
    service.request("DELETE", job)
    return answer


def strike(service, number):
    """A signal for the device's worker and for one of the codec workers, if they live."""
    for kind, signals in SIGNALS.items():
        for worker in service.workers(kind)[:1]:
            what = signals[number % len(signals)]
            with contextlib.suppress(ProcessLookupError):
                worker.kill(what)
                if what == signal.SIGABRT:  # LLVM's handler, in PoCL, takes the first for itself
                    time.sleep(0.05)
                    worker.kill(what)


@pytest.mark.slow
def test_struck_again_and_again(launch, tmp_path):
    """503 for at most 4 s after a strike, for at most one answer in twenty, and for none 10 s after
    the last; every image of 200 has the bytes that it had before."""
    layer, fault = BUILD / "fault_layer.so", tmp_path / "fault"
    assert layer.exists(), f"{layer} is not built: make check TESTS="
    environment = {} if "CONVOLVED_FAULT_GPU_HOST" in os.environ else {
        **ONE_DEVICE, "OPENCL_LAYERS": str(layer), "CONVOLVED_FAULT": str(fault)}
    with launch("--codecs", "4", "--quarantine-failures", "2", environment=environment) as service:
        requests = [functools.partial(ask, service, *case, kind) for case, kind in
                    itertools.product(CASES, ("plain", "plain", "plain", "batch", "async"))]
        with Load(requests, 8, {(503, "no-device")}) as load:
            fault.with_name("fault.0").write_text("clCreateContext 1 late keep")
            strikes = []
            for number in range(STRIKES):
                time.sleep(EVERY_S)
                strikes.append(time.monotonic())
                strike(service, number)
            time.sleep(QUIET_S)
            load.more(20)
        refused = [at for _, at, status in load.answers if status == 503]
        for struck, until in itertools.pairwise([*strikes, time.monotonic()]):
            late = [at - struck for at in refused if struck + REFUSED_S < at < until]
            assert not late, f"{len(late)} × 503, the last {max(late):.1f} s after a strike"
        assert len(refused) <= SHARE * load.done, (load.refused, load.done)
        poll(lambda: service.total("convolved_device_up") == 1, 60, "the device")
