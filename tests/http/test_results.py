"""Pixels over HTTP against the oracle; the service checks its own results, and doubts none."""
import numpy as np
import pytest

import oracle
from pixels import BANDS, BORDER_VALUES, agrees, pairwise, random_pixels, seed_of


def random_matrix(rng, rows, columns):
    """Whole numbers, uneven under every flip."""
    return rng.integers(-9, 10, (rows, columns)).astype(float)


@pytest.fixture(scope="module")
def service(launch):
    with launch("--verify-share", "1") as own:
        yield own
        assert own.restarts() == own.total("convolved_verify_mismatches_total") == 0, own.tail()


GAUSSIAN = ("gaussian", {"sigma": 1.3})
MATRIX = ("convolve", {"kernel": [[1, -2, 3, 4, -5], [6, 7, -8, 9, 1], [2, -3, 4, 5, 6]],
                       "offset": 3.0})


@pytest.mark.parametrize("border, kind, image", pairwise(oracle.BORDERS, list(oracle.TYPES), BANDS))
def test_borders_types_bands(service, border, kind, image):
    bands, alpha = image
    pixels = random_pixels(seed_of(border, kind, bands), 33, 21, bands, kind, alpha)
    value = BORDER_VALUES[kind] if border == "constant" else None
    for one in (GAUSSIAN, MATRIX, ("sobel", {})):
        agrees(service, pixels, [one], border, value, alpha)


def high_pass(size):
    """Returns the pixel less its surroundings: large weights of both signs, a sum of 1."""
    matrix = -np.ones((size, size))
    matrix[size // 2, size // 2] = size * size
    return matrix


def signed_rank_1(size):
    """Runs separably; of sum 1, with weights whose magnitudes come to thousands."""
    row = np.where(np.arange(size) % 2, -3.0, 4.0)
    row[0] += 1 - row.sum()
    return np.outer(row, row)


LARGE_GAINS = [("convolve", {"kernel": high_pass(31)}), ("convolve", {"kernel": high_pass(63)}),
               ("convolve", {"kernel": high_pass(31), "offset": 100.25}),
               ("convolve", {"kernel": signed_rank_1(31)}),
               ("sharpen", {"amount": 10}), ("unsharp", {"sigma": 5, "amount": 10})]


@pytest.mark.parametrize("kind, bands, alpha", [
    ("u8", 4, "opaque"), ("u16", 2, "noise"), ("u16", 4, "holes"), *(pytest.param(*row, marks=pytest.mark.slow) for row in (
        ("u16", 4, "opaque"), ("u8", 4, "noise"), ("u8", 2, "opaque"), ("u8", 2, "holes")))])
def test_large_gain_with_alpha(service, kind, bands, alpha):
    """Exact to 1 of 65535, unless the sums of alpha that divide colour are as good as 0."""
    full = int(oracle.FULL_SCALE[kind])
    pixels = random_pixels(seed_of(kind, bands, alpha), 70, 45, bands, kind)
    # Nearly flat, so that the differences do not all saturate.
    pixels[:, :, :-1] = pixels[:, :, :-1].astype(int) // 500 + full // 2
    if alpha == "opaque":
        pixels[:, :, -1] = full
    elif alpha == "noise":
        pixels[:, :, -1] = full - pixels[:, :, -1] // 200
    else:
        pixels[:, :, -1] = np.where(pixels[:, :, -1] < full // 500, 0, full)
    for one in LARGE_GAINS:
        got = service.filter(pixels, [one], alpha=1).pixels.astype(float)
        wanted = oracle.filtered(pixels, [one], alpha=True).value
        inside = (wanted > 0) & (wanted < full)
        assert alpha != "opaque" or inside[:, :, :-1].mean() > 0.05, one[0]
        off = np.abs(got - wanted)
        off[wanted[:, :, -1] == 0] = 0  # the oracle's sum of alpha is not as exact
        assert off.max() <= 1, (one[0], off.max())


@pytest.mark.parametrize("kind", oracle.TYPES)
def test_border_value_a_band(service, kind):
    value = (np.array([0.1, 0.5, 0.9, 0.25]) * oracle.FULL_SCALE[kind]).astype(oracle.TYPES[kind])
    pixels = random_pixels(seed_of(kind), 19, 14, 4, kind, True)
    for values, alpha in ((value, True), (value[:3], True), (value, False), (None, True)):
        agrees(service, pixels, [("box", {"size": 7})], "constant", values, alpha)


SIZES = [(1, 1), (1, 7), (7, 1), (2, 3), (17, 13), (127, 65), (1, 300), (300, 1),
         *(pytest.param(*size, marks=pytest.mark.slow)
           for size in ((1, 4), (2, 2), (3, 5), (5, 2), (64, 64), (255, 31), (1023, 37)))]
RNG = np.random.default_rng(1)
# From none to far larger than most of the sizes.
WINDOWS = [("gaussian", {"size": 1}), ("gaussian", {"sigma": 0.4}), ("gaussian", {"sigma": 20.0}),
           ("gaussian", {"sigma": 2.5, "size": 9}), ("box", {"size": 1}), ("box", {"size": 101}),
           ("convolve", {"kernel": random_matrix(RNG, 1, 31) + 4}),
           ("convolve", {"kernel": random_matrix(RNG, 31, 1) + 4}),
           ("convolve", {"kernel": random_matrix(RNG, 21, 37), "scale": 900.0, "offset": 0.5}),
           ("sobel", {}), ("sobel", {"output": "x"}), ("sobel", {"output": "y"}),
           ("dog", {"sigma1": 1.5, "sigma2": 4})]


@pytest.mark.parametrize("width, height", SIZES)
def test_sizes(service, width, height):
    """Also images smaller than the window: the border goes round them several times."""
    rng = np.random.default_rng(seed_of(width, height))
    for one in WINDOWS:
        kind, border = rng.choice(list(oracle.TYPES)), rng.choice(oracle.BORDERS[:-1])
        bands, alpha = BANDS[rng.integers(len(BANDS))]
        pixels = random_pixels(seed_of(width, height, one[0]), width, height, bands, kind, alpha)
        agrees(service, pixels, [one], border, alpha=alpha)


LARGEST = np.arange(63 * 63).reshape(63, 63) % 11 + 1


@pytest.mark.parametrize("width, height, bands, alpha, kind, filters", [
    (2047, 333, 2, False, "f32", [("gaussian", {"sigma": 4.0})]),
    # Rows that alone have more samples than a tile without vertical halo is meant to have.
    (300000, 1, 1, False, "u8", [("box", {"size": 1})]),
    (100000, 3, 4, False, "u8", [("convolve", {"kernel": np.ones((1, 63))})]),
    # Launches that a CPU takes long for are cut into pieces.
    (1021, 611, 2, False, "u16", [("convolve", {"kernel": LARGEST})]),
    *(pytest.param(*row, marks=pytest.mark.slow) for row in (
        (901, 503, 2, True, "u8", [("gaussian", {"sigma": 6.0})]),
        (2003, 409, 3, False, "u8", [("gaussian", {"sigma": 1.4}), ("sobel", {})]),
        (1021, 611, 2, False, "u8", [("gaussian", {"size": 301}), ("gaussian", {"size": 201})]),
        (413, 2801, 1, False, "u8", [("sobel", {"output": "y"})]),
        (77, 5003, 4, False, "f32", [("box", {"size": 31})]),
        (1501, 701, 3, False, "u8", [("gaussian", {"sigma": 10.0})]),
        (4099, 103, 4, False, "u8", [("box", {"size": 101})]),
        (2999, 201, 1, False, "u16", [("gaussian", {"sigma": 20.0})]),
        (2500, 300, 3, False, "u16", [("sobel", {})])))
])
def test_large(service, width, height, bands, alpha, kind, filters):
    pixels = random_pixels(seed_of(width), width, height, bands, kind, alpha)
    agrees(service, pixels, filters, "reflect101", alpha=alpha)


def with_kinds(cases):
    """Every case with every type of samples, for parametrize; all but one of each case are slow."""
    return [pytest.param(case, kind, marks=() if i % len(oracle.TYPES) == j else pytest.mark.slow,
                         id=f"{case}-{kind}")
            for i, case in enumerate(cases) for j, kind in enumerate(oracle.TYPES)]


@pytest.mark.parametrize("size, kind", with_kinds([
    (1, 1), (3, 3), (1, 5), (5, 1), (1, 63), (63, 1), (7, 11), (31, 31), (63, 3), (63, 63)]))
def test_matrices(service, size, kind):
    """Full rank, a product of a column and a row, one disturbed; with large gains."""
    rows, columns = size
    rng = np.random.default_rng(seed_of(rows, columns))
    full = random_matrix(rng, rows, columns)
    full[rows // 2, 0] += 10
    product = np.outer(rng.integers(1, 8, rows), rng.integers(-3, 8, columns)).astype(float)
    disturbed = product.copy()
    disturbed[0, columns - 1] += 1 + abs(product).max()
    pixels = random_pixels(seed_of(kind, rows), 150, 90, 1 + rows % 3, kind)
    for matrix in (full, product, disturbed):
        scale = float(np.ceil(1.3 * np.sqrt((matrix ** 2).sum()))) or 1.0
        parameters = {"kernel": matrix, "scale": scale, "offset": oracle.MIDPOINT[kind]}
        agrees(service, pixels, [("convolve", parameters)], "reflect")


def test_rounds_to_nearest_even(service):
    """Halves are exact in float32, so nothing excuses another result."""
    for kind in ("u8", "u16"):
        row = np.arange(oracle.FULL_SCALE[kind] + 1).astype(oracle.TYPES[kind]).reshape(1, -1, 1)
        full = oracle.FULL_SCALE[kind]
        for parameters, exact in (
                ({"offset": 0.5}, row + 0.5), ({"offset": -0.5}, row - 0.5),
                ({"scale": 2}, row / 2), ({"scale": 4}, row / 4),
                ({"scale": 2, "offset": -9.5}, row / 2 - 9.5)):
            got = service.filter(row, [("convolve", {"kernel": [[1]], **parameters})]).pixels
            assert np.array_equal(got, np.clip(np.rint(exact), 0, full)), (kind, parameters)


RIGHT = np.arange(0, 80, 10, np.uint8)[None, :, None]  # a ramp
DOWN = RIGHT.swapaxes(0, 1)
GREYS = np.array([[[10], [50], [110]]], np.uint8)
FLOATS = np.array([[[0.2], [0.5], [1]]], np.float32)
PAIRS = np.array([[[0.2, 1], [0.5, 0.5], [1, 0]]], np.float32)  # with alpha
CLEAR = np.array([[[200, 0], [100, 255], [40, 255]]], np.uint8)
S, T = np.exp(-1 / 1.28), np.exp(-1 / 0.18)  # weights of a neighbour in Gaussians of 0.8 and 0.3
SHARP, SHARP_PAIR = 50 - (50 + 120 * T) / (1 + 2 * T), 0.5 - (0.25 + 0.2 * T) / (0.5 + T)
BILATERAL = {"radius": 1, "sigma_space": 1, "sigma_range": 0.5}
A, B, C = np.exp(-0.5 - 0.18), np.exp(-0.5 - 0.5), 1 + 2 * np.exp(-0.5)
BY_HAND = [
    # Brighter to the right, or downwards: positive, and around the middle of the range.
    (RIGHT, "sobel", {"output": "x"}, 208), (RIGHT, "sobel", {"output": "y"}, 128),
    (DOWN, "sobel", {"output": "y"}, 208), (RIGHT, "sobel", {}, 80),
    (RIGHT, "sobel", {"output": "direction"}, 128), (DOWN, "sobel", {"output": "direction"}, 191),
    (DOWN[::-1].astype(np.float32), "sobel", {"output": "direction"}, -np.pi / 2),
    (RIGHT, "convolve", {"kernel": [[0, 0, 1]]}, 50), (RIGHT, "gaussian", {"size": 3}, 40),
    (GREYS, "gaussian", {"size": 3}, np.rint((50 + 120 * S) / (1 + 2 * S))),
    (GREYS, "unsharp", {"sigma": 0.3, "amount": 10}, np.rint(50 + 10 * SHARP)),
    (GREYS, "unsharp", {"sigma": 0.3, "amount": 10, "threshold": 0.01}, 50),
    (PAIRS, "unsharp", {"sigma": 0.3, "amount": 2}, [0.5 + 2 * SHARP_PAIR, 0.5]),
    (FLOATS, "bilateral", BILATERAL, (0.5 * C + 0.2 * A + B) / (A + B + C)),
    (PAIRS, "bilateral", BILATERAL,
     [(0.25 * C + 0.2 * A) / (0.5 * C + A), (0.5 * C + A) / (A + B + C)]),
    # The colour of a transparent pixel counts for nothing; a derivative keeps alpha.
    (CLEAR, "convolve", {"kernel": [[1, 1, 1]]}, [70, 170]), (CLEAR[:, :1], "box", {}, [0, 0]),
    (CLEAR, "sobel", {}, [255, 255])]


@pytest.mark.parametrize("pixels, name, parameters, expected", BY_HAND, ids=range(len(BY_HAND)))
def test_by_hand(service, pixels, name, parameters, expected):
    """The pixel in the middle, or the one after it."""
    got = agrees(service, pixels, [(name, parameters)], alpha=pixels.shape[2] == 2)
    assert got[got.shape[0] // 2, got.shape[1] // 2] == pytest.approx(expected, rel=1e-5)


def test_query_as_typed(service):
    """As in a shell: columns by plus or comma, rows by a bare semicolon."""
    pixels = random_pixels(5, 20, 10, 3, "u8")
    answers = {service.post(f"/v1/filters/convolve?raw=20x10x3:u8&format=raw&variant=general&kernel={kernel}",
                            pixels.tobytes()).body
               for kernel in ("1,2,1;2,4,2;1,2,1", "1+2+1;2+4+2;1+2+1", "1%202%201;2+4+2;1,2,1",
                              "1%2C2%2C1%3B2%2C4%2C2%3B1%2C2%2C1", "1,2,1;2,4,2;1,2,1&scale=16")}
    expected = oracle.filtered(pixels, [("convolve", {"kernel": np.outer([1, 2, 1], [1, 2, 1])})])
    assert len(answers) == 1
    oracle.check(np.frombuffer(answers.pop(), np.uint8).reshape(10, 20, 3), expected)


FILTERS = {
    "gaussian": [{}, {"size": 5}, {"sigma_x": 4.0}, {"sigma_x": 0.3, "sigma_y": 12},
                 {"sigma": 3, "sigma_y": 0.5, "size": 9}],
    "sobel": [{"output": "direction"}],
    "scharr": [{}, {"output": "x"}, {"output": "y"}, {"output": "direction"}],
    "prewitt": [{}, {"output": "x"}, {"output": "y"}, {"output": "direction"}],
    "convolve": [
        {"kernel": [[0, 0, 0], [0, 0, 1], [0, 0, 0]]},  # shifts: shows which way it is applied
        {"kernel": [[0, 1, 0], [0, 0, 0], [0, 0, 0]]},
        {"kernel": [[1, 1, 1], [1, -8, 1], [1, 1, 1]]},  # sum 0: scale is 1
        {"kernel": [[0, 0, 0], [0, 0, 0], [0, 0, 0]], "offset": 5.0},
        {"kernel": [[1, 2, 1]], "scale": -4.0, "offset": 200.0},
        {"kernel": [[0.125, 0.5, 0.1, 0.07, 1e-3]], "scale": 0.01},
        {"kernel": [[-1, -1, -1], [-1, 9, -1], [-1, -1, -1]]},
        {"kernel": [[1e6, 0, -1e6 + 1]], "scale": 1e6}, {"kernel": [[3]], "offset": -100.0}],
    "laplacian": [{}, {"connectivity": 8}], "emboss": [{}],
    "sharpen": [{}, {"amount": 4.5}, {"amount": 0}],
    "unsharp": [{}, {"sigma": 3.0, "amount": 2.5}, {"sigma": 1.5, "amount": 4, "threshold": 0.1}],
    "bilateral": [{}, {"radius": 1, "sigma_range": 0.5},
                  {"radius": 7, "sigma_space": 10, "sigma_range": 0.3}],
    "threshold": [{}, {"value": 0.2}, {"method": "mean"},
                  {"method": "mean", "size": 31, "offset": -0.1},
                  {"method": "gaussian", "size": 15, "offset": 0.05}],
    "dog": [{}, {"sigma1": 3.0, "sigma2": 0.5}, {"sigma1": 9, "sigma2": 32}],
    "highpass": [{"sigma": 5}], "log": [{}, {"sigma": 5}],
    "motion": [{}, {"length": 15.5, "angle": 33}, {"length": 63, "angle": -90}],
    "gamma": [{}, {"gamma": 0.4}], "levels": [{"black": 0.25, "white": 0.75}, {"gamma": 3}],
    "linear": [{"gain": -2.5, "bias": 1.5}], "invert": [{}],
    "pixelate": [{"size": 1}, {"size": 2}, {"size": 11}, {"size": 200}]}


def test_every_filter_is_tried(service):
    """Here, or (those named) by tests of their own."""
    elsewhere = {"box", "canny", "colormatrix", "equalize", "erode", "dilate", "open", "close", "tophat",
                 "blackhat", "morphgradient", "grayscale", "lut", "median", "rank", "resize"}
    assert {one["name"] for one in service.get("/v1/filters").json()["filters"]} == {*FILTERS, *elsewhere}


@pytest.mark.parametrize("one, kind", with_kinds(
    [(name, one) for name in FILTERS for one in FILTERS[name]]))
def test_alone(service, one, kind):
    """On bands of every number, each with another border, with alpha too: kept or premultiplied."""
    # With large windows crop would leave nothing of a small image.
    size = (231, 217) if one[0] in ("dog", "pixelate") else (131, 97)
    for (bands, alpha), border in zip(BANDS, oracle.BORDERS):
        pixels = random_pixels(seed_of(str(one), kind, bands), *size, bands, kind, alpha)
        value = BORDER_VALUES[kind] if border == "constant" else None
        border = "replicate" if (one[0], border) == ("pixelate", "crop") else border
        agrees(service, pixels, [one], border, value, alpha)


def test_lines_for_users(service):
    pixels = np.zeros((41, 61, 1), np.uint8)
    pixels[20, 30] = 252
    across, up = (service.filter(pixels, [("motion", one)]).pixels[:, :, 0]
                  for one in ({"length": 9}, {"length": 21, "angle": 60}))
    assert (across[20, 26:35] == 28).all() and across.sum(dtype=int) == 252
    assert up[12, 35] > 5 and up[12, 25] == 0  # to the right and up
    assert service.filter(pixels, [("log", {})]).pixels[20, 30, 0] < 128


def test_sigma_of_the_shorter_side(service):
    """Percentages of the image's size are of the roi, if there is one, in chains, too."""
    pixels = random_pixels(11, 300, 150, 3, "u8")
    options = {"variant": "general"}
    for share, sigma, part in (("2%", 3, {}), ("10%", 15, {}), ("4%", 2, {"roi": "9,9,50,90"})):
        for name, key in (("gaussian", "sigma"), ("gaussian", "sigma_y"), ("unsharp", "sigma")):
            got, wanted = (service.filter(pixels, [(name, {key: value})], **part, **options).pixels
                           for value in (share, sigma))
            assert np.array_equal(got, wanted), (share, name)
    chain = [("gaussian", {"sigma": "2%"}), ("equalize", {}), ("unsharp", {"sigma": "1%"})]
    pixel = [("gaussian", {"sigma": 3}), ("equalize", {}), ("unsharp", {"sigma": 1.5})]
    assert np.array_equal(service.filter(pixels, chain, luma=[("gaussian", {"sigma": "1%"})], **options).pixels,
                          service.filter(pixels, pixel, luma=[("gaussian", {"sigma": 1.5})], **options).pixels)
    for name, value, said in (
            ("gaussian", "0%", "from 0.1 to 100, in pixels, or %"), ("gaussian", "%", "from"),
            ("gaussian", "101%", "from"), ("unsharp", "1%%", "from"),
            ("canny", "80%", "of 150 pixels, the shorter side of the image (or roi), is 120"),
            ("gaussian", "67%", "is 100.5; expected 0.1 to 100; instead, use pixelate, or"),
            ("unsharp", "0.05%", "is 0.075")):
        answer = service.filter(pixels, [(name, {"sigma": value})])
        answer.refused(400, "bad-parameter", said, parameter="sigma")
    service.filter(pixels, [("bilateral", {"sigma_range": "1%"})]).refused(400, "bad-parameter")
    answer = service.filter(pixels, chain, variant="separable")
    answer.refused(400, "bad-parameter", parameter="variant")


def made_by(answer, name):
    """Tells whether a kernel of this name had a part in it, in the general form or in another."""
    return any(kernel.startswith(name) for kernel in answer.timing)


def on_cpu(service):
    return all(device["type"] == "cpu" for device in service.get("/v1/devices").json()["devices"])


@pytest.mark.parametrize("kind", ["u8", "u16"])
def test_curves_for_users(service, kind):
    full = int(oracle.FULL_SCALE[kind])
    ramp = np.arange(0, full + 1, full // 255, dtype=oracle.TYPES[kind])[None, :, None]
    assert np.array_equal(service.filter(ramp, [("invert", {}), ("invert", {})]).pixels, ramp)
    for name in ("linear", "levels"):  # by default they change nothing
        assert np.array_equal(service.filter(ramp, [(name, {})]).pixels, ramp)
    by_table, by_formula = (service.filter(ramp, [("gamma", {})], variant=variant)
                            for variant in (None, "curve"))
    assert abs(by_table.pixels.astype(int) - by_formula.pixels).max() <= 1
    assert made_by(by_table, "lut") == on_cpu(service) and made_by(by_formula, "curve")


SEPIA = [[0.393, 0.769, 0.189, 0], [0.349, 0.686, 0.168, -0.05], [0.272, 0.534, 0.131, 0]]
COLOURS = [("linear", {"gain": [1.5, -1, 0.5], "bias": [-0.2, 1, 0]}),
           ("lut", {"table": [[0, 200, 255], [255, 10, 0], [9, 9, 90]]}),
           ("lut", {"table": [list(range(255, -1, -1))]}),
           ("lut", {"points": [[0.1, 1], [0.3, 0.25], [0.8, 0.5]], "max": 1}),
           ("grayscale", {}), ("grayscale", {"weights": "bt709"}), ("colormatrix", {"matrix": SEPIA}),
           ("colormatrix", {"matrix": [[1, 0, 0, -0.5, 0.2], [0, 0.5, 0.5, 0, 0], [2, -1, 0, 0, 0],
                                       [0.2, 0.2, 0.2, 0.5, -0.1]]})]


@pytest.mark.parametrize("one, kind", with_kinds(COLOURS))
def test_colours(service, one, kind):
    for (bands, alpha), border, channels in zip([(3, False), (4, True), (4, True)], oracle.BORDERS,
                                                ["all", "all", "green"]):
        pixels = random_pixels(seed_of(str(one), kind, bands), 131, 57, bands, kind, alpha)
        agrees(service, pixels, [one], border, alpha=alpha, channels=channels)


def test_colours_for_users(service):
    ramp = np.arange(256, dtype=np.uint8)[None, :, None]
    red = np.full((2, 2, 3), (200, 0, 0), np.uint8)
    squares = [round(v * v / 255) for v in range(256)]
    assert service.filter(ramp, [("lut", {"table": [squares]})]).pixels[0, :, 0].tolist() == squares
    bent = service.filter(ramp, [("lut", {"points": [[50, 0], [100, 200]]})]).pixels[0, :, 0]
    assert bent[[0, 50, 75, 100, 255]].tolist() == [0, 0, 100, 200, 200]
    assert (service.filter(red, [("grayscale", {})]).pixels == 60).all()
    swapped = service.filter(red, [("colormatrix", {"matrix": [[0, 0, 1, 0], [0, 1, 0, 0.2],
                                                               [1, 0, 0, 0]]})]).pixels
    assert (swapped == [0, 51, 200]).all()


@pytest.mark.parametrize("kind, bands, alpha", [("u8", 3, False), ("u16", 4, True), ("f32", 3, False)])
def test_samples_by_themselves(service, kind, bands, alpha):
    """Filters in a row, which CPUs may look up in one table: as one after another."""
    pixels = random_pixels(seed_of("row", kind, bands), 131, 57, bands, kind, alpha)
    # No result for bytes lies halfway between two integers; for words some come too near to it.
    linear = {"gain": [0.7, -0.9, 0.3], "bias": [0.03, 1.0031, 0.2005]} if kind == "u8" else {}
    row = [("gamma", {"gamma": 1.4}), ("linear", linear),
           ("lut", {"points": [[0, 30], [100, 0], [255, 200]]}), ("invert", {}),
           ("threshold", {"value": 0.4}), ("box", {}), ("gamma", {}), ("threshold", {"method": "mean"})]
    for first, last, channels in ((0, 8, "all"), (0, 5, "red"), (1, 4, "color")):
        options = {"alpha": int(alpha), "channels": channels, "border": "constant"}
        wanted = pixels
        for one in row[first:last]:
            wanted = service.filter(wanted, [one], **options).pixels
        answer = service.filter(pixels, row[first:last], **options)
        assert np.array_equal(answer.pixels, wanted), (first, last)
    if kind != "f32" and on_cpu(service):
        assert made_by(answer, "lut") and not made_by(answer, "curve")


def test_pixelate_has_no_seams(service):
    """Many tiles; blocks are those of the image, of an roi those of the roi, in a chain, too."""
    pixels = random_pixels(1, 350, 1501, 3, "u8")
    got = agrees(service, pixels, [("pixelate", {"size": 7})])
    assert np.array_equal(got[0:7, 0:7], np.broadcast_to(got[0, 0], (7, 7, 3)))
    part = service.filter(pixels, [("pixelate", {"size": 7})], roi="70,140,210,700").pixels
    assert np.array_equal(part, got[140:840, 70:280])
    cropped = service.filter(pixels, [("pixelate", {"size": 7})], border="crop").pixels
    assert np.array_equal(cropped, got[6:-6, 6:-6])
    agrees(service, pixels, [("pixelate", {"size": 5}), ("box", {})])


@pytest.mark.parametrize("kind", ["u8", "u16"])
def test_threshold_of_what_is_flat(service, kind):
    """Nothing is above its own mean, however that is summed up."""
    for value in (1, 77, int(oracle.FULL_SCALE[kind])):
        flat = np.full((40, 50, 3), value, oracle.TYPES[kind])
        for method in ("mean", "gaussian"):
            one = ("threshold", {"method": method, "size": 25})
            assert (service.filter(flat, [one]).pixels == 0).all()
    ramp = np.arange(256, dtype=np.uint8).reshape(1, -1, 1)
    assert np.array_equal(service.filter(ramp, [("threshold", {})]).pixels, np.where(ramp > 127, 255, 0))


@pytest.mark.parametrize("kind, bands, alpha", [("u8", 3, 0), ("u16", 4, 1), ("f32", 2, 0), ("u8", 4, 0)])
def test_threshold_by_colour(service, kind, bands, alpha):
    """A value for each colour, also where a chain is looked up in one table; alpha stays."""
    pixels = random_pixels(seed_of("by colour", kind, bands), 131, 57, bands, kind, alpha)
    values, full = [0.25, 0.75, 0.5, 0.1][:bands - alpha], oracle.FULL_SCALE[kind]
    wanted = np.where(pixels > full * np.array(values + [0] * alpha), full, 0)
    wanted[:, :, bands - alpha:] = pixels[:, :, bands - alpha:]
    one = ("threshold", {"value": values})
    answer = service.filter(pixels, [one], alpha=alpha, verify=1)
    assert answer.status == 200 and np.array_equal(answer.pixels, wanted)
    wanted[:, :, :bands - alpha] = full - wanted[:, :, :bands - alpha]
    assert np.array_equal(service.filter(pixels, [one, ("invert", {})], alpha=alpha).pixels, wanted)


@pytest.mark.parametrize("bands, name, parameters, says", [
    *((3, "threshold", parameters, "") for parameters in (
        {"value": [0.2, 0.3, 1.1]}, {"value": [[0.1], [0.2]]}, {"value": [0.1] * 5}, {"size": 5},
        {"value": 0.5, "method": "otsu"}, {"offset": 0}, {"method": "mean", "value": 0.5})),
    (1, "levels", {"black": 0.5, "white": 0.5}, ""), (1, "levels", {"black": 0.4, "white": 0.3}, ""),
    (1, "close", {"size": 4}, ""), (1, "erode", {"shape": "disc"}, ""), (1, "median", {"percentile": 10}, ""),
    (1, "dog", {"sigma": 1}, ""), (1, "colormatrix", {"matrix": SEPIA}, "this one is grey"),
    (1, "linear", {"gain": [1, 2, 3]}, "the image has 1 colour, and linear numbers for 3"),
    (3, "lut", {"table": [[0, 255], [255, 0]]}, "the image has 3 colours"),
    (3, "threshold", {"value": [0.2, 0.3]}, "3 colours, and threshold numbers for 2")], ids=str)
def test_refuses(service, bands, name, parameters, says):
    """These have no sense together, or to the filter or image. (Limits are tried with the catalogue.)"""
    answer = service.filter(np.zeros((4, 4, bands), np.uint8), [(name, parameters)])
    answer.refused(400, "bad-parameter", says)


ORDERS = [("median", {}), ("median", {"radius": 2}),
          ("rank", {"radius": 7, "window": "circle", "percentile": 90}),
          ("rank", {"radius": 3, "percentile": 12.5}), ("median", {"radius": 5, "window": "circle"})]
LARGEST_ORDER = ("rank", {"radius": 15, "window": "circle", "percentile": 90})
MORPHOLOGIES = [("erode", {}), ("dilate", {"size": 101}), ("open", {"size": 5, "shape": "ellipse"}),
                ("close", {"size": 31}), ("tophat", {"size": 9, "shape": "cross"}),
                ("blackhat", {"size": 7}), ("morphgradient", {"size": 15, "shape": "ellipse"})]


SOBELS = [(("sobel", {"output": output}), kind) for output in ("x", "y") for kind in ("u8", "u16")]


@pytest.mark.parametrize("one, kind", [
    *with_kinds(MORPHOLOGIES + ORDERS), *SOBELS,
    *(pytest.param(LARGEST_ORDER, kind, marks=pytest.mark.slow) for kind in oracle.TYPES)])
def test_exact(service, one, kind):
    """To the bit, since nothing is rounded; alpha stays."""
    for (bands, alpha), border in zip(BANDS, oracle.BORDERS):
        pixels = random_pixels(seed_of(str(one), kind, bands), 131, 107, bands, kind, alpha)
        value = BORDER_VALUES[kind] if border == "constant" else None
        got = service.filter(pixels, [one], border=border, border_value=value,
                             alpha=alpha).pixels
        expected = oracle.filtered(pixels, [one], border, value, alpha).value
        assert np.array_equal(got, expected.astype(got.dtype)), (bands, border)


@pytest.mark.parametrize("variant", [
    "any", "general", "reference", pytest.param("curve_rows", marks=pytest.mark.slow)])
def test_what_is_no_number_in_point_filters(service, variant):
    """NaN stays NaN, infinities go where their sign does; thresholds have nothing else than two values."""
    pixels = np.full((4, 40, 3), 0.25, np.float32)
    pixels[1, 3], pixels[1, 10], pixels[1, 20] = np.nan, np.inf, -np.inf
    options = {} if variant == "any" else {"variant": variant}
    curves = ((("linear", {"gain": 2, "bias": 0.5}), np.inf, -np.inf, 1),
              (("linear", {"gain": -2}), -np.inf, np.inf, -0.5), (("invert", {}), -np.inf, np.inf, 0.75),
              (("gamma", {"gamma": 2}), np.inf, 0, 0.5), (("gamma", {"gamma": 0.25}), np.inf, 0, 0.25 ** 4),
              (("levels", {"black": 0, "white": 0.5}), 1, 0, 0.5),
              (("levels", {"black": 0, "white": 0.5, "gamma": 3}), 1, 0, 0.5 ** (1 / 3)))
    others = ((("lut", {"points": "0,10;100,20", "max": 100}), 0.2, 0.1, 0.125),)
    for one, high, low, other in curves + (() if variant == "curve_rows" else others):
        got = service.filter_when_compiled(pixels, [one], **options).pixels
        usual = np.isfinite(pixels)
        assert np.isnan(got[1, 3]).all(), one
        assert got[1, 10] == pytest.approx(high, abs=1e-6) and got[1, 20] == pytest.approx(low, abs=1e-6), one
        assert np.abs(got[usual] - other).max() < 1e-6, one
    if variant != "curve_rows":
        got = service.filter(pixels, [("threshold", {"value": 0.5})], **options).pixels
        assert (got[1, 3] == 0).all() and (got[1, 10] == 1).all() and (got[1, 20] == 0).all()
        assert np.isnan(service.filter(pixels, [("grayscale", {})], **options).pixels[1, 3]).all()


def test_not_a_number_is_the_largest(service):
    pixels = np.zeros((5, 40, 1), np.float32)
    pixels[2, 3], pixels[2, 10], pixels[2, 20:23], pixels[2, 30] = np.nan, np.inf, -np.inf, -np.nan
    eroded, dilated = (service.filter(pixels, [one]).pixels
                       for one in (("erode", {"size": 1}), ("dilate", {"size": 3})))
    assert np.array_equal(eroded, pixels, equal_nan=True)
    row = dilated[2, :, 0]
    assert np.isnan(row[[2, 3, 4, 29, 30, 31]]).all() and np.isinf(row[9:12]).all()
    assert (row[[1, 5, 8, 12, 19, 20, 21, 22, 23]] == 0).all()
    largest = service.filter(pixels, [("rank", {"percentile": 100})]).pixels
    assert np.array_equal(largest, dilated, equal_nan=True)
    assert (service.filter(pixels, [("median", {})]).pixels[2, 20:23] == 0).all()
    eroded = service.filter(pixels, [("erode", {"size": 3})]).pixels[2, :, 0]
    assert (eroded[19:24] == -np.inf).all() and (eroded[:19] == 0).all() and (eroded[24:] == 0).all()


CHAINS = {
    "blur-edge": [("gaussian", {"sigma": 1.4}), ("sobel", {})],
    "edge-blur": [("sobel", {"output": "x"}), ("gaussian", {"sigma": 2.0})],
    "sharpen-box": [("convolve", {"kernel": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]]}),
                    ("box", {"size": 5}), ("sobel", {"output": "y"})],
    "four": [("box", {"size": 3}), ("gaussian", {"size": 5}),
             ("convolve", {"kernel": [[1, 2, 3, 2, 1]]}), ("gaussian", {"sigma": 0.7})],
    "matrices": [("convolve", {"kernel": [[1], [2], [4]], "scale": 6.0}),
                 ("convolve", {"kernel": [[1, 0, 2], [0, 3, 0], [1, 0, 1]], "offset": 2.0})],
    "eight": [("box", {"size": 3})] * 8,
    "open": [("gaussian", {"sigma": 1}), ("open", {"size": 7}), ("morphgradient", {"size": 5})],
    "median": [("box", {"size": 3}), ("median", {"radius": 2})],
    "close": [("median", {}), ("threshold", {"method": "mean", "offset": 0.02}), ("close", {})],
}
KINDS = [("u8", 3, False), ("u16", 1, False), ("f32", 2, False), ("u8", 4, True), ("f32", 2, True)]


@pytest.mark.parametrize("chain, border, image", pairwise(list(CHAINS), oracle.BORDERS, KINDS))
def test_chains(service, chain, border, image):
    kind, bands, alpha = image
    pixels = random_pixels(seed_of(chain, kind, bands), 61, 43, bands, kind, alpha)
    agrees(service, pixels, CHAINS[chain], border, 9 if border == "constant" else None, alpha)


@pytest.mark.parametrize("chain, border, image", pairwise(
    ["blur-edge", "sharpen-box", "four", "matrices"], oracle.BORDERS,
    [("u8", 3, False), ("u16", 4, True), ("f32", 1, False)]))
def test_chain_is_its_filters_in_turn(service, chain, border, image):
    """To the byte, by the same kernels, also on tiles that do not touch the edge."""
    kind, bands, alpha = image
    pixels = random_pixels(seed_of(chain, kind), 203, 157, bands, kind, alpha)
    options = {"border": border, "alpha": int(alpha), "variant": "general"}
    at_once = service.filter(pixels, CHAINS[chain], **options).pixels
    for one in CHAINS[chain]:
        pixels = service.filter(pixels, [one], **options).pixels
    assert np.array_equal(at_once, pixels)


@pytest.mark.parametrize("sigma, bands, alpha", [(8.5, 3, False), (100.0, 1, False), *(
    pytest.param(*case, marks=pytest.mark.slow) for case in (
        (41.0, 4, True), (8.5, 4, True), (20.0, 1, False), (70.0, 3, False), (100.0, 4, True)))])
def test_large_sigma(service, sigma, bands, alpha):
    """By every stride (docs/architecture.md), also on flat parts, where all of the error shows."""
    width, height = (131, 97) if sigma < 40 else (63, 47)
    for kind, border in zip(oracle.TYPES, ("reflect", "constant", "replicate")):
        pixels = random_pixels(seed_of(sigma, kind), width, height, bands, kind, alpha)
        agrees(service, pixels, [("gaussian", {"sigma": sigma})], border, alpha=alpha)
        pixels[:height * 2 // 3, width // 4:, :bands - alpha] = 0
        pixels[:, :width // 8, :bands - alpha] = oracle.FULL_SCALE[kind]
        agrees(service, pixels, [("gaussian", {"sigma": sigma})], border, alpha=alpha)
        agrees(service, pixels, [("unsharp", {"sigma": sigma, "amount": 2.0})], border,
               alpha=alpha)


def test_large_sigma_cropped(service):
    for sigma in (8.2, 21.0):
        pixels = random_pixels(seed_of(sigma), 261, 240, 2, "u16")
        agrees(service, pixels, [("gaussian", {"sigma": sigma})], "crop")
        agrees(service, pixels, [("box", {}), ("gaussian", {"sigma": sigma})], "wrap")


def test_large_sigma_keeps_constants(service):
    for kind, value in (("u8", 37), ("u16", 12345), ("f32", 0.3)):
        pixels = np.full((70, 90, 1), value, oracle.TYPES[kind])
        got = service.filter(pixels, [("gaussian", {"sigma": 33.0})]).pixels
        assert np.allclose(got, pixels, rtol=1e-6, atol=0)
