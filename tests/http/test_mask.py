"""Masks: a second image in the form says how much of the result each pixel gets."""
import io

import numpy as np
import pytest
from PIL import Image

import imagefiles
import oracle
from command import INVALID, run
from fixtures import some
from imagefiles import several, write_png, write_pnm, written
from jobs import HEAVY, MEDIUM, PREFER, submit
from pixels import random_pixels, seed_of, smooth
from service import ONE_DEVICE, multipart, raw_kind, target_of

BLUR = [("gaussian", {"sigma": 2})]


def masked(service, pixels, mask, filters=BLUR, **options):
    """Bare pixels through filters, with a mask, a file."""
    target = target_of(filters, raw=raw_kind(pixels), format="raw", **{"variant": "general", **options})
    answer = service.post_masked(np.ascontiguousarray(pixels).tobytes(), mask, target)
    assert answer.status == 200, answer
    return answer.pixels


def flat(mask):
    return mask[:, :, 0] if mask.shape[2] == 1 else mask


def patches(seed, width, height, bands=1, kind="u8"):
    """A mask with places of nothing and of everything, and all values between them."""
    mask = random_pixels(seed, width, height, bands, kind)
    if kind == "f32":
        mask = np.abs(mask)
    mask[height // 3:height // 2] = 0
    mask[:, : width // 4] = oracle.FULL_SCALE[kind]
    return mask


def agree(service, pixels, mask, body, filters=BLUR, alpha=False, invert=0, part=np.s_[:, :], **options):
    """By HTTP and by the oracle; part: of the image, to which the mask belongs."""
    more = {"alpha": int(alpha), **options}
    everywhere = service.filter(pixels, filters, variant="general", **more,
                                invert=(invert or None) if "regions" in more else None).pixels
    got = masked(service, pixels, body, filters, invert=invert or None, **more)
    height, width = pixels[part].shape[:2]
    weights = oracle.stretched(flat(mask), width, height)
    weights = 1 - weights if invert else weights
    oracle.check(got, oracle.blended(pixels[part], everywhere, weights, alpha))
    for end, right in ((0, pixels[part]), (1, everywhere)):
        assert got[weights == end].tobytes() == right[weights == end].tobytes()
    assert not np.array_equal(got, everywhere) and not np.array_equal(got, pixels[part])


@pytest.mark.parametrize("kind, bands, alpha, filters, size, shape, more", some([
    ("u8", 3, False, BLUR, (203, 2600), (1, "u8"), {}),
    ("u16", 2, True, [("pixelate", {"size": 9})], (203, 2600), (1, "u16"), {"invert": 1}),
    ("f32", 4, True, BLUR + [("sobel", {})], (67, 801), (3, "u8"), {"border": "reflect"}),
    ("u8", 4, True, [("box", {"size": 31})], (409, 5211), (1, "u16"), {"border": "wrap"}),
    ("u8", 1, False, [("unsharp", {}), ("box", {"size": 31})], (1, 1), (1, "u8"), {"invert": 1}),
    ("u8", 3, False, [("gaussian", {"sigma": 20})], (7, 5), (3, "u16"), {"channels": "luma"}),
    ("u16", 5, False, BLUR, (1, 77), (1, "u8"), {}), ("f32", 1, False, BLUR, (203, 50), (1, "f32"), {})]))
def test_exact(service, kind, bands, alpha, filters, size, shape, more):
    """The image has many tiles; masks are smaller and larger in each direction."""
    pixels = random_pixels(seed_of(kind, bands), 203, 2600, bands, kind, alpha)
    mask = patches(seed_of(size, kind), *size, *shape)
    if size == (1, 1):
        mask[:] = 99
    agree(service, pixels, mask, (write_pnm if shape[1] == "f32" else write_png)(mask), filters, alpha, **more)


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 1), (2, 2)])
def test_small_images(service, size):
    """Masks of other sizes than images that are one pixel high or wide, or both."""
    pixels = random_pixels(3, *size, 3, "u8")
    mask = np.full((9, 5, 1), 128, np.uint8)
    everywhere = service.filter(pixels, [("invert", {})]).pixels
    got = masked(service, pixels, write_png(mask), [("invert", {})])
    oracle.check(got, oracle.blended(pixels, everywhere, oracle.stretched(flat(mask), *size)))


@pytest.mark.parametrize("options, part", [
    ({"roi": "20,40,101,303"}, np.s_[40:343, 20:121]), ({"border": "crop"}, np.s_[:, :])], ids=["roi", "crop"])
def test_parts(service, options, part):
    """The mask covers what is filtered; crop then cuts it, too."""
    pixels, mask = random_pixels(8, 203, 700, 3, "u8"), patches(9, 203, 700)
    if "roi" in options:
        agree(service, pixels, mask, write_png(mask), part=part, **options)
        whole = masked(service, pixels, write_png(mask), target="5,7", **options)
        pixels[7:310, 5:106] = masked(service, pixels, write_png(mask), **options)
        assert np.array_equal(whole, pixels)
        return
    crop = service.filter(pixels, BLUR, variant="general", **options).pixels
    y, x = ((a - b) // 2 for a, b in zip(pixels.shape[:2], crop.shape))
    inner = np.s_[y:y + crop.shape[0], x:x + crop.shape[1]]
    oracle.check(masked(service, pixels, write_png(mask), **options),
                 oracle.blended(pixels[inner], crop, oracle.stretched(flat(mask), 203, 700)[inner]))


def test_tiles_of_any_shape(launch):
    """Strips of few rows, several tiles beside each other, and inputs that overlap."""
    pixels, mask = random_pixels(4, 900, 400, 3, "u8"), patches(5, 450, 900)
    with launch("--arena-size", "512K", "--codecs", "1") as small:
        for filters in (BLUR, [("median", {"radius": 7})], [("box", {"size": 75})]):
            agree(small, pixels, mask, write_png(mask), filters)


def test_same_by_all_ways(service):
    """The reference alone, verified tiles, and chains that look at the image first."""
    pixels, mask = smooth(203, 500, 3), write_png(patches(2, 203, 500))
    plain = masked(service, pixels, mask)
    assert np.array_equal(masked(service, pixels, mask, verify=1), plain)
    off = masked(service, pixels, mask, variant="reference").astype(int) - plain
    assert np.abs(off).max() <= 1 and np.count_nonzero(off) < off.size / 100
    for filters, more in (([("equalize", {})], {}), (BLUR + [("threshold", {"method": "otsu"})], {"channels": "luma"})):
        agree(service, pixels, patches(2, 203, 500), mask, filters, **more)
    luma = masked(service, pixels, mask, [], luma=BLUR, chroma=[("box", {"size": 9})])
    everywhere = service.filter(pixels, [], luma=BLUR, chroma=[("box", {"size": 9})], variant="general").pixels
    oracle.check(luma, oracle.blended(pixels, everywhere, oracle.stretched(flat(patches(2, 203, 500)), 203, 500)))


def test_regions(service):
    """Both weights count: each is inverted first, and then they are multiplied."""
    pixels, mask = random_pixels(6, 120, 90, 3, "u8"), patches(7, 120, 90)
    for invert in (0, 1):
        options = {"regions": "20,10,60,50", "invert": invert}
        agree(service, pixels, mask, write_png(mask), **options)
        got = masked(service, pixels, write_png(mask), **options)
        inside = np.zeros((90, 120), bool)
        inside[10:60, 20:80] = True
        kept = inside == bool(invert)
        assert np.array_equal(got[kept], pixels[kept])


def test_pages(service):
    """One mask for all of them."""
    frames = [random_pixels(seed, 61, 470, 3, "u8") for seed in range(4)]
    mask = write_png(patches(1, 30, 1000))
    target = "/v1/filters/box?size=9&variant=general&format=raw"
    each = [service.post_masked(write_pnm(frame), mask, target).body for frame in frames]
    file = several([imagefiles.pil(frame) for frame in frames], "TIFF")
    assert service.post_masked(file, mask, target + "&pages=all").body == b"".join(each)
    assert service.post_masked(file, mask, target + "&page=2").body == each[2]


GREY = patches(3, 64, 48)
PICTURE = Image.fromarray(flat(GREY))
LINES = (flat(GREY) > 99).astype(np.uint8) * 255


@pytest.mark.parametrize("body, mask", [
    (written(Image.fromarray(LINES).convert("1"), "PNG"), LINES), (written(PICTURE, "TIFF"), flat(GREY)),
    (written(Image.fromarray(np.dstack([GREY, GREY, GREY])), "PNG"), flat(GREY)),
    (written(PICTURE, "WEBP", lossless=True), flat(GREY)), (write_pnm(GREY), flat(GREY)),
    (several([PICTURE, PICTURE.transpose(Image.Transpose.ROTATE_180)], "TIFF"), flat(GREY)),
    (written(PICTURE.convert("RGB").quantize(256, dither=Image.Dither.NONE), "PNG"), None)],
    ids=["bits", "tiff", "rgb", "webp", "pgm", "pages", "palette"])
def test_formats(service, body, mask):
    """A mask in any format that is read, of several pages the first one."""
    pixels = random_pixels(2, 64, 48, 3, "u8")
    if mask is None:
        mask = np.asarray(Image.open(io.BytesIO(body)).convert("RGB")).astype(np.uint8)
    everywhere = service.filter(pixels, BLUR, variant="general").pixels
    oracle.check(masked(service, pixels, body), oracle.blended(pixels, everywhere, oracle.stretched(mask, 64, 48)))


def tiff(mask):
    return written(Image.fromarray(flat(mask)), "TIFF")


@pytest.mark.parametrize("form", [write_png, tiff])
def test_large_masks(service, form):
    """That are mapped behind a large image; a parameter may lie between them, or behind."""
    pixels, mask = random_pixels(2, 700, 500, 3, "u8"), random_pixels(3, 1100, 900, 1, "u8")
    body, target = form(mask), "/v1/filters/gaussian?raw=700x500x3:u8&format=raw&variant=general"
    got = service.post_masked(pixels.tobytes(), body, target, fields=[("sigma", None, b"2")]).pixels
    everywhere = service.filter(pixels, BLUR, variant="general").pixels
    oracle.check(got, oracle.blended(pixels, everywhere, oracle.stretched(flat(mask), 700, 500)))
    assert len(body) > 900000
    parts, kind = multipart([("image", "a", pixels.tobytes()), ("mask", None, body), ("sigma", None, b"2")])
    assert service.post(target, parts, headers={"Content-Type": kind}).body == got.tobytes()


IMAGE, MASK = write_png(random_pixels(1, 64, 48, 3, "u8")), write_png(GREY)
TARGET = "/v1/filters/box?size=5"


@pytest.mark.parametrize("mask, status, slug, says", [
    (b"no image at all", 415, "not-an-image", "recognised"), (b"", 400, "empty-body", "the part is empty"),
    (MASK[:len(MASK) // 2], 422, "undecodable", "decoder"), (MASK[:40], 422, "undecodable", "decoder"),
    (write_png(random_pixels(1, 64, 48, 2, "u8", True)), 422, "unsupported-pixels", "without alpha"),
    (write_png(random_pixels(1, 64, 48, 4, "u16", True)), 422, "unsupported-pixels", "the last one alpha"),
    (written(Image.new("CMYK", (9, 9)), "JPEG"), 422, "unsupported-pixels", "grey"),
    (lambda: written(Image.new("1", (4100, 4100)), "PNG"), 422, "too-many-pixels", "the limit is 16777216")],
    ids=["text", "empty", "cut", "header", "grey-alpha", "rgb-alpha", "inks", "large"])
def test_refused(service, mask, status, slug, says):
    mask = mask() if callable(mask) else mask
    problem = service.post_masked(IMAGE, mask, TARGET).refused(status, slug, says)
    assert problem["parameter"] == "mask" and problem["detail"].startswith("mask: "), problem


@pytest.mark.parametrize("fields, says", [
    ([("mask", "m", MASK), ("image", "i", IMAGE)], "behind the image"), ([("mask", "m", MASK)], "behind the image"),
    ([("image", "i", b""), ("mask", "m", MASK)], "behind the image"),
    ([("image", "i", IMAGE), ("mask", "m", MASK), ("mask", "m", MASK)], "one mask"),
    ([("image", "i", IMAGE), ("mask", "m", MASK), ("image", "i", IMAGE)], "two images")])
def test_wrong_forms(service, fields, says):
    body, kind = multipart(fields)
    problem = service.post(TARGET, body, headers={"Content-Type": kind}).refused(400, "bad-request", says)
    assert problem["parameter"] == ("image" if says == "two images" else "mask")


@pytest.mark.parametrize("target", [TARGET + "&mask=a.png", "/v1/chain?filters=sobel&mask=1"])
def test_without_form(service, target):
    service.post(target, IMAGE).refused(400, "bad-parameter", "-F mask=@FILE", parameter="mask")
    service.post_masked(IMAGE, MASK, target).refused(400, "bad-parameter", parameter="mask")


def test_with_resize(service):
    service.post_masked(IMAGE, MASK, "/v1/chain?filters=box,resize=width=9").refused(
        400, "bad-parameter", "without resize", parameter="mask")
    service.post_masked(IMAGE, MASK, TARGET + "&feather=3").refused(400, "bad-parameter", parameter="regions")


def test_alpha(service):
    """A transparent result does not darken what it is mixed with."""
    pixels = np.full((20, 40, 2), 200, np.uint8)
    pixels[:, 20:, 1] = 0
    ramp = np.tile(np.linspace(0, 255, 40).astype(np.uint8), (20, 1))[:, :, None]
    got = masked(service, pixels, write_png(ramp), [("box", {"size": 21})], alpha=1)
    assert (got[got[:, :, 1] > 0][:, 0] == 200).all()


def test_not_a_number(service):
    """It stays where nothing is filtered; in a mask it counts as 0, and below 0 or above 1 as these."""
    pixels = random_pixels(5, 30, 20, 1, "f32")
    pixels[4] = np.nan
    mask = np.zeros((20, 30, 1), np.float32)
    mask[10:12], mask[12:14], mask[14:16] = np.nan, -7, 9
    got = masked(service, pixels, write_pnm(mask), [("invert", {})])
    full = mask[:, 0, 0] == 9
    assert got[~full].tobytes() == pixels[~full].tobytes()
    assert np.array_equal(got[full], service.filter(pixels, [("invert", {})], variant="general").pixels[full])


def test_jobs(launch):
    """Asynchronous ones, and such that outlive the service: the mask lies behind the image."""
    target = TARGET + "&variant=general"
    with launch("--codecs", "1", "--durable", "yes", environment=ONE_DEVICE) as service:
        right = service.post_masked(IMAGE, MASK, target)
        assert right.status == 200 and right.body != service.post(target, IMAGE).body
        key = {**PREFER, "Idempotency-Key": "k"}
        first = submit(service, np.tile(MEDIUM, (4, 4, 1)), HEAVY)
        path = service.post_masked(IMAGE, MASK, target, key).headers["Location"]
        assert service.post_masked(IMAGE, MASK, target, key).headers["Location"] == path
        service.post_masked(IMAGE + MASK[:1], MASK[1:], target, key).refused(422, "key-reused")
        service.post_masked(IMAGE, MASK, target + "&invert=1", key).refused(422, "key-reused")
        assert service.get(path).json()["state"] == "waiting"
        service.kill()
        service.start()
        assert service.request("DELETE", first).status == 204
        assert service.get(f"{path}/result?wait=120").body == right.body


def test_presets(launch):
    """A preset says what its clients get; a mask would change that."""
    with launch("--preset", "soft=filters=gaussian=sigma=2", "--codecs", "1") as service:
        service.post_masked(IMAGE, MASK, "/v1/presets/soft").refused(400, "bad-parameter", "a preset", parameter="mask")
    done = run("--check-config", "--preset", "soft=filters=gaussian=sigma=2&mask=1")
    assert done.returncode == INVALID and "mask: expected an image" in done.stderr
