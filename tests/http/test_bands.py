"""Images of 5 and more bands: each is filtered as an image in grey."""
import numpy as np
import pytest

import oracle
from imagefiles import by_vips, read_vips, write_tiff
from pixels import random_pixels, smooth

BOX = [("box", {})]


def filtered(service, pixels, filters, **options):
    answer = service.filter(pixels, filters, variant="general", **options)
    assert "X-Lost" not in answer.headers
    return answer.pixels


def each(service, pixels, filters, **options):
    """Returns the result of every band by itself."""
    return np.concatenate([filtered(service, pixels[:, :, b:b + 1], filters, **options)
                           for b in range(pixels.shape[2])], axis=2)


@pytest.mark.parametrize("kind, bands, filters, options", [
    ("u8", 5, [("gaussian", {"sigma": 2})], {}),
    ("u16", 6, [("bilateral", {"radius": 3})], {"border": "reflect101"}),
    ("f32", 7, [("median", {"radius": 2}), ("sobel", {})], {"border": "wrap"}),
    ("u8", 21, [("box", {"size": 7})], {"border": "crop"}),
    ("u16", 8, [("unsharp", {"sigma": 1})], {"border": "constant", "border_value": 9}),
    ("u8", 9, [("erode", {"size": 5})], {"roi": "11,7,60,50"}),
    ("u8", 5, [("gaussian", {"sigma": 3})], {"verify": 1}),
    ("u16", 5, [("invert", {})], {"regions": "10,10,30,20", "channels": "color"}),
], ids=str)
def test_each_by_itself(service, kind, bands, filters, options):
    pixels = random_pixels(bands, 101, 67, bands, kind)
    assert np.array_equal(filtered(service, pixels, filters, **options),
                          each(service, pixels, filters, **options))


@pytest.mark.parametrize("kind", oracle.TYPES)
def test_tiff(service, kind):
    pixels = random_pixels(1, 41, 31, 6, kind)
    answer = service.identity(write_tiff(pixels))
    assert answer.type == "image/tiff"
    assert np.array_equal(read_vips(answer.body, ".tif", oracle.TYPES[kind], 6), pixels)
    answer = service.identity(write_tiff(pixels, alpha=True), format="raw")
    assert np.array_equal(answer.pixels, pixels)


def test_large(service):
    """More than the slots hold, and at another place of the image."""
    pixels = smooth(700, 3000, 1).astype(np.uint16) * 200
    pixels = np.concatenate([np.roll(pixels, 37 * b, axis=0) for b in range(11)], axis=2)
    box, part = [("box", {"size": 31})], {"roi": "100,200,300,400"}
    assert np.array_equal(filtered(service, pixels, box), each(service, pixels, box))
    expected = pixels.copy()
    expected[9:409, 5:305] = filtered(service, pixels, box, **part)
    assert np.array_equal(filtered(service, pixels, box, target="5,9", **part), expected)


def test_pages(service):
    pages = [random_pixels(seed, 50, 40, 5, "u8") for seed in range(3)]
    body = by_vips(write_tiff(np.vstack(pages)), ".tif", ".tif[page-height=40]")
    got = service.post("/v1/filters/box?size=5&variant=general&format=raw&pages=all", body)
    assert got.headers["X-Pages"] == "3"
    assert got.body == b"".join(filtered(service, page, [("box", {"size": 5})]).tobytes()
                                for page in pages)


@pytest.mark.parametrize("filters, options, parameter", [
    (BOX, {"channels": "red"}, "channels"), (BOX, {"channels": "luma"}, "channels"),
    (BOX, {"channels": "alpha"}, "channels"), ([("grayscale", {})], {}, "filters"),
    ([("linear", {"gain": "1,2,3"})], {}, "gain"), (BOX, {"alpha": 1}, "alpha"),
    (BOX, {"border": "constant", "border_value": "1,2,3"}, "border_value"),
], ids=str)
def test_what_needs_colours(service, filters, options, parameter):
    answer = service.filter(random_pixels(3, 20, 20, 6, "u8"), filters, **options)
    answer.refused(400, "bad-parameter", parameter=parameter)


def test_refused(service):
    five, many = (random_pixels(3, 20, 20, bands, "u8") for bands in (5, 22))
    service.filter(five, [("equalize", {})]).refused(422, "unsupported-pixels", "5 bands")
    service.filter(five, BOX, format="png").refused(
        422, "unencodable", "it can be written as tiff, raw")
    service.identity(write_tiff(many)).refused(
        422, "unsupported-pixels", "22 bands of 8-bit unsigned integers", "floats are supported")
    service.filter(many, BOX).refused(400, "bad-parameter", "1 to 21 bands")
