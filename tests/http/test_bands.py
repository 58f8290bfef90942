"""Images of 5 and more bands: each is filtered as an image in grey."""
import pathlib
import subprocess
import tempfile

import numpy as np
import pytest

from imagefiles import read_vips, write_png, write_tiff
from pixels import random_pixels, smooth
from service import tool

TYPES = {"u8": np.uint8, "u16": np.uint16, "f32": np.float32}


def chain(text):
    """box=size=3,sobel, as the tests' own form of a chain."""
    links = (link.split("=", 1) for link in text.split(","))
    return [(link[0], dict(one.split("=") for one in link[1:])) for link in links]


def each(service, pixels, filters, **options):
    """Returns the result of every band by itself."""
    bands = [service.filter(pixels[:, :, b:b + 1], chain(filters), variant="general", **options) for b in range(pixels.shape[2])]
    return np.concatenate([one.pixels for one in bands], axis=2)


@pytest.mark.parametrize("kind, bands, filters, options", [
    ("u8", 5, "gaussian=sigma=2", {}),
    ("u16", 6, "bilateral=radius=3", {"border": "reflect101"}),
    ("f32", 7, "median=radius=2,sobel", {"border": "wrap"}),
    ("u8", 21, "box=size=7", {"border": "crop"}),
    ("u16", 8, "unsharp=sigma=1", {"border": "constant", "border_value": 9}),
    ("u8", 9, "erode=size=5", {"roi": "11,7,60,50"}),
    ("u8", 5, "gaussian=sigma=3", {"verify": 1}),
    ("u16", 5, "invert", {"regions": "10,10,30,20", "channels": "color"}),
])
def test_each_by_itself(service, kind, bands, filters, options):
    pixels = random_pixels(bands, 101, 67, bands, kind)
    expected = each(service, pixels, filters, **options)
    answer = service.filter(pixels, chain(filters), variant="general", **options)
    assert np.array_equal(answer.pixels, expected)
    assert "X-Lost" not in answer.headers


@pytest.mark.parametrize("kind", TYPES)
def test_tiff(service, kind):
    """Read, and written as the format that holds them."""
    pixels = random_pixels(1, 41, 31, 6, kind)
    answer = service.identity(write_tiff(pixels))
    assert answer.type == "image/tiff"
    assert np.array_equal(read_vips(answer.body, ".tif", TYPES[kind], 6), pixels)
    assert np.array_equal(service.identity(write_tiff(pixels, alpha=True), format="raw").pixels, pixels)


def test_large(service):
    """More than the slots hold, and at another place of the image."""
    pixels = smooth(700, 3000, 1).astype(np.uint16) * 200
    pixels = np.concatenate([np.roll(pixels, 37 * b, axis=0) for b in range(11)], axis=2)
    answer = service.filter(pixels, chain("box=size=31"), variant="general")
    assert np.array_equal(answer.pixels, each(service, pixels, "box=size=31"))
    moved = service.filter(pixels, chain("box=size=31"), variant="general", roi="100,200,300,400", target="5,9").pixels.copy()
    assert np.array_equal(moved[9:409, 5:305], service.filter(pixels, chain("box=size=31"), variant="general", roi="100,200,300,400").pixels)
    moved[9:409, 5:305] = pixels[9:409, 5:305]
    assert np.array_equal(moved, pixels)


def test_pages(service):
    """Planes of each page."""
    pages = [random_pixels(seed, 50, 40, 5, "u8") for seed in range(3)]
    with tempfile.TemporaryDirectory() as directory:
        raw, image, file = (pathlib.Path(directory, name) for name in ("in.raw", "in.v", "out.tif"))
        raw.write_bytes(b"".join(page.tobytes() for page in pages))
        subprocess.run([tool("vips"), "rawload", raw, image, "50", "120", "5"], check=True)
        subprocess.run([tool("vips"), "tiffsave", image, file, "--page-height", "40"], check=True)
        body = file.read_bytes()
    got = service.post("/v1/filters/gaussian?sigma=2&variant=general&format=raw&pages=all", body)
    assert got.headers["X-Pages"] == "3"
    assert got.body == b"".join(service.filter(page, chain("gaussian=sigma=2"), variant="general").body for page in pages)


@pytest.mark.parametrize("filters, options, parameter", [
    ("box", {"channels": "red"}, "channels"),
    ("box", {"channels": "luma"}, "channels"),
    ("box", {"channels": "alpha"}, "channels"),
    ("grayscale", {}, "filters"),
    ("linear=gain=1 2 3", {}, "gain"),
    ("box", {"border": "constant", "border_value": "1,2,3"}, "border_value"),
    ("box", {"alpha": 1}, "alpha"),
])
def test_what_needs_colours(service, filters, options, parameter):
    pixels = random_pixels(3, 20, 20, 6, "u8")
    assert service.filter(pixels, chain(filters), **options).refused(400, "bad-parameter")["parameter"] == parameter


def test_what_looks_at_all_first(service):
    pixels = random_pixels(3, 20, 20, 6, "u8")
    detail = service.filter(pixels, chain("equalize")).refused(422, "unsupported-pixels")["detail"]
    assert "6 bands" in detail


def test_other_formats(service):
    pixels = random_pixels(3, 20, 20, 5, "u8")
    detail = service.filter(pixels, chain("box"), format="png").refused(422, "unencodable")["detail"]
    assert "it can be written as tiff, raw" in detail
    service.identity(write_tiff(random_pixels(3, 9, 9, 22, "u8"))).refused(422, "unsupported-pixels")
    detail = service.filter(random_pixels(3, 9, 9, 22, "u8"), chain("box")).refused(400, "bad-parameter")["detail"]
    assert "1 to 21 bands" in detail
    assert service.identity(write_png(random_pixels(3, 9, 9, 3, "u8"))).status == 200
