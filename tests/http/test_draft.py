"""Images that are decoded smaller for a resize (draft=1), against the same request without it."""
import functools
import io
import itertools
import statistics

import numpy as np
import pytest
from PIL import Image

from fixtures import some
from imagefiles import exif, pil, read_pil, several, written, write_png
from pixels import smooth
from service import target_of

WIDTH, HEIGHT = 1601, 1211  # 1 and 3 more than multiples of 8
photograph = functools.cache(lambda: smooth(WIDTH, HEIGHT, 3))
encoded = functools.cache(lambda: written(pil(photograph()), "jpeg", quality=92))
BOX = ("box", {"size": 3})


def resize(**parameters):
    return [("resize", parameters)]


def both(service, body, filters, **options):
    """Returns the exact answer and that of a draft."""
    target = {"format": "raw", "variant": "general", **options}
    exact, draft = (service.post(target_of(filters, **target, draft=n), body) for n in (None, 1))
    assert exact.status == draft.status == 200, (exact, draft)
    assert "draft" not in exact.lost and exact.kind == draft.kind
    return exact, draft


def is_near(exact, draft, most=2.0):
    """The draft was made, and is nearly the same."""
    assert "draft" in draft.lost and exact.body != draft.body
    assert np.abs(exact.pixels.astype(float) - draft.pixels).mean() < most


def is_exact(exact, draft):
    assert "draft" not in draft.lost and exact.body == draft.body


def grey_blobs(width, height, sigma):
    """Returns an image with a blob in each corner."""
    y, x = np.mgrid[0:height, 0:width] + 0.5
    blobs = sum(np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * sigma ** 2))
                for cx in (width / 4, width * 3 / 4) for cy in (height / 4, height * 3 / 4))
    return np.rint(20 + 200 * blobs).astype(np.uint8)[:, :, None]


def centres(pixels):
    """Returns the centre of mass of each quarter."""
    pixels = pixels[:, :, 0].astype(float) - 20
    height, width = pixels.shape
    for rows in (slice(0, height // 2), slice(-(height // 2), None)):
        for columns in (slice(0, width // 2), slice(-(width // 2), None)):
            part = pixels[rows, columns]
            y, x = np.mgrid[0:part.shape[0], 0:part.shape[1]]
            yield np.array([(x * part).sum(), (y * part).sum()]) / part.sum()


@pytest.mark.parametrize("kind, ratio", some(
    itertools.product(["jpeg", "webp", "turned"], [2.1, 3.9, 4.3, 7.7, 9, 15, 17.3, 40]), 3))
def test_places(service, kind, ratio):
    """All parts of the image stay where they are."""
    blobs = pil(grey_blobs(WIDTH, HEIGHT, max(30, 1.5 * ratio)))
    options = {"exif": exif({0x112: 3})} if kind == "turned" else {}
    body = written(blobs, "webp" if kind == "webp" else "jpeg", quality=95, **options)
    exact, draft = both(service, body, resize(width=round(WIDTH / ratio)))
    if ratio < 4:
        return is_exact(exact, draft)
    is_near(exact, draft, 0.6)
    for was, now in zip(centres(exact.pixels), centres(draft.pixels), strict=True):
        assert np.abs(was - now).max() < 0.1, (was, now)


@pytest.mark.parametrize("given", [
    {"width": 100}, {"height": "5%"}, {"width": "20%", "height": "9%", "fit": "fill"},
    {"width": 100, "height": 100, "fit": "cover", "gravity": "east"},
    {"width": 30, "height": 90, "fit": "cover", "gravity": "south", "kernel": "box"},
    {"width": 17, "height": 17, "fit": "cover", "kernel": "triangle"}])
@pytest.mark.parametrize("border", ["replicate", "wrap", "constant"])
def test_sizes(service, given, border):
    """Sizes and crops are of the whole image; the reference makes the same of the draft."""
    exact, draft = both(service, encoded(), resize(**given), border=border)
    is_near(exact, draft)
    checked = service.post(target_of(resize(**given), draft=1, border=border, format="raw", verify=1, variant="general"), encoded())
    assert checked.body == draft.body and checked.headers["X-Verify-Mismatches"] == "0"


@pytest.mark.parametrize("chain", [
    resize(width=90) + [BOX, ("equalize", {})], resize(height=70) + [("canny", {"low": 0.1, "high": 0.3})],
    resize(width=80) + [("equalize", {"method": "clahe"})], resize(width="7%") + [("gaussian", {"sigma": 12.0})]], ids=lambda chain: chain[-1][0])
def test_chains(service, chain):
    """Filters after the resize, also those that read the whole image first."""
    answer = service.post(target_of(chain, draft=1, format="raw", verify=1), encoded())
    assert "draft" in answer.lost and answer.headers["X-Verify-Mismatches"] == "0"
    small = service.post(target_of(chain[:1], draft=1, format="raw", variant="general"), encoded()).pixels
    apart = service.filter(small, chain[1:], variant="general").pixels
    whole = service.post(target_of(chain, draft=1, format="raw", variant="general"), encoded())
    assert np.array_equal(whole.pixels, apart)


@pytest.mark.parametrize("name, mode, options", [
    ("jpeg", "RGB", {"subsampling": 0}), ("jpeg", "RGB", {"subsampling": 1}), ("jpeg", "RGB", {"progressive": True}),
    ("jpeg", "L", {}), ("jpeg", "L", {"progressive": True}), ("jpeg", "CMYK", {}), ("webp", "RGB", {}),
    ("webp", "L", {}), pytest.param("webp", "RGB", {"lossless": True}, marks=pytest.mark.slow)])
def test_kinds(service, name, mode, options):
    body = written(pil(photograph()).convert(mode), name, **{"quality": 92, **options})
    is_near(*both(service, body, resize(width=99)))
    shown = service.post(target_of(resize(width=99), draft=1, format="jpeg"), body)
    assert read_pil(shown.body)[0].shape[:2] == (75, 99)


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("progressive", [False, True])
def test_turned(service, orientation, progressive):
    """Also what is beyond the edges of a draft is turned; the metadata are the same."""
    tags = {0x112: orientation, 0x10e: "turned"}
    body = written(pil(photograph()), "jpeg", quality=92, exif=exif(tags), dpi=(300, 300), progressive=progressive)
    is_near(*both(service, body, resize(width=60)))
    given = [read_pil(service.post(target_of(resize(width=60), draft=n), body).body)[1] for n in (None, 1)]
    assert given[0].size == given[1].size and given[0].info["dpi"] == given[1].info["dpi"]
    assert dict(given[0].getexif()) == dict(given[1].getexif())


@pytest.mark.parametrize("body, filters, options", [
    (lambda: write_png(photograph()), resize(width=80), {}),
    (lambda: written(pil(photograph()), "tiff"), resize(width=80), {}),
    (lambda: written(pil(np.dstack([photograph(), photograph()[:, :, :1]])), "webp"), resize(width=80), {}),
    (lambda: several([pil(photograph()), pil(photograph()[::-1])], "webp"), resize(width=80), {"pages": "all"}),
    (lambda: several([pil(photograph()), pil(photograph()[::-1])], "webp"), resize(width=80), {}),
    (encoded, [BOX], {}), (encoded, [BOX, *resize(width=80)], {}), (encoded, resize(width=80), {"roi": "0,0,900,900"}),
    (encoded, [("pixelate", {"size": 9}), *resize(width=80)], {"regions": "9,9,500,500"}),
    (encoded, resize(width=80), {"target": "5,5"}), (encoded, resize(width=80, kernel="nearest"), {}),
    (encoded, resize(width=80, height=400, fit="fill"), {}), (encoded, resize(width=401), {}),
    (encoded, resize(width=2000, enlarge=1), {})],
    ids=["png", "tiff", "alpha", "frames", "frame", "box", "before", "roi", "regions", "target", "nearest", "aspect", "large", "enlarged"])
def test_without_effect(service, body, filters, options):
    if options.get("pages"):
        options = {**options, "format": "webp", "lossless": 1}
    is_exact(*both(service, body(), filters, **options))


@pytest.mark.parametrize("width, height", [(1, 999), (999, 1), (9, 9), (16, 17), (1700, 8)])
@pytest.mark.parametrize("name", ["jpeg", "webp"])
def test_narrow(service, width, height, name):
    body = written(pil(smooth(width, height, 3)), name, quality=95)
    exact, draft = both(service, body, resize(width="12%", height="12%", fit="fill"))
    if min(width, height) == 1:
        is_exact(exact, draft)
    elif "draft" in draft.lost:
        assert np.abs(exact.pixels.astype(float) - draft.pixels).mean() < 4


@pytest.mark.parametrize("name, options", [("jpeg", {}), ("jpeg", {"progressive": True}), ("webp", {}),
                                           ("jpeg", {"exif": exif({0x112: 6})})])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
def test_truncated(service, name, options, share):
    body = written(pil(photograph()), name, quality=92, **options)
    cut = body[:int(len(body) * share)]
    answers = [service.post(target_of(resize(width=80), draft=n), cut) for n in (None, 1)]
    assert answers[0].status == answers[1].status == 422
    assert answers[0].problem["detail"] == answers[1].problem["detail"]


def test_arenas(launch, service):
    """In tiles of any height; a codec worker that has a small arena."""
    with launch("--arena-size", "512K", "--codecs", "1") as small:
        for border in ("replicate", "wrap"):
            target = target_of(resize(width=390), draft=1, border=border, format="raw", variant="general")
            whole, cut = service.post(target, encoded()), small.post(target, encoded())
            assert "draft" in cut.lost and whole.body == cut.body


def test_refused(service):
    service.post("/v1/filters/resize?width=80&draft=2", encoded()).refused(400, "bad-parameter", parameter="draft")


def test_faster(service):
    """The decoder does less work, by its processor time."""
    body = io.BytesIO()
    Image.fromarray(photograph()).resize((4800, 3600)).save(body, "jpeg", quality=90)

    def decode(draft):
        target = target_of(resize(width=300), draft=draft)
        return statistics.median(service.post(target, body.getvalue()).timing["decode"] for _ in range(5))
    assert decode(1) < 0.7 * decode(None)
