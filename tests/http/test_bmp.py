"""Bitmaps: BMP files of every kind, and errors in some."""
import struct

import numpy as np
import pytest
from PIL import Image

import imagefiles
from imagefiles import read_pil, write_png
from pixels import random_pixels
from previews import PROFILE

RED, GREEN, BLUE, ALPHA = 0xFF0000, 0xFF00, 0xFF, 0xFF000000


def decoded(service, body, **options):
    answer = service.identity(body, format="raw", **options)
    assert answer.status == 200, answer
    return answer.pixels


def packed(indices, bits):
    """Returns rows of indices, from bottom to top, each filled to four bytes."""
    rows = b""
    for row in indices[::-1]:
        text = "".join(f"{index:0{bits}b}" for index in row)
        text += "0" * (-len(text) % 32)
        rows += int(text, 2).to_bytes(len(text) // 8, "big")
    return rows


def header(width, height, bits, compression=0, colours=0, size=40, masks=(), density=(0, 0), profile=b""):
    """BITMAPINFOHEADER, with masks after it, or BITMAPV4HEADER and the next, with them in it."""
    head = struct.pack("<IiiHHIIiiII", size, width, height, 1, bits, compression, 0, *density, colours, 0)
    if size > 40:
        head += struct.pack("<4I", *masks).ljust(16, b"\0")
        head += (b"DEBM" if profile else b"BGRs") + bytes(48)
        if size == 124:
            head += struct.pack("<IIII", 4, 124, len(profile), 0)
        return head
    return head + b"".join(struct.pack("<I", mask) for mask in masks)


def bmp(head, pixels, palette=b"", tail=b""):
    start = 14 + len(head) + len(tail) + len(palette)
    return struct.pack("<2sIII", b"BM", start + len(pixels), 0, start) + head + tail + palette + pixels


def entries(palette):
    return b"".join(bytes((*colour[::-1], 0)) for colour in palette.tolist())


def words(pixels, bits, masks):
    """Returns rows of pixels whose channels have these masks; also the channels that remain of
    them."""
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


# Reading ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("grey", [False, True])
def test_palette(service, bits, grey):
    """A palette of greys makes a grey image."""
    random = np.random.default_rng(bits)
    palette = random.integers(0, 256, (1 << bits, 3), np.uint8)
    if grey:
        palette[:] = palette[:, :1]
    indices = random.integers(0, 1 << bits, (19, 37))
    body = bmp(header(37, 19, bits), packed(indices, bits), entries(palette))
    expected = palette[indices][:, :, :1] if grey else palette[indices]
    assert np.array_equal(decoded(service, body), expected)


def test_short_palette(service):
    """Missing pixels are black."""
    palette = np.array([[10, 20, 30], [200, 100, 50]], np.uint8)
    indices = np.arange(37 * 3).reshape(3, 37) % 5
    body = bmp(header(37, 3, 8, colours=2), packed(indices, 8), entries(palette))
    assert np.array_equal(decoded(service, body), np.vstack((palette, np.zeros((3, 3), np.uint8)))[indices])


@pytest.mark.parametrize("bits, size, compression, masks, bands", [
    (16, 40, 0, (0x7C00, 0x3E0, 0x1F), 3), (16, 40, 3, (0xF800, 0x7E0, 0x1F), 3),
    (16, 108, 3, (0xF00, 0xF0, 0xF, 0xF000), 4), (32, 40, 0, (RED, GREEN, BLUE), 3),
    (32, 40, 3, (BLUE, GREEN, RED), 3), (32, 40, 6, (RED, GREEN, BLUE, ALPHA), 4),
    (32, 124, 3, (0x3FF00000, 0xFFC00, 0x3FF, 0xC0000000), 4)])
def test_masks(service, bits, size, compression, masks, bands):
    pixels = random_pixels(bits, 37, 19, bands, "u8", bands == 4)
    rows, kept = words(pixels, bits, masks)
    head = header(37, 19, bits, compression, size=size, masks=masks if compression else ())
    expected = kept.copy()
    if bands == 4:
        expected[kept[:, :, 3] == 0] = 0
    assert np.array_equal(decoded(service, bmp(head, rows[::-1].tobytes())), expected)
    head = header(37, -19, bits, compression, size=size, masks=masks if compression else ())
    assert np.array_equal(decoded(service, bmp(head, rows.tobytes())), expected)


def test_24_bits(service):
    for width in (1, 2, 3, 4, 37):
        pixels = random_pixels(width, width, 19, 3, "u8")
        body = imagefiles.written(imagefiles.pil(pixels), "BMP")
        assert np.array_equal(decoded(service, body), pixels)
        core = struct.pack("<IHHHH", 12, width, 19, 1, 24)
        assert np.array_equal(decoded(service, bmp(core, body[54:])), pixels)
    assert np.array_equal(decoded(service, body, roi="5,3,20,11"), pixels[3:14, 5:25])


def test_any_order_of_rows(service):
    """Rows that the border takes from the other side, and a part of the image twice."""
    pixels = random_pixels(7, 64, 300, 3, "u8")
    body = imagefiles.written(imagefiles.pil(pixels), "BMP")
    query = "/v1/filters/gaussian?sigma=4&border=wrap&format=raw"
    assert np.array_equal(service.post(query, body).pixels, service.post(query, write_png(pixels)).pixels)


PALETTE = np.random.default_rng(3).integers(0, 256, (16, 3), np.uint8)


def runs(bits, code, width=8, height=4):
    return bmp(header(width, height, bits, 1 if bits == 8 else 2, colours=16), bytes(code), entries(PALETTE))


def test_runs_of_8(service):
    """Equal ones, others, a line, a move within a row and over rows, places outside, an early end."""
    code = [3, 5, 2, 6, 0, 0,  # the lowest row: 5 5 5 6 6, then nothing
            0, 3, 1, 2, 3, 0, 0, 2, 2, 0, 20, 9, 0, 0,  # 1 2 3 . . 9 9 9, the rest is outside
            0, 2, 4, 1, 2, 7, 0, 1]  # a row above the next: 4 to the right, 7 7, the end
    expected = np.array([[0, 0, 0, 0, 7, 7, 0, 0], [0] * 8,
                         [1, 2, 3, 0, 0, 9, 9, 9], [5, 5, 5, 6, 6, 0, 0, 0]])
    assert np.array_equal(decoded(service, runs(8, code)), PALETTE[expected])
    assert np.array_equal(decoded(service, runs(8, code), roi="2,1,5,3"), PALETTE[expected[1:, 2:7]])


def test_runs_of_4(service):
    code = [5, 0x12, 0, 0, 0, 5, 0x34, 0x56, 0x70, 0, 3, 0xAA, 0, 0, 0, 2, 1, 1, 2, 0xBC, 0, 1]
    expected = np.array([[0, 0xB, 0xC, 0, 0, 0, 0, 0], [0] * 8,
                         [3, 4, 5, 6, 7, 10, 10, 10], [1, 2, 1, 2, 1, 0, 0, 0]])
    assert np.array_equal(decoded(service, runs(4, code)), PALETTE[expected])


def test_runs_from_the_top(service):
    """Not allowed, and read as Pillow reads them; moves lead down."""
    code = [3, 5, 0, 0, 8, 7, 0, 0, 0, 2, 4, 1, 2, 9, 0, 1]
    body = runs(8, code, height=-4)
    expected = np.array([[5, 5, 5, 0, 0, 0, 0, 0], [7] * 8, [0] * 8, [0, 0, 0, 0, 9, 9, 0, 0]])
    assert np.array_equal(decoded(service, body), PALETTE[expected])
    assert np.array_equal(decoded(service, body, roi="2,1,5,3"), PALETTE[expected[1:, 2:7]])
    code = [8, 0x12, 0, 0, 8, 0x34, 0, 0, 8, 0x56, 0, 0, 8, 0x78, 0, 1]
    expected = np.array([[1, 2] * 4, [3, 4] * 4, [5, 6] * 4, [7, 8] * 4])
    body = runs(4, code, height=-4)
    assert np.array_equal(decoded(service, body), PALETTE[expected])
    assert np.array_equal(decoded(service, body), np.asarray(Image.open(imagefiles.io.BytesIO(body)).convert("RGB")))


def test_forgotten_palette(service):
    """The file says that its pixels begin with the palette: as Pillow reads it."""
    indices = np.random.default_rng(2).integers(0, 16, (9, 11))
    body = bytearray(bmp(header(11, 9, 8, colours=16), packed(indices, 8), entries(PALETTE)))
    body[10:14] = struct.pack("<I", 54)
    assert np.array_equal(decoded(service, bytes(body)), PALETTE[indices])
    assert np.array_equal(np.asarray(Image.open(imagefiles.io.BytesIO(body)).convert("RGB")), PALETTE[indices])


def test_large_runs(service):
    """More rows than a tile has, and more pixels than a run: as Pillow reads them."""
    random, code, expected = np.random.default_rng(5), [], []
    for _ in range(700):
        row = []
        while len(row) < 900:
            count, value = min(int(random.integers(1, 256)), 900 - len(row)), int(random.integers(16))
            code += [count, value]
            row += [value] * count
        code += [0, 0]
        expected.insert(0, row)
    body = runs(8, code + [0, 1], 900, 700)
    got = decoded(service, body)
    assert np.array_equal(got, PALETTE[np.array(expected)])
    assert np.array_equal(got, np.asarray(Image.open(imagefiles.io.BytesIO(body)).convert("RGB")))


def test_beside_the_pixels(service):
    pixels = random_pixels(1, 20, 10, 3, "u8")
    rows = np.ascontiguousarray(pixels[::-1, :, ::-1]).tobytes()
    head = header(20, 10, 24, size=124, masks=(0, 0, 0, 0), density=(3000, 6000), profile=PROFILE)
    for name in ("png", "tiff"):
        out = read_pil(service.identity(bmp(head, rows, tail=PROFILE), format=name).body)[1]
        assert out.info["icc_profile"] == PROFILE
        assert [round(float(dpi) / 25.4) for dpi in out.info["dpi"]] == [3, 6]


# Writing ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("bands, kind", [(1, "u8"), (2, "u8"), (3, "u8"), (4, "u8"), (3, "u16"), (1, "f32")])
def test_write(service, bands, kind):
    """As Pillow reads it, and as the service does: grey with a palette, 24 bits, or 32 with alpha."""
    alpha = bands in (2, 4)
    pixels = random_pixels(bands, 37, 2300 if kind == "u8" else 23, bands, kind, alpha)
    answer = service.filter(pixels, [("convolve", {"kernel": "1"})], format="bmp", alpha=int(alpha))
    assert answer.status == 200 and answer.type == "image/bmp", answer
    assert answer.headers.get("X-Lost") == (None if kind == "u8" else "reduced")
    assert struct.unpack("<I", answer.body[2:6])[0] == len(answer.body)
    full = {"u8": 255, "u16": 65535, "f32": 1}[kind]
    expected = np.rint(np.clip(pixels.astype(float), 0, full) * 255 / full).astype(np.uint8)
    if alpha:
        expected[pixels[:, :, -1] == 0] = 0
    shown, image = read_pil(answer.body)
    if bands == 2:  # such pixels a bitmap has in colour only
        expected = expected[:, :, (0, 0, 0, 1)]
    assert image.mode == ("L" if bands == 1 else "RGBA" if alpha else "RGB")
    assert np.array_equal(shown.reshape(expected.shape), expected)
    assert np.array_equal(decoded(service, answer.body), expected)


def test_written_with_what_is_beside_the_pixels(service):
    """By all ways to metadata: our own readers, and libvips's."""
    pixels = random_pixels(1, 20, 10, 3, "u8")
    for name in ("PNG", "TIFF", "JPEG"):
        body = imagefiles.written(imagefiles.pil(pixels), name, icc_profile=PROFILE, dpi=(254, 508))
        answer = service.post("/v1/filters/convolve?kernel=1", body, headers={"Accept": "image/bmp"})
        assert answer.type == "image/bmp", answer
        assert answer.body[-len(PROFILE):] == PROFILE, name
        assert answer.body[14:18] == bytes((124, 0, 0, 0))
        again = service.identity(answer.body)  # in its own format
        assert again.body == answer.body
        out = read_pil(service.identity(answer.body, format="png").body)[1]
        assert out.info["icc_profile"] == PROFILE
        assert [round(float(dpi)) for dpi in out.info["dpi"]] == [254, 508]
    grey = imagefiles.written(imagefiles.pil(pixels[:, :, :1]), "PNG", icc_profile=PROFILE)
    answer = service.identity(grey, format="bmp")
    assert PROFILE not in answer.body  # it is one for colours
    assert np.array_equal(read_pil(answer.body)[0].reshape(10, 20, 1), pixels[:, :, :1])


def test_write_inks(service):
    """CMYK becomes sRGB, as in any format without it."""
    body = imagefiles.written(imagefiles.pil(random_pixels(1, 20, 10, 3, "u8")).convert("CMYK"), "TIFF")
    answer, same = service.identity(body, format="bmp"), service.identity(body, format="png")
    assert answer.headers["X-Lost"] == "converted"
    assert np.array_equal(read_pil(answer.body)[0], read_pil(same.body)[0])
    profile = read_pil(same.body)[1].info["icc_profile"]
    assert answer.body.endswith(profile)


def test_too_large(service):
    wide = np.zeros((1, 32001, 3), np.uint8)
    problem = service.filter(wide, [("box", {"size": 1})], format="bmp").refused(422, "unencodable")
    assert "32000" in problem["detail"]


# Errors -------------------------------------------------------------------------------------------

def rgb():
    return imagefiles.written(imagefiles.pil(random_pixels(1, 37, 19, 3, "u8")), "BMP")


@pytest.mark.parametrize("body, status, slug, says", [
    (lambda: rgb()[:-1000], 422, "undecodable", "it holds 1128 of the image's 2127 bytes of pixels"),
    (lambda: rgb()[:40], 422, "undecodable", "the file ends in its header"),
    (lambda: bmp(header(0, 9, 24), b""), 422, "undecodable", "no pixels"),
    (lambda: bmp(header(9, 9, 24, 4), bytes(900)), 422, "unsupported-pixels", "in compression 4"),
    (lambda: bmp(header(9, 9, 32, 3, masks=(5, 0, 0)), bytes(900)), 422, "undecodable", "not next to each other"),
    (lambda: bmp(header(2**31 - 1, 2**31 - 1, 32), bytes(900)), 422, "too-many-pixels", "2147483647x2147483647"),
    (lambda: bmp(header(9, -2**31, 1), bytes(900)), 422, "too-many-pixels", "9x2147483648"),
    (lambda: bmp(header(9000, 9000, 8, 1), b"\5\5"), 422, "undecodable", "truncated"),
])
def test_refused(service, body, status, slug, says):
    assert says in service.identity(body()).refused(status, slug)["detail"]


def test_cut_anywhere(service):
    """No cut, and no wrong byte of a header, ends a worker."""
    for file in (rgb(), runs(8, [3, 5, 0, 3, 1, 2, 3, 0, 0, 2, 1, 1, 0, 1])):
        for at in range(4, min(len(file), 80), 3):
            assert service.identity(file[:at]).status in (200, 415, 422)
            for byte in (0, 0x80, 0xFF):
                assert service.identity(file[:at] + bytes([byte]) + file[at + 1:]).status in (200, 415, 422)


def test_forbidden(launch):
    with launch("--codecs", "1", "--formats", "bmp") as service:
        assert service.identity(rgb(), format="ppm").status == 200
    with launch("--codecs", "1", "--formats", "png") as service:
        detail = service.identity(rgb()).refused(415, "not-an-image")["detail"]
        assert "look like BMP, which this service does not read" in detail
