"""Radiance HDR: read as floats, and the possible contents of its header."""
import numpy as np
import pytest

from pixels import random_pixels

WIDTH, HEIGHT = 37, 19


def shared(width=WIDTH, height=HEIGHT):
    """Returns pixels whose three samples share an exponent, and their values."""
    random = np.random.default_rng(7)
    pixels = random_pixels(3, width, height, 4, "u8")
    pixels[:, :, 3] = random.integers(118, 138, (height, width))
    pixels[0, 0, 3] = 0  # black, whatever the rest says
    values = np.ldexp((pixels[:, :, :3] + 0.5) / 256, pixels[:, :, 3:].astype(int) - 128)
    values[pixels[:, :, 3] == 0] = 0
    return pixels, values.astype(np.float32)


def literal(line):
    return b"".join(bytes((len(line[at:at + 128]),)) + line[at:at + 128] for at in range(0, len(line), 128))


def hdr(pixels, size=None, form="32-bit_rle_rgbe", first="#?RADIANCE", runs=True, more=""):
    height, width = pixels.shape[:2]
    head = f"{first}\n{more}FORMAT={form}\n\n{size or f'-Y {height} +X {width}'}\n".encode()
    if not runs:
        return head + pixels.tobytes()
    start = bytes((2, 2, width >> 8, width & 255))
    return head + b"".join(start + b"".join(literal(row[:, band].tobytes()) for band in range(4)) for row in pixels)


@pytest.mark.parametrize("options", [{}, {"runs": False}, {"first": "#?RGBE"},
                                     {"more": "EXPOSURE=2\nVIEW= -vtv\nPRIMARIES= 0 0 0 0 0 0 0 0\n"}])
def test_read(service, options):
    pixels, values = shared()
    answer = service.identity(hdr(pixels, **options), format="raw")
    assert answer.kind == (WIDTH, HEIGHT, 3, "f32"), answer
    assert np.array_equal(answer.pixels, values)


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
    pixels, values = shared()
    answer = service.identity(hdr(pixels))
    assert answer.type == "image/tiff" and "X-Lost" not in answer.headers
    assert np.array_equal(service.identity(answer.body, format="raw").pixels, values)
    answer = service.identity(hdr(pixels), format="png")
    assert answer.headers["X-Lost"] == "reduced"
    white = np.clip(values, 0, 1) * 65535
    assert np.abs(service.identity(answer.body, format="raw").pixels.astype(float) - white).max() <= 1
    assert service.identity(hdr(pixels), format="hdr").refused(400, "bad-parameter")["value"] == "hdr"


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
    ({"size": "-Y 99999999999 +X 37"}, None, ""),
])
def test_refused(service, options, slug, says):
    answer = service.identity(hdr(shared()[0], **options))
    assert answer.status == 422, answer
    assert slug in (None, answer.problem["type"].rpartition("/")[2])
    assert says in answer.problem["detail"]


def test_cut_anywhere(service):
    body = hdr(shared()[0])
    for at in (11, 30, 40, 45, 60, 500, len(body) - 1):
        assert service.identity(body[:at]).status in (415, 422)
    for at in range(0, len(body), 41):
        worse = body[:at] + bytes([body[at] ^ 0x85]) + body[at + 1:]
        assert service.identity(worse).status in (200, 415, 422)
