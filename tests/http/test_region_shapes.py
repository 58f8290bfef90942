"""Regions: only there is the result written; elsewhere every bit stays."""
import numpy as np
import pytest

import oracle
from pixels import random_pixels, seed_of

BLUR = [("gaussian", {"sigma": 2})]
SHAPES = "10,20,50,33;ellipse:-20,100,81,60;90,2000,1,1;ellipse:30,1500,64,64;0,990,200,40"


def mask_of(shapes, width, height):
    """Returns the pixels whose centres lie in a shape."""
    y, x = np.mgrid[0:height, 0:width] + 0.5
    mask = np.zeros((height, width), bool)
    for shape in shapes.split(";"):
        name, _, numbers = shape.rpartition(":")
        left, top, w, h = map(int, numbers.split(","))
        if name == "ellipse":
            mask |= ((x - left - w / 2) / w) ** 2 + ((y - top - h / 2) / h) ** 2 <= 0.25
        else:
            mask |= (x > left) & (x < left + w) & (y > top) & (y < top + h)
    return mask


def merged(mask, inside, outside):
    return np.where(mask[:, :, None], inside, outside)


@pytest.mark.parametrize("kind, bands, alpha, filters, more", [
    ("u8", 3, False, BLUR, {}), ("u16", 2, True, [("pixelate", {"size": 9})], {}),
    ("f32", 4, True, BLUR + [("sobel", {})], {"border": "reflect"}),
    ("u8", 1, False, [("unsharp", {}), ("box", {"size": 31})], {"border": "wrap"}),
    ("u8", 3, False, [("gaussian", {"sigma": 20})], {"channels": "luma"}),
    ("u16", 3, False, BLUR, {"channels": "green"})])
def test_exact(service, kind, bands, alpha, filters, more):
    """The image has many tiles, and no shape touches most of them."""
    pixels = random_pixels(seed_of(kind, bands), 203, 2600, bands, kind, alpha)
    more["alpha"] = int(alpha)
    everywhere = service.filter(pixels, filters, variant="general", **more).pixels
    mask = mask_of(SHAPES, 203, 2600)
    for invert in (0, 1):
        answer = service.filter(pixels, filters, variant="general", regions=SHAPES, invert=invert,
                                verify=1, **more)
        assert answer.status == 200
        expected = merged(mask ^ bool(invert), everywhere, pixels)
        assert answer.pixels.tobytes() == expected.tobytes()
    assert not np.array_equal(everywhere, pixels)


def test_many(service):
    """As many shapes as there may be, and one more."""
    shapes = ";".join(f"{i % 16 * 12},{i // 16 * 7},{5 + i % 3},4" for i in range(256))
    pixels = random_pixels(5, 200, 130, 3, "u8")
    everywhere = service.filter(pixels, BLUR, variant="general").pixels
    got = service.filter(pixels, BLUR, variant="general", regions=shapes).pixels
    assert np.array_equal(got, merged(mask_of(shapes, 200, 130), everywhere, pixels))
    service.filter(pixels, BLUR, regions=shapes + ";1,1,1,1").refused(400, "bad-parameter")


def test_roi_and_target(service):
    """Regions are those of the image, also where only a part of it is filtered."""
    pixels = random_pixels(6, 120, 90, 3, "u8")
    shapes = "50,40,20,9;ellipse:60,50,90,30"
    mask, roi, part = mask_of(shapes, 120, 90), "40,30,50,45", np.s_[30:75, 40:90]

    def blurred(**options):
        return service.filter(pixels, BLUR, variant="general", **options).pixels

    expected = merged(mask[part], blurred(roi=roi), pixels[part])
    assert np.array_equal(blurred(roi=roi, regions=shapes), expected)
    whole = pixels.copy()
    whole[part] = expected
    assert np.array_equal(blurred(roi=roi, target="40,30", regions=shapes), whole)
    inner = np.s_[6:-6, 6:-6]
    assert np.array_equal(blurred(border="crop", regions=shapes),
                          merged(mask[inner], blurred(border="crop"), pixels[inner]))


@pytest.mark.parametrize("kind", oracle.TYPES)
def test_feather(service, kind):
    """From the result in a shape to the original, in even steps."""
    full = oracle.FULL_SCALE[kind]
    pixels = np.full((60, 100, 1), full, oracle.TYPES[kind])
    black = [("convolve", {"kernel": [[0]]})]
    got = service.filter(pixels, black, regions="40,20,20,20", feather=4, verify=1).pixels[:, :, 0]
    steps = np.rint if kind != "f32" else np.asarray
    ramp = steps(full * np.arange(6) / 5)
    assert np.abs(got[30, 59:65] - ramp).max() <= 1e-6 * full
    assert np.abs(got[20:14:-1, 50] - ramp).max() <= 1e-6 * full
    assert got[17, 63] == steps(full) and got[20, 40] == 0
    inverted = service.filter(pixels, black, regions="40,20,20,20", feather=4, invert=1).pixels
    assert np.abs(got + inverted[:, :, 0].astype(float) - full).max() <= 1
    got = service.filter(pixels, black, regions="ellipse:40,20,21,21", feather=4, verify=1).pixels
    assert np.abs(got[30, 60:66, 0] - ramp).max() <= 1e-6 * full
    assert got[23, 42, 0] not in (0, full)


def test_feather_weighs_by_alpha(service):
    """A transparent result does not darken the pixels that it fades into."""
    pixels = np.full((20, 40, 2), 200, np.uint8)
    pixels[:, 20:, 1] = 0
    got = service.filter(pixels, [("box", {"size": 21})], alpha=1, regions="0,0,20,20", feather=9,
                         verify=1).pixels
    assert (got[got[:, :, 1] > 0][:, 0] == 200).all()


@pytest.mark.parametrize("parameters, name", [
    ({"regions": "1,2,3"}, "regions"), ({"regions": "circle:1,2,3,4"}, "regions"),
    ({"regions": "ellipse:1,2,3,40000"}, "regions"), ({"regions": "1000001,2,3,4"}, "regions"),
    ({"regions": "4,0,3,4"}, "regions"), ({"regions": "-3,0,3,4"}, "regions"),
    ({"regions": "1,2,3,4.5"}, "regions"), ({"regions": "1,2,3,4", "feather": 1001}, "feather"),
    ({"regions": "1,2,3,4", "feather": "-1"}, "feather"), ({"feather": 3}, "regions"),
    ({"regions": "1,2,3,4", "invert": "yes"}, "invert"), ({"invert": 1}, "regions"),
    ({"regions": "0,0,1,1", "roi": "2,2,1,1"}, "regions")])
def test_refuses(service, parameters, name):
    answer = service.filter(np.zeros((4, 4, 1), np.uint8), [("box", {})], **parameters)
    answer.refused(400, "bad-parameter", parameter=name)
