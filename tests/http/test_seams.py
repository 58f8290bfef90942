"""Nobody sees where an image is cut into tiles: whatever the size of arenas and the devices, the
bytes are the same by the same kernels (variant=general: others may take over)."""
import concurrent.futures

import numpy as np
import pytest

import oracle
import imagefiles
from pixels import random_pixels
from service import TWO_DEVICES


@pytest.fixture(scope="module", params=["256K", pytest.param("1M", marks=pytest.mark.slow)])
def small_arena(request, launch):
    with launch("--arena-size", request.param, "--codecs", "2") as service:
        yield service


CASES = [
    (501, 397, 3, "u8", False, [("gaussian", {"sigma": 3.0})], "replicate"),
    (499, 401, 4, "u8", True, [("gaussian", {"sigma": 1.4}), ("sobel", {})], "reflect"),
    (700, 350, 1, "u16", False, [("box", {"size": 15})], "wrap"),
    (333, 301, 2, "u16", True, [("convolve", {"kernel": np.arange(35).reshape(7, 5)})], "wrap"),
    (260, 310, 3, "f32", False, [("box", {"size": 5}), ("gaussian", {"sigma": 2.0})], "reflect101"),
    (401, 299, 1, "f32", False, [("sobel", {"output": "x"}), ("box", {"size": 7})], "constant"),
    (450, 333, 3, "u8", False, [("gaussian", {"sigma": 2.0}), ("sobel", {})], "crop"),
    (31, 2003, 3, "u8", False, [("gaussian", {"sigma": 8.0})], "reflect"),
    (40, 2003, 1, "u8", False, [("gaussian", {"sigma": 9.0})], "reflect"),
    (997, 41, 3, "u8", False, [("box", {"size": 9}), ("box", {"size": 9})], "reflect101"),
    # Strips that share a halo, as hardly one window fits.
    (401, 399, 3, "u8", False, [("gaussian", {"size": 61})], "wrap"),
    (402, 501, 2, "u16", True, [("box", {"size": 51}), ("sobel", {})], "reflect"),
    (353, 407, 1, "f32", False, [("erode", {"size": 71})], "constant"),
    (310, 330, 3, "u8", False, [("box", {"size": 61}), ("emboss", {})], "crop"),
    (120, 500, 7, "u8", False, [("box", {"size": 95})], "replicate"),
]


def test_arena_sizes(shared, small_arena):
    for width, height, bands, kind, alpha, filters, border in CASES:
        pixels = random_pixels(width, width, height, bands, kind, alpha)
        options = {"border": border, "alpha": 1 if alpha else None, "variant": "general"}
        whole, cut = (service.filter(pixels, filters, **options).pixels
                      for service in (shared, small_arena))
        assert np.array_equal(whole, cut), (width, height, kind, border)
        oracle.check(cut, oracle.filtered(pixels, filters, border, None, alpha))
    assert small_arena.restarts() == 0


TALL = [("gaussian", {"size": 101}), ("box", {"size": 101})]
COLUMNS = [
    (TALL, {"border": "replicate"}),
    pytest.param(TALL, {"border": "replicate", "roi": (103, 0, 2600, 400), "target": (7, 0)}, marks=pytest.mark.slow),
    pytest.param([("gaussian", {"sigma": 20.0}), ("box", {"size": 101})], {"border": "reflect101"},
                 marks=pytest.mark.slow),
    *(pytest.param(TALL, options, marks=pytest.mark.slow)
      for options in ({"border": "wrap"}, {"border": "reflect"}, {"border": "constant"}, {"border": "crop", "verify": 1},
                      {"border": "reflect101", "variant": "reference"})),
]


@pytest.mark.parametrize("filters, options", COLUMNS, ids=range(len(COLUMNS)))
def test_columns(service, filters, options):
    """Under tall windows a strip of rows is several tiles beside each other, fewer with crop."""
    wide = options["border"] == "crop" or "roi" in options
    pixels = random_pixels(5, 5200 if wide else 2600, 400, 2, "u8")
    before = service.total("convolved_tiles_total")
    answer = service.filter(pixels, filters, **{"variant": "general", **options})
    places = {name: options.get(name) for name in ("roi", "target")}
    oracle.check(answer.pixels, oracle.filtered(pixels, filters, options["border"], **places))
    if "variant" not in options:  # the reference needs no device
        assert service.total("convolved_tiles_total") - before >= 2


@pytest.mark.parametrize("border", ["wrap", "reflect"])
def test_pages_of_shared_strips(shared, small_arena, border):
    """A page's first strip takes the place of others that are still at work. (codec/round_trips.c:
    other files, and parts of them, through small arenas.)"""
    file = imagefiles.several(
        [imagefiles.pil(random_pixels(i, 401, 250, 3, "u8")) for i in range(3)], "TIFF")
    target = f"/v1/filters/box?size=61&pages=all&format=raw&verify=1&variant=general&border={border}"
    whole, cut = (service.post(target, file) for service in (shared, small_arena))
    assert whole.status == cut.status == 200 and whole.body == cut.body, (whole, cut)
    assert cut.headers["X-Verify-Mismatches"] == "0"


def tiles_done(service):
    return [device["tiles_done"] for device in service.get("/v1/devices").json()["devices"]]


def test_two_devices(launch, launch_one):
    """They share the tiles of a large image, and several images at once."""
    images = [random_pixels(4, 4001, 3001, 3, "u8"),
              *(random_pixels(i, 600 + i, 500, 3, "u8") for i in range(8))]
    filters = [("gaussian", {"sigma": 2.0}), ("sobel", {})]

    def ask(service, pixels):
        return service.filter(pixels, filters, variant="general").body

    with launch_one("--codecs", "2") as single:
        expected = [ask(single, pixels) for pixels in images]
    with launch(environment=TWO_DEVICES) as pair:
        assert len(pair.workers("device")) == 2
        before = tiles_done(pair)
        assert ask(pair, images[0]) == expected[0]
        worked = [after - begun for begun, after in zip(before, tiles_done(pair), strict=True)]
        assert min(worked) >= 1 and sum(worked) >= 4, f"tiles a device: {worked}"
        assert pair.total("convolved_device_up") == 2
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda pixels: ask(pair, pixels), images[1:])) == expected[1:]
        assert pair.restarts() == 0
