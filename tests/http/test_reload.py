"""SIGHUP: the configuration is read again, and options change without a request noticing."""
import re
import time

from clients import Clients
from pixels import random_pixels
from reloads import devices, read_again, reload
from service import poll, request_head, sanitized

FILTERS = [("gaussian", {"size": 5})]
IMAGES = [random_pixels(seed, 120 + 40 * seed, 90, 3, "u8") for seed in range(3)]


def test_under_load(reloadable):
    """Limits, codec workers and devices come and go, and every request is answered rightly."""
    both = {"cpu0": "up", "cpu1": "up"}
    with reloadable("codecs=2\n") as service:
        poll(lambda: devices(service) == both, 120, "both devices")
        restarts = service.restarts()
        with Clients(service, IMAGES, FILTERS, 3) as load:
            load.more(20)
            for codecs in (4, 1, 3):
                log = reload(service, f"codecs={codecs}\nmax-jobs={50 + codecs}\n")
                assert "codecs: " in log and f"-> {codecs}" in log and "max-jobs: " in log
                poll(lambda: len(service.workers("codec")) == codecs, 60, "codec workers")
                load.more(20)
            for pattern, left in (("0:0", "cpu0"), ("0:1", "cpu1"), ("0:0", "cpu0")):
                log = reload(service, f"codecs=3\nmax-jobs=53\ndevice={pattern}\n")
                assert "device: " in log and f"-> {pattern}" in log
                poll(lambda: devices(service) == {left: "up"}, 120, f"{left} alone")
                poll(lambda: len(service.workers("device")) == 1, 60, "one device worker")
                load.more(20)
                families = service.metrics()
                assert families.total("convolved_device_up") == 1
                for family in ("convolved_device_state", "convolved_opencl_objects"):
                    assert {labels["device"] for labels, _ in families.samples(family)} == {left}
            reload(service, "codecs=2\nverify-share=1\ntile-timeout=20\ncanary-interval=1\n")
            poll(lambda: devices(service) == both, 120, "both devices again")
            load.more(40)
        assert not load.problems, load.problems[:3]
        assert load.done > 100
        assert service.restarts() == restarts, service.tail()
        assert service.total("convolved_tile_retries_total") == 0
        assert len(service.workers("codec")) == 2 and len(service.workers("device")) == 2


def test_new_device(reloadable):
    """A device that was never used gets a label of its own; the others keep theirs."""
    with reloadable("codecs=1\ndevice=0:1\n") as service:
        assert devices(service) == {"cpu0": "up"}
        reload(service, "codecs=1\ndevice=Portable *\n")  # platform's name
        poll(lambda: devices(service) == {"cpu0": "up", "cpu1": "up"}, 120, "both devices")
        reload(service, "codecs=1\ndevice=0:0\n")
        poll(lambda: devices(service) == {"cpu1": "up"}, 60, "the other device")
        assert service.filter(IMAGES[0], FILTERS).headers["X-Device"].startswith("cpu1 ")


def test_no_device_left(reloadable):
    """A pattern that fits nothing acts as at start: 503, until another fits."""
    with reloadable("codecs=1\n") as service:
        assert "no OpenCL device matches" in reload(service, "codecs=1\ndevice=gpu\n")
        poll(lambda: devices(service) == {}, 60, "no device")
        assert service.get("/readyz").status == 503
        answer = service.filter(IMAGES[0], FILTERS)
        answer.refused(503, "no-device")
        assert 2 <= int(answer.headers["Retry-After"]) <= 5  # the next search
        reload(service, "codecs=1\n")
        assert service.filter(IMAGES[0], FILTERS).status == 200  # waits for the device


def test_limits(reloadable):
    """A limit holds for the next request; one that has been admitted is not dropped for it."""
    pixels = IMAGES[0].tobytes()
    target = "/v1/filters/box?raw=120x90x3:u8&format=raw"
    with reloadable("codecs=1\n") as service:
        with service.socket() as connection:
            head = request_head(target, f"Content-Length: {len(pixels)}")
            connection.sendall(head + pixels[:100])
            poll(lambda: service.total("convolved_spool_memory_bytes") > 0, 60, "body")
            log = reload(service, "codecs=1\nmax-body=1000\nmax-memory=1M\nspool-size=10\n")
            assert "max-body: 256M -> 1000" in log
            service.post(target, pixels).refused(413, "body-too-large")
            connection.sendall(pixels[100:])
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        reload(service, "codecs=1\n")
        assert service.post(target, pixels).status == 200
        reload(service, "codecs=1\nmax-pixels=10\n")
        assert service.post(target, pixels).status == 422


def test_larger_bodies(reloadable):
    """Workers that have started before may write them."""
    large = random_pixels(0, 1000, 1000, 3, "u8")
    with reloadable("codecs=1\nmax-body=1M\n") as service:
        service.filter(large, FILTERS).refused(413, "body-too-large")
        for where in ("", "spool-size=0\n"):
            reload(service, f"codecs=1\nmax-body=4M\n{where}")
            assert service.filter(large, FILTERS).pixels.shape == large.shape


def test_idle_timeout(reloadable):
    with reloadable("codecs=1\nidle-timeout=300\n") as service:
        reload(service, "codecs=1\nidle-timeout=1\n")
        with service.socket(timeout=60) as connection:
            connection.sendall(b"GET / HT")
            assert connection.recv(100) == b""  # no answer to a head that has not come


def test_log_level(reloadable):
    """The level counts in this process at once, in workers when they start."""
    with reloadable("codecs=1\n") as service:
        assert "debug: " not in service.tail()
        reload(service, "codecs=2\nlog-level=debug\n")
        service.says("codec-1 is up")
        if not sanitized():  # which are not confined
            service.says("convolved-codec: debug: confined")
            assert service.log.read_text().count("convolved-codec: debug: confined") == 1


def test_invalid(reloadable):
    with reloadable("codecs=1\nmax-jobs=7\n") as service:
        for text, says in (("codecs=lots\n", "convolved.conf:2: codecs=lots"),  # test_config.py has more
                           ("max-body=1000\n[other]\n", "other"), ("[limits\n", "convolved.conf:2")):
            log = reload(service, text, "stays as it was")
            assert says in log and "->" not in log
            assert service.filter(IMAGES[0], FILTERS).status == 200
        service.file.unlink()
        read_again(service, "stays as it was")
        log = reload(service, "codecs=1\nmax-jobs=8\n")
        assert re.findall(r"(\S+): \S+ -> (\S+)", log) == [("max-jobs", "8")]


def test_metrics_say_how_it_went(reloadable):
    """1 and the time of a good one; 0, and the time stays, after a bad one."""
    def gauges(service):
        metrics = service.metrics()
        return (metrics.total("convolved_config_last_reload_successful"),
                metrics.total("convolved_config_last_reload_success_timestamp_seconds"))

    with reloadable("codecs=1\n") as service:
        good, first = gauges(service)
        assert good == 1 and abs(first - time.time()) < 120
        reload(service, "codecs=x\n", "stays as it was")
        assert gauges(service) == (0, first)
        reload(service, "codecs=1\nmax-jobs=9\n")
        good, last = gauges(service)
        assert good == 1 and last > first
        assert service.total("convolved_jobs_limit") == 9


def test_stay_as_they_are(reloadable):
    """Options that need a restart are named, with both values; flags stay nearer."""
    with reloadable("codecs=1\n", "--max-body", "2000") as service:
        log = reload(service, "codecs=1\narena-size=1M\nmax-jobs=9\nmax-body=10\n")
        assert re.search(r"arena-size stays 64M.*restart.*1M", log), log
        assert "max-jobs: 256 -> 9" in log and "max-body" not in log
        assert service.post("/v1/filters/box?raw=10x10x1:u8&format=raw", b"x" * 100).status == 200
        log = reload(service, "codecs=1\nmax-jobs=9\n")
        assert "arena-size" not in log and "->" not in log
