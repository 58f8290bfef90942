"""Hostile metadata: no worker dies of it, and no answer is a server error or holds a picture."""
import itertools
import random
import struct

import pytest

import previews
from previews import EXIF, XMP, segment

MARK = b"SHARP-Q7x3vKz9pLmW2nTb"
ENTRIES, PICTURE = previews.jpeg_thumbnail(MARK)
WHOLE = previews.exif(ENTRIES, PICTURE)


def files(data):
    """Yields a block of EXIF in each format that has one; too long for a segment, not in JPEG."""
    if len(data) < 65000:
        yield previews.jpeg(segment(0xE1, EXIF + data))
    yield previews.png((b"eXIf", data))
    yield previews.webp(exif_block=EXIF + data)


def survive(service, file):
    answer = service.identity(file)
    assert answer.status in (200, 422), answer
    assert not previews.holds(answer.body, MARK)


def cut_off():
    for size in range(len(WHOLE) - len(PICTURE) + 40):
        yield WHOLE[:size]


def in_circles():
    """Directories that lead to themselves, to one another, and out of the block."""
    start, = struct.unpack("<I", WHOLE[4:8])
    count, = struct.unpack("<H", WHOLE[start:start + 2])
    link = start + 2 + 12 * count
    for target in (0, 1, 4, start, start + 2, link, len(WHOLE) - 2, len(WHOLE), 0x7FFFFFFF,
                   0xFFFFFFF8, 0xFFFFFFFF):
        for place in (4, link, *(start + 2 + 12 * i + 8 for i in range(count))):
            yield WHOLE[:place] + struct.pack("<I", target) + WHOLE[place + 4:]
    for tag in (0x8769, 0x8825, 0xA005):
        image = [(tag, 4, 1, struct.pack("<I", 8)), (0x0112, 3, 1, struct.pack("<H", 6))]
        yield previews.directories([image, image])


def of_any_types():
    """Entries of any type with any count, of tags that decoders look into."""
    tags = (0x0100, 0x0112, 0x011A, 0x0128, 0x0201, 0x0202, 0x010F, 0x9286, 0x927C)
    for kind in (0, 1, 2, 3, 4, 5, 7, 9, 10, 12, 13, 16, 255, 65535):
        for count in (0, 1, 2, 0x10000, 0x40000000, 0x7FFFFFFF, 0xFFFFFFFF):
            image = [(tag, kind, count, struct.pack("<I", 8)) for tag in tags]
            yield previews.directories([image, image], [], bytes(64))


def thumbnails_elsewhere():
    for place in (0, 7, len(WHOLE) - 4, len(WHOLE), 0xFFFFFFF0):
        for length in (0, 1, len(PICTURE), len(WHOLE), 0x7FFFFFFF, 0xFFFFFFFF):
            yield previews.exif([ENTRIES[0], (0x0201, 4, 1, struct.pack("<I", place)),
                                 (0x0202, 4, 1, struct.pack("<I", length))], PICTURE)


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("blocks", [cut_off, in_circles, of_any_types, thumbnails_elsewhere])
def test_exif(service, blocks, every):
    for block in itertools.islice(blocks(), 0, None, every):
        for file in files(block):
            survive(service, file)


@pytest.mark.slow
def test_large_blocks(service):
    """As large as a segment can be, and many of them; as large as the service takes in PNG."""
    full = segment(0xE1, EXIF + WHOLE + bytes(65533 - len(EXIF) - len(WHOLE)))
    resource = previews.resource(1028, b"\x1c" * 60000)
    for segments in ([full], [full] * 30,
                     [segment(marker, b"\xff" * 65533) for marker in range(0xE0, 0xF0)],
                     [segment(0xED, b"Photoshop 3.0\0" + resource)] * 9,
                     [segment(0xE1, XMP + previews.xmp("<a>" * 150 + "</a>" * 150))] * 20,
                     [segment(0xE1, XMP + b"<a " + b"b='' " * 12000 + b"/>")]):
        survive(service, previews.jpeg(*segments))
    for size in (1 << 20, (1 << 20) + 1, 20 << 20):
        for file in files(WHOLE.ljust(size, b"\0")):
            survive(service, file)
    deep = previews.xmp("<b:a>" * 200000 + "</b:a>" * 200000)
    words = previews.xmp("<dc:x>" + "word " * 2000000 + "</dc:x>")
    for block in (deep, words, b"\x1c\x02\x78" * 2000000):
        survive(service, previews.tiff({700: block, 33723: block, 34377: block}))


@pytest.mark.parametrize("seed", [
    pytest.param(seed, marks=pytest.mark.slow if seed else ()) for seed in range(12)])
def test_any_bytes(service, seed):
    rng = random.Random(seed)
    samples = list(previews.samples(MARK).values())
    for _ in range(40):
        file = bytearray(rng.choice(samples))
        for _ in range(rng.randrange(1, 12)):
            at, value = rng.randrange(8, min(len(file), 3000)), rng.randrange(256)
            file[at] = rng.choice((0, 1, 255, value))
        answer = service.identity(bytes(file))
        assert answer.status in (200, 415, 422), answer
