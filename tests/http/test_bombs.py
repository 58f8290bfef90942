"""Small files that ask for much: each is refused by name, or done, soon and in little memory."""
import struct
import time
import zlib

import numpy as np
import pytest

import imagefiles
from imagefiles import png_chunk, png_header, write_png, write_tiff
from previews import directories, segment
from service import sanitized

SMALL = np.arange(16 * 16 * 3, dtype=np.uint8).reshape(16, 16, 3)
MEGABYTE = 1 << 20


def deflated(megabytes):
    return zlib.compress(b"a" * (megabytes * MEGABYTE), 9)


def png_texts(count, content, name=b"zTXt"):
    return write_png(SMALL, [(name, b"key%d\0" % i + content) for i in range(count)])


def jpeg_table(kind, symbol):
    """Returns a table of one code, of one bit."""
    return segment(0xc4, bytes([kind, 1]) + bytes(15) + bytes([symbol]))


def jpeg_scans(count, side=4000):
    """Returns a grey progressive JPEG whose scans of 60 bytes go over all blocks and change none."""
    blocks, bits = (side // 8) ** 2, ""
    while blocks:
        run = min(blocks, 32767)
        assert run >= 16384, "the one code's runs are not shorter"
        bits += f"0{run - 16384:014b}"
        blocks -= run
    bits += "1" * (-len(bits) % 8)
    data = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    first = segment(0xda, b"\1\1\0\0\0\0") + bytes((side // 8) ** 2 // 8 + 1)
    scan = segment(0xda, b"\1\1\0\1\x3f\0") + data
    return (b"\xff\xd8" + segment(0xdb, b"\0" + b"\1" * 64)
            + segment(0xc2, struct.pack(">BHHB", 8, side, side, 1) + b"\1\x11\0")
            + jpeg_table(0, 0) + jpeg_table(0x10, 0xe0) + first + scan * count + b"\xff\xd9")


def jpeg_sequence(count, components, segments=b""):
    """Returns a sequential JPEG of so many components, with scans of the first one alone."""
    frame = b"".join(bytes([i + 1, 0x11, 0]) for i in range(components))
    scan = segment(0xda, b"\1\1\0\0\x3f\0") + bytes(1000 * 1000 // 64 * 2 // 8 + 1)
    return (b"\xff\xd8" + segments + segment(0xdb, b"\0" + b"\1" * 64)
            + segment(0xc0, struct.pack(">BHHB", 8, 1000, 1000, components) + frame)
            + jpeg_table(0, 0) + jpeg_table(0x10, 0) + scan * count + b"\xff\xd9")


def with_segments(*segments):
    body = imagefiles.written(imagefiles.pil(SMALL), "JPEG")
    return body[:2] + b"".join(segments) + body[2:]


EXIF_POINTER, GPS_POINTER = 0x8769, 0x8825
DESCRIPTION, PROFILE = 270, 0x8773


def exif_directories(count, nested):
    """Returns a directory of pointers, each to a directory of pointers, each to an empty one."""
    return directories([[(EXIF_POINTER, 4, 1, 1)] * count], [[(GPS_POINTER, 4, 1, 2)] * nested, []])


def exif_overlapping(count, size):
    """Returns entries with one value, all the same bytes."""
    return directories([[(0x9000 + i % 4096, 2, size, "tail") for i in range(count)]],
                       tail=b"a" * size)


# Each entry leads to the directory itself, and so does its end.
LOOP = directories([[(EXIF_POINTER, 4, 1, 0)] * 3])[:-4] + struct.pack("<I", 8)


def exif_jpeg(exif):
    return with_segments(segment(0xe1, b"Exif\0\0" + exif))


def exif_png(exif):
    return write_png(SMALL, [(b"eXIf", exif)])


PAGE = [(tag, kind, 1, struct.pack("<I", value)) for tag, kind, value in (
    (256, 3, 1), (257, 3, 1), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1),
    (278, 3, 1), (279, 4, 1))]


def tiff_pages(count, size, tag=DESCRIPTION):
    """Pages of one pixel, each with the same long description or profile."""
    kind = 2 if tag == DESCRIPTION else 7
    return directories([[*PAGE, (tag, kind, size, "tail")]] * count, tail=b"a" * size)


def tiff_strips(count, strips):
    """Pages that all list the same strips, and say that there are more than the file could name."""
    number = struct.pack("<I", strips)
    own = {257: (4, 1, number), 273: (4, 0x7fffffff, "tail"), 279: (4, 0x7fffffff, "tail")}
    page = [(tag, *own.get(tag, entry)) for tag, *entry in PAGE]
    return directories([page] * count, tail=struct.pack("<I", 1) * strips)


def riff(*chunks):
    content = b"WEBP" + b"".join(name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)
                                 for name, body in chunks)
    return b"RIFF" + struct.pack("<I", len(content)) + content


PIXEL = imagefiles.written(imagefiles.pil(SMALL[:1, :1]), "WEBP", lossless=True)[12:]


def webp_frames(count):
    frame = b"ANMF", bytes(16) + PIXEL
    return riff((b"VP8X", b"\2" + bytes(9)), (b"ANIM", bytes(6)), *[frame] * count)


def webp_of_one_colour(side):
    """Lossless, 8 bits of codes in all: 9900 x 9900 in some 40 bytes."""
    bits = (f"{0x2f:08b}"[::-1] + f"{side - 1:014b}"[::-1] * 2 + "0000"  # size, no alpha, version
            + "000"  # neither transforms, nor a cache, nor groups of codes
            + ("1" + "0" + "0" + "0") * 5)  # each code: simple, one symbol, of one bit: 0
    bits += "0" * (-len(bits) % 8)
    data = bytes(int(bits[i:i + 8][::-1], 2) for i in range(0, len(bits), 8)) + bytes(8)
    return riff((b"VP8L", data))


def gif_frames(count):
    frame = b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\2\2D\1\0"
    return (b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
            + frame * count + b";")


BOMBS = {
    "JPEG scans": (lambda: jpeg_scans(5000), "101 scans"),
    "JPEG scans of a component": (lambda: jpeg_sequence(5000, 3), "101 scans"),
    "PNG deflated texts": (lambda: png_texts(20, b"\0" + deflated(50)), "bytes of text"),
    "PNG deflated international texts": (
        lambda: png_texts(20, b"\1\0en\0name\0" + deflated(50), b"iTXt"), "bytes of text"),
    "PNG texts": (lambda: png_texts(100000, b"x", b"tEXt"), "1001 text chunks"),
    "PNG profile": (lambda: write_png(SMALL, [(b"iCCP", b"icc\0\0" + deflated(100))]),
                    "bytes of ICC profile"),
    "PNG profiles": (lambda: write_png(SMALL, [(b"iCCP", b"icc\0\0")] * 100000), "1001 text chunks"),
    "JPEG EXIF directories": (lambda: exif_jpeg(exif_directories(2700, 2700)), "65 EXIF directories"),
    "PNG EXIF directories": (lambda: exif_png(exif_directories(5000, 5000)), "65 EXIF directories"),
    "EXIF loop": (lambda: exif_jpeg(LOOP), "EXIF directories"),
    # Nobody looks for it there.
    "EXIF elsewhere": (
        lambda: exif_png(b"\xff\xd8\xff\xe1\xff\0Exif\0\0" + exif_directories(5000, 5000)), None),
    "JPEG EXIF overlapping": (lambda: exif_jpeg(exif_overlapping(2500, 35000)), "bytes of metadata"),
    "PNG EXIF overlapping": (lambda: exif_png(exif_overlapping(4000, MEGABYTE)), "bytes of metadata"),
    "EXIF entries": (lambda: exif_png(exif_overlapping(60000, 4)), "4097 EXIF entries"),
    "TIFF pages": (lambda: tiff_pages(60000, 1000000), "bytes of metadata"),
    "TIFF pages with a profile": (
        lambda: tiff_pages(60000, 1000000, PROFILE), "bytes of metadata in all pages"),
    "TIFF short pages": (lambda: tiff_pages(60000, 5), "20001 pages"),
    "TIFF strips": (lambda: tiff_strips(500, 900000), "bytes of metadata"),
    "TIFF profile": (lambda: write_tiff(SMALL, icc=b"a" * 20 * MEGABYTE), "bytes of ICC profile"),
    "WebP profile": (lambda: riff((b"VP8X", b"\x20" + bytes(9)), (b"ICCP", b"a" * 20 * MEGABYTE),
                                  (PIXEL[:4], PIXEL[8:])), "bytes of ICC profile"),
    "WebP frames": (lambda: webp_frames(100000), "10001 frames"),
    "WebP of one colour": (lambda: webp_of_one_colour(9900), "bytes of memory"),
    "GIF frames": (lambda: gif_frames(500000), None),
}


@pytest.fixture(scope="module")
def narrow(launch):
    """One codec worker, that is looked at, and must survive."""
    with launch("--codecs", "1", "--log-level", "warning") as service:
        assert service.identity(write_png(SMALL)).status == 200
        yield service
        assert service.restarts() == 0, service.tail()


@pytest.mark.parametrize("name", BOMBS)
def test_bomb(narrow, name):
    make, says = BOMBS[name]
    body = make()
    worker, = narrow.workers("codec")
    before, started = worker.peak, time.monotonic()
    answer = narrow.identity(body)
    assert time.monotonic() - started < 60  # 1 s where nothing else runs
    if says:
        slug = "too-many-pixels" if says == "bytes of memory" else "too-complex"
        answer.refused(422, slug, says, "the limit is")
    else:
        assert answer.status in (200, 422), answer
    assert sanitized() or worker.peak - before < 256e6


def test_no_bombs(narrow):
    exif = directories([[(DESCRIPTION, 2, 60000, "tail")]], tail=b"a" * 60000)
    turned = segment(0xe1, imagefiles.exif({0x112: 3}))
    behind_the_last = jpeg_sequence(5000, 1), jpeg_sequence(5000, 1, turned)
    for body in (
            jpeg_scans(90, 1448), jpeg_sequence(90, 3), *behind_the_last, png_texts(900, b"\0" + zlib.compress(b"a" * 1000)),
            png_texts(3, b"\0" + deflated(5)), exif_jpeg(exif), exif_png(exif), webp_frames(100),
            webp_of_one_colour(100), tiff_pages(1000, 100), gif_frames(1000),
            tiff_pages(800, 557168, PROFILE), tiff_pages(100, MEGABYTE),
            with_segments(*[segment(0xe2, b"ICC_PROFILE\0" + bytes(60000))] * 100)):
        answer = narrow.identity(body, format="png")
        assert answer.status == 200, answer


@pytest.mark.parametrize("count", [300, pytest.param(1900, marks=pytest.mark.slow)])
def test_frame_far_on(narrow, count):
    """Honest work is not ended however long it takes: a frame that needs all before it."""
    side = 512
    noise = np.random.default_rng(1).integers(0, 256, (side, side, 3), np.uint8)
    size = struct.pack("<I", side - 1)[:3] * 2
    picture = imagefiles.written(imagefiles.pil(noise), "WEBP", quality=0)[12:]
    body = riff((b"VP8X", b"\2\0\0\0" + size), (b"ANIM", bytes(6)),
                *[(b"ANMF", bytes(6) + size + bytes(4) + picture)] * count)
    assert narrow.identity(body, page=count - 1, format="png").status == 200


def test_body_of_chunks(narrow):
    body = png_header(10, 10) + png_chunk(b"prIv", b"") * 1000000
    assert narrow.post("/v1/filters/box", body, timeout=60).status == 422


@pytest.mark.slow
def test_wrap_of_what_is_whole(launch):
    """A picture that has been decoded whole is not decoded again for the opposite edge's rows."""
    bmp = imagefiles.written(imagefiles.pil(np.zeros((5000, 5000, 1), np.uint8)), "BMP")
    target = "/v1/filters/box?format=raw&roi=0,0,5000,2000&border="
    with launch("--codecs", "1") as service:
        worker, = service.workers("codec")
        for body in (webp_of_one_colour(5000), bmp):
            memory = []
            for border in ("replicate", "replicate", "wrap"):  # the first touches the arena
                assert service.post(target + border, body).status == 200
                memory.append(worker.peak)
            assert memory[2] - memory[1] < 20e6, memory
