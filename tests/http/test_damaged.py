"""Cut and damaged files of all formats: an answer shows nothing of other pictures."""
import pathlib
import random
import subprocess
import tempfile

import numpy as np
import pytest

from imagefiles import write_png, write_pnm
from pixels import random_pixels, smooth
from service import tool

KINDS = {
    "JPEG": ".jpg[Q=90]", "progressive JPEG": ".jpg[interlace]", "PNG": ".png", "interlaced PNG": ".png[interlace]",
    "WebP": ".webp", "lossless WebP": ".webp[lossless]", "TIFF": ".tif", "TIFF in tiles": ".tif[compression=deflate,tile]",
    "TIFF of LZW": ".tif[compression=lzw]", "TIFF of JPEG": ".tif[compression=jpeg]", "GIF": ".gif",
    "AVIF": ".avif[effort=0]", "HEIC": ".heic[compression=hevc,effort=0]", "JPEG XL": ".jxl[effort=3]",
    "Radiance": ".hdr",
}
BEFORE = [np.full((384, 512, 3), 255, np.uint8), random_pixels(7, 640, 480, 3, "u8")]


def written(pixels, kind):
    """Returns a file by libvips's own command."""
    with tempfile.TemporaryDirectory() as directory:
        source, target = pathlib.Path(directory, "in.png"), pathlib.Path(directory, "out")
        source.write_bytes(write_png(pixels))
        suffix, bracket, options = KINDS[kind].partition("[")
        subprocess.run([tool("vips"), "copy", source, f"{target}{suffix}{bracket}{options}"], check=True)
        return pathlib.Path(f"{target}{suffix}").read_bytes()


def damaged(file, kind, count=16):
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


def told(answer):
    """Returns all of a picture, or the kind of the problem."""
    return answer.body if answer.status == 200 else (answer.status, answer.problem["type"])


@pytest.fixture(scope="module")
def histories(launch):
    """Two services whose only worker has seen other pictures."""
    with launch("--codecs", "1") as first, launch("--codecs", "1") as second:
        yield first, second


@pytest.mark.parametrize("kind", KINDS)
def test_same_after_other_pictures(histories, kind):
    file = written(smooth(512, 384, 3), kind)
    before = [written(pixels, kind) for pixels in BEFORE]
    accepted = 0
    for body in damaged(file, kind, 32 if kind == "HEIC" else 16):
        answers = []
        for service, picture in zip(histories, before):
            assert service.identity(picture, format="raw").status == 200
            answers.append(service.identity(body, format="raw"))
        first, second = map(told, answers)
        assert first == second, (kind, [a.status for a in answers])
        accepted += answers[0].status == 200
    print(f"{kind}: {accepted} accepted")


def test_cut_rows_are_refused(histories):
    body = write_pnm(smooth(512, 384, 3))
    for size in (100, len(body) // 2, len(body) - 1):
        for service in histories:
            service.identity(body[:size], format="raw").refused(422, "undecodable")


def test_missing_part_of_heic(histories):
    """A slice that ends before the picture does leaves the rest as memory was: the library says nothing."""
    file = written(random_pixels(3, 512, 384, 3, "u8"), "HEIC")
    for at in (len(file) // 8, len(file) // 3, len(file) - 3000):
        body = file[:at] + b"\xff" * (len(file) - at)
        for service in histories:
            detail = service.identity(body, format="raw").refused(422, "undecodable")["detail"]
            assert "a part of the picture is missing" in detail
