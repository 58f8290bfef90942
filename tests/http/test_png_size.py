"""PNGs are no larger than OpenCV's by default, and from compression=6 on than Pillow's."""
import functools
import pathlib
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from fixtures import some
from imagefiles import read_pil, read_vips, write_png, written

PHOTOGRAPH = Image.open(pathlib.Path(__file__).resolve().parents[1] / "photograph.jpg")
PHOTOGRAPH.load()


def drawing(width, height):
    image = Image.new("RGB", (width, height), (250, 250, 250))
    draw = ImageDraw.Draw(image)
    for i in range(height // 14):
        draw.text((10 + i * 7 % 50, 14 * i), f"{i * 7919} lines of a text, of some length, number {i}" * 3, (30, 60, 20))
        draw.ellipse((i * 31 % width, i * 53 % height, i * 31 % width + 40, i * 53 % height + 30), outline=(200, 30, i % 3 * 90))
    return image


def by_pillow(pixels):
    return len(written(Image.fromarray(pixels), "PNG"))


def by_opencv(pixels):
    """Returns each row less the pixel to the left, and runs of bytes alone."""
    rows = np.diff(pixels, axis=1, prepend=np.zeros_like(pixels[:, :1])).reshape(len(pixels), -1)
    rows = np.insert(rows, 0, 1, axis=1)  # the filter's number
    deflate = zlib.compressobj(1, zlib.DEFLATED, 15, 8, zlib.Z_RLE)
    return len(deflate.compress(rows.tobytes()) + deflate.flush())


def nearly(pixels):
    return 1.05 * by_pillow(pixels)


def mixed():
    """Each block is filtered and deflated as is best for it."""
    noise = np.random.default_rng(1).integers(0, 256, (700, 1200, 3), np.uint8)
    return Image.fromarray(np.concatenate([drawing(1200, 900), PHOTOGRAPH.resize((1200, 900)), noise,
                                           np.zeros((900, 1200, 3), np.uint8)]))


GREY = PHOTOGRAPH.convert("L")
IMAGES = [PHOTOGRAPH.copy, GREY.copy, *(functools.partial(PHOTOGRAPH.resize, size) for size in ((200, 150), (1900, 1400))),
          lambda: PHOTOGRAPH.filter(ImageFilter.GaussianBlur(2)), lambda: PHOTOGRAPH.quantize(64).convert("RGB"),
          lambda: GREY.point(lambda v: v // 128 * 255), lambda: drawing(900, 700)]
SIX = {"compression": 6}
CASES = [*some((image, {}, by_opencv) for image in IMAGES), (GREY.copy, SIX, by_pillow),
         *(pytest.param(image, SIX, by_pillow, marks=pytest.mark.slow) for image in IMAGES),
         (mixed, {}, nearly),
         (lambda: drawing(1600, 1500), {}, nearly)]  # a sample tells less of one that repeats itself


@pytest.mark.parametrize("image, chosen, bound", CASES, ids=range(len(CASES)))
def test_size(service, image, chosen, bound):
    image = image()
    pixels = np.asarray(image)
    answer = service.identity(written(image, "PNG"), **chosen)
    assert np.array_equal(np.asarray(read_pil(answer.body)[1]), pixels)
    assert len(answer.body) <= bound(pixels)


def test_same_bytes(service):
    """They do not depend on how blocks share the processors."""
    body = written(mixed(), "PNG")
    with ThreadPoolExecutor(6) as together:
        assert len({answer.body for answer in together.map(service.identity, [body] * 6)}) == 1


@pytest.mark.parametrize("size", [(300, 200), pytest.param((1400, 1200), marks=pytest.mark.slow)])
def test_levels(service, size):
    """0 does not compress; higher levels make smaller files of the same pixels."""
    pixels = np.asarray(PHOTOGRAPH.resize(size))
    sizes = []
    for level in (0, 1, 6, 9):
        answer = service.identity(written(Image.fromarray(pixels), "PNG"), compression=level)
        assert np.array_equal(np.asarray(read_pil(answer.body)[1]), pixels)
        sizes.append(len(answer.body))
    assert sizes[0] > pixels.size and sizes == sorted(sizes, reverse=True), sizes


@pytest.mark.parametrize("shape, kind", [((1, 1, 3), "u1"), ((1, 900, 4), "u1"), ((900, 1, 1), "u2"), ((3, 5, 2), "u2"),
                                         ((3, 400000, 4), "u1"), ((400000, 3, 4), "u2")])
def test_shapes(service, shape, kind):
    pixels = np.random.default_rng(2).integers(0, 9, shape, kind)  # alpha is full
    pixels[..., -1] = np.iinfo(kind).max
    answer = service.identity(write_png(pixels))
    assert np.array_equal(read_vips(answer.body, ".png", kind, shape[2]), pixels)
