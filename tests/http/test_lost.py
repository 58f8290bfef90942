"""The losses of an answer's image are named in a header, and of jobs in their JSON; and nothing
else is."""
import io
import pathlib
import re

import numpy as np
import pytest
from PIL import Image

import imagefiles
from imagefiles import write_png, write_pnm, write_tiff
from pixels import random_pixels
from service import multipart

COLOUR = random_pixels(1, 40, 30, 3, "u8")
GREY, CLEAR = random_pixels(2, 40, 30, 1, "u8"), random_pixels(3, 40, 30, 4, "u8", True)
WIDE, FLOAT = random_pixels(4, 40, 30, 3, "u16"), random_pixels(5, 40, 30, 3, "f32")


def lost(service, body, **options):
    answer = service.identity(body, **options)
    assert answer.status == 200, answer
    text = answer.headers.get("X-Lost")
    return text.split(", ") if text is not None else []


def frames(name, count=3):
    images = [Image.fromarray(np.roll(COLOUR, i, 0)) for i in range(count)]
    return imagefiles.written(images[0], name, save_all=True, append_images=images[1:],
                              **({"lossless": True} if name == "WEBP" else {}))


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
    assert lost(service, write_tiff(pixels, pixels.shape[2] == 4), format=target) == expected


@pytest.mark.parametrize("name", ["GIF", "WEBP", "TIFF", "PNG"])
def test_first_frame(service, name):
    assert lost(service, frames(name), format="raw") == ["first-frame"]
    assert lost(service, frames(name), format="raw", roi="1,1,9,9", target="0,0") == ["first-frame"]
    assert lost(service, frames(name, 1), format="raw") == []


def test_png_that_says_it_is_animated(service):
    """One frame is no animation; data that follows the pixels, or is cut off, is not believed."""
    def counted(count):
        return b"acTL", count.to_bytes(4, "big") + bytes(4)
    assert lost(service, write_png(COLOUR, [counted(1)])) == []
    assert lost(service, write_png(COLOUR, [(b"tEXt", b"a\0b"), counted(2)])) == ["first-frame"]
    whole = write_png(COLOUR)
    assert lost(service, whole[:-12] + imagefiles.png_chunk(*counted(9)) + whole[-12:]) == []


def test_formats_of_bodies_that_lose_nothing(service):
    for body in (write_png(WIDE), write_pnm(FLOAT), write_tiff(CLEAR, True)):
        assert lost(service, body) == []


def test_full_resolution_from_quality_90(service):
    for quality, expected in ((89, ["subsampled", "lossy"]), (90, ["lossy"]), (100, ["lossy"])):
        answer = service.identity(write_png(COLOUR), format="jpeg", quality=quality)
        assert answer.headers["X-Lost"].split(", ") == expected
        sampling = Image.open(io.BytesIO(answer.body)).layer[0][1:3]
        assert (sampling == (2, 2)) == ("subsampled" in expected)


def test_errors_have_lost_nothing(service):
    answer = service.post("/v1/filters/box", b"no image")
    assert answer.status == 415 and "X-Lost" not in answer.headers


def test_jobs(service):
    """The same in the job's JSON, when it is done, and with its result."""
    job = service.post("/v1/filters/box?format=jpeg", frames("GIF"),
                       headers={"Prefer": "respond-async"}).json()
    done = service.get(job["links"]["self"] + "?wait=60").json()
    assert done["state"] == "done"
    result = service.get(job["links"]["result"])
    assert result.headers["X-Lost"].split(", ") == done["lost"]
    assert done["lost"][0] == "first-frame" and "lossy" in done["lost"]
    job = service.post("/v1/filters/box?format=raw", write_png(COLOUR),
                       headers={"Prefer": "respond-async"}).json()
    assert service.get(job["links"]["self"] + "?wait=60").json()["lost"] == []
    body, kind = multipart([("image", "x", b"no image")])
    job = service.post("/v1/filters/box", body,
                       headers={"Prefer": "respond-async", "Content-Type": kind}).json()
    failed = service.get(job["links"]["self"] + "?wait=60").json()
    assert failed["state"] == "failed" and "lost" not in failed


def test_documentation(service):
    """The tokens of docs/api.md are those of the description."""
    schema = service.get("/openapi.json").json()["components"]["headers"]["X-Lost"]["schema"]
    tokens = re.match(r"\^\(([a-z|-]+)\)", schema["pattern"])[1].split("|")
    assert re.findall(r"(?:^|; )([a-z-]+): ", schema["description"]) == tokens
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/api.md").read_text()
    table = page.split("| token | |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)`", table, re.M) == tokens


@pytest.mark.parametrize("body, words", [
    (write_tiff(np.zeros((9, 9, 22), np.uint8)), "22 bands of 8-bit unsigned integers"),
])
def test_unsupported_pixels(service, body, words):
    """The message describes the image, and names the right form."""
    detail = service.identity(body).refused(422, "unsupported-pixels")["detail"]
    assert words in detail and ("supported: convert it to sRGB" in detail
                                or "floats are supported" in detail), detail
