"""The oracle notices errors. (By hand results are worked out in test_results.py.)"""
import numpy as np
import pytest

import oracle

RNG = np.random.default_rng(1)


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
