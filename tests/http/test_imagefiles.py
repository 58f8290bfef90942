"""The readers and writers of files against each other and against PIL."""
import numpy as np
import pytest

import imagefiles
from pixels import random_pixels


@pytest.mark.parametrize("kind", ["u8", "u16"])
@pytest.mark.parametrize("bands", [1, 2, 3, 4])
def test_png(bands, kind):
    pixels = random_pixels(1, 13, 9, bands, kind)
    assert np.array_equal(imagefiles.read_png(imagefiles.write_png(pixels)), pixels)
    if kind == "u8":
        assert np.array_equal(imagefiles.read_pil(imagefiles.write_png(pixels))[0], pixels)
        smooth = np.cumsum(pixels // 64, axis=1, dtype=np.uint8)  # makes PIL use every row filter
        assert np.array_equal(
            imagefiles.read_png(imagefiles.written(imagefiles.pil(smooth), "PNG")), smooth)


@pytest.mark.parametrize("bands, kind", [(1, "u8"), (3, "u8"), (1, "u16"), (3, "u16"), (1, "f32"),
                                         (3, "f32")])
def test_pnm(bands, kind):
    pixels = random_pixels(1, 13, 9, bands, kind)
    file = imagefiles.write_pnm(pixels)
    assert np.array_equal(imagefiles.read_pnm(file), pixels)
    if kind != "f32":  # libvips' command reads PFM upside down
        assert np.array_equal(imagefiles.read_vips(file, ".ppm", pixels.dtype, bands), pixels)


def test_pfm_by_hand():
    """The format's rows go from the bottom to the top."""
    file = b"Pf\n1 2\n1.0\n" + bytes.fromhex("3f800000 40000000")
    assert imagefiles.read_pnm(file)[:, 0, 0].tolist() == [2.0, 1.0]


@pytest.mark.parametrize("kind", ["u8", "u16", "f32"])
@pytest.mark.parametrize("bands", [1, 2, 3, 4])
def test_tiff(bands, kind):
    pixels = random_pixels(1, 13, 9, bands, kind)
    file = imagefiles.write_tiff(pixels, alpha=bands in (2, 4))
    assert np.array_equal(imagefiles.read_vips(file, ".tif", pixels.dtype, bands), pixels)
    if kind == "u8":
        assert np.array_equal(imagefiles.read_pil(file)[0], pixels)
