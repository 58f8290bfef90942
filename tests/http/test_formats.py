"""Files in and out: every format, the samples that it can hold, metadata, and clients' wishes."""
import io
import itertools
import re
import subprocess

import numpy as np
import pytest
from PIL import Image

import imagefiles
import oracle
from imagefiles import (by_vips, pil, read_pil, read_png, read_pnm, read_vips, several, write_png,
                        write_pnm, write_tiff, written)
from pixels import random_pixels, smooth, visible
from previews import PROFILE
from service import REPOSITORY, raw_kind, request_head

IDENTITY = [("convolve", {"kernel": "1"})]


def noise(bands, kind="u8"):
    return random_pixels(bands, 37, 23, bands, kind, bands in (2, 4))


def close(a, b, mean):
    assert a.shape == b.shape
    error = np.abs(a.astype(float) - b.astype(float)).mean()
    assert error <= mean, f"mean difference {error:.2f}"


def files():
    """Yields (name, file, its pixels)."""
    for kind, bands in itertools.product(("u8", "u16", "f32"), (1, 2, 3, 4)):
        pixels = noise(bands, kind)
        if kind != "f32":
            yield f"PNG, {bands} x {kind}", write_png(pixels), pixels
        if kind != "f32" or bands in (1, 3):
            yield f"TIFF, {bands} x {kind}", write_tiff(pixels, bands in (2, 4)), pixels
    for compression in ("tiff_deflate", "tiff_lzw", "packbits"):
        yield compression, written(pil(noise(3)), "TIFF", compression=compression), noise(3)
    for bands in (3, 4):
        file = written(pil(noise(bands)), "WEBP", lossless=True, exact=True)
        yield f"WebP, {bands}", file, noise(bands)
    yield "interlaced PNG", lambda: by_vips(write_png(noise(1)), ".png", ".png[interlace]"), noise(1)
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)[noise(1)[:, :, 0] % 3]
    yield "palette", written(Image.fromarray(colours).quantize(3), "PNG"), colours
    bits = noise(1) < 128
    for name in ("PNG", "TIFF"):
        yield f"bits of {name}", written(Image.fromarray(bits[:, :, 0]), name), bits * np.uint8(255)
    pixels = random_pixels(4, 400, 300, 1, "u16")  # a file of several strips
    big_endian = written(Image.fromarray(pixels[:, :, 0].astype(">u2")), "TIFF")
    assert big_endian.startswith(b"MM")
    yield "big-endian TIFF", big_endian, pixels


FILES = {name: (file, visible(pixels, pixels.shape[2] in (2, 4))) for name, file, pixels in files()}


@pytest.mark.parametrize("name", FILES)
def test_read(service, name):
    file, pixels = FILES[name]
    assert np.array_equal(service.decoded(file() if callable(file) else file), pixels)


def held():
    """Yields the formats that hold all of an image, and its kind."""
    for kind, bands in itertools.product(("u8", "u16", "f32"), (1, 2, 3, 4)):
        yield "tiff", bands, kind
        if kind != "f32":
            yield "png", bands, kind
        if bands in (1, 3):
            yield "pnm", bands, kind
            yield "pfm" if kind == "f32" else "pgm" if bands == 1 else "ppm", bands, kind


@pytest.mark.parametrize("name, bands, kind", held())
def test_write(service, name, bands, kind):
    pixels, alpha = noise(bands, kind), bands in (2, 4)
    answer = service.filter(pixels, IDENTITY, format=name, alpha=int(alpha))
    assert answer.status == 200 and answer.kind == (37, 23, bands, kind), answer
    if name == "tiff":
        got = read_vips(answer.body, ".tif", pixels.dtype, bands)
        assert np.allclose(got, visible(pixels, alpha), rtol=1e-6, atol=0)
    else:
        got = (read_png if name == "png" else read_pnm)(answer.body)
        assert got.dtype == pixels.dtype and np.array_equal(got, visible(pixels, alpha))


@pytest.mark.parametrize("name, bands", [("jpeg", 1), ("jpeg", 3), ("webp", 3), ("webp", 4)])
def test_write_lossy(service, name, bands):
    pixels = smooth(157, 91, bands)
    sizes = []
    for quality, mean in ((20, 8), (95, 2.5)):
        answer = service.filter(pixels, IDENTITY, format=name, alpha=int(bands == 4),
                                quality=quality)
        assert answer.status == 200 and answer.type == f"image/{name}", answer
        got, image = read_pil(answer.body)
        assert image.format == name.upper()
        close(got, pixels, mean)
        sizes.append(len(answer.body))
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("name, kind", [
    ("jpeg", "u16"), ("webp", "u16"), ("gif", "u8"), ("gif", "u16"),
    ("jpeg", "f32"), ("webp", "f32"), ("png", "f32"), ("gif", "f32")])
def test_write_fewer_bits(service, name, kind):
    """Pixels that a format cannot hold are brought to its range, or to a palette."""
    pixels = smooth(80, 60, 3, kind)
    answer = service.filter(pixels, IDENTITY, format=name)
    assert answer.status == 200, answer
    got = np.asarray(Image.open(io.BytesIO(answer.body)).convert("RGB"))
    close(got / 255, pixels / oracle.FULL_SCALE[kind], 0.06)


def test_half_a_step_is_rounded(service):
    """255 steps of 16 bits are 257 wide, with the eight bits' in their middle."""
    pixels = np.arange(0, 65536, 13, np.uint16)[:5040].reshape(70, 24, 3)
    answer = service.filter(pixels, IDENTITY, format="webp", lossless=1)
    assert np.array_equal(read_pil(answer.body)[0], np.rint(pixels / 257))


def sources():
    deep, wide = random_pixels(5, 61, 47, 3, "u8"), random_pixels(6, 61, 47, 3, "u16")
    floating = np.abs(random_pixels(7, 61, 47, 1, "f32"))
    return {"jpeg": written(pil(smooth(61, 47, 3)), "JPEG"),
            "png": write_png(deep), "png16": write_png(wide), "webp": written(pil(deep), "WEBP"),
            "tiff": write_tiff(deep), "tiff16": write_tiff(wide), "tiff32": write_tiff(floating),
            "gif": written(pil(deep).quantize(64), "GIF"),
            "pnm": write_pnm(deep), "pnm16": write_pnm(wide), "pfm32": write_pnm(floating)}


SOURCES = sources()
SIGNATURES = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG", "webp": b"RIFF", "tiff": (b"II", b"MM"),
              "gif": b"GIF8", "pnm": (b"P5", b"P6"), "pfm": (b"Pf", b"PF")}


@pytest.mark.parametrize("name", SOURCES)
def test_format_is_kept(service, name):
    """Without a wish the answer has the input's format, and as many bits."""
    answer = service.post("/v1/filters/gaussian?sigma=1.5", SOURCES[name])
    assert answer.status == 200, answer
    assert answer.body.startswith(SIGNATURES[name.rstrip("0123456789")])
    assert answer.kind[:2] == (61, 47)
    assert answer.kind[3] == {"16": "u16", "32": "f32"}.get(name[-2:], "u8")
    before, after = service.decoded(SOURCES[name]), service.decoded(answer.body)
    assert before.dtype == after.dtype
    assert after[:, :, 0].std() < before[:, :, 0].std()  # it is blurred


def test_content_decides(service):
    """Declared types are not believed: neither curl's nor a wrong one."""
    for declared in ("application/x-www-form-urlencoded", "image/png", "text/plain",
                     "application/json", "nonsense"):
        answer = service.post("/v1/filters/box", SOURCES["jpeg"],
                              headers={"Content-Type": declared})
        assert answer.status == 200 and answer.type == "image/jpeg", declared


DESCRIPTION = 0x010E


def described(name):
    """Returns a file with a resolution and, where Pillow writes them, a profile and a description."""
    options = {} if name == "WEBP" else {"dpi": (254, 127)}
    if name != "BMP":
        options["icc_profile"] = PROFILE
    if name in ("JPEG", "PNG", "WEBP"):
        options["exif"] = imagefiles.exif({DESCRIPTION: "kept unless stripped"})
    return written(pil(smooth(64, 48, 3)), name, **options)


@pytest.mark.parametrize("name, target", [
    *((name, name) for name in ("JPEG", "PNG", "TIFF", "WEBP")),
    *((name, "WEBP") for name in ("JPEG", "PNG", "TIFF", "BMP")),
    *((name, "PNG") for name in ("TIFF", "BMP"))])
@pytest.mark.parametrize("strip", [0, 1])
def test_metadata(service, name, target, strip):
    """Profile and resolution always stay; the rest goes on request."""
    answer = service.converted(described(name), format=target.lower(), strip=strip)
    picture = read_pil(answer.body)[1]
    tags = picture.getexif()
    assert picture.format == target
    assert picture.info.get("icc_profile") == (None if name == "BMP" else PROFILE)
    if name != "WEBP":
        in_exif = target in ("JPEG", "WEBP")
        resolution = [tags[0x011A], tags[0x011B]] if in_exif else picture.info["dpi"]
        assert resolution == pytest.approx((254, 127), abs=0.6)
    if name in ("JPEG", "PNG", "WEBP"):
        assert tags.get(DESCRIPTION) == (None if strip else "kept unless stripped")


# Losses of an answer's image are named in a header; nothing else is.
COLOUR = random_pixels(1, 40, 30, 3, "u8")
GREY, CLEAR = random_pixels(2, 40, 30, 1, "u8"), random_pixels(3, 40, 30, 4, "u8", True)
WIDE, FLOAT = random_pixels(4, 40, 30, 3, "u16"), random_pixels(5, 40, 30, 3, "f32")


def frames(name, count):
    options = {"lossless": True} if name == "WEBP" else {}
    return several([pil(np.roll(COLOUR, i, 0)) for i in range(count)], name, **options)


@pytest.mark.parametrize("pixels, target, expected", [
    (COLOUR, "png", []), (COLOUR, "tiff", []), (COLOUR, "ppm", []), (COLOUR, "raw", []),
    (COLOUR, "jpeg", ["subsampled", "lossy"]), (COLOUR, "webp", ["subsampled", "lossy"]),
    (COLOUR, "gif", ["palette"]), (GREY, "jpeg", ["lossy"]), (GREY, "webp", ["lossy"]),
    (CLEAR, "png", []), (CLEAR, "jpeg", ["flattened", "subsampled", "lossy"]),
    (CLEAR, "webp", ["subsampled", "lossy"]), (WIDE, "png", []),
    (WIDE, "jpeg", ["reduced", "subsampled", "lossy"]), (WIDE, "gif", ["reduced", "palette"]),
    (FLOAT, "tiff", []), (FLOAT, "ppm", []), (FLOAT, "png", ["reduced"]), (FLOAT, "raw", []),
])
def test_by_format(service, pixels, target, expected):
    answer = service.converted(write_tiff(pixels, pixels.shape[2] == 4), format=target)
    assert answer.lost == expected


@pytest.mark.parametrize("name", ["GIF", "WEBP", "TIFF", "PNG"])
def test_first_frame(service, name):
    """Also where the file is read twice."""
    options = {"format": "raw", "roi": "1,1,9,9", "target": "0,0"}
    for count, expected in ((3, ["first-frame"]), (1, [])):
        assert service.converted(frames(name, count), **options).lost == expected


def test_png_that_says_it_is_animated(service):
    """One frame is no animation; data that follows the pixels, or is cut off, is not believed."""
    def counted(count):
        return b"acTL", count.to_bytes(4, "big") + bytes(4)
    whole = write_png(COLOUR)
    for body, expected in (
            (write_png(COLOUR, [counted(1)]), []),
            (write_png(COLOUR, [(b"tEXt", b"a\0b"), counted(2)]), ["first-frame"]),
            (whole[:-12] + imagefiles.png_chunk(*counted(9)) + whole[-12:], [])):
        assert service.converted(body).lost == expected


def test_documentation(service):
    """The tokens of docs/api.md are those of the description."""
    schema = service.get("/openapi.json").json()["components"]["headers"]["X-Lost"]["schema"]
    tokens = re.match(r"\^\(([a-z|-]+)\)", schema["pattern"])[1].split("|")
    assert re.findall(r"(?:^|; )([a-z-]+): ", schema["description"]) == tokens
    page = (REPOSITORY / "docs/api.md").read_text()
    table = page.split("| token | |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)`", table, re.M) == tokens


@pytest.mark.parametrize("accept, expected", [
    ("*/*", "image/png"),
    ("image/webp, image/png", "image/png"),  # the input's, if it is among the best
    ("image/webp, image/png;q=0.9", "image/webp"),
    ("*/*;q=0.1, image/*;q=0.2, image/png;q=0", "image/jpeg"),
    ("image/png;q=0, image/x-portable-anymap;q=0.2, image/*;q=0.1", "image/x-portable-anymap"),
])
def test_accept(service, accept, expected):
    answer = service.post("/v1/filters/box", SOURCES["png"], headers={"Accept": accept})
    assert answer.status == 200, answer
    assert answer.type == expected


def test_accept_that_comes_in_pieces(service):
    """Several headers are one list."""
    answer = service.send(request_head(
        "/v1/filters/box", "Accept: text/html", "Accept: image/webp;q=0.2",
        "Accept: image/tiff;q=0.3", f"Content-Length: {len(SOURCES['png'])}") + SOURCES["png"])
    assert answer.type == "image/tiff"


def test_accept_of_raw_pixels(service):
    """They are one format of many, and no image/; a format that holds the pixels comes first."""
    pixels = random_pixels(7, 9, 8, 3, "u16")
    for accept, expected in (("*/*", "application/octet-stream"), ("image/*", "image/png"),
                             ("image/jpeg", "image/jpeg"), ("image/tiff, */*;q=0.5", "image/tiff")):
        answer = service.post(f"/v1/filters/box?raw={raw_kind(pixels)}", pixels.tobytes(),
                              headers={"Accept": accept})
        assert (answer.status, answer.type) == (200, expected), accept


@pytest.mark.parametrize("name, side", [
    ("jpeg", 65500), ("webp", 16383), ("gif", 65535), ("bmp", 32000), ("avif", 16384)])
def test_accept_of_what_a_format_cannot_hold(service, name, side):
    """A less liked format that can be written comes before one that cannot."""
    def answer(shape, accept):
        wide = np.zeros((*shape, 3), np.uint8)
        return service.post(f"/v1/filters/box?raw={raw_kind(wide)}", wide.tobytes(),
                            headers={"Accept": accept})
    media = f"image/{name}"
    for shape, larger in (((1, side), (1, side + 1)), ((side, 1), (side + 1, 1))):
        assert answer(shape, media).type == media
        assert answer(larger, f"{media}, image/png;q=0.1").type == "image/png"
        answer(larger, media).refused(422, "unencodable", str(side))


def test_format_overrules_accept(service):
    answer = service.post("/v1/filters/box?format=webp", SOURCES["png"],
                          headers={"Accept": "image/jpeg"})
    assert answer.status == 200 and answer.type == "image/webp"


def test_curl(service, tmp_path):
    """The two commands that everyone tries first, with a file of some size; and a pipe."""
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    source.write_bytes(write_png(random_pixels(1, 700, 500, 3, "u8")))
    assert source.stat().st_size > 1 << 20
    path = "/v1/filters/gaussian?sigma=2&variant=general"  # the same bytes each time
    expected = service.post(path, source.read_bytes()).body
    for arguments in (("--data-binary", f"@{source}"), ("-F", f"image=@{source}"),
                      ("-T", "-", "-X", "POST")):
        done = subprocess.run(["curl", "-sS", "-o", target, "-w", "%{http_code}", *arguments,
                               f"http://{service.host}:{service.port}{path}"],
                              input=source.read_bytes(), capture_output=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, b"200"), (done, target.read_bytes()[:300])
        assert target.read_bytes() == expected, arguments
