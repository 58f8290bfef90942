"""Cut and damaged files of all formats: an answer shows nothing of other pictures."""
import random

import numpy as np
import pytest

from imagefiles import by_vips, write_png
from pixels import random_pixels, smooth

KINDS = {
    "JPEG": ".jpg[Q=90]", "progressive JPEG": ".jpg[interlace]", "PNG": ".png", "interlaced PNG": ".png[interlace]",
    "WebP": ".webp", "lossless WebP": ".webp[lossless]", "TIFF": ".tif", "TIFF in tiles": ".tif[compression=deflate,tile]",
    "TIFF of LZW": ".tif[compression=lzw]", "TIFF of JPEG": ".tif[compression=jpeg]", "GIF": ".gif",
    "AVIF": ".avif[effort=0]", "HEIC": ".heic[compression=hevc,effort=0]", "JPEG XL": ".jxl[effort=3]",
    "Radiance": ".hdr", "PPM": ".ppm",
}
QUICK = ("JPEG", "PNG", "WebP", "TIFF in tiles", "HEIC")
BEFORE = [np.full((384, 512, 3), 255, np.uint8), random_pixels(7, 640, 480, 3, "u8")]


def written(pixels, kind):
    return by_vips(write_png(pixels), ".png", KINDS[kind])


def damaged(file, kind, count):
    """Cut, with bytes changed, and with parts of it gone."""
    chance = random.Random(kind)
    for i in range(count):
        at = chance.randrange(len(file) // 20, len(file))
        if i % 4 == 0:
            yield file[:at]
            continue
        body = bytearray(file)
        if i % 4 == 1:
            body[at:at + 64] = chance.randbytes(len(body[at:at + 64]))
        elif i % 4 == 2:
            body[at] ^= 1 << chance.randrange(8)
        else:
            body[at:at + 256] = bytes(len(body[at:at + 256]))
        yield bytes(body)


@pytest.mark.parametrize("kind", KINDS)
def test_cut_off(service, kind):
    """Never half an image with the rest gray."""
    file = written(random_pixels(3, 200, 150, 3, "u8"), kind)
    for share in (0.01, 0.05, 0.3, 0.6, 0.95, 0.99):
        for path in ("gaussian?sigma=2", "box?format=raw&border=wrap"):
            answer = service.post(f"/v1/filters/{path}", file[:int(len(file) * share)])
            known = share > 0.1 or answer.status == 422
            answer.refused(*(422, "undecodable") if known else (415, "not-an-image"))


@pytest.mark.parametrize("kind", KINDS)
def test_header(service, kind):
    """No cut of it, and no wrong byte in it, ends a worker."""
    file = written(smooth(64, 48, 3), kind)
    for at in range(1, 90, 4):
        for body in (file[:at], file[:at] + bytes([file[at] ^ 0x91]) + file[at + 1:]):
            assert service.identity(body).status in (200, 415, 422)


@pytest.fixture(scope="module")
def histories(launch):
    """Two services whose only worker has seen other pictures."""
    with launch("--codecs", "1") as first, launch("--codecs", "1") as second:
        yield first, second


@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in KINDS])
def test_same_after_other_pictures(histories, kind):
    file = written(smooth(512, 384, 3), kind)
    before = [written(pixels, kind) for pixels in BEFORE]
    for body in damaged(file, kind, 32 if kind == "HEIC" else 16):
        answers = []
        for service, picture in zip(histories, before):
            assert service.identity(picture, format="raw").status == 200
            answers.append(service.identity(body, format="raw"))
        first, second = (answer.body if answer.status == 200 else answer.problem["type"]
                         for answer in answers)
        assert first == second, (kind, [answer.status for answer in answers])


def test_missing_part_of_heic(histories):
    """A slice that ends early leaves the rest as memory was, and the library does not tell."""
    file = written(random_pixels(3, 512, 384, 3, "u8"), "HEIC")
    for at in (len(file) // 8, len(file) // 3, len(file) - 9000):
        body = file[:at] + b"\xff" * (len(file) - at)
        for service in histories:
            answer = service.identity(body, format="raw")
            answer.refused(422, "undecodable", "a part of the picture is missing")


def gif(width, *frames):
    """Pictures of one row, by codes: 8 clears the table, 9 ends the data, others are colours."""
    body = b"GIF89a" + bytes([width, 0, 1, 0, 0xf2, 0, 0]) + bytes(range(0, 240, 10))
    for codes in frames:
        bits = sum(code << 4 * at for at, code in enumerate(codes)).to_bytes((len(codes) + 1) // 2, "little")
        body += b"," + bytes([0, 0, 0, 0, width, 0, 1, 0, 0, 3]) + bytes([len(bits)] if bits else []) + bits + b"\0"
    return body + b";"


@pytest.mark.parametrize("codes, colours", [
    ((8, 1, 9), [1]), ((8, 1, 2, 8, 3, 9), [1, 2, 3]), ((8, 1, 2), [1, 2]),
    ((8, 1), None),  # the decoder loses a code that ends with the last byte
    ((8, 1, 2, 3), None), ((8, 1, 9), None), ((8, 9), None), ((8,), None), ((), None)])
def test_missing_part_of_gif(service, codes, colours):
    """Data that ends early leaves the rest black, and the decoder does not tell."""
    answer = service.identity(gif(len(colours or codes) or 1, codes), format="raw")
    if colours:
        assert answer.pixels[0, :, 0].tolist() == [30 * colour for colour in colours]
    else:
        answer.refused(422, "undecodable", "a part of the picture is missing in frame 0")


def test_missing_part_of_frame(service):
    """Frames after the one that is asked for may be damaged."""
    file = gif(2, (8, 1, 2, 9), (8, 1, 2, 9), (8, 1, 9), (8, 1, 2, 9))
    assert service.decoded(file, page=1)[0, :, 0].tolist() == [30, 60]
    for options in {"page": 2}, {"page": 3}, {"pages": "all"}:
        service.identity(file, **options).refused(422, "undecodable", "a part of the picture is missing in frame 2")
