"""Live objects: a request's are gone when it is, a worker's stay as they are."""
import contextlib
import itertools

import numpy as np
import pytest

import imagefiles
from fixtures import service_with
from jobs import HEAVY, begin
from pixels import random_pixels
from service import ONE_DEVICE, SMALL, TWO_DEVICES, lasting, poll, request_head

LARGE = np.zeros((800, 800, 3), np.uint8)
IMAGE = random_pixels(1, 700, 500, 3, "u8")
BOX = "/v1/filters/box?variant=general"
counted = service_with("--codecs", "3", "--canary-interval", "3600", environment=TWO_DEVICES)
LASTING = ("context", "queue", "program", "kernel", "buffer", "step_kernel", "step_weights", "plan")


def every_kind(service):
    for variant in (None, "general", "conv_naive"):  # by kernels that test_tuner asks for too
        service.filter(IMAGE, [("gaussian", {"size": 3})], variant=variant)
    assert service.filter(IMAGE, [("gaussian", {"sigma": 20.0}), ("sobel", {})],
                          variant="general").status == 200
    assert service.filter(IMAGE, [("unsharp", {})], variant="general", verify=1).status == 200
    png = imagefiles.write_png(IMAGE)
    assert service.post(BOX, png[:-2000]).status == 422
    assert service.filter(SMALL, [("box", {"size": 2})]).status == 400
    assert service.filter(LARGE, HEAVY, variant="general", deadline_ms=5).status in (429, 504)
    with service.socket() as leaving:
        leaving.sendall(request_head(BOX, f"Content-Length: {len(png)}") + png)
    job = begin(service, BOX, png)
    assert service.get(job + "?wait=30").status == 200
    assert service.request("DELETE", job).status == 204


def test_nothing_is_left(counted):
    """Nothing of requests that ended in any way is left; what workers keep stops growing."""
    kept = None
    for _ in range(6):
        every_kind(counted)
        before, kept = kept, lasting(counted.rest(programs=True))
        if kept == before:
            assert kept.keys() == set(itertools.product(("cpu0", "cpu1"), LASTING))
            return
    raise AssertionError(f"every round adds to what is kept: {before}, {kept}")


@pytest.mark.slow
def test_killed(launch):
    """A worker that has ended has no objects; the next one's are counted from the start."""
    with launch("--codecs", "2", environment=ONE_DEVICE) as service:
        before = lasting(service.rest(programs=True))
        with contextlib.suppress(ProcessLookupError):
            service.workers("device")[0].kill()
        poll(lambda: service.total("convolved_opencl_objects") == 0, 60, "no objects", 0)
        poll(service.works, 60, "the service")
        after = lasting(service.rest(programs=True))
        assert after["cpu0", "context"] == 1 and after["cpu0", "queue"] == before["cpu0", "queue"]
