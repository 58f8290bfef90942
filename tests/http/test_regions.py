"""roi and target: parts, filtered as if they were images, and placed on that they are from."""
import io

import numpy as np
import pytest
from PIL import Image

import imagefiles
import oracle
from pixels import BANDS, BORDER_VALUES, agrees, pairwise, random_pixels, seed_of, smooth
from service import target_of

GAUSSIAN = ("gaussian", {"sigma": 1.3})
CHAIN = [("box", {"size": 3}), ("sobel", {}), ("gaussian", {"size": 5})]

# Regions of an image of 61 by 43: each edge and corner, within, thin ones, one pixel, all.
ROIS = [(0, 0, 23, 17), (38, 26, 23, 17), (0, 11, 61, 9), (13, 0, 9, 43), (17, 13, 1, 1),
        (60, 42, 1, 1), (0, 42, 61, 1), (60, 0, 1, 43), (7, 5, 41, 33), (0, 0, 61, 43), None]
# Above and to the left of the part, over it by odd steps, below it; where it fits.
TARGETS = [None, (0, 0), (14, 9), (61, 43)]


def fitting(target, width, height, pixels):
    """Returns the target moved to where a result of this size lies inside."""
    if target is None:
        return None
    return (min(target[0], pixels.shape[1] - width), min(target[1], pixels.shape[0] - height))


def size_of(roi, pixels):
    return (pixels.shape[1], pixels.shape[0]) if roi is None else roi[2:]


@pytest.mark.parametrize("border, kind, image", pairwise(
    [b for b in oracle.BORDERS if b != "crop"], list(oracle.TYPES), BANDS))
def test_regions(service, border, kind, image):
    bands, alpha = image
    pixels = random_pixels(seed_of(border, kind, bands), 61, 43, bands, kind, alpha)
    value = BORDER_VALUES[kind] if border == "constant" else None
    for i, roi in enumerate(ROIS):
        for target in TARGETS[i % 2::2]:
            agrees(service, pixels, [GAUSSIAN] if i % 3 else CHAIN, border, value, alpha,
                   roi=roi, target=fitting(target, *size_of(roi, pixels), pixels))


@pytest.mark.parametrize("kind", oracle.TYPES)
def test_crop(service, kind):
    """The answer loses the halo inside the part; placed at its place, the margin is the image's."""
    pixels = random_pixels(seed_of(kind), 61, 43, 3, kind)
    for roi in ((0, 0, 23, 17), (38, 26, 23, 17), (5, 3, 9, 9), None):
        width, height = (n - 8 for n in size_of(roi, pixels))
        for target in (*TARGETS, (4, 4)):
            agrees(service, pixels, [GAUSSIAN], "crop", roi=roi,
                   target=fitting(target, width, height, pixels))
    service.filter(pixels, [GAUSSIAN], border="crop", roi=(5, 3, 8, 30)).refused(
        422, "image-too-small")


@pytest.mark.parametrize("border", oracle.BORDERS)
def test_as_if_it_were_the_image(service, border):
    """To the byte, and whatever lies outside."""
    for kind, (bands, alpha) in (("u8", (3, False)), ("u16", (4, True)), ("f32", (1, False))):
        pixels = random_pixels(seed_of(border, kind), 203, 157, bands, kind, alpha)
        x, y, width, height = 31, 47, 99, 83
        part = pixels[y:y + height, x:x + width]
        options = {"border": border, "alpha": 1 if alpha else None, "variant": "general"}
        alone = service.filter(part, CHAIN, **options).body
        assert service.filter(pixels, CHAIN, roi=(x, y, width, height), **options).body == alone
        other = np.full_like(pixels, np.nan if kind == "f32" else 1)
        other[y:y + height, x:x + width] = part
        assert service.filter(other, CHAIN, roi=(x, y, width, height), **options).body == alone


def test_rest_is_kept(service):
    """To the bit: not a number, colours under alpha 0, and all."""
    pixels = random_pixels(3, 50, 40, 4, "f32", True)
    pixels[:5] = np.nan
    pixels[:, :3] = np.inf
    got = service.filter(pixels, [GAUSSIAN], alpha=1, roi=(20, 20, 10, 10), target=(11, 7)).pixels
    inside = np.zeros((40, 50), bool)
    inside[7:17, 11:21] = True
    assert np.array_equal(got[~inside].view(np.uint32), pixels[~inside].view(np.uint32))
    assert np.isfinite(got[inside]).all()


def files():
    rgb, rgba = smooth(211, 157, 3), random_pixels(5, 211, 157, 4, "u8", True)
    pil, written = imagefiles.pil, imagefiles.written
    deep = random_pixels(6, 211, 157, 4, "u16", True)
    return {
        "jpeg": written(pil(rgb), "JPEG", quality=90),
        "jpeg-progressive": written(pil(rgb), "JPEG", quality=90, progressive=True),
        "jpeg-gray": written(pil(rgb[:, :, :1]), "JPEG"),
        "jpeg-cmyk": written(Image.fromarray(rgba, "CMYK"), "JPEG"),
        "jpeg-turned": written(pil(rgb), "JPEG", exif=imagefiles.exif({0x0112: 6})),
        "jpeg-mirrored": written(pil(rgb), "JPEG", exif=imagefiles.exif({0x0112: 2})),
        "png": imagefiles.write_png(rgb), "png-alpha": imagefiles.write_png(rgba),
        "png-16": imagefiles.write_png(deep[:, :, :3]), "png-16-alpha": imagefiles.write_png(deep),
        "webp": written(pil(rgba), "WEBP", lossless=True), "gif": written(pil(rgb), "GIF"),
        "tiff": written(pil(rgb), "TIFF", compression="tiff_lzw"),
        "tiff-16": imagefiles.write_tiff(deep, alpha=True),
        "tiff-float": imagefiles.write_tiff(random_pixels(7, 211, 157, 3, "f32")),
        "ppm": imagefiles.write_pnm(rgb), "pgm-16": imagefiles.write_pnm(deep[:, :, :1]),
        "pfm": imagefiles.write_pnm(random_pixels(8, 211, 157, 1, "f32")),
    }


FILES = files()
HAS_ALPHA = {"png-alpha", "png-16-alpha", "webp", "tiff-16"}
READERS = {**dict.fromkeys(("png", "png-alpha", "png-16", "png-16-alpha"), imagefiles.read_png),
           **dict.fromkeys(("ppm", "pgm-16", "pfm"), imagefiles.read_pnm),
           "tiff-16": lambda body: imagefiles.read_vips(body, ".tif", np.uint16, 4),
           "tiff-float": lambda body: imagefiles.read_vips(body, ".tif", np.float32, 3)}


def untouched(service, file):
    """Returns the decoded pixels, also under alpha 0: of two answers, each with one filtered."""
    first, second = (service.identity(file, roi=f"{x},0,1,1", target=f"{x},0", format="raw").pixels
                     for x in (0, 1))
    whole = first.copy()
    whole[0, 0] = second[0, 0]
    return whole


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FILES)
def test_files(service, name, step):
    """Every way to decode, from the top, the middle and the bottom; on every way out."""
    whole = untouched(service, FILES[name])
    alpha = name in HAS_ALPHA or (name == "gif" and whole.shape[2] == 4)
    height, width = whole.shape[:2]
    rois = [(0, 0, 51, 37), (61, 41, 77, 53), (width - 51, height - 37, 51, 37), None]
    for roi, target, border in pairwise(rois, [None, (3, 1), (width, height)],
                                        ["wrap", "reflect101", "crop"])[::step]:
        less = 8 if border == "crop" else 0
        at = fitting(target, *(n - less for n in size_of(roi, whole)), whole)
        options = {"border": border, "roi": roi, "target": at}
        text = {k: v for k, v in options.items() if v is not None}
        pixels = service.post(target_with(text, format="raw"), FILES[name]).pixels
        oracle.check(pixels, oracle.filtered(whole, [GAUSSIAN], alpha=alpha, **options))
        same = service.post(target_with(text), FILES[name])
        assert same.status == 200 and same.kind[1::-1] == pixels.shape[:2], same
        if name in READERS:
            assert np.array_equal(READERS[name](same.body), pixels)


def target_with(options, **more):
    """By the same kernels each time, so that answers can be compared."""
    return target_of([GAUSSIAN], variant="general", **options, **more)


def test_lossy_answers(service):
    options = {"roi": (11, 13, 101, 87), "target": (97, 51)}
    raw = service.post(target_with(options, format="raw"), FILES["jpeg"]).pixels
    for name in ("jpeg", "webp", "gif"):
        answer = service.post(target_with(options, format=name), FILES["jpeg"])
        got = np.asarray(Image.open(io.BytesIO(answer.body)).convert("RGB")).astype(int)
        assert got.shape == raw.shape and np.abs(got - raw).mean() < 8, name


@pytest.mark.parametrize("query, parameter, says", [
    ("roi=", "roi", "x,y,width,height"), ("roi=1,2,3", "roi", "x,y"), ("roi=1,2,0,4", "roi", "1"),
    ("roi=-1,2,3,4", "roi", "x,y"), ("roi=1,2,3,4,5", "roi", "x,y"), ("roi=a,b,c,d", "roi", "x,y"),
    ("target=5", "target", "x,y"), ("target=5,-1", "target", "x,y"), ("target=", "target", "x,y"),
    ("roi=200,0,12,1", "roi", "211x157"), ("roi=0,157,1,1", "roi", "211x157"),
    ("roi=0,0,212,157", "roi", "211x157"), ("roi=9999999,9999999,1,1", "roi", "211x157"),
    ("target=1,0", "target", "x is at most 0"), ("target=0,1", "target", "y at most 0"),
    ("roi=0,0,11,57&target=201,0", "target", "x is at most 200 and y at most 100"),
    ("roi=0,0,11,57&target=0,101", "target", "11x57"),
    ("border=crop&target=3,0", "target", "x is at most 2"),
    ("roi=1,2,3,4&roi=1,2,3,4", "roi", "more than once"),
])
def test_refused(service, query, parameter, says):
    for name in ("png", "jpeg-progressive", "ppm"):
        answer = service.post(f"/v1/filters/box?{query}", FILES[name])
        problem = answer.refused(400, "bad-parameter", says, parameter=parameter)
        assert f"{parameter}={problem['value']}" in query


def test_damage_below_the_roi(service):
    """Rows that nobody needs are not decoded; those of the background are."""
    file = FILES["png"][:len(FILES["png"]) * 3 // 4]
    assert service.post("/v1/filters/box?roi=0,0,211,40", file).status == 200
    service.post("/v1/filters/box?roi=0,0,211,40&target=0,0", file).refused(422, "undecodable")
    service.post("/v1/filters/box?roi=0,130,211,20", file).refused(422, "undecodable")
