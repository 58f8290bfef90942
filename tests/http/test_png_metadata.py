"""PNGs' metadata: applied and kept, whoever decodes the pixels; X-Lost names losses."""
import itertools
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from fixtures import Made, some
from imagefiles import (PNG_SIGNATURE, png_chunk, png_chunks, read_pil, several, shown, write_png,
                        written)
from pixels import random_pixels
from previews import PROFILE, profile_text

PIXELS = random_pixels(1, 41, 30, 3, "u8")
LARGE = np.broadcast_to(np.uint8([9, 7, 5]), (1200, 1200, 3)).copy()  # more than is decoded without libvips
LARGE[:40, :30] = random_pixels(2, 30, 40, 3, "u8")
EXIF = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0%c\0\0\0\0\0\0"
COLOURS = [(b"gAMA", struct.pack(">I", 100000)), (b"cHRM", struct.pack(">8I", *range(30000, 38000, 1000))),
           (b"sRGB", b"\1"), (b"cICP", b"\x09\x10\0\1"), (b"mDCV", bytes(range(24))), (b"cLLI", bytes(range(8)))]


def with_chunks(file, before=(), after=()):
    """Returns the file with chunks before its pixels, and behind them."""
    chunks = list(png_chunks(file))
    body = chunks[:1] + list(before) + chunks[1:-1] + list(after) + chunks[-1:]
    return PNG_SIGNATURE + b"".join(png_chunk(*chunk) for chunk in body)


def raw_profile(kind, data):
    return b"tEXt", b"Raw profile type %b\0" % kind.encode() + profile_text(kind, data)


def chunks_of(answer, *names):
    return [chunk for chunk in png_chunks(answer.body) if chunk[0] in names]


FILES = Made({"own": lambda: write_png(PIXELS), "large": lambda: written(Image.fromarray(LARGE), "PNG"),
              "palette": lambda: written(Image.fromarray(PIXELS).quantize(40), "PNG")})


@pytest.mark.parametrize("kind, orientation, place", some(
    itertools.product(FILES, [1, 3, 6], ["before", "after", "exif", "APP1", "bare"]), 4))
def test_orientation(service, kind, orientation, place):
    """EXIF in its chunk, wherever that is, or as a text in hexadecimal."""
    block = EXIF % orientation
    titled = b"Exif\0\0" + block
    chunk = {"exif": raw_profile("exif", titled), "APP1": raw_profile("APP1", titled),
             "bare": raw_profile("exif", block)}.get(place, (b"eXIf", block))
    body = with_chunks(FILES[kind], **{"after" if place == "after" else "before": [chunk]})
    answer = service.identity(body)
    assert not answer.lost
    turns = {1: 0, 3: 2, 6: 3}[orientation]
    assert np.array_equal(shown(answer.body), np.rot90(shown(FILES[kind]), turns))
    assert read_pil(answer.body)[1].getexif().get(0x112, 1) == 1
    assert chunks_of(answer, b"eXIf") and not chunks_of(answer, b"tEXt")


@pytest.mark.parametrize("kind", FILES)
def test_raw_profiles(service, kind):
    resources = b"8BIM\x04\x04\0\0\0\0\0\x0a\x1c\x02\x05\0\5title"
    body = with_chunks(FILES[kind], [raw_profile("xmp", b"<x>text</x>"), raw_profile("icc", PROFILE)],
                       [raw_profile("iptc", resources)])
    answer = service.identity(body)
    assert not answer.lost
    [(_, profile)] = chunks_of(answer, b"iCCP")
    assert zlib.decompress(profile[profile.index(0) + 2:]) == PROFILE
    [(_, packet)] = chunks_of(answer, b"iTXt")
    assert packet.startswith(b"XML:com.adobe.xmp\0") and packet.endswith(b"<x>text</x>")
    [(_, text)] = chunks_of(answer, b"tEXt")
    assert bytes.fromhex(text.split(b"\n", 3)[3].replace(b"\n", b"").decode()) == resources
    again = service.identity(answer.body)
    assert chunks_of(again, b"iCCP", b"iTXt", b"tEXt") == chunks_of(answer, b"iCCP", b"iTXt", b"tEXt")
    _, jpeg = read_pil(service.identity(body, format="jpeg").body)
    assert jpeg.info["icc_profile"] == PROFILE and b"8BIM" in dict(jpeg.applist)["APP13"]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("chunk", [
    (b"tEXt", b"\0empty keyword"), (b"tEXt", b" led by a space\0text"), (b"tEXt", b"k" * 80 + b"\0text"),
    (b"tEXt", b"two  spaces\0text"), (b"tEXt", b"no text"), (b"iTXt", b"key\0\2\0\0\0text"),
    (b"zTXt", b"key\0\0damaged"), (b"gAMA", b"\0\1"), (b"eXIf", b"anything, but no EXIF"),
    (b"iCCP", b"icc\0\0damaged"), raw_profile("exif", b"no block"), (b"tEXt", b"Raw profile type exif\0\nexif\n 4\nno")])
def test_odd_metadata(service, kind, chunk):
    """It is left out, and all else is kept."""
    answer = service.identity(with_chunks(FILES[kind], [chunk, (b"tEXt", b"good\0text")], [(b"tEXt", b"late\0text")]))
    assert answer.lost == ["metadata"]
    assert chunks_of(answer, b"tEXt", b"zTXt", b"iTXt", b"gAMA", b"eXIf", b"iCCP") == [
        (b"tEXt", b"good\0text"), (b"tEXt", b"late\0text")]


def test_wrong_checksum(service):
    text = bytearray(png_chunk(b"tEXt", b"key\0text"))
    text[-1] ^= 1
    head = len(PNG_SIGNATURE) + 25
    assert service.identity(FILES["own"][:head] + text + FILES["own"][head:]).lost == ["metadata"]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("strip", [0, 1])
def test_description_of_colours(service, kind, strip):
    names = [name for name, _ in COLOURS]
    body = with_chunks(FILES[kind], COLOURS)
    answer = service.identity(body, strip=strip)
    assert not answer.lost and chunks_of(answer, *names) == COLOURS
    for name in ("tiff", "raw", "ppm"):
        assert service.identity(body, format=name, strip=strip).lost == ["colour-space"]
    for chunk in COLOURS:
        answer = service.identity(with_chunks(FILES[kind], [chunk]), format="jpeg")
        assert "colour-space" in answer.lost


def test_a_profile_counts_more(service):
    """cICP outranks all others: if it is kept, the chunks that it makes void are no loss."""
    profile = (b"iCCP", b"icc\0\0" + zlib.compress(PROFILE))
    for kind in FILES.values():
        for chunk, is_lost in ((COLOURS[0], False), (COLOURS[3], True)):
            answer = service.identity(with_chunks(kind, [chunk, profile]), format="tiff")
            assert answer.status == 200 and ("colour-space" in answer.lost) == is_lost


def test_animation(service):
    frames = [Image.fromarray(np.roll(PIXELS, i, 0)) for i in range(3)]
    chunks = COLOURS[:2] + [(b"tEXt", b"key\0text")]
    body = with_chunks(several(frames, "PNG"), chunks)
    answer = service.identity(body, pages="all")
    assert not answer.lost and len(chunks_of(answer, b"fcTL")) == 3
    assert chunks_of(answer, b"gAMA", b"cHRM", b"tEXt") == chunks


@pytest.mark.parametrize("name", [b"iTXt", b"tEXt", b"PLTE", b"abcd", b"iCCP"])
@pytest.mark.parametrize("size", [100, (1 << 30) - 1, (1 << 31) - 1, (1 << 32) - 1])
def test_a_chunk_longer_than_the_file(service, name, size):
    """It is refused before a decoder takes memory for it."""
    head = len(PNG_SIGNATURE) + 25
    body = FILES["own"][:head] + struct.pack(">I", size) + name + b"some data"
    service.identity(body).refused(422, "undecodable", "longer")


def test_cut_behind_the_pixels(service):
    body = FILES["large"][:-12] + struct.pack(">I", 1 << 30) + b"tEXt" + b"some data"
    assert np.array_equal(shown(service.identity(body).body), LARGE)
