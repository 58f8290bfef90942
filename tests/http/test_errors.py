"""Clients' errors: each answer names the error and the right form; the next request is served."""
import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image

import imagefiles
import oracle
from in_flight import works
from jobs import PREFER
from pixels import random_pixels, smooth
from service import multipart, poll, request_head

PIXELS = random_pixels(1, 61, 47, 3, "u8")
PNG = imagefiles.write_png(PIXELS)
JPEG = imagefiles.written(imagefiles.pil(smooth(320, 240, 3)), "JPEG", quality=85)


@pytest.fixture
def service(service):
    """The shared service, which must do the next good request right after each test."""
    yield service
    works(service)


ROW, COLUMN = ",".join("1" * 65), ";".join("1" * 65)

# Requests whose last parameter is refused, by what the refusal says.
BAD_PARAMETERS = {
    "number from 0.1 to 100": ["gaussian?sigma=abc", "gaussian?sigma="],
    "instead, use pixelate, or a chain of several gaussians": [
        f"{one}=100.1" for one in ("gaussian?sigma", "gaussian?sigma_x", "gaussian?sigma_y",
                                   "unsharp?sigma", "canny?sigma")],
    "an odd integer from 1 to 601": ["box?size=6", "box?size=99999999999999999999"],
    "odd integer": ["gaussian?size=4", "gaussian?size=2.5"],
    "box takes size": ["box?sigma=2", "box?frobnicate=1"],
    "gaussian takes": ["gaussian?sgima=2"],
    "magnitude": ["sobel?output=z", "sobel?output=", "sobel?output=Magnitude"],
    "odd sides": [f"convolve?kernel={value}" for value in ("1,2", "1,2;3,4", "1,2,3;4,5,6")],
    "63": [f"convolve?kernel={value}" for value in (ROW, COLUMN, ";".join([ROW] * 65))],
    "row 1": [f"convolve?kernel={value}" for value in ("", "1,a,1", "1,nan,1")],
    "row 2": ["convolve?kernel=1,2,3;4,5;6,7,8", "convolve?kernel=1,2,1;"],
    "-1e9 to 1e9": ["convolve?kernel=1,2,1.1e9"],
    "other than 0": ["convolve?kernel=1&scale=0"],
    "a magnitude of at least": ["convolve?kernel=1&scale=1e-34"],
    "a number": ["convolve?kernel=1&scale=x", "convolve?kernel=1&offset=1e10"],
    "reflect101": ["box?border="],
    "one for each band": [
        f"box?border=constant&border_value={value}" for value in ("red", "1,2,3,4,5")],
    "from 0 to 255": [  # known only once the image is
        f"box?border=constant&border_value={value}" for value in ("256", "-1", "0.5")],
    "png": ["box?format="],
    "1 to 100": ["box?quality=high"],
    "0 or 1": ["box?strip=perhaps", "box?raw=4x4x4:u8&alpha=2"],
    "2 or 4 bands": ["box?raw=4x4x3:u8&alpha=1"],
    "WIDTHxHEIGHTxBANDS:TYPE": [
        f"box?raw={value}"
        for value in ("10x10", "0x1x1:u8", "4x4x1:u12", "-4x4x1:u8", "4000000x4x1:u8")],
}


@pytest.mark.parametrize("target, says", [
    (target, says) for says, targets in BAD_PARAMETERS.items() for target in targets],
    ids=lambda text: text[:40])
def test_bad_parameter(service, target, says):
    parameter, _, value = target.rpartition("?")[2].rpartition("&")[2].partition("=")
    service.post(f"/v1/filters/{target}", PNG).refused(
        400, "bad-parameter", says, parameter=parameter, value=value[:95])


@pytest.mark.parametrize("query, parameter", [
    ("", "filters"), ("filters=", "filters"), ("filters=gaussian=sigma", "filters"),
    ("filters=gaussian=sigma=x", "sigma"), ("filters=box,convolve", "kernel"),
    ("filters=box=size=3:sigma=2", "sigma"), ("filters=sobel,gaussian=size=4", "size"),
    ("filters=" + ",".join(["box"] * 9), "filters"), ("filters=box,,sobel", "filter"),
    ("filters=,box", "filter"), ("filters=box,", "filter"), ("filters==size=3", "filter")])
def test_bad_chain(service, query, parameter):
    service.post(f"/v1/chain?{query}", PNG).refused(400, "bad-parameter", parameter=parameter)


@pytest.mark.parametrize("name, says", [
    ("gausian", "did you mean gaussian?"), ("boxx", "did you mean box?"),
    ("Gaussian", "did you mean gaussian?"), ("hologram", "the filters are gaussian, box, "),
    ("x" * 300, ", bilateral")])
def test_unknown_filter(service, name, says):
    """The answer names the nearest filter, or all of them."""
    for answer in (service.post(f"/v1/filters/{name}", PNG), service.get(f"/v1/filters/{name}"),
                   service.post(f"/v1/chain?filters=box,{name}", PNG)):
        answer.refused(404, "unknown-filter", says)


def test_defaults_may_be_said(service):
    """As generated clients do, with a chain that has no filter for all bands, too."""
    assert service.post("/v1/chain?luma=box&channels=all&border_value=0&alpha=0", PNG).status == 200


@pytest.mark.parametrize("path", [
    "/nothing", "/v1", "/v1/", "/v1/filters/box/more", "/v2/filters", "/v1/devices/", "//",
    "/v1/filters/../../etc/passwd", "/V1/filters", *(f"/v1/jobs{job}" for job in (
        "/", "//result", "/%2E%2E", f"/{'x' * 9000}", *(f"/0123456789abcdef{more}" for more in (
            "", "/result", "/events", "?wait=300", "/other", "/result/more"))))])
def test_not_found(service, path):
    answer = service.get(path)
    assert answer.status == 404
    assert answer.problem["type"] in ("/problems/not-found", "/problems/unknown-filter")


@pytest.mark.parametrize("method, path, allowed", [
    ("POST", "/v1/filters", {"GET"}), ("DELETE", "/v1/filters/box", {"GET", "POST"}),
    ("GET", "/v1/chain", {"POST"}), ("PUT", "/v1/chain", {"POST"}), ("POST", "/metrics", {"GET"}),
    ("POST", "/v1/devices", {"GET"}), ("DELETE", "/livez", {"GET"}), ("POST", "/readyz", {"GET"}),
    ("PATCH", "/v1/kernels", {"GET"}), ("POST", "/v1/jobs/0123456789abcdef", {"GET", "DELETE"}),
    ("DELETE", "/v1/jobs/0123456789abcdef/result", {"GET"}),
    ("POST", "/v1/jobs/0123456789abcdef/events", {"GET"})])
def test_wrong_method(service, method, path, allowed):
    answer = service.request(method, path, b"x" if method == "POST" else None)
    answer.refused(405, "method-not-allowed")
    assert allowed <= {name.strip() for name in answer.headers["Allow"].split(",")}


def test_empty_body(service):
    for body in (b"", iter([])):  # announced, and chunked
        service.post("/v1/filters/box", body).refused(400, "empty-body")


@pytest.mark.parametrize("body", [
    b"Dear Sir or Madam, please find no image here. " * 50, b"x", b"\0" * 1000, b"\xff",
    b"<html><body>no</body></html>",
    b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'></svg>", b'{"image": null}',
    b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", b"BM" + b"\0" * 200, bytes(range(256)) * 40,
    b"#?RADIANT\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n\1\1\1\1", b"SIMPLE  =                    T",
    b"1 2 3\n4 5 6\n7 8 9\n",  # a matrix in text form is an image to libvips, not to us
], ids=["letter", "letter-x", "zeros", "ff", "html", "svg", "json", "pdf", "bmp", "bytes",
        "radiant", "fits", "matrix"])
def test_not_an_image(service, body):
    service.post("/v1/filters/box", body).refused(415, "not-an-image")


@pytest.mark.parametrize("name, says, options", [
    ("JPEG2000", "JPEG 2000 (opj_decompress", {}),
    ("JPEG2000", "JPEG 2000 (opj_decompress", {"no_jp2": True}),
    ("ICO", "an icon (ICO; ImageMagick or icotool", {})])
def test_not_read_but_named(service, name, says, options):
    image = imagefiles.pil(random_pixels(3, 40, 30, 3, "u8"))
    answer = service.identity(imagefiles.written(image, name, **options))
    answer.refused(415, "not-an-image", f"look like {says}", "converts it to PNG")


def test_smaller_than_the_filter(service):
    filters = [("gaussian", {"sigma": 4})]
    answer = service.filter(PIXELS[:9, :9], filters, border="crop")
    answer.refused(422, "image-too-small", "9x9", "25x25")
    least = service.filter(PIXELS[:25, :26], filters, border="crop")
    assert least.status == 200 and least.kind == (2, 1, 3, "u8")


@pytest.mark.parametrize("size", [0.5, 1.5, 0.999])
def test_raw_of_another_size(service, size):
    body = np.zeros(int(10 * 8 * 3 * size), np.uint8).tobytes()
    answer = service.post("/v1/filters/box?raw=10x8x3:u8&format=raw", body)
    assert answer.status in (400, 422), answer
    assert "240" in answer.problem["detail"]


def png_of(width, height, **more):
    """Returns a PNG that has no such number of pixels."""
    return (imagefiles.png_header(width, height, **more)
            + imagefiles.png_chunk(b"IDAT", zlib.compress(b"\0" * 1000))
            + imagefiles.png_chunk(b"IEND", b""))


def test_bomb(service):
    frame = JPEG.index(b"\xff\xc0")
    huge_jpeg = JPEG[:frame + 5] + struct.pack(">HH", 65500, 65500) + JPEG[frame + 9:]
    for body, size in ((png_of(100000, 100000), "100000x100000"), (huge_jpeg, "65500x65500"),
                       (png_of(20000, 20000, interlace=1), "20000x20000"),
                       (b"P5\n60000 60000\n255\n" + b"\0" * 1000, "60000x60000")):
        service.post("/v1/filters/box", body).refused(422, "too-many-pixels", size)


def test_zero_sized(service):
    for body in (png_of(0, 10), b"P5\n0 10\n255\n", b"P6\n-1 10\n255\n\0\0\0"):
        answer = service.post("/v1/filters/box", body)
        assert answer.status in (415, 422) and answer.problem, answer


@pytest.fixture(scope="module")
def limited(launch):
    """A service with narrow limits, which works after all refusals."""
    with launch("--max-body", "1M", "--max-pixels", "1000000", "--max-buffered-size", "80000",
                "--arena-size", "256K", "--codecs", "2") as service:
        yield service
        works(service)
        assert service.restarts() == 0, service.tail()


def test_too_many_pixels(limited):
    fits = imagefiles.write_png(np.zeros((1000, 1000, 1), np.uint8))
    exceeds = imagefiles.write_png(np.zeros((1000, 1001, 1), np.uint8))
    assert limited.post("/v1/filters/box", fits).status == 200
    limited.post("/v1/filters/box", exceeds).refused(422, "too-many-pixels", "1000000")
    whole = imagefiles.written(imagefiles.pil(np.zeros((101, 100, 3), np.uint8)), "WEBP")
    limited.post("/v1/filters/box", whole).refused(422, "too-many-pixels")
    answer = limited.filter(np.zeros((999, 1003, 1), np.uint8), [("box", {})])
    answer.refused(422, "too-many-pixels")


def test_too_wide(limited):
    """The largest width that is named works, and one more does not."""
    filters = [("gaussian", {"sigma": 20.0, "size": 121})]
    answer = limited.filter(random_pixels(1, 9000, 10, 3, "u8"), filters)
    width = int(answer.refused(422, "does-not-fit")["detail"].rstrip(".").split()[-1])
    assert 50 < width < 9000
    pixels = random_pixels(2, width, 10, 3, "u8")
    oracle.check(limited.filter(pixels, filters).pixels, oracle.filtered(pixels, filters))
    answer = limited.filter(random_pixels(1, width + 1, 10, 3, "u8"), filters)
    answer.refused(422, "does-not-fit")


@pytest.mark.parametrize("filters, variant", [
    ([("box", {"size": 201})], None), ([("gaussian", {"size": 201})], None),
    ([("canny", {"sigma": 30})], None), ([("gaussian", {"sigma": 30})], "separable"),
    ([("gaussian", {"sigma": 30})] * 3, None)], ids=str)
def test_too_wide_for_a_window(limited, filters, variant):
    """Windows of other kinds, and by a kernel that is named."""
    pixels = random_pixels(22, 400, 300, 3, "u8")
    answer = limited.filter(pixels, filters, variant=variant)
    answer.refused(422, "does-not-fit", "arena-size", "largest width is")


TOO_LARGE = (256 << 20) + 1


@pytest.mark.parametrize("target, size, expect, status", [
    ("/v1/filters/gaussian?sigma=-1", 50000000, True, 400),
    ("/v1/filters/gausian", 50000000, True, 404), ("/v1/nothing", 50000000, True, 404),
    ("/v1/chain?filters=box=size=2", 50000000, True, 400), ("/v1/devices", 50000000, True, 405),
    ("/v1/filters/box", TOO_LARGE, True, 413), ("/v1/filters/box", TOO_LARGE, False, 413)])
def test_refused_before_the_body(service, target, size, expect, status):
    """The answer comes instead of the invitation, or before the body has been sent."""
    headers = ["Expect: 100-continue"] if expect else []
    head = request_head(target, *headers, f"Content-Length: {size}")
    answer = service.send(head + b"x" * (0 if expect else 100))
    assert answer.status == status
    if size == TOO_LARGE:
        answer.refused(413, "body-too-large", str(256 << 20))


def test_too_many_bytes_sent(limited):
    """Announced and a few too many, chunked and many more, and in a form."""
    form, kind = multipart([("image", "x", b"z" * (1 << 20))])
    for body, headers in ((b"x" * ((1 << 20) + 1), {}), ((b"y" * 65536 for _ in range(40)), {}),
                          (form, {"Content-Type": kind})):
        limited.post("/v1/filters/box", body, headers=headers).refused(413, "body-too-large")


def test_body_of_the_largest_size(limited):
    body = imagefiles.write_pnm(random_pixels(9, 512, 341, 3, "u16"))
    body = body[:2] + b" " * ((1 << 20) - len(body)) + body[2:]
    assert len(body) == 1 << 20
    assert limited.post("/v1/filters/box", body).status == 200


def test_job_timeout(launch):
    """Hopelessly large work ends in time, and leaves room for the next."""
    noise = random_pixels(1, 63, 63, 1, "u8")[:, :, 0].astype(int)
    filters = [("convolve", {"kernel": noise + 1})] * 2
    with launch("--job-timeout", "2", "--codecs", "1") as service:
        started = time.monotonic()
        service.filter(np.zeros((6000, 4000, 4), np.uint8), filters).refused(504, "timeout")
        assert time.monotonic() - started > 1.5
        poll(service.works, what="the next image, which has 2 s, too")
        poll(lambda: service.total("convolved_tiles_in_flight") == 0, 60, "idle devices")
        assert len(service.workers("device")) == 1 and len(service.workers("codec")) == 1


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("kind, slug", [("PNG", "not-an-image"), ("JPEG", "undecodable")])
def test_spoilt_by_curl(service, kind, slug):
    """-d spoils a file and says that the body is a form; --data-binary only says so."""
    whole = imagefiles.written(Image.effect_noise((60, 50), 40), kind)
    spoilt = whole.translate(None, b"\r\n\0")
    assert service.post("/v1/filters/box", whole, headers=FORM).status == 200
    job = service.post("/v1/filters/box", spoilt, headers={**FORM, **PREFER}).headers["Location"]
    for answer in (service.post("/v1/filters/box", spoilt, headers=FORM),
                   service.get(job + "/result?wait=30")):
        answer.refused(answer.status, slug, "--data-binary")
    for body, headers in ((whole[:-900], FORM), (spoilt, {}), (b"no image", FORM)):
        answer = service.post("/v1/filters/box", body, headers=headers)
        assert "--data-binary" not in answer.problem["detail"]
