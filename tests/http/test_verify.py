"""Results that the service checks, by verify=1 or on its own; both find a wrong kernel."""
import functools
import shutil

import numpy as np
import pytest

import imagefiles
import oracle
from jobs import begin, cancel
from pixels import random_pixels
from service import ONE_DEVICE, QUICK_COMPILER, REPOSITORY, TWO_DEVICES, poll

BLUR = [("gaussian", {"sigma": 1.3})]
CHAINS = [[("gaussian", {"sigma": 1.4}), ("sobel", {})],
          [("box", {"size": 5}), ("sharpen", {}), ("gaussian", {"sigma": 2.0})],
          [("sobel", {"output": "y"}), ("convolve", {"kernel": [[1], [2], [4]]}),
           ("laplacian", {"connectivity": 8}), ("box", {"size": 3})]]


def verdict(answer):
    """Returns (samples, largest difference, mismatches) as the answer's headers say."""
    assert answer.status == 200, answer
    return tuple(kind(answer.headers[f"X-Verify-{name}"]) for name, kind in
                 (("Samples", int), ("Max-Difference", float), ("Mismatches", int)))


def verified(service, pixels, filters, **options):
    """Filters with verify=1: every sample was compared, and none is wrong."""
    answer = service.filter(pixels, filters, verify=1, **options)
    samples, largest, mismatches = verdict(answer)
    assert mismatches == 0, (filters, options, answer.headers.items(), service.tail())
    assert samples == answer.pixels.size
    if len(filters) == 1 and pixels.dtype != np.float32 and not options.get("alpha"):
        assert largest <= 1
    return answer


def test_many_tiles(service):
    """Pieces, tiles and their seams; the answer is the same without verify. (In test_results.py all
    filters' results are checked, by windows of their tiles.)"""
    pixels = random_pixels(1, 2100, 1300, 3, "u8")
    for filters in CHAINS[:2]:
        answer = verified(service, pixels, filters, border="reflect101", variant="general")
        assert answer.body == service.filter(pixels, filters, border="reflect101",
                                             variant="general").body
    answer = verified(service, random_pixels(2, 700, 4001, 1, "u16"), [("box", {"size": 201})])
    assert "verify;dur=" in answer.headers["Server-Timing"]
    verified(service, random_pixels(3, 1, 1, 3, "u8"), [("gaussian", {"sigma": 3.0})])


@pytest.mark.parametrize("query, samples", [
    *((f"format={form}", 333 * 222 * 3) for form in ("png", "jpeg", "gif")),
    ("roi=50,40,90,60", 90 * 60 * 3), ("roi=50,40,90,60&target=7,70", 90 * 60 * 3)])
def test_what_is_compared(service, query, samples):
    """The filters' result, before the format changes it and wherever it is placed."""
    body = imagefiles.write_png(random_pixels(4, 333, 222, 3, "u8"))
    answer = service.post(f"/v1/filters/gaussian?sigma=2&verify=1&border=reflect&{query}", body)
    assert verdict(answer)[::2] == (samples, 0)


def test_counted(launch_one):
    with launch_one("--verify-share", "0") as service:
        pixels = random_pixels(6, 90, 70, 3, "u8")
        assert "X-Verify-Samples" not in service.filter(pixels, BLUR, verify=0).headers
        assert service.total("convolved_verified_samples_total") == 0
        verified(service, pixels, CHAINS[0])
        metrics = service.metrics()
        assert metrics.total("convolved_verified_samples_total", device="cpu0") == pixels.size
        (_, count), = metrics.samples("convolved_verify_mismatches_total", kernel="gradient")
        assert count == 0


@pytest.mark.parametrize("taps", [(), ("--verify-taps", "0")], ids=["all", "no budget"])
def test_samples_on_its_own(launch_one, taps):
    """A share of tiles, a window of each: of a share of 1 every tile, of a budget of 0 none."""
    pixels = random_pixels(7, 1100, 900, 3, "u8")
    with launch_one("--verify-share", "1", *taps) as service:
        answer = service.filter(pixels, CHAINS[0])
        assert not [name for name in answer.headers if name.startswith("X-Verify")]
        samples = service.total("convolved_verified_samples_total")
        assert samples < pixels.size and bool(samples) == (not taps)


@pytest.fixture(scope="module")
def wronged(launch, tmp_path_factory):
    """wronged(*options) starts a service by whose kernels, in some rows of the gradient, a work-item
    takes the pixel for its left neighbour."""
    directory = tmp_path_factory.mktemp("wrong") / "kernels"
    shutil.copytree(REPOSITORY / "kernels", directory)
    source = (directory / "general/gradient.cl").read_text()
    right = "pixel_load(p - bands, width)"
    assert source.count(right) == 1
    (directory / "general/gradient.cl").write_text(source.replace(
        right, "pixel_load(get_global_id(1) == 1 ? p : p - bands, width)"))
    return functools.partial(launch, "--kernel-dir", str(directory), environment=QUICK_COMPILER)


def wrong(service, **labels):
    return service.total("convolved_verify_mismatches_total", **labels)


def is_suspected(service):
    poll(lambda: service.total("convolved_device_suspected_total", reason="test"), 60,
         "a failed test tile")


def test_wrong_kernel_found(wronged):
    """A client that asks for verification gets no wrong result."""
    pixels = random_pixels(9, 230, 120, 3, "u8")
    with wronged("--verify-share", "0", "--job-timeout", "40") as service:
        right = oracle.filtered(pixels, [("sobel", {})]).value
        # The blur is right.
        assert verdict(service.filter(pixels, [("gaussian", {"sigma": 1})], verify=1))[2] == 0
        plain = service.filter(pixels, [("sobel", {})], variant="gradient")
        off = np.abs(plain.pixels - right)
        answer = service.filter(pixels, [("sobel", {})], verify=1, variant="gradient")
        mismatches = (off > 1).sum()
        if answer.status == 200:  # else the tile was to be run again, and its only device gone
            assert verdict(answer) == (pixels.size, off.max(), mismatches)
            assert np.array_equal(answer.pixels, right), "the reference has taken its place"
        else:
            answer.refused(503, "no-device")
        row, column, band = np.argwhere(off > 1)[0]
        service.says("is doubtful")
        line = next(text for text in service.tail().splitlines() if "is doubtful" in text)
        assert f"at {column},{row} band {band}: {plain.pixels[row, column, band]} " in line
        assert "tile 0 by cpu0 (gradient)" in line and f"{mismatches} of {pixels.size}" in line
        assert wrong(service, kernel="gradient", device="cpu0") == mismatches == wrong(service)
        # The device is wrong in pixels of the front's choice too: it is taken away, and as the kernel
        # stays wrong it does not come back.
        is_suspected(service)
        assert not service.total("convolved_device_suspected_total", reason="repetition")
        poll(lambda: service.total("convolved_worker_restarts_total", reason="probe"), what="ends")
        assert service.get("/readyz").status == 503
        state, = (d["state"] for d in service.get("/v1/devices").json()["devices"])
        assert state in ("quarantined", "probing")
        service.filter(pixels, [("gaussian", {"sigma": 1})]).refused(503, "no-device")


def test_wrong_kernel_found_on_its_own(wronged):
    """A chain of a right kernel and a wrong one names both."""
    pixels = random_pixels(10, 230, 120, 3, "u8")
    chain = [("gaussian", {"sigma": 1}), ("sobel", {})]
    with wronged("--verify-share", "1") as service:
        def found():
            answer = service.filter(pixels, chain, variant="gradient")
            assert answer.status == 200 or wrong(service), answer
            return wrong(service, kernel="gradient", device="cpu0")
        named = poll(found, 60, "a mismatch")
        assert wrong(service) == 2 * named
        service.says("is doubtful")
        is_suspected(service)


def thin_alpha(scale, least):
    """Alpha of floats around 0, of both signs."""
    pixels = random_pixels(14, 61, 43, 4, "f32")
    pixels[:, :, 3] = np.random.default_rng(15).uniform(least, 1, (43, 61)) * scale
    return pixels


HIGH_PASS = np.full((31, 31), -1.0)
HIGH_PASS[15, 15] = 961
# Elevations with holes, whose sums overflow.
LOWEST, ELEVATIONS = -np.finfo(np.float32).max, random_pixels(12, 61, 43, 1, "f32") * 100
HOLES = np.where(np.random.default_rng(13).random(ELEVATIONS.shape) < 0.3, LOWEST, ELEVATIONS)
HARD = [("nodata", HOLES, None), ("only nodata", np.full_like(HOLES, LOWEST), None),
        ("denormals", random_pixels(16, 61, 43, 3, "f32") * np.float32(1e-39), None),
        ("alpha of both signs", thin_alpha(1, -1), 1), ("alpha next to 0", thin_alpha(1e-38, 0), 1),
        ("alpha of all sizes", thin_alpha(1, 0) ** 40, 1),
        ("u16 alpha", random_pixels(17, 61, 43, 4, "u16", True), 1)]
HARD_FILTERS = [("sobel", {}), ("laplacian", {}), ("sharpen", {}), ("emboss", {}),
                ("unsharp", {"sigma": 2}), ("bilateral", {"radius": 2}), ("gaussian", {"sigma": 9}),
                ("gaussian", {"sigma": 1}), ("convolve", {"kernel": HIGH_PASS}),
                ("sobel", {"output": "direction"})]


def unharmed(service):
    """No device has been taken from the clients."""
    metrics = service.metrics()
    assert metrics.total("convolved_device_suspected_total") == 0, service.tail()
    assert metrics.total("convolved_worker_restarts_total", worker="device") == 0, service.tail()
    assert {d["state"] for d in service.get("/v1/devices").json()["devices"]} == {"up"}


@pytest.mark.parametrize("environment", [
    ONE_DEVICE, pytest.param(TWO_DEVICES, marks=pytest.mark.slow)], ids=["one device", "two"])
def test_hard_pixels(launch, environment):
    """No healthy device is quarantined; verify=1 gives the reference's results if need be."""
    with launch("--verify-share", "1", environment=environment) as service:
        for name, pixels, alpha in HARD:
            for one in HARD_FILTERS:
                for border in ("replicate", "wrap", "constant"):
                    answer = service.filter(pixels, [one], alpha=alpha, border=border)
                    assert answer.status == 200, (name, one[0], answer)
                answer = service.filter(pixels, [one], alpha=alpha, verify=1)
                assert verdict(answer)[0] == pixels.size
                if verdict(answer)[2]:
                    wanted = service.filter(pixels, [one], alpha=alpha, variant="reference")
                    assert answer.body == wanted.body, (name, one[0])
            for chain in CHAINS:
                assert service.filter(pixels, chain, alpha=alpha, verify=1).status == 200
        metrics = service.metrics()
        assert metrics.total("convolved_verify_mismatches_total") > 0, "the test tests something"
        unharmed(service)


def test_hard_matrices(launch_one):
    """Sums of floats survive the largest gains that are accepted: no sample is wrong."""
    y, x = np.mgrid[0:16, 0:256]
    pixels = ((x * 5 + y * 3 + x * y % 8 * 4) % 256)[:, :, None]
    matrix = -np.ones((7, 3))
    matrix[3, 1] = 21
    with launch_one("--verify-share", "1") as service:
        for scale in (-2.2e-7, 3e-7, 1e-6, -7e-5, 1e9):
            one = ("convolve", {"kernel": matrix, "scale": scale})
            for kind, dtype in oracle.TYPES.items():
                image = (pixels * (257 if kind == "u16" else 1)).astype(dtype)
                assert service.filter(image, [one], verify=1).status == 200
        assert wrong(service) == 0
        unharmed(service)


def test_deadline_that_it_cannot_meet(launch_one):
    """429 before any work, where the second computation alone takes longer; without it there is time."""
    file = imagefiles.write_png(np.zeros((4096, 4096, 3), np.uint8))
    target = "/v1/filters/gaussian?sigma=90&format=png&deadline_ms=6000"
    with launch_one() as service:
        before = service.total("convolved_tiles_total")
        service.post(target + "&verify=1", file).refused(
            429, "deadline-too-short", "the computation on the CPU would take about ")
        assert service.total("convolved_tiles_total") == before
        poll(lambda: service.post(target.replace("90&", "2&"), file).status == 200, what="6 s that are enough")
        poll(lambda: service.total("convolved_jobs", state="running") == 0, 60, "no jobs")


def test_half_of_the_codec_workers(launch_one):
    """However many jobs with verify=1 there are, half of the codec workers are left to others."""
    file = imagefiles.write_png(np.zeros((8200, 8200, 1), np.uint8))
    target = "/v1/filters/bilateral?radius=16&verify=1"
    with launch_one("--codecs", "8") as service:
        jobs = [begin(service, target, file) for _ in range(7)]

        def count(state):
            return service.total("convolved_jobs", state=state)
        try:
            poll(lambda: count("running") >= 4, 60, "four jobs at a time")
            for _ in range(5):
                assert service.filter(random_pixels(1, 64, 64, 3, "u8"), BLUR).status == 200
            assert (count("running"), count("waiting")) == (4, 3)
        finally:
            cancel(service, jobs)
