"""Formats that are allowed by `formats`: others are neither read nor written, nor offered."""
import numpy as np

import imagefiles
from fixtures import service_with
from imagefiles import write_png, write_pnm, write_tiff

PIXELS = np.arange(16 * 12 * 3, dtype=np.uint8).reshape(12, 16, 3)
BOX = "/v1/filters/box"
narrow = service_with("--codecs", "1", "--formats", "webp; png", "--formats", "tif")


def test_others_are_not_read(narrow):
    for name in ("JPEG", "GIF"):
        body = imagefiles.written(imagefiles.pil(PIXELS), name)
        narrow.identity(body).refused(
            415, "not-an-image", f"look like {name}, which this service does not read",
            "supported: PNG, WebP, TIFF, PPM, PGM, PFM (")


def test_others_are_not_written(narrow):
    body = write_png(PIXELS)
    for name in ("jpeg", "jpg", "gif"):
        narrow.identity(body, format=name).refused(
            400, "bad-parameter", parameter="format", value=name,
            detail="format: expected one of png, webp, tiff, ppm, pgm, pfm, raw")
    for accept, expected in (("image/jpeg, image/webp;q=0.1", "image/webp"),
                             ("image/jpeg, */*;q=0.1", "image/png")):
        answer = narrow.post(BOX, body, headers={"Accept": accept})
        assert (answer.status, answer.type) == (200, expected)
    detail = narrow.post(BOX, body, headers={"Accept": "image/jpeg"}).refused(
        406, "not-acceptable")["detail"]
    assert "image/png, image/webp, image/tiff" in detail and "image/jpeg," not in detail
    raw = narrow.post(BOX + "?raw=16x12x3:u8", PIXELS.tobytes(), headers={"Accept": "image/*"})
    assert raw.type == "image/png"  # the first in the list would be JPEG


def test_allowed_ones_are(narrow):
    webp = imagefiles.written(imagefiles.pil(PIXELS), "WEBP", lossless=True)
    for body in (write_png(PIXELS), write_tiff(PIXELS), write_pnm(PIXELS), webp):
        for name in ("png", "webp", "tiff", "ppm", "raw"):
            answer = narrow.identity(body, format=name)
            assert answer.status == 200, answer
        assert np.array_equal(answer.pixels, PIXELS)


def test_others_are_not_offered(narrow):
    common = narrow.get("/v1/filters").json()["common"]
    choices, = (one["choices"] for one in common if one["name"] == "format")
    assert choices == ["png", "webp", "tiff", "ppm", "pgm", "pfm", "raw"]
    document = narrow.get("/openapi.json").json()
    assert document["components"]["parameters"]["format"]["schema"]["enum"] == choices
    assert "image/jpeg" not in str(document["components"]["responses"])
    for option, value, says in (("compression", "none", "0 to 9 for png"),
                                ("subsample", "on", "these can halve it: webp")):
        narrow.identity(write_png(PIXELS), **{option: value}).refused(400, "bad-parameter", says)
