"""AVIF: read and written, metadata, and small files that ask for much."""
import os
import pathlib
import re
import struct
import subprocess

import numpy as np
import pytest

import heif
import imagefiles
import oracle
from heif import find, ispe, write_avif
from imagefiles import read_vips, write_png
from pixels import random_pixels, smooth
from previews import PROFILE
from service import sanitized

WAVES = smooth(157, 91, 3)


def lost(answer):
    return answer.headers.get("X-Lost", "").split(", ")


def pixels_of(service, body, **options):
    answer = service.identity(body, format="raw", **options)
    assert answer.status == 200, answer
    return answer.pixels


def samples_halved(body):
    """By av1C: chroma_subsampling_x."""
    return bool(find(body, b"meta", b"iprp", b"ipco", b"av1C")[2] & 8)


@pytest.fixture(scope="module", autouse=True)
def offered(shared):
    """The distribution's libvips has it."""
    common = shared.get("/v1/filters").json()["common"]
    assert any("avif" in one.get("choices", ()) for one in common)


# Reading ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("bands", [1, 3, 4])
def test_read(service, bands):
    """The pixels that libvips's own command reads, less colour where alpha is 0."""
    pixels = random_pixels(bands, 61, 47, bands, "u8", bands == 4)
    file = write_avif(write_png(pixels), ".png", "--Q", "90")
    expected = read_vips(file, ".avif", np.uint8, max(bands, 3)).copy()
    if bands == 4:
        expected[expected[:, :, 3] == 0] = 0
    got = pixels_of(service, file)
    assert got.shape == expected.shape
    assert np.abs(got.astype(int) - expected)[:, :, :3].max() <= (bands == 4)


def test_read_12_bits(service):
    """Full scale is 65535, though 12 bits have no such value."""
    pixels = smooth(64, 48, 3, "u16")
    pixels[:8], pixels[-8:] = 65535, 0
    file = write_avif(write_png(pixels), ".png", "--Q", "100")
    got = pixels_of(service, file)
    assert got.dtype == np.uint16 and got[:6].min() == 65535 and got[-6:].max() == 0
    assert np.abs(got.astype(int) - pixels).mean() < 200


def test_brands(service):
    """A general brand first, or no AVIF at all."""
    file = write_avif(write_png(WAVES), ".png")
    general = file[:8] + b"mif1" + file[12:]
    assert b"avif" in general[12:32]
    assert np.array_equal(pixels_of(service, general), pixels_of(service, file))
    other = service.identity(file.replace(b"avif", b"mif2")).refused(415, "not-an-image")
    assert "MP4 or HEIF" in other["detail"] and "AVIF" in other["detail"].split("supported:")[1]


def test_truncated(service):
    file = write_avif(write_png(WAVES), ".png")
    for size in (20, 200, len(file) // 2, len(file) - 9):
        answer = service.identity(file[:size], format="raw")
        assert answer.status in (415, 422) and answer.problem, size
    detail = service.identity(file[:-9]).refused(422, "undecodable")["detail"]
    assert "the file is truncated" in detail


# Writing ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("bands", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["u8", "u16"])
def test_write(service, bands, kind):
    pixels = smooth(157, 91, bands, kind)
    alpha, sizes = bands in (2, 4), []
    full = 255 if kind == "u8" else 65535
    if alpha:
        pixels[:, :, -1] = full
    for quality, mean in ((20, 0.05), (95, 0.006)):
        answer = service.filter(pixels, [("box", {"size": 1})], format="avif", alpha=int(alpha),
                                quality=quality)
        assert answer.status == 200 and answer.type == "image/avif", answer
        got = read_vips(answer.body, ".avif", pixels.dtype, 4 if alpha else 3)
        wanted = pixels if bands > 2 else np.concatenate([pixels[:, :, :1]] * 3 + [pixels[:, :, 1:]], 2)
        assert np.abs(got / full - wanted / full).mean() < mean
        assert ("reduced" in lost(answer)) == (kind == "u16") and "lossy" in lost(answer)
        sizes.append(len(answer.body))
    assert sizes[0] < sizes[1]


def test_format_is_kept(service):
    """And a chosen part of it, and a place in it."""
    file = write_avif(write_png(WAVES), ".png", "--Q", "95")
    for options in ({}, {"roi": "8,8,100,60"}, {"roi": "8,8,100,60", "target": "20,9"}):
        answer = service.identity(file, quality=95, **options)
        assert (answer.status, answer.type) == (200, "image/avif"), answer
        raw = pixels_of(service, file, **options)
        assert np.abs(pixels_of(service, answer.body).astype(int) - raw).mean() < 2


def test_quality_and_subsampling(service):
    """The default is that of the documents."""
    text = service.get("/openapi.json").json()["components"]["parameters"]["quality"]["description"]
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/api.md").read_text()
    assert "60 for AVIF" in text and re.search(r"`quality`.*\b60 for AVIF\b", page)
    body = write_png(WAVES)
    plain = service.identity(body, format="avif")
    explicit = service.identity(body, format="avif", quality=60)
    assert plain.body == explicit.body != service.identity(body, format="avif", quality=63).body
    for options, full in (({}, False), ({"quality": 90}, True), ({"subsample": "off"}, True),
                          ({"quality": 95, "subsample": "on"}, False)):
        answer = service.identity(body, format="avif", **options)
        assert samples_halved(answer.body) != full
        assert lost(answer) == (["lossy"] if full else ["subsampled", "lossy"])


def test_what_it_has_not(service):
    body = write_png(WAVES)
    problem = service.identity(body, format="avif", lossless=1).refused(400, "bad-parameter")
    assert problem["detail"].startswith("avif has no lossless form;")
    assert service.identity(body, format="avif", compression="9").refused(
        400, "bad-parameter")["parameter"] == "compression"
    wide = np.zeros((2, 16385, 3), np.uint8)
    detail = service.filter(wide, [("box", {"size": 1})], format="avif").refused(
        422, "unencodable")["detail"]
    assert "16384" in detail
    assert service.filter(wide[:, :-1], [("box", {"size": 1})], format="avif").status == 200


# Beside the pixels --------------------------------------------------------------------------------

def jpeg(orientation=1):
    exif = imagefiles.Image.Exif()
    exif[0x0112], exif[0x010E] = orientation, "kept unless stripped"
    return imagefiles.written(imagefiles.pil(WAVES), "JPEG", quality=97, subsampling=0,
                              icc_profile=PROFILE, exif=exif.tobytes())


@pytest.mark.parametrize("strip", [0, 1])
def test_metadata(service, strip):
    """Into AVIF, through it, and out of it."""
    into = service.identity(jpeg(), format="avif", quality=95, strip=strip)
    through = service.identity(write_avif(jpeg(), ".jpg", "--Q", "95"), strip=strip)
    for answer in (into, through):
        assert answer.type == "image/avif" and PROFILE in answer.body
        assert (b"kept unless stripped" in answer.body) == (not strip)
    out = imagefiles.read_pil(service.identity(into.body, format="png").body)[1]
    assert out.info.get("icc_profile") == PROFILE
    assert out.getexif().get(0x010E) == (None if strip else "kept unless stripped")


def test_orientation_of_exif(service):
    """Upright in, upright out; in AVIF the tag does not say how to show it. From 8.16 on libvips
    writes a property that does."""
    turned = np.rot90(WAVES, -1)
    answer = service.identity(jpeg(6), format="avif", quality=95)
    got = read_vips(answer.body, ".avif", np.uint8, 3)
    assert got.shape == turned.shape and np.abs(got.astype(int) - turned).mean() < 2
    file = write_avif(jpeg(6), ".jpg", "--Q", "95")
    got, expected = pixels_of(service, file), turned if b"irot" in file else WAVES
    assert got.shape == expected.shape and np.abs(got.astype(int) - expected).mean() < 2


def by_hand(*more, **options):
    """Returns an AVIF of one picture with these properties, and its pixels."""
    data, configuration = heif.picture(write_avif(write_png(WAVES), ".png", "--Q", "95"))
    return heif.heif([(b"av01", data, [ispe(157, 91), heif.box(b"av1C", configuration), *more])],
                     **options)


def test_orientation_of_heif(service):
    """irot and imir are applied once."""
    plain = pixels_of(service, by_hand())
    assert plain.shape == WAVES.shape and np.abs(plain.astype(int) - WAVES).mean() < 2
    turned = pixels_of(service, by_hand(heif.box(b"irot", b"\1")))
    assert np.array_equal(turned, np.rot90(plain))
    mirrored = pixels_of(service, by_hand(heif.box(b"imir", b"\1")))
    assert np.array_equal(mirrored, plain[:, ::-1])


def test_size_after_orientation(service):
    """In whatever order the file has them."""
    data, configuration = heif.picture(write_avif(write_png(WAVES), ".png", "--Q", "95"))
    file = heif.heif([(b"av01", data, [heif.box(b"irot", b"\3"), ispe(157, 91), heif.box(b"av1C", configuration)])])
    assert np.array_equal(pixels_of(service, file), np.rot90(pixels_of(service, by_hand()), 3))


def test_clean_aperture(service):
    """The middle 100x60 are meant to be seen, before the picture is turned."""
    clap = heif.box(b"clap", struct.pack(">8I", 100, 1, 60, 1, 1, 2, 1, 2))
    plain = pixels_of(service, by_hand())
    got = pixels_of(service, by_hand(clap, heif.box(b"irot", b"\1")))
    assert got.shape == (100, 60, 3)
    cut = np.rot90(got, 3)
    assert any(np.array_equal(cut, plain[y:y + 60, x:x + 100]) for y in (15, 16, 17) for x in (28, 29, 30))


def test_pieces(service):
    """A picture's data may lie in several places."""
    whole = by_hand()
    data, _ = heif.picture(write_avif(write_png(WAVES), ".png", "--Q", "95"))
    split = by_hand(split={1: 100})
    assert data[:100] in split and data not in split
    assert np.array_equal(pixels_of(service, split), pixels_of(service, whole))


# A ramp of 64x16 from black to white, of one plane and limited range, which libvips does not write.
GREY = bytes.fromhex(
    "12000a081814fff6d808683132351206a90001e40000e763ee2dc6a00de53ab469a793722ac13325fb62d8bc299d0e34a4d0"
    "1057fa3fda74fb79a32b9631277839f680")


def test_grey_of_limited_range(service):
    """Samples of 16 to 235 are all there is from black to white."""
    file = heif.heif([(b"av01", GREY, [ispe(64, 16), heif.box(b"av1C", b"\x81\0\x1c\0")])])
    got = pixels_of(service, file)
    expected = np.linspace(0, 255, 64)[None, :, None]
    assert got.shape == (16, 64, 3) and np.abs(got - expected).mean() < 2
    assert got[:, 0].max() <= 2 and got[:, -1].min() >= 253


def test_exif_of_a_thumbnail(service):
    """Only the block's own directories are read, whatever looks like others in its thumbnail."""
    noise = b"Exif\0\0II*\0\x08\0\0\0" + (60000).to_bytes(2, "little") + bytes(12 * 4200)
    exif = b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0" + noise
    assert service.identity(exif_item(exif), format="png").status == 200
    assert service.identity(imagefiles.written(imagefiles.pil(WAVES), "JPEG", exif=exif)).status == 200


def test_primary_picture(service):
    """It need not be the first; the others are dropped."""
    def items():
        for source in (WAVES, WAVES[::-1, ::-1]):
            data, configuration = heif.picture(write_avif(write_png(source), ".png", "--Q", "95"))
            yield b"av01", data, [ispe(157, 91), heif.box(b"av1C", configuration)]
    both = list(items())
    for primary, expected in ((1, WAVES), (2, WAVES[::-1, ::-1])):
        answer = service.identity(heif.heif(both, primary=primary), format="raw")
        assert np.abs(answer.pixels.astype(int) - expected).mean() < 2
        assert lost(answer) == ["first-frame"]


# Bombs --------------------------------------------------------------------------------------------

def av01(side, declared=None):
    data, configuration = heif.picture(write_avif(write_png(np.zeros((side, side, 3), np.uint8)), ".png"))
    return b"av01", data, [ispe(declared or side, declared or side), heif.box(b"av1C", configuration)]


def grid(rows, columns, side, declared=None, items=1):
    """Returns a grid of a few pictures, many times."""
    _, data, properties = av01(side, declared)
    width, height = columns * (declared or side), rows * (declared or side)
    shape = struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, width, height)
    return heif.heif([(b"grid", shape, [ispe(width, height)]), *[(b"av01", data, properties)] * items],
                     parts={1: (b"dimg", [2 + i % items for i in range(rows * columns)])})


def exif_item(content, **options):
    return heif.heif([av01(16), (b"Exif", b"\0\0\0\0" + content, [])], parts={2: (b"cdsc", [1])}, **options)


def test_grid(service):
    """One that is honest is read."""
    got = pixels_of(service, grid(1, 3, 64, items=3))
    assert got.shape == (64, 192, 3)


BOMBS = {
    "a part many times": (lambda: grid(4, 256, 1024, 16), "more processor time than one of its size may"),
    "pieces": (lambda: heif.heif([av01(16)], pieces={1: 30}), "times its own size in items"),
    "overlapping items": (lambda: heif.heif([(b"abcd", bytes(100000), [])] * 50, shared=True), "times its own size in items"),
    "EXIF loop": (lambda: exif_item(b"II*\0\x08\0\0\0\x02\0" + (struct.pack("<HHII", 0x8769, 4, 1, 8) * 2)
                                    + b"\0\0\0\0"), "EXIF directories"),
    "profile": (lambda: by_hand(heif.box(b"colr", b"prof" + bytes(20 << 20))), "bytes of ICC profile"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bomb(shared, name):
    """One may cost its worker."""
    body, says = BOMBS[name][0](), BOMBS[name][1]
    detail = shared.identity(body).refused(422, "too-complex")["detail"]
    assert says in detail and "the limit is" in detail


def test_items(shared):
    """libheif looks for each among all, unless it refuses so large a number: that ends."""
    answer = shared.identity(heif.heif([av01(16)] + [(b"abcd", b"x", [])] * 19000))
    assert answer.status == 422 or sanitized(), answer


def test_larger_than_declared(service):
    """Nothing is decoded that takes more memory than has been counted."""
    detail = service.identity(heif.heif([av01(3000, 16)])).refused(422, "undecodable")["detail"]
    assert "the AVIF decoder says" in detail


def test_missing_parts(service):
    service.identity(heif.heif([(b"grid", b"\0\0\xff\xff\0\x10\0\x10", [ispe(16, 16)]), av01(16)],
                               parts={1: (b"dimg", [2] * 5000)})).refused(422, "undecodable")


def test_declared_larger_than_allowed(service):
    """Its whole size counts, as it is not decoded row by row."""
    detail = service.identity(heif.heif([av01(64, 12000)])).refused(422, "too-many-pixels")["detail"]
    assert "cannot be decoded row by row" in detail


def test_memory_of_the_encoder(launch):
    """More than the worker may have is not begun."""
    with launch("--codecs", "1", "--codec-memory", "128M") as service:
        pixels = np.zeros((2200, 2000, 1), np.uint8)
        detail = service.filter(pixels, [("box", {"size": 1})], format="avif").refused(
            422, "unencodable")["detail"]
        assert "2000x2200" in detail and "the limit is 134217728" in detail
        answer = service.filter(pixels[:200], [("box", {"size": 1})], format="avif")
        assert answer.status == 200, answer
        assert pixels_of(service, answer.body).shape == (200, 2000, 3)
        assert not service.restarts()


def test_forbidden(launch):
    with launch("--codecs", "1", "--formats", "png") as service:
        detail = service.identity(write_avif(write_png(WAVES), ".png")).refused(
            415, "not-an-image")["detail"]
        assert "look like AVIF, which this service does not read" in detail
        assert service.identity(write_png(WAVES), format="avif").refused(
            400, "bad-parameter")["value"] == "avif"


@pytest.fixture(scope="module")
def no_codecs(tmp_path_factory):
    library = tmp_path_factory.mktemp("preloaded") / "no_codecs.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library,
                    os.path.join(os.path.dirname(__file__), "no_codecs.c"), "-ldl"], check=True)
    return library


@pytest.mark.parametrize("lacks, read, written", [("encoder", True, False), ("decoder", False, True)])
def test_without_codec(launch, no_codecs, lacks, read, written):
    """libvips has the operations, but libheif lacks their codecs."""
    body = write_avif(write_png(WAVES), ".png")
    with launch("--codecs", "1", environment={"LD_PRELOAD": str(no_codecs), "HEIF_LACKS": lacks,
                                              "ASAN_OPTIONS": "verify_asan_link_order=0"}) as service:
        offered, = (one["choices"] for one in service.get("/v1/filters").json()["common"]
                    if one["name"] == "format")
        assert ("avif" in offered) == written and "png" in offered
        answer = service.identity(write_png(WAVES), format="avif")
        assert answer.status == 200 if written else answer.refused(400, "bad-parameter")
        answer = service.identity(body, format="png")
        assert answer.status == 200 if read else answer.refused(415, "not-an-image")
        assert not service.restarts()


def test_filtered(service):
    """As any other image of these pixels."""
    file = write_avif(write_png(WAVES), ".png")
    pixels = pixels_of(service, file)
    answer = service.post("/v1/filters/gaussian?sigma=2&format=raw", file)
    oracle.check(answer.pixels, oracle.filtered(pixels, [("gaussian", {"sigma": 2})], "replicate"))
