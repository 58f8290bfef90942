"""The service's description of itself, against a client's counts."""
import math
import os
import pathlib
import re
import resource
import shutil
import subprocess
import time

import pytest

import imagefiles
from collector import Collector
from pixels import random_pixels
from service import ONE_DEVICE, poll

IMAGE = random_pixels(1, 400, 300, 3, "u8")
PNG = imagefiles.write_png(IMAGE)


@pytest.fixture(scope="module")
def fresh(launch):
    """A service that nobody else asks anything, too busy with nothing to test itself often."""
    with launch("--canary-interval", "3600", "--codecs", "2") as service:
        yield service


def requests_counted(metrics):
    """Returns {(route, code): count}"""
    return {(labels["route"], labels["code"]): value for labels, value in
            metrics.samples("convolved_request_duration_seconds_count")}


def test_counts_are_exact(fresh):
    """Requests by route and code, to the last one."""
    before = requests_counted(fresh.metrics())
    for _ in range(5):
        assert fresh.post("/v1/filters/box", PNG).status == 200
    for _ in range(3):
        assert fresh.post("/v1/filters/gaussian?sigma=-1", PNG).status == 400
    for _ in range(2):
        assert fresh.post("/v1/filters/box", b"text").status == 415
    for _ in range(4):
        assert fresh.post("/v1/chain?filters=box,sobel", PNG).status == 200
    assert fresh.get("/v1/filters/nothing").status == 404
    assert fresh.get("/nowhere").status == 404
    assert fresh.get("/v1/devices").status == 200

    def grown():
        after = requests_counted(fresh.metrics())
        return {key: value - before.get(key, 0) for key, value in after.items()
                if value > before.get(key, 0) and key[0] != "/metrics"}

    expected = [5, 3, 2, 4, 1, 1, 1]
    poll(lambda: sum(grown().values()) >= sum(expected), 60, "all requests in the metrics")
    counts = grown()
    assert sorted(counts.values()) == sorted(expected), counts
    codes = {}
    for (_, code), count in counts.items():
        codes[code] = codes.get(code, 0) + count
    assert codes == {"200": 10, "400": 3, "415": 2, "404": 2}
    routes = {route for route, _ in counts}
    assert any("chain" in route for route in routes)
    assert not any("nothing" in route or "nowhere" in route for route in routes), \
        "a client must not be able to make series"


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
    tiles = grown("convolved_tiles_total")
    launches = grown("convolved_kernel_duration_seconds_count", kernel="separable")
    assert tiles >= 6 and launches >= tiles
    assert grown("convolved_kernel_duration_seconds_count", kernel="gradient") == 0
    assert 0 < grown("convolved_kernel_duration_seconds_sum", kernel="separable") < 60
    assert grown("convolved_kernel_bytes_total", kernel="separable") >= 6 * 2 * IMAGE.nbytes * 0.9
    assert after.total("convolved_tiles_in_flight") == 0
    assert after.total("convolved_tiles_queued") == 0


def reasons(before, after, name):
    """Returns {reason: increase of its counter}, without those that have not grown."""
    was = {labels["reason"]: value for labels, value in before.samples(name)}
    return {labels["reason"]: value - was.get(labels["reason"], 0)
            for labels, value in after.samples(name) if value != was.get(labels["reason"], 0)}


def test_rejections_are_counted(fresh):
    """Refusals are one thing, jobs that fail another, however often their end is asked for; that a
    job has not ended is neither."""
    before = fresh.metrics()
    assert fresh.post("/v1/filters/box", PNG[:-2000]).status == 422
    assert fresh.post("/v1/filters/box?size=2", PNG).status == 400
    late = {"Prefer": "respond-async"}
    job = fresh.post("/v1/filters/box", PNG[:-2000], headers=late).json()["links"]["result"]
    for _ in range(3):
        assert fresh.get(f"{job}?wait=30").status == 422
    slow = fresh.post("/v1/filters/bilateral?radius=16&variant=reference", PNG,
                      headers=late).json()["links"]
    assert fresh.get(slow["result"]).status == 409
    assert fresh.request("DELETE", slow["self"]).status == 204
    assert fresh.get(f"{slow['result']}?wait=30").status == 410
    after = fresh.metrics()
    assert reasons(before, after, "convolved_requests_rejected_total") == {"bad-parameter": 1}
    assert reasons(before, after, "convolved_jobs_failed_total") == {"undecodable": 2,
                                                                     "cancelled": 1}


def test_names(fresh):
    """Everything that is promised is there, with its labels."""
    fresh.post("/v1/filters/sobel", PNG)
    metrics = fresh.metrics()
    types = {name.removeprefix("convolved_"): family.type
             for name, family in metrics.families.items()}
    assert all(name.startswith("convolved_") for name in metrics.families)
    promised = {"kernel_duration_seconds": "histogram", "stage_duration_seconds": "histogram",
                "transfer_duration_seconds": "histogram", "transfer_bytes_total": "counter",
                "request_duration_seconds": "histogram", "requests_rejected_total": "counter",
                "tiles_queued": "gauge", "tiles_in_flight": "gauge", "device_up": "gauge",
                "device_memory_bytes": "gauge", "worker_restarts_total": "counter",
                "tile_retries_total": "counter", "program_builds_total": "counter",
                "verify_mismatches_total": "counter", "build_info": "gauge"}
    assert {name: types.get(name) for name in promised} == promised
    devices = {labels["device"] for labels, _ in metrics.samples("convolved_device_up")}
    assert len(devices) >= 1 and metrics.total("convolved_device_up") == len(devices)
    assert metrics.total("convolved_device_memory_bytes") > 1 << 20
    assert metrics.total("convolved_worker_restarts_total") == 0
    assert metrics.total("convolved_tile_retries_total") == 0
    info = metrics.samples("convolved_build_info")
    assert len(info) == 1 and info[0][1] == 1 and info[0][0]["version"]


def test_processes(fresh):
    """Those of the service and their memory, its descriptors and its age, as /proc has them."""
    metrics = fresh.metrics()
    workers = {kind: fresh.workers(kind) for kind in ("codec", "device")}
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


def test_every_kind_of_process(launch, tmp_path):
    """Each kind that runs is counted: with an empty cache compilers of a device do, too."""
    with Collector() as collector, launch("--otlp-endpoint", collector.endpoint, "--cache-dir", str(tmp_path),
                                          environment=ONE_DEVICE) as service:
        def counted():
            metrics = service.metrics()
            return all(metrics.total("convolved_processes", process=kind) >= 1
                       and 50e3 < metrics.total("convolved_process_memory_bytes", process=kind) < 4e9
                       for kind in ("front", "http", "codec", "device", "compiler", "trace"))
        poll(counted, 60, "every kind")
        metrics = service.metrics()
        for kind in ("http", "trace"):
            assert metrics.total("convolved_processes", process=kind) == len(service.workers(kind))


def test_a_killed_worker_is_missed(launch):
    with launch("--codecs", "2") as service:
        service.workers("codec")[0].kill()
        poll(lambda: service.total("convolved_worker_restarts_total", worker="codec",
                                             reason="killed") == 1, 60, "its end")
        poll(lambda: service.total("convolved_processes", process="codec") == 2, 60,
             "a new one")


def test_limits_and_directories(fresh):
    metrics = fresh.metrics()
    assert metrics.total("convolved_ready") == 1
    assert metrics.total("convolved_jobs_limit") == 256
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert metrics.total("convolved_connections_limit") == min(10000, descriptors // 2)
    assert metrics.total("convolved_spool_memory_limit_bytes") == 1 << 30
    for directory, path in (("cache", fresh.cache), ("state", fresh.state)):
        disk = shutil.disk_usage(path)
        assert metrics.total("convolved_directory_size_bytes", directory=directory) == disk.total
        assert math.isclose(metrics.total("convolved_directory_free_bytes", directory=directory), disk.free,
                            rel_tol=0.2)


def test_counters_start_at_zero(launch):
    """Or the first increase would be seen by nobody's rate()."""
    with launch("--codecs", "1") as service:
        metrics = service.metrics()
        for name, found in (("requests_rejected", ("bad-parameter", "queue-full", "input-output")),
                            ("jobs_failed", ("undecodable", "input-output", "client-gone"))):
            for reason in found:
                assert metrics.samples(f"convolved_{name}_total", reason=reason)[0][1] == 0
        for device in service.get("/v1/devices").json()["devices"]:
            for name in ("convolved_tiles_total", "convolved_verified_samples_total",
                         "convolved_transfer_bytes_total"):
                assert metrics.samples(name, device=device["id"]), name


def test_transfers(fresh):
    """A device with memory of its own has a transfer each way for a tile; one that shares the
    host's has none."""
    fresh.post("/v1/filters/box", PNG)
    kinds = {device["type"] for device in fresh.get("/v1/devices").json()["devices"]}
    metrics = fresh.metrics()
    for direction in ("upload", "download"):
        count = metrics.total("convolved_transfer_duration_seconds_count", direction=direction)
        moved = metrics.total("convolved_transfer_bytes_total", direction=direction)
        if kinds == {"cpu"}:
            assert count == moved == 0
        else:
            assert count >= 1 and moved >= IMAGE.nbytes


def test_prometheus_agrees(fresh):
    """Prometheus' own reader finds nothing to complain of, where it is installed."""
    answer = fresh.get("/metrics")
    assert answer.type == "text/plain" and "version=0.0.4" in answer.headers["Content-Type"]
    promtool = shutil.which("promtool")
    if promtool:
        done = subprocess.run([promtool, "check", "metrics"], input=answer.body,
                              capture_output=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_kernels(fresh):
    fresh.post("/v1/chain?filters=gaussian=sigma=1.4,sobel", PNG)
    kernels = fresh.get("/v1/kernels").json()["kernels"]
    metrics = fresh.metrics()
    assert {"separable", "gradient"} <= {kernel["kernel"] for kernel in kernels}
    for k in kernels:
        assert k["count"] == metrics.total("convolved_kernel_duration_seconds_count",
                                           kernel=k["kernel"], device=k["device"])
        assert (0 <= k["min_seconds"] <= k["p50_seconds"] <= k["p90_seconds"] <= k["p99_seconds"] <= k["max_seconds"]
                <= k["total_seconds"] * (1 + 1e-9)), k
        assert k["count"] * k["min_seconds"] <= k["total_seconds"] * (1 + 1e-9), k
        assert k["bytes"] > 0 and math.isclose(k["bytes_per_second"], k["bytes"] / k["total_seconds"],
                                               rel_tol=0.01)


def test_devices(fresh):
    before = fresh.get("/v1/devices").json()["devices"]
    fresh.post("/v1/filters/box", PNG)
    assert len(before) >= 1
    for device in before:
        assert device["name"] and device["type"] in ("cpu", "gpu", "accelerator")
        assert device["state"] == "up"

    def counted():
        after = fresh.get("/v1/devices").json()["devices"]
        assert len(after) == len(before)
        return sum(d["tiles_done"] for d in after) > sum(d["tiles_done"] for d in before)
    poll(counted, 10, "the tiles of the image")


def test_filters(fresh):
    filters = fresh.get("/v1/filters").json()["filters"]
    assert {"gaussian", "box", "convolve", "sobel"} <= {f["name"] for f in filters}
    for one in filters:
        assert one["text"]
        assert fresh.get(f"/v1/filters/{one['name']}").json() == one
        for parameter in one["parameters"]:
            assert {"name", "type", "default", "text"} <= set(parameter)
    by_name = {(f["name"], p["name"]): p for f in filters for p in f["parameters"]}
    sigma = by_name["gaussian", "sigma"]
    assert (sigma["minimum"], sigma["maximum"]) == (0.1, 100)
    assert (sigma["default"], sigma["unit"]) == (None, "pixels, or % of the shorter side")
    assert by_name["box", "size"]["default"] == 3
    assert "magnitude" in str(by_name["sobel", "output"])


def others(name, parameter):
    """Parameters that need another one beside them."""
    if name == "threshold" and parameter != "value":
        return {"method": "mean"}
    if name == "canny":
        return {"low": {"high": 6}, "high": {"low": 0}}.get(parameter, {})
    return {"convolve": {"kernel": "1"}, "lut": {"table": "0,1"}}.get(name, {})


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
                given = {p["name"]: value, **others(one["name"], p["name"])}
                answer = fresh.filter(IMAGE[:2, :2], [(one["name"], given)])
                assert answer.status == status, (one["name"], p["name"], value, answer)


def test_live_and_ready(fresh):
    assert fresh.get("/livez").status == 200
    assert fresh.get("/readyz").status == 200
    verbose = fresh.get("/readyz?verbose")
    assert verbose.status == 200 and len(verbose.body.splitlines()) >= 2
    for path in ("/livez", "/v1/filters", "/metrics"):
        answer = fresh.request("HEAD", path)
        assert answer.status == 200 and answer.body == b""


def test_restart_makes_no_programs_anew(launch):
    """The cache directory holds the programs built before: a second start is quick and equal."""
    with launch("--codecs", "1") as first:
        body = first.post("/v1/filters/gaussian?sigma=3&variant=general", PNG).body
    with launch("--codecs", "1") as second:
        assert second.post("/v1/filters/gaussian?sigma=3&variant=general", PNG).body == body
