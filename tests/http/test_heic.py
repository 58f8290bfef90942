"""HEIC: read, and small files that ask for much."""
import numpy as np
import pytest

import heif
from heif import find, ispe
from imagefiles import by_vips, read_vips, write_png
from pixels import smooth

WAVES = smooth(128, 64, 3)


def write_heic(pixels, quality=50):
    return by_vips(write_png(pixels), ".png", f".heic[Q={quality}]")


def item(pixels, size=None, *properties):
    """Returns a coded picture as an item, which says that it has this size."""
    file, (height, width) = write_heic(pixels), pixels.shape[:2]
    data = find(file, b"mdat")
    configuration = heif.box(b"hvcC", find(file, b"meta", b"iprp", b"ipco", b"hvcC"))
    return (b"hvc1", data[:int.from_bytes(data[:4], "big") + 4],
            [ispe(*(size or (width, height))), configuration, *properties])


def heic(items, **options):
    return heif.heif(items, **options).replace(b"avif\0\0\0\0avif", b"heic\0\0\0\0heic")


def off(answer):
    """Returns how far the pixels are from the waves, on average."""
    assert answer.pixels.shape == WAVES.shape
    return np.abs(answer.pixels.astype(int) - WAVES).mean()


@pytest.mark.parametrize("bands", [1, 3, 4])
def test_read(service, bands):
    """The pixels that libvips's own command reads; answers are in another format."""
    file = write_heic(smooth(157, 91, bands), 90)
    expected = read_vips(file, ".heic", np.uint8, max(bands, 3)).copy()
    if bands == 4:
        expected[expected[:, :, 3] == 0] = 0
    answer = service.identity(file, format="raw")
    assert answer.pixels.shape == expected.shape
    assert np.abs(answer.pixels.astype(int) - expected)[:, :, :3].max() <= (bands == 4)
    assert service.identity(file).type == ("image/png" if bands == 4 else "image/jpeg")
    service.identity(file, format="heic").refused(400, "bad-parameter")


def test_smaller_than_coded(service):
    body = heic([item(np.zeros((3000, 3000, 3), np.uint8), (16, 16))])
    service.identity(body).refused(422, "undecodable", "a coded picture is larger than the image")


def test_gain_map(service):
    """As phones add it: an auxiliary picture, of its own size and configuration, is not shown."""
    tiles = [item(np.ascontiguousarray(WAVES[:, x:x + 64])) for x in (0, 64)]
    shape = b"\0\0\0\1" + (128).to_bytes(2, "big") + (64).to_bytes(2, "big")
    kind = heif.full(b"auxC", 0, b"urn:com:apple:photo:2020:aux:hdrgainmap\0")
    body = heic([(b"grid", shape, [ispe(128, 64)]), *tiles,
                 item(np.full((2200, 2200, 3), 90, np.uint8), None, kind)],
                parts={1: (b"dimg", [2, 3]), 4: (b"auxl", [1])})
    assert off(service.identity(body, format="raw")) < 8
