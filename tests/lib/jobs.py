"""Asynchronous jobs, as tests submit them."""
import numpy as np

from pixels import random_pixels
from service import SMALL, poll, raw_kind, target_of

PREFER = {"Prefer": "respond-async"}
MEDIUM = random_pixels(3, 360, 360, 3, "u8")   # a second, or some by the reference
LONG = np.zeros((3000, 3000, 3), np.uint8)   # nobody waits for its end
HEAVY = [("bilateral", {"radius": 16})]


def submit(service, pixels=SMALL, filters=(("box", {}),), **options):
    """Returns the path of a new job; whatever has been compiled before, it takes as long."""
    options = {"raw": raw_kind(pixels), "format": "raw", "variant": "general", **options}
    target = target_of(list(filters), **options)
    return begin(service, target, np.ascontiguousarray(pixels).tobytes())


def begin(service, target, body):
    """Returns the path of a job of this request."""
    answer = service.post(target, body, headers=PREFER)
    assert answer.status == 202, answer
    return answer.headers["Location"]


def cancel(service, jobs):
    for job in jobs:
        service.request("DELETE", job)
    poll(lambda: not service.total("convolved_jobs", state="running"), what="no jobs")


def jobs_of(service):
    """Returns the paths of its client's jobs."""
    return [job["links"]["self"] for job in service.get("/v1/jobs").json()["jobs"]]


def forget_all(service):
    """Deletes them, until there are none."""
    def none_left():
        for path in jobs_of(service):
            service.request("DELETE", path)
        return not jobs_of(service)
    poll(none_left, what="the end of all jobs")
