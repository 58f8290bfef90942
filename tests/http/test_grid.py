"""Gaussians of sigma above 100, for which the whole image is known first, against their definition: each
pixel has a weight for every place, in the image and outside, that takes its value from it."""
import numpy as np
import pytest

import oracle
from pixels import BANDS, BORDER_VALUES, agrees, pairwise, random_pixels, seed_of
from service import ONE_DEVICE

FULL = oracle.FULL_SCALE


def weights(n, sigma, border):
    """What each of n pixels counts for each that is made."""
    radius = int(np.ceil((3 if sigma <= 8 else 8) * sigma))
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    taps /= taps.sum()
    if border == "constant":
        places = np.arange(-radius, n + radius)
        places = np.where((places < 0) | (places >= n), n, places)
    else:
        places = oracle.index_map(n, radius, radius, "replicate" if border == "crop" else border)
    cropped = margin(sigma) if border == "crop" else 0
    return np.array([np.bincount(places[p:p + 2 * radius + 1], taps, n + 1)[:n] for p in range(cropped, n - cropped)])


def blurred(planes, sigmas, border="replicate", values=None):
    """Planes (the last axis) in float64; values: outside, of each."""
    down, across = (weights(n, sigma, border) for n, sigma in zip(planes.shape, reversed(sigmas)))
    values = np.zeros(planes.shape[2]) if values is None else np.asarray(values, np.float64)
    across = np.einsum("xi,jib->jxb", across, planes - values, optimize=True)
    return np.einsum("yj,jxb->yxb", down, across, optimize=True) + values  # all weights sum to 1


def margin(sigma):
    return int(np.ceil(3 * sigma)) if sigma <= 8 else oracle.grid_reach(sigma)


def expected(pixels, sigmas, border, value, alpha):
    """The pixels, not rounded, and how far floats may be off."""
    kind = oracle.type_name(pixels.dtype)
    outside = np.array(oracle.border_pixel(value, pixels.shape[2], int(alpha), kind), np.float64)
    planes = pixels.astype(np.float64)
    if alpha:
        planes[:, :, :-1] *= planes[:, :, -1:]
        outside[:-1] *= outside[-1]
    wanted = blurred(planes, sigmas, border, outside if border == "constant" else None)
    largest = max(np.abs(planes).max(), np.abs(outside).max())
    error = np.full(wanted.shape, (oracle.F32_TOLERANCE + 2 * oracle.LARGE_SIGMA_ERROR) * largest)
    if alpha:
        error[:, :, :-1] *= 2 / wanted[:, :, -1:]
        wanted[:, :, :-1] /= wanted[:, :, -1:]
    return wanted, error


def matches(answer, wanted, error, kind):
    assert answer.status == 200, answer
    got = answer.pixels.astype(np.float64)
    assert got.shape == wanted.shape
    if kind == "f32":
        assert (np.abs(got - wanted) <= error).all(), np.abs(got - wanted).max()
        return
    rounded = np.clip(np.rint(wanted), 0, FULL[kind])
    assert np.abs(got - rounded).max() <= 1
    assert (got != rounded).mean() < (0.2 if kind == "u16" else 0.02)


@pytest.mark.parametrize("border, kind, image", pairwise(oracle.BORDERS, list(oracle.TYPES), BANDS))
def test_alone(service, border, kind, image):
    bands, alpha = image
    sigmas = (101, 101) if border == "crop" else (150, 330)
    width, height = (1300, 1251) if border == "crop" else (131, 97)
    pixels = random_pixels(seed_of(border, kind, image), width, height, bands, kind, alpha)
    pixels[height // 2:, :width // 3, :bands - alpha] //= 3
    value = BORDER_VALUES[kind] if border == "constant" else None
    parameters = {"sigma": 101} if border == "crop" else {"sigma_x": 150, "sigma_y": 330}
    answer = service.filter(pixels, [("gaussian", parameters)], border=border, border_value=value,
                            alpha=int(alpha), verify=int(border != "crop"))
    matches(answer, *expected(pixels, sigmas, border, value, alpha), kind)


@pytest.mark.parametrize("width, height", [(1, 1), (1, 90), (90, 1), (2, 3), (17, 700)])
def test_small(service, width, height):
    """Also with pixels for points in one direction, and where an image is outside itself many times."""
    pixels = random_pixels(width, width, height, 3, "u16")
    for border, sigmas in zip(("reflect", "wrap", "reflect101", "replicate"),
                              ((1000, 1000), (0.4, 101), (300, 5), (20, 400))):
        answer = service.filter(pixels, [("gaussian", dict(zip(("sigma_x", "sigma_y"), sigmas)))], border=border)
        matches(answer, *expected(pixels, sigmas, border, None, False), "u16")


def test_goes_on_from_100(service):
    """The two ways to compute it agree where one takes over."""
    pixels = random_pixels(3, 700, 300, 1, "f32")
    for border in ("replicate", "wrap"):
        below, above = (service.filter(pixels, [("gaussian", {"sigma": sigma})], border=border).pixels
                        for sigma in (100, 100.0001))
        assert np.abs(below - above).max() < 2e-5 * np.abs(pixels).max()


def test_not_a_number(service):
    """It stays within the reach; the rest is as without it."""
    pixels = random_pixels(4, 2000, 40, 1, "f32")
    clean = service.filter(pixels, [("gaussian", {"sigma": 101})]).pixels
    pixels[20, 1000] = np.nan
    spoilt = service.filter(pixels, [("gaussian", {"sigma": 101})]).pixels
    assert np.isnan(spoilt[:, 1000]).all()
    reach = oracle.grid_reach(101)
    for part in (np.s_[:, :1000 - reach], np.s_[:, 1001 + reach:]):
        assert np.array_equal(spoilt[part], clean[part])


def test_keeps_constants(service):
    for kind, value in (("u8", 37), ("u16", 12345), ("f32", 0.3)):
        pixels = np.full((70, 90, 1), value, oracle.TYPES[kind])
        got = service.filter(pixels, [("gaussian", {"sigma": 700})]).pixels
        assert np.allclose(got, pixels, rtol=1e-6, atol=0)


WIDE = ("gaussian", {"sigma": 110})
CHAINS = [([("median", {})], [("sobel", {})], "wrap"), ([("equalize", {})], [("invert", {})], "constant"),
          ([], [("box", {"size": 5}), ("unsharp", {})], "replicate"), ([WIDE], [("linear", {"gain": 3})], "reflect"),
          ([("box", {})], [("median", {}), ("sobel", {})], "crop")]


@pytest.mark.parametrize("before, after, border", CHAINS, ids=str)
def test_chains(service, before, after, border):
    """As its filters one after the other, in many tiles, to the byte."""
    size = (1450, 1500) if border == "crop" else (700, 901)
    pixels = random_pixels(9, *size, 3, "u8")
    pixels[200:400, 100:] //= 4
    options = {"border": border, "variant": "general"}
    answer = service.filter(pixels, [*before, WIDE, *after], **options)
    step = pixels
    for one in [*before, WIDE, *after]:
        part = service.filter(step, [one], **options)
        assert part.status == 200, part
        step = part.pixels
    assert answer.status == 200 and np.array_equal(answer.pixels, step), answer


def test_channels(service):
    """What is blurred with others, alone, and in YCbCr, where no colour saturates."""
    rng = np.random.default_rng(6)
    pixels = rng.integers(100, 156, (90, 120, 4)).astype(np.uint8)
    pixels[30:, 40:, 0] += 20
    wide = [("gaussian", {"sigma": 120})]

    def got(channels):
        answer = service.filter(pixels, wide, channels=channels, alpha=1)
        assert answer.status == 200, answer
        return answer.pixels.astype(np.float64)

    plain = blurred(pixels.astype(np.float64), (120, 120))
    for channels, band in (("green", 1), ("alpha", 3)):
        others = [b for b in range(4) if b != band]
        assert np.array_equal(got(channels)[:, :, others], pixels[:, :, others])
        assert np.abs(got(channels)[:, :, band] - np.rint(plain[:, :, band])).max() <= 1
    weighted, _ = expected(pixels, (120, 120), "replicate", None, True)
    assert np.abs(got("color")[:, :, :3] - np.rint(weighted[:, :, :3])).max() <= 1
    assert np.array_equal(got("color")[:, :, 3], pixels[:, :, 3])
    before = pixels[:, :, :3] @ oracle.TO_YCBCR.T
    after = blurred(before, (120, 120))
    for channels, bands in (("luma", [0]), ("chroma", [1, 2])):
        wanted = before.copy()
        wanted[:, :, bands] = after[:, :, bands]
        rgb = wanted @ oracle.FROM_YCBCR.T
        assert np.abs(got(channels)[:, :, :3] - np.rint(rgb)).max() <= 1
        assert np.array_equal(got(channels)[:, :, 3], pixels[:, :, 3])


def test_parts_of_an_image(service):
    pixels = random_pixels(12, 300, 200, 3, "u8")
    everywhere = service.filter(pixels, [WIDE]).pixels
    wanted = pixels.copy()
    wanted[30:80, 20:120] = everywhere[30:80, 20:120]
    assert np.array_equal(service.filter(pixels, [WIDE], regions="20,30,100,50").pixels, wanted)
    alone = service.filter(np.ascontiguousarray(pixels[20:120, 10:210]), [WIDE]).pixels
    assert np.array_equal(service.filter(pixels, [WIDE], roi="10,20,200,100").pixels, alone)
    placed = service.filter(pixels, [WIDE], roi="10,20,200,100", target="50,60").pixels
    assert np.array_equal(placed[60:160, 50:250], alone)
    assert np.array_equal(placed[:60], pixels[:60])


@pytest.mark.parametrize("kind, bands, alpha, border", [("u8", 3, False, "crop"), ("u16", 4, True, "wrap"),
                                                        ("f32", 1, False, "constant"), ("f32", 2, True, "reflect")])
def test_unsharp(service, kind, bands, alpha, border):
    """What is compared with such a blur, also beside a threshold."""
    size = (1260, 1270) if border == "crop" else (140, 90)
    pixels = random_pixels(17, *size, bands, kind, alpha)
    filters = [("unsharp", {"sigma": 101, "amount": 1.5, "threshold": 0.2})]
    agrees(service, pixels, filters, border, BORDER_VALUES[kind] if border == "constant" else None, alpha)
    assert service.filter(pixels, filters, border=border, alpha=int(alpha), channels="alpha" if alpha else "all",
                          verify=1).status == 200


@pytest.fixture(scope="module")
def small(launch):
    with launch("--arena-size", "256K", "--codecs", "2", environment=ONE_DEVICE) as service:
        yield service


@pytest.mark.parametrize("border, kind, image", pairwise(oracle.BORDERS, list(oracle.TYPES), [(1, False), (3, False), (4, True)]))
def test_where_tiles_do_not_fit(small, border, kind, image):
    """A smaller sigma, too, if strips would be little but halo; what is cropped is the same."""
    bands, alpha = image
    size = (700, 480) if border == "crop" else (330, 170)
    pixels = random_pixels(seed_of(border, kind, image), *size, bands, kind, alpha)
    value = BORDER_VALUES[kind] if border == "constant" else None
    filters = [("unsharp" if image == (3, False) else "gaussian", {"sigma": 30})]
    agrees(small, pixels, filters, border, value, alpha)
    answer = small.filter(pixels, filters, border=border, border_value=value, alpha=int(alpha), verify=1)
    assert answer.status == 200 and "grow;" in answer.headers["Server-Timing"], answer


def test_chains_that_do_not_fit(service, small):
    """One filter after the other, until the rest fits; and the whole where arenas are large is the same."""
    pixels = random_pixels(21, 400, 300, 3, "u8")
    for filters in ([("gaussian", {"sigma": 30}), ("sobel", {})], [("median", {}), ("unsharp", {"sigma": 25})],
                    [("equalize", {}), ("gaussian", {"sigma": 20})],
                    [("gaussian", {"sigma": 30}), ("invert", {}), ("gaussian", {"sigma": 28})]):
        whole, cut = (one.filter(pixels, filters, border="reflect") for one in (service, small))
        assert whole.status == cut.status == 200, (filters, cut)
        apart = np.abs(whole.pixels.astype(int) - cut.pixels)
        assert "grow;" in cut.headers["Server-Timing"] and "grow;" not in whole.headers["Server-Timing"]
        assert apart.max() <= (8 if filters[-1][0] == "sobel" else 2) and (apart > 0).mean() < 0.05, filters


def test_what_does_not_fit_is_said(small):
    """Other windows, a grid that has no room, and kernels that draw no points."""
    pixels = random_pixels(22, 400, 300, 3, "u8")
    for filters, options in (([("box", {"size": 201})], {}), ([("gaussian", {"size": 201})], {}),
                             ([("canny", {"sigma": 30})], {}), ([("gaussian", {"sigma": 30})], {"variant": "separable"}),
                             ([("gaussian", {"sigma": 30})] * 3, {})):
        problem = small.filter(pixels, filters, **options).refused(422, "does-not-fit")
        assert "arena-size" in problem["detail"] and "largest width is" in problem["detail"], problem
    assert small.restarts() == 0


def test_of_the_shorter_side(service):
    pixels = random_pixels(13, 400, 300, 1, "u8")
    share, whole = (service.filter(pixels, [("gaussian", {"sigma": sigma})]) for sigma in ("50%", 150))
    assert share.status == 200 and np.array_equal(share.pixels, whole.pixels), share


def test_variants(service):
    """The kernel that draws it may be named, and no other."""
    pixels = random_pixels(14, 60, 50, 3, "u16")
    wanted, error = expected(pixels, (110, 110), "replicate", None, False)
    for variant in ("grow", "reference", "general"):
        matches(service.filter(pixels, [WIDE], variant=variant), wanted, error, "u16")
    problem = service.filter(pixels, [WIDE], variant="separable_wide").refused(400, "bad-parameter")
    assert problem["parameter"] == "variant"


def test_refuses(service):
    pixels = random_pixels(15, 300, 200, 1, "u8")
    for filters, options, parameter in [
            ([("gaussian", {"sigma": 1001})], {}, "sigma"), ([("gaussian", {"sigma_y": 1000.1})], {}, "sigma_y"),
            ([WIDE, WIDE, WIDE], {}, "filters"),
            ([("equalize", {}), ("canny", {}), ("gaussian", {"sigma": "90%"})], {}, "filters")]:
        problem = service.filter(pixels, filters, **options).refused(400, "bad-parameter")
        assert problem["parameter"] == parameter, problem
    problem = service.filter(pixels, [WIDE], border="crop").refused(422, "image-too-small")
    assert str(2 * oracle.grid_reach(110) + 1) in problem["detail"], problem


def test_memory_is_bounded(launch):
    """By the points, not the image: they are many where one direction is not blurred much."""
    with launch("--max-buffered-size", "200000", environment=ONE_DEVICE) as service:
        assert service.filter(random_pixels(1, 1000, 1000, 1, "u8"), [WIDE]).status == 200
        pixels = random_pixels(1, 20, 1000, 1, "u8")
        many = [("gaussian", {"sigma_x": 101, "sigma_y": 0.1})]
        problem = service.filter(pixels, many).refused(422, "too-many-pixels")
        assert "200000" in problem["detail"] and "sigma 101 across and 0.1 down" in problem["detail"], problem
        service.rest()
