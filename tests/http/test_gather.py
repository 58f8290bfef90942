"""Filters that count the image's values first: against numpy, and in chains against the counted
values."""
import time

import numpy as np
import pytest

import imagefiles
import oracle
from jobs import submit
from pixels import random_pixels, seed_of
from service import ONE_DEVICE, poll

FULL = oracle.FULL_SCALE
KINDS = [("u8", 1, 0), ("u8", 3, 0), ("u8", 4, 1), ("u16", 4, 0), ("u16", 2, 1), ("f32", 3, 0)]


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


@pytest.mark.parametrize("kind, bands, alpha", KINDS)
def test_otsu(service, kind, bands, alpha):
    pixels = uneven(kind, bands)
    answer = service.filter(pixels, [("threshold", {"method": "otsu"})], alpha=alpha, verify=1)
    wanted = bandwise(pixels, alpha, lambda b: np.where(b > otsu(b, kind) * FULL[kind], FULL[kind], 0))
    assert answer.status == 200 and np.array_equal(answer.pixels, wanted)
    assert 0.5 < (answer.pixels[:, :, 0] > 0).mean() < 0.8


@pytest.mark.parametrize("kind, bands, alpha", KINDS)
def test_equalize(service, kind, bands, alpha):
    pixels = uneven(kind, bands)
    answer = service.filter(pixels, [("equalize", {})], alpha=alpha, verify=1)
    assert answer.status == 200, answer
    off = np.abs(answer.pixels - bandwise(pixels, alpha, lambda b: equalized(b, kind)))
    assert off.max() <= {"u8": 0, "u16": 1, "f32": 1e-4}[kind]
    spread = np.histogram(answer.pixels[:, :, 0], 4, (0, FULL[kind]))[0] / answer.pixels[:, :, 0].size
    assert np.abs(spread - 0.25).max() < 0.05


@pytest.mark.parametrize("value", [0, 90, 255])
def test_one_value(service, value):
    """As OpenCV: an image of one value is equal already; all above 0 is above its threshold."""
    flat = np.full((9, 70, 1), value, np.uint8)
    assert np.array_equal(service.filter(flat, [("equalize", {})]).pixels, flat)
    assert (service.filter(flat, [("threshold", {"method": "otsu"})]).pixels == 255 * (value > 0)).all()


def resolved(service, pixels, filters, **options):
    """Returns the same chain in numbers that the test has counted in the answers to its beginnings."""
    done = []
    for name, parameters in filters:
        if name == "equalize" or parameters.get("method") == "otsu":
            before = service.filter(pixels, done, **options).pixels if done else pixels
            if name == "equalize":
                rows = [np.rint(255 * equalizing(before[:, :, b], "u8")) for b in range(before.shape[2])]
                name, parameters = "lut", {"table": [row.tolist() for row in rows]}
            else:
                parameters = {"value": repr(float(otsu(before[:, :, 0], "u8")))}
        done.append((name, parameters))
    return service.filter(pixels, done, **options)


OTSU = ("threshold", {"method": "otsu"})
CHAINS = [([("gaussian", {"sigma": 2}), OTSU, ("median", {})], 1, {}),
          ([("box", {"size": 5}), ("equalize", {}), ("sobel", {})], 3, {"border": "crop"}),
          ([("equalize", {}), ("box", {}), OTSU], 1, {"border": "wrap"}),
          ([("equalize", {})], 3, {"channels": "green", "regions": "3,4,30,40", "feather": 3})]


@pytest.mark.parametrize("filters, bands, options", CHAINS, ids=str)
def test_chains(service, filters, bands, options):
    """In many tiles, which all have the counts of the whole image."""
    pixels = uneven("u8", bands, 1301, 700)
    options = {"variant": "general", **options}
    answer = service.filter(pixels, filters, **options)
    wanted = resolved(service, pixels, filters, **options)
    assert (answer.status, wanted.status) == (200, 200), (answer, wanted)
    assert np.array_equal(answer.pixels, wanted.pixels)


@pytest.mark.parametrize("variant", ["general", None])
@pytest.mark.parametrize("kind", ["u8", "u16"])
def test_one_by_one(service, kind, variant):
    """Equalize counts its own run's result of the filter before it: halves are rounded alike."""
    filters = [("linear", {"gain": "0.5"}), ("equalize", {}), ("laplacian", {}), ("gamma", {}), ("linear", {"gain": "9"})]
    options = {"variant": variant} if variant else {}
    pixels = one_by_one = np.minimum(uneven(kind, 3, 301, 200) | 1, uneven(kind, 1, 1, 1).dtype.type(FULL[kind] // 3))
    for each in filters:
        one_by_one = service.filter(one_by_one, [each], **options).pixels
    assert np.array_equal(service.filter(pixels, filters, **options).pixels, one_by_one)


def test_of_a_part(service):
    """The region of interest is counted as if it were the image."""
    pixels = uneven("u8", 3)
    part, options = pixels[20:70, 10:50], {"roi": "10,20,40,50"}
    alone = service.filter(np.ascontiguousarray(part), [("equalize", {})]).pixels
    assert np.array_equal(service.filter(pixels, [("equalize", {})], **options).pixels, alone)
    placed = service.filter(pixels, [("equalize", {})], target="10,20", **options).pixels.copy()
    assert np.array_equal(placed[20:70, 10:50], alone)
    placed[20:70, 10:50] = part
    assert np.array_equal(placed, pixels)


def test_luma(service):
    pixels = uneven("u8", 3)
    luma = np.rint(pixels @ oracle.TO_YCBCR[0])[:, :, None]
    table = [(255 * equalizing(luma, "u8")).tolist()]
    got, wanted = (service.filter(pixels, [one], channels="luma").pixels.astype(int)
                   for one in (("equalize", {}), ("lut", {"table": np.round(table, 4).tolist()})))
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
            (grey, three, {}, "filters")]:
        problem = service.filter(pixels, filters, **options).refused(400, "bad-parameter")
        assert problem["parameter"] == parameter, problem


def test_progress(service):
    """Tiles of both runs count."""
    pixels = random_pixels(1, 1500, 900, 3, "u8")
    described = []
    for filters in ([("linear", {})], [("equalize", {})]):
        job = submit(service, pixels, filters)
        described.append(poll(lambda j=job: [d for d in [service.get(f"{j}?wait=60").json()]
                                             if d["state"] == "done"], 120, "the end")[0]["progress"])
    once, twice = described
    assert once["tiles_done"] == once["tiles"] > 2
    assert twice["tiles_done"] == twice["tiles"] == 2 * once["tiles"]


def test_numbers_in_a_file(launch):
    """With answers in files the counts are a file, too, and its worker ends before it is believed."""
    pixels = uneven("u16", 3)
    bodies = []
    for size in ("64M", "0"):
        with launch("--codecs", "1", "--spool-size", size, environment=ONE_DEVICE) as service:
            bodies.append(service.filter(pixels, [("equalize", {})], variant="general").body)
            service.rest()
    assert bodies[0] == bodies[1] and len(bodies[0]) == pixels.nbytes


def test_cancelled_at_any_moment(launch):
    """Also between its runs: nothing stays."""
    pixels = random_pixels(1, 1500, 900, 3, "u8")
    with launch("--codecs", "1", environment=ONE_DEVICE) as service:
        begin = time.monotonic()
        assert service.filter(pixels, [("equalize", {})], variant="general").status == 200
        whole = time.monotonic() - begin
        for moment in range(12):
            job = submit(service, pixels, [("equalize", {})])
            time.sleep(moment * whole / 10)
            assert service.request("DELETE", job).status == 204
        assert service.filter(pixels, [("equalize", {})], variant="general").status == 200
        service.rest()


def pages(name, **options):
    first, *others = [imagefiles.pil(uneven("u8", 3, 190, 150) // (i + 1)) for i in range(3)]
    return imagefiles.written(first, name, save_all=True, append_images=others, **options)


FILES = {"jpeg": lambda picture: imagefiles.written(picture, "JPEG", quality=90),
         "turned": lambda picture: imagefiles.written(picture, "JPEG", exif=bytes(turned(picture))),
         "png": lambda picture: imagefiles.written(picture, "PNG"),
         "webp": lambda picture: imagefiles.written(picture, "WEBP"),
         "tiff": lambda picture: imagefiles.written(picture, "TIFF"),
         "gif": lambda picture: imagefiles.written(picture, "GIF"),
         "ppm": lambda picture: imagefiles.written(picture, "PPM")}
PAGES = {"frames": lambda: pages("WEBP", lossless=True), "pages": lambda: pages("TIFF")}
OPTIONS = ["", "&roi=11,7,90,80", "&roi=11,7,90,80&target=20,30", "&border=wrap", "&border=crop", "&verify=1"]


def turned(picture):
    exif = picture.getexif()
    exif[0x0112] = 6
    return exif.tobytes()


def test_kept_rows(launch):
    """Whether the decoded rows are kept between the runs or are too many for that, the answer is the same."""
    picture = imagefiles.pil(uneven("u8", 3, 600, 500))
    bodies = [(options, make(picture))
              for make in FILES.values() for options in OPTIONS]
    bodies += [(f"&pages=all{options}", make()) for make in PAGES.values() for options in OPTIONS[::5]]
    filters = ("gaussian=sigma=1,equalize,box=size=5", "threshold=method=otsu,gaussian=sigma=2,equalize", "canny")
    answers = []
    # size of an arena: an image is 900,000 bytes, three pages are 256,500
    for size in ("64M", "256K"):
        with launch("--codecs", "1", "--arena-size", size, environment=ONE_DEVICE) as service:
            answers.append([service.post(f"/v1/chain?variant=general&format=png&filters={chain}{options}", body)
                            for chain in filters for options, body in bodies])
            service.rest()
    for kept, again in zip(*answers):
        assert (kept.status, kept.body) == (again.status, again.body), (kept, again)
        assert kept.status == 200, kept


def test_damaged_file(service):
    """It is refused by the run that counts, as by any other."""
    body = FILES["jpeg"](imagefiles.pil(uneven("u8", 3, 600, 500)))
    for cut in (len(body) // 3, len(body) - 3000):
        whole, counted = (service.post(f"/v1/filters/{name}", body[:cut]) for name in ("invert", "equalize"))
        assert whole.status == counted.status == 422 and whole.json()["detail"] == counted.json()["detail"]
