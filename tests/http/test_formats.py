"""Files in and out: every format, the samples that it can hold, metadata, and clients' wishes."""
import io
import socket
import struct
import subprocess
import time

import numpy as np
import pytest
from PIL import Image, ImageOps

import imagefiles
import oracle
from imagefiles import read_pil, read_png, read_pnm, read_vips, write_png, write_pnm, write_tiff
from pixels import random_pixels, smooth
from previews import PROFILE
from service import multipart, raw_kind, read_answer

ALL = ("jpeg", "png", "webp", "tiff", "gif", "bmp", "pnm", "raw")
MEDIA = {"jpeg": "image/jpeg", "png": "image/png", "webp": "image/webp", "tiff": "image/tiff",
         "gif": "image/gif", "bmp": "image/bmp", "raw": "application/octet-stream"}


def visible(pixels):
    """As the service answers: no colour where alpha is 0."""
    pixels = pixels.copy()
    pixels[pixels[:, :, -1] == 0] = 0
    return pixels


def decoded(service, body, **options):
    """Returns the format that the service finds in the file, after a filter that changes nothing."""
    return service.identity(body, format="raw", **options).pixels


def close(a, b, mean):
    assert a.shape == b.shape
    error = np.abs(a.astype(float) - b.astype(float)).mean()
    assert error <= mean, f"mean difference {error:.2f}"


# Reading ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["u8", "u16"])
@pytest.mark.parametrize("bands", [1, 2, 3, 4])
def test_read_png(service, bands, kind):
    pixels = random_pixels(bands, 37, 23, bands, kind, bands in (2, 4))
    expected = visible(pixels) if bands in (2, 4) else pixels
    assert np.array_equal(decoded(service, write_png(pixels)), expected)


@pytest.mark.parametrize("kind", ["u8", "u16", "f32"])
@pytest.mark.parametrize("bands", [1, 2, 3, 4])
def test_read_tiff(service, bands, kind):
    alpha = bands in (2, 4) and kind != "f32"
    pixels = random_pixels(bands, 37, 23, bands, kind, alpha)
    got = decoded(service, write_tiff(pixels, alpha))
    if alpha:
        assert np.array_equal(got, visible(pixels))
    elif bands in (2, 4):  # libtiff takes unnamed bands as it likes
        assert got.shape == pixels.shape and got.dtype == pixels.dtype
    else:
        assert np.array_equal(got, pixels)


@pytest.mark.parametrize("compression", ["tiff_deflate", "tiff_lzw", "packbits"])
def test_read_compressed_tiff(service, compression):
    pixels = random_pixels(1, 37, 23, 3, "u8")
    file = imagefiles.written(imagefiles.pil(pixels), "TIFF", compression=compression)
    assert np.array_equal(decoded(service, file), pixels)


@pytest.mark.parametrize("bands, kind", [(1, "u8"), (3, "u8"), (1, "u16"), (3, "u16"), (1, "f32"),
                                         (3, "f32")])
def test_read_pnm(service, bands, kind):
    """PFM too, whose rows go from the bottom to the top."""
    pixels = random_pixels(bands, 37, 23, bands, kind)
    got = decoded(service, write_pnm(pixels))
    assert not np.array_equal(got[::-1], pixels), "upside down"
    assert np.array_equal(got, pixels)


@pytest.mark.parametrize("bands", [3, 4])
def test_read_webp(service, bands):
    pixels = random_pixels(bands, 37, 23, bands, "u8", bands == 4)
    file = imagefiles.written(imagefiles.pil(pixels), "WEBP", lossless=True, exact=True)
    assert np.array_equal(decoded(service, file), visible(pixels) if bands == 4 else pixels)


@pytest.mark.parametrize("bands", [1, 3])
@pytest.mark.parametrize("progressive", [False, True])
def test_read_jpeg(service, bands, progressive):
    pixels = smooth(137, 71, bands)
    file = imagefiles.written(imagefiles.pil(pixels), "JPEG", quality=90, progressive=progressive)
    close(decoded(service, file), read_pil(file)[0], 0.1)


def test_read_cmyk_jpeg(service):
    """Either filtered as four inks or refused as pixels of a kind that is not supported."""
    image = imagefiles.pil(smooth(64, 48, 3)).convert("CMYK")
    answer = service.identity(imagefiles.written(image, "JPEG", quality=95), format="raw")
    if answer.status != 200:
        answer.refused(422, "unsupported-pixels")
    else:
        assert answer.kind in ((64, 48, 4, "u8"), (64, 48, 3, "u8"))


def test_read_gif_first_frame(service):
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 99, 200]], np.uint8)
    frames = [colours[np.random.default_rng(i).integers(0, 4, (20, 30))] for i in range(3)]
    images = [Image.fromarray(frame).quantize(16) for frame in frames]
    file = imagefiles.written(images[0], "GIF", save_all=True, append_images=images[1:])
    got = decoded(service, file)
    assert np.array_equal(got[:, :, :3], frames[0])


def test_read_palette_and_bits(service):
    """Palettes become colours, single bits become black and white."""
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    pixels = colours[np.random.default_rng(1).integers(0, 3, (19, 27))]
    palette = imagefiles.written(Image.fromarray(pixels).quantize(3), "PNG")
    assert np.array_equal(decoded(service, palette)[:, :, :3], pixels)
    bits = np.random.default_rng(2).integers(0, 2, (19, 27)).astype(bool)
    for name in ("PNG", "TIFF"):
        got = decoded(service, imagefiles.written(Image.fromarray(bits), name))
        assert np.array_equal(got[:, :, 0], bits * np.uint8(255)), name


def test_read_interlaced_png(service):
    """Adam7 by hand: seven small pictures."""
    pixels = random_pixels(3, 21, 13, 1, "u8")
    passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
              (1, 0, 2, 1))
    data = b"".join(b"\0" + row.tobytes() for y, x, dy, dx in passes
                    for row in pixels[y::dy, x::dx, 0] if row.size)
    file = (imagefiles.png_header(21, 13, 8, 0, 1)
            + imagefiles.png_chunk(b"IDAT", imagefiles.zlib.compress(data))
            + imagefiles.png_chunk(b"IEND", b""))
    assert np.array_equal(decoded(service, file), pixels)


# Writing ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["u8", "u16"])
@pytest.mark.parametrize("bands, alpha", [(1, 0), (2, 1), (3, 0), (4, 1)])
def test_write_png(service, bands, alpha, kind):
    pixels = random_pixels(bands, 37, 23, bands, kind, alpha)
    answer = service.filter(pixels, [("convolve", {"kernel": "1"})], format="png", alpha=alpha)
    assert answer.status == 200 and answer.type == "image/png"
    assert answer.kind == (37, 23, bands, kind)
    assert np.array_equal(read_png(answer.body), visible(pixels) if alpha else pixels)


@pytest.mark.parametrize("kind", ["u8", "u16", "f32"])
@pytest.mark.parametrize("bands, alpha", [(1, 0), (2, 1), (3, 0), (4, 1)])
def test_write_tiff(service, bands, alpha, kind):
    pixels = random_pixels(bands, 37, 23, bands, kind, alpha)
    answer = service.filter(pixels, [("convolve", {"kernel": "1"})], format="tiff", alpha=alpha)
    assert answer.status == 200 and answer.type == "image/tiff"
    got = read_vips(answer.body, ".tif", pixels.dtype, bands)
    expected = visible(pixels) if alpha else pixels
    assert np.allclose(got, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("bands, kind", [(1, "u8"), (3, "u8"), (1, "u16"), (3, "u16"), (1, "f32"),
                                         (3, "f32")])
def test_write_pnm(service, bands, kind):
    pixels = random_pixels(bands, 37, 23, bands, kind)
    for name in (("pgm" if bands == 1 else "ppm") if kind != "f32" else "pfm", "pnm"):
        answer = service.filter(pixels, [("convolve", {"kernel": "1"})], format=name)
        assert answer.status == 200, answer
        got = read_pnm(answer.body)
        assert got.shape == pixels.shape and got.dtype == pixels.dtype, name
        assert np.array_equal(got, pixels), name


@pytest.mark.parametrize("name, bands", [("jpeg", 1), ("jpeg", 3), ("webp", 3), ("webp", 4)])
def test_write_lossy(service, name, bands):
    pixels = smooth(157, 91, bands)
    alpha = int(bands == 4)
    sizes = []
    for quality, mean in ((20, 8), (95, 2.5)):
        answer = service.filter(pixels, [("box", {"size": 1})], format=name, alpha=alpha,
                                quality=quality)
        assert answer.status == 200 and answer.type == MEDIA[name], answer
        got, image = read_pil(answer.body)
        assert image.format == name.upper()
        close(got, pixels, mean)
        sizes.append(len(answer.body))
    assert sizes[0] < sizes[1]


def test_write_gif(service):
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    pixels = colours[np.arange(30 * 20).reshape(20, 30) // 100 % 3]
    answer = service.filter(pixels, [("box", {"size": 1})], format="gif")
    assert answer.status == 200 and answer.type == "image/gif", answer
    assert answer.body[:4] == b"GIF8"
    image = Image.open(io.BytesIO(answer.body)).convert("RGB")
    close(np.asarray(image), pixels, 3)


@pytest.mark.parametrize("kind", ["u16", "f32"])
@pytest.mark.parametrize("name", ["jpeg", "webp", "gif", "png"])
def test_write_fewer_bits(service, name, kind):
    """Pixels that a format cannot hold are either brought to its range or refused as unencodable."""
    if (name, kind) == ("png", "u16"):
        return
    pixels = smooth(80, 60, 3, kind)
    answer = service.filter(pixels, [("box", {"size": 1})], format=name)
    if answer.status != 200:
        answer.refused(422, "unencodable")
        return
    image = np.asarray(Image.open(io.BytesIO(answer.body)).convert("RGB")).astype(float)
    full = {"u16": 65535.0, "f32": 1.0}[kind]
    close(image / 255, pixels / full, 0.06)


@pytest.mark.parametrize("name", ["jpeg", "gif", "pnm"])
def test_write_alpha_where_there_is_none(service, name):
    """JPEG and PPM have no alpha: still an image of that format, without a crash."""
    answer = service.filter(smooth(40, 30, 4), [("box", {})], format=name, alpha=1)
    if answer.status == 200:
        assert read_pil(answer.body)[1].size == (40, 30)
    else:
        answer.refused(422, "unencodable")


# Through ------------------------------------------------------------------------------------------

def sources():
    noise = random_pixels(5, 61, 47, 3, "u8")
    wide = random_pixels(6, 61, 47, 3, "u16")
    floating = np.abs(random_pixels(7, 61, 47, 1, "f32"))
    return {"jpeg": imagefiles.written(imagefiles.pil(smooth(61, 47, 3)), "JPEG"),
            "png": write_png(noise), "png16": write_png(wide),
            "webp": imagefiles.written(imagefiles.pil(noise), "WEBP"),
            "tiff": write_tiff(noise), "tiff16": write_tiff(wide), "tiff32": write_tiff(floating),
            "gif": imagefiles.written(imagefiles.pil(noise).quantize(64), "GIF"),
            "pnm": write_pnm(noise), "pnm16": write_pnm(wide), "pfm": write_pnm(floating)}


SOURCES = sources()
SIGNATURES = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG", "webp": b"RIFF", "tiff": (b"II", b"MM"),
              "gif": b"GIF8", "bmp": b"BM", "pnm": (b"P5", b"P6", b"Pf", b"PF"), "pfm": b"P"}


def base(name):
    return name.rstrip("0123456789")


@pytest.mark.parametrize("name", SOURCES)
def test_format_is_kept(service, name):
    """Without a wish the answer has the input's format, and as many bits."""
    answer = service.post("/v1/filters/gaussian?sigma=1.5", SOURCES[name])
    assert answer.status == 200, answer
    assert answer.body.startswith(SIGNATURES[base(name)])
    assert answer.kind[:2] == (61, 47)
    assert answer.kind[3] == {"16": "u16", "32": "f32"}.get(name[-2:], "u8" if name != "pfm"
                                                            else "f32")
    before = decoded(service, SOURCES[name])
    after = decoded(service, answer.body)
    assert before.dtype == after.dtype
    assert after[:, :, 0].std() < before[:, :, 0].std()  # it is blurred


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("source", ["jpeg", "png", "webp", "tiff", "gif", "pnm"])
def test_conversions(service, source, target):
    answer = service.identity(SOURCES[source], format=target)
    assert answer.status == 200, answer
    assert answer.kind[:2] == (61, 47)
    if target in MEDIA:
        assert answer.type == MEDIA[target]
    else:
        assert answer.type.startswith("image/x-portable-")
    if target != "raw":
        assert answer.body.startswith(SIGNATURES[target])


def test_content_decides(service):
    """Declared types are not believed: neither curl's nor a wrong one."""
    for declared in ("application/x-www-form-urlencoded", "image/png", "text/plain",
                     "application/json", "nonsense"):
        answer = service.post("/v1/filters/box", SOURCES["jpeg"],
                              headers={"Content-Type": declared})
        assert answer.status == 200 and answer.type == "image/jpeg", declared
    connection_default = service.post("/v1/filters/box", SOURCES["png"])
    assert connection_default.type == "image/png"


# Beside the pixels --------------------------------------------------------------------------------

ORIENTATION, DESCRIPTION = 0x0112, 0x010E


def exif(**tags):
    block = Image.Exif()
    for tag, value in tags.items():
        block[{"orientation": ORIENTATION, "description": DESCRIPTION}[tag]] = value
    return block.tobytes()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_jpeg(service, orientation):
    """The answer is upright and says so."""
    image = imagefiles.pil(smooth(120, 72, 3))
    file = imagefiles.written(image, "JPEG", quality=98, subsampling=0,
                              exif=exif(orientation=orientation))
    upright = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(file))))
    close(decoded(service, file), upright, 0.1)
    answer = service.identity(file)
    picture = Image.open(io.BytesIO(answer.body))
    assert picture.getexif().get(ORIENTATION, 1) == 1
    close(np.asarray(picture), upright, 3)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_exact(service, orientation):
    """Without loss, and through a filter that tells up from down and left from right."""
    pixels = random_pixels(orientation, 29, 17, 3, "u8")
    turned = {1: pixels, 2: pixels[:, ::-1], 3: pixels[::-1, ::-1], 4: pixels[::-1],
              5: pixels.swapaxes(0, 1), 6: pixels.swapaxes(0, 1)[:, ::-1],
              7: pixels.swapaxes(0, 1)[::-1, ::-1], 8: pixels.swapaxes(0, 1)[::-1]}[orientation]
    file = write_tiff(pixels, orientation=orientation)
    assert np.array_equal(decoded(service, file), turned)
    matrix = ("convolve", {"kernel": [[0, 2, 0], [1, 0, 0], [0, 0, 3]]})
    got = service.post("/v1/filters/convolve?kernel=0,2,0;1,0,0;0,0,3&border=wrap&format=raw"
                       "&variant=general", file)
    expected = service.filter(np.ascontiguousarray(turned), [matrix], border="wrap",
                              variant="general")
    assert np.array_equal(got.pixels, expected.pixels)




def described(name):
    """Returns a file with a profile, a resolution of 300 to the inch and a description."""
    options = {"icc_profile": PROFILE}
    if name in ("JPEG", "PNG", "WEBP"):
        options["exif"] = exif(description="kept unless stripped")
    if name in ("JPEG", "PNG", "TIFF"):
        options["dpi"] = (300, 300)
    if name == "WEBP":
        options["lossless"] = True
    return imagefiles.written(imagefiles.pil(smooth(64, 48, 3)), name, **options)


@pytest.mark.parametrize("name", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("strip", [0, 1])
def test_metadata(service, name, strip):
    """Profile and resolution always stay; the rest goes on request."""
    answer = service.identity(described(name), strip=strip)
    assert answer.status == 200, answer
    picture = Image.open(io.BytesIO(answer.body))
    picture.load()
    assert picture.format == name
    assert picture.info.get("icc_profile") == PROFILE
    if name != "WEBP":
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.6)
    if name != "TIFF":
        expected = None if strip else "kept unless stripped"
        assert picture.getexif().get(DESCRIPTION) == expected


def test_profile_survives_conversion(service):
    for target in ("png", "webp", "tiff"):
        picture = Image.open(io.BytesIO(service.identity(described("JPEG"), format=target).body))
        assert picture.info.get("icc_profile") == PROFILE, target


# Clients' wishes ----------------------------------------------------------------------------------

@pytest.mark.parametrize("accept, expected", [
    ("*/*", "image/png"),
    ("image/*", "image/png"),
    ("image/jpeg", "image/jpeg"),
    ("image/webp;q=0.9, image/tiff;q=0.3", "image/webp"),
    ("image/tiff;q=0.3, image/webp;q=0.9", "image/webp"),
    ("text/html, image/jpeg;q=0.5", "image/jpeg"),
    ("image/jpeg;q=0, */*", "image/png"),
    ("IMAGE/WEBP", "image/webp"),
    ("image/webp, image/png", "image/png"),  # the input's, if it is among the best
    ("image/webp, image/png;q=0.9", "image/webp"),
    ("image/webp, */*;q=0.1", "image/webp"),
    ("*/*;q=0.1, image/*;q=0.2, image/png;q=0", "image/jpeg"),
    ("image/png;q=0, image/x-portable-anymap;q=0.2, image/*;q=0.1", "image/x-portable-anymap"),
])
def test_accept(service, accept, expected):
    answer = service.post("/v1/filters/box", SOURCES["png"], headers={"Accept": accept})
    assert answer.status == 200, answer
    assert answer.type == expected


def test_accept_that_comes_in_pieces(service):
    """Several headers are one list."""
    with service.socket() as connection:
        connection.sendall(
            b"POST /v1/filters/box HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n"
            b"Accept: image/webp;q=0.2\r\nAccept: image/tiff;q=0.3\r\n"
            b"Content-Length: %d\r\n\r\n" % len(SOURCES["png"]) + SOURCES["png"])
        assert read_answer(connection).type == "image/tiff"


def test_accept_of_raw_pixels(service):
    """They are one format of many, and no image/; a format that holds the pixels comes first."""
    pixels = random_pixels(7, 9, 8, 3, "u16")
    for accept, expected in (("*/*", "application/octet-stream"), ("image/*", "image/png"),
                             ("image/jpeg", "image/jpeg"), ("image/tiff, */*;q=0.5", "image/tiff")):
        answer = service.post(f"/v1/filters/box?raw={raw_kind(pixels)}", pixels.tobytes(),
                              headers={"Accept": accept})
        assert (answer.status, answer.type) == (200, expected), accept


@pytest.mark.parametrize("name, side", [("jpeg", 65500), ("webp", 16383), ("gif", 65535), ("bmp", 32000)])
def test_accept_of_what_a_format_cannot_hold(service, name, side):
    """A less liked format that can be written comes before one that cannot."""
    def answer(shape, accept):
        wide = np.zeros((*shape, 3), np.uint8)
        return service.post(f"/v1/filters/box?raw={raw_kind(wide)}", wide.tobytes(), headers={"Accept": accept})
    media = MEDIA[name]
    for shape, larger in (((1, side), (1, side + 1)), ((side, 1), (side + 1, 1))):
        assert answer(shape, media).type == media
        assert answer(larger, f"{media}, image/png;q=0.1").type == "image/png"
        assert str(side) in answer(larger, media).refused(422, "unencodable")["detail"]


def test_not_acceptable(service):
    answer = service.post("/v1/filters/box", SOURCES["png"], headers={"Accept": "text/html"})
    answer.refused(406, "not-acceptable")


def test_format_overrules_accept(service):
    answer = service.post("/v1/filters/box?format=webp", SOURCES["png"],
                          headers={"Accept": "image/jpeg"})
    assert answer.status == 200 and answer.type == "image/webp"


# Forms --------------------------------------------------------------------------------------------

def test_multipart(service):
    plain = service.post("/v1/filters/gaussian?sigma=2&variant=general", SOURCES["png"])
    for fields in ([("image", "in.png", SOURCES["png"])],
                   [("image", None, SOURCES["png"])],
                   [("image", "x", SOURCES["png"]), ("border", None, b"replicate")]):
        body, kind = multipart(fields)
        answer = service.post("/v1/filters/gaussian?sigma=2&variant=general", body,
                              headers={"Content-Type": kind})
        assert answer.status == 200, answer
        assert answer.body == plain.body


def test_multipart_parameters(service):
    """Other fields of the form are parameters, also one that is read in several pieces."""
    rng = np.random.default_rng(1)
    matrix = ";".join(",".join(f"{v:.6f}" for v in row) for row in rng.random((63, 63)))
    pixels = random_pixels(2, 61, 47, 3, "u8")
    body, kind = multipart([("kernel", None, matrix.encode()), ("image", "x", write_png(pixels)),
                            ("border", None, b"wrap"), ("format", None, b"raw")])
    answer = service.post("/v1/filters/convolve", body, headers={"Content-Type": kind})
    assert answer.status == 200, answer
    values = [[float(v) for v in row.split(",")] for row in matrix.split(";")]
    oracle.check(answer.pixels, oracle.filtered(pixels, [("convolve", {"kernel": values})], "wrap"))
    body, kind = multipart([("image", "x", write_png(pixels)), ("sigma", None, b"-1")])
    problem = service.post("/v1/filters/gaussian", body, headers={"Content-Type": kind}).refused(
        400, "bad-parameter")
    assert problem["parameter"] == "sigma" and problem["value"] == "-1"


def test_multipart_in_pieces(service):
    """However the network cuts it, a form is the same form."""
    small = write_png(random_pixels(3, 5, 4, 3, "u8"))
    body, kind = multipart([("border", None, b"reflect101"), ("kernel", None, b"1,2,1;2,4,2;1,2,1"),
                            ("image", "x", small), ("scale", None, b"16.25"),
                            ("variant", None, b"general")])
    expected = service.post("/v1/filters/convolve?kernel=1,2,1;2,4,2;1,2,1&border=reflect101"
                            "&scale=16.25&variant=general", small)
    with service.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(f"POST /v1/filters/convolve HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}"
                           f"\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        for at in range(0, len(body), 5):
            connection.sendall(body[at:at + 5])
            time.sleep(0.001)  # so that the pieces arrive as such
        answer = read_answer(connection)
    assert answer.status == 200, answer
    assert answer.body == expected.body


def test_multipart_without_an_image(service):
    for fields in ([("border", None, b"wrap")], [("image", "empty", b"")]):
        body, kind = multipart(fields)
        answer = service.post("/v1/filters/box", body, headers={"Content-Type": kind})
        answer.refused(400, "empty-body")
    answer = service.post("/v1/filters/box", b"no parts at all",
                          headers={"Content-Type": "multipart/form-data; boundary=xyz"})
    assert answer.status in (400, 415) and answer.problem


def test_multipart_without_a_boundary(service):
    body, _ = multipart([("image", "a.png", write_png(smooth(9, 7, 1)))])
    answer = service.post("/v1/filters/box", body, headers={"Content-Type": "multipart/form-data"})
    assert "boundary" in answer.refused(400, "bad-request")["detail"]


def test_curl(service, tmp_path):
    """The two commands that everyone tries first, with a file of some size."""
    pixels = smooth(700, 500, 3)
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    source.write_bytes(write_png(random_pixels(1, 700, 500, 3, "u8")))
    assert source.stat().st_size > 1 << 20 and pixels.size
    path = "/v1/filters/gaussian?sigma=2&variant=general"  # the same bytes each time
    address = f"http://{service.host}:{service.port}"

    def curl(*arguments):
        done = subprocess.run(["curl", "-sS", "-o", target, "-w", "%{http_code}", *arguments],
                              capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "200"), (done, target.read_bytes()[:300])
        return target.read_bytes()

    expected = service.post(path, source.read_bytes()).body
    assert curl("--data-binary", f"@{source}", f"{address}{path}") == expected
    assert curl("-F", f"image=@{source}", f"{address}{path}") == expected
    chain = curl("-F", f"image=@{source}",
                 f"{address}/v1/chain?filters=gaussian=sigma=1.4,sobel&format=png")
    assert read_pil(chain)[0].shape == (500, 700, 3)
    piped = subprocess.run(["curl", "-sS", "-T", "-", "-X", "POST",
                            f"{address}{path}"], timeout=60,
                           input=source.read_bytes(), capture_output=True)
    assert piped.stdout == expected  # chunked


def test_answer_headers(service):
    answer = service.post("/v1/filters/gaussian?variant=general", SOURCES["jpeg"])
    assert answer.kind == (61, 47, 3, "u8")
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    identities = {service.post("/v1/filters/box", SOURCES["png"]).headers["X-Request-Id"]
                  for _ in range(5)}
    assert len(identities) == 5 and all(identities)
    timing = answer.timing
    assert {"receive", "queue", "decode", "download", "upload", "encode", "total"} <= set(timing)
    assert {"separable"} <= set(timing), "an entry for each kernel"
    assert all(0 <= value < 60000 for value in timing.values())
    assert timing["total"] >= max(timing["receive"], timing["queue"], timing["separable"])
    assert timing["separable"] > 0 and timing["decode"] > 0 and timing["encode"] > 0


def test_unusual_tiff(service):
    """Big-endian, and several strips of a few rows."""
    pixels = random_pixels(4, 40, 30, 1, "u16")
    data = pixels.astype(">u2").tobytes()
    entries = [(256, 3, 1, 40 << 16), (257, 3, 1, 30 << 16), (258, 3, 1, 16 << 16),
               (259, 3, 1, 1 << 16), (262, 3, 1, 1 << 16), (273, 4, 3, 0), (277, 3, 1, 1 << 16),
               (278, 3, 1, 10 << 16), (279, 4, 3, 0)]
    start = 8 + len(data)
    beyond = start + 2 + 12 * len(entries) + 4
    places = struct.pack(">3I", *(8 + i * 800 for i in range(3)))
    entries[5] = (273, 4, 3, beyond)
    entries[8] = (279, 4, 3, beyond + 12)
    file = (b"MM\0*" + struct.pack(">I", start) + data + struct.pack(">H", len(entries))
            + b"".join(struct.pack(">HHII", *entry) for entry in entries) + struct.pack(">I", 0)
            + places + struct.pack(">3I", 800, 800, 800))
    assert np.array_equal(decoded(service, file), pixels)
