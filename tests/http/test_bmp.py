"""Bitmaps: BMP files of every kind, and errors in some."""
import io
import struct

import numpy as np
import pytest
from PIL import Image

import imagefiles
from imagefiles import read_pil, write_png
from pixels import random_pixels, visible
from previews import PROFILE

RED, GREEN, BLUE, ALPHA = 0xFF0000, 0xFF00, 0xFF, 0xFF000000


def shows(service, body, expected, **options):
    """Asserts the pixels that the service finds in the file."""
    answer = service.identity(body, format="raw", **options)
    assert np.array_equal(answer.pixels, expected)


def as_pillow(body):
    return np.asarray(Image.open(io.BytesIO(body)).convert("RGB"))


def packed(indices, bits):
    """Returns rows of indices, from bottom to top, each filled to four bytes."""
    digits = np.unpackbits(indices[::-1, :, None].astype(np.uint8), axis=2)[:, :, 8 - bits:]
    rows = digits.reshape(len(indices), -1)
    return np.packbits(np.pad(rows, ((0, 0), (0, -rows.shape[1] % 32)))).tobytes()


def header(width, height, bits, compression=0, colours=0, size=40, masks=(), density=(0, 0),
           profile=b""):
    """BITMAPINFOHEADER, with masks after it, or BITMAPV4HEADER and the next, with them in it."""
    head = struct.pack("<IiiHHIIiiII", size, width, height, 1, bits, compression, 0, *density,
                       colours, 0)
    if size > 40:
        head += struct.pack("<4I", *masks).ljust(16, b"\0")
        head += (b"DEBM" if profile else b"BGRs") + bytes(48)
        if size == 124:
            head += struct.pack("<IIII", 4, 124, len(profile), 0)
        return head
    return head + b"".join(struct.pack("<I", mask) for mask in masks)


def bmp(head, pixels, palette=b"", tail=b""):
    head += tail + palette
    start = 14 + len(head)
    return struct.pack("<2sIII", b"BM", start + len(pixels), 0, start) + head + pixels


def entries(palette):
    return b"".join(bytes((*colour[::-1], 0)) for colour in palette.tolist())


def words(pixels, bits, masks):
    """Returns rows of pixels whose channels have these masks, and what remains of the channels."""
    height, width, bands = pixels.shape
    value, kept = np.zeros((height, width), np.uint64), np.zeros_like(pixels)
    for band, mask in zip(range(bands), masks):
        shift, most = (mask & -mask).bit_length() - 1, mask >> ((mask & -mask).bit_length() - 1)
        level = (pixels[:, :, band].astype(np.uint64) * most + 127) // 255
        value |= level << np.uint64(shift)
        kept[:, :, band] = (level * 255 + most // 2) // most
    rows = value.astype(f"<u{bits // 8}").view(np.uint8).reshape(height, -1)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
    return rows, kept


@pytest.mark.parametrize("bits, grey", [(1, False), (2, True), (4, False), (8, True), (8, False)])
def test_palette(service, bits, grey):
    """A palette of greys makes a grey image."""
    random = np.random.default_rng(bits)
    palette = random.integers(0, 256, (1 << bits, 3), np.uint8)
    if grey:
        palette[:] = palette[:, :1]
    indices = random.integers(0, 1 << bits, (19, 37))
    body = bmp(header(37, 19, bits), packed(indices, bits), entries(palette))
    shows(service, body, palette[indices][:, :, :1 if grey else 3])
    core = struct.pack("<IHHHH", 12, 37, 19, 1, bits)  # its entries have no fourth byte
    body = bmp(core, packed(indices, bits), palette[:, ::-1].tobytes())
    shows(service, body, palette[indices][:, :, :1 if grey else 3])


def test_short_palette(service):
    """Missing pixels are black."""
    palette = np.array([[10, 20, 30], [200, 100, 50], [0, 0, 0], [0, 0, 0], [0, 0, 0]], np.uint8)
    indices = np.arange(37 * 3).reshape(3, 37) % 5
    body = bmp(header(37, 3, 8, colours=2), packed(indices, 8), entries(palette[:2]))
    shows(service, body, palette[indices])


@pytest.mark.parametrize("bits, size, compression, masks, bands", [
    (16, 40, 0, (0x7C00, 0x3E0, 0x1F), 3), (16, 40, 3, (0xF800, 0x7E0, 0x1F), 3),
    (16, 108, 3, (0xF00, 0xF0, 0xF, 0xF000), 4), (32, 40, 0, (RED, GREEN, BLUE), 3),
    (32, 40, 3, (BLUE, GREEN, RED), 3), (32, 40, 6, (RED, GREEN, BLUE, ALPHA), 4),
    (32, 124, 3, (0x3FF00000, 0xFFC00, 0x3FF, 0xC0000000), 4)])
def test_masks(service, bits, size, compression, masks, bands):
    pixels = random_pixels(bits, 37, 19, bands, "u8", bands == 4)
    rows, expected = words(pixels, bits, masks)
    expected = visible(expected, bands == 4)
    for height, data in ((19, rows[::-1]), (-19, rows)):  # from the bottom, and from the top
        head = header(37, height, bits, compression, size=size, masks=masks if compression else ())
        shows(service, bmp(head, data.tobytes()), expected)


def test_24_bits(service):
    for width in (1, 2, 3, 4, 37):
        pixels = random_pixels(width, width, 19, 3, "u8")
        body = imagefiles.written(imagefiles.pil(pixels), "BMP")
        shows(service, body, pixels)
        core = struct.pack("<IHHHH", 12, width, 19, 1, 24)
        shows(service, bmp(core, body[54:]), pixels)
    shows(service, body, pixels[3:14, 5:25], roi="5,3,20,11")


def test_any_order_of_rows(service):
    """Rows that the border takes from the other side, and a part of the image twice."""
    pixels = random_pixels(7, 64, 300, 3, "u8")
    body = imagefiles.written(imagefiles.pil(pixels), "BMP")
    query = "/v1/filters/gaussian?sigma=4&border=wrap&format=raw"
    assert service.post(query, body).body == service.post(query, write_png(pixels)).body


PALETTE = np.random.default_rng(3).integers(0, 256, (16, 3), np.uint8)


def runs(bits, code, width=8, height=4):
    head = header(width, height, bits, 1 if bits == 8 else 2, colours=16)
    return bmp(head, bytes(code), entries(PALETTE))


# (bits, height, code, pixels)
RUNS = {
    # Equal ones, others, a line, moves within a row and over rows, places outside, an early end.
    "8": (8, 4, [3, 5, 2, 6, 0, 0,  # the lowest row: 5 5 5 6 6, then nothing
                 0, 3, 1, 2, 3, 0, 0, 2, 2, 0, 20, 9, 0, 0,  # 1 2 3 . . 9 9 9, the rest is outside
                 0, 2, 4, 1, 2, 7, 0, 1],  # a row above the next: 4 to the right, 7 7, the end
          [[0, 0, 0, 0, 7, 7, 0, 0], [0] * 8, [1, 2, 3, 0, 0, 9, 9, 9], [5, 5, 5, 6, 6, 0, 0, 0]]),
    "4": (4, 4, [5, 0x12, 0, 0, 0, 5, 0x34, 0x56, 0x70, 0, 3, 0xAA, 0, 0, 0, 2, 1, 1, 2, 0xBC,
                 0, 1], [[0, 11, 12, 0, 0, 0, 0, 0], [0] * 8, [3, 4, 5, 6, 7, 10, 10, 10],
                         [1, 2, 1, 2, 1, 0, 0, 0]]),
    # Not allowed, and read as Pillow reads them; moves lead down.
    "8 from the top": (8, -4, [3, 5, 0, 0, 8, 7, 0, 0, 0, 2, 4, 1, 2, 9, 0, 1],
                       [[5, 5, 5, 0, 0, 0, 0, 0], [7] * 8, [0] * 8, [0, 0, 0, 0, 9, 9, 0, 0]]),
    "4 from the top": (4, -4, [8, 0x12, 0, 0, 8, 0x34, 0, 0, 8, 0x56, 0, 0, 8, 0x78, 0, 1],
                       [[1, 2] * 4, [3, 4] * 4, [5, 6] * 4, [7, 8] * 4]),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs(service, name):
    bits, height, code, indices = RUNS[name]
    body, expected = runs(bits, code, height=height), PALETTE[indices]
    shows(service, body, expected)
    shows(service, body, expected[1:, 2:7], roi="2,1,5,3")


def test_forgotten_palette(service):
    """The file says that its pixels begin with the palette: as Pillow reads it."""
    indices = np.random.default_rng(2).integers(0, 16, (9, 11))
    body = bytearray(bmp(header(11, 9, 8, colours=16), packed(indices, 8), entries(PALETTE)))
    body[10:14] = struct.pack("<I", 54)
    assert np.array_equal(as_pillow(body), PALETTE[indices])
    shows(service, bytes(body), PALETTE[indices])


def test_large_runs(service):
    """More rows than a tile has, and more pixels than a run: as Pillow reads them."""
    random, code, rows = np.random.default_rng(5), [], []
    for _ in range(700):
        row = []
        while len(row) < 900:
            count, value = min(random.integers(1, 256), 900 - len(row)), random.integers(16)
            code += [count, value]
            row += [value] * count
        code += [0, 0]
        rows.append(row)
    body, expected = runs(8, code + [0, 1], 900, 700), PALETTE[rows[::-1]]
    assert np.array_equal(as_pillow(body), expected)
    shows(service, body, expected)


def has(file, density):
    info = read_pil(file)[1].info
    assert info["icc_profile"] == PROFILE and [round(float(dpi)) for dpi in info["dpi"]] == density


def test_beside_the_pixels(service):
    rows = random_pixels(1, 20, 10, 3, "u8").tobytes()
    head = header(20, 10, 24, size=124, masks=(0, 0, 0, 0), density=(10000, 20000), profile=PROFILE)
    for name in ("png", "tiff"):
        has(service.identity(bmp(head, rows, tail=PROFILE), format=name).body, [254, 508])


@pytest.mark.parametrize("bands, kind", [
    (1, "u8"), (2, "u8"), (3, "u8"), (4, "u8"), (3, "u16"), (1, "f32")])
def test_write(service, bands, kind):
    """Grey has a palette, colours 24 bits, or 32 with alpha; Pillow and the service read it."""
    alpha = bands in (2, 4)
    pixels = random_pixels(bands, 37, 2300 if kind == "u8" else 23, bands, kind, alpha)
    answer = service.filter(pixels, [("box", {"size": 1})], format="bmp", alpha=int(alpha))
    assert answer.status == 200 and answer.type == "image/bmp", answer
    assert answer.lost == ([] if kind == "u8" else ["reduced"])
    assert struct.unpack("<I", answer.body[2:6])[0] == len(answer.body)
    full = {"u8": 255, "u16": 65535, "f32": 1}[kind]
    expected = np.rint(np.clip(pixels.astype(float), 0, full) * 255 / full).astype(np.uint8)
    expected = visible(expected, alpha)
    shown, image = read_pil(answer.body)
    if bands == 2:  # such pixels a bitmap has in colour only
        expected = expected[:, :, (0, 0, 0, 1)]
    assert image.mode == ("L" if bands == 1 else "RGBA" if alpha else "RGB")
    assert np.array_equal(shown.reshape(expected.shape), expected)
    shows(service, answer.body, expected)


@pytest.mark.parametrize("name", ["PNG", "TIFF", "JPEG"])
def test_written_with_what_is_beside_the_pixels(service, name):
    """By all ways to metadata: our own readers, and libvips's."""
    image = imagefiles.pil(random_pixels(1, 20, 10, 3, "u8"))
    body = imagefiles.written(image, name, icc_profile=PROFILE, dpi=(254, 508))
    answer = service.identity(body, format="bmp")
    assert answer.body[-len(PROFILE):] == PROFILE and answer.body[14:18] == bytes((124, 0, 0, 0))
    assert service.identity(answer.body).body == answer.body  # in its own format
    has(service.identity(answer.body, format="png").body, [254, 508])


def test_grey_has_no_profile_for_colours(service):
    pixels = random_pixels(1, 20, 10, 1, "u8")
    grey = imagefiles.written(imagefiles.pil(pixels), "PNG", icc_profile=PROFILE)
    answer = service.identity(grey, format="bmp")
    assert PROFILE not in answer.body and np.array_equal(read_pil(answer.body)[0], pixels)


RGB = imagefiles.written(imagefiles.pil(random_pixels(1, 37, 19, 3, "u8")), "BMP")


@pytest.mark.parametrize("body, slug, says", [
    (RGB[:-1000], "undecodable", "it holds 1128 of the image's 2127 bytes of pixels"),
    (RGB[:40], "undecodable", "the file ends in its header"),
    (bmp(header(0, 9, 24), b""), "undecodable", "no pixels"),
    (bmp(header(9, 9, 24, 4), bytes(900)), "unsupported-pixels", "in compression 4"),
    (bmp(header(9, 9, 32, 3, masks=(5, 0, 0)), bytes(900)), "undecodable", "next to each other"),
    (bmp(header(2**31 - 1, 2**31 - 1, 32), bytes(900)), "too-many-pixels", "2147483647x2147483647"),
    (bmp(header(9, -2**31, 1), bytes(900)), "too-many-pixels", "9x2147483648"),
    (bmp(header(9000, 9000, 8, 1), b"\5\5"), "undecodable", "truncated"),
], ids=range(8))
def test_refused(service, body, slug, says):
    service.identity(body).refused(422, slug, says)


def test_cut_anywhere(service):
    """No cut, and no wrong byte of a header, ends a worker."""
    for file in (RGB, runs(8, [3, 5, 0, 3, 1, 2, 3, 0, 0, 2, 1, 1, 0, 1])):
        for at in range(4, min(len(file), 80), 3):
            wrong = [file[:at] + bytes([byte]) + file[at + 1:] for byte in (0, 0x80, 0xFF)]
            for body in (file[:at], *wrong):
                assert service.identity(body).status in (200, 415, 422)
