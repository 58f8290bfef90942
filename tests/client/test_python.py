"""The Python client: both of its kinds against the service, and against servers that answer as a test
wants."""
import ast
import asyncio
import email.utils
import http.client
import io
import json
import pathlib
import pickle
import re
import subprocess
import sys
import time
import uuid
import zipfile

import httpx
import numpy as np
import PIL.Image
import pytest

import imagefiles
from certificates import localhost_certificate
from client import ppm
from pixels import random_pixels
from scripted import busy, problem
from service import ONE_DEVICE, REPOSITORY, free_port, target_of

SOURCES = REPOSITORY / "client/python"
sys.path.insert(0, str(SOURCES))
sys.dont_write_bytecode = True

import convolved  # noqa: E402
import generate  # noqa: E402
from convolved import filters as f  # noqa: E402

PHOTOGRAPH = REPOSITORY / "tests/photograph.jpg"
GENERAL = {"variant": "general"}  # for reproducible bytes
IMAGE = {"Content-Type": "image/png", "X-Image": "1x1x1:u8"}  # headers of a result
RUNNING = (202, {"Content-Type": "application/json"}, json.dumps(
    {"id": "ab", "state": "running", "progress": {"tiles_done": 0, "tiles": None}, "left_seconds": None}).encode())


def waits(url, use, **options):
    with convolved.Client(url, **options) as service:
        return use(service)


def awaits(url, use, **options):
    async def run():
        async with convolved.AsyncClient(url, **options) as service:
            return await use(service)
    return asyncio.run(run())


@pytest.fixture(params=[waits, awaits])
def ask(request):
    """ask(url, use, **options): use(client), with a client of either kind."""
    return request.param


# Types --------------------------------------------------------------------------------------------

def signatures(source):
    """Returns the source without its texts."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            node.body = node.body[bool(ast.get_docstring(node)):]
    return ast.unparse(tree)


def test_filters_are_those_of_the_service(service):
    """The generated part is, but for texts, the service's present description of itself."""
    fresh = generate.generate(service.get("/openapi.json").json())
    assert signatures((SOURCES / "convolved/filters.py").read_text()) == signatures(fresh), \
        "curl -s localhost:8700/openapi.json | client/python/generate.py >client/python/convolved/filters.py"
    assert "def gaussian(*, sigma: float | str | None=None, size: int" in signatures(fresh)


# Images -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shape, dtype", [((9, 7), "u1"), ((5, 8, 4), "<u2"), ((6, 1, 3), ">f4")])
def test_arrays(ask, service, shape, dtype):
    """In and out, whatever their order in memory is."""
    pixels = np.random.default_rng(1).integers(0, 256, shape).astype(dtype)[::-1, :]
    result = ask(service.url, lambda s: s.apply(pixels, f.convolve(kernel=[[1]])))
    assert result.pixels.dtype == pixels.dtype.newbyteorder("<")
    assert np.array_equal(result.pixels, pixels)
    assert result.media_type == "application/octet-stream" and result.lost == []
    assert result.timing["total"] > 0


def test_presets(ask, launch):
    """Files and pixels; alone, and as jobs."""
    pixels = random_pixels(1, 9, 7, 3, "u8")
    with launch("--preset", "neg=invert", environment=ONE_DEVICE) as started:
        assert np.array_equal(ask(started.url, lambda s: s.apply(pixels, preset="neg")).pixels, 255 - pixels)
        file = imagefiles.write_png(pixels)
        job = ask(started.url, lambda s: s.submit(file, preset="neg", format="ppm"))
        assert ask(started.url, lambda s: s.result(job)).content == started.post(
            "/v1/filters/invert?format=ppm", file).body
        for name, more, status in (("nag", {}, 404), ("a/b ?", {}, 404), ("neg", {"quality": 3}, 400)):
            with pytest.raises(convolved.Problem) as raised:
                ask(started.url, lambda s: s.apply(file, preset=name, **more))  # noqa: B023
            assert raised.value.status == status
        with pytest.raises(convolved.Problem, match="a request for a preset takes format"):
            ask(started.url, lambda s: s.apply(file, f.box(), preset="neg"))


def test_several_pages(service):
    """The pages of a raw answer lie one below the other."""
    frames = [imagefiles.pil(random_pixels(i, 8, 5, 3, "u8")) for i in range(3)]
    file = imagefiles.written(frames[0], "tiff", save_all=True, append_images=frames[1:])
    result = waits(service.url, lambda s: s.apply(file, f.invert(), pages="all", format="raw"))
    assert result.pixels.shape == (3, 5, 8, 3)
    assert np.array_equal(result.pixels[2], 255 - np.asarray(frames[2]))


class Array:
    """Pixels as another library has them."""
    def __init__(self, pixels):
        self.pixels = pixels

    def __array__(self, dtype=None):
        return self.pixels


class Interface:
    def __init__(self, pixels):
        self.pixels, self.__array_interface__ = pixels, pixels.__array_interface__


@pytest.mark.parametrize("given", [PIL.Image.fromarray, Array, Interface])
@pytest.mark.parametrize("shape, dtype", [((9, 7), "u1"), ((5, 8, 3), "u1"), ((6, 2), "<u2"), ((1, 4), "<f4")])
def test_pixels_of_others(ask, service, given, shape, dtype):
    pixels = np.random.default_rng(1).integers(0, 256, shape).astype(dtype)
    result = ask(service.url, lambda s: s.apply(given(pixels), f.convolve(kernel=[[1]])))
    assert result.pixels.dtype == pixels.dtype and np.array_equal(result.pixels, pixels)


def transparent_palette():
    image = PIL.Image.fromarray(random_pixels(1, 9, 7, 3, "u8")).quantize(16)
    image.info["transparency"] = 3
    return image


@pytest.mark.parametrize("mode, seen", [("1", "L"), ("P", "RGB"), ("transparent", "RGBA"), ("LA", "LA"), ("RGBA", "RGBA"),
                                        ("RGBX", "RGB"), ("RGBa", "RGBA"), ("CMYK", "RGB"), ("YCbCr", "RGB"), ("HSV", "RGB")])
def test_modes_of_pil(ask, service, mode, seen):
    """The filtered pixels are the picture's: no index of a palette, no cyan as red; alpha is alpha."""
    colour = PIL.Image.fromarray(random_pixels(1, 9, 7, 4, "u8"), "RGBA")
    image = transparent_palette() if mode == "transparent" else (
        colour if mode in ("RGBA", "RGBa", "LA") else colour.convert("RGB")).convert(mode)
    file = imagefiles.written(image.convert(seen), "png")
    result = ask(service.url, lambda s: s.apply(image, f.box(size=3), format="png", **GENERAL))
    right, _ = imagefiles.read_pil(service.post(target_of([("box", {"size": 3})], **GENERAL), file).body)
    assert np.array_equal(imagefiles.read_pil(result.content)[0], right)


# Masks --------------------------------------------------------------------------------------------

def masked(service, image, mask, target):
    answer = service.post_masked(image, mask, target)
    assert answer.status == 200, answer
    return answer.body


def grey(shape, dtype="u1"):
    values = np.random.default_rng(len(shape)).integers(0, 256, shape)
    return (values / 255).astype(dtype) if dtype.endswith("f4") else (values * (257 if "2" in dtype else 1)).astype(dtype)


@pytest.mark.parametrize("shape, dtype", [((9, 7), "u1"), ((5, 8, 1), "<u2"), ((6, 1, 3), ">u2"), ((4, 9), "<f4"), ((3, 2, 3), ">f4"),
                                          ((1, 1, 3), "u1"), ((7, 5), "bool")])
def test_masks_of_pixels(ask, service, shape, dtype):
    """They have the values of a file with the same pixels, whatever their order in memory is."""
    mask, body = grey(shape, "u1" if dtype == "bool" else dtype)[::-1, :], ppm()
    mask = mask > 99 if dtype == "bool" else mask
    same = (mask * np.uint8(255) if dtype == "bool" else mask).reshape(*(*shape, 1)[:3])
    same = np.ascontiguousarray(same, same.dtype.newbyteorder("="))
    file = (imagefiles.write_pnm if same.dtype == np.float32 else imagefiles.write_png)(same)
    right = masked(service, body, file, "/v1/filters/invert")
    assert ask(service.url, lambda s: s.apply(body, f.invert(), mask=mask)).content == right
    assert right not in (body, service.post("/v1/filters/invert", body).body)


def test_masks(ask, service, tmp_path):
    """Files of all kinds, pictures, and other pixels; alone, with long parameters, and as jobs."""
    picture, path = PIL.Image.fromarray(grey((9, 7))), tmp_path / "mask.png"
    content, body = imagefiles.written(picture, "png"), ppm()
    path.write_bytes(content)
    right = masked(service, body, content, "/v1/filters/box?size=5&variant=general&invert=1")
    for mask in (path, str(path), content, bytearray(content), memoryview(content), io.BytesIO(content), picture,
                 Array(np.asarray(picture)), Interface(np.asarray(picture)), picture.convert("RGB")):
        assert ask(service.url, lambda s, mask=mask: s.apply(
            body, f.box(size=5), invert=True, mask=mask, **GENERAL)).content == right
    pixels = random_pixels(1, 30, 40, 3, "u8")
    result = ask(service.url, lambda s: s.apply(pixels, f.invert(), mask=np.zeros((1, 1), bool)))
    assert np.array_equal(result.pixels, pixels)
    assert np.array_equal(ask(service.url, lambda s: s.apply(pixels, f.invert(), mask=np.ones((2, 1), bool))).pixels, 255 - pixels)
    table = np.arange(4096) % 256
    long = ask(service.url, lambda s: s.apply(body, f.lut(table=table), mask=path, **GENERAL)).content
    assert long == masked(service, body, content, target_of([("lut", {"table": table})], **GENERAL))
    job = ask(service.url, lambda s: s.submit(body, f.box(size=5), invert=True, mask=picture, **GENERAL))
    assert ask(service.url, lambda s: s.result(job)).content == right
    ask(service.url, lambda s: s.cancel(job))


def test_masks_that_the_service_refuses(ask, service):
    for mask, words, filters in ((b"text", "415 not-an-image", [f.box()]), (grey((9, 7)), "without resize", [f.resize(width=5)])):
        with pytest.raises(convolved.Problem, match=words) as raised:
            ask(service.url, lambda s: s.apply(ppm(), *filters, mask=mask))  # noqa: B023
        assert raised.value.parameter == "mask"


@pytest.mark.parametrize("mask, kind, said", [
    (grey((9, 7, 2)), TypeError, "without alpha, not of 2 bands"), (grey((9, 7, 4)), TypeError, "not of 4 bands"),
    (PIL.Image.new("RGBA", (3, 3)), TypeError, "not of 4 bands"), (np.zeros((3, 3)), TypeError, "float64"),
    (np.zeros(9, bool), TypeError, "uint8 as"), (io.BytesIO(), ValueError, r"seek\(0\)"), (7, TypeError, "int"),
    ("none.png", FileNotFoundError, "none.png")])
def test_masks_that_are_not_sent(ask, server, mask, kind, said):
    scripted = server()
    with pytest.raises(kind, match=said):
        ask(scripted.url, lambda s: s.apply(ppm(), f.box(), mask=mask))
    assert scripted.requests == []


def test_masks_are_sent_again(ask, server):
    """Whole, with the same key, and behind the image; parameters stay in the address."""
    scripted = server([busy(0), None, RUNNING])
    mask = io.BytesIO(b"the mask")
    ask(scripted.url, lambda s: s.submit(ppm(), f.box(size=5), mask=mask))
    assert len(scripted.requests) == 3 and {r.path for r in scripted.requests} == {"/v1/filters/box?size=5"}
    assert len({r.headers["Idempotency-Key"] for r in scripted.requests}) == 1
    bodies = scripted.bodies
    assert bodies[0] == bodies[1] == bodies[2] and 0 < bodies[0].index(ppm()) < bodies[0].index(b"the mask")


@pytest.mark.parametrize("image, kind, said", [
    (io.StringIO("text"), TypeError, "binary mode"), (io.BytesIO(), ValueError, r"seek\(0\)"),
    (PIL.Image.new("LAB", (3, 3)), TypeError, "mode LAB"), (PIL.Image.new("I", (3, 3)), TypeError, "mode I"),
    (Array(np.zeros((3, 3))), TypeError, "float64"), (np.zeros((4, 4), bool), TypeError, "bool"),
    (np.zeros(4, np.uint8), TypeError, ""), (np.zeros((1, 2, 3, 4), np.uint8), TypeError, ""),
    (None, TypeError, "NoneType"), (5, TypeError, "int"), ([[1, 2]], TypeError, "list")])
def test_what_is_refused_before_it_is_sent(ask, server, image, kind, said):
    scripted = server()
    with pytest.raises(kind, match=said):
        ask(scripted.url, lambda s: s.apply(image, f.box()))
    assert scripted.requests == []


def test_files(ask, service, tmp_path):
    """Paths, open files or bytes, with options of every kind: the bytes are the service's."""
    right = service.post(target_of([("gaussian", {"sigma": "1%"})], format="png", strip=1,
                                   regions="1,2,30,40;ellipse:60,70,30,20;polygon:99,9 150,20 120,80", **GENERAL),
                         PHOTOGRAPH.read_bytes())
    options = {"format": "png", "strip": True,
               "regions": [(1, 2, 30, 40), "ellipse:60,70,30,20", "polygon:99,9 150,20 120,80"], **GENERAL}
    content = PHOTOGRAPH.read_bytes()
    for image in (str, pathlib.Path, lambda path: path.open("rb"), lambda _: io.BytesIO(content),
                  lambda _: content, lambda _: bytearray(content), lambda _: memoryview(content)):
        result = ask(service.url, lambda s, image=image: s.apply(
            image(PHOTOGRAPH), f.gaussian(sigma="1%"), **options))
        assert (result.content, result.media_type) == (right.body, "image/png")
    result.save(tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes() == right.body
    with pytest.raises(ValueError, match="image/png"):
        result.pixels
    lossy = ask(service.url, lambda s: s.apply(PHOTOGRAPH, f.box(size=5)))
    assert "lossy" in lossy.lost and lossy.media_type == "image/jpeg"


def test_chains(ask, service):
    """Several filters, matrices and tables among them, and others for luma and chroma."""
    body, table = ppm(), [0, 60.5, 255]
    right = service.post(target_of(
        [("convolve", {"kernel": [[1, 2, 1], [2, 4.5, 2], [1, 2, 1]]}), ("lut", {"table": table})],
        luma=[("gaussian", {"size": 5})], chroma=[("box", {"size": 3})], **GENERAL), body)
    assert right.status == 200, right
    result = ask(service.url, lambda s: s.apply(
        body, f.convolve(kernel=np.array([[1, 2, 1], [2, 4.5, 2], [1, 2, 1]])), f.lut(table=table),
        luma=[f.gaussian(size=5)], chroma=[f.box(size=3)], **GENERAL))
    assert result.content == right.body
    alone = ask(service.url, lambda s: s.apply(body, luma=[f.invert()], **GENERAL))
    assert alone.content == service.post(target_of([], luma=[("invert", {})], **GENERAL), body).body


def test_long_parameters(ask, service):
    """Parameters too long for a query travel as a form."""
    table = np.random.default_rng(1).uniform(0, 255, 4096).round(4)
    pixels = random_pixels(1, 300, 20, 1, "u8")
    result = ask(service.url, lambda s: s.apply(pixels, f.lut(table=table)))
    steps = np.interp(pixels[..., 0] / 255, np.linspace(0, 1, 4096), table)
    assert np.abs(result.pixels - steps).max() <= 0.5 + 1e-3


# Problems -----------------------------------------------------------------------------------------

def test_problems(ask, service):
    with pytest.raises(convolved.Problem) as caught:
        ask(service.url, lambda s: s.apply(ppm(), f.box(size=4)))
    for told in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (told.status, told.type, told.parameter, told.value) == (400, "bad-parameter",
                                                                        "size", "4")
        assert "odd integer" in str(told) and re.fullmatch("[0-9a-f]{16}", told.request_id)
        assert told.document["title"] == told.title


@pytest.mark.parametrize("answer", [
    (200, {"Content-Type": "text/html", "X-Image": None}, b"<h1>Sign in</h1>"),
    (200, {"Content-Type": "text/html"}, b"<h1>Sign in</h1>"),
    (200, {"Content-Type": None}, b"image"), (200, {**IMAGE, "X-Image": None}, b"image"),
    (200, IMAGE, b""), (202, {"Content-Type": "application/json"}, b"{"), (204, {}, b""),
    (200, {"Content-Type": "application/json", "X-Image": None}, b"[" * 100000)])
@pytest.mark.parametrize("use, expected", [
    (lambda s: s.apply(ppm(), f.box()), "an image"), (lambda s: s.result("aa"), "an image"),
    (lambda s: s.submit(ppm(), f.box()), "a job"), (lambda s: s.job("aa"), "a job"), (lambda s: s.jobs(), "jobs"),
    (lambda s: s.get("/x"), "JSON")])
def test_what_is_no_answer(ask, server, answer, use, expected):
    """A page of another server is no image, whatever its status says."""
    with pytest.raises(convolved.Problem, match=f"expected {expected}.* convolved at 127.0.0.1") as caught:
        ask(server(lambda _: answer).url, use)
    assert (caught.value.status, caught.value.document) == (answer[0], {})


MALFORMED = [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b"[" * 100000, b'{"detail": "cut of',
             b'{"type": 5, "title": ["x"], "detail": {"a": 1}, "parameter": 7, "value": null, "status": "x"}']


@pytest.mark.parametrize("status, kind, body", [
    *((422, "application/problem+json", body) for body in MALFORMED), (502, "text/html", b"<h1>Bad Gateway</h1>")])
def test_malformed_problems(ask, server, status, kind, body):
    """A problem whose document is none is still one; a proxy knows no problem documents."""
    scripted = server(lambda _: (status, {"Content-Type": kind, "X-Request-Id": "ab"}, body))
    with pytest.raises(convolved.Problem) as caught:
        ask(scripted.url, lambda s: s.apply(ppm(), f.box()))
    for told in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (told.status, told.type, told.detail, told.request_id) == (status, "", None, "ab")
        assert str(told) == f"{status}: {http.client.responses[status]}" and repr(told)
        assert status == 422 or told.document == {}


def test_short_reprs(ask, service, server):
    """Those of what holds much, too."""
    result = ask(service.url, lambda s: s.apply(random_pixels(1, 99, 99, 3, "u8"), f.invert()))
    assert repr(result) == "<Result application/octet-stream, 99x99x3:u8: 29403 bytes>"
    assert repr(convolved.Result(b"abc", {})) == "<Result : 3 bytes>"
    assert repr(f.gaussian(sigma=1.5)) == "gaussian(sigma=1.5)"
    many = f.lut(table=np.zeros(4096)), f.lut(table=[0.5] * 4096), f.lut(table="0," * 9999), f.convolve(kernel=np.ones((9, 9)))
    assert max(len(repr(one)) for one in many) < 60
    long = server([problem(400, "x" * 99999)])
    with pytest.raises(convolved.Problem) as caught:
        ask(long.url, lambda s: s.apply(ppm(), f.box()))
    assert len(repr(caught.value)) < 250 and "400 bad-parameter: xx" in repr(caught.value)


@pytest.mark.parametrize("after", [lambda: "1", lambda: email.utils.formatdate(time.time() + 1.5)],
                         ids=("seconds", "date"))
def test_patience(ask, server, after):
    """A refused request is sent again, as it was, when the service says."""
    scripted = server([busy(after(), 429), busy(after()), (200, {}, b"result")])
    result = ask(scripted.url, lambda s: s.apply(ppm(), f.box(size=5), quality=7))
    assert result.content == b"result" and len(scripted.requests) == 3
    assert {(r.path, r.body) for r in scripted.requests} == {
        ("/v1/filters/box?size=5&quality=7", ppm())}


@pytest.mark.parametrize("when, patience", [
    ("9", 5), ("soon", 5), (None, 5), *((nonsense, float("inf")) for nonsense in (
        "9" * 400, "Mon, 20 Nov 1995 19:12:08 +99999999999999", "Mon, 99 Foo 99999 1:1:1", "-1",
        "1e3", "\xb2"))])
def test_no_patience(ask, server, when, patience):
    """Its problem is raised if the service asks for too much time, or does not say when."""
    scripted = server([busy(when)])
    with pytest.raises(convolved.Problem) as caught:
        ask(scripted.url, lambda s: s.apply(ppm(), f.box()), patience=patience)
    assert len(scripted.requests) == 1
    assert caught.value.retry_after == {"9": 9, "9" * 400: float("inf")}.get(when)


@pytest.mark.parametrize("status, when", [
    (503, "0"), (429, "Thu, 01 Jan 1970 00:00:00 GMT"), pytest.param(503, "0" * 400, marks=pytest.mark.slow)])
def test_at_once_is_not_in_a_spin(ask, server, status, when):
    """A service that says now, again and again, is not asked without a pause."""
    scripted = server([busy(when, status)])
    with pytest.raises(convolved.Problem) as caught:
        ask(scripted.url, lambda s: s.apply(ppm(), f.box()), patience=1)
    assert caught.value.retry_after == 0 and 1 <= len(scripted.requests) <= 3


# Jobs ---------------------------------------------------------------------------------------------

def test_jobs(ask, service):
    job = ask(service.url, lambda s: s.submit(ppm(), f.box(size=5), **GENERAL))
    result = ask(service.url, lambda s: s.result(job))
    assert result.content == service.post(target_of([("box", {"size": 5})], **GENERAL), ppm()).body
    again = ask(service.url, lambda s: s.job(job.id))
    assert again.state == "done" and again.tiles_done == again.tiles > 0
    ask(service.url, lambda s: s.cancel(job))
    with pytest.raises(convolved.Problem, match="404 not-found"):
        ask(service.url, lambda s: s.job(job))
    failed = ask(service.url, lambda s: s.submit(b"text", f.box()))
    with pytest.raises(convolved.Problem, match="415 not-an-image"):
        ask(service.url, lambda s: s.result(failed.id))


def test_a_job_that_takes_long(ask, server):
    """The service is asked again, for no longer than was said."""
    running = problem(409, "running", "not-finished", {"Retry-After": "1"})
    scripted = server([running, running, running, (200, IMAGE, b"!")])
    with pytest.raises(TimeoutError, match="0 s"):
        ask(scripted.url, lambda s: s.result("aa", timeout=0))
    assert ask(scripted.url, lambda s: s.result("aa")).content == b"!"
    assert [request.path for request in scripted.requests] == [
        f"/v1/jobs/aa/result?wait={wait}" for wait in (0, 60, 60, 60)]


def test_a_job_of_which_nobody_waits(ask, server):
    """A proxy may answer at once, always: that is no reason to ask without a pause."""
    scripted = server([problem(409, "running", "not-finished")])
    with pytest.raises(TimeoutError):
        ask(scripted.url, lambda s: s.result("aa", timeout=1))
    assert 1 <= len(scripted.requests) <= 5


def test_jobs_have_keys(ask, server):
    """So that a POST whose connection broke is no second job; another has another key."""
    scripted = server([None, None, RUNNING])
    for key in (None, None, "mine"):
        assert ask(scripted.url, lambda s, key=key: s.submit(ppm(), f.box(), key=key)).id == "ab"
    keys = [request.headers["Idempotency-Key"] for request in scripted.requests]
    assert len(keys) == 5 and keys[0] == keys[1] == keys[2] != keys[3] and keys[4] == "mine"
    assert str(uuid.UUID(keys[0])) == keys[0] and {request.body for request in scripted.requests} == {ppm()}


def test_connections_that_break(ask, server):
    """Jobs and their results are asked for again, within the client's patience; others are not."""
    scripted = server([None, (200, IMAGE, b"!")])
    assert ask(scripted.url, lambda s: s.result("aa")).content == b"!" and len(scripted.requests) == 2
    scripted = server([None])
    for use in (lambda s: s.submit(ppm(), f.box()), lambda s: s.result("aa")):
        with pytest.raises(httpx.RemoteProtocolError):
            ask(scripted.url, use, patience=1)
    before = len(scripted.requests)
    assert 4 <= before <= 6
    with pytest.raises(httpx.RemoteProtocolError):
        ask(scripted.url, lambda s: s.apply(ppm(), f.box()))
    assert len(scripted.requests) == before + 1
    with pytest.raises(httpx.ConnectError):
        ask(f"http://127.0.0.1:{free_port()}", lambda s: s.submit(ppm(), f.box()), patience=0)


def test_a_list_of_jobs(ask, service):
    jobs = [ask(service.url, lambda s, size=size: s.submit(ppm(), f.box(size=size), **GENERAL)) for size in (3, 5)]
    jobs += [ask(service.url, lambda s: s.submit(ppm(), f.box(), key="again", **GENERAL)) for _ in range(2)]
    assert jobs.pop().id == jobs[-1].id
    for job in jobs:
        ask(service.url, lambda s, job=job: s.result(job))
    listed = {job.id: job for job in ask(service.url, lambda s: s.jobs())}
    for job in jobs:
        assert listed[job.id].state == "done" and 0 < listed[job.id].kept_seconds <= 600
        ask(service.url, lambda s, job=job: s.cancel(job))
    assert not {job.id for job in jobs} & {job.id for job in ask(service.url, lambda s: s.jobs())}


# The service --------------------------------------------------------------------------------------

def test_addresses(ask, service, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody: this host needs none
    for url in (service.url, service.url.removeprefix("http://"), service.unix, None):
        monkeypatch.setenv("CONVOLVED_URL", "http://127.0.0.1:9" if url else service.unix)
        names = {one["name"] for one in ask(url, lambda s: s.get("/v1/filters"))["filters"]}
        assert {"gaussian", "canny"} <= names


def test_tokens(ask, server):
    """They travel to this host, and encrypted."""
    def answer(handler):
        return 200, {"Content-Type": "application/json"}, json.dumps(
            [handler.headers["Authorization"], handler.headers["User-Agent"]]).encode()
    said = ask(server(answer).url, lambda s: s.get("/v1/devices"), token="secret")
    assert said == ["Bearer secret", f"convolved-python/{convolved.__version__}"]
    for client in (convolved.Client, convolved.AsyncClient):
        with pytest.raises(ValueError, match="unencrypted"):
            client("http://images.example", token="secret")
        client("https://images.example", token="secret")
        client("http://images.example", token="secret", insecure_token=True)


def test_token_files(ask, server, tmp_path, monkeypatch):
    """$CONVOLVED_TOKEN_FILE names one, as for the other client; an argument wins."""
    scripted = server(lambda handler: (200, {"Content-Type": "application/json"},
                                       json.dumps(handler.headers["Authorization"]).encode()))
    monkeypatch.setenv("CONVOLVED_TOKEN_FILE", str(tmp_path / "token"))
    with pytest.raises(FileNotFoundError):
        ask(scripted.url, lambda s: s.get("/v1/devices"))
    for content in (b"", b"\n", b"two words", b"a\r\nX-Evil: 1", b"\xc3\xa4", b" a", b"a\0", b"a" * 4096):
        (tmp_path / "token").write_bytes(content)
        with pytest.raises(ValueError, match="one word of printable ASCII"):
            ask(scripted.url, lambda s: s.get("/v1/devices"))
    (tmp_path / "token").write_bytes(b"from-file\r\n")
    assert ask(scripted.url, lambda s: s.get("/v1/devices")) == "Bearer from-file"
    assert ask(scripted.url, lambda s: s.get("/v1/devices"), token="given") == "Bearer given"
    assert ask(scripted.url, lambda s: s.get("/v1/devices"), token="") is None
    with pytest.raises(ValueError, match="unencrypted") as caught:
        convolved.Client("http://someone:password@images.example")
    assert "password" not in str(caught.value)
    monkeypatch.setenv("CONVOLVED_TOKEN_FILE", "")
    assert ask(scripted.url, lambda s: s.get("/v1/devices")) is None


def test_certificates(ask, server, tmp_path):
    """A client of an address without encryption has none, and takes none for valid."""
    certificate = localhost_certificate(tmp_path)
    secure = server(lambda _: (200, {"Content-Type": "application/json"}, b"1"), certificate)
    plain = server(lambda handler: (302, {"Location": secure.url + handler.path}, b""))
    trusting = {"verify": str(certificate[0]), "follow_redirects": True}
    assert ask(secure.url, lambda s: s.get("/x"), **trusting) == ask(plain.url, lambda s: s.get("/x"), **trusting) == 1
    with pytest.raises(Exception, match="certificate verify failed"):
        ask(plain.url, lambda s: s.get(f"{secure.url}/x"), patience=0)
    assert len(secure.requests) == 2


@pytest.mark.slow
def test_wheel(tmp_path):
    """It builds, with what the package needs, and has the version of everything else."""
    version = re.search(r"AC_INIT\(\[convolved\], \[(.*?)\]", (REPOSITORY / "configure.ac").read_text())
    subprocess.run(["cp", "-r", SOURCES, tmp_path / "source"], check=True)
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir",
                    tmp_path, tmp_path / "source"], check=True, capture_output=True)
    wheel = tmp_path / f"convolved-{version[1]}-py3-none-any.whl"
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("convolved/")}
    assert names == {f"convolved/{one}" for one in ("__init__.py", "clients.py", "core.py",
                                                    "filters.py", "values.py", "py.typed")}
    done = subprocess.run([sys.executable, "-c", "import convolved; print(convolved.__file__)"],
                          env={"PYTHONPATH": str(wheel)}, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(wheel))
