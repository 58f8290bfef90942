"""Filters that count the image's values first: against numpy, and in chains."""
import numpy as np
import pytest

import oracle
from imagefiles import exif, pil, several, written
from jobs import submit
from pixels import random_pixels, seed_of
from service import ONE_DEVICE, poll

OTSU = ("threshold", {"method": "otsu"})
FULL = oracle.FULL_SCALE
# Kind, bands, alpha, height, width.
IMAGES = [*(image + (83, 61) for image in (
    ("u8", 1, 0), ("u8", 3, 0), ("u8", 4, 1), ("u16", 4, 0), ("u16", 2, 1), ("f32", 3, 0))),
          ("u8", 3, 0, 1301, 700)]  # many tiles, which all have the counts of the whole image


def uneven(kind, bands, height=83, width=61):
    """Returns values in two heaps of different sizes, others for each band."""
    rng = np.random.default_rng(seed_of(kind, bands, height))
    shape = (height, width, bands)
    low, high = rng.normal(0.2, 0.05, shape), rng.normal(0.7, 0.1, shape)
    share = np.clip(np.where(rng.random(shape) < 0.3, low, high) + 0.03 * np.arange(bands), 0, 1)
    return (share * FULL[kind]).astype(oracle.TYPES[kind])


def counted(band, kind):
    """Returns counts of 256 or 65536 values."""
    n = 256 if kind == "u8" else 65536
    return np.bincount(np.rint(band.ravel() / FULL[kind] * (n - 1)).astype(int), minlength=n)


def otsu(band, kind):
    """By its definition: the smallest of the best splits of the counts, in shares of full scale."""
    counts = counted(band, kind).astype(np.float64)
    values = np.arange(counts.size)
    below, total = np.cumsum(counts), counts.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.cumsum(counts * values) / below
        high = ((counts * values).sum() - np.cumsum(counts * values)) / (total - below)
        between = np.nan_to_num(below * (total - below) * (low - high) ** 2)
    return (np.argmax(between) + 0.5) / (counts.size - 1)


def equalizing(band, kind):
    """Returns the table for shares of full scale at equal distances."""
    counts, entries = counted(band, kind), 256 if kind == "u8" else 1024
    nearest = np.floor(np.arange(counts.size) / (counts.size - 1) * (entries - 1) + 0.5).astype(int)
    sums = np.cumsum(np.bincount(nearest, counts, entries))
    smallest = sums[sums > 0][0]
    return np.maximum(sums - smallest, 0) / (sums[-1] - smallest)


def equalized(band, kind):
    table = equalizing(band, kind)
    done = FULL[kind] * np.interp(band / FULL[kind], np.linspace(0, 1, table.size), table)
    return np.rint(done) if kind != "f32" else done


def bandwise(pixels, alpha, one):
    colours = pixels.shape[2] - alpha
    return np.dstack([one(pixels[:, :, b]) if b < colours else pixels[:, :, b]
                      for b in range(pixels.shape[2])])


@pytest.mark.parametrize("kind, bands, alpha, height, width", IMAGES)
def test_otsu(service, kind, bands, alpha, height, width):
    pixels = uneven(kind, bands, height, width)
    answer = service.filter(pixels, [OTSU], alpha=alpha, verify=1)
    full = FULL[kind]
    wanted = bandwise(pixels, alpha, lambda b: np.where(b > otsu(b, kind) * full, full, 0))
    assert answer.status == 200 and np.array_equal(answer.pixels, wanted)
    assert 0.5 < (answer.pixels[:, :, 0] > 0).mean() < 0.8


def test_equal_splits(service):
    """The smallest threshold counts."""
    answer = service.filter(np.array([[[0], [100], [200]]], np.uint8), [OTSU])
    assert answer.pixels.ravel().tolist() == [0, 255, 255]


@pytest.mark.parametrize("kind, bands, alpha, height, width", IMAGES)
def test_equalize(service, kind, bands, alpha, height, width):
    pixels = uneven(kind, bands, height, width)
    answer = service.filter(pixels, [("equalize", {})], alpha=alpha, verify=1)
    off = np.abs(answer.pixels - bandwise(pixels, alpha, lambda b: equalized(b, kind)))
    assert off.max() <= {"u8": 0, "u16": 1, "f32": 1e-4}[kind]
    quarters = np.histogram(answer.pixels[:, :, 0], 4, (0, FULL[kind]))[0]
    assert np.abs(quarters / quarters.sum() - 0.25).max() < 0.05


# With sizes; the tables of fewer tiles are made in less time.
CLAHE = {"u8": [({}, (83, 61)), ({"tiles": 3, "clip": 0}, (90, 60)), ({"tiles": 4, "clip": 40}, (96, 61)),
                ({"tiles": 1, "clip": 0.01}, (83, 61)), ({"tiles": 32, "clip": 5}, (40, 7)), ({}, (1, 70)), ({}, (70, 1)),
                ({"tiles": 7}, (1, 1))]}
CLAHE["u16"] = CLAHE["f32"] = [({"tiles": 2}, (90, 61)), ({"tiles": 3, "clip": 9}, (2, 5))]


@pytest.mark.parametrize("kind, bands, alpha", [image[:3] for image in IMAGES[:-1]])
def test_clahe(service, kind, bands, alpha):
    """Tiles of any size, those of an image that has fewer pixels too."""
    for options, size in CLAHE[kind]:
        pixels = uneven(kind, bands, *size)
        answer = service.filter(pixels, [("equalize", {"method": "clahe", **options})], alpha=alpha, verify=1)
        wanted = bandwise(pixels, alpha, lambda b: oracle.clahe(b, kind, **options))
        assert answer.status == 200 and np.abs(answer.pixels - wanted).max() <= {"f32": 1e-4}.get(kind, 1)


def test_clahe_of_many_tiles(service):
    """Strips end anywhere in the grid."""
    pixels = uneven("u8", 3, 1301, 200)
    pixels[300:900] //= 3
    wanted = bandwise(pixels, 0, lambda b: oracle.clahe(b, "u8", tiles=5))
    filters = [("equalize", {"method": "clahe", "tiles": 5})]
    for options in ({}, {"variant": "general"}):
        answer = service.filter(pixels, filters, **options)
        off = np.abs(answer.pixels - wanted)
        assert off.max() <= 1 and (off > 0).mean() < 1e-3
    assert np.abs(answer.pixels - equalized(pixels, "u8")).mean() > 9  # it is not the same


@pytest.mark.parametrize("value", [0, 90, 255])
def test_one_value(service, value):
    """As OpenCV: an image of one value is equal already; all above 0 is above its threshold."""
    flat = np.full((9, 70, 1), value, np.uint8)
    assert np.array_equal(service.filter(flat, [("equalize", {})]).pixels, flat)
    assert (service.filter(flat, [OTSU]).pixels == 255 * (value > 0)).all()
    for clip in (0, 2):  # without a limit it is the largest of all
        made = service.filter(flat, [("equalize", {"method": "clahe", "clip": clip})]).pixels
        assert np.array_equal(made[:, :, 0], oracle.clahe(flat[:, :, 0], "u8", clip=clip)) and (clip or (made == 255).all())


TILES = ("equalize", {"method": "clahe", "tiles": 5})
TURNS = [("linear", {"gain": "0.5"}), ("equalize", {}), ("laplacian", {}), ("gamma", {}),
         ("linear", {"gain": "9"})]


@pytest.mark.parametrize("kind, filters, bands, options", [
    ("u8", TURNS, 3, {}), ("u8", TURNS, 3, {"variant": "general"}),
    ("u16", TURNS, 3, {}), ("u16", TURNS, 3, {"variant": "general"}),
    ("u8", [("gaussian", {"sigma": 2}), OTSU, ("median", {})], 1, {"variant": "general"}),
    ("u8", [("box", {"size": 5}), ("equalize", {}), ("sobel", {})], 3,
     {"variant": "general", "border": "crop"}),
    ("u8", [("equalize", {}), ("box", {}), OTSU], 1, {"variant": "general", "border": "wrap"}),
    ("u8", [("box", {"size": 5}), TILES, ("median", {})], 3, {"variant": "general", "border": "crop"}),
    ("u8", [("box", {}), TILES, ("box", {"size": 9}), TILES], 1, {"variant": "general", "border": "wrap"})],
    ids=str)
def test_one_by_one(service, kind, filters, bands, options):
    """A filter counts its own run's result of the filter before it: halves are rounded alike."""
    pixels = np.minimum(uneven(kind, bands, 1301, 700) | 1, oracle.TYPES[kind](FULL[kind] // 3))
    one_by_one = pixels
    for each in filters:
        one_by_one = service.filter(one_by_one, [each], **options).pixels
    assert np.array_equal(service.filter(pixels, filters, **options).pixels, one_by_one)


@pytest.mark.parametrize("one", [("equalize", {}), TILES, ("canny", {"sigma": 0})])
def test_of_a_part(service, one):
    """The region of interest is counted as if it were the image."""
    pixels = uneven("u8", 3)
    part, options = pixels[20:70, 10:50], {"roi": "10,20,40,50"}
    alone = service.filter(np.ascontiguousarray(part), [one]).pixels
    assert np.array_equal(service.filter(pixels, [one], **options).pixels, alone)
    placed = service.filter(pixels, [one], target="10,20", **options).pixels.copy()
    assert np.array_equal(placed[20:70, 10:50], alone)
    placed[20:70, 10:50] = part
    assert np.array_equal(placed, pixels)


def test_some_samples(service):
    """The counts are those of the whole channel."""
    pixels = uneven("u8", 3)
    luma = service.filter(pixels, [TILES], channels="luma")
    wanted = oracle.clahe(np.rint(pixels @ oracle.TO_YCBCR[0]), "u8", tiles=5)
    inside = ((luma.pixels > 0) & (luma.pixels < 255)).all(axis=2)  # elsewhere a colour is cut off
    assert np.abs(luma.pixels @ oracle.TO_YCBCR[0] - wanted)[inside].max() < 3 and inside.mean() > 0.2
    for channel, options in ((pixels @ oracle.TO_YCBCR[0], {"channels": "luma"}),
                             (pixels[:, :, 1], {"channels": "green", "regions": "3,4,30,40"})):
        table = np.round(255 * equalizing(np.rint(channel), "u8")[None], 4)
        got, wanted = (service.filter(pixels, [one], **options).pixels.astype(int)
                       for one in (("equalize", {}), ("lut", {"table": table})))
        assert np.abs(got - wanted).max() <= 1


def test_refuses(service):
    grey, colours = uneven("u8", 1), uneven("u8", 3)
    three = [("equalize", {}), OTSU, ("equalize", {})]
    for pixels, filters, options, parameter in [
            (grey, [("threshold", {"method": "otsu", "value": 0.5})], {}, "value"),
            (grey, [("threshold", {"method": "otsu", "size": 5})], {}, "size"),
            (colours, [("equalize", {})], {"channels": "chroma"}, "channels"),
            (grey, [("equalize", {})], {"channels": "luma"}, "channels"),
            (grey, [("equalize", {})], {"channels": "blue"}, "channels"),
            (grey, [("equalize", {"tiles": 8})], {}, "tiles"),
            (grey, [("equalize", {"method": "clahe"})], {"variant": "lut"}, "variant"),
            (uneven("u16", 3), [("equalize", {"method": "clahe", "tiles": 10})], {}, "tiles"),
            (grey, three, {}, "filters")]:
        answer = service.filter(pixels, filters, **options)
        answer.refused(400, "bad-parameter", parameter=parameter)


def test_too_many_pixels(launch):
    """Counts have 32 bits."""
    with launch("--max-pixels", "5000000000", "--codecs", "1") as service:
        enlarge = ("resize", {"width": 70000, "height": 70000, "fit": "fill", "enlarge": 1})
        for filters in ([enlarge, ("equalize", {})], [enlarge, ("equalize", {"method": "clahe"})], [enlarge, OTSU]):
            service.filter(uneven("u8", 1, 700, 700), filters).refused(422, "too-many-pixels", "70000x70000", "4294967295")


def test_progress(service):
    """Tiles of both runs count."""
    pixels = random_pixels(1, 1500, 900, 3, "u8")

    def cut_alike():
        """On a busy machine a device may seem slower to the next image, whose tiles are smaller."""
        jobs = [submit(service, pixels, [(name, {})]) for name in ("linear", "equalize")]
        once, twice = (service.get(f"{job}?wait=300").json()["progress"] for job in jobs)
        assert once["tiles_done"] == once["tiles"] > 2
        assert twice["tiles_done"] == twice["tiles"]
        return twice["tiles"] == 2 * once["tiles"]
    poll(cut_alike, what="twice as many tiles")


PICTURE = pil(uneven("u8", 3, 400, 300))
OPTIONS = ["", "&roi=11,7,90,80", "&roi=11,7,90,80&target=20,30", "&border=wrap", "&border=crop",
           "&verify=1"]


def test_kept_rows(launch):
    """The same answer from kept rows, rows read again, and counts in files (codec/kept.c: more)."""
    turned = written(PICTURE, "JPEG", exif=exif({0x0112: 6}))
    pages = several([pil(uneven("u8", 3, 190, 150) // (i + 1)) for i in range(3)], "TIFF")
    bodies = [(options, turned) for options in OPTIONS]
    bodies += [("", written(PICTURE, "PNG")), ("&pages=all", pages), ("&pages=all&verify=1", pages)]
    filters = ("gaussian=sigma=1,equalize,box=size=5",
               "threshold=method=otsu,gaussian=sigma=2,equalize", "canny")
    answers = []
    # size of an arena: an image is 360,000 bytes, three pages are 256,500
    for options in (("--arena-size", "64M"), ("--arena-size", "256K"), ("--spool-size", "0")):
        with launch("--codecs", "1", *options, environment=ONE_DEVICE) as service:
            path = "/v1/chain?variant=general&format=png&filters="
            answers.append([service.post(f"{path}{chain}{options}", body)
                            for chain in filters for options, body in bodies])
            service.rest()
    for kept, *again in zip(*answers):
        assert kept.status == 200, kept
        assert {(one.status, one.body) for one in again} == {(200, kept.body)}, (kept, again)


def test_damaged_file(service):
    """It is refused by the run that counts, as by any other."""
    body = written(PICTURE, "JPEG", quality=90)
    for cut in (len(body) // 3, len(body) - 3000):
        whole, counted = (service.post(f"/v1/filters/{name}", body[:cut])
                          for name in ("invert", "equalize"))
        assert whole.refused(422, "undecodable") == counted.refused(422, "undecodable")
