"""channels, luma and chroma: filters that change some samples of a pixel and keep the others; and
variant, which kernel does it."""
import numpy as np
import pytest
from PIL import Image

import imagefiles
import oracle
from pixels import agrees, pairwise, random_pixels, seed_of, smooth
from service import target_of

GAUSSIAN = ("gaussian", {"sigma": 1.3})
BOX = ("box", {"size": 5})
SHARPEN = ("sharpen", {"amount": 2})
SOBEL = ("sobel", {})
OUTPUT_X = ("sobel", {"output": "x"})
UNSHARP = ("unsharp", {"sigma": 1.5, "amount": 2})
BILATERAL = ("bilateral", {"radius": 3, "sigma_range": 0.3})


def samples(*things):
    """Yields each type with a border rule or two."""
    for kind, borders in (("u8", ("reflect101", "constant", "crop")), ("u16", ("wrap", "crop")),
                          ("f32", ("replicate", "wrap", "constant"))):
        for border in borders:
            yield kind, border, seed_of(kind, border, *things)


@pytest.mark.parametrize("filters", [[GAUSSIAN], [BOX, SHARPEN], [SOBEL], [UNSHARP], [BILATERAL]],
                         ids=lambda filters: "-".join(name for name, _ in filters))
@pytest.mark.parametrize("channels, bands, alpha", [
    ("all", 3, False), ("all", 4, True), ("color", 3, False), ("color", 4, True),
    ("color", 2, True), ("color", 4, False), ("alpha", 4, True), ("alpha", 2, True),
    ("red", 3, False), ("red", 1, False), ("red", 4, True), ("green", 3, False),
    ("green", 4, True), ("blue", 3, False), ("blue", 4, True),
])
def test_bands(service, channels, bands, alpha, filters):
    for kind, border, seed in samples(channels, bands):
        pixels = random_pixels(seed, 61, 43, bands, kind, alpha)
        agrees(service, pixels, filters, border, alpha=alpha, channels=channels)


def test_others_are_kept(service):
    """To the bit, whatever they are."""
    pixels = random_pixels(3, 50, 40, 3, "f32")
    pixels[::3, ::3, 1:] = np.nan
    got = service.filter(pixels, [GAUSSIAN], channels="red").pixels
    assert np.array_equal(got[:, :, 1:].view(np.uint32), pixels[:, :, 1:].view(np.uint32))
    assert np.isfinite(got[:, :, 0]).all() and not np.array_equal(got[:, :, 0], pixels[:, :, 0])


@pytest.mark.parametrize("channels, one, bands", pairwise(
    ["luma", "chroma"], [GAUSSIAN, BOX, SHARPEN, SOBEL, OUTPUT_X, UNSHARP, BILATERAL], [3, 4]), ids=str)
def test_luma_and_chroma(service, channels, one, bands):
    """By channels= and by luma= or chroma=, which is the same; four bands are with alpha."""
    alpha = bands == 4
    for kind, border, seed in samples(channels, one, bands):
        pixels = random_pixels(seed, 61, 43, bands, kind, alpha)
        value = {"u8": (7, 70, 170), "u16": (40, 4000, 60000), "f32": (0.75, 0, 0.25)}[kind]
        value = value if border == "constant" else None
        agrees(service, pixels, [one], border, value, alpha, channels=channels)
        agrees(service, pixels, [], border, value, alpha, **{channels: [one]})
        options = {"border": border, "border_value": value, "alpha": 1 if alpha else None,
                   "variant": "general"}
        got, same = (service.filter(pixels, filters, **more, **options).body for filters, more in
                     (([one], {"channels": channels}), ([], {channels: [one]})))
        assert got == same


@pytest.mark.parametrize("kind", oracle.TYPES)
@pytest.mark.parametrize("border", ["reflect", "wrap", "crop"])
def test_chains(service, border, kind):
    """5x5 on the intensity, 3x3 on the colours; after the filters of filters=. Nothing is rounded
    between them."""
    pixels = random_pixels(seed_of(border, kind), 91, 67, 3, kind)
    for filters, luma, chroma in (([], [("gaussian", {"size": 5})], [("box", {"size": 3})]),
                                  ([SHARPEN], [BOX], [GAUSSIAN]),
                                  ([BOX, GAUSSIAN], [SHARPEN, BOX], [BOX])):
        agrees(service, pixels, filters, border, luma=luma, chroma=chroma)


@pytest.mark.parametrize("border", oracle.BORDERS)
def test_chain_is_its_parts_in_turn(service, border):
    """But for rounding: luma and chroma become colours again only once."""
    pixels = random_pixels(seed_of(border), 203, 157, 3, "u8")
    at_once = service.filter(pixels, [BOX], border=border, luma=[GAUSSIAN], chroma=[BOX]).pixels
    for filters, channels in (([BOX], None), ([GAUSSIAN], "luma"), ([BOX], "chroma")):
        pixels = service.filter(pixels, filters, border=border, channels=channels).pixels
    assert at_once.shape == pixels.shape
    assert np.abs(at_once.astype(int) - pixels).max() <= 2


def test_channels_leave_luma_alone(service):
    """channels= is for filters= only."""
    pixels = random_pixels(4, 61, 43, 3, "u8")
    agrees(service, pixels, [BOX], channels="red", luma=[GAUSSIAN])


def test_luma_of_grey_colours(service):
    """Without colour, none comes of it, and chroma has nothing to do."""
    grey = np.repeat(random_pixels(5, 61, 43, 1, "u8"), 3, axis=2)
    got = service.filter(grey, [GAUSSIAN], channels="luma").pixels
    assert (got == got[:, :, :1]).all()
    oracle.check(got, oracle.filtered(grey, [GAUSSIAN]))
    assert np.array_equal(service.filter(grey, [GAUSSIAN], channels="chroma").pixels, grey)


def test_with_roi_and_target(service):
    pixels = random_pixels(6, 91, 67, 3, "u8")
    for channels in ("blue", "luma", "chroma"):
        agrees(service, pixels, [GAUSSIAN], "wrap", channels=channels,
               roi=(11, 13, 41, 29), target=(49, 3))


# Refusals -----------------------------------------------------------------------------------------

RGB = imagefiles.write_png(smooth(21, 17, 3))
GREY = imagefiles.write_png(smooth(21, 17, 1))


@pytest.mark.parametrize("channels, file, says", [
    ("alpha", RGB, "with alpha"), ("alpha", GREY, "1 band"), ("green", GREY, "RGB"),
    ("luma", GREY, "RGB"), ("chroma", GREY, "RGB"), ("colour", RGB, "color"), ("", RGB, "luma"),
])
def test_channels_refused(service, channels, file, says):
    for path in ("/v1/filters/box?", "/v1/chain?filters=box,sobel&"):
        answer = service.post(f"{path}channels={channels}", file)
        problem = answer.refused(400, "bad-parameter")
        assert problem["parameter"] == "channels" and problem["value"] == channels
        assert says in problem["detail"], problem


def test_cmyk_has_no_luma(service):
    body = imagefiles.written(Image.fromarray(smooth(21, 17, 4), "CMYK"), "JPEG")
    for channels in ("red", "luma", "blue"):
        problem = service.post(f"/v1/filters/box?channels={channels}", body).refused(
            400, "bad-parameter")
        assert "CMYK" in problem["detail"]
    assert service.post("/v1/filters/box?channels=color", body).status == 200


@pytest.mark.parametrize("query, parameter", [
    ("luma=", "luma"), ("chroma=", "chroma"), ("luma=box=3", "luma"), ("luma=boxx", "filter"),
    ("luma=box=size=4", "size"), ("chroma=" + ",".join(["box"] * 9), "chroma"),
    ("filters=box,box,box,box,box&luma=box,box,box,box", "luma"), ("channels=red", "channels"),
    ("luma=box&channels=red", "channels"), ("border=wrap", "filters"),
])
def test_chains_refused(service, query, parameter):
    answer = service.post(f"/v1/chain?{query}", RGB)
    problem = answer.refused(404 if parameter == "filter" else 400,
                             "unknown-filter" if parameter == "filter" else "bad-parameter")
    assert problem["parameter"] == parameter, problem


def test_luma_is_for_chains(service):
    problem = service.post("/v1/filters/box?luma=box", RGB).refused(400, "bad-parameter")
    assert problem["parameter"] == "luma"


@pytest.mark.parametrize("path, variant, says", [
    ("/v1/filters/gaussian?", "fast", "for gaussian, expected general, reference, separable, "),
    ("/v1/filters/sobel?", "", "for sobel, expected general, reference, gradient"),
    ("/v1/filters/sobel?", "extend", "gradient"),
    ("/v1/filters/gaussian?", "gradient", "it supports sobel"),
    ("/v1/chain?filters=sobel,gaussian&", "fast", "for sobel"),
    ("/v1/filters/gaussian?sigma=11&size=67&", "matrix", "radius"),
])
def test_variant_refused(service, path, variant, says):
    problem = service.post(f"{path}variant={variant}", RGB).refused(400, "bad-parameter")
    assert problem["parameter"] == "variant" and problem["value"] == variant
    assert says in problem["detail"], problem


def test_variants_agree(service):
    """The same pixels from each that does the filter."""
    pixels = random_pixels(7, 91, 67, 3, "u8")
    expected = oracle.filtered(pixels, [GAUSSIAN])
    for variant in (None, "separable", "matrix", "reference"):
        answer = service.filter(pixels, [GAUSSIAN], variant=variant)
        oracle.check(answer.pixels, expected)
        if variant and variant != "reference":
            assert variant in answer.timing, answer.timing


def test_catalogue_lists_them(service):
    common = {row["name"]: row for row in service.get("/v1/filters").json()["common"]}
    for name in ("border", "roi", "target", "channels", "variant", "format", "luma", "chroma"):
        assert len(common[name]["text"]) > 10
    assert common["luma"]["chain_only"] and not common["roi"]["chain_only"]


def test_chain_target():
    """The helper's own: a chain of luma alone has no filters."""
    assert target_of([], luma=[BOX]) == "/v1/chain?luma=box=size=5"


WEIGHS = [("gaussian", {"sigma": 2}), ("box", {"size": 5}), ("sharpen", {}), ("motion", {"length": 5}),
          ("bilateral", {}), ("pixelate", {"size": 6}), ("convolve", {"kernel": "1,2,4"})]
COMPARES = [("unsharp", {"sigma": 2}), ("threshold", {"method": "mean"})]
IGNORES = [("highpass", {"sigma": 3}), ("sobel", {}), ("laplacian", {}), ("dog", {}), ("log", {}), ("emboss", {}),
           ("median", {}), ("erode", {}), ("gamma", {}), ("invert", {}), ("equalize", {}), ("canny", {"sigma": 0}),
           ("convolve", {"kernel": "1,0,-1"}), ("threshold", {})]


@pytest.mark.parametrize("one", WEIGHS + COMPARES + IGNORES, ids=str)
def test_alpha_and_channels(service, one):
    """Alpha as weight, alpha as a channel, and other channels are as docs/api.md has them."""
    pixels = random_pixels(5, 60, 40, 4, "u8", True)
    pixels[:, :25, 3], pixels[:, 40:, 3] = 0, 255
    other = pixels.copy()
    other[:, :25, :3] = random_pixels(6, 25, 40, 3, "u8")  # in places that nobody can see

    def done(image, channels, **options):
        answer = service.filter(image, [one], channels=channels, alpha=int(image.shape[2] == 4), **options)
        assert answer.status == 200, answer
        return answer.pixels

    everything, colour = done(pixels, "all"), done(pixels, "color")
    assert np.array_equal(everything[:, :, :3], colour[:, :, :3])
    assert np.array_equal(colour[:, :, 3], pixels[:, :, 3])
    assert np.array_equal(everything[:, :, 3], pixels[:, :, 3]) == (one not in WEIGHS)
    same = np.array_equal(done(other, "all")[:, 25:, :3], everything[:, 25:, :3])
    assert same == (one not in IGNORES or one[0] in ("gamma", "invert") or one == ("threshold", {}))
    if one in WEIGHS:
        assert not everything[:, :12].any()  # no window reaches to where alpha is
    red = done(pixels, "red")
    assert np.array_equal(red[:, :, 1:], pixels[:, :, 1:])
    alone = service.filter(np.ascontiguousarray(pixels[:, :, :1]), [one]).pixels
    assert np.abs(red[:, :, :1].astype(int) - alone).max() <= 1
    if one[0] in ("equalize", "canny"):  # they know no alpha
        service.filter(pixels, [one], channels="alpha", alpha=1).refused(400, "bad-parameter")
    else:
        assert np.array_equal(done(pixels, "alpha")[:, :, :3], pixels[:, :, :3])
