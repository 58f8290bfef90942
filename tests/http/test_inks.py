"""CMYK in, and out in the format's form: inks, or sRGB by the image's profile."""
import io
import struct

import numpy as np
import pytest
from PIL import Image, ImageCms

import oracle
from imagefiles import read_pil, read_png, read_pnm, write_tiff, written
from previews import PROFILE

# Cyan, magenta, yellow, black, 0 to 1: and about their looks on paper.
INKS = {(0, 0, 0, 0): (255, 255, 255), (1, 0, 0, 0): (0, 158, 224), (0, 1, 0, 0): (230, 0, 126),
        (0, 0, 1, 0): (255, 237, 0), (1, 1, 0, 0): (49, 39, 131), (0, 1, 1, 0): (227, 6, 19),
        (0, 0, 0, 1): (29, 29, 27), (1, 1, 1, 1): (20, 20, 20)}
EDGE = 32


def sheet(kind="u8"):
    """Returns a square of each colour, in a row."""
    row = np.array(list(INKS), float)[None] * oracle.FULL_SCALE[kind]
    return row.repeat(EDGE, 1).repeat(EDGE, 0).astype(oracle.TYPES[kind])


def middles(pixels):
    return pixels[EDGE // 2, EDGE // 2::EDGE].astype(float)


def looks_printed(pixels):
    """Each square is like its colour on paper."""
    found = middles(pixels) / (257 if pixels.dtype == np.uint16 else 1)
    assert found.shape == (len(INKS), 3)
    assert abs(found - np.array(list(INKS.values()))).max() < 40, found


def profile(lightness):
    """Returns a profile of CMYK by which a corner of the inks is grey of this lightness."""
    table = b"".join(bytes((lightness(corner), 128, 128)) for corner in range(16))
    straight = bytes(range(256))
    white = struct.pack(">3i", 0xF6D6, 0x10000, 0xD32D)
    lut = (b"mft1" + bytes(4) + bytes((4, 3, 2, 0))
           + struct.pack(">9i", *(0x10000 * (i % 4 == 0) for i in range(9)))
           + straight * 4 + table + straight * 3)
    tags, values, at = b"", b"", 128 + 4 + 12 * 5
    for tag, value in ((b"A2B0", lut), (b"A2B1", lut),
                       (b"cprt", b"text" + bytes(4) + b"public domain\0"),
                       (b"desc", b"desc" + bytes(4) + struct.pack(">I", 2) + b"a\0" + bytes(79)),
                       (b"wtpt", b"XYZ " + bytes(4) + white)):
        tags += tag + struct.pack(">II", at + len(values), len(value))
        values += value + bytes(-len(value) % 4)
    body = struct.pack(">I", 5) + tags + values
    header = (struct.pack(">I", 128 + len(body)) + b"lcms\2\x20\0\0prtrCMYKLab "
              + struct.pack(">6H", 2020, 1, 1, 0, 0, 0) + b"acsp" + bytes(28) + white)
    return header.ljust(128, b"\0") + body


BODIES = {"tiff": write_tiff(sheet(), inks=True),
          "jpeg": written(Image.fromarray(sheet(), "CMYK"), "JPEG", quality=98)}
READERS = {"png": read_png, "ppm": read_pnm, "webp": lambda body: read_pil(body)[0]}


@pytest.mark.parametrize("source", BODIES)
@pytest.mark.parametrize("name", ["png", "webp", "gif", "ppm"])
def test_inks_become_colours(service, source, name):
    answer = service.converted(BODIES[source], format=name)
    assert answer.kind == (EDGE * len(INKS), EDGE, 3, "u8")
    assert "converted" in answer.lost
    image = Image.open(io.BytesIO(answer.body))
    looks_printed(np.asarray(image.convert("RGB")))
    if name in ("png", "webp"):
        profile = ImageCms.getOpenProfile(io.BytesIO(image.info["icc_profile"]))
        assert ImageCms.getProfileDescription(profile).strip() == "sRGB", "what it is now"


@pytest.mark.parametrize("source", BODIES)
@pytest.mark.parametrize("name, mode", [("jpeg", "CMYK"), ("tiff", "CMYK"), ("raw", None)])
def test_inks_stay_inks(service, source, name, mode):
    answer = service.converted(BODIES[source], format=name)
    assert answer.kind[2] == 4
    assert "converted" not in answer.lost
    if mode:
        assert Image.open(io.BytesIO(answer.body)).mode == mode


@pytest.mark.parametrize("kind, name, expected", [
    ("u16", "png", "u16"), ("u16", "ppm", "u16"), ("u16", "webp", "u8"), ("f32", "png", "u16"),
    ("f32", "ppm", "u16"), ("f32", "webp", "u8")])
def test_more_bits(service, kind, name, expected):
    """Colours of as many bits as there are of inks, where the format has them; no floats."""
    answer = service.identity(write_tiff(sheet(kind), inks=True), format=name)
    assert answer.status == 200 and answer.kind[3] == expected, answer
    assert ("reduced" in answer.lost) == (kind != expected)
    looks_printed(READERS[name](answer.body))


@pytest.mark.parametrize("name", ["png", "ppm", "webp"])
def test_own_profile(service, name):
    """By which no ink at all is black, and all of it white."""
    strange = profile(lambda corner: 255 if corner == 15 else 0)
    answer = service.converted(write_tiff(sheet(), icc=strange, inks=True), format=name)
    *others, last = middles(READERS[name](answer.body))
    assert np.max(others) < 30 and last.min() > 225, (others, last)
    kept = service.identity(write_tiff(sheet(), icc=strange, inks=True))
    assert read_pil(kept.body)[1].info["icc_profile"] == strange


@pytest.mark.parametrize("icc", [PROFILE, b"no profile at all", profile(lambda corner: 0)[:300],
                                 bytes(200), profile(lambda corner: 0)[:128] + b"\xff" * 400])
def test_useless_profile(service, icc):
    """One of other colours, or broken: as if there were none."""
    answer = service.converted(write_tiff(sheet(), icc=icc, inks=True), format="png")
    looks_printed(read_png(answer.body))


def test_parts(service):
    """The rows come late, with a whole image around them, and in many tiles."""
    whole = read_png(service.identity(BODIES["tiff"], format="png").body)
    large = write_tiff(np.tile(sheet(), (60, 8, 1)), inks=True)
    for name in ("png", "ppm"):
        for body, options, expected in (
                (BODIES["tiff"], {"roi": "20,3,70,9", "target": "20,3"}, whole),
                (BODIES["tiff"], {"roi": "20,3,70,9"}, whole[3:12, 20:90]),
                (large, {}, np.tile(whole, (60, 8, 1)))):
            answer = service.identity(body, format=name, **options)
            assert np.array_equal(read_pil(answer.body)[0], expected), answer


def test_accept_prefers_inks(service):
    """The answer's format is, among equally liked ones, one that keeps them."""
    for accept, expected in (("image/png, image/tiff", "image/tiff"), ("image/png", "image/png"),
                             ("image/png, image/tiff;q=0.9", "image/png")):
        answer = service.post("/v1/filters/box", BODIES["jpeg"], headers={"Accept": accept})
        assert answer.status == 200 and answer.type == expected, answer


def test_bare_bands_are_no_inks(service):
    pixels = np.zeros((9, 9, 4), np.uint8)
    service.filter(pixels, [("box", {})], format="png").refused(422, "unencodable")
