"""JPEG XL: read and written, and files that ask for much."""
import io
import pathlib
import struct
import subprocess
import tempfile

import numpy as np
import pytest
from PIL import Image

from heif import box
from imagefiles import pil, read_vips, write_png, write_pnm, written
from pixels import random_pixels, smooth
from service import tool

WAVES = smooth(157, 91, 3)
KINDS = {"u8": np.uint8, "u16": np.uint16}


def converted(body, suffix, *options):
    """By libvips's own command."""
    with tempfile.TemporaryDirectory() as directory:
        before, after = pathlib.Path(directory, "in" + suffix), pathlib.Path(directory, "out.jxl")
        before.write_bytes(body)
        subprocess.run([tool("vips"), "jxlsave", before, after, *options], check=True)
        return after.read_bytes()


def lossless(pixels):
    return converted(write_png(pixels), ".png", "--lossless", "--effort", "3")


def bare(file):
    """Returns the codestream, out of the boxes that newer libvips put it into."""
    stream, at = b"", 0
    while not file.startswith(b"\xff\x0a") and at < len(file):
        size, name = struct.unpack(">I4s", file[at:at + 8])
        size = size or len(file) - at
        stream += file[at + {b"jxlc": 8, b"jxlp": 12}.get(name, size):at + size]
        at += size
    return stream or file


STILL = bare(lossless(WAVES))


def in_boxes(stream, *before):
    """Codestream in two parts, the first too short for any header."""
    return (b"\0\0\0\x0cJXL \r\n\x87\n" + box(b"ftyp", b"jxl \0\0\0\0jxl ") + b"".join(before) +
            box(b"jxlp", b"\0\0\0\0" + stream[:3]) + box(b"jxlp", b"\x80\0\0\1" + stream[3:]))


class Bits:
    """The beginning of a codestream, put together by hand: 8x8 pixels, not all defaults."""

    def __init__(self, extra=False):
        self.bits = []
        for value, count in ((0x0aff, 16), (1, 1), (0, 5), (1, 3), (0, 1), (extra, 1)):
            self.add(value, count)

    def add(self, value, count):
        self.bits += [int(value) >> i & 1 for i in range(count)]
        return self

    def number(self, value):
        """U64() of 32 bits and more."""
        self.add(3, 2).add(value & 4095, 12)
        for shift in range(12, 60, 8):
            self.add(1, 1).add(value >> shift & 255, 8)
        return self.add(1, 1).add(value >> 60, 4)

    def bytes(self):
        return np.packbits(np.array(self.bits + [0] * 256, np.uint8), bitorder="little").tobytes()


def depth(bits):
    """8 bits, and buffers of 16."""
    return bits.add(0, 1).add(0, 2).add(1, 1)


def with_channels(count, kind):
    bits = depth(Bits())
    bits.add(1, 2) if count == 1 else bits.add(2, 2).add(count - 2, 4)
    bits.add(0, 1)  # not an alpha of 8 bits
    bits.add(kind, 2) if kind < 2 else bits.add(2, 2).add(kind - 2, 4)
    return bits.bytes()


def premultiplied():
    return depth(Bits()).add(1, 2).add(0, 1).add(0, 2).add(0, 3).add(0, 2).add(0, 2).add(1, 1).bytes()


def with_profile(size):
    return depth(Bits()).add(0, 2).add(1, 1).add(0, 1).add(1, 1).add(0, 2).add(0, 2).add(1, 1).number(size).bytes()


def with_extension(bits):
    return depth(Bits()).add(0, 2).add(1, 1).add(1, 1).add(1, 2).add(0, 4).number(bits).bytes() + bytes(8000)


ANIMATED = Bits(extra=True).add(0, 3).add(0, 2).add(1, 1).add(0, 6).add(0, 1).bytes()


@pytest.mark.parametrize("kind", ["u8", "u16"])
@pytest.mark.parametrize("bands", [1, 2, 3, 4])
def test_both_ways(service, bands, kind):
    """Without loss, by libvips's own command and by ours."""
    pixels = random_pixels(bands, 157, 91, bands, kind, bands % 2 == 0)
    expected = pixels.copy()
    if bands % 2 == 0:
        expected[pixels[:, :, -1] == 0] = 0
    answer = service.identity(lossless(pixels), format="raw")
    assert np.array_equal(answer.pixels, expected)
    answer = service.identity(write_png(pixels), format="jxl", lossless=1)
    assert answer.type == "image/jxl" and "X-Lost" not in answer.headers
    assert np.array_equal(read_vips(answer.body, ".jxl", KINDS[kind], bands), expected)


def test_lossy(service):
    answer = service.identity(write_png(WAVES), format="jxl")
    assert answer.headers["X-Lost"] == "lossy"  # colour images have all pixels, too
    read = read_vips(answer.body, ".jxl", np.uint8, 3)
    assert np.abs(read.astype(int) - WAVES).mean() < 3
    again = service.identity(answer.body, format="raw").pixels
    assert np.abs(again.astype(int) - read).max() <= 1
    assert service.identity(write_png(WAVES), format="jxl", quality=90).body == answer.body
    assert len(service.identity(write_png(WAVES), format="jxl", quality=30).body) < len(answer.body)
    assert service.identity(answer.body).type == "image/jxl"
    assert service.identity(write_png(WAVES), format="jxl", subsample="off").body == answer.body
    for name, value in (("subsample", "on"), ("compression", "1")):
        service.identity(write_png(WAVES), format="jxl", **{name: value}).refused(400, "bad-parameter")


def test_floats_become_16_bits(service):
    pixels = smooth(31, 20, 1, "f32")
    answer = service.identity(write_pnm(pixels), format="jxl", lossless=1)
    assert answer.headers["X-Lost"] == "reduced"
    expected = np.rint(pixels.astype(float).clip(0, 1) * 65535)
    assert np.abs(read_vips(answer.body, ".jxl", np.uint16, 1) - expected).max() <= 1


def test_in_boxes(service):
    """And with metadata: small and plain, compressed, and too much of it."""
    exif = box(b"Exif", b"\0\0\0\0II*\0\x08\0\0\0\0\0\0\0\0\0")
    packed, more = (box(b"brob", b"xml " + b"\xff" * size) for size in (100, 1 << 20))  # the body is copied, or mapped
    for boxes in ((), (exif, box(b"xml ", b"<x:xmpmeta/>")), (packed,), (more, packed)):
        answer = service.identity(in_boxes(STILL, *boxes), format="raw")
        assert np.array_equal(answer.pixels, WAVES), boxes
    loop = box(b"Exif", b"\0\0\0\0II*\0\x08\0\0\0" + b"\1\0\x69\x87\4\0\1\0\0\0\x08\0\0\0" + bytes(8))
    detail = service.identity(in_boxes(STILL, loop)).refused(422, "too-complex")["detail"]
    assert "64" in detail and "EXIF directories" in detail


def stored(content):
    """Returns a stream of Brotli (RFC 7932) that holds the bytes as they are, in blocks of at most
    64 KiB."""
    stream = b""
    for at in range(0, len(content), 1 << 16):
        block = content[at:at + (1 << 16)]
        head = (len(block) - 1) << 3 | 1 << 19  # not the last, 4 nibbles of length, not compressed
        stream += (head if at else head << 1).to_bytes(3, "little") + block  # at first a bit: windows of 64 KiB
    return stream + b"\3"


def packed(kind, content):
    return box(b"brob", kind + stored(content))


def exif_of(artist):
    text = artist.encode() + b"\0"
    return b"\0\0\0\0II*\0\x08\0\0\0\1\0\x3b\1\2\0" + struct.pack("<IIH", len(text), 26, 0) + bytes(2) + text


def test_compressed_metadata(service):
    """A compressed box is treated as the plain one; damaged, long or repeated ones are removed."""
    exif, xmp = exif_of("the artist"), b"<x:xmpmeta/>"
    packed_exif = packed(b"Exif", exif)

    def answered(*boxes):
        return service.identity(in_boxes(STILL, *boxes), format="png").body

    without = answered()
    assert answered(packed_exif, packed(b"xml ", xmp)) == answered(box(b"Exif", exif), box(b"xml ", xmp))
    for boxes in ((packed_exif, packed_exif), (packed(b"Exif", exif + bytes(1 << 20)),), (packed(b"jumb", exif),),
                  (box(b"brob", b"Exif" + stored(exif)[:-2]),), (box(b"brob", b"Exi"),), (box(b"brob", b""),)):
        assert answered(*boxes) == without, boxes
    loop = b"\0\0\0\0II*\0\x08\0\0\0" + b"\1\0\x69\x87\4\0\1\0\0\0\x08\0\0\0" + bytes(8)
    problem = service.identity(in_boxes(STILL, packed(b"Exif", loop))).refused(422, "too-complex")
    assert "EXIF directories" in problem["detail"]
    png = service.identity(in_boxes(STILL, box(b"Exif", exif)), format="png").body
    if b"the artist" in png:  # libvips reads it, and writes it compressed
        again = service.identity(png, format="jxl", lossless=1).body
        assert b"the artist" in service.identity(again, format="png").body


def test_large(service):
    pixels = smooth(1500, 1100, 3)
    path = "/v1/filters/box?size=9&format=raw&variant=general&border=wrap"
    got = service.post(path, lossless(pixels))
    assert got.body == service.post(path + "&raw=1500x1100x3:u8", pixels.tobytes()).body


def test_profile(service):
    """It is kept both ways; that of another number of colours is not, and does not fail the answer."""
    with tempfile.TemporaryDirectory() as directory:
        before, after = pathlib.Path(directory, "in.png"), pathlib.Path(directory, "out.png")
        before.write_bytes(write_png(WAVES))
        subprocess.run([tool("vips"), "icc_transform", before, after, "p3"], check=True)
        png = after.read_bytes()
    file = service.identity(png, format="jxl", lossless=1).body
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "x.jxl")
        path.write_bytes(file)
        fields = subprocess.run([tool("vipsheader"), "-a", path], check=True, capture_output=True).stdout
    assert b"icc-profile-data" in fields
    assert b"iCCP" in service.identity(file, format="png").body
    grey = written(pil(smooth(40, 30, 1)), "JPEG", icc_profile=Image.open(io.BytesIO(png)).info["icc_profile"])
    assert service.identity(grey, format="jxl").type == "image/jxl"


def test_truncated(service):
    """Never half an image."""
    for body in (STILL, in_boxes(STILL)):
        for share in (0.01, 0.3, 0.7, 0.95):
            assert service.identity(body[:int(len(body) * share)]).status in (415, 422), share


@pytest.mark.parametrize("body, slug, says", [
    (with_profile(1 << 28), "too-complex", "268435456 bytes of coded ICC profile or more"),
    (with_profile((1 << 63) + 7), "too-complex", "bytes of coded ICC profile or more"),
    (with_extension(1 << 60), "too-complex", "bytes of header"),
    (with_channels(1, 4), "unsupported-pixels", "black ink"),
    (with_channels(1, 1), "unsupported-pixels", "neither colour nor alpha"),
    (with_channels(9, 0), "unsupported-pixels", "9 channels"),
    (premultiplied(), "unsupported-pixels", "multiplied by"),
    (ANIMATED, None, ""),
])
def test_asks_for_much(service, body, slug, says):
    for file in (body, in_boxes(body)):
        answer = service.identity(file)
        assert answer.status == 422, answer
        assert slug in (None, answer.problem["type"].rpartition("/")[2])
        assert says in answer.problem["detail"]


def test_frames(service):
    """All of them and each, where the installed libvips knows of frames; where not, it has written one tall
    picture, and we refuse to."""
    tall = smooth(40, 90, 3)
    file = converted(write_png(tall), ".png", "--lossless", "--effort", "3", "--page-height", "30")
    answer = service.identity(file, format="raw")
    webp = written(pil(tall[:30]), "WEBP", save_all=True, append_images=[pil(tall[30:60]), pil(tall[60:])],
                   lossless=True, duration=[40, 50, 60], loop=3)
    if answer.kind[1] == 90:
        assert np.array_equal(answer.pixels, tall) and "X-Lost" not in answer.headers
        service.identity(webp, pages="all", format="jxl").refused(422, "unencodable")
        return
    assert np.array_equal(answer.pixels, tall[:30])
    assert answer.headers["X-Lost"] == "first-frame" and answer.headers["X-Pages"] == "3"
    for page in range(3):
        got = service.identity(file, page=page, format="raw").pixels
        assert np.array_equal(got, tall[30 * page:30 * page + 30]), page
    got = service.identity(file, pages="all", format="raw").body
    assert got == tall.tobytes()
    animated = service.identity(webp, pages="all", format="jxl", lossless=1)
    assert animated.status == 200 and "X-Lost" not in animated.headers, animated
    back = service.identity(animated.body, pages="all", format="webp", lossless=1)
    picture = Image.open(io.BytesIO(back.body))
    assert picture.n_frames == 3 and picture.info["loop"] == 3
    for page, delay in enumerate((40, 50, 60)):
        picture.seek(page)
        assert np.array_equal(np.asarray(picture.convert("RGB")), tall[30 * page:30 * page + 30])
        assert picture.info["duration"] == delay
    path = "/v1/filters/box?size=9&border=wrap&pages=all&format=raw&variant=general"
    assert service.post(path, animated.body).body == service.post(path, webp).body
    service.identity(file, page=3).refused(400, "bad-parameter")


def test_too_many_pixels(service):
    file = Bits()
    file.bits = []
    file.add(0x0aff, 16).add(0, 1).add(3, 2).add((1 << 20) - 1, 30).add(1, 3).add(1, 1).add(1, 1)
    answer = service.identity(file.bytes())
    assert answer.status == 422


def test_wrong_bytes(service):
    """None of a header ends a worker for good."""
    for at in range(0, 60, 2):
        worse = STILL[:at] + bytes([STILL[at] ^ 0x91]) + STILL[at + 1:]
        assert service.identity(worse).status in (200, 415, 422)
    assert np.array_equal(service.identity(STILL, format="raw").pixels, WAVES)


def test_forbidden(launch):
    with launch("--codecs", "1", "--formats", "png") as service:
        detail = service.identity(STILL).refused(415, "not-an-image")["detail"]
        assert "look like JPEG XL, which this service does not read" in detail
        service.identity(write_png(WAVES), format="jxl").refused(400, "bad-parameter")
