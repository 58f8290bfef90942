"""JPEG 2000: read, and files that ask for much."""
import pathlib
import subprocess
import tempfile

import numpy as np
import pytest

import imagefiles
from imagefiles import read_pil, write_pnm
from pixels import random_pixels, smooth
from service import tool

SIZ = b"\xff\x4f\xff\x51"


def written(pixels, **options):
    """By Pillow, which writes 8 bits."""
    return imagefiles.written(imagefiles.pil(pixels), "JPEG2000", **options)


def wide(pixels):
    """16 bits without loss, by libvips's own command."""
    with tempfile.TemporaryDirectory() as directory:
        before, after = pathlib.Path(directory, "in.pnm"), pathlib.Path(directory, "out.jp2")
        before.write_bytes(write_pnm(pixels))
        subprocess.run([tool("vips"), "jp2ksave", before, after, "--lossless"], check=True)
        return after.read_bytes()


def set_bytes(file, offset, new):
    """In the codestream's header."""
    at = file.index(SIZ) + offset
    return file[:at] + new + file[at + len(new):]


@pytest.mark.parametrize("bands", [1, 3, 4])
@pytest.mark.parametrize("options", [{}, {"tile_size": (64, 64)}, {"no_jp2": True}])
def test_read(service, bands, options):
    pixels = random_pixels(bands, 157, 91, bands, "u8", bands == 4)
    expected = pixels.copy()
    if bands == 4:
        expected[pixels[:, :, 3] == 0] = 0
    answer = service.identity(written(pixels, **options), format="raw")
    assert np.array_equal(answer.pixels, expected)
    assert "X-Pages" not in answer.headers and "X-Lost" not in answer.headers


def test_read_lossy(service):
    file = written(smooth(157, 91, 3), irreversible=True, quality_mode="dB", quality_layers=[45])
    answer = service.identity(file, format="raw")
    assert np.abs(answer.pixels.astype(int) - read_pil(file)[0]).max() <= 1
    answer = service.identity(file)
    assert answer.type == "image/jpeg"  # the first format that keeps the pixels
    assert service.identity(file, format="jp2").refused(400, "bad-parameter")["value"] == "jp2"


def test_large(service):
    """More than a tile of ours, and of the file's."""
    pixels = smooth(1500, 1100, 3)
    for options in ({}, {"tile_size": (512, 512)}):
        path = "/v1/filters/box?size=9&format=raw&variant=general&border=wrap"
        got = service.post(path, written(pixels, **options))
        assert got.body == service.post(path + "&raw=1500x1100x3:u8", pixels.tobytes()).body


def test_bits(service):
    """Of 16 bits, and of 12, whose full scale is that of 16."""
    pixels = random_pixels(2, 30, 20, 1, "u16")
    assert np.array_equal(service.identity(wide(pixels), format="raw").pixels, pixels)
    pixels = pixels >> 4
    file = wide(pixels + np.uint16(0x8000 - 0x800))  # samples are coded around the midpoint
    head = file.index(b"ihdr") + 14
    file = set_bytes(file[:head] + b"\x0b" + file[head + 1:], 42, b"\x0b")
    expected = np.rint(pixels * 65535.0 / 4095).astype(np.uint16)
    assert np.array_equal(service.identity(file, format="raw").pixels, expected)


def test_truncated(service):
    """Never half an image with the rest black."""
    pixels = random_pixels(7, 300, 200, 3, "u8")
    for options in ({}, {"tile_size": (64, 64)}):
        file = written(pixels, **options)
        for share in (0.01, 0.3, 0.7, 0.95):
            answer = service.identity(file[:int(len(file) * share)])
            assert answer.status in (415, 422), (options, share)


@pytest.mark.parametrize("change, status, slug, says", [
    ([(24, b"\0\0\0\1"), (28, b"\0\0\0\1")], 422, "too-complex", "14287 tiles or more; the limit is 10000"),
    ([(40, b"\x40\x00")], 422, "too-complex", "16384 components"),
    ([(8, b"\0\x01\0\0"), (12, b"\0\x01\0\0"), (24, b"\0\x01\0\0"), (28, b"\0\x01\0\0")], 422, "too-many-pixels", "65536"),
    ([(24, b"\0\0\0\0")], 422, "undecodable", ""),
    ([(42, b"\x1f")], 422, None, ""),
])
def test_asks_for_much(service, change, status, slug, says):
    file = written(random_pixels(1, 157, 91, 3, "u8"), no_jp2=True)
    for offset, new in change:
        file = set_bytes(file, offset, new)
    answer = service.identity(file)
    assert answer.status == status, answer
    assert slug in (None, answer.problem["type"].rpartition("/")[2]) and says in answer.problem["detail"]


def test_cut_anywhere(service):
    """No wrong byte of a header ends a worker."""
    for options in ({}, {"tile_size": (64, 64)}, {"no_jp2": True}):
        file = written(smooth(100, 80, 3), **options)
        for at in range(0, 260, 3):
            worse = file[:at] + bytes([file[at] ^ 0x91]) + file[at + 1:]
            assert service.identity(worse).status in (200, 415, 422)


def test_forbidden(launch):
    with launch("--codecs", "1", "--formats", "png") as service:
        detail = service.identity(written(smooth(20, 10, 3))).refused(415, "not-an-image")["detail"]
        assert "look like JPEG 2000, which this service does not read" in detail
