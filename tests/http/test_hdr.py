"""Radiance HDR: read as floats, and the possible contents of its header."""
import numpy as np
import pytest

from imagefiles import read_png
from pixels import random_pixels

WIDTH, HEIGHT = 37, 19
# Three samples share an exponent.
PIXELS = random_pixels(3, WIDTH, HEIGHT, 4, "u8")
PIXELS[:, :, 3] = 118 + PIXELS[:, :, 3] % 20
PIXELS[0, 0, 3] = 0  # black, whatever the rest says
VALUES = np.ldexp((PIXELS[:, :, :3] + 0.5) / 256, PIXELS[:, :, 3:].astype(int) - 128)
VALUES[0, 0] = 0


def hdr(size="-Y 19 +X 37", form="32-bit_rle_rgbe", first="#?RADIANCE", runs=True, more=""):
    head = f"{first}\n{more}FORMAT={form}\n\n{size}\n".encode()
    if not runs:
        return head + PIXELS.tobytes()
    return head + b"".join(bytes((2, 2, 0, WIDTH)) + b"".join(
        bytes((WIDTH,)) + row[:, band].tobytes() for band in range(4)) for row in PIXELS)


@pytest.mark.parametrize("options", [
    {}, {"runs": False}, {"first": "#?RGBE"},
    {"more": "EXPOSURE=2\nVIEW= -vtv\nPRIMARIES= 0 0 0 0 0 0 0 0\n"}])
def test_read(service, options):
    answer = service.identity(hdr(**options), format="raw")
    assert answer.kind == (WIDTH, HEIGHT, 3, "f32"), answer
    assert np.array_equal(answer.pixels, VALUES.astype(np.float32))


def test_runs(service):
    """An image of one value is read, in rows of more than a tile."""
    row = bytes((2, 2, 1000 >> 8, 1000 & 255))
    for value in (128, 64, 32, 129):
        row += b"".join(bytes((128 + count, value)) for count in [127] * 7 + [111])
    body = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 700 +X 1000\n" + row * 700
    answer = service.identity(body, format="raw")
    assert np.array_equal(answer.pixels, np.broadcast_to(
        np.float32([128.5, 64.5, 32.5]) / 128, (700, 1000, 3)))


def test_answers(service):
    """In the first format that holds floats; and never in this one."""
    answer = service.identity(hdr())
    assert answer.type == "image/tiff" and not answer.lost
    again = service.decoded(answer.body)
    assert np.array_equal(again, VALUES.astype(np.float32))
    answer = service.identity(hdr(), format="png")
    assert answer.lost == ["reduced"]
    assert np.abs(read_png(answer.body) - np.clip(VALUES, 0, 1) * 65535).max() <= 1
    service.identity(hdr(), format="hdr").refused(400, "bad-parameter", value="hdr")


@pytest.mark.parametrize("options, slug, says", [
    ({"form": "32-bit_rle_xyze"}, "unsupported-pixels", "FORMAT=32-bit_rle_rgbe"),
    ({"size": "+Y 19 +X 37"}, "unsupported-pixels", "-Y HEIGHT +X WIDTH"),
    ({"size": "+X 37 -Y 19"}, "unsupported-pixels", "-Y HEIGHT +X WIDTH"),
    ({"size": "-Y 19 -X 37"}, "unsupported-pixels", "-Y HEIGHT +X WIDTH"),
    ({"size": "19 37"}, "undecodable", "does not end with its size"),
    ({"size": "-Y 19 +X 37 more"}, "undecodable", "does not end with its size"),
    ({"size": "-Y 0 +X 37"}, "undecodable", ""),
    ({"more": "VIEW=" + "x" * 70000 + "\n"}, "undecodable", "within 65536 bytes"),
    ({"size": "-Y 900000 +X 900000"}, "too-many-pixels", "900000x900000"),
    ({"size": "-Y 99999999999 +X 37"}, "undecodable", "")])
def test_refused(service, options, slug, says):
    service.identity(hdr(**options)).refused(422, slug, says)
