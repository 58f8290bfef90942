"""roi and target: parts, filtered as if they were images, and placed on that they are from."""
import numpy as np
import pytest

import imagefiles
import oracle
from fixtures import some
from pixels import BANDS, BORDER_VALUES, agrees, pairwise, random_pixels, seed_of, smooth
from service import target_of

GAUSSIAN = ("gaussian", {"sigma": 1.3})
CHAIN = [("box", {"size": 3}), ("sobel", {}), ("gaussian", {"size": 5})]

# Regions of an image of 61 by 43: each edge and corner, within, thin ones, one pixel, all.
ROIS = [(0, 0, 23, 17), (38, 26, 23, 17), (0, 11, 61, 9), (13, 0, 9, 43), (17, 13, 1, 1),
        (60, 42, 1, 1), (0, 42, 61, 1), (60, 0, 1, 43), (5, 3, 8, 30), (5, 3, 9, 9), (7, 5, 41, 33),
        (0, 0, 61, 43), None]
# Above and to the left of the part, over it by odd steps, below it; where it fits.
TARGETS = [None, (0, 0), (14, 9), (61, 43), (4, 4)]


@pytest.mark.parametrize("border, kind, image", some(pairwise(oracle.BORDERS, list(oracle.TYPES), BANDS)))
def test_regions(service, border, kind, image):
    """With crop the answer loses the halo inside the part; around its place the image stays."""
    bands, alpha = image
    pixels = random_pixels(seed_of(border, kind, bands), 61, 43, bands, kind, alpha)
    value = BORDER_VALUES[kind] if border == "constant" else None
    for i, roi in enumerate(ROIS):
        filters = [GAUSSIAN] if i % 3 else CHAIN
        width, height = (n - 8 * (border == "crop") for n in (roi or (0, 0, 61, 43))[2:])
        if width <= 0 or height <= 0:
            service.filter(pixels, filters, border=border, roi=roi).refused(422, "image-too-small")
            continue
        for target in TARGETS[i % 2::2]:
            inside = target and (min(target[0], 61 - width), min(target[1], 43 - height))
            agrees(service, pixels, filters, border, value, alpha, roi=roi, target=inside)


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


RGB, DEEP = smooth(211, 157, 3), random_pixels(6, 211, 157, 4, "u16", True)
FILES = {"jpeg": imagefiles.written(imagefiles.pil(RGB), "JPEG", quality=90),
         "jpeg-progressive": imagefiles.written(imagefiles.pil(RGB), "JPEG", quality=90, progressive=True),
         "png": imagefiles.write_png(RGB), "png-16-alpha": imagefiles.write_png(DEEP),
         "tiff-16-alpha": imagefiles.write_tiff(DEEP, alpha=True), "ppm": imagefiles.write_pnm(RGB),
         "pfm": imagefiles.write_pnm(random_pixels(8, 211, 157, 1, "f32"))}


def placed(service, name, form):
    """Returns a part of a file on the rest of it, by the same kernels each time."""
    target = target_of([GAUSSIAN], variant="general", roi=(11, 13, 101, 87), target=(97, 51), format=form)
    return service.post(target, FILES[name])


@pytest.mark.parametrize("name, read", [
    ("png", imagefiles.read_png), ("png-16-alpha", imagefiles.read_png), ("ppm", imagefiles.read_pnm),
    ("pfm", imagefiles.read_pnm),
    ("tiff-16-alpha", lambda body: imagefiles.read_vips(body, ".tif", np.uint16, 4))])
def test_answers(service, name, read):
    """A part and what is around it go out in the file's own format. (codec/round_trips.c: every way in.)"""
    raw, own = (placed(service, name, form) for form in ("raw", None))
    assert np.array_equal(read(own.body), raw.pixels)


@pytest.mark.parametrize("name", ["jpeg", "webp", "gif"])
def test_lossy_answers(service, name):
    raw, lossy = (placed(service, "jpeg", form) for form in ("raw", name))
    got = imagefiles.shown(lossy.body).astype(int)
    assert got.shape == raw.pixels.shape and np.abs(got - raw.pixels).mean() < 8


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
