"""The oracle notices errors. (By hand results are worked out in test_results.py.)"""
import numpy as np
import pytest

import oracle

RNG = np.random.default_rng(1)
NOISE = RNG.integers(0, 256, (60, 80, 3), dtype=np.uint8)
ALPHA = np.concatenate([NOISE, NOISE[::-1, :, :1]], axis=2)
FLOATS = RNG.normal(size=(50, 50, 1)).astype(np.float32)
RAMP = np.tile(np.arange(8, 0, -1).astype(np.uint8) * 10, (5, 1))[:, :, None]
BLUR, EDGES, DIRECTION = ("gaussian", {"sigma": 1.4}), ("sobel", {}), ("sobel", {"output": "direction"})


def answer(pixels, *filters, border="reflect101"):
    value = oracle.filtered(pixels, filters, border).value
    return value if pixels.dtype == np.float32 else value.astype(np.uint8)


def changed(pixels, *where, by):
    pixels[where] += by
    return pixels


OFF = [(lambda: answer(NOISE, ("gaussian", {"sigma": 1.41}), EDGES), NOISE, [BLUR, EDGES], ""),
       (lambda: answer(NOISE, EDGES, BLUR), NOISE, [BLUR, EDGES], ""),
       (lambda: answer(NOISE, BLUR, ("sobel", {"output": "x"})), NOISE, [BLUR, EDGES], ""),
       (lambda: answer(NOISE, BLUR, EDGES, border="reflect"), NOISE, [BLUR, EDGES], ""),
       (lambda: np.roll(answer(NOISE, BLUR, EDGES), 1, axis=1), NOISE, [BLUR, EDGES], ""),
       (lambda: changed(answer(NOISE, BLUR), 30, 40, 1, by=2), NOISE, [BLUR], r"\(30, 40, 1\)"),
       (lambda: answer(NOISE, BLUR) + 1, NOISE, [BLUR], "rounded wrongly"),
       (lambda: answer(ALPHA, BLUR), ALPHA, [BLUR], ""),
       (lambda: answer(FLOATS, BLUR) * (1 + 1e-3), FLOATS, [BLUR], ""),
       (lambda: changed(answer(RAMP, DIRECTION), 2, 3, 0, by=4), RAMP, [DIRECTION], r"\(2, 3, 0\)")]


@pytest.mark.parametrize("wrong, pixels, filters, says", OFF, ids=range(len(OFF)))
def test_wrong(wrong, pixels, filters, says):
    with pytest.raises(AssertionError, match=says):
        oracle.check(wrong(), oracle.filtered(pixels, filters, "reflect101", alpha=pixels is ALPHA))


def test_right():
    oracle.check(answer(NOISE, BLUR, EDGES), oracle.filtered(NOISE, [BLUR, EDGES], "reflect101"))
    oracle.check(answer(FLOATS, BLUR) * (1 + 1e-7), oracle.filtered(FLOATS, [BLUR], "reflect101"))


def test_direction_is_a_circle():
    right = answer(RAMP, DIRECTION)
    assert right[2, 3, 0] == 255
    right[2, 3, 0] = 0
    oracle.check(right, oracle.filtered(RAMP, [DIRECTION], "reflect101"))
