"""Pages of a TIFF, frames of a GIF, WebP or PNG: one of them, or all, each filtered for itself."""
import io

import numpy as np
import pytest
from PIL import Image, ImageSequence

import imagefiles
from fixtures import Made
from imagefiles import several, write_pnm
from pixels import random_pixels
from service import TYPES

WIDTH, HEIGHT, COUNT = 61, 47, 5
FRAMES = [random_pixels(seed, WIDTH, HEIGHT, 3, "u8") for seed in range(COUNT)]
DELAYS = [40, 50, 60, 70, 80]


def tiff(frames, **options):
    return several([Image.fromarray(frame.squeeze()) for frame in frames], "TIFF", **options)


PICTURES, TIMES = [imagefiles.pil(frame) for frame in FRAMES], {"duration": DELAYS, "loop": 3}
FILES = Made({"TIFF": lambda: tiff(FRAMES), "WEBP": lambda: several(PICTURES, "WEBP", lossless=True, **TIMES),
              "GIF": lambda: several([picture.quantize(64) for picture in PICTURES], "GIF", **TIMES),
              "PNG": lambda: several(PICTURES, "PNG", **TIMES)})


def each(service, path, frames):
    """Returns the results of single images, one below the other."""
    answers = [service.post(f"{path}&format=raw", write_pnm(frame)) for frame in frames]
    assert {answer.status for answer in answers} == {200}, answers
    return b"".join(answer.body for answer in answers)


def frames_of(body):
    return ImageSequence.Iterator(Image.open(io.BytesIO(body)))


def seen(body):
    """Returns all frames of a file, as Pillow reads them."""
    return [np.asarray(frame.convert("RGB")) for frame in frames_of(body)]


def durations(body):
    return [frame.copy().info["duration"] for frame in frames_of(body)]


PATHS = ["/v1/filters/box?size=25&border=" + border for border in
         ("replicate", "reflect", "reflect101", "wrap", "constant", "crop")]
PATHS += ["/v1/filters/gaussian?sigma=30&border=wrap&roi=3,2,50,40", "/v1/filters/sobel?roi=5,40,9,7",
          "/v1/chain?filters=gaussian=sigma=2,median=radius=2,sobel&border=reflect",
          "/v1/filters/gaussian?sigma=9&regions=10,40,20,30&feather=4",
          "/v1/filters/box?size=9&roi=3,2,30,20&target=20,25&border=wrap", "/v1/filters/emboss?target=0,0"]


def large(kind, dimmed=0):
    """Returns pages of several strips, and more strips than there are slots."""
    return [random_pixels(seed, 1400, 900, 1, kind) // (1 + seed * dimmed) for seed in range(4)]


CONTRASTS = [frame // (i + 1) + 9 * i for i, frame in enumerate(FRAMES)]
MANY_TILES = "/v1/filters/box?size=63&border=wrap"
ALL_PAGES = [
    *((FRAMES, f"{path}&variant=general") for path in PATHS),
    (lambda: large("u8"), f"{MANY_TILES}&verify=1&variant=general"),
    (lambda: large("u16"), f"{MANY_TILES}&variant=reference"), (lambda: large("f32"), f"{MANY_TILES}&verify=1"),
    # Each page has what is gathered first of its own.
    (CONTRASTS, "/v1/filters/equalize?channels=luma&verify=1&variant=general"),
    (CONTRASTS, "/v1/filters/equalize?method=clahe&tiles=5&verify=1&variant=general"),
    (CONTRASTS, "/v1/filters/threshold?method=otsu&variant=reference"),
    (CONTRASTS, "/v1/filters/canny?sigma=0&low=0.1&high=1.4&roi=3,2,50,40&variant=general"),
    (CONTRASTS, "/v1/chain?filters=equalize,median,canny=low=0.2:high=2&border=reflect&variant=general"),
    (lambda: large("u8", 1), "/v1/chain?filters=box=size=63,equalize,box=size=63&border=wrap&variant=general")]


@pytest.mark.parametrize("frames, path", ALL_PAGES, ids=range(len(ALL_PAGES)))
def test_all_pages(service, frames, path):
    """Nothing leaks from one page to the next, whatever the window and the border."""
    frames = frames() if callable(frames) else frames
    answer = service.post(f"{path}&pages=all&format=raw", tiff(frames))
    assert answer.status == 200, answer
    assert answer.headers["X-Pages"] == str(len(frames)) and "X-Lost" not in answer.headers
    width, height, bands, kind = answer.kind
    got, wanted = (np.frombuffer(body, TYPES[kind]) for body in (answer.body, each(service, path, frames)))
    # Tiles that share a launch are summed in another order.
    assert np.allclose(got, wanted, rtol=0, atol=1e-6 if kind == "f32" else 0)
    assert got.size == width * height * bands * len(frames)  # X-Image tells of a page
    if "verify=1" in path:
        runs = 2 if "equalize" in path else 1
        assert answer.headers["X-Verify-Samples"] == str(runs * got.size)
        assert answer.headers["X-Verify-Mismatches"] == "0"


@pytest.mark.parametrize("name", FILES)
def test_one_page(service, name):
    body, path = FILES[name], "/v1/filters/box?size=5&variant=general"
    for page in (0, 1, COUNT - 1):
        expected = each(service, path, [seen(body)[page]])
        answer = service.post(f"{path}&page={page}&format=raw", body)
        assert answer.headers["X-Pages"] == str(COUNT) and "X-Lost" not in answer.headers
        assert answer.pixels[:, :, :3].tobytes() == expected, page
    first = service.post(f"{path}&format=raw", body)
    assert first.body == service.post(f"{path}&page=0&format=raw", body).body
    assert first.headers["X-Lost"] == "first-frame" and first.headers["X-Pages"] == str(COUNT)
    assert service.post(f"{path}&pages=first&format=raw", body).headers["X-Lost"] == "first-frame"
    service.post(f"{path}&page={COUNT}", body).refused(
        400, "bad-parameter", f"has {COUNT} pages: page: expected an integer from 0 to {COUNT - 1}",
        parameter="page", value=str(COUNT))


@pytest.mark.parametrize("name", FILES)
def test_answers_have_all_pages(service, name):
    """In the body's format, with delays and loops."""
    body = FILES[name]
    answer = service.identity(body, pages="all", lossless=1 if name == "WEBP" else None)
    assert answer.status == 200 and answer.type == f"image/{name.lower()}", answer
    assert answer.kind[:2] == (WIDTH, HEIGHT)
    picture = Image.open(io.BytesIO(answer.body))
    assert picture.n_frames == COUNT
    for got, wanted in zip(seen(answer.body), seen(body), strict=True):
        assert got.shape == wanted.shape
        assert np.abs(got.astype(int) - wanted).mean() < (20 if name == "GIF" else 0.001)
    if name != "TIFF":
        assert picture.info["loop"] == Image.open(io.BytesIO(body)).info["loop"]
        assert durations(answer.body) == DELAYS


def test_animations_change_format(service):
    """With delays, too; formats that hold one picture are refused, or not chosen."""
    def converted(body, name):
        return service.identity(body, pages="all", format=name).body

    for body, loop in ((converted(FILES["GIF"], "webp"), 4),  # times in all; GIF counts repetitions
                       (converted(FILES["WEBP"], "png"), 3)):
        assert Image.open(io.BytesIO(body)).info["loop"] == loop
        assert durations(body) == DELAYS
    assert np.array_equal(seen(converted(FILES["WEBP"], "png")), FRAMES)
    assert len(seen(converted(FILES["WEBP"], "gif"))) == COUNT
    assert durations(converted(FILES["TIFF"], "png")) == [100] * COUNT
    service.identity(FILES["GIF"], pages="all", format="bmp").refused(
        422, "unencodable", f"{COUNT} pages", "png, webp, tiff, gif, ")
    bmp = {"Accept": "image/bmp"}
    either = service.identity(FILES["GIF"], {"Accept": "image/bmp, image/webp;q=0.1"}, pages="all")
    assert either.type == "image/webp"
    assert service.identity(FILES["GIF"], bmp, pages="all").status == 422
    assert service.identity(FILES["GIF"], bmp).status == 200


def test_pages_of_one_picture(service):
    """A JPEG, a PNG or bare pixels have one page, and formats whose pages are not read say so."""
    pixels = random_pixels(1, 9, 7, 3, "u8")
    for name in ("PNG", "JPEG", "GIF"):
        body = imagefiles.written(imagefiles.pil(pixels), name)
        for choice in ({"pages": "all"}, {"page": 0}):
            answer = service.identity(body, **choice)
            assert answer.status == 200 and "X-Pages" not in answer.headers
            assert answer.body == service.identity(body).body
        service.identity(body, page=1).refused(
            400, "bad-parameter", "has 1 page: page: expected an integer from 0 to 0")
    assert service.filter(pixels, [("box", {})], pages="all").status == 200
    service.filter(pixels, [("box", {})], page=1).refused(400, "bad-parameter", parameter="page")


@pytest.mark.parametrize("choice, parameter", [
    ("page=-1", "page"), ("page=x", "page"), ("page=1.5", "page"), ("page=", "page"), ("page=100000", "page"),
    ("pages=some", "pages"), ("pages=", "pages"), ("page=1&pages=all", "pages"), ("pages=all&page=1", "page")])
def test_bad_choices(service, choice, parameter):
    service.post(f"/v1/filters/box?{choice}", FILES["TIFF"]).refused(
        400, "bad-parameter", "expected", parameter=parameter)


def test_what_pages_cannot(service):
    """Pages that are unlike, or to be turned."""
    sizes = [FRAMES[0], FRAMES[1][:40], FRAMES[2]]
    service.identity(tiff(sizes), pages="all").refused(422, "undecodable", "page=N")
    for page, frame in enumerate(sizes):
        answer = service.identity(tiff(sizes), page=page, format="raw")
        assert np.array_equal(answer.pixels, frame)
    turned = tiff(FRAMES, tiffinfo={274: 6})
    service.identity(turned, pages="all").refused(400, "bad-parameter", "page=N")
    got = service.decoded(turned, page=0)
    assert np.array_equal(got, np.rot90(FRAMES[0], -1))


def test_limits(launch):
    """Pixels of all pages count, and of a frame those that it is made of."""
    with launch("--codecs", "1", "--max-pixels", str(WIDTH * HEIGHT * 3)) as service:
        for body in FILES.values():
            service.identity(body, pages="all").refused(
                422, "too-many-pixels",
                f"5 pages of {WIDTH}x{HEIGHT} are to be read, {WIDTH * HEIGHT * 5} pixels")
            assert service.identity(body).status == 200
            assert service.identity(body, page=2).status == 200
        assert service.identity(FILES["TIFF"], page=4).status == 200
        for body in (FILES["GIF"], FILES["PNG"]):
            service.identity(body, page=4).refused(422, "too-many-pixels")
        assert service.identity(tiff(FRAMES[:3]), pages="all").status == 200


def test_memory(launch):
    """A WebP is decoded whole, with all frames that are read; others go from page to page."""
    pixels = WIDTH * HEIGHT
    with launch("--codecs", "1", "--max-buffered-size", str(20 * pixels)) as service:
        service.identity(FILES["WEBP"], pages="all").refused(
            422, "too-many-pixels", "for all its pages", str(20 * pixels))
        assert service.identity(FILES["WEBP"]).status == service.identity(FILES["WEBP"], page=4).status == 200
        for body in (FILES["GIF"], FILES["TIFF"], FILES["PNG"]):
            assert service.identity(body, pages="all").status == 200


def test_asynchronous(service):
    answer = service.identity(FILES["TIFF"], {"Prefer": "respond-async"}, pages="all", format="raw")
    location = answer.headers["Location"]
    progress = service.get(location + "?wait=60").json()["progress"]
    assert progress == {"tiles_done": COUNT, "tiles": COUNT}
    result = service.get(location + "/result")
    assert result.headers["X-Pages"] == str(COUNT)
    assert result.body == b"".join(frame.tobytes() for frame in FRAMES)


@pytest.mark.parametrize("cuts", [6, pytest.param(40, marks=pytest.mark.slow)])
def test_cut_anywhere(service, cuts):
    """No cut, and no wrong byte, ends a worker."""
    for body in FILES.values():
        for at in range(8, len(body), len(body) // cuts):
            worse = body[:at] + bytes([body[at] ^ 0x81]) + body[at + 1:]
            for choice in ({"pages": "all"}, {"page": 3}):
                assert service.identity(body[:at], **choice).status in (200, 400, 415, 422)
                assert service.identity(worse, **choice).status in (200, 400, 415, 422)
