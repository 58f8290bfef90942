"""HEIC: read, and small files that ask for much."""
import pathlib
import subprocess
import tempfile

import numpy as np
import pytest

import heif
from heif import find, ispe
from imagefiles import read_vips, write_png
from pixels import smooth
from service import tool

WAVES = smooth(128, 64, 3)


def write_heic(pixels, *options):
    with tempfile.TemporaryDirectory() as directory:
        before, after = pathlib.Path(directory, "in.png"), pathlib.Path(directory, "out.heic")
        before.write_bytes(write_png(pixels))
        subprocess.run([tool("vips"), "heifsave", before, after, "--compression", "hevc", *options], check=True)
        return after.read_bytes()


@pytest.mark.parametrize("bands", [1, 3, 4])
def test_read(service, bands):
    """The pixels that libvips's own command reads; answers are in another format."""
    file = write_heic(smooth(157, 91, bands), "--Q", "90")
    expected = read_vips(file, ".heic", np.uint8, max(bands, 3)).copy()
    if bands == 4:
        expected[expected[:, :, 3] == 0] = 0
    answer = service.identity(file, format="raw")
    assert answer.pixels.shape == expected.shape
    assert np.abs(answer.pixels.astype(int) - expected)[:, :, :3].max() <= (bands == 4)
    assert service.identity(file).type == ("image/png" if bands == 4 else "image/jpeg")
    service.identity(file, format="heic").refused(400, "bad-parameter")


def test_truncated(service):
    file = write_heic(WAVES)
    for size in (20, 200, len(file) // 2, len(file) - 9):
        assert service.identity(file[:size]).status in (415, 422)


def coded(declared):
    """Returns a picture of 128x64 by its own headers."""
    file = write_heic(WAVES)
    size = int.from_bytes(find(file, b"mdat")[:4], "big") + 4
    return heif.heif([(b"hvc1", find(file, b"mdat")[:size],
                       [ispe(*declared), heif.box(b"hvcC", find(file, b"meta", b"iprp", b"ipco", b"hvcC"))])]
                     ).replace(b"avif\0\0\0\0avif", b"heic\0\0\0\0heic")


def test_by_hand(service):
    answer = service.identity(coded((128, 64)), format="raw")
    assert answer.status == 200 and np.abs(answer.pixels.astype(int) - WAVES).mean() < 6


def test_smaller_than_coded(service):
    file = write_heic(np.zeros((3000, 3000, 3), np.uint8))
    conf = find(file, b"meta", b"iprp", b"ipco", b"hvcC")
    size = int.from_bytes(find(file, b"mdat")[:4], "big") + 4
    body = heif.heif([(b"hvc1", find(file, b"mdat")[:size], [ispe(16, 16), heif.box(b"hvcC", conf)])]
                     ).replace(b"avif\0\0\0\0avif", b"heic\0\0\0\0heic")
    detail = service.identity(body).refused(422, "undecodable")["detail"]
    assert "a coded picture is larger than the image" in detail


def test_gain_map(service):
    """As phones add it: an auxiliary picture, of its own size and configuration, that is not shown."""
    def item(pixels):
        file = write_heic(pixels)
        size = int.from_bytes(find(file, b"mdat")[:4], "big") + 4
        return (b"hvc1", find(file, b"mdat")[:size],
                [ispe(pixels.shape[1], pixels.shape[0]),
                 heif.box(b"hvcC", find(file, b"meta", b"iprp", b"ipco", b"hvcC"))])
    tiles = [item(np.ascontiguousarray(WAVES[:, x:x + 64])) for x in (0, 64)]
    shape = b"\0\0\0\1" + (128).to_bytes(2, "big") + (64).to_bytes(2, "big")
    kind = heif.full(b"auxC", 0, b"urn:com:apple:photo:2020:aux:hdrgainmap\0")
    gain = item(np.full((2200, 2200, 3), 90, np.uint8))
    body = heif.heif([(b"grid", shape, [ispe(128, 64)]), *tiles, (*gain[:2], [*gain[2], kind])],
                     parts={1: (b"dimg", [2, 3]), 4: (b"auxl", [1])}).replace(
                         b"avif\0\0\0\0avif", b"heic\0\0\0\0heic")
    answer = service.identity(body, format="raw")
    assert answer.status == 200, answer
    assert answer.pixels.shape == WAVES.shape and np.abs(answer.pixels.astype(int) - WAVES).mean() < 8
