"""Edges against numpy and scipy, and in chains against the filters that come before and after them."""
import time

import numpy as np
import pytest
import scipy

import oracle
from jobs import submit
from pixels import BANDS, BORDER_VALUES, pairwise, random_pixels, seed_of
from service import ONE_DEVICE, TWO_DEVICES

FULL = oracle.FULL_SCALE
THRESHOLDS = {"low": 0.2, "high": 0.6}
CANNY = ("canny", {"sigma": 0, **THRESHOLDS})


def waves(kind, bands, width=131, height=57, alpha=False):
    """Blurred noise, other for each band."""
    rng = np.random.default_rng(seed_of(kind, bands, width, height))
    noise = scipy.ndimage.uniform_filter(rng.random((height, width, bands)), (5, 5, 1), mode="wrap")
    pixels = np.clip(0.5 + 2 * (noise - 0.5), 0, 1) * FULL[kind]
    if alpha:
        pixels[:, :, -1] = random_pixels(1, width, height, bands, kind, alpha)[:, :, -1]
    return pixels.astype(oracle.TYPES[kind])


def slopes(plane):
    """Sobel's derivatives and the square of their length, at all pixels but the outermost."""
    x, y = (scipy.ndimage.sobel(plane, axis)[1:-1, 1:-1] for axis in (1, 0))
    return x, y, x * x + y * y


def candidates(planes, low, high):
    """As OpenCV with L2gradient: 0, 1 or, where it is sure, 2; planes have 2 pixels more on each side."""
    x, y, square = slopes(planes[0])
    for plane in planes[1:]:
        others = slopes(plane)
        more = others[2] > square
        x, y, square = (np.where(more, o, s) for o, s in zip(others, (x, y, square)))

    def at(dy, dx):
        return square[1 + dy:square.shape[0] - 1 + dy, 1 + dx:square.shape[1] - 1 + dx]

    x, y = x[1:-1, 1:-1], y[1:-1, 1:-1]
    across, down = np.abs(x), np.abs(y)
    flat = down * 32768 < across * 13573
    steep = (down - 2 * across) * 32768 > across * 13573
    other = (x < 0) != (y < 0)
    first = np.select([flat, steep, other], [at(0, -1), at(-1, 0), at(-1, 1)], at(-1, -1))
    second = np.select([flat, steep, other], [at(0, 1), at(1, 0), at(1, -1)], at(1, 1))
    here = at(0, 0)
    peak = (here > first) & ((here > second) | ((flat | steep) & (here == second)))
    return np.where(peak & (here > low * low), np.where(here > high * high, 2, 1), 0)


def edges(pixels, border="replicate", value=0, low=0.2, high=0.6):
    """Returns the edges of pixels without alpha, and pixels that may be edges."""
    kind = oracle.type_name(pixels.dtype)
    exact = pixels.astype(np.float64 if kind == "f32" else np.int64)
    planes = [exact[:, :, b] for b in range(pixels.shape[2])]
    if border != "crop":
        planes = [oracle.pad(plane, 2, 2, border, value) for plane in planes]
    found = candidates(planes, low * FULL[kind], high * FULL[kind])
    labels, _ = scipy.ndimage.label(found > 0, np.ones((3, 3)))
    return np.isin(labels, np.unique(labels[found == 2])) & (found > 0), found


def drawn(pixels, where, bands):
    """Edges in these bands; of a smaller result the middle."""
    y, x = ((a - b) // 2 for a, b in zip(pixels.shape, where.shape))
    out = pixels[y:pixels.shape[0] - y, x:pixels.shape[1] - x].copy()
    out[:, :, bands] = np.where(where, FULL[oracle.type_name(pixels.dtype)], 0)[:, :, None]
    return out


@pytest.mark.parametrize("border, kind, image, variant", pairwise(
    oracle.BORDERS, list(oracle.TYPES), BANDS, [None, "canny", "reference"]))
def test_alone(service, border, kind, image, variant):
    """A kernel that finds edges may be named, though another draws them."""
    bands, alpha = image
    pixels = waves(kind, bands, alpha=alpha)
    value = BORDER_VALUES[kind] if border == "constant" else None
    answer = service.filter(pixels, [CANNY], border=border, border_value=value, alpha=int(alpha),
                            verify=1, variant=variant)
    colours = slice(0, bands - alpha)
    where, found = edges(pixels[:, :, colours], border, value or 0)
    assert np.array_equal(answer.pixels, drawn(pixels, where, colours))
    assert 0.02 < where.mean() < 0.4 and where.sum() < (found > 0).sum()


@pytest.mark.parametrize("variant", [None, "canny", "reference"])
def test_equal_slopes(service, variant):
    """Two values, so that slopes are often those of neighbours, of other bands, and the thresholds."""
    pixels = 51 * np.random.default_rng(1).integers(0, 2, (57, 131, 3), np.uint8)
    thresholds = {"low": 0.4, "high": 0.8}  # 102 and 204
    answer = service.filter(pixels, [("canny", {"sigma": 0, **thresholds})], variant=variant, verify=1)
    assert np.array_equal(answer.pixels, drawn(pixels, edges(pixels, **thresholds)[0], slice(0, 3)))
    assert answer.headers["X-Verify-Mismatches"] == "0"


@pytest.mark.parametrize("width, height", [
    (1, 1), (1, 90), (90, 1), (2, 3), (63, 65), (64, 130), (65, 64), (17, 700), (700, 17)])
def test_small(service, width, height):
    pixels, thresholds = waves("u8", 1, width, height), {"low": 0.1, "high": 0.2}
    for border in ("replicate", "reflect101", "wrap"):
        answer = service.filter(pixels, [("canny", {"sigma": 0, **thresholds})], border=border)
        where, _ = edges(pixels, border, **thresholds)
        assert np.array_equal(answer.pixels, drawn(pixels, where, [0]))


def test_not_a_number(service):
    """Neither it nor an infinity is an edge, nor are their neighbours; the rest is as without it."""
    pixels, filters = waves("f32", 1), [("canny", {"sigma": 0, "low": 0, "high": 0})]
    clean = service.filter(pixels, filters).pixels
    pixels[20, 30], pixels[40, 90] = np.nan, np.inf
    spoilt = service.filter(pixels, filters).pixels
    assert np.isin(spoilt, (0, 1)).all()
    near = scipy.ndimage.maximum_filter(~np.isfinite(pixels), (5, 5, 1))
    assert np.array_equal(spoilt[~near], clean[~near])
    assert not spoilt[scipy.ndimage.maximum_filter(np.isnan(pixels), (3, 3, 1))].any()


def snake(side, gap=9):
    """Returns a band that winds through the whole image, of a contrast that begins no edge."""
    pixels = np.full((side, side, 1), 100, np.uint8)
    for number, row in enumerate(range(gap, side - gap, gap)):
        pixels[row:row + gap // 2, gap:side - gap] = 120
        end = slice(side - gap - 4, side - gap) if number % 2 else slice(gap, gap + 4)
        if row + gap < side - gap:
            pixels[row:row + gap + 2, end] = 120
    return pixels


@pytest.mark.parametrize("turned", [False, True])
def test_snake(service, turned):
    """One strong pixel keeps an edge through all tiles; without it nothing is left."""
    pixels, filters = snake(1301), [("canny", {"low": 0.2, "high": 0.9, "sigma": 0})]
    if turned:
        pixels = np.ascontiguousarray(pixels.swapaxes(0, 1))
    assert not service.filter(pixels, filters).pixels.any()
    pixels[tuple(np.argwhere(pixels[:, :, 0] == 120)[-1])] = 255
    answer = service.filter(pixels, filters, verify=1)
    where, found = edges(pixels, low=0.2, high=0.9)
    assert (found == 2).sum() < 20 and where.sum() > 200000
    assert np.array_equal(answer.pixels, drawn(pixels, where, [0]))


def test_blurs_first(service):
    """As a Gaussian, rounded to pixels, and then without one; a percentage is of the shorter side."""
    thresholds = {"low": 0.02, "high": 0.06}
    for bands, alpha, sigma, blur in ((3, 0, 1.4, 1.4), (4, 1, 9, 9), (1, 0, "1%", 3)):
        pixels = waves("u8", bands, 500, 300, alpha)
        options = {"alpha": alpha, "variant": "general"}
        answer = service.filter(pixels, [("canny", {"sigma": sigma, **thresholds})], **options)
        blurred = service.filter(pixels, [("gaussian", {"sigma": blur})], **options).pixels
        where, _ = edges(blurred[:, :, :bands - alpha], **thresholds)
        assert where.mean() > 0.005
        assert np.array_equal(answer.pixels, drawn(pixels, where, slice(0, bands - alpha)))


CHAINS = [([("median", {})], [("dilate", {})], "wrap"),
          ([("box", {"size": 5})], [("gaussian", {"sigma": 2}), ("threshold", {"value": 0.3})], "crop"),
          ([], [("box", {}), ("threshold", {"method": "otsu"})], "replicate"),
          ([("equalize", {})], [("invert", {})], "constant")]


@pytest.mark.parametrize("before, after, border", CHAINS, ids=str)
def test_chains(service, before, after, border):
    """In many tiles, also where its pixels outside the image are made."""
    pixels = waves("u8", 3, 700, 901)
    options = {"border": border, "variant": "general"}
    answer = service.filter(pixels, [*before, CANNY, *after], **options)
    first = service.filter(pixels, before, **options).pixels if before else pixels
    where, _ = edges(first, border)
    wanted = service.filter(drawn(first, where, slice(0, 3)), after, **options)
    assert np.array_equal(answer.pixels, wanted.pixels)


def test_channels_and_regions(service):
    pixels = waves("u8", 3, 300, 200)
    luma = service.filter(pixels, [("grayscale", {})]).pixels[:, :, :1]
    where, _ = edges(luma)
    got = service.filter(pixels, [CANNY], channels="luma").pixels @ oracle.TO_YCBCR[0]
    wanted = service.filter(pixels, [("linear", {"gain": 0})], channels="luma").pixels @ oracle.TO_YCBCR[0]
    assert np.abs(got - wanted)[~where].max() < 1 and (got > wanted)[where].mean() > 0.99
    everywhere = service.filter(pixels, [CANNY]).pixels
    part = service.filter(pixels, [CANNY], regions="20,30,100,50").pixels
    wanted = pixels.copy()
    wanted[30:80, 20:120] = everywhere[30:80, 20:120]
    assert np.array_equal(part, wanted)


BOX = ("box", {})


@pytest.mark.parametrize("bands, filters, channels, parameter", [
    (1, [("canny", {"low": 0.5, "high": 0.4})], None, "high"),
    (1, [("canny", {"low": 0.9})], None, "high"), (1, [("canny", {"high": 6.1})], None, "high"),
    (3, [CANNY], "chroma", "channels"), (1, [CANNY], "luma", "channels"),
    (1, [CANNY, BOX, CANNY], None, "filters"), (1, [CANNY] + 6 * [BOX], None, "filters")], ids=str)
def test_refuses(service, bands, filters, channels, parameter):
    answer = service.filter(waves("u8", bands), filters, channels=channels)
    answer.refused(400, "bad-parameter", parameter=parameter)


def test_longest_chain(service):
    assert service.filter(waves("u8", 1), [CANNY] + 5 * [BOX]).status == 200


def test_memory_is_bounded(launch):
    """Two bits of a pixel, in rows of whole words."""
    with launch("--max-buffered-size", "2000", environment=ONE_DEVICE) as service:
        assert service.filter(waves("u8", 1, 64, 125), [CANNY]).status == 200
        for width, height in ((64, 126), (1, 126), (65, 63)):
            answer = service.filter(waves("u8", 1, width, height), [CANNY])
            answer.refused(422, "too-many-pixels", "2000")
        service.rest()


@pytest.mark.parametrize("one, size, devices", [
    (CANNY, "64M", ONE_DEVICE), (CANNY, "0", TWO_DEVICES), (("equalize", {}), "64M", ONE_DEVICE)])
def test_ends(launch, one, size, devices):
    """Cancelled at any moment, or past its deadline: nothing stays of any run, nor of files."""
    pixels = waves("u8", 3, 1500, 900)
    with launch("--codecs", "2", "--spool-size", size, environment=devices) as service:
        begin = time.monotonic()
        wanted = service.filter(pixels, [one], variant="general")
        whole = time.monotonic() - begin
        for moment in range(6):
            job = submit(service, pixels, [one])
            time.sleep(moment * whole / 5)
            assert service.request("DELETE", job).status == 204
        late = service.filter(pixels, [one], deadline_ms=max(1, int(whole * 300)))
        assert late.status in (200, 429, 504), late
        again = service.filter(pixels, [one], variant="general")
        assert again.status == wanted.status == 200 and again.body == wanted.body
        service.rest()


def test_sigma_that_does_not_blur(service):
    """Below 0.1 pixel, which a percentage of a small image comes to, too."""
    pixels = random_pixels(8, 50, 40, 1, "u8")

    def with_sigma(sigma):
        return service.filter(pixels, [("canny", {"sigma": sigma})]).pixels.tobytes()
    sharp, blurred = with_sigma(0), with_sigma(0.8)
    assert {with_sigma(sigma) for sigma in (0.05, 0.0999, "0.2%")} == {sharp}
    assert with_sigma("2%") == blurred != sharp
