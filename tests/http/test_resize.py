"""Changes of size against the oracle, Pillow, and the same filters one request after another."""
import io
import itertools

import numpy as np
import pytest
from PIL import Image, ImageSequence

import imagefiles
import oracle
from fixtures import some
from pixels import BANDS, BORDER_VALUES, pairwise, random_pixels

HALF = ("resize", {"width": "50%"})
BORDERS = [border for border in oracle.BORDERS if border != "crop"]
SIZES = [
    {"width": 61}, {"height": "33%"}, {"width": 300, "enlarge": 1}, {"width": 40, "height": 90, "fit": "fill"},
    {"width": 60, "height": 60, "fit": "cover", "gravity": "northeast"},
    {"width": "150%", "height": 33, "fit": "cover", "enlarge": 1}, {"width": "2%", "height": "3%", "fit": "fill"},
    {"width": 90, "height": 45, "fit": "cover", "gravity": "south"}]
BEFORE, AFTER = ("gaussian", {"sigma": 1.2}), ("convolve", {"kernel": np.arange(35).reshape(7, 5)})
CHAINS = [[], [BEFORE], [AFTER], [BEFORE, AFTER]]


def chain_of(call, around):
    return [*(c for c in around if c is BEFORE), call, *(c for c in around if c is AFTER)]


# Sizes and chains meet the others by turns.
CASES = [(i % len(SIZES), *others, i // 2 % len(CHAINS)) for i, others in enumerate(pairwise(
    list(oracle.KERNELS), BORDERS, list(oracle.TYPES), BANDS))]


@pytest.mark.parametrize("size, kernel, border, kind, image, around", [
    case if i % 3 == 0 else pytest.param(*case, marks=pytest.mark.slow) for i, case in enumerate(CASES)])
def test_right(service, size, kernel, border, kind, image, around):
    """Alone and between filters, of any pixels; also by the service's own comparison."""
    bands, alpha = image
    pixels = random_pixels(size, 131, 97, bands, kind, alpha)
    filters = chain_of(("resize", {**SIZES[size], "kernel": kernel}), CHAINS[around])
    value = BORDER_VALUES[kind] if border == "constant" else None
    if border == "wrap" and SIZES[size].get("fit") == "cover":
        filters.remove(AFTER) if AFTER in filters else None  # see test_refused
    answer = service.filter(pixels, filters, border=border, border_value=value, alpha=int(alpha), verify=1)
    oracle.check(answer.pixels, oracle.filtered(pixels, filters, border, value, alpha))
    assert answer.headers["X-Verify-Mismatches"] == "0"


@pytest.mark.parametrize("width, height", [
    (1, 1), (1700, 2), *(pytest.param(*size, marks=pytest.mark.slow) for size in ((1, 90), (90, 1), (2, 3), (3, 700)))])
@pytest.mark.parametrize("size", [{"width": "40%", "height": "30%", "fit": "fill"},
                                  {"width": "700%", "height": "300%", "fit": "fill", "enlarge": 1}], ids=["smaller", "larger"])
def test_narrow(service, width, height, size):
    pixels = random_pixels(1, width, height, 3, "u8")
    filters = [("resize", size), ("box", {"size": 9})]
    for border in BORDERS:
        oracle.check(service.filter(pixels, filters, border=border).pixels, oracle.filtered(pixels, filters, border))


@pytest.mark.parametrize("filters, border", some(itertools.product([
    [HALF], [BEFORE, ("resize", {"width": "7%"}), AFTER], [("resize", {"width": "230%", "enlarge": 1}), ("box", {"size": 21})],
    [("box", {"size": 41}), ("resize", {"width": 200, "height": 90, "fit": "cover"}), ("median", {})]], BORDERS), 3))
def test_arenas(launch_small, service, filters, border):
    """In tiles of any height, also such that share rows."""
    pixels = random_pixels(3, 503, 399, 3, "u8")
    if border == "wrap" and len(filters) > 1 and "fit" in filters[1][1]:
        filters = filters[:2]  # see test_refused
    whole, cut = (s.filter(pixels, filters, border=border, variant="general") for s in (service, launch_small))
    oracle.check(cut.pixels, oracle.filtered(pixels, filters, border))
    assert np.array_equal(whole.pixels, cut.pixels)


@pytest.fixture(scope="module")
def launch_small(launch):
    with launch("--arena-size", "512K", "--codecs", "2") as service:
        yield service


@pytest.mark.parametrize("filters", [
    [("gaussian", {"sigma": 12.0}), HALF, ("unsharp", {})], [("pixelate", {"size": 7}), HALF, ("pixelate", {"size": 5})],
    [("equalize", {}), HALF, ("equalize", {})], [HALF, ("equalize", {"method": "clahe"}), ("box", {})], [HALF, ("canny", {"low": 0.1, "high": 0.3})],
    [("canny", {"low": 0.1, "high": 0.3}), HALF], [("threshold", {"method": "otsu"}), HALF, ("median", {"radius": 3})],
    [("resize", {"width": 100, "height": 30, "fit": "cover"}), ("gaussian", {"sigma": 9.0})],
    [("grayscale", {}), ("resize", {"height": "190%", "enlarge": 1}), ("sobel", {"output": "direction"})]],
    ids=lambda filters: "-".join(name for name, _ in filters))
def test_one_by_one(service, filters):
    """A chain does what its filters do one after another: those after the resize see its result."""
    pixels = random_pixels(5, 301, 203, 3, "u8")
    apart = pixels
    for one in filters:
        apart = service.filter(apart, [one], variant="general").pixels
    assert np.array_equal(service.filter(pixels, filters, variant="general").pixels, apart)


@pytest.mark.parametrize("kernel, peer", [
    ("lanczos3", Image.LANCZOS), ("catmullrom", Image.BICUBIC), ("triangle", Image.BILINEAR), ("box", Image.BOX),
    ("nearest", Image.NEAREST)])
@pytest.mark.parametrize("width", [33, 151, 337])
def test_like_pillow(service, kernel, peer, width):
    """Whose floats are not rounded in between; it leaves out what is outside the image."""
    pixels = random_pixels(2, 201, 161, 1, "u8")
    got = service.filter(pixels, [("resize", {"width": width, "enlarge": 1, "kernel": kernel})]).pixels[:, :, 0]
    wanted = np.asarray(Image.fromarray(pixels[:, :, 0].astype(np.float32)).resize(got.shape[::-1], peer))
    edge = 4 * max(1, got.shape[1] // 201)
    inner = np.s_[edge:-edge, edge:-edge]
    assert np.abs(got.astype(float) - np.clip(wanted, 0, 255))[inner].max() <= 0.51


@pytest.mark.parametrize("given, expected", [
    ({"width": 100}, (100, 75)), ({"height": 100}, (133, 100)), ({"width": 100, "height": 100}, (100, 75)),
    ({"width": 1000}, (400, 300)), ({"width": 1000, "enlarge": 1}, (1000, 750)),
    ({"width": 100, "height": 100, "fit": "cover"}, (100, 100)), ({"width": 100, "height": 100, "fit": "fill"}, (100, 100)),
    ({"width": 100, "fit": "fill"}, (100, 300)), ({"width": 500, "height": 100, "fit": "cover"}, (400, 100)),
    ({"width": 500, "height": 100, "fit": "cover", "enlarge": 1}, (500, 100)),
    ({"width": "25%"}, (100, 75)), ({"width": "1%"}, (4, 3)), ({"width": 5000, "height": 2, "fit": "fill"}, None),
    ({"width": 3}, None), ({"width": 40001, "enlarge": 1}, None)])
def test_sizes(service, given, expected):
    answer = service.filter(np.zeros((300, 400, 1), np.uint8), [("resize", given)])
    if expected:
        assert answer.kind[1::-1] == expected[::-1] and answer.pixels.shape[:2] == expected[::-1]
    elif given["width"] == 5000:
        answer.refused(400, "bad-parameter", "ratio from 1/100 to 100", parameter="height")
    else:
        answer.refused(400, "bad-parameter", "ratio from 1/100 to 100", parameter="width")


@pytest.mark.parametrize("filters, options, status, slug, words", [
    ([HALF, BEFORE, HALF], {}, 400, "bad-parameter", "at most one resize"),
    ([HALF], {"border": "crop"}, 400, "bad-parameter", "another border"),
    ([HALF], {"channels": "luma"}, 400, "bad-parameter", "expected all for resize"),
    ([("resize", {"width": 9, "fit": "cover"})], {}, 400, "bad-parameter", "both sides"),
    ([("resize", {})], {}, 400, "bad-parameter", "width, height or both"),
    ([("resize", {"width": "10001%", "enlarge": 1})], {}, 400, "bad-parameter", "expected"),
    ([HALF], {"regions": "1,1,5,5"}, 400, "bad-parameter", "there is none"),
    ([BEFORE, HALF], {"regions": "1,1,5,5", "border": "wrap"}, 400, "bad-parameter", "another border"),
    ([("resize", {"width": 9, "height": 9, "fit": "cover"}), AFTER], {"border": "wrap"}, 400, "bad-parameter", "another border"),
    ([("resize", {"width": 2000, "enlarge": 1})], {"target": (0, 0)}, 400, "bad-parameter", "no larger")])
def test_refused(service, filters, options, status, slug, words):
    pixels = random_pixels(1, 60, 40, 3, "u8")
    assert words in service.filter(pixels, filters, **options).refused(status, slug)["detail"]


def test_too_many_pixels(launch):
    """Results are bounded as images are."""
    with launch("--max-pixels", "100000", "--codecs", "1") as service:
        pixels = np.zeros((100, 200, 1), np.uint8)
        service.filter(pixels, [("resize", {"width": 600, "enlarge": 1})]).refused(422, "too-many-pixels", "600x300", "100000")
        assert service.filter(pixels, [("resize", {"width": 400, "enlarge": 1})]).status == 200


def test_parts(service):
    """A ROI is what is resized, and of what percentages are; a target is where the result comes."""
    pixels = random_pixels(4, 200, 150, 3, "u8")
    roi = (30, 20, 101, 61)
    filters = [("resize", {"width": "50%"}), ("box", {"size": 5})]
    part = np.ascontiguousarray(pixels[20:81, 30:131])
    small = service.filter(part, filters).pixels
    assert np.array_equal(service.filter(pixels, filters, roi=roi).pixels, small)
    whole = pixels.copy()
    whole[7:7 + small.shape[0], 9:9 + small.shape[1]] = small
    assert np.array_equal(service.filter(pixels, filters, roi=roi, target=(9, 7)).pixels, whole)


def test_regions(service):
    """They are of the image, and bound the filters before."""
    pixels = random_pixels(6, 200, 150, 4, "u8", True)
    regions = "20,30,50,40;ellipse:100,60,80,70;polygon:80,9 150,20 90,50"
    before = [("pixelate", {"size": 9})]
    after = [HALF, ("sharpen", {})]
    hidden = service.filter(pixels, before, regions=regions, feather=6, alpha=1, variant="general").pixels
    answer = service.filter(pixels, before + after, regions=regions, feather=6, alpha=1, variant="general", verify=1)
    assert np.array_equal(answer.pixels, service.filter(hidden, after, alpha=1, variant="general").pixels)
    assert answer.headers["X-Verify-Mismatches"] == "0"


def test_luma(service):
    """Channels are for the filters before and after."""
    pixels = random_pixels(7, 150, 110, 3, "u8")
    between = service.post("/v1/chain?filters=resize=width=60&luma=gaussian=sigma=2&raw=150x110x3:u8&format=raw", pixels.tobytes())
    small = service.filter(pixels, [("resize", {"width": 60})]).pixels
    wanted = service.filter(small, [("gaussian", {"sigma": 2})], channels="luma").pixels
    assert np.abs(between.pixels.astype(int) - wanted).max() <= 1


def test_pages(service):
    """Each page is an image by itself."""
    pages = [random_pixels(i, 90, 70, 3, "u8") for i in range(5)]
    file = imagefiles.several([imagefiles.pil(page) for page in pages], "TIFF")
    answer = service.post("/v1/chain?filters=resize=width=41,box&pages=all", file)
    assert answer.status == 200, answer
    made = ImageSequence.Iterator(Image.open(io.BytesIO(answer.body)))
    for page, got in zip(pages, made, strict=True):
        oracle.check(np.asarray(got), oracle.filtered(page, [("resize", {"width": 41}), ("box", {})]))


@pytest.mark.slow
def test_hundredth(launch):
    """A wide image to a hundredth and back, in the memory of its arenas."""
    with launch("--codecs", "1") as service:
        row = random_pixels(1, 20000, 1, 1, "u8")
        png = imagefiles.write_png(np.repeat(row, 20000, axis=0))
        small = service.post("/v1/filters/resize?width=200", png)
        got = imagefiles.read_pil(small.body)[0]
        assert got.shape == (200, 200, 1) and (got == got[:1]).all()
        oracle.check(got[:1], oracle.filtered(row, [("resize", {"width": 200, "fit": "fill"})]))
        worker, = service.workers("codec")
        back = service.post("/v1/filters/resize?width=20000&enlarge=1&format=raw", small.body)
        assert back.kind[:2] == (20000, 20000)
        oracle.check(back.pixels[5000:5001, 300:600], oracle.filtered(got[:1], [
            ("resize", {"width": 20000, "fit": "fill", "enlarge": 1})]).each(lambda part: part[..., :, 300:600, :]))
        assert int(worker.read("status").split("VmRSS:")[1].split()[0]) < 300000, "kB"
