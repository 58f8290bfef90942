"""JPEG XL: read and written, and files that ask for much."""
import functools
import io
import struct

import numpy as np
import pytest
from PIL import Image

import oracle
from heif import box
from imagefiles import by_vips, pil, read_pil, read_vips, several, write_png, write_pnm, written
from pixels import random_pixels, smooth, visible
from previews import PROFILE

WAVES = smooth(157, 91, 3)
PNG = write_png(WAVES)


def lossless(pixels, more=""):
    return by_vips(write_png(pixels), ".png", f".jxl[lossless,effort=3{more}]")


def bare(file):
    """Returns the codestream, out of the boxes that newer libvips put it into."""
    stream, at = b"", 0
    while not file.startswith(b"\xff\x0a") and at < len(file):
        size, name = struct.unpack(">I4s", file[at:at + 8])
        size = size or len(file) - at
        stream += file[at + {b"jxlc": 8, b"jxlp": 12}.get(name, size):at + size]
        at += size
    return stream or file


still = functools.cache(lambda: bare(lossless(WAVES)))


def in_boxes(stream, *before):
    """Codestream in two parts, the first too short for any header."""
    return (b"\0\0\0\x0cJXL \r\n\x87\n" + box(b"ftyp", b"jxl \0\0\0\0jxl ") + b"".join(before) +
            box(b"jxlp", b"\0\0\0\0" + stream[:3]) + box(b"jxlp", b"\x80\0\0\1" + stream[3:]))


# Headers of codestreams, put together by hand from (value, number of bits) of each field.

SIZE = [(0x0aff, 16), (1, 1), (0, 5), (1, 3)]  # 8x8 pixels
EIGHT_BITS = [*SIZE, (0, 1), (0, 1), (0, 1), (0, 2), (1, 1)]  # and buffers of 16


def bits(*fields):
    value, at = 0, 0
    for field, count in fields:
        value |= field << at
        at += count
    return value.to_bytes(at // 8 + 33, "little")


def number(value):
    """U64() of 32 bits and more."""
    middle = [field for shift in range(12, 60, 8) for field in ((1, 1), (value >> shift & 255, 8))]
    return [(3, 2), (value & 4095, 12), *middle, (1, 1), (value >> 60, 4)]


def with_profile(size):
    return bits(*EIGHT_BITS, (0, 2), (1, 1), (0, 1), (1, 1), (0, 2), (0, 2), (1, 1), *number(size))


EXTENSION = bits(*EIGHT_BITS, (0, 2), (1, 1), (1, 1), (1, 2), (0, 4), *number(1 << 60), (0, 64000))
# One channel more, or nine, none an alpha of 8 bits, and their kind.
BLACK = bits(*EIGHT_BITS, (1, 2), (0, 1), (2, 2), (2, 4))
DEPTH = bits(*EIGHT_BITS, (1, 2), (0, 1), (1, 2))
NINE = bits(*EIGHT_BITS, (2, 2), (7, 4), (0, 1), (0, 2))
PREMULTIPLIED = bits(*EIGHT_BITS, (1, 2), (0, 1), (0, 2), (0, 3), (0, 2), (0, 2), (1, 1))
ANIMATED = bits(*SIZE, (0, 1), (1, 1), (0, 3), (0, 2), (1, 1), (0, 6), (0, 1))
TOO_LARGE = bits((0x0aff, 16), (0, 1), (3, 2), ((1 << 20) - 1, 30), (1, 3), (1, 1), (1, 1))


@pytest.mark.parametrize("kind", ["u8", "u16"])
@pytest.mark.parametrize("bands", [1, 2, 3, 4])
def test_both_ways(service, bands, kind):
    """Without loss, by libvips's own command and by ours."""
    pixels = random_pixels(bands, 157, 91, bands, kind, bands % 2 == 0)
    expected = visible(pixels, bands % 2 == 0)
    answer = service.identity(lossless(pixels), format="raw")
    assert np.array_equal(answer.pixels, expected)
    answer = service.identity(write_png(pixels), format="jxl", lossless=1)
    assert answer.type == "image/jxl" and not answer.lost
    assert np.array_equal(read_vips(answer.body, ".jxl", oracle.TYPES[kind], bands), expected)


def test_lossy(service):
    def coded(**options):
        return service.identity(PNG, format="jxl", **options)
    answer = coded()
    assert answer.lost == ["lossy"]  # colour images have all pixels, too
    read = read_vips(answer.body, ".jxl", np.uint8, 3)
    assert np.abs(read.astype(int) - WAVES).mean() < 3
    again = service.decoded(answer.body)
    assert np.abs(again.astype(int) - read).max() <= 1
    assert service.identity(answer.body).type == "image/jxl"
    assert coded(quality=90).body == answer.body == coded(subsample="off").body
    assert len(coded(quality=30).body) < len(answer.body)
    for options in ({"subsample": "on"}, {"compression": "1"}):
        coded(**options).refused(400, "bad-parameter")


def test_floats_become_16_bits(service):
    pixels = smooth(31, 20, 1, "f32")
    answer = service.identity(write_pnm(pixels), format="jxl", lossless=1)
    assert answer.lost == ["reduced"]
    expected = np.rint(pixels.astype(float).clip(0, 1) * 65535)
    assert np.abs(read_vips(answer.body, ".jxl", np.uint16, 1) - expected).max() <= 1


def test_in_boxes(service):
    """And with metadata: small and plain, or what only looks compressed."""
    exif = box(b"Exif", b"\0\0\0\0II*\0\x08\0\0\0\0\0\0\0\0\0")
    # The body is copied, or mapped.
    small, large = (box(b"brob", b"xml " + b"\xff" * size) for size in (100, 1 << 20))
    for boxes in ((), (exif, box(b"xml ", b"<x:xmpmeta/>")), (small,), (large, small)):
        answer = service.identity(in_boxes(still(), *boxes), format="raw")
        assert np.array_equal(answer.pixels, WAVES), boxes


def stored(content):
    """Returns a stream of Brotli (RFC 7932) of uncompressed blocks of at most 64 KiB."""
    stream = b""
    for at in range(0, len(content), 1 << 16):
        block = content[at:at + (1 << 16)]
        head = (len(block) - 1) << 3 | 1 << 19  # not the last, 4 nibbles of length, not compressed
        if not at:
            head <<= 1  # a bit comes first: windows of 64 KiB
        stream += head.to_bytes(3, "little") + block
    return stream + b"\3"


def packed(kind, content):
    return box(b"brob", kind + stored(content))


EXIF = b"\0\0\0\0II*\0\x08\0\0\0\1\0\x3b\1\2\0\x0b\0\0\0\x1a\0\0\0\0\0\0\0the artist\0"
LOOP = b"\0\0\0\0II*\0\x08\0\0\0\1\0\x69\x87\4\0\1\0\0\0\x08\0\0\0" + bytes(8)


def test_compressed_metadata(service):
    """A compressed box is treated as the plain one; damaged, long or repeated ones are removed."""
    def answered(*boxes):
        return service.identity(in_boxes(still(), *boxes), format="png").body
    without = answered()
    plain = answered(box(b"Exif", EXIF), box(b"xml ", b"<x:xmpmeta/>"))
    assert answered(packed(b"Exif", EXIF), packed(b"xml ", b"<x:xmpmeta/>")) == plain
    for boxes in ([packed(b"Exif", EXIF)] * 2, [packed(b"Exif", EXIF + bytes(1 << 20))],
                  [packed(b"jumb", EXIF)], [box(b"brob", b"Exif" + stored(EXIF)[:-2])],
                  [box(b"brob", b"Exi")], [box(b"brob", b"")]):
        assert answered(*boxes) == without, boxes
    for loop in (box(b"Exif", LOOP), packed(b"Exif", LOOP)):
        answer = service.identity(in_boxes(still(), loop))
        answer.refused(422, "too-complex", "64", "EXIF directories")
    if b"the artist" in plain:  # libvips reads it, and writes it compressed
        again = service.identity(plain, format="jxl", lossless=1).body
        assert b"the artist" in service.identity(again, format="png").body


def test_large(service):
    pixels = smooth(1500, 1100, 3)
    path = "/v1/filters/box?size=9&format=raw&variant=general&border=wrap"
    got = service.post(path, lossless(pixels))
    assert got.body == service.post(path + "&raw=1500x1100x3:u8", pixels.tobytes()).body


def test_profile(service):
    """It is kept both ways; that of another number of colours does not fail the answer."""
    p3 = by_vips(PNG, ".png", ".png[profile=p3]")
    file = service.identity(p3, format="jxl", lossless=1).body
    for png in (by_vips(file, ".jxl", ".png"), service.identity(file, format="png").body):
        assert "icc_profile" in read_pil(png)[1].info
    grey = written(pil(smooth(40, 30, 1)), "JPEG", icc_profile=PROFILE)
    assert service.identity(grey, format="jxl").type == "image/jxl"


def test_truncated(service):
    """Never half an image. (test_damaged.py has one that is written without boxes.)"""
    body = in_boxes(still())
    for share in (0.01, 0.3, 0.7, 0.95):
        assert service.identity(body[:int(len(body) * share)]).status in (415, 422), share
    for body in (ANIMATED, in_boxes(ANIMATED)):
        assert service.identity(body).status == 422


@pytest.mark.parametrize("body, slug, says", [
    (with_profile(1 << 28), "too-complex", "268435456 bytes of coded ICC profile or more"),
    (with_profile((1 << 63) + 7), "too-complex", "bytes of coded ICC profile or more"),
    (EXTENSION, "too-complex", "bytes of header"),
    (BLACK, "unsupported-pixels", "black ink"),
    (DEPTH, "unsupported-pixels", "neither colour nor alpha"),
    (NINE, "unsupported-pixels", "9 channels"),
    (PREMULTIPLIED, "unsupported-pixels", "multiplied by"),
    (TOO_LARGE, "too-many-pixels", "")])
def test_asks_for_much(service, body, slug, says):
    for file in (body, in_boxes(body)):
        service.identity(file).refused(422, slug, says)


def test_frames(service):
    """All and each, if the installed libvips knows of frames; else it writes a tall picture."""
    tall = smooth(40, 90, 3)
    file = lossless(tall, ",page-height=30")
    answer = service.identity(file, format="raw")
    delays = [40, 50, 60]
    webp = several(map(pil, np.split(tall, 3)), "WEBP", lossless=True, duration=delays, loop=3)
    if answer.kind[1] == 90:
        assert np.array_equal(answer.pixels, tall) and not answer.lost
        service.identity(webp, pages="all", format="jxl").refused(422, "unencodable")
        return
    assert np.array_equal(answer.pixels, tall[:30])
    assert answer.lost == ["first-frame"] and answer.headers["X-Pages"] == "3"
    for page, part in enumerate(np.split(tall, 3)):
        assert np.array_equal(service.decoded(file, page=page), part), page
    assert service.identity(file, pages="all", format="raw").body == tall.tobytes()
    animated = service.identity(webp, pages="all", format="jxl", lossless=1)
    assert animated.status == 200 and not animated.lost, animated
    back = service.identity(animated.body, pages="all", format="webp", lossless=1)
    picture = Image.open(io.BytesIO(back.body))
    assert picture.n_frames == 3 and picture.info["loop"] == 3
    for page, delay in enumerate(delays):
        picture.seek(page)
        assert np.array_equal(np.asarray(picture.convert("RGB")), tall[30 * page:30 * page + 30])
        assert picture.info["duration"] == delay
    path = "/v1/filters/box?size=9&border=wrap&pages=all&format=raw&variant=general"
    assert service.post(path, animated.body).body == service.post(path, webp).body
    service.identity(file, page=3).refused(400, "bad-parameter")
