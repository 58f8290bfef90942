"""The service's description of itself, against a client's counts."""
import collections
import math
import os
import pathlib
import re
import resource
import shutil
import time

import imagefiles
from fixtures import service_with
from jobs import PREFER
from pixels import random_pixels

IMAGE = random_pixels(1, 400, 300, 3, "u8")
PNG = imagefiles.write_png(IMAGE)
# A service that nobody else asks anything, too busy with nothing to test itself often.
fresh = service_with("--canary-interval", "3600", "--codecs", "2")


def counts(metrics, name, *labels):
    """Returns the counter for each combination of these labels."""
    return collections.Counter({tuple(found[label] for label in labels): value
                                for found, value in metrics.samples(name)})


def test_counts_are_exact(fresh):
    """Requests by route and code, to the last one. No client can make series."""
    def counted():
        return counts(fresh.metrics(), "convolved_request_duration_seconds_count", "route", "code")
    before, expected = counted(), {}
    filters = "/v1/filters/{name}"
    for path, body, route, status, count in (
            ("/v1/filters/box", PNG, filters, 200, 5),
            ("/v1/filters/gaussian?sigma=-1", PNG, filters, 400, 3),
            ("/v1/filters/box", b"text", filters, 415, 2),
            ("/v1/filters/nothing", PNG, filters, 404, 1),
            ("/v1/chain?filters=box,sobel", PNG, "/v1/chain", 200, 4),
            ("/nowhere", PNG, "none", 404, 1)):
        for _ in range(count):
            assert fresh.post(path, body).status == status
        expected[route, str(status)] = count
    grown = counted() - before
    del grown["/metrics", "200"]
    assert grown == expected


def test_work_is_counted(fresh):
    """Stages, kernels and tiles, from a known number of images."""
    before = fresh.metrics()
    for _ in range(6):
        assert fresh.post("/v1/filters/gaussian?sigma=2&variant=separable", PNG).status == 200
    after = fresh.metrics()

    def grown(name, **labels):
        return after.total(name, **labels) - before.total(name, **labels)

    for stage in ("receive", "decode", "encode", "queue", "wait"):
        assert grown("convolved_stage_duration_seconds_count", stage=stage) == 6, stage
    for stage in ("decode", "encode"):
        assert 0 < grown("convolved_stage_duration_seconds_sum", stage=stage) < 60
    launches = grown("convolved_kernel_duration_seconds_count", kernel="separable")
    assert launches >= grown("convolved_tiles_total") >= 6
    assert grown("convolved_kernel_duration_seconds_count", kernel="gradient") == 0
    assert 0 < grown("convolved_kernel_duration_seconds_sum", kernel="separable") < 60
    assert grown("convolved_kernel_bytes_total", kernel="separable") >= 6 * 2 * IMAGE.nbytes * 0.9
    # A device with memory of its own has a transfer each way for a tile; one that shares the host's
    # has none.
    own = {device["type"] for device in fresh.get("/v1/devices").json()["devices"]} != {"cpu"}
    for direction in ("upload", "download"):
        assert (grown("convolved_transfer_duration_seconds_count", direction=direction) > 0) == own
        moved = grown("convolved_transfer_bytes_total", direction=direction)
        assert moved >= 6 * IMAGE.nbytes if own else moved == 0


def test_rejections_are_counted(fresh):
    """Refused requests apart from failed jobs; one that has not ended counts as neither."""
    rejected, failed = "convolved_requests_rejected_total", "convolved_jobs_failed_total"
    before = fresh.metrics()
    assert fresh.post("/v1/filters/box", PNG[:-2000]).status == 422
    assert fresh.post("/v1/filters/box?size=2", PNG).status == 400
    assert fresh.send(b"nonsense\r\n").status == 400
    job = fresh.post("/v1/filters/box", PNG[:-2000], headers=PREFER).json()["links"]["result"]
    for _ in range(3):
        assert fresh.get(f"{job}?wait=30").status == 422
    slow = fresh.post("/v1/filters/bilateral?radius=16&variant=reference", PNG,
                      headers=PREFER).json()["links"]
    assert fresh.get(slow["result"]).status == 409
    assert fresh.request("DELETE", slow["self"]).status == 204
    assert fresh.get(f"{slow['result']}?wait=30").status == 410
    after = fresh.metrics()
    for name, grown in ((rejected, {("bad-parameter",): 1, ("bad-request",): 1}),
                        (failed, {("undecodable",): 2, ("cancelled",): 1})):
        assert counts(after, name, "reason") - counts(before, name, "reason") == grown


def test_counters_start_at_zero(fresh):
    """Or the first increase would be seen by nobody's rate()."""
    metrics = fresh.metrics()
    for name, reason in (("requests_rejected", "queue-full"), ("requests_rejected", "input-output"),
                         ("jobs_failed", "input-output"), ("jobs_failed", "client-gone")):
        assert metrics.samples(f"convolved_{name}_total", reason=reason)[0][1] == 0
    for device in fresh.get("/v1/devices").json()["devices"]:
        for name in ("tiles", "verified_samples", "transfer_bytes"):
            assert metrics.samples(f"convolved_{name}_total", device=device["id"]), name


def test_processes(fresh):
    """Those of the service and their memory, its descriptors and its age, as /proc has them."""
    metrics = fresh.metrics()
    workers = {kind: fresh.workers(kind) for kind in ("codec", "device", "http")}
    for kind, processes in {**workers, "front": [fresh]}.items():
        assert metrics.total("convolved_processes", process=kind) == len(processes)
        assert 100e3 < metrics.total("convolved_process_memory_bytes", process=kind) < 4e9
    front = pathlib.Path(f"/proc/{fresh.process.pid}")
    assert abs(metrics.total("convolved_process_open_fds") - len(os.listdir(front / "fd"))) <= 3
    limit = int(re.search(r"Max open files +(\d+)", (front / "limits").read_text())[1])
    assert metrics.total("convolved_process_max_fds") == limit
    assert 0 < time.time() - metrics.total("convolved_process_start_time_seconds") < 3600
    used = metrics.total("convolved_front_cpu_seconds_total")
    assert 0 < used < 600
    fresh.post("/v1/filters/box", PNG)
    assert fresh.total("convolved_front_cpu_seconds_total") > used


def test_limits_and_directories(fresh):
    metrics = fresh.metrics()
    assert metrics.total("convolved_ready") == 1
    assert metrics.total("convolved_device_memory_bytes") > 1 << 20
    (labels, value), = metrics.samples("convolved_build_info")
    assert labels["version"] and value == 1
    assert metrics.total("convolved_jobs_limit") == 256
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert metrics.total("convolved_connections_limit") == min(10000, descriptors // 2)
    assert metrics.total("convolved_spool_memory_limit_bytes") == 1 << 30
    for directory, path in (("cache", fresh.cache), ("state", fresh.state)):
        disk = shutil.disk_usage(path)
        assert metrics.total("convolved_directory_size_bytes", directory=directory) == disk.total
        free = metrics.total("convolved_directory_free_bytes", directory=directory)
        assert math.isclose(free, disk.free, rel_tol=0.2)


def test_kernels(fresh):
    fresh.post("/v1/chain?filters=gaussian=sigma=1.4,sobel", PNG)
    kernels = fresh.get("/v1/kernels").json()["kernels"]
    metrics = fresh.metrics()
    assert {"separable", "gradient"} <= {kernel["kernel"] for kernel in kernels}
    for k in kernels:
        assert k["count"] == metrics.total("convolved_kernel_duration_seconds_count",
                                           kernel=k["kernel"], device=k["device"])
        order = [k[f"{name}_seconds"] for name in ("min", "p50", "p90", "p99", "max", "total")]
        assert 0 <= order[0] and order[:5] == sorted(order[:5]), k
        assert k["max_seconds"] <= k["total_seconds"] * (1 + 1e-9), k
        assert k["count"] * k["min_seconds"] <= k["total_seconds"] * (1 + 1e-9), k
        rate = k["bytes"] / k["total_seconds"]
        assert k["bytes"] > 0 and math.isclose(k["bytes_per_second"], rate, rel_tol=0.01)


# Parameters that a filter, or a parameter of it, needs beside.
NEEDED = {"convolve": {"kernel": "1"}, "lut": {"table": "0,1"}, "canny low": {"high": 6}, "canny high": {"low": 0},
          "threshold size": {"method": "mean"}, "threshold offset": {"method": "mean"},
          "equalize tiles": {"method": "clahe"}, "equalize clip": {"method": "clahe"}}


def test_catalogue_is_what_is_accepted(fresh):
    """The limits that it names are those that are held."""
    filters = fresh.get("/v1/filters").json()["filters"]
    for one in filters:
        for p in one["parameters"]:
            if p["type"] not in ("number", "odd", "integer"):
                continue
            step = 0.01 if p["type"] == "number" else 2
            for value, status in ((p["minimum"], 200), (p["minimum"] - step, 400),
                                  (p["maximum"], 200), (p["maximum"] + step, 400)):
                given = {p["name"]: value, **NEEDED.get(one["name"], {}), **NEEDED.get(f"{one['name']} {p['name']}", {})}
                answer = fresh.filter(IMAGE[:2, :2], [(one["name"], given)])
                assert answer.status == status, (one["name"], p["name"], value, answer)
