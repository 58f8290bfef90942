"""Pixels to filter, and what must become of them."""
import itertools
import zlib

import numpy as np

import oracle

BANDS = [(1, False), (2, False), (3, False), (4, False), (2, True), (4, True)]
BORDER_VALUES = {"u8": 77, "u16": 40000, "f32": -0.75}


def seed_of(*things):
    return zlib.crc32(repr(things).encode())


def pairwise(*factors):
    """Combinations in which every two values of different factors meet: faults show in a pair."""
    left = {((i, a), (j, b)) for i, j in itertools.combinations(range(len(factors)), 2)
            for a, b in itertools.product(range(len(factors[i])), range(len(factors[j])))}
    pairs = {one: set(itertools.combinations(enumerate(one), 2))
             for one in itertools.product(*(range(len(factor)) for factor in factors))}
    chosen = []
    while left:
        best = max(pairs, key=lambda one: len(left & pairs[one]))
        left -= pairs[best]
        chosen.append(tuple(factor[at] for factor, at in zip(factors, best)))
    return chosen


def random_pixels(seed, width, height, bands, kind, alpha=False):
    """Noise over the whole range; alpha with fully transparent places, some of them large."""
    rng = np.random.default_rng(seed)
    shape = (height, width, bands)
    if kind == "f32":
        pixels = rng.normal(size=shape).astype(np.float32)
        if alpha:
            pixels[:, :, -1] = rng.random(shape[:2])
    else:
        pixels = rng.integers(0, int(oracle.FULL_SCALE[kind]) + 1, shape, oracle.TYPES[kind])
    if alpha:
        pixels[:, :, -1][rng.random(shape[:2]) < 0.2] = 0
        pixels[: height // 3, : width // 2, -1] = 0
    return pixels


def smooth(width, height, bands, kind="u8"):
    """Returns an image that lossy formats keep well: gradients and waves."""
    y, x = np.ogrid[0:height, 0:width]
    planes = [0.5 + 0.4 * np.sin(x / (17.0 + 9 * b) + b) * np.cos(y / (23.0 - 4 * b))
              for b in range(bands)]
    planes = np.stack(planes, axis=2) * oracle.FULL_SCALE[kind]
    return (planes if kind == "f32" else np.rint(planes)).astype(oracle.TYPES[kind])


def visible(pixels, alpha=True):
    """As the service answers: no colour where alpha is 0."""
    return np.where(pixels[:, :, -1:] == 0, 0, pixels) if alpha else pixels


def agrees(service, pixels, filters, border="replicate", border_value=None, alpha=False,
           **more):
    """Filters the pixels by HTTP and by the oracle; returns the answer."""
    options = {"border": border, "border_value": border_value, "alpha": 1 if alpha else None,
               **more}
    answer = service.filter(pixels, filters, **options)
    assert answer.status == 200, (filters, pixels.shape, answer)
    expected = oracle.filtered(pixels, filters, border, border_value, alpha, **more)
    got = answer.pixels
    assert got.dtype == pixels.dtype
    try:
        oracle.check(got, expected)
    except AssertionError as error:
        named = [(name, {k: "…" if np.size(v) > 50 else v for k, v in parameters.items()})
                 for name, parameters in filters]
        raise AssertionError(f"{named} of {pixels.shape} {pixels.dtype} {options}: {error}"
                             ) from None
    return got
