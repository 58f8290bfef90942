"""TIFFs whose samples or colours are not those that filters work on: they are converted."""
import pathlib
import subprocess
import tempfile

import numpy as np
import pytest
from PIL import Image

import imagefiles
import oracle
from imagefiles import read_vips, write_png, write_tiff
from pixels import smooth
from previews import PROFILE
from service import tool

KINDS = {"i1": [], "i2": [], "u4": ["reduced"], "i4": ["reduced"]}


def lost(answer):
    return [token for token in answer.headers.get("X-Lost", "").split(", ") if token]


def samples(kind, bands):
    """The extremes among them."""
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
    assert np.array_equal(answer.pixels, pixels.astype(np.float32)) and lost(answer) == KINDS[kind]
    same = service.identity(write_tiff(pixels))
    assert same.type == "image/tiff" and lost(same) == KINDS[kind]
    assert np.array_equal(read_vips(same.body, ".tif", np.float32, bands), answer.pixels)


def test_filtered_and_turned(service):
    """The orientation has the file opened again."""
    pixels = samples("i2", 1)
    chain = [("gaussian", {"sigma": 1.5})]
    answer = service.post("/v1/filters/gaussian?sigma=1.5&format=raw", write_tiff(pixels, orientation=6))
    oracle.check(answer.pixels, oracle.filtered(np.rot90(pixels, -1).astype(np.float32), chain, "replicate"))


def test_in_integers(service):
    """Below 0 is black, from 1 on it is white, unless a filter brings it into range."""
    pixels = np.array([[[-500], [0], [1], [1500]]], np.int16)
    png = service.identity(write_tiff(pixels), format="png").body
    assert list(imagefiles.read_png(png)[0, :, 0]) == [0, 0, 65535, 65535]
    png = service.post("/v1/filters/linear?gain=0.0005&bias=0.25&format=png", write_tiff(pixels)).body
    assert list(imagefiles.read_png(png)[0, :, 0]) == [0, 16384, 16417, 65535]


# CIELAB -------------------------------------------------------------------------------------------

COLOURS = smooth(61, 47, 3)


def written_by_vips(space):
    with tempfile.TemporaryDirectory() as directory:
        before, after = pathlib.Path(directory, "in.png"), pathlib.Path(directory, "out.tif")
        before.write_bytes(write_png(COLOURS))
        subprocess.run([tool("vips"), "colourspace", before, after, space], check=True)
        return after.read_bytes()


@pytest.mark.parametrize("space, off", [("labq", 5), ("labs", 1), ("lab", 1)])
def test_lab(service, space, off):
    """The colours come back."""
    answer = service.identity(written_by_vips(space), format="raw")
    assert answer.kind == (61, 47, 3, "u16") and lost(answer) == ["converted"]
    assert np.abs(answer.pixels / 257 - COLOURS).max() < off


def test_lab_of_pillow(service):
    """Whose white is another: greys stay grey. A profile of CIELAB does not reach the answer."""
    grey = np.repeat(smooth(40, 30, 1), 3, axis=2)
    image = Image.fromarray(grey).convert("LAB")
    body = imagefiles.written(image, "TIFF", icc_profile=PROFILE)
    answer = service.identity(body, format="png")
    assert np.abs(imagefiles.read_png(answer.body) / 257 - grey).max() < 3
    assert "icc_profile" not in imagefiles.read_pil(answer.body)[1].info
    assert service.identity(body).type == "image/tiff" and lost(answer) == ["converted"]


def test_lab_with_a_halo(service):
    """Rows of the converted image in any part of it."""
    body = written_by_vips("labs")
    pixels = service.identity(body, format="raw").pixels
    answer = service.post("/v1/filters/box?size=9&border=wrap&format=raw&roi=7,5,40,30", body)
    oracle.check(answer.pixels, oracle.filtered(pixels[5:35, 7:47], [("box", {"size": 9})], "wrap"))


def test_truncated(service):
    for body in (written_by_vips("labs")[:-3000], write_tiff(samples("u4", 3))[:3000]):
        service.identity(body).refused(422, "undecodable")


def test_64_bits(service):
    for kind in (np.float64, np.uint64):
        service.identity(write_tiff(np.zeros((9, 9, 3), kind))).refused(422, "undecodable")
