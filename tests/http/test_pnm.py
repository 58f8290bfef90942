"""Netpbm's formats: PBM, PGM, PPM, plain and raw, PAM and PFM, as netpbm's manual has them."""
import random

import numpy as np
import pytest

from imagefiles import read_pil, write_pnm
from pixels import random_pixels, visible

TYPES = {"BLACKANDWHITE": 1, "GRAYSCALE": 1, "RGB": 3, "BLACKANDWHITE_ALPHA": 2, "GRAYSCALE_ALPHA": 2,
         "RGB_ALPHA": 4, "CMYK": 4}
MAXIMA = (1, 2, 3, 100, 254, 255, 256, 1000, 65534, 65535)


def samples(seed, bands, most, width=13, height=7):
    pixels = np.random.default_rng(seed).integers(0, most + 1, (height, width, bands))
    pixels[0, 0], pixels[-1, -1] = 0, most
    return pixels


def scaled(pixels, most):
    """Exactly, halves up."""
    full = 255 if most < 256 else 65535
    return ((2 * full * pixels + most) // (2 * most)).astype(np.uint8 if full == 255 else np.uint16)


def stored(pixels, most):
    return pixels.astype(np.uint8 if most < 256 else ">u2").tobytes()


def pam(pixels, most, kind=None, more=""):
    height, width, depth = pixels.shape
    lines = f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {depth}\nMAXVAL {most}\n{more}"
    return f"{lines}{f'TUPLTYPE {kind}' if kind else ''}\nENDHDR\n".encode() + stored(pixels, most)


def written(magic, pixels, most=255):
    """Returns a file; pixels of P1 and P4 are bits, 1 for black."""
    if magic == "P7":
        return pam(pixels, most, "RGB")
    if magic == "Pf":
        return write_pnm(pixels)
    height, width, _ = pixels.shape
    head = f"{magic}\n{width} {height}\n" + ("" if magic in ("P1", "P4") else f"{most}\n")
    if magic in ("P1", "P2", "P3"):
        return (head + " ".join(map(str, pixels.ravel()))).encode()
    if magic == "P4":
        return head.encode() + np.packbits(pixels[:, :, 0].astype(np.uint8), axis=1).tobytes()
    return head.encode() + stored(pixels, most)


@pytest.mark.parametrize("most", MAXIMA)
@pytest.mark.parametrize("magic", ["P2", "P3", "P5", "P6"])
def test_maxima(service, magic, most):
    pixels = samples(most, 1 if magic in ("P2", "P5") else 3, most)
    assert np.array_equal(service.decoded(written(magic, pixels, most)), scaled(pixels, most))


@pytest.mark.parametrize("seed", range(8))
def test_text_between_samples(service, seed):
    """White space of any kind, comments, and leading zeros."""
    dice = random.Random(seed)

    def space():
        kinds = (" ", "\n", "\t", "\r", "\v", "\f", "\r\n", "\n# 7 8 9\n", " #\r")
        return "".join(dice.choices(kinds, k=dice.randint(1, 3)))

    for magic, most, bands in (("P1", 1, 1), ("P2", 999, 1), ("P3", 77, 3)):
        pixels = samples(seed, bands, most)
        head = f"{magic}{space()}13{space()}0007" + ("" if magic == "P1" else f"{space()}{most}") + space()
        body = head + "".join("0" * dice.randint(0, 3 * (magic != "P1")) + str(n) + space() for n in pixels.ravel())
        expected = 255 * (1 - pixels) if magic == "P1" else scaled(pixels, most)
        assert np.array_equal(service.decoded(body.encode()), expected)
    for magic, most, bands in (("P5", 300, 1), ("P6", 33, 3)):
        pixels = samples(seed, bands, most)
        head = f"{magic}{space()}13{space()}7{space()}{most}" + dice.choice(" \t\n\v\f\r")
        got = service.decoded(head.encode() + stored(pixels, most))
        assert np.array_equal(got, scaled(pixels, most))


@pytest.mark.parametrize("body, values", [
    # As the manual has it: a comment is nothing at all, and its end no white space.
    (b"P5#\n2#one\n 1\n25#two\n5\n\x01\x02", [1, 2]), (b"P2 1 1 255 1#\n2", [12]),
    # A raw sample above the maximum is white, as to Pillow.
    (b"P5 3 1 100 \x32\x64\xc8", [128, 255, 255]),
    (b"P5 2 1 1000 \x01\xf4\x13\x88", [32768, 65535]),
    (b"P1 2 1 10P5 1 1 255 x", [0, 255])])
def test_by_hand(service, body, values):
    assert service.decoded(body)[0, :, 0].tolist() == values


@pytest.mark.parametrize("width", [1, 7, 8, 9, 32])
def test_bits(service, width):
    """One is black. Plain ones need no space between them, and lines end anywhere, as GIMP writes them."""
    bits = samples(width, 1, 1, width)
    text = "".join(map(str, bits.ravel()))
    lines = "\n".join(text[i:i + 5] for i in range(0, len(text), 5))
    for body in (f"P1\n# CREATOR: GIMP\n{width} 7\n{lines}".encode(), written("P4", bits)):
        assert np.array_equal(service.decoded(body), 255 * (1 - bits))


@pytest.mark.parametrize("most", [1, 200, 255, 4095, 65535])
@pytest.mark.parametrize("kind", TYPES)
def test_pam(service, kind, most):
    """All kinds of tuples; planes that their type has not are left out."""
    pixels = samples(most, TYPES[kind], most)
    expected = visible(scaled(pixels, most), kind.endswith("ALPHA"))
    body = pam(pixels, most, kind, "# WIDTH 99\n\n")
    assert np.array_equal(service.decoded(body), expected)
    wider = np.dstack((pixels, samples(3, 1, most)))
    assert np.array_equal(service.decoded(pam(wider, most, kind)), expected)
    answer = service.identity(body)
    assert answer.type == ("image/png" if kind.endswith("ALPHA") else "image/x-portable-anymap")
    assert answer.headers.get("X-Lost") == ("converted" if kind == "CMYK" else None)


def test_pam_without_type(service):
    """Nothing is known of the bands then, nor of those of a type with another name."""
    for bands in (1, 2, 3, 4, 5, 21):
        pixels = samples(bands, bands, 255)
        for kind in (None, "temperature"):
            assert np.array_equal(service.decoded(pam(pixels, 255, kind)), pixels)
    service.identity(pam(samples(1, 22, 255), 255)).refused(422, "unsupported-pixels", "22 bands")
    body = pam(samples(1, 3, 255), 255).replace(b"\nENDHDR", b"TUPLTYPE RGB\r\n  TUPLTYPE  too \r\nENDHDR \r")
    assert np.array_equal(service.decoded(body), samples(1, 3, 255))


@pytest.mark.parametrize("bands", [1, 3])
def test_pfm(service, bands):
    """In either order of bytes, from the bottom up; its scale is a unit that says nothing of the pixels."""
    pixels = random_pixels(bands, 13, 7, bands, "f32")
    magic = "Pf" if bands == 1 else "PF"
    for scale, order in (("-1.0", "<"), ("1.0", ">"), ("-2.5e3", "<"), ("+7", ">"), (".5", ">"), ("-1", "<")):
        body = f"{magic}\n13 7\n{scale}\n".encode() + pixels[::-1].astype(f"{order}f4").tobytes()
        assert np.array_equal(service.decoded(body), pixels)
        assert np.array_equal(service.decoded(body, roi="3,2,5,4"), pixels[2:6, 3:8])


@pytest.mark.parametrize("magic", ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "Pf"])
def test_parts(service, magic):
    """Rows anywhere, of several tiles, and beyond the edges."""
    bands, kind = 3 if magic in ("P3", "P6", "P7") else 1, "f32" if magic == "Pf" else "u8"
    pixels = random_pixels(4, 700, 500, bands, kind)
    body = written(magic, pixels)
    if magic in ("P1", "P4"):
        body = written(magic, pixels & 1)
        pixels = 255 * (1 - (pixels & 1))
    path = "/v1/filters/box?size=9&format=raw&variant=general&border=wrap&roi=90,70,600,400"
    bare = service.post(f"{path}&raw=700x500x{bands}:{kind}", pixels.tobytes())
    assert service.post(path, body).body == bare.body


def test_several_images(service):
    """The first is read, and the answer tells of the others; other bytes behind it are not looked at."""
    one, two = write_pnm(random_pixels(1, 9, 5, 3, "u8")), pam(samples(3, 1, 300), 300, "GRAYSCALE")
    for others, count in ((one, 2), (two + one, 3), (b"junk", 1), (b"P5 9 9 255\nshort", 1),
                          (b"\n" + one, 1)):
        answer = service.identity(one + others)
        assert answer.body == service.identity(one).body
        assert answer.headers.get("X-Pages") == (str(count) if count > 1 else None)
        assert answer.headers.get("X-Lost") == ("first-frame" if count > 1 else None)
    service.identity(one + one, page=1).refused(
        400, "bad-parameter", "of PNM a single picture is read")


@pytest.mark.parametrize("body, says", [
    (b"P6 3 2 255\n" + bytes(17), "it holds 17 of the image's 18 bytes of pixels"),
    (b"P4 9 3 " + bytes(5), "it holds 5 of the image's 6 bytes"),
    (b"Pf 2 2 1 " + bytes(15), "15 of the image's 16"),
    (pam(samples(1, 4, 999), 999, "RGB_ALPHA")[:-1], "727 of the image's 728"),
    (b"P1 3 2 10101", "5 of the image's 6"), (b"P1 3 2 1 0\n1 #1\n0", "4 of the image's 6 samples"),
    (b"P2 2 2 9\n1 2 3", "3 of the image's 4"), (b"P3 1 1 9\n11 2 # 3", "not a number from 0 to the maximum"),
    (b"P2 2 1 9 3 10", "not a number from 0"), (b"P2 2 1 9 3 -1", "not a number"), (b"P2 2 1 9 3 1x", "not a number"),
    (b"P2 2 1 9 99999999999999999999 1", "not a number"),
    (b"P1 1000000 1000 " + b"1" * 17, "17 of the image's 1000000000 bytes of pixels, or more"),
    (b"P5 0 2 255 ", "no pixels"), (b"P5 2 2 0 abcd", "maximum from 1 to 65535"),
    (b"P5 2 2 65536 " + bytes(8), "maximum"), (b"P5 2 1 255#\nxx", "maximum"),
    (b"P5 2 2 255", "0 of the image's 4"), (b"P5 2", "width and height"), (b"P5 -2 2 255 abcd", "width and height"),
    (b"P5 2 99999999999999999999 255 abcd", "width and height"), (b"P5 2 2 2x5 abcd", "maximum"), (b"P6 #", "width"),
    (b"Pf 1 1 0 abcd", "scale"), (b"Pf 1 1 nan abcd", "scale"), (b"Pf 1 1 inf abcd", "scale"),
    (b"Pf 1 1 1y abcd", "scale"),
    (b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\n", "ENDHDR"), (b"P7\nWIDTH 1\nENDHDR\n", "no WIDTH, HEIGHT, DEPTH"),
    (b"P7\nWIDTH 1\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\nx", "there twice"),
    (b"P7\nWIDTH 1\nHEIGHT x\nDEPTH 1\nMAXVAL 255\nENDHDR\nx", "no number"), (b"P7\nSIZE 1\n", "unknown"),
    (b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\nx", "DEPTH is less"),
    (b"P7\n" + b"WIDTH 1" * 99 + b"\nENDHDR\n", "ENDHDR"),
])
def test_refused(service, body, says):
    service.identity(body).refused(422, "undecodable", says)


@pytest.mark.parametrize("body", [
    b"P5 100000 100000 255 x", b"P1 4294967295 4294967295 1", b"PF 4294967295 1 -1.0\n",
    b"P1 1 2000000 1",
    b"P7\nWIDTH 4294967295\nHEIGHT 4294967295\nDEPTH 21\nMAXVAL 65535\nENDHDR\n"])
def test_too_large(service, body):
    service.identity(body).refused(422, "too-many-pixels")


@pytest.mark.parametrize("body", [
    b"P8 1 1 1 x", b"P7 332\n#BUILTIN\n1 1 255\nx", b"P5x1 1 255 x", b"PX 1 1 x"])
def test_not_pnm(service, body):
    service.identity(body).refused(415, "not-an-image")


def test_nothing_beside_the_pixels(service):
    image = read_pil(service.identity(write_pnm(random_pixels(1, 9, 5, 3, "u8")), format="png").body)[1]
    assert not {"exif", "icc_profile", "Software"} & set(image.info)
