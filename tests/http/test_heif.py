"""HEIF: AVIF read and written, HEIC read; metadata, and small files that ask for much."""
import functools
import pathlib
import struct
import subprocess

import numpy as np
import pytest

import heif
import imagefiles
from heif import find, ispe
from imagefiles import by_vips, read_vips, write_png
from pixels import random_pixels, smooth, visible
from previews import PROFILE
from service import sanitized

WAVES = smooth(157, 91, 3)


@functools.cache
def waves():
    return by_vips(write_png(WAVES), ".png", ".avif[Q=95,effort=0]")


@pytest.mark.parametrize("form", [".avif", ".heic"])
@pytest.mark.parametrize("bands", [1, 3, 4])
def test_read(service, form, bands):
    """The pixels that libvips's own command reads, less colour where alpha is 0."""
    pixels = random_pixels(bands, 61, 47, bands, "u8", bands == 4)
    file = by_vips(write_png(pixels), ".png", f"{form}[Q=90]")
    expected = visible(read_vips(file, form, np.uint8, max(bands, 3)), bands == 4)
    got = service.decoded(file)
    assert got.shape == expected.shape
    assert np.abs(got.astype(int) - expected)[:, :, :3].max() <= (bands == 4)


def test_read_12_bits(service):
    """Full scale is 65535, though 12 bits have no such value."""
    pixels = smooth(64, 48, 3, "u16")
    pixels[:8], pixels[-8:] = 65535, 0
    file = by_vips(write_png(pixels), ".png", ".avif[Q=100,effort=0]")
    got = service.decoded(file)
    assert got.dtype == np.uint16 and got[:6].min() == 65535 and got[-6:].max() == 0
    assert np.abs(got.astype(int) - pixels).mean() < 200


def test_brands(service):
    """A general brand first, or no AVIF at all."""
    general = waves()[:8] + b"mif1" + waves()[12:]
    assert b"avif" in general[12:32]
    assert np.array_equal(service.decoded(general), service.decoded(waves()))
    other = service.identity(waves().replace(b"avif", b"mif2")).refused(415, "not-an-image")
    assert "MP4 or HEIF" in other["detail"] and "AVIF" in other["detail"].split("supported:")[1]


def test_truncated(service):
    service.identity(waves()[:-9]).refused(422, "undecodable", "the file is truncated")


@pytest.mark.parametrize("bands, kind", [(1, "u16"), (2, "u8"), (3, "u8"), (4, "u16")])
def test_write(service, bands, kind):
    pixels = smooth(157, 91, bands, kind)
    alpha, sizes = bands in (2, 4), []
    full = 255 if kind == "u8" else 65535
    if alpha:
        pixels[:, :, -1] = full
    wanted = pixels if bands > 2 else np.concatenate([pixels[:, :, :1]] * 3 + [pixels[:, :, 1:]], 2)
    for quality, mean in ((20, 0.05), (95, 0.006)):
        answer = service.filter(pixels, [("box", {"size": 1})], format="avif", alpha=int(alpha),
                                quality=quality)
        assert answer.status == 200 and answer.type == "image/avif", answer
        got = read_vips(answer.body, ".avif", pixels.dtype, 4 if alpha else 3)
        assert np.abs(got / full - wanted / full).mean() < mean
        assert ("reduced" in answer.lost) == (kind == "u16") and "lossy" in answer.lost
        sizes.append(len(answer.body))
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("options", [{}, {"roi": "8,8,100,60"},
                                     {"roi": "8,8,100,60", "target": "20,9"}])
def test_format_is_kept(service, options):
    answer = service.identity(waves(), quality=95, **options)
    assert (answer.status, answer.type) == (200, "image/avif"), answer
    raw = service.decoded(waves(), **options)
    assert np.abs(service.decoded(answer.body).astype(int) - raw).mean() < 2


@pytest.mark.parametrize("options, full", [
    ({}, False), ({"quality": 90}, True), ({"subsample": "off"}, True),
    ({"quality": 95, "subsample": "on"}, False)])
def test_subsampling(service, options, full):
    answer = service.identity(write_png(WAVES), format="avif", **options)
    halved = find(answer.body, b"meta", b"iprp", b"ipco", b"av1C")[2] & 8  # chroma_subsampling_x
    assert bool(halved) != full
    assert answer.lost == (["lossy"] if full else ["subsampled", "lossy"])


# Beside the pixels --------------------------------------------------------------------------------

def jpeg(orientation=1):
    exif = imagefiles.exif({0x0112: orientation, 0x010E: "kept unless stripped"})
    return imagefiles.written(imagefiles.pil(WAVES), "JPEG", quality=97, subsampling=0,
                              icc_profile=PROFILE, exif=exif)


@pytest.mark.parametrize("strip", [0, 1])
def test_metadata(service, strip):
    into = service.identity(jpeg(), format="avif", quality=95, strip=strip)
    through = service.identity(by_vips(jpeg(), ".jpg", ".avif[Q=95,effort=0]"), strip=strip)
    for answer in (into, through):
        assert answer.type == "image/avif" and PROFILE in answer.body
        assert (b"kept unless stripped" in answer.body) == (not strip)
    out = imagefiles.read_pil(service.identity(into.body, format="png").body)[1]
    assert out.info.get("icc_profile") == PROFILE
    assert out.getexif().get(0x010E) == (None if strip else "kept unless stripped")


def test_orientation_of_exif(service):
    """Upright in, upright out. Only from 8.16 on libvips writes a property that turns an AVIF."""
    turned = np.rot90(WAVES, -1)
    answer = service.identity(jpeg(6), format="avif", quality=95)
    got = read_vips(answer.body, ".avif", np.uint8, 3)
    assert got.shape == turned.shape and np.abs(got.astype(int) - turned).mean() < 2
    file = by_vips(jpeg(6), ".jpg", ".avif[Q=95,effort=0]")
    got, expected = service.decoded(file), turned if b"irot" in file else WAVES
    assert got.shape == expected.shape and np.abs(got.astype(int) - expected).mean() < 2


def item(file=None, size=(157, 91), before=(), after=()):
    """Returns the picture of a file as an item, with properties before and after its own."""
    data, configuration = heif.picture(file or waves())
    return b"av01", data, [*before, ispe(*size), heif.box(b"av1C", configuration), *after]


def by_hand(*properties, **options):
    return heif.heif([item(after=properties)], **options)


def test_orientation_of_heif(service):
    """irot and imir are applied once, and irot to a size that the file tells after it, too."""
    plain = service.decoded(by_hand())
    assert plain.shape == WAVES.shape and np.abs(plain.astype(int) - WAVES).mean() < 2
    turned = service.decoded(by_hand(heif.box(b"irot", b"\1")))
    assert np.array_equal(turned, np.rot90(plain))
    mirrored = service.decoded(by_hand(heif.box(b"imir", b"\1")))
    assert np.array_equal(mirrored, plain[:, ::-1])
    turned = service.decoded(heif.heif([item(before=[heif.box(b"irot", b"\3")])]))
    assert np.array_equal(turned, np.rot90(plain, 3))


def test_clean_aperture(service):
    """The middle 100x60 are meant to be seen, before the picture is turned."""
    clap = heif.box(b"clap", struct.pack(">8I", 100, 1, 60, 1, 1, 2, 1, 2))
    plain = service.decoded(by_hand())
    cut = np.rot90(service.decoded(by_hand(clap, heif.box(b"irot", b"\1"))), 3)
    assert cut.shape == (60, 100, 3)
    assert any(np.array_equal(cut, plain[y:y + 60, x:x + 100])
               for y in (15, 16, 17) for x in (28, 29, 30))


def test_pieces(service):
    split = by_hand(split={1: 100})
    data, _ = heif.picture(waves())
    assert data[:100] in split and data not in split
    assert np.array_equal(service.decoded(split), service.decoded(by_hand()))


# A ramp of 64x16 from black to white, of one plane and limited range, which libvips does not write.
GREY = bytes.fromhex(
    "12000a081814fff6d808683132351206a90001e40000e763ee2dc6a00de53ab469a793722ac13325fb62d8bc299d0e34a4d0"
    "1057fa3fda74fb79a32b9631277839f680")


def test_grey_of_limited_range(service):
    """Samples of 16 to 235 are all there is from black to white."""
    file = heif.heif([(b"av01", GREY, [ispe(64, 16), heif.box(b"av1C", b"\x81\0\x1c\0")])])
    got = service.decoded(file)
    expected = np.linspace(0, 255, 64)[None, :, None]
    assert got.shape == (16, 64, 3) and np.abs(got - expected).mean() < 2
    assert got[:, 0].max() <= 2 and got[:, -1].min() >= 253


def test_exif_of_a_thumbnail(service):
    """Only the block's own directories are read, whatever looks like others in its thumbnail."""
    noise = b"Exif\0\0II*\0\x08\0\0\0" + (60000).to_bytes(2, "little") + bytes(12 * 4200)
    exif = b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0" + noise
    for file in (exif_item(exif), imagefiles.written(imagefiles.pil(WAVES), "JPEG", exif=exif)):
        assert service.identity(file, format="png").status == 200


def test_primary_picture(service):
    """It need not be the first; the others are dropped."""
    both = [item(), item(by_vips(write_png(WAVES[::-1, ::-1]), ".png", ".avif[Q=95,effort=0]"))]
    for primary, expected in ((1, WAVES), (2, WAVES[::-1, ::-1])):
        answer = service.identity(heif.heif(both, primary=primary), format="raw")
        assert np.abs(answer.pixels.astype(int) - expected).mean() < 2
        assert answer.lost == ["first-frame"]


# Bombs --------------------------------------------------------------------------------------------

def av01(side, declared=None):
    file = by_vips(write_png(np.zeros((side, side, 3), np.uint8)), ".png", ".avif[Q=50,effort=0]")
    return item(file, (declared or side, declared or side))


def grid(rows, columns, side, declared=None, items=1):
    """Returns a grid of a few pictures, many times."""
    width, height = columns * (declared or side), rows * (declared or side)
    shape = struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, width, height)
    return heif.heif([(b"grid", shape, [ispe(width, height)]), *[av01(side, declared)] * items],
                     parts={1: (b"dimg", [2 + i % items for i in range(rows * columns)])})


def exif_item(content):
    return heif.heif([av01(16), (b"Exif", bytes(4) + content, [])], parts={2: (b"cdsc", [1])})


def test_grid(service):
    """One that is honest is read."""
    assert service.decoded(grid(1, 3, 64, items=3)).shape == (64, 192, 3)


LOOP = b"II*\0\x08\0\0\0\x02\0" + (struct.pack("<HHII", 0x8769, 4, 1, 8) * 2) + b"\0\0\0\0"
BOMBS = {
    "a part many times": (lambda: grid(4, 256, 1024, 16), "too-complex",
                          "more processor time than one of its size may"),
    "pieces": (lambda: heif.heif([av01(16)], pieces={1: 30}), "too-complex",
               "times its own size in items"),
    "overlapping items": (lambda: heif.heif([(b"abcd", bytes(100000), [])] * 50, shared=True),
                          "too-complex", "times its own size in items"),
    "EXIF loop": (lambda: exif_item(LOOP), "too-complex", "EXIF directories"),
    "profile": (lambda: by_hand(heif.box(b"colr", b"prof" + bytes(20 << 20))), "too-complex",
                "bytes of ICC profile"),
    "larger than declared": (lambda: heif.heif([av01(3000, 16)]), "undecodable",
                             "the AVIF decoder says"),
    "missing parts": (lambda: heif.heif(
        [(b"grid", b"\0\0\xff\xff\0\x10\0\x10", [ispe(16, 16)]), av01(16)],
        parts={1: (b"dimg", [2] * 5000)}), "undecodable", ""),
    # Its whole size counts.
    "declared larger than allowed": (lambda: heif.heif([av01(64, 12000)]), "too-many-pixels",
                                     "cannot be decoded row by row"),
}


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.slow) if name == "a part many times" else name for name in BOMBS])
def test_bomb(shared, name):
    """The first may cost its worker."""
    body, slug, says = BOMBS[name]
    before = shared.restarts()
    limit = "the limit is" if slug == "too-complex" else ""
    shared.identity(body()).refused(422, slug, says, limit)
    assert shared.restarts() == before or name == "a part many times"


def test_items(shared):
    """libheif looks for each among all, unless it refuses so large a number: that ends."""
    answer = shared.identity(heif.heif([av01(16)] + [(b"abcd", b"x", [])] * 19000))
    assert answer.status == 422 or sanitized(), answer


def test_memory_of_the_encoder(launch):
    """More than the worker may have is not begun."""
    with launch("--codecs", "1", "--codec-memory", "128M") as service:
        pixels = np.zeros((2200, 2000, 1), np.uint8)
        answer = service.filter(pixels, [("box", {"size": 1})], format="avif")
        answer.refused(422, "unencodable", "2000x2200", "the limit is 134217728")
        answer = service.filter(pixels[:200], [("box", {"size": 1})], format="avif")
        assert service.decoded(answer.body).shape == (200, 2000, 3)
        assert not service.restarts()


@pytest.fixture(scope="module")
def no_codecs(tmp_path_factory):
    library = tmp_path_factory.mktemp("preloaded") / "no_codecs.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library,
                    pathlib.Path(__file__).with_name("no_codecs.c"), "-ldl"], check=True)
    return library


@pytest.mark.parametrize("lacks, read, written", [("encoder", True, False), ("decoder", False, True)])
def test_without_codec(launch, no_codecs, lacks, read, written):
    """libvips has the operations, but libheif lacks their codecs."""
    with launch("--codecs", "1", environment={"LD_PRELOAD": str(no_codecs), "HEIF_LACKS": lacks,
                                              "ASAN_OPTIONS": "verify_asan_link_order=0"}) as service:
        offered, = (one["choices"] for one in service.get("/v1/filters").json()["common"]
                    if one["name"] == "format")
        assert ("avif" in offered) == written and "png" in offered
        answer = service.identity(write_png(WAVES), format="avif")
        assert answer.status == 200 if written else answer.refused(400, "bad-parameter")
        answer = service.identity(waves(), format="png")
        assert answer.status == 200 if read else answer.refused(415, "not-an-image")
        assert not service.restarts()


# HEIC ---------------------------------------------------------------------------------------------

WIDE = smooth(128, 64, 3)


def write_heic(pixels):
    return by_vips(write_png(pixels), ".png", ".heic[Q=50]")


def hevc(pixels, size=None, *properties):
    """Returns a coded picture as an item, which says that it has this size."""
    file, (height, width) = write_heic(pixels), pixels.shape[:2]
    data = find(file, b"mdat")
    configuration = heif.box(b"hvcC", find(file, b"meta", b"iprp", b"ipco", b"hvcC"))
    return (b"hvc1", data[:int.from_bytes(data[:4], "big") + 4],
            [ispe(*(size or (width, height))), configuration, *properties])


def heic(items, **options):
    return heif.heif(items, **options).replace(b"avif\0\0\0\0avif", b"heic\0\0\0\0heic")


@pytest.mark.parametrize("bands, name", [(3, "jpeg"), (4, "png")])
def test_answers_are_in_another_format(service, bands, name):
    file = write_heic(smooth(157, 91, bands))
    assert service.identity(file).type == f"image/{name}"
    service.identity(file, format="heic").refused(400, "bad-parameter")


def test_smaller_than_coded(service):
    body = heic([hevc(np.zeros((1100, 1100, 3), np.uint8), (16, 16))])
    service.identity(body).refused(422, "undecodable", "a coded picture is larger than the image")


@pytest.mark.slow
def test_gain_map(service):
    """As phones add it: an auxiliary picture, of its own size and configuration, is not shown."""
    tiles = [hevc(np.ascontiguousarray(WIDE[:, x:x + 64])) for x in (0, 64)]
    shape = b"\0\0\0\1" + (128).to_bytes(2, "big") + (64).to_bytes(2, "big")
    kind = heif.full(b"auxC", 0, b"urn:com:apple:photo:2020:aux:hdrgainmap\0")
    body = heic([(b"grid", shape, [ispe(128, 64)]), *tiles,
                 hevc(np.full((2200, 2200, 3), 90, np.uint8), None, kind)],
                parts={1: (b"dimg", [2, 3]), 4: (b"auxl", [1])})
    got = service.decoded(body)
    assert got.shape == WIDE.shape and np.abs(got.astype(int) - WIDE).mean() < 8
