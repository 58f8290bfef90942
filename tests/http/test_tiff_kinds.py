"""TIFFs whose samples or colours are not those that filters work on: they are converted."""
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms

import imagefiles
import oracle
from imagefiles import by_vips, read_vips, write_png, write_tiff
from mutations import sizes
from pixels import random_pixels, smooth
from previews import PROFILE

KINDS = {"i1": [], "i2": [], "u4": ["reduced"], "i4": ["reduced"]}


def samples(kind, bands):
    """Returns random values, the extremes among them."""
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    values = np.random.default_rng(1).integers(least, most, (31, 17, bands), dtype=kind, endpoint=True)
    values[0, 0], values[-1, -1] = least, most
    return values


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bands", [1, 3])
def test_values_are_kept(service, kind, bands):
    pixels = samples(kind, bands)
    answer = service.identity(write_tiff(pixels), format="raw")
    assert answer.kind == (17, 31, bands, "f32")
    assert np.array_equal(answer.pixels, pixels.astype(np.float32)) and answer.lost == KINDS[kind]
    same = service.identity(write_tiff(pixels))
    assert same.type == "image/tiff" and same.lost == KINDS[kind]
    assert np.array_equal(read_vips(same.body, ".tif", np.float32, bands), answer.pixels)


def test_in_integers(service):
    """Below 0 is black, from 1 on it is white, unless a filter brings it into range."""
    pixels = np.array([[[-500], [0], [1], [1500]]], np.int16)
    png = service.identity(write_tiff(pixels), format="png").body
    assert list(imagefiles.read_png(png)[0, :, 0]) == [0, 0, 65535, 65535]
    png = service.post("/v1/filters/linear?gain=0.0005&bias=0.25&format=png", write_tiff(pixels)).body
    assert list(imagefiles.read_png(png)[0, :, 0]) == [0, 16384, 16417, 65535]


GREYS = np.repeat(smooth(61, 47, 1), 3, axis=2)


def written_by_vips(space):
    return by_vips(write_png(GREYS), ".png", ".tif", "colourspace", space)


# Saturated colours, as a colour management system writes them.
SATURATED = np.array([[(60, 90, 230), (220, 90, 80), (80, 200, 100), (255, 255, 255), (120, 60, 200)]], np.uint8)
LAB = {**{space: (lambda space=space: written_by_vips(space), GREYS, off) for space, off in (("labq", 2), ("labs", 1), ("lab", 1))},
       "profiles": (lambda: imagefiles.written(ImageCms.profileToProfile(
           Image.fromarray(SATURATED), *map(ImageCms.createProfile, ("sRGB", "LAB")), 1, "LAB"), "TIFF"), SATURATED, 4),
       "Pillow": (lambda: imagefiles.written(Image.fromarray(GREYS).convert("LAB"), "TIFF", icc_profile=PROFILE), GREYS, 3)}


@pytest.mark.parametrize("name", LAB)
def test_lab(service, name):
    """Greys stay grey, though libvips and Pillow have other whites than the standard's. A profile of
    CIELAB does not reach the answer."""
    written, pixels, off = LAB[name]
    body = written()
    answer = service.identity(body, format="png")
    assert answer.kind[2:] == (3, "u16") and answer.lost == ["converted"]
    assert np.abs(imagefiles.read_png(answer.body) / 257 - pixels).max() < off
    assert "icc_profile" not in imagefiles.read_pil(answer.body)[1].info
    assert service.identity(body).type == "image/tiff"


@pytest.mark.parametrize("compression", ["raw", "tiff_adobe_deflate", "tiff_lzw", "packbits"])
def test_longer_strips(service, compression):
    """A strip may hold more rows than the picture has."""
    pixels = random_pixels(1, 40, 30, 3, "u8")
    pixels[-8:] = 7  # compressed in one piece
    data = bytearray(imagefiles.written(imagefiles.pil(pixels), "tiff", compression=compression))
    start, end, code = sizes(data)[1]
    data[start:end] = struct.pack(code, len(pixels) - 1)
    assert np.array_equal(service.identity(bytes(data), format="raw").pixels, pixels[:-1])


def test_truncated(service):
    for body in (written_by_vips("labs")[:-3000], write_tiff(samples("u4", 3))[:3000]):
        service.identity(body).refused(422, "undecodable")


def transparent(kind, bands):
    """Colours, alpha from nothing to full scale, and the colours as they are stored: multiplied by it."""
    full = oracle.FULL_SCALE[kind]
    pixels = random_pixels(4, 40, 30, bands, kind)
    alpha = np.resize(np.array([0, 1, 3 / 255, 0.004, 0.5, 0.999]), pixels.shape[:2]) * full
    pixels[..., -1] = np.rint(alpha) if full > 1 else alpha
    if full == 1:
        pixels[0, :2, -1] = 1e-4
    stored = pixels.copy()
    product = pixels[..., :-1].astype(float) * pixels[..., -1:] / full
    stored[..., :-1] = np.rint(product) if full > 1 else product
    divided = stored[..., :-1] * float(full) / np.maximum(pixels[..., -1:].astype(float), 1e-30)
    return stored, np.minimum(divided, full) if full > 1 else divided


def write_associated(pixels, **options):
    return write_tiff(pixels, tags={338: ("H", [1])}, **options)


@pytest.mark.parametrize("kind", oracle.TYPES)
@pytest.mark.parametrize("bands", [2, 4])
def test_associated_alpha(service, kind, bands):
    """Colours come as they are without alpha."""
    stored, colours = transparent(kind, bands)
    answer = service.identity(write_associated(stored), format="raw")
    assert answer.kind[2:] == (bands, kind), answer
    assert np.array_equal(answer.pixels[..., -1], stored[..., -1])
    off = np.abs(answer.pixels[..., :-1] - colours)[stored[..., -1] > 0]
    assert off.max() <= (0.51 if kind != "f32" else 1e-5), off.max()


def ycc(across, down, full=True):
    """Returns YCbCr, of one Cb and Cr for each block of this many pixels: the data, and in RGB."""
    width, height, rng = 12, 8, np.random.default_rng(7)
    luma = rng.integers(60, 200, (height, width))
    chroma = rng.integers(90, 160, (height // down, width // across, 2))
    blocks = luma.reshape(height // down, down, width // across, across).swapaxes(1, 2)
    data = np.concatenate([blocks.reshape(*chroma.shape[:2], -1), chroma], axis=2).astype(np.uint8)
    y, (cb, cr) = luma.astype(float), np.moveaxis(chroma.repeat(down, 0).repeat(across, 1) - 128.0, 2, 0)
    if not full:
        y, cb, cr = (y - 16) * 255 / 219, cb * 127 / 112, cr * 127 / 112
    rgb = np.dstack([y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb])
    return data.tobytes(), np.clip(rgb, 0, 255)


def write_ycc(across, down, full=True, deflated=False, **options):
    data, _ = ycc(across, down, full)
    tags = {262: ("H", [6]), 530: ("H", [across, down]), 259: ("H", [8 if deflated else 1]),
            532: ("R", [0, 1, 255, 1, 128, 1, 255, 1, 128, 1, 255, 1] if full else
                  [16, 1, 235, 1, 128, 1, 240, 1, 128, 1, 240, 1])}
    return write_tiff(np.zeros((8, 12, 3), np.uint8), tags=tags, data=zlib.compress(data) if deflated else data,
                      **options)


@pytest.mark.parametrize("across, down", [(1, 1), (2, 1), (2, 2), (4, 2)])
@pytest.mark.parametrize("full", [True, False])
def test_ycc(service, across, down, full):
    _, expected = ycc(across, down, full)
    for deflated in (False, True):
        answer = service.identity(write_ycc(across, down, full, deflated), format="raw")
        assert answer.kind == (12, 8, 3, "u8"), answer
        assert np.abs(answer.pixels - expected).max() <= 4


def test_ycc_metadata(service):
    answer = service.identity(write_ycc(2, 2, icc=PROFILE), format="png")
    assert imagefiles.read_pil(answer.body)[1].info["icc_profile"] == PROFILE


CONVERTED = {
    "integers": lambda **options: write_tiff(samples("i2", 1), **options),
    "CIELAB": lambda: written_by_vips("labs"),
    "associated alpha": lambda **options: write_associated(transparent("u16", 4)[0], **options),
    "YCbCr": lambda **options: write_ycc(2, 2, **options)}


@pytest.mark.parametrize("name", CONVERTED)
def test_converted_again(service, name):
    """Any rows, those of a target beside, and all of a file that is opened again to be turned."""
    body = CONVERTED[name]()
    pixels = service.decoded(body)
    placed = service.identity(body, format="raw", roi="3,4,5,2", target="3,4")
    assert np.array_equal(placed.pixels, pixels)
    box = service.post("/v1/filters/box?size=5&border=wrap&roi=2,1,9,6&format=raw", body)
    part = np.ascontiguousarray(pixels[1:7, 2:11])
    expected = oracle.filtered(part, [("box", {"size": 5})], "wrap", alpha="alpha" in name)
    oracle.check(box.pixels, expected)
    if name != "CIELAB":
        turned = service.identity(CONVERTED[name](orientation=6), format="raw")
        assert np.array_equal(turned.pixels, np.rot90(pixels, -1))


def test_bits_in_planes(service):
    """One plane is all that a bilevel picture has."""
    bits = np.random.default_rng(3).integers(0, 2, (20, 19), dtype=np.uint8)
    data = np.packbits(bits, axis=1).tobytes()
    for white, planar in ((0, 1), (1, 1), (0, 2), (1, 2)):
        body = write_tiff(np.zeros((20, 19, 1), np.uint8), data=data,
                          tags={258: ("H", [1]), 262: ("H", [white]), 284: ("H", [planar])})
        answer = service.identity(body, format="raw")
        assert np.array_equal(answer.pixels[..., 0], (bits if white else 1 - bits) * 255)


def test_planes(service):
    """Three strips, one of each colour."""
    pixels = random_pixels(1, 31, 20, 3, "u8")
    size = 31 * 20
    body = write_tiff(pixels, data=np.moveaxis(pixels, 2, 0).tobytes(),
                      tags={284: ("H", [2]), 273: ("I", [8 + i * size for i in range(3)]),
                            279: ("I", [size] * 3)})
    assert np.array_equal(service.decoded(body), pixels)


def test_small_jpeg_in_a_tile(service):
    """No pixel comes from elsewhere."""
    picture = imagefiles.written(imagefiles.pil(np.full((16, 16, 3), 90, np.uint8)), "JPEG", quality=95)
    body = write_tiff(np.zeros((64, 64, 3), np.uint8), data=picture,
                      tags={259: ("H", [7]), 262: ("H", [6]), 273: None, 278: None, 279: None,
                            322: ("I", [64]), 323: ("I", [64]), 324: ("I", [8]), 325: ("I", [len(picture)])})
    answers = []
    for value in (1, 77, 140, 200):
        other = random_pixels(value, 64, 64, 3, "u8")
        service.identity(imagefiles.written(imagefiles.pil(other), "TIFF", compression="tiff_lzw"))
        answers.append(service.identity(body, format="raw"))
    assert len({answer.status for answer in answers}) == 1
    assert answers[0].status == 422 or len({answer.body for answer in answers}) == 1


def grey(kind="u1", bands=1, **tags):
    """Tags by number: t262=("H", [4])."""
    return write_tiff(np.ones((8, 8, bands), kind), tags={int(tag[1:]): value for tag, value in tags.items()})


REFUSED = {
    "mask": (grey(t262=("H", [4])), "a transparency mask"),
    "sensor": (grey("u2", t262=("H", [32803])), "a sensor's raw samples"),
    "LogL": (grey("u2", t262=("H", [32844])), "LogL"),
    "ICC L*a*b*": (grey(bands=3, t262=("H", [9])), "ICC L*a*b*"),
    "three inks": (grey(bands=3, t262=("H", [5]), t338=None), "3 samples (8-bit unsigned integers) of inks"),
    "other inks": (grey(bands=4, t262=("H", [5]), t332=("H", [2]), t338=None), "other than cyan"),
    "five inks": (grey(bands=5, t262=("H", [5]), t338=None), "5 samples"),
    "float of which 0 is white": (grey("f4", t262=("H", [0])), "0 is white"),
    "12 bits": (grey(t258=("H", [12])), "12-bit unsigned integers"),
    "half floats": (grey("f2"), "16-bit floats"),
    "doubles": (grey("f8"), "64-bit floats"),
    "64 bits": (grey("u8"), "64-bit unsigned integers"),
    "complex": (grey("u8", t339=("H", [6])), "64-bit complex numbers"),
    "alpha of signed integers": (grey("i2", 4, t338=("H", [1])), "associated alpha"),
    "JPEG 2000": (grey(t259=("H", [34712])), "JPEG 2000"),
    "two colours": (grey(bands=2, t262=("H", [2]), t338=None), "2 samples"),
    "YCbCr of 16 bits": (grey("u2", 3, t262=("H", [6])), "YCbCr"),
    "grey and alpha in planes": (grey(bands=2, t284=("H", [2])), "planes that lie apart"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(service, name):
    body, words = REFUSED[name]
    service.identity(body).refused(422, "unsupported-pixels", words)


def test_directories_in_a_loop(service):
    """Each is a page once."""
    body = bytearray(write_tiff(np.full((4, 4, 1), 9, np.uint8)))
    start, = struct.unpack_from("<I", body, 4)
    count, = struct.unpack_from("<H", body, start)
    struct.pack_into("<I", body, start + 2 + 12 * count, start)
    assert (service.decoded(bytes(body)) == 9).all()


def test_cut_before_its_directory(service):
    """The refusal names the cause in the user's reach."""
    body = imagefiles.written(Image.fromarray(random_pixels(1, 90, 60, 3, "u8")), "TIFF", compression="tiff_lzw")
    assert struct.unpack("<I", body[4:8])[0] > len(body) // 2
    service.identity(body[:len(body) // 2]).refused(422, "undecodable", "truncated")
