"""Clients' errors: each has its own answer, which names the error and the right form, and none
disturbs the next request."""
import concurrent.futures
import http.client
import io
import socket
import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image

import imagefiles
import oracle
from pixels import random_pixels, smooth
from service import Client, multipart, poll, read_answer

PIXELS = random_pixels(1, 61, 47, 3, "u8")
PNG = imagefiles.write_png(PIXELS)
JPEG = imagefiles.written(imagefiles.pil(smooth(320, 240, 3)), "JPEG", quality=85)


@pytest.fixture
def service(service):
    """The shared service, which must do the next good request right after each test."""
    yield service
    works(service)


def works(service):
    answer = service.post("/v1/filters/box?size=3&format=raw", PNG)
    assert answer.status == 200, answer
    oracle.check(answer.pixels, oracle.filtered(PIXELS, [("box", {"size": 3})]))


# Parameters ---------------------------------------------------------------------------------------

BAD_PARAMETERS = [
    ("gaussian?sigma=abc", "sigma", "abc"), ("gaussian?sigma=", "sigma", ""),
    ("gaussian?sigma=0", "sigma", "0"), ("gaussian?sigma=-1", "sigma", "-1"),
    ("gaussian?sigma=100.5", "sigma", "100.5"), ("gaussian?sigma=nan", "sigma", "nan"),
    ("gaussian?sigma=inf", "sigma", "inf"), ("gaussian?sigma=1e999", "sigma", "1e999"),
    ("gaussian?sigma=0x2", "sigma", "0x2"), ("gaussian?sigma=2x", "sigma", "2x"),
    ("gaussian?size=4", "size", "4"), ("gaussian?size=603", "size", "603"),
    ("gaussian?size=2.5", "size", "2.5"), ("box?size=0", "size", "0"),
    ("box?size=-3", "size", "-3"),
    ("box?size=6", "size", "6"), ("box?size=99999999999999999999", "size", "99999999999999999999"),
    ("box?sigma=2", "sigma", "2"), ("gaussian?sgima=2", "sgima", "2"),
    ("sobel?output=z", "output", "z"), ("sobel?output=", "output", ""),
    ("sobel?output=Magnitude", "output", "Magnitude"),
    ("convolve", "kernel", None), ("convolve?kernel=", "kernel", ""),
    ("convolve?kernel=1,2", "kernel", "1,2"), ("convolve?kernel=1,2;3,4", "kernel", "1,2;3,4"),
    ("convolve?kernel=1,2,3;4,5,6", "kernel", "1,2,3;4,5,6"),
    ("convolve?kernel=1,2,3;4,5;6,7,8", "kernel", "1,2,3;4,5;6,7,8"),
    ("convolve?kernel=1,a,1", "kernel", "1,a,1"), ("convolve?kernel=1,nan,1", "kernel", "1,nan,1"),
    ("convolve?kernel=1,2,1;", "kernel", "1,2,1;"),
    ("convolve?kernel=" + ",".join("1" * 65), "kernel", None),
    ("convolve?kernel=" + ";".join("1" * 65), "kernel", None),
    ("convolve?kernel=" + ";".join([",".join("1" * 65)] * 65), "kernel", None),
    ("convolve?kernel=1&scale=0", "scale", "0"), ("convolve?kernel=1&scale=x", "scale", "x"),
    ("convolve?kernel=1&scale=1e-34", "scale", "1e-34"),
    ("convolve?kernel=1,2,1e38", "kernel", "1,2,1e38"),
    ("convolve?kernel=1&offset=1e10", "offset", "1e10"),
    ("box?border=mirror", "border", "mirror"), ("box?border=", "border", ""),
    ("box?border=constant&border_value=red", "border_value", "red"),
    ("box?border=constant&border_value=1,2,3,4,5", "border_value", "1,2,3,4,5"),
    ("box?format=ico", "format", "ico"), ("box?format=", "format", ""),
    ("box?quality=0", "quality", "0"), ("box?quality=101", "quality", "101"),
    ("box?quality=high", "quality", "high"), ("box?strip=perhaps", "strip", "perhaps"),
    ("box?raw=10x10", "raw", "10x10"), ("box?raw=0x1x1:u8", "raw", "0x1x1:u8"),
    ("box?raw=4x4x5:u8", "raw", "4x4x5:u8"), ("box?raw=4x4x1:u12", "raw", "4x4x1:u12"),
    ("box?raw=-4x4x1:u8", "raw", "-4x4x1:u8"), ("box?raw=4000000x4x1:u8", "raw", None),
    ("box?raw=4x4x3:u8&alpha=1", None, None), ("box?raw=4x4x4:u8&alpha=2", "alpha", "2"),
    ("box?frobnicate=1", "frobnicate", "1"),
]


@pytest.mark.parametrize("target, parameter, value", BAD_PARAMETERS,
                         ids=[t[0][:40] for t in BAD_PARAMETERS])
def test_bad_parameter(service, target, parameter, value):
    problem = service.post(f"/v1/filters/{target}", PNG).refused(400, "bad-parameter")
    assert parameter is None or problem["parameter"] == parameter
    assert value is None or problem["value"] == value
    assert len(problem["detail"]) > 10


@pytest.mark.parametrize("target, says", [
    ("box?size=4", "odd"), ("gaussian?sigma=200", "100"), ("sobel?output=z", "magnitude"),
    ("box?border=mirror", "reflect101"), ("convolve?kernel=1,2;3,4", "odd"),
    ("convolve?kernel=" + ",".join("1" * 65), "63"), ("box?format=ico", "png"),
    ("box?sigma=2", "size"), ("box?quality=0", "100"),
])
def test_problem_says_what_is_valid(service, target, says):
    problem = service.post(f"/v1/filters/{target}", PNG).refused(400, "bad-parameter")
    assert says in problem["detail"], problem


@pytest.mark.parametrize("name, parameter", [("gaussian", "sigma"), ("gaussian", "sigma_x"), ("gaussian", "sigma_y"),
                                             ("unsharp", "sigma"), ("canny", "sigma")])
def test_too_large_a_sigma(service, name, parameter):
    """The refusal names what to use instead."""
    problem = service.post(f"/v1/filters/{name}?{parameter}=100.1", PNG).refused(400, "bad-parameter")
    assert (problem["parameter"], problem["value"]) == (parameter, "100.1")
    assert "pixelate" in problem["detail"] and "several gaussians" in problem["detail"], problem
    assert service.post(f"/v1/filters/{name}?{parameter}=100", PNG).status == 200


@pytest.mark.parametrize("filters, parameter", [
    ("", "filters"), ("gaussian=sigma", "filters"), ("gaussian=sigma=x", "sigma"),
    ("box,convolve", "kernel"), ("box=size=3:sigma=2", "sigma"), (",".join(["box"] * 9), "filters"),
    ("sobel,gaussian=size=4", "size"),
])
def test_bad_chain(service, filters, parameter):
    problem = service.post(f"/v1/chain?filters={filters}", PNG).refused(400, "bad-parameter")
    assert problem["parameter"] == parameter


def test_chain_without_filters(service):
    service.post("/v1/chain", PNG).refused(400, "bad-parameter")


@pytest.mark.parametrize("name, nearest", [("gausian", "gaussian"), ("boxx", "box"),
                                           ("sobell", "sobel"), ("convolute", "convolve"),
                                           ("Gaussian", "gaussian"), ("x" * 300, "")])
def test_unknown_filter(service, name, nearest):
    for answer in (service.post(f"/v1/filters/{name}", PNG), service.get(f"/v1/filters/{name}"),
                   service.post(f"/v1/chain?filters=box,{name}", PNG)):
        problem = answer.refused(404, "unknown-filter")
        assert nearest in problem["detail"]


def test_border_value_must_fit_the_image(service):
    """Known only once the image is."""
    for value in ("256", "-1", "0.5", "1,2"):
        problem = service.post(f"/v1/filters/box?border=constant&border_value={value}",
                               PNG).refused(400, "bad-parameter")
        assert problem["parameter"] == "border_value"


# Routes -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", ["/nothing", "/v1", "/v1/", "/v1/filters/box/more", "/v2/filters",
                                  "/v1/filters/../../etc/passwd", "/v1/devices/", "//",
                                  "/V1/filters"])
def test_not_found(service, path):
    assert service.get(path).status == 404
    assert service.get(path).problem["type"] in ("/problems/not-found", "/problems/unknown-filter")


@pytest.mark.parametrize("method, path, allowed", [
    ("POST", "/v1/filters", {"GET"}), ("DELETE", "/v1/filters/box", {"GET", "POST"}),
    ("GET", "/v1/chain", {"POST"}), ("PUT", "/v1/chain", {"POST"}), ("POST", "/metrics", {"GET"}),
    ("POST", "/v1/devices", {"GET"}), ("DELETE", "/livez", {"GET"}), ("POST", "/readyz", {"GET"}),
    ("PATCH", "/v1/kernels", {"GET"}),
])
def test_wrong_method(service, method, path, allowed):
    answer = service.request(method, path, b"x" if method == "POST" else None)
    answer.refused(405, "method-not-allowed")
    assert allowed <= {name.strip() for name in answer.headers["Allow"].split(",")}


def test_every_answer_has_an_id(service):
    for answer in (service.get("/livez"), service.get("/nothing"), service.post("/v1/filters/box"),
                   service.post("/v1/filters/box?size=2", PNG),
                   service.post("/v1/filters/box", b"x")):
        assert answer.headers["X-Request-Id"]
        assert "total" in answer.timing


# Bodies -------------------------------------------------------------------------------------------

def test_empty_body(service):
    service.post("/v1/filters/box").refused(400, "empty-body")
    service.request("POST", "/v1/chain?filters=box", None).refused(400, "empty-body")
    with service.socket() as connection:
        connection.sendall(b"POST /v1/filters/box HTTP/1.1\r\nHost: x\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        read_answer(connection).refused(400, "empty-body")


@pytest.mark.parametrize("body", [
    b"Dear Sir or Madam, please find no image here. " * 50, b"x", b"\0" * 1000, b"\xff",
    b"<html><body>no</body></html>", b"<svg xmlns='http://www.w3.org/2000/svg' width='9' "
    b"height='9'><rect width='9' height='9'/></svg>", b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n",
    b'{"image": null}', b"BM" + b"\0" * 200, bytes(range(256)) * 40,
    b"#?RADIANT\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n\1\1\1\1", b"SIMPLE  =                    T",
    b"1 2 3\n4 5 6\n7 8 9\n",  # a matrix in text form is an image to libvips, not to us
], ids=["letter", "letter-x", "zeros", "ff", "html", "svg", "pdf", "json", "bmp", "bytes",
        "radiant", "fits", "matrix"])
def test_not_an_image(service, body):
    service.post("/v1/filters/box", body).refused(415, "not-an-image")


@pytest.mark.parametrize("name, says, options", [
    ("JPEG2000", "JPEG 2000 (opj_decompress", {}), ("JPEG2000", "JPEG 2000 (opj_decompress", {"no_jp2": True}),
    ("ICO", "an icon (ICO; ImageMagick or icotool", {})])
def test_not_read_but_named(service, name, says, options):
    """The answer names a tool that converts it."""
    body = imagefiles.written(imagefiles.pil(random_pixels(3, 40, 30, 3, "u8")), name, **options)
    detail = service.identity(body).refused(415, "not-an-image")["detail"]
    assert f"look like {says}" in detail and "converts it to PNG" in detail


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("name", ["JPEG", "PNG", "TIFF", "WEBP", "progressive"])
def test_truncated(service, name, share):
    """Never half an image with the rest gray."""
    noise = imagefiles.pil(random_pixels(3, 200, 150, 3, "u8"))
    options = {"progressive": True} if name == "progressive" else {}
    file = imagefiles.written(noise, "JPEG" if name == "progressive" else name, **options)
    for target in ("/v1/filters/gaussian?sigma=2", "/v1/filters/box?format=raw&border=wrap"):
        answer = service.post(target, file[:int(len(file) * share)])
        answer.refused(422, "undecodable")


@pytest.mark.parametrize("body, name", [(JPEG, "jpeg"), (PNG, "png")])
def test_cut_at_the_start(service, body, name):
    """A few bytes: too little to be known, or known and undecodable."""
    for length in (1, 2, 3, 4, 8, 12, 20, 33):
        answer = service.post("/v1/filters/box", body[:length])
        assert answer.status in (415, 422), (length, answer)
        assert answer.problem


def test_spoiled(service):
    """Bytes overwritten in the middle: an error or an image, never an end."""
    rng = np.random.default_rng(5)
    files = [JPEG, PNG, imagefiles.written(imagefiles.pil(PIXELS), "WEBP"),
             imagefiles.write_tiff(PIXELS),
             imagefiles.written(imagefiles.pil(PIXELS).quantize(64), "GIF")]
    for file in files:
        for _ in range(12):
            spoiled = bytearray(file)
            for place in rng.integers(4, len(file), 3):
                spoiled[place] = rng.integers(256)
            answer = service.post("/v1/filters/box?format=raw", bytes(spoiled))
            assert answer.status in (200, 415, 422), answer
            assert answer.status == 200 or answer.problem


def test_png_with_a_wrong_checksum(service):
    spoiled = bytearray(PNG)
    spoiled[PNG.index(b"IDAT") + 1000] ^= 0x55
    service.post("/v1/filters/box", bytes(spoiled)).refused(422, "undecodable")


def test_one_pixel(service):
    for body in (imagefiles.write_png(np.full((1, 1, 3), 7, np.uint8)),
                 imagefiles.written(imagefiles.pil(np.full((1, 1, 3), 7, np.uint8)), "JPEG"),
                 imagefiles.write_tiff(np.full((1, 1, 1), 7, np.uint16)), b"P5\n1 1\n255\n\x07"):
        for target in ("gaussian?sigma=20", "sobel", "box?border=reflect101",
                       "convolve?kernel=0,0,1&border=wrap"):
            answer = service.post(f"/v1/filters/{target}", body)
            assert answer.status == 200, answer
            assert answer.kind[:2] == (1, 1)


def test_smaller_than_the_filter(service):
    """Only crop has nothing left; every other border goes on round the image."""
    for border in oracle.BORDERS:
        answer = service.filter(PIXELS[:9, :9], [("gaussian", {"sigma": 4})], border=border)
        if border == "crop":
            problem = answer.refused(422, "image-too-small")
            assert "9x9" in problem["detail"] and "25x25" in problem["detail"]
        else:
            assert answer.status == 200, answer
    least = service.filter(PIXELS[:25, :26], [("gaussian", {"sigma": 4})], border="crop")
    assert least.status == 200 and least.kind == (2, 1, 3, "u8")


@pytest.mark.parametrize("size", [0.5, 1.5, 0.999])
def test_raw_of_another_size(service, size):
    body = np.zeros(int(10 * 8 * 3 * size) or 1, np.uint8).tobytes()
    answer = service.post("/v1/filters/box?raw=10x8x3:u8&format=raw", body)
    assert answer.status in (400, 422), answer
    assert "240" in answer.problem["detail"]


def test_bomb(service):
    """Small files of huge images: refused by their headers."""
    huge_png = (imagefiles.png_header(100000, 100000)
                + imagefiles.png_chunk(b"IDAT", zlib.compress(b"\0" * 1000))
                + imagefiles.png_chunk(b"IEND", b""))
    frame = JPEG.index(b"\xff\xc0")
    huge_jpeg = JPEG[:frame + 5] + struct.pack(">HH", 65500, 65500) + JPEG[frame + 9:]
    interlaced = (imagefiles.png_header(20000, 20000, interlace=1)
                  + imagefiles.png_chunk(b"IDAT", zlib.compress(b"\0" * 1000))
                  + imagefiles.png_chunk(b"IEND", b""))
    for body in (huge_png, huge_jpeg, interlaced, b"P5\n60000 60000\n255\n" + b"\0" * 1000):
        problem = service.post("/v1/filters/box", body).refused(422, "too-many-pixels")
        assert any(c.isdigit() for c in problem["detail"])


def test_zero_sized(service):
    for body in (imagefiles.png_header(0, 10) + imagefiles.png_chunk(b"IEND", b""),
                 b"P5\n0 10\n255\n", b"P6\n-1 10\n255\n\0\0\0"):
        answer = service.post("/v1/filters/box", body)
        assert answer.status in (415, 422) and answer.problem, answer


# Limits -------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def limited(launch):
    """A service with narrow limits."""
    with launch("--max-body", "1M", "--max-pixels", "1000000", "--max-buffered-size", "80000",
                "--arena-size", "256K", "--codecs", "2", "--max-jobs", "3") as service:
        yield service
        works(service)
        assert service.restarts() == 0, service.tail()


def test_too_many_pixels(limited):
    fits = imagefiles.write_png(np.zeros((1000, 1000, 1), np.uint8))
    exceeds = imagefiles.write_png(np.zeros((1000, 1001, 1), np.uint8))
    assert limited.post("/v1/filters/box", fits).status == 200
    problem = limited.post("/v1/filters/box", exceeds).refused(422, "too-many-pixels")
    assert "1000000" in problem["detail"].replace(",", "")
    whole = imagefiles.written(imagefiles.pil(np.zeros((101, 100, 3), np.uint8)), "WEBP")
    limited.post("/v1/filters/box", whole).refused(422, "too-many-pixels")
    answer = limited.filter(np.zeros((999, 1003, 1), np.uint8), [("box", {})])
    answer.refused(422, "too-many-pixels")
    works(limited)


def test_too_wide(limited):
    """The largest width that is named works, and one more does not."""
    filters = [("gaussian", {"sigma": 20.0, "size": 121})]
    answer = limited.filter(random_pixels(1, 9000, 10, 3, "u8"), filters)
    width = int(answer.refused(422, "does-not-fit")["detail"].rstrip(".").split()[-1])
    assert 50 < width < 9000
    pixels = random_pixels(2, width, 10, 3, "u8")
    answer = limited.filter(pixels, filters)
    assert answer.status == 200, answer
    oracle.check(answer.pixels, oracle.filtered(pixels, filters))
    answer = limited.filter(random_pixels(1, width + 1, 10, 3, "u8"), filters)
    answer.refused(422, "does-not-fit")
    works(limited)


@pytest.mark.parametrize("filters, border", [([("gaussian", {"sigma": 30})], "reflect"), ([("unsharp", {"sigma": 100})], "wrap"),
                                             ([("box", {}), ("gaussian", {"sigma": 30}), ("sobel", {})], "crop")], ids=str)
def test_too_wide_for_a_sigma(limited, filters, border):
    """The largest sigma that is named works, and a larger one does not."""
    pixels = random_pixels(3, 500, 400, 1, "u8")
    which = next(i for i, (name, _) in enumerate(filters) if name in ("gaussian", "unsharp"))

    def chain(sigma):
        return [(name, {"sigma": sigma}) if i == which else (name, values)
                for i, (name, values) in enumerate(filters)]
    problem = limited.filter(pixels, filters, border=border).refused(422, "does-not-fit")
    sigma = float(problem["detail"].rstrip(".").rpartition("largest sigma is ")[2])
    assert 8 < sigma < filters[which][1]["sigma"], problem
    answer = limited.filter(pixels, chain(sigma), border=border)
    assert answer.status == 200, answer
    oracle.check(answer.pixels, oracle.filtered(pixels, chain(sigma), border))
    limited.filter(pixels, chain(sigma + 0.1), border=border).refused(422, "does-not-fit")
    works(limited)


def test_too_wide_for_a_window(limited):
    """Windows of other kinds, and by a kernel that is named."""
    pixels = random_pixels(22, 400, 300, 3, "u8")
    for filters, options in (([("box", {"size": 201})], {}), ([("gaussian", {"size": 201})], {}),
                             ([("canny", {"sigma": 30})], {}), ([("gaussian", {"sigma": 30})], {"variant": "separable"}),
                             ([("gaussian", {"sigma": 30})] * 3, {})):
        problem = limited.filter(pixels, filters, **options).refused(422, "does-not-fit")
        assert "arena-size" in problem["detail"] and "largest width is" in problem["detail"], problem
    works(limited)


def head(target, *headers):
    return "\r\n".join([f"POST {target} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


EXPECT = "Expect: 100-continue"


def first_bytes(connection):
    data = b""
    while b"\r\n" not in data:
        piece = connection.recv(4096)
        assert piece, "the connection was closed without an answer"
        data += piece
    return data


@pytest.mark.parametrize("target, status", [
    ("/v1/filters/gaussian?sigma=-1", b"400"), ("/v1/filters/gausian", b"404"),
    ("/v1/nothing", b"404"), ("/v1/chain?filters=box=size=2", b"400"), ("/v1/devices", b"405"),
])
def test_expect_refused(service, target, status):
    """The answer comes instead of the invitation, before a byte of the body."""
    with service.socket() as connection:
        connection.sendall(head(target, EXPECT, "Content-Length: 50000000"))
        assert first_bytes(connection).startswith(b"HTTP/1.1 " + status)


def test_expect_accepted(service):
    with service.socket() as connection:
        connection.sendall(head("/v1/filters/box?format=raw", EXPECT,
                                f"Content-Length: {len(PNG)}"))
        assert first_bytes(connection) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(PNG)
        answer = read_answer(connection)
        oracle.check(answer.pixels, oracle.filtered(PIXELS, [("box", {})]))


def test_too_many_bytes_announced(service, limited):
    """413 with Expect without an invitation; without Expect before the body has been sent."""
    for target, length in ((service, 256 << 20), (limited, 1 << 20)):
        for headers in ((EXPECT,), ()):
            with target.socket() as connection:
                connection.sendall(head("/v1/filters/box", *headers,
                                        f"Content-Length: {length + 1}"))
                if not headers:
                    connection.sendall(b"x" * 100)
                if length > 8 << 20 or headers:
                    answer = read_answer(connection)
                    problem = answer.refused(413, "body-too-large")
                    assert str(length) in problem["detail"]


def test_too_many_bytes_sent(limited):
    """Slightly too many by a client that reads only after it has sent; many more by one that
    does not announce them."""
    limited.post("/v1/filters/box", b"x" * ((1 << 20) + 1)).refused(413, "body-too-large")
    limited.post("/v1/filters/box", (b"y" * 65536 for _ in range(40))).refused(
        413, "body-too-large")  # chunked
    form, kind = multipart([("image", "x", b"z" * (1 << 20))])
    answer = limited.post("/v1/filters/box", form, headers={"Content-Type": kind})
    answer.refused(413, "body-too-large")
    works(limited)


def test_body_of_the_largest_size(limited):
    pixels = random_pixels(9, 512, 341, 3, "u16")
    body = imagefiles.write_pnm(pixels)
    body = body[:2] + b" " * ((1 << 20) - len(body)) + body[2:]
    assert len(body) == 1 << 20
    assert limited.post("/v1/filters/box", body).status == 200


def test_endless_body_does_not_last(service):
    """A client that sends for ever is cut off."""
    with service.socket(timeout=60) as connection:
        connection.sendall(head("/v1/filters/gausian", "Transfer-Encoding: chunked"))
        piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        began = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() < began + 30:  # it has two seconds to look at its answer
                connection.sendall(piece)


def test_job_timeout(launch):
    """Hopelessly large work ends in time, and leaves room for the next."""
    noise = random_pixels(1, 63, 63, 1, "u8")[:, :, 0].astype(int)
    filters = [("convolve", {"kernel": noise + 1})] * 2
    with launch("--job-timeout", "2", "--codecs", "1") as service:
        started = time.monotonic()
        service.filter(np.zeros((6000, 4000, 4), np.uint8), filters).refused(504, "timeout")
        assert time.monotonic() - started > 1.5
        works(service)
        poll(lambda: service.total("convolved_tiles_in_flight") == 0, 60, "idle devices")
        assert len(service.workers("device")) == 1 and len(service.workers("codec")) == 1


def test_overload(limited):
    """More than max-jobs at a time: refused quickly and told when to come again; accepted ones are
    done."""
    pixels = random_pixels(3, 500, 600, 3, "u8")
    filters = [("gaussian", {"sigma": 2.0})] * 3
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: limited.filter(pixels, filters), range(36)))
    done = [a for a in answers if a.status == 200]
    refused = [a for a in answers if a.status != 200]
    assert done and refused
    for answer in refused:
        answer.refused(429, "queue-full")
        assert int(answer.headers["Retry-After"]) >= 1
    assert len({a.body for a in done}) == 1
    works(limited)


# Connections --------------------------------------------------------------------------------------

@pytest.mark.parametrize("garbage", [
    b"\r\n\r\n\r\n", b"\x16\x03\x01\x02\0\1\0\1\xfc\3\3" + b"\0" * 100, b"\0" * 500,
    b"POST /v1/filters/box HTTP/1.1\r\nHost: x\r\n",
], ids=["lines", "tls", "zeros", "half"])
def test_unfinished(service, garbage):
    """These are no requests yet, by a client that then says nothing or leaves."""
    with service.socket() as silent, service.socket() as leaving:
        silent.sendall(garbage)
        leaving.sendall(garbage)
        leaving.shutdown(socket.SHUT_WR)
        works(service)


def test_connection_goes_on(service):
    """One connection, errors and images in turn: an answer leaves the next request intact."""
    connection = http.client.HTTPConnection(service.host, service.port, timeout=60)
    connection.connect()
    first = connection.sock
    expected = oracle.filtered(PIXELS, [("box", {})])
    for _ in range(3):
        for target, body, status in (("box?format=raw", PNG, 200), ("box?size=4", PNG, 400),
                                     ("gausian", PNG, 404), ("box", b"text", 415),
                                     ("box", PNG[:3000], 422), ("box", b"", 400)):
            connection.request("POST", f"/v1/filters/{target}", body)
            answer = connection.getresponse()
            data = answer.read()
            assert answer.status == status, data
            if status == 200:
                oracle.check(np.frombuffer(data, np.uint8).reshape(47, 61, 3), expected)
        assert connection.sock is first, "the connection was closed"
    connection.close()


def test_clients_that_leave(service):
    """In the middle of the headers, of the body, and while their image is filtered."""
    large = random_pixels(1, 2000, 1500, 3, "u8").tobytes()
    target = "/v1/filters/gaussian?sigma=20&raw=2000x1500x3:u8&format=raw"
    for _ in range(3):
        for data in (b"POST /v1/fil", head(target, f"Content-Length: {len(large)}"),
                     head(target, f"Content-Length: {len(large)}") + large[:len(large) // 2],
                     head(target, f"Content-Length: {len(large)}") + large):
            with service.socket() as connection:
                connection.sendall(data)
    works(service)
    poll(lambda: service.total("convolved_tiles_in_flight") == 0, 60, "idle devices")


def test_one_byte_at_a_time(service):
    """A slow sender is served, others meanwhile too."""
    small = imagefiles.write_png(PIXELS[:4, :4])
    request = head("/v1/filters/box?format=raw", f"Content-Length: {len(small)}") + small
    with service.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(request)):
            connection.sendall(request[i:i + 1])
            if i == len(request) // 2:
                works(Client(service.host, service.port))
        oracle.check(read_answer(connection).pixels, oracle.filtered(PIXELS[:4, :4], [("box", {})]))


# curl ---------------------------------------------------------------------------------------------

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("kind, slug", [("PNG", "not-an-image"), ("JPEG", "undecodable")])
def test_spoilt_by_curl(service, kind, slug):
    """-d takes line ends and zero bytes out of a file, and says that the body is a form; so says
    --data-binary, which leaves the file as it is."""
    file = io.BytesIO()
    Image.effect_noise((60, 50), 40).save(file, kind)
    whole = file.getvalue()
    spoilt = whole.translate(None, b"\r\n\0")
    assert service.post("/v1/filters/box", whole, headers=FORM).status == 200
    for prefer in ({}, {"Prefer": "respond-async"}):
        answer = service.post("/v1/filters/box", spoilt, headers={**FORM, **prefer})
        if prefer:
            answer = service.get(answer.headers["Location"] + "/result?wait=30")
        assert "--data-binary" in answer.refused(answer.status, slug)["detail"]
    broken = service.post("/v1/filters/box", whole[:-900], headers=FORM)
    assert "--data-binary" not in broken.refused(422, "undecodable")["detail"]
    for body, headers in ((spoilt, {}), (b"no image", FORM)):
        assert "--data-binary" not in service.post("/v1/filters/box", body,
                                                   headers=headers).problem["detail"]


def test_filter_without_a_name(service):
    for filters in ("gaussian=sigma=1,,sobel", ",box", "box,", "=size=3"):
        problem = service.post(f"/v1/chain?filters={filters}", PNG).refused(400, "bad-parameter")
        assert problem["parameter"] == "filter"


def test_filter_that_is_near_none(service):
    for target in ("/v1/filters/hologram", "/v1/chain?filters=hologram"):
        detail = service.post(target, PNG).refused(404, "unknown-filter")["detail"]
        assert "did you mean" not in detail and "gaussian, box, " in detail
        assert detail.endswith("bilateral"), "the list is whole"


def test_defaults_may_be_said(service):
    """As generated clients do, with a chain that has no filter for all bands, too."""
    assert service.post("/v1/chain?luma=box&channels=all&border_value=0&alpha=0", PNG).status == 200
    service.post("/v1/chain?luma=box&channels=red", PNG).refused(400, "bad-parameter")
