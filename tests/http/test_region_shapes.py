"""Regions: only there is the result written; elsewhere every bit stays."""
import fractions
import math

import numpy as np
import pytest

import oracle
from fixtures import some
from pixels import random_pixels, seed_of

BLUR = [("gaussian", {"sigma": 2})]
STAR = "150,1700 190,1800 100,1740 200,1740 110,1800"  # its edges cross: it has a hole, or none
SHAPES = ("10,20,50,33;ellipse:-20,100,81,60;90,2000,1,1;ellipse:30,1500,64,64;0,990,200,40;"
          f"polygon:{STAR};polygon-nonzero:{STAR.replace('17', '22').replace('18', '23')};"
          "polygon:-50,500 900,700 -50,600;polygon:20,1200 20,1200 180,1300 60,1350 20,1200")


def edges_of(numbers):
    """Returns a polygon's edges: the corners, and those after them."""
    corners = np.array([[int(n) for n in pair.split(",")] for pair in numbers.split(" ")])
    return np.stack([corners, np.roll(corners, -1, 0)], 1)


def turns_of(numbers, width, height):
    """Returns how often a polygon winds around each pixel's centre: along a row, it is another
    time at each edge on the way."""
    turns = np.zeros((height, width), int)
    for (x0, y0), (x1, y1) in edges_of(numbers):
        for row in range(max(min(y0, y1), 0), min(max(y0, y1), height)):
            # at x the edge is at the centre's height; the first centre is there or right of it
            x = fractions.Fraction(int((2 * row + 1 - 2 * y0) * (x1 - x0)), int(2 * (y1 - y0))) + int(x0)
            turns[row, min(max(math.ceil(x - fractions.Fraction(1, 2)), 0), width):] += 1 if y1 > y0 else -1
    return turns


def mask_of(shapes, width, height):
    """Returns the pixels whose centres lie in a shape."""
    y, x = np.mgrid[0:height, 0:width] + 0.5
    mask = np.zeros((height, width), bool)
    for shape in shapes.split(";"):
        name, _, numbers = shape.rpartition(":")
        if "polygon" in name:
            turns = turns_of(numbers, width, height)
            mask |= turns % 2 == 1 if name == "polygon" else turns != 0
            continue
        left, top, w, h = map(int, numbers.split(","))
        if name == "ellipse":
            mask |= ((x - left - w / 2) / w) ** 2 + ((y - top - h / 2) / h) ** 2 <= 0.25
        else:
            mask |= (x > left) & (x < left + w) & (y > top) & (y < top + h)
    return mask


def merged(mask, inside, outside):
    return np.where(mask[:, :, None], inside, outside)


@pytest.mark.parametrize("kind, bands, alpha, filters, more", some([
    ("u8", 3, False, BLUR, {}), ("u16", 2, True, [("pixelate", {"size": 9})], {}),
    ("f32", 4, True, BLUR + [("sobel", {})], {"border": "reflect"}),
    ("u8", 1, False, [("unsharp", {}), ("box", {"size": 31})], {"border": "wrap"}),
    ("u8", 3, False, [("gaussian", {"sigma": 20})], {"channels": "luma"}),
    ("u16", 3, False, BLUR, {"channels": "green"})]))
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


def wheel(corners, x, y, radius):
    """Returns a star with so many corners, half of them near its middle."""
    places = [(radius / (1 + i % 2 * 4), 2 * math.pi * i / corners) for i in range(corners)]
    return "polygon:" + " ".join(f"{round(x + r * math.cos(a))},{round(y + r * math.sin(a))}" for r, a in places)


def test_many_corners(service):
    """As many as a polygon may have, in as many of them as may be, and one corner more."""
    shapes = ";".join(wheel(64, 25 + i % 4 * 50, 20 + i // 4 * 30, 40) for i in range(16))
    pixels = random_pixels(5, 200, 130, 3, "u8")
    everywhere = service.filter(pixels, BLUR, variant="general").pixels
    got = service.filter(pixels, BLUR, variant="general", regions=shapes, verify=1).pixels
    assert np.array_equal(got, merged(mask_of(shapes, 200, 130), everywhere, pixels))
    for more in (wheel(65, 50, 50, 40), shapes + ";polygon:1,1 9,1 1,9"):
        service.filter(pixels, BLUR, regions=more).refused(400, "bad-parameter", parameter="regions")


@pytest.mark.parametrize("x, y", [(8, 8), (1, 14), (5, 11)])
def test_shared_edges(service, x, y):
    """Triangles around a point make a square: each pixel is in one of them, also on an edge."""
    border = [(0, 0), (7, 0), (16, 0), (16, 9), (16, 16), (3, 16), (0, 16), (0, 8)]
    pixels = np.zeros((18, 18, 1), np.uint8)
    pieces = [f"polygon:{x},{y} {a},{b} {c},{d}" for (a, b), (c, d) in zip(border, border[1:] + border[:1])]
    masks = [service.filter(pixels, [("invert", {})], regions=piece).pixels > 0 for piece in pieces]
    assert np.array_equal(sum(mask.astype(int) for mask in masks), np.pad(np.ones((16, 16, 1), int), ((0, 2), (0, 2), (0, 0))))
    for piece, mask in zip(pieces, masks):
        assert np.array_equal(mask[:, :, 0], mask_of(piece, 18, 18)), piece


def test_roi_and_target(service):
    """Regions are those of the image, also where only a part of it is filtered."""
    pixels = random_pixels(6, 120, 90, 3, "u8")
    shapes = "50,40,20,9;ellipse:60,50,90,30;polygon:30,90 45,40 70,75 100,20 110,90"
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


def outside(numbers, width, height):
    """Returns the distance of each pixel's centre from a polygon's edges, and half a pixel."""
    centre = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1) + 0.5
    distances = []
    for a, b in edges_of(numbers):
        along = np.clip((centre - a) @ (b - a) / max((b - a) @ (b - a), 1), 0, 1)
        distances.append(np.linalg.norm(centre - a - along[:, :, None] * (b - a), axis=-1))
    return np.min(distances, 0) + 0.5


@pytest.mark.parametrize("kind", oracle.TYPES)
@pytest.mark.parametrize("shape", ["polygon:30,14 44,50 8,27 52,27 16,50", "polygon-nonzero:30,14 44,50 8,27 52,27 16,50",
                                   "polygon:20,20 20,20 60,30 20,32", "polygon:-300000,10 1000000,39 -300000,41"])
def test_feather_of_polygon(service, shape, kind):
    full, off = oracle.FULL_SCALE[kind], 2e-6 if kind == "f32" else 1
    white, black = np.full((60, 100, 1), full, oracle.TYPES[kind]), [("convolve", {"kernel": [[0]]})]
    numbers = shape.partition(":")[2]
    share = np.clip(1 - outside(numbers, 100, 60) / 8, 0, 1)
    share[mask_of(shape, 100, 60)] = 1
    got = service.filter(white, black, regions=shape, feather=7, verify=1).pixels[:, :, 0]
    assert np.abs(got - full * (1 - share)).max() <= off
    assert 0 < share[~mask_of(shape, 100, 60)].max() < 1
    inverted = service.filter(white, black, regions=shape, feather=7, invert=1).pixels[:, :, 0]
    assert np.abs(inverted - full * share).max() <= off


def test_feather_of_a_square(service):
    """A polygon fades as the rectangle of the same pixels does, except beyond its corners."""
    white, black = np.full((60, 100, 1), 255, np.uint8), [("convolve", {"kernel": [[0]]})]
    square, rectangle = (service.filter(white, black, regions=regions, feather=9, variant="general").pixels
                         for regions in ("polygon:40,20 60,20 60,40 40,40", "40,20,20,20"))
    for part in (np.s_[20:40], np.s_[:, 40:60]):
        assert np.array_equal(square[part], rectangle[part])
    assert (square[:20, :40] <= rectangle[:20, :40]).all() and not np.array_equal(square, rectangle)


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
    ({"regions": "0,0,1,1", "roi": "2,2,1,1"}, "regions"), ({"regions": "polygon:0,0 3,0"}, "regions"),
    ({"regions": "polygon:0,0 1,1 3,3 2,2"}, "regions"), ({"regions": "polygon:5,0 9,0 9,9"}, "regions"),
    ({"regions": "polygon:0,0 2,0 0,2", "roi": "2,2,1,1"}, "regions")])
def test_refuses(service, parameters, name):
    answer = service.filter(np.zeros((4, 4, 1), np.uint8), [("box", {})], **parameters)
    answer.refused(400, "bad-parameter", parameter=name)
