"""A client's wishes for the coding of its answer, and the refusals if the format cannot fulfil
them."""
import io
import pathlib
import re
import struct

import numpy as np
import pytest
from PIL import Image

import imagefiles
from imagefiles import read_pil, read_vips, write_png, write_tiff
from pixels import random_pixels, smooth
from previews import PROFILE

COLOUR, GREY = random_pixels(1, 61, 47, 3, "u8"), random_pixels(2, 61, 47, 1, "u8")
PNG, TIFF = write_png(COLOUR), write_tiff(COLOUR)
WAVES = smooth(200, 150, 3)


def coded(service, body, **options):
    answer = service.identity(body, **options)
    assert answer.status == 200, answer
    return answer


def lost(answer):
    return set(filter(None, answer.headers.get("X-Lost", "").split(", ")))


def full_chroma(body):
    """Tells whether all components of a JPEG are sampled alike."""
    return len({layer[1:3] for layer in Image.open(io.BytesIO(body)).layer}) == 1


# lossless -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("bands", [3, 4])
def test_lossless_webp(service, bands):
    pixels = random_pixels(3, 61, 47, bands, "u8", bands == 4)
    answer = coded(service, write_png(pixels), format="webp", lossless=1)
    seen = pixels.copy()
    if bands == 4:
        seen[seen[:, :, 3] == 0] = 0
    assert b"VP8L" in answer.body and np.array_equal(read_pil(answer.body)[0], seen)
    assert not lost(answer)
    assert lost(coded(service, PNG, format="webp")) == {"lossy", "subsampled"}


def test_lossless_keeps_hidden_colour(service):
    """Colours at alpha 0 without a filter: stills keep them; for frames the answer says that they
    are lost."""
    pixels = random_pixels(3, 61, 47, 4, "u8", True)
    assert np.any(pixels[pixels[:, :, 3] == 0])
    path = "/v1/filters/box?size=3&regions=1,1,2,2&lossless=1&format="
    inside = np.zeros((47, 61), bool)
    inside[1:3, 1:3] = True
    for name in ("webp", "png", "tiff", "raw"):
        answer = service.post(path + name, write_png(pixels))
        got = answer.pixels if name == "raw" else read_pil(answer.body)[0]
        assert np.array_equal(got[~inside], pixels[~inside]), name
        assert not lost(answer)
    frames = imagefiles.written(Image.fromarray(pixels), "PNG", save_all=True,
                                append_images=[Image.fromarray(pixels[::-1])])
    assert lost(service.post(f"{path}webp&pages=all", frames)) == {"hidden"}
    for options in ("png&pages=all", "webp&page=1"):
        assert not lost(service.post(path + options, frames))
    opaque = imagefiles.written(Image.fromarray(pixels[:, :, :3]), "GIF", save_all=True,
                                append_images=[Image.fromarray(pixels[::-1, :, :3])])
    assert "hidden" not in lost(service.post(f"{path}webp&pages=all", opaque))


def test_webp_with_metadata(service):
    """From all ways to metadata, our own readers' and libvips's, and without it."""
    pixels, exif = random_pixels(3, 31, 17, 3, "u8"), Image.Exif()
    exif[0x010E] = "a description"
    for name in ("PNG", "JPEG", "TIFF", "WEBP", "BMP"):
        options = {} if name == "BMP" else {"icc_profile": PROFILE, "exif": exif.tobytes()}
        body = imagefiles.written(imagefiles.pil(pixels), name, **options,
                                  **({} if name == "WEBP" else {"dpi": (254, 127)}))
        for strip in (0, 1):
            image = read_pil(coded(service, body, format="webp", lossless=1, strip=strip).body)[1]
            assert image.info.get("icc_profile") == options.get("icc_profile"), name
            tags = image.getexif()
            if name != "WEBP":
                assert [round(float(tags[tag])) for tag in (0x011A, 0x011B)] == [254, 127], name
            if name not in ("BMP", "TIFF"):
                assert (tags.get(0x010E) == "a description") == (not strip), name


@pytest.mark.parametrize("name", ["png", "tiff", "bmp", "ppm", "raw"])
def test_lossless_where_all_is(service, name):
    assert coded(service, PNG, format=name, lossless=1).body == coded(service, PNG, format=name).body


@pytest.mark.parametrize("name", ["jpeg", "gif"])
def test_no_lossless_form(service, name):
    for options in ({"format": name}, {}):
        body = imagefiles.written(Image.fromarray(COLOUR), name.upper())
        problem = service.identity(body, lossless=1, **options).refused(400, "bad-parameter")
        assert (problem["parameter"], problem["value"]) == ("lossless", "1")
        assert problem["detail"] == f"{name} has no lossless form; png, webp, tiff, pnm, bmp, jxl, raw have one"
    coded(service, PNG, format=name, lossless=0)


def test_lossless_has_no_quality(service):
    problem = service.identity(PNG, format="webp", lossless=1, quality=80).refused(
        400, "bad-parameter")
    assert (problem["parameter"], problem["value"]) == ("quality", "80")


# quality ------------------------------------------------------------------------------------------

def test_default_quality(service):
    """That of docs/api.md and of the parameter's own text."""
    text = service.get("/openapi.json").json()["components"]["parameters"]["quality"]["description"]
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/api.md").read_text()
    for name, default in (("jpeg", 85), ("webp", 80)):
        assert str(default) in text and re.search(rf"`quality`.*\b{default}\b", page)
        plain = coded(service, write_png(WAVES), format=name).body
        assert plain == coded(service, write_png(WAVES), format=name, quality=default).body
        assert plain != coded(service, write_png(WAVES), format=name, quality=default + 3).body


# compression --------------------------------------------------------------------------------------

def test_compression_of_png(service):
    pixels = smooth(300, 200, 3)
    sizes = {}
    for level in range(10):
        answer = coded(service, write_png(pixels), compression=level)
        assert np.array_equal(imagefiles.read_png(answer.body), pixels) and not lost(answer)
        sizes[level] = len(answer.body)
    assert sizes[0] > pixels.size > sizes[1] >= sizes[9] and len(set(sizes.values())) > 4
    assert sizes[9] <= len(coded(service, write_png(pixels)).body) <= sizes[1]


@pytest.mark.parametrize("kind", ["u8", "u16", "f32"])
@pytest.mark.parametrize("method, tag", [("none", 1), ("lzw", 5), ("deflate", 8), ("zstd", 50000)])
def test_compression_of_tiff(service, method, tag, kind):
    pixels = smooth(300, 200, 3, kind)
    pixels[:] = pixels[:, :1]  # each row of one colour
    answer = coded(service, write_tiff(pixels), compression=method)
    assert np.array_equal(read_vips(answer.body, ".tif", pixels.dtype, 3), pixels)
    assert not lost(answer)
    start, = struct.unpack("<I", answer.body[4:8])
    count, = struct.unpack("<H", answer.body[start:start + 2])
    entries = [struct.unpack("<HHII", answer.body[start + 2 + 12 * i:start + 14 + 12 * i])
               for i in range(count)]
    assert [value & 0xFFFF for number, _, _, value in entries if number == 259] == [tag]
    assert (len(answer.body) < 0.2 * pixels.nbytes) == (method != "none")
    assert method != "none" or answer.body == coded(service, write_tiff(pixels)).body


def test_compression_of_part(service):
    """Rows that come late, and a whole image around them."""
    pixels = smooth(600, 500, 3, "u16")
    for options in ({"roi": "7,200,100,150"}, {"roi": "7,200,100,150", "target": "300,20"}):
        plain = coded(service, write_tiff(pixels), **options)
        small = coded(service, write_tiff(pixels), compression="deflate", **options)
        width, height = plain.kind[:2]
        assert len(small.body) < len(plain.body)
        assert np.array_equal(*(read_vips(answer.body, ".tif", np.uint16, 3)
                                for answer in (plain, small))), (width, height)


@pytest.mark.parametrize("name, value", [
    ("png", "lzw"), ("png", "none"), ("tiff", "6"), ("tiff", "0"), ("jpeg", "9"), ("webp", "none"),
    ("gif", "lzw"), ("ppm", "1"), ("raw", "zstd")])
def test_compression_that_a_format_has_not(service, name, value):
    problem = service.identity(PNG, format=name, compression=value).refused(400, "bad-parameter")
    assert (problem["parameter"], problem["value"]) == ("compression", value)
    assert "0 to 9 for png, and none, lzw, deflate or zstd for tiff" in problem["detail"]


# subsample ----------------------------------------------------------------------------------------

def jpeg(subsampling, quality=75):
    return imagefiles.written(imagefiles.pil(WAVES), "JPEG", subsampling=subsampling,
                              quality=quality)


@pytest.mark.parametrize("body, options, full", [
    (jpeg(0), {}, True), (jpeg(0), {"subsample": "auto"}, True), (jpeg(0), {"quality": 30}, True),
    (jpeg(1), {}, False), (jpeg(2), {}, False), (jpeg(2), {"quality": 90}, True),
    (jpeg(0), {"subsample": "on"}, False), (jpeg(2), {"subsample": "off"}, True),
    (jpeg(2), {"subsample": "on", "quality": 95}, False), (PNG, {"format": "jpeg"}, False),
    (PNG, {"format": "jpeg", "subsample": "off"}, True),
])
def test_subsample(service, body, options, full):
    answer = coded(service, body, **options)
    assert full_chroma(answer.body) == full
    assert lost(answer) == ({"lossy"} if full else {"lossy", "subsampled"})


def test_subsample_of_grey(service):
    """There is no colour to lose."""
    for value in ("auto", "on", "off"):
        assert lost(coded(service, write_png(GREY), format="jpeg", subsample=value)) == {"lossy"}


@pytest.mark.parametrize("name, options, value", [
    ("png", {}, "on"), ("tiff", {}, "on"), ("gif", {}, "on"), ("raw", {}, "on"),
    ("webp", {"lossless": 1}, "on"), ("webp", {}, "off")])
def test_subsample_that_a_format_has_not(service, name, options, value):
    problem = service.identity(PNG, format=name, subsample=value, **options).refused(
        400, "bad-parameter")
    assert (problem["parameter"], problem["value"]) == ("subsample", value)
    assert name in problem["detail"]


def test_subsample_that_is_so_anyway(service):
    for name, value in (("webp", "on"), ("png", "off"), ("tiff", "auto")):
        plain = coded(service, PNG, format=name).body
        assert coded(service, PNG, format=name, subsample=value).body == plain


# background ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("bands", [2, 4])
@pytest.mark.parametrize("kind", ["u8", "u16", "f32"])
@pytest.mark.parametrize("text, colour", [
    (None, (0, 0, 0)), ("0", (0, 0, 0)), ("255", (255,) * 3), ("200,100,0", (200, 100, 0))])
def test_background(service, bands, kind, text, colour):
    """Half of it clear, a quarter half clear, of one colour."""
    full = {"u8": 255, "u16": 65535, "f32": 1}[kind]
    pixels = np.full((64, 64, bands), 0.5 * full).astype({"u8": "u1", "u16": "u2", "f32": "f4"}[kind])
    pixels[:, :32, -1], pixels[:32, 32:, -1], pixels[32:, 32:, -1] = 0, full, full / 2
    options = {} if text is None else {"background": text}
    answer = service.filter(pixels, [("convolve", {"kernel": "1"})], format="jpeg", alpha=1,
                            quality=95, **options)
    if bands == 2 and text and "," in text:
        problem = answer.refused(400, "bad-parameter")
        assert (problem["parameter"], problem["value"]) == ("background", text)
        assert "grey" in problem["detail"]
        return
    assert answer.status == 200, answer
    assert "flattened" in lost(answer)
    got = read_pil(answer.body)[0].astype(float)
    expected = np.array(colour[:bands - 1], float)
    assert abs(got[:, :24] - expected).max() < 4
    assert abs(got[:24, 40:] - 127.5).max() < 4
    assert abs(got[40:, 40:] - (127.5 + expected) / 2).max() < 5


def test_background_of_what_is_not_flattened(service):
    """It is for a batch of all sorts of files: where there is no alpha to blend, it changes nothing."""
    clear = write_png(random_pixels(4, 20, 20, 4, "u8", True))
    for body, name in ((PNG, "jpeg"), (clear, "png"), (clear, "webp"), (write_png(GREY), "jpeg")):
        plain = coded(service, body, format=name)
        assert coded(service, body, format=name, background="9,8,7").body == plain.body


@pytest.mark.parametrize("text", ["", "white", "256", "1,2", "1,2,3,4", "-1", "1,2,256", "1.5",
                                  "1,2,", ",,", "0x10", "99999999999"])
def test_no_background(service, text):
    problem = service.post(f"/v1/filters/box?format=jpeg&background={text}", PNG).refused(
        400, "bad-parameter")
    assert (problem["parameter"], problem["value"]) == ("background", text)
    assert "255" in problem["detail"]
