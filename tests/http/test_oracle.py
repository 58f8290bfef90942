"""The oracle against definitions worked out by hand and other programs; and it notices errors."""
import numpy as np
import pytest
from scipy import ndimage

import oracle

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("border, mode", [("replicate", "edge"), ("reflect", "symmetric"),
                                          ("reflect101", "reflect"), ("wrap", "wrap"),
                                          ("constant", "constant")])
@pytest.mark.parametrize("shape", [(1, 2), (3, 7)])
def test_pad_as_numpy(border, mode, shape):
    """By many times the image's size, too."""
    plane = RNG.random(shape)
    assert np.array_equal(oracle.pad(plane, 4, 40, border), np.pad(plane, ((4, 4), (40, 40)), mode))


@pytest.mark.parametrize("border, mode", [("replicate", "nearest"), ("reflect", "reflect"),
                                          ("reflect101", "mirror"), ("wrap", "wrap")])
def test_convolve_as_scipy(border, mode):
    pixels = RNG.normal(size=(19, 23, 2)).astype(np.float32)
    matrix = RNG.integers(-9, 10, (5, 7)).astype(float) + 0.25
    expected = oracle.filtered(pixels, [("convolve", {"kernel": matrix, "scale": 3.0})], border)
    for band in range(2):
        other = ndimage.correlate(pixels[:, :, band].astype(float), matrix / 3, mode=mode)
        assert np.allclose(expected.value[:, :, band], other, rtol=1e-6, atol=1e-6)


def test_gaussian_by_hand():
    assert len(oracle.gaussian_taps(sigma=1.1)) == 9
    assert len(oracle.gaussian_taps()) == 7
    assert len(oracle.gaussian_taps(size=5)) == 5
    taps = oracle.gaussian_taps(size=3)  # sigma 0.8
    assert taps[0] / taps[1] == pytest.approx(np.exp(-1 / (2 * 0.64)))
    assert taps.sum() == pytest.approx(1)


def test_sobel_by_hand():
    ramp = np.tile(np.arange(8, dtype=np.uint8) * 10, (5, 1))[:, :, None]
    x = oracle.filtered(ramp, [("sobel", {"output": "x"})]).value[2, 3, 0]
    y = oracle.filtered(ramp, [("sobel", {"output": "y"})]).value[2, 3, 0]
    assert (x, y) == (128 + 80, 128)  # brighter to the right: positive
    y = oracle.filtered(ramp.swapaxes(0, 1), [("sobel", {"output": "y"})]).value[3, 2, 0]
    assert y == 208  # brighter downwards: positive
    assert oracle.filtered(ramp, [("sobel", {})]).value[2, 3, 0] == 80


def test_direction_by_hand():
    ramp = np.tile(np.arange(8, dtype=np.uint8) * 10, (5, 1))[:, :, None]

    def at(pixels, *place):
        return oracle.filtered(pixels, [("sobel", {"output": "direction"})]).value[place][0]

    assert at(ramp, 2, 3) == 128  # to the right: 0, the middle
    assert at(ramp[:, ::-1], 2, 3) == 255  # to the left: pi
    assert at(ramp.swapaxes(0, 1), 3, 2) == 191  # down: pi / 2
    assert at(np.full((3, 3, 1), 7, np.uint8), 1, 1) == 128
    floats = ramp.swapaxes(0, 1)[::-1].astype(np.float32)
    assert at(floats, 3, 2) == pytest.approx(-np.pi / 2)


def test_direction_is_a_circle():
    ramp = np.tile(np.arange(8, 0, -1).astype(np.uint8) * 10, (5, 1))[:, :, None]
    expected = oracle.filtered(ramp, [("sobel", {"output": "direction"})])
    answer = expected.value.astype(np.uint8)
    assert answer[2, 3, 0] == 255
    answer[2, 3, 0] = 0
    oracle.check(answer, expected)
    answer[2, 3, 0] = 3
    with pytest.raises(AssertionError):
        oracle.check(answer, expected)


def test_unsharp_by_hand():
    row = np.array([[[10], [50], [110]]], np.uint8)
    t = np.exp(-1 / 0.18)  # sigma 0.3: radius 1
    blurred = (50 + t * 120) / (1 + 2 * t)

    def middle(pixels, alpha=False, **parameters):
        return oracle.filtered(pixels, [("unsharp", {"sigma": 0.3, **parameters})],
                               alpha=alpha).value[0, 1]

    assert middle(row, amount=10)[0] == np.rint(50 + 10 * (50 - blurred))
    assert middle(row, amount=10, threshold=0.01)[0] == 50
    pairs = np.array([[[0.2, 1], [0.5, 0.5], [1, 0]]], np.float32)
    blurred = (0.25 + t * 0.2) / (0.5 + t)
    assert middle(pairs, True, amount=2) == pytest.approx([0.5 + 2 * (0.5 - blurred), 0.5])


def test_bilateral_by_hand():
    row = np.array([[[0.2], [0.5], [1]]], np.float32)
    one = ("bilateral", {"radius": 1, "sigma_space": 1, "sigma_range": 0.5})
    a, b, c = np.exp(-0.5 - 0.18), np.exp(-0.5 - 0.5), 1 + 2 * np.exp(-0.5)
    assert oracle.filtered(row, [one]).value[0, 1, 0] == pytest.approx(
        (0.5 * c + 0.2 * a + b) / (a + b + c))
    pairs = np.array([[[0.2, 1], [0.5, 0.5], [1, 0]]], np.float32)
    assert oracle.filtered(pairs, [one], alpha=True).value[0, 1] == pytest.approx(
        [(0.25 * c + 0.2 * a) / (0.5 * c + a), (0.5 * c + a) / (a + b + c)])


def test_rounds_to_even_and_saturates():
    row = np.array([0, 1, 2, 3, 254, 255], np.uint8).reshape(1, 6, 1)

    def ran(**parameters):
        return list(oracle.filtered(row, [("convolve", {"kernel": [[1]], **parameters})])
                    .value[0, :, 0])

    assert ran(offset=0.5) == [0, 2, 2, 4, 254, 255]
    assert ran(offset=-2) == [0, 0, 0, 1, 252, 253]
    assert ran(scale=0.5) == [0, 2, 4, 6, 255, 255]


def test_alpha_weighs_colour():
    pixels = np.array([[[200, 0], [100, 255], [40, 255]]], np.uint8)
    out = oracle.filtered(pixels, [("convolve", {"kernel": [[1, 1, 1]]})], alpha=True).value
    assert list(out[0, 1]) == [70, 170]  # the transparent pixel's colour counts for nothing
    assert list(out[0, 0]) == [100, 85]
    gone = oracle.filtered(np.array([[[200, 0]]], np.uint8), [("box", {})], alpha=True)
    assert list(gone.value[0, 0]) == [0, 0]
    edge = oracle.filtered(pixels, [("sobel", {})], alpha=True).value
    assert list(edge[0, :, 1]) == [0, 255, 255]  # a derivative keeps alpha


def test_chain_rounds_between():
    pixels = np.array([[[0], [1], [0]]], np.uint8)
    halved = ("convolve", {"kernel": [[1]], "scale": 4.0})
    doubled = ("convolve", {"kernel": [[1]], "scale": 0.25})
    assert list(oracle.filtered(pixels, [halved, doubled]).value[0, :, 0]) == [0, 0, 0]


class TestCheckNotices:
    """check() passes right results and fails slightly wrong ones."""
    noise = RNG.integers(0, 256, (60, 80, 3), dtype=np.uint8)
    chain = [("gaussian", {"sigma": 1.4}), ("sobel", {})]

    def answer(self, filters, border="reflect101"):
        return oracle.filtered(self.noise, filters, border).value.astype(np.uint8)

    @pytest.mark.parametrize("wrong, border, shift", [
        ([("gaussian", {"sigma": 1.41}), ("sobel", {})], "reflect101", 0),
        ([("sobel", {}), ("gaussian", {"sigma": 1.4})], "reflect101", 0),
        ([("gaussian", {"sigma": 1.4}), ("sobel", {"output": "x"})], "reflect101", 0),
        (chain, "reflect", 0), (chain, "reflect101", 1)])
    def test_wrong(self, wrong, border, shift):
        expected = oracle.filtered(self.noise, self.chain, "reflect101")
        oracle.check(self.answer(self.chain), expected)
        with pytest.raises(AssertionError):
            oracle.check(np.roll(self.answer(wrong, border), shift, axis=1), expected)

    def test_one_sample_off_by_two(self):
        answer = self.answer(self.chain[:1])
        answer[30, 40, 1] += 2
        with pytest.raises(AssertionError, match=r"\(30, 40, 1\)"):
            oracle.check(answer, oracle.filtered(self.noise, self.chain[:1], "reflect101"))

    def test_all_off_by_one(self):
        answer = self.answer(self.chain[:1]) + 1
        with pytest.raises(AssertionError, match="rounded wrongly"):
            oracle.check(answer, oracle.filtered(self.noise, self.chain[:1], "reflect101"))

    def test_unpremultiplied(self):
        pixels = np.concatenate([self.noise, self.noise[::-1, :, :1]], axis=2)
        plain = oracle.filtered(pixels, self.chain[:1]).value.astype(np.uint8)
        with pytest.raises(AssertionError):
            oracle.check(plain, oracle.filtered(pixels, self.chain[:1], alpha=True))

    def test_float_noise(self):
        pixels = RNG.normal(size=(50, 50, 1)).astype(np.float32)
        expected = oracle.filtered(pixels, self.chain[:1])
        oracle.check(expected.value * (1 + 1e-7), expected)
        with pytest.raises(AssertionError):
            oracle.check(expected.value * (1 + 1e-3), expected)
