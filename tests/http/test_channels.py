"""channels, luma and chroma: filters that change some samples of a pixel and keep the others."""
import numpy as np
import pytest
from PIL import Image

import imagefiles
import oracle
from pixels import agrees, pairwise, random_pixels, seed_of, smooth

GAUSSIAN = ("gaussian", {"sigma": 1.3})
BOX = ("box", {"size": 5})
SHARPEN = ("sharpen", {"amount": 2})
SOBEL = ("sobel", {})
OUTPUT_X = ("sobel", {"output": "x"})
UNSHARP = ("unsharp", {"sigma": 1.5, "amount": 2})
BILATERAL = ("bilateral", {"radius": 3, "sigma_range": 0.3})


SAMPLES = [("u8", "reflect101"), ("u8", "constant"), ("u8", "crop"), ("u16", "wrap"),
           ("u16", "crop"), ("f32", "replicate"), ("f32", "wrap"), ("f32", "constant")]


def sampled(rows):
    """Returns these parameters, of which every third row is always tried."""
    return [pytest.param(*row, marks=pytest.mark.slow if number % 3 else ())
            for number, row in enumerate(rows)]


@pytest.mark.parametrize("channels, filters, sample", sampled(pairwise(
    [("all", 3, False), ("all", 4, True), ("color", 3, False), ("color", 4, True),
     ("color", 2, True), ("color", 4, False), ("alpha", 4, True), ("alpha", 2, True),
     ("red", 3, False), ("red", 1, False), ("red", 4, True), ("green", 3, False),
     ("green", 4, True), ("blue", 3, False), ("blue", 4, True)],
    [[GAUSSIAN], [BOX, SHARPEN], [SOBEL], [UNSHARP], [BILATERAL]], SAMPLES)), ids=str)
def test_bands(service, channels, filters, sample):
    (channels, bands, alpha), (kind, border) = channels, sample
    pixels = random_pixels(seed_of(channels, bands, sample), 61, 43, bands, kind, alpha)
    agrees(service, pixels, filters, border, alpha=alpha, channels=channels)


def test_others_are_kept(service):
    """To the bit, whatever they are."""
    pixels = random_pixels(3, 50, 40, 3, "f32")
    pixels[::3, ::3, 1:] = np.nan
    got = service.filter(pixels, [GAUSSIAN], channels="red").pixels
    assert np.array_equal(got[:, :, 1:].view(np.uint32), pixels[:, :, 1:].view(np.uint32))
    assert np.isfinite(got[:, :, 0]).all() and not np.array_equal(got[:, :, 0], pixels[:, :, 0])


@pytest.mark.parametrize("channels, one, bands, sample", sampled(pairwise(
    ["luma", "chroma"], [GAUSSIAN, BOX, SHARPEN, SOBEL, OUTPUT_X, UNSHARP, BILATERAL], [3, 4],
    SAMPLES)), ids=str)
def test_luma_and_chroma(service, channels, one, bands, sample):
    """By channels= and by luma= or chroma=, which is the same; four bands are with alpha."""
    alpha, (kind, border) = bands == 4, sample
    pixels = random_pixels(seed_of(one, bands, sample), 61, 43, bands, kind, alpha)
    value = {"u8": (7, 70, 170), "u16": (40, 4000, 60000), "f32": (0.75, 0, 0.25)}[kind]
    value = value if border == "constant" else None
    forms = (([one], {"channels": channels}), ([], {channels: [one]}))
    for filters, more in forms:
        agrees(service, pixels, filters, border, value, alpha, **more)
    options = {"border": border, "border_value": value, "alpha": int(alpha), "variant": "general"}
    got, same = (service.filter(pixels, filters, **more, **options).body for filters, more in forms)
    assert got == same


@pytest.mark.parametrize("kind", oracle.TYPES)
@pytest.mark.parametrize("border", ["reflect", "wrap", "crop"])
def test_chains(service, border, kind):
    """Other filters for intensity and colours, after those of filters=, and unrounded."""
    pixels = random_pixels(seed_of(border, kind), 91, 67, 3, kind)
    for filters, luma, chroma in (([], [("gaussian", {"size": 5})], [("box", {"size": 3})]),
                                  ([SHARPEN], [BOX], [GAUSSIAN]),
                                  ([BOX, GAUSSIAN], [SHARPEN, BOX], [BOX])):
        agrees(service, pixels, filters, border, luma=luma, chroma=chroma)


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
    agrees(service, pixels, [BOX], channels="red", luma=[GAUSSIAN])  # for filters= only


RGB = imagefiles.write_png(smooth(21, 17, 3))
GREY = imagefiles.write_png(smooth(21, 17, 1))
INKS = imagefiles.written(Image.fromarray(smooth(21, 17, 4), "CMYK"), "JPEG")


@pytest.mark.parametrize("channels, file, says", [
    ("alpha", RGB, "with alpha"), ("alpha", GREY, "1 band"), ("green", GREY, "RGB"),
    ("luma", GREY, "RGB"), ("chroma", GREY, "RGB"), ("colour", RGB, "color"), ("", RGB, "luma"),
    ("red", INKS, "CMYK"), ("luma", INKS, "CMYK")])
def test_channels_refused(service, channels, file, says):
    for path in ("/v1/filters/box?", "/v1/chain?filters=box,sobel&"):
        service.post(f"{path}channels={channels}", file).refused(
            400, "bad-parameter", says, parameter="channels", value=channels)


def test_all_colours_of_cmyk(service):
    assert service.post("/v1/filters/box?channels=color", INKS).status == 200


@pytest.mark.parametrize("query, parameter", [
    ("chain?luma=", "luma"), ("chain?chroma=", "chroma"), ("chain?luma=box=3", "luma"),
    ("chain?luma=box=size=4", "size"), ("chain?chroma=" + ",".join(["box"] * 9), "chroma"),
    ("chain?filters=box,box,box,box,box&luma=box,box,box,box", "luma"),
    ("chain?channels=red", "channels"), ("chain?luma=box&channels=red", "channels"),
    ("chain?border=wrap", "filters"), ("filters/box?luma=box", "luma")])
def test_chains_refused(service, query, parameter):
    service.post(f"/v1/{query}", RGB).refused(400, "bad-parameter", parameter=parameter)


WEIGHS = [("gaussian", {"sigma": 2}), ("box", {"size": 5}), ("sharpen", {}), ("bilateral", {}),
          ("motion", {"length": 5}), ("pixelate", {"size": 6}), ("convolve", {"kernel": "1,2,4"})]
COMPARES = [("unsharp", {"sigma": 2}), ("threshold", {"method": "mean"})]
IGNORES = [("highpass", {"sigma": 3}), ("sobel", {}), ("laplacian", {}), ("dog", {}), ("log", {}),
           ("emboss", {}), ("median", {}), ("erode", {}), ("gamma", {}), ("invert", {}),
           ("equalize", {}), ("equalize", {"method": "clahe"}), ("canny", {"sigma": 0}), ("convolve", {"kernel": "1,0,-1"}),
           ("threshold", {})]


@pytest.mark.parametrize("one", WEIGHS + COMPARES + IGNORES, ids=str)
def test_alpha_and_channels(service, one):
    """Alpha as weight, alpha as a channel, and other channels are as docs/api.md has them."""
    pixels = random_pixels(5, 60, 40, 4, "u8", True)
    pixels[:, :25, 3], pixels[:, 40:, 3] = 0, 255
    other = pixels.copy()
    other[:, :25, :3] = random_pixels(6, 25, 40, 3, "u8")  # in places that nobody can see

    def done(image, channels):
        return service.filter(image, [one], channels=channels, alpha=1).pixels

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
