"""variant=: kernels by their names, against the oracle and the reference; others are refused."""
import numpy as np
import pytest

import oracle
from fixtures import some
from pixels import random_pixels, seed_of
from service import poll

# A filter of each kind of operation that kernels do, with an image: kernels are compiled for each.
# (../kernels shows that they are right for all types and bands.)
GAUSSIAN = ("gaussian", {"size": 5})
CASES = [(GAUSSIAN, "u8", 3),
         (("convolve", {"kernel": [[1, -2, 3], [4, 5, -6], [-7, 8, 9]]}), "f32", 4),
         (("sobel", {}), "u8", 1), (("prewitt", {"output": "direction"}), "u16", 3),
         (("bilateral", {"radius": 2, "sigma_range": 0.3}), "u8", 4)]
# Large enough for all: some kernels want a vector of samples a row.
WIDTH, HEIGHT = 203, 57


@pytest.fixture(scope="module")
def service(launch_one):
    """On PoCL alone, whatever else the host has. No refusal is a fault, or tried again."""
    with launch_one("--codecs", "2") as own:
        yield own
        assert own.restarts() == own.total("convolved_tile_retries_total") == 0, own.tail()


def right(answer, pixels, filters, **options):
    oracle.check(answer.pixels, oracle.filtered(pixels, filters, **options))


QUICK = ["separable", "matrix", "gradient", "bilateral", "separable_packed", "matrix_wide",
         "conv_naive", "sobel_uchar"]
ONLY_NVIDIA = "separable_mma"


@pytest.fixture(scope="module")
def variants(service):
    return {v["name"]: v for v in service.get("/v1/kernels").json()["variants"]}


def done_by(service, name):
    """Returns the number of filters that a kernel does: these right, and others are refused."""
    done = 0
    for one, kind, bands in CASES:
        pixels = random_pixels(seed_of(name, kind, bands), WIDTH, HEIGHT, bands, kind)
        answer = service.filter_when_compiled(pixels, [one], variant=name, border="wrap", verify=1)
        if answer.status != 200:
            answer.refused(400, "bad-parameter", name, parameter="variant", value=name)
            continue
        done += 1
        right(answer, pixels, [one], border="wrap")
        assert name in answer.timing, (one, kind, bands, answer.timing)
        assert answer.headers["X-Verify-Mismatches"] == "0"
        assert int(answer.headers["X-Verify-Samples"]) == pixels.size
    return done


@pytest.mark.parametrize("name", [*QUICK, ONLY_NVIDIA])
def test_variant(service, name):
    assert bool(done_by(service, name)) == (name != ONLY_NVIDIA)


@pytest.mark.slow
def test_every_variant(service, variants):
    """(../kernels has GPUs' kernels run on CPUs, too; PoCL takes long to compile them.)"""
    done = {name for name in variants if done_by(service, name)}
    assert done > {*QUICK, "conv_image", "sep_tiled", "bilateral_unrolled"} and len(done) > 20, done


def test_all_are_listed(variants):
    for one in variants.values():
        assert one["origin"] in ("general", "special", "classic") and one["text"], one


@pytest.mark.parametrize("name, one, kind", [
    ("threshold_local_sums", ("threshold", {"method": "mean", "size": 9}), "u8"),
    ("threshold_local_wide", ("threshold", {"method": "gaussian", "size": 9, "offset": 0.03}), "u16"),
    ("unsharp_wide", ("unsharp", {"threshold": 0.1}), "f32"),
])
def test_comparison(service, name, one, kind):
    """A blur and the comparison with it, by one kernel, or by that of the blur."""
    pixels = random_pixels(seed_of(name), WIDTH, HEIGHT, 3, kind)
    for variant in (name, "separable_wide", "general"):
        answer = service.filter_when_compiled(pixels, [one], variant=variant, verify=1)
        right(answer, pixels, [one])
        assert (name in answer.timing) == (variant == name), answer.timing
        assert ("separable_wide" in answer.timing) == (variant == "separable_wide"), answer.timing
        assert answer.headers["X-Verify-Mismatches"] == "0"


HALF = np.float32(0.5)
JUST = [np.nextafter(HALF, np.float32(way)) for way in (0, 1)]


@pytest.mark.parametrize("name, one, row, wanted", some([
    *(("threshold_" + name, ("threshold", {"value": 0.4}), row, [0, 0, np.iinfo(row.dtype).max])
      for name, row in (("packed", np.uint8([101, 102, 103])), ("rows", np.uint16([26213, 26214, 26215])))),
    ("threshold_rows", ("threshold", {"value": 0.5}), np.float32([JUST[0], HALF, JUST[1]]), [0, 0, 1]),
    # A third of the one is their rounded mean: 25, 26, 26.
    ("threshold_local_sums", ("threshold", {"method": "mean", "size": 3, "offset": -0.2}),
     np.uint8([0, 76, 0, 0, 77, 0, 0, 78, 0]), [0, 0, 0, 0, 0, 0, 0, 255, 0]),
    ("curve_packed", ("levels", {"black": 0.2, "white": 0.6}), np.uint8([51, 53, 151, 153]), [0, 5, 250, 255]),
    ("lut_packed", ("lut", {"table": [[9, 7, 200]]}), np.uint8([0, 255]), [9, 200]),
    # The fifth of nine samples; the seventh where the sixth is as near.
    ("median_rows", ("median", {}), np.uint8([5, 5, 9]), [5, 5, 5]),
    ("rank", ("rank", {"percentile": 68.75}), np.uint8([5, 5, 9]), [9, 9, 9]),
    # The slope of a step of 51 is 204, as is 0.8.
    *(("canny_packed", ("canny", {"sigma": 0, "low": low, "high": 0.8}),
       np.uint8([0, 0, 0, 51, 51, 51, 0, 0, 0, 52, 52, 52]), [0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 255])
      for low in (0.4, 0.8))]), ids=str)
def test_equality(service, name, one, row, wanted):
    """A sample that equals a limit is not above it, and one that equals another may stand for it."""
    for variant in (name, "general", "reference"):
        answer = service.filter_when_compiled(np.tile(row, 60)[None, :, None], [one], variant=variant,
                                              border="wrap", verify=1)
        assert answer.status == 200, answer
        assert answer.pixels.ravel().tolist() == wanted * 60, variant
        assert answer.headers["X-Verify-Mismatches"] == "0"


@pytest.mark.parametrize("border", ["wrap", *(
    pytest.param(border, marks=pytest.mark.slow) for border in oracle.BORDERS if border != "wrap")])
def test_reference(service, variants, border):
    """By the processor alone: many tiles, a chain, every border, and no device in the answer.
    (test_results.py has it check all filters' results.)"""
    filters = [("gaussian", {"sigma": 1.4}), ("sobel", {})]
    pixels = random_pixels(3, 701, 503, 3, "u8")
    tiles = service.total("convolved_tiles_total")
    answer = service.filter(pixels, filters, variant="reference", border=border, verify=1)
    right(answer, pixels, filters, border=border)
    assert answer.timing["reference"] > 0 and "X-Device" not in answer.headers
    assert not answer.timing.keys() & variants.keys()
    assert answer.headers["X-Verify-Samples"] == "0", "it cannot check itself"
    assert service.total("convolved_tiles_total") - tiles <= 2, "a canary at most"


@pytest.mark.slow
def test_reference_can_be_given_up(launch_one):
    """A client's time ends, though one thread works on and on; the next is served."""
    pixels = random_pixels(5, 3000, 2000, 4, "f32")
    with launch_one("--codecs", "1", "--job-timeout", "2") as own:
        answer = own.filter(pixels, [("bilateral", {"radius": 16})], variant="reference")
        assert answer.status == 504, answer
        poll(own.works, what="a codec worker")  # each try has 2 s


@pytest.mark.parametrize("name, filters, width, bands, options, says", [
    # Found by the front: no name of one, another filter, a window that is too large.
    ("Separable", [GAUSSIAN], 200, 1, {}, "general, reference, separable, "),
    ("gradient", [GAUSSIAN], 200, 1, {}, "it supports sobel"),
    ("separable_wide", [("box", {"size": 101})], 200, 1, {}, "radius"),
    # By the codec worker: the image's type and bands.
    ("conv_image", [("box", {})], 200, 3, {}, "bands"),
    ("separable_packed", [("unsharp", {})], 200, 3, {}, "f32"),
    # By the device worker, in words that say the requirement and the place.
    ("separable_mma", [GAUSSIAN], 200, 3, {}, "NVIDIA GPU"),
    ("separable_packed", [("convolve", {"kernel": [[1, -3, 1]] * 3})], 200, 3, {}, "weights of a mean"),
    ("separable_packed", [GAUSSIAN], 9, 1, {}, "rows of 64 samples"),
    ("separable_sums", [GAUSSIAN], 200, 3, {}, "equal weights"),
    ("unsharp_wide", [("unsharp", {})], 200, 4, {"alpha": 1}, "not alpha-weighted"),
    ("gradient_packed", [("sobel", {"output": "x"})], 200, 1, {}, "output=magnitude"),
    ("bilateral_rows", [("bilateral", {})], 200, 3, {"channels": "red"}, "all bands"),
    ("sobel_uchar", [("scharr", {})], 200, 1, {}, "sobel's magnitude"),
    ("conv_naive", [("box", {})], 200, 3, {"channels": "red"}, "all bands"),
    ("conv_image", [("gaussian", {"size": 5})], 200, 4, {}, "radius"),
])
def test_refused(service, name, filters, width, bands, options, says):
    """Never by another kernel instead, and at once."""
    pixels = random_pixels(7, width, 40, bands, "u8")
    answer = service.filter(pixels, filters, variant=name, **options)
    answer.refused(400, "bad-parameter", says, parameter="variant", value=name)
    assert service.filter(pixels, filters, **options).status == 200


@pytest.mark.parametrize("name", ["separable_packed", "gradient", *(
    pytest.param(name, marks=pytest.mark.slow) for name in ("sep_tiled", "gradient_packed"))])
def test_for_a_part_of_a_chain(service, variants, name):
    """The variant does its part of a chain, other kernels the rest."""
    filters = [GAUSSIAN, ("sobel", {})]
    pixels = random_pixels(8, WIDTH, HEIGHT, 3, "u8")
    answer = service.filter_when_compiled(pixels, filters, variant=name)
    right(answer, pixels, filters)
    assert name in answer.timing and len(answer.timing.keys() & variants.keys()) == 2, answer.timing
