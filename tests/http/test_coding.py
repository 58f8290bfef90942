"""A client's wishes for the coding of its answer, and refusals where the format has no such."""
import io
import re

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

import imagefiles
import oracle
from imagefiles import read_pil, read_vips, write_png, write_tiff
from pixels import pairwise, random_pixels, smooth
from service import REPOSITORY

COLOUR, GREY = random_pixels(1, 61, 47, 3, "u8"), random_pixels(2, 61, 47, 1, "u8")
PNG = write_png(COLOUR)
WAVES = smooth(200, 150, 3)


def test_lossless_keeps_hidden_colour(service):
    """Stills keep colours at alpha 0 where no filter is; answers with frames say that they do not."""
    pixels = random_pixels(3, 61, 47, 4, "u8", True)
    assert np.any(pixels[pixels[:, :, 3] == 0])
    path = "/v1/filters/box?size=3&regions=1,1,2,2&lossless=1&format="
    outside = np.ones((47, 61), bool)
    outside[1:3, 1:3] = False
    for name in ("webp", "png", "tiff", "raw"):
        answer = service.post(path + name, write_png(pixels))
        got = answer.pixels if name == "raw" else read_pil(answer.body)[0]
        assert np.array_equal(got[outside], pixels[outside]) and not answer.lost, name
    frames, opaque = ([Image.fromarray(frame) for frame in (image, image[::-1])]
                      for image in (pixels, pixels[:, :, :3]))
    png = imagefiles.several(frames, "PNG")
    for options, lost in (("webp&pages=all", ["hidden"]), ("png&pages=all", []),
                          ("webp&page=1", [])):
        assert service.post(path + options, png).lost == lost
    gif = imagefiles.several(opaque, "GIF")
    assert "hidden" not in service.post(f"{path}webp&pages=all", gif).lost


CLEAR = write_png(random_pixels(4, 20, 20, 4, "u8", True))


@pytest.mark.parametrize("body, options", [
    *((PNG, {"format": name, "lossless": 1}) for name in ("png", "tiff", "bmp", "ppm", "raw")),
    *((PNG, {"format": name, "lossless": 0}) for name in ("jpeg", "gif")),
    *((PNG, {"format": name, "subsample": value}) for name, value in (
        ("webp", "on"), ("png", "off"), ("tiff", "auto"))),
    # A batch may have all sorts of files: these have no alpha to blend.
    *((body, {"format": name, "background": "9,8,7"}) for body, name in (
        (PNG, "jpeg"), (CLEAR, "png"), (CLEAR, "webp"), (write_png(GREY), "jpeg")))],
    ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_what_is_so_anyway(service, body, options):
    plain = service.converted(body, format=options["format"])
    assert service.converted(body, **options).body == plain.body


LOSSLESS = "{} has no lossless form; png, webp, tiff, pnm, bmp, jxl, raw have one"
COMPRESSIONS = "0 to 9 for png, and none, lzw, deflate or zstd for tiff"


@pytest.mark.parametrize("options, parameter, says", [
    *(({"format": name, "lossless": 1}, "lossless", LOSSLESS.format(name))
      for name in ("jpeg", "gif", "avif")),
    ({"format": "webp", "lossless": 1, "quality": 80}, "quality", "lossless=1"),
    *(({"format": name, "compression": value}, "compression", COMPRESSIONS) for name, value in (
        ("png", "lzw"), ("png", "none"), ("tiff", "6"), ("tiff", "0"), ("jpeg", "9"), ("ppm", "1"),
        ("webp", "none"), ("gif", "lzw"), ("raw", "zstd"), ("avif", "9"))),
    *(({"format": name, "subsample": "on"}, "subsample", name)
      for name in ("png", "tiff", "gif", "raw")),
    ({"format": "webp", "lossless": 1, "subsample": "on"}, "subsample", "webp"),
    ({"format": "webp", "subsample": "off"}, "subsample", "webp"),
    *(({"format": "jpeg", "background": text}, "background", "255") for text in (
        "", "white", "256", "1,2", "1,2,3,4", "-1", "1,2,256", "1.5", "1,2,", ",,", "0x10",
        "99999999999")),
], ids=str)
def test_refused(service, options, parameter, says):
    service.identity(PNG, **options).refused(
        400, "bad-parameter", says, parameter=parameter, value=str(options[parameter]))


def test_no_lossless_form_of_the_body(service):
    service.identity(jpeg(0), lossless=1).refused(400, "bad-parameter", LOSSLESS.format("jpeg"))


@pytest.mark.parametrize("name, default", [("jpeg", 85), ("webp", 80), ("avif", 60)])
def test_default_quality(service, name, default):
    """That of docs/api.md and of the parameter's own text."""
    text = service.get("/openapi.json").json()["components"]["parameters"]["quality"]["description"]
    page = (REPOSITORY / "docs/api.md").read_text()
    assert str(default) in text and re.search(rf"`quality`.*\b{default}\b", page)
    plain, explicit, other = (service.converted(write_png(WAVES), format=name, **options).body
                              for options in ({}, {"quality": default}, {"quality": default + 3}))
    assert plain == explicit != other


@pytest.mark.parametrize("kind", ["u8", pytest.param("u16", marks=pytest.mark.slow), "f32"])
@pytest.mark.parametrize("method, tag", [("none", 1), ("lzw", 5), ("deflate", 8), ("zstd", 50000)])
def test_compression_of_tiff(service, method, tag, kind):
    pixels = smooth(300, 200, 3, kind)
    pixels[:] = pixels[:, :1]  # each row of one colour
    answer = service.converted(write_tiff(pixels), compression=method)
    assert np.array_equal(read_vips(answer.body, ".tif", pixels.dtype, 3), pixels)
    assert not answer.lost
    file, tags = io.BytesIO(answer.body), TiffImagePlugin.ImageFileDirectory_v2(answer.body[:8])
    file.seek(tags.next)
    tags.load(file)
    assert tags[259] == tag
    assert (len(answer.body) < 0.2 * pixels.nbytes) == (method != "none")
    assert method != "none" or answer.body == service.converted(write_tiff(pixels)).body


def test_compression_of_part(service):
    """Rows that come late, and a whole image around them."""
    pixels = smooth(600, 500, 3, "u16")
    for target in (None, "300,20"):
        plain, small = (service.converted(write_tiff(pixels), compression=method, target=target,
                              roi="7,200,100,150").body for method in ("none", "deflate"))
        assert len(small) < len(plain)
        assert np.array_equal(*(read_vips(body, ".tif", np.uint16, 3) for body in (plain, small)))


def jpeg(subsampling):
    return imagefiles.written(imagefiles.pil(WAVES), "JPEG", subsampling=subsampling)


@pytest.mark.parametrize("body, options, full", [
    (jpeg(0), {}, True), (jpeg(0), {"subsample": "auto"}, True), (jpeg(0), {"quality": 30}, True),
    (jpeg(1), {}, False), (jpeg(2), {}, False), (jpeg(2), {"quality": 90}, True),
    (jpeg(0), {"subsample": "on"}, False), (jpeg(2), {"subsample": "off"}, True),
    (jpeg(2), {"subsample": "on", "quality": 95}, False), (PNG, {"format": "jpeg"}, False),
    (PNG, {"format": "jpeg", "quality": 89}, False), (PNG, {"format": "jpeg", "quality": 90}, True),
    (PNG, {"format": "jpeg", "subsample": "off"}, True),
    *((write_png(GREY), {"format": "jpeg", "subsample": value}, True)  # no colour to lose
      for value in ("auto", "on", "off")),
])
def test_subsample(service, body, options, full):
    answer = service.converted(body, **options)
    sampled = {layer[1:3] for layer in Image.open(io.BytesIO(answer.body)).layer}
    assert (len(sampled) == 1) == full, "all components are sampled alike"
    assert set(answer.lost) == ({"lossy"} if full else {"lossy", "subsampled"})


@pytest.mark.parametrize("bands, kind, text", pairwise(
    [2, 4], list(oracle.TYPES), [None, "0", "255", "200,100,0"]))
def test_background(service, bands, kind, text):
    """Half of it clear, a quarter half clear, of one colour."""
    full = oracle.FULL_SCALE[kind]
    pixels = np.full((64, 64, bands), 0.5 * full).astype(oracle.TYPES[kind])
    pixels[:, :32, -1], pixels[:32, 32:, -1], pixels[32:, 32:, -1] = 0, full, full / 2
    answer = service.filter(pixels, [("convolve", {"kernel": "1"})], format="jpeg", alpha=1,
                            quality=95, background=text)
    if bands == 2 and text and "," in text:
        answer.refused(400, "bad-parameter", "grey", parameter="background", value=text)
        return
    assert "flattened" in answer.lost
    got = read_pil(answer.body)[0].astype(float)
    expected = np.array((text or "0").split(","), float)
    assert abs(got[:, :24] - expected).max() < 4
    assert abs(got[:24, 40:] - 127.5).max() < 4
    assert abs(got[40:, 40:] - (127.5 + expected) / 2).max() < 5
