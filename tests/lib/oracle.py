"""The filters' results, in float64, written from their definitions and from nothing else.

filtered() returns the pixels that the service should answer with, and two bounds of how far from
them an answer may be:

hard   no sample may be farther away. One filter: 1 for u8 and u16 (more only where float32 itself
       cannot do better, which takes gains in the thousands for u8), for f32 1e-5 of the largest
       magnitude in the neighbourhood, times the filter's gain. In a chain an intermediate sample
       that is 1 off is enlarged by the gain of what follows; the bound follows each sample.
tight  what float32 arithmetic explains: 0 for a sample whose exact value is clear of the rounding
       boundary. Nearly all samples of an answer must keep to it, so that a wrong coefficient
       cannot hide behind the hard bound. The number of others follows from MISROUNDED of each step."""
import functools
import itertools
from dataclasses import dataclass

import numpy as np
import scipy  # loads its parts when they are first used

TYPES = {"u8": np.uint8, "u16": np.uint16, "f32": np.float32}
FULL_SCALE = {"u8": 255.0, "u16": 65535.0, "f32": 1.0}
MIDPOINT = {"u8": 128.0, "u16": 32768.0, "f32": 0.0}
PADDING = {"replicate": "edge", "reflect": "symmetric", "reflect101": "reflect", "wrap": "wrap"}
BORDERS = (*PADDING, "constant", "crop")

FLOAT32_ERROR = 1e-6  # part of gain * magnitude: a sum of some hundred terms in float32
F32_TOLERANCE = 1e-5  # promise for f32
# Shares of samples that may be rounded wrongly by a filter: kernels for bytes sum in 16 bits.
MISROUNDED = {"u8": 0.01, "u16": 0.002, "f32": 0.002}
BILATERAL_LEAST = 1.1 * 2.0 ** -100  # weights below may count as 0


def type_name(dtype):
    return {np.dtype(t): name for name, t in TYPES.items()}[np.dtype(dtype)]


# Borders ------------------------------------------------------------------------------------------

def pad(planes, radius_y, radius_x, border, constant=0.0):
    """Returns planes with radius rows and columns around each; crop adds none."""
    if border == "crop":
        return planes
    widths = [(0, 0)] * (planes.ndim - 2) + [(radius_y, radius_y), (radius_x, radius_x)]
    if border == "constant":
        return np.pad(planes, widths, constant_values=constant)
    return np.pad(planes, widths, PADDING[border])


def border_pixel(border_value, bands, alpha, kind):
    """Returns one value for each band: one given is for all colours, a missing alpha is opaque."""
    values = [0.0] if border_value is None else list(np.atleast_1d(border_value))
    colours = bands - alpha
    if len(values) == bands and (len(values) > 1 or not alpha):
        return values
    if len(values) == 1:
        values = values * colours
    assert len(values) == colours
    return values + [FULL_SCALE[kind]] * alpha


# Filters ------------------------------------------------------------------------------------------

class Operation:
    """The arithmetic of a filter: correlate(padded) returns the results where the whole window lies
    inside, magnified(error) the most that errors of the padded samples can come to."""
    radius_y = radius_x = 0
    gain = 1.0  # by which a sample can be enlarged
    spread = None  # results that one sample off by 1 can tip over a boundary; None: the gain
    smoothing = False  # alpha weighs the samples
    offset, signed = 0.0, False  # signed: stored around the middle of the range
    circular = False
    approximation = 0.0  # promise for the method, as a share of the range

    def sized(self, height, width):
        """Is told the size of the image."""


@dataclass
class Linear(Operation):
    """Correlations with matrices, one after another: a row and a column serve as their product."""
    matrices: list
    offset: float = 0.0
    smoothing: bool = True
    signed: bool = False
    approximation: float = 0.0

    def __post_init__(self):
        self.gain = np.prod([np.abs(matrix).sum() for matrix in self.matrices])
        self.spread = np.prod([np.minimum(np.abs(matrix), 1).sum() for matrix in self.matrices])
        self.radius_y, self.radius_x = sum(np.array(matrix.shape) // 2 for matrix in self.matrices)

    def correlate(self, padded):
        return functools.reduce(correlate, self.matrices, padded)

    def magnified(self, error):
        if error.min() == error.max():  # as the errors of rounding are
            return inner(error, self) * self.gain
        return np.maximum(functools.reduce(correlate, map(np.abs, self.matrices), error), 0)


@dataclass
class Gradient(Operation):
    smooth: tuple
    output: str = "magnitude"
    radius_y = radius_x = 1
    spread = 8.0

    def __post_init__(self):
        matrix = np.outer(self.smooth, (-1.0, 0.0, 1.0))
        self.X, self.Y = Linear([matrix]), Linear([matrix.T])
        self.gain = np.abs(matrix).sum() * (np.sqrt(2) if self.output == "magnitude" else 1)
        self.circular = self.output == "direction"
        self.signed = self.output in ("x", "y")

    def correlate(self, padded):
        return self.joined(self.X.correlate(padded), self.Y.correlate(padded))

    def magnified(self, error):
        return self.joined(self.X.magnified(error), self.Y.magnified(error))

    def joined(self, x, y):
        return {"x": x, "y": y, "magnitude": np.hypot(x, y)}[self.output]


@dataclass
class Rank(Operation):
    radius: int = 1
    window: str = "square"
    percentile: float = 50

    def __post_init__(self):
        r = self.radius_y = self.radius_x = self.radius
        j, i = np.mgrid[-r:r + 1, -r:r + 1]
        self.footprint = i * i + j * j <= r * r if self.window == "circle" else abs(i) <= r
        self.rank = int(np.floor(self.percentile / 100 * (self.footprint.sum() - 1) + 0.5))

    def correlate(self, padded):
        return inner(scipy.ndimage.rank_filter(padded, self.rank, footprint=self.footprint, mode="nearest"), self)

    def magnified(self, error):
        return inner(scipy.ndimage.maximum_filter(error, footprint=self.footprint, mode="nearest"), self)


def element(size, shape):
    """Returns the places of a window as OpenCV's getStructuringElement() has them."""
    r = size // 2
    sides = {"rectangle": lambda j: r, "cross": lambda j: 0 if j else r,
             "ellipse": lambda j: int(np.rint(np.sqrt(r * r - j * j)))}[shape]
    return np.array([[abs(i) <= sides(j) for i in range(-r, r + 1)] for j in range(-r, r + 1)])


MORPHOLOGIES = {"erode": "grey_erosion", "dilate": "grey_dilation", "open": "grey_opening", "close": "grey_closing",
                "tophat": "white_tophat", "blackhat": "black_tophat", "morphgradient": "morphological_gradient"}


@dataclass
class Morphology(Operation):
    """Extremes of a window: min, max, one of the other, and what is taken from what."""
    name: str
    size: int = 3
    shape: str = "rectangle"

    def __post_init__(self):
        self.footprint = element(self.size, self.shape)
        once = self.name in ("erode", "dilate", "morphgradient")
        self.radius_y = self.radius_x = self.size // 2 * (1 if once else 2)

    def correlate(self, padded):
        filtered = getattr(scipy.ndimage, MORPHOLOGIES[self.name])
        return inner(filtered(padded, footprint=self.footprint, mode="nearest"), self)

    def magnified(self, error):
        size = (2 * self.radius_y + 1, 2 * self.radius_x + 1)
        terms = 2 if self.name in ("tophat", "blackhat", "morphgradient") else 1
        return terms * inner(scipy.ndimage.maximum_filter(error, size=size, mode="nearest"), self)


@dataclass
class Curve(Operation):
    """A function of each sample by itself, in shares of full scale; of exact samples only. gain: its
    largest slope, or of f32 how much larger than a sample its result may be."""
    function: object
    gain: float
    full = 1.0

    def correlate(self, padded):
        return self.function(padded / self.full) * self.full

    def magnified(self, error):
        assert not error.any(), "a curve comes first in a chain"
        return error


@dataclass
class ByColour(Operation):
    """A curve for each colour."""
    curves: list

    def __post_init__(self):
        self.gain = max(c.gain for c in self.curves)


@dataclass
class Mix(Operation):
    """matrix @ (red, green, blue, alpha, full scale); grey is three colours, no alpha opaque."""
    matrix: np.ndarray

    def __post_init__(self):
        self.gain = np.abs(self.matrix[:, :4]).sum(axis=1).max()

    def applied(self, colours, mask, kind):
        three = colours * 3 if len(colours) == 1 else colours
        full = exactly(np.full_like(three[0].value, FULL_SCALE[kind]))
        inputs = [*three, mask or full, full]
        rows = [*self.matrix[:len(colours)], *self.matrix[3:len(self.matrix) if mask else 3]]
        error = F32_TOLERANCE if kind == "f32" else FLOAT32_ERROR

        return [Estimate(sum(w * i.value for w, i in zip(row, inputs)),
                         sum(abs(w) * (i.errors + error * np.abs(i.value))
                             for w, i in zip(row, inputs)))
                for row in rows]


@dataclass
class Pixelate(Operation):
    """The mean of each block, counted from the image's first pixel; not with border=crop."""
    size: int = 16
    smoothing = True

    def __post_init__(self):
        self.radius_y = self.radius_x = self.size - 1

    def correlate(self, padded):
        r, size = self.size - 1, self.size
        height, width = (n - 2 * r for n in padded.shape)
        # The last blocks of a row and a column have samples beyond the image, too.
        ends = [r + -(-n // size) * size for n in (height, width)]
        assert all(end <= n for end, n in zip(ends, padded.shape))
        sums = padded[r:ends[0], r:ends[1]].astype(np.float64)
        for axis, end in enumerate(ends):
            sums = np.add.reduceat(sums, np.arange(0, end - r, size), axis)
        means = np.repeat(np.repeat(sums / size ** 2, size, 0), size, 1)
        return means[:height, :width]

    magnified = correlate


def sinc_window(lobes):
    return lambda x: np.where(np.abs(x) < lobes, np.sinc(x) * np.sinc(x / lobes), 0)


def cubic(b, c):
    """Returns a kernel of the family of Mitchell and Netravali."""
    near = np.array([12 - 9 * b - 6 * c, -18 + 12 * b + 6 * c, 0, 6 - 2 * b]) / 6
    far = np.array([-b - 6 * c, 6 * b + 30 * c, -12 * b - 48 * c, 8 * b + 24 * c]) / 6
    return lambda x: np.select([np.abs(x) < 1, np.abs(x) < 2],
                               [np.polyval(near, np.abs(x)), np.polyval(far, np.abs(x))], 0)


KERNELS = {  # radius, and values
    "lanczos3": (3, sinc_window(3)), "lanczos2": (2, sinc_window(2)), "mitchell": (2, cubic(1 / 3, 1 / 3)),
    "catmullrom": (2, cubic(0, 0.5)), "triangle": (1, lambda x: np.maximum(1 - np.abs(x), 0)),
    "box": (0.5, lambda x: (1e-7 - 0.5 < x) & (x <= 0.5 + 1e-7)), "nearest": (0, None)}
GRAVITIES = {"center": (0.5, 0.5), "north": (0.5, 0), "northeast": (1, 0), "east": (1, 0.5), "southeast": (1, 1),
             "south": (0.5, 1), "southwest": (0, 1), "west": (0, 0.5), "northwest": (0, 0)}


@dataclass
class Resize(Operation):
    """A weighted mean of the samples around each of the new ones, by a kernel in each direction."""
    width: float = None
    height: float = None
    fit: str = "inside"
    gravity: str = "center"
    enlarge: int = 0
    kernel: str = "lanczos3"
    smoothing = True

    def sized(self, height, width):
        sides = [given if isinstance(given, (int, type(None))) else max(1, int(np.floor(side * float(given[:-1]) / 100 + 0.5)))
                 for given, side in ((self.height, height), (self.width, width))]
        ratios = [given / side for given, side in zip(sides, (height, width)) if given]
        scale = min(max(ratios) if self.fit == "cover" else min(ratios), np.inf if self.enlarge else 1)
        scales = [scale, scale]
        if self.fit == "fill":
            scales = [min(given / side if given else 1, np.inf if self.enlarge else 1)
                      for given, side in zip(sides, (height, width))]
        self.matrices, self.radii = [], []
        for side, given, part, at in zip((height, width), sides, scales, GRAVITIES[self.gravity][::-1]):
            made = max(1, int(np.floor(side * part + 0.5)))
            first, step = 0.0, side / made
            if self.fit == "cover":
                made = min(made, given)
                first, step = max(0, side - made / scale) * at, 1 / scale
                first = np.floor(first) if scale == 1 else first
            self.add_matrix(side, made, first, step)
        self.radius_y, self.radius_x = self.radii
        self.gain = np.prod([np.abs(matrix).sum(1).max() for matrix in self.matrices])

    def add_matrix(self, side, made, first, step):
        """A row of weights for each new sample, of the padded samples."""
        reach, values = KERNELS[self.kernel]
        stretch = max(step, 1)
        radius = int(np.ceil(reach * stretch)) + 1
        centres = (first + (np.arange(made) + 0.5) * step)[:, None]
        samples = np.floor(centres).astype(int) + np.arange(-radius, radius + 1)
        if values:
            weights = values((samples + 0.5 - centres) / stretch).astype(np.float64)
        else:
            weights = (samples == np.floor(centres + 1e-7)).astype(np.float64)
        weights[(samples < -radius) | (samples >= side + radius)] = 0
        rows, taps = np.nonzero(weights)
        weights /= weights.sum(1, keepdims=True)
        places = rows, samples[rows, taps] + radius
        self.matrices.append(scipy.sparse.csr_matrix((weights[rows, taps], places), (made, side + 2 * radius)))
        self.radii.append(radius)

    def correlate(self, padded):
        return self.matrices[0] @ padded @ self.matrices[1].T

    def magnified(self, error):
        return np.abs(self.matrices[0]) @ error @ np.abs(self.matrices[1]).T


@dataclass
class Unsharp(Operation):
    """in + amount (in - blurred), unless the difference is below the threshold (in shares of full
    scale). Alpha is kept, though it weighs the blur."""
    blur: Linear
    amount: float
    threshold: float

    def __post_init__(self):
        self.radius_y, self.radius_x = self.blur.radius_y, self.blur.radius_x
        self.gain = 1 + 2 * self.amount


@dataclass
class Threshold(Operation):
    """Full scale where a sample is above the value, or by more than -offset above the blur around it,
    which is rounded first; all in shares of full scale. Alpha is kept, though it weighs the blur."""
    method: str = "value"
    value: float = 0.5
    size: int = 11
    offset: float = 0.0

    def __post_init__(self):
        taps = np.full(self.size, 1 / self.size) if self.method == "mean" else \
            gaussian_taps(size=self.size)
        self.blur = None if self.method == "value" else separable(taps)
        self.limit = self.value if self.method == "value" else -self.offset
        self.radius_y = self.radius_x = self.blur.radius_x if self.blur else 0


@dataclass
class Bilateral(Operation):
    radius: int = 4
    sigma_space: float = 3.0
    sigma_range: float = 0.1  # in shares of full scale
    smoothing = True

    def __post_init__(self):
        self.radius_y = self.radius_x = self.radius


def correlate(padded, matrix):
    """sum of m[j][i] * in(y + j, x + i), where the whole window lies inside."""
    rows, columns = matrix.shape
    height, width = padded.shape[0] - rows + 1, padded.shape[1] - columns + 1
    if matrix.size > 150 and np.isfinite(padded).all():  # a spectrum would spread infinity
        return scipy.signal.oaconvolve(padded, matrix[::-1, ::-1], mode="valid")
    out = np.zeros((height, width))
    for j, i in zip(*np.nonzero(matrix)):
        out += matrix[j, i] * padded[j:j + height, i:i + width]
    return out


def separable(row, column=None, **more):
    column = row if column is None else column
    return Linear([row[None], column[:, None]], **more)


# Filters by their names ---------------------------------------------------------------------------

LARGE_SIGMA, LARGE_SIGMA_ERROR = 8, 6e-6


def large_sigma_reach(sigma):
    """Returns the reach of the Gaussian of a large sigma; docs/architecture.md, "Large sigma"."""
    stride = next(s for most, s in ((12, 3), (30, 4), (50, 5), (80, 6), (100, 8)) if sigma <= most)
    half = 3 * (stride - 1)
    spare = -(2 * half + 1) % stride
    radius = int(np.ceil(4.65 * np.sqrt((sigma / stride) ** 2 - 1 + 1 / stride ** 2)))
    return radius * stride + 2 * half + spare - spare // 2


def gaussian_taps(sigma=None, size=None):
    if size is None:
        sigma = 1.0 if sigma is None else sigma
        radius = int(np.ceil(3 * sigma)) if sigma <= LARGE_SIGMA else large_sigma_reach(sigma)
    else:
        radius = (size - 1) // 2
        sigma = 0.3 * ((size - 1) / 2 - 1) + 0.8 if sigma is None else sigma
    d = np.arange(-radius, radius + 1)
    taps = np.exp(-d * d / (2 * sigma * sigma))
    return taps / taps.sum()


def cut_taps(sigma):
    """Returns a Gaussian that is cut at 3 sigma, however large."""
    return gaussian_taps(sigma, 2 * int(np.ceil(3 * sigma)) + 1)


def gaussian(sigma=None, size=None, sigma_x=None, sigma_y=None):
    """Above a sigma of 8 approximated, unless a size or sigmas of the directions cut it."""
    if sigma_x is None and sigma_y is None:
        taps = gaussian_taps(sigma, size)
        large = size is None and sigma is not None and sigma > LARGE_SIGMA
        return separable(taps, approximation=LARGE_SIGMA_ERROR if large else 0.0)

    def directed(own):
        one = sigma if own is None else own
        return cut_taps(1.0 if one is None else one) if size is None else gaussian_taps(one, size)
    return separable(directed(sigma_x), directed(sigma_y))


def dog(sigma1=1.0, sigma2=1.6):
    """The first blur less the second."""
    taps = [cut_taps(sigma) for sigma in (sigma1, sigma2)]
    most = max(map(len, taps))
    first, second = (np.pad(np.outer(t, t), (most - len(t)) // 2) for t in taps)
    return Linear([first - second], smoothing=False, signed=True)


def box(size=3):
    return separable(np.full(size, 1 / size))


def laplacian_of_gaussian(sigma=1.4):
    r = int(np.ceil(4 * sigma))
    y, x = np.mgrid[-r:r + 1, -r:r + 1]
    square = (x * x + y * y) / sigma ** 2
    g = np.exp(-square / 2)
    g /= g.sum()
    matrix = square * g - (square * g).sum() * g
    return Linear([matrix], smoothing=False, signed=True)


def motion(length=9, angle=0):
    """Pixels count by how near they are to a line, up to a distance of 1."""
    half, along = (length - 1) / 2, np.exp(-1j * np.deg2rad(angle))  # y down
    rx, ry = (int(np.ceil(abs(e) * half - 1e-9)) for e in (along.real, along.imag))
    y, x = np.mgrid[-ry:ry + 1, -rx:rx + 1]
    turned = (x + 1j * y) / along  # the line lies on the real axis
    beyond = np.maximum(np.abs(turned.real) - half, 0)
    weights = np.maximum(0, 1 - np.hypot(beyond, turned.imag))
    return Linear([weights / weights.sum()])


def convolve(kernel, scale=None, offset=0.0):
    matrix = np.atleast_2d(np.asarray(kernel, dtype=np.float64))
    total, gain = matrix.sum(), np.abs(matrix).sum()
    smoothing = abs(total) > 1e-9 * gain
    if scale is None:
        scale = total if smoothing else 1.0
    return Linear([matrix / scale], offset=offset, smoothing=smoothing)


def laplacian(connectivity=4):
    matrix = {4: [[0, 1, 0], [1, -4, 1], [0, 1, 0]],
              8: [[1, 1, 1], [1, -8, 1], [1, 1, 1]]}[connectivity]
    return Linear([np.array(matrix, dtype=np.float64)], smoothing=False, signed=True)


def emboss():
    return Linear([np.array([[-2.0, -1, 0], [-1, 1, 1], [0, 1, 2]])], smoothing=False)


def sharpen(amount=1.0):
    taps = gaussian_taps(size=3)
    matrix = -amount * np.outer(taps, taps)
    matrix[1, 1] += 1 + amount
    return Linear([matrix])


def unsharp(sigma=1.0, amount=1.0, threshold=0.0):
    return Unsharp(gaussian(sigma), amount, threshold)


def looked_up(entries):
    """Returns a curve that is linear between entries at equal distances."""
    entries = np.asarray(entries, dtype=np.float64)
    places = np.linspace(0, 1, len(entries))
    return Curve(lambda v: np.interp(v, places, entries),
                 np.abs(np.diff(entries)).max() * (len(entries) - 1))


def lut(table=None, points=None, max=255):  # pylint: disable=redefined-builtin
    if points is not None:
        x, y = np.asarray(points, dtype=np.float64).T / max
        return looked_up(np.interp(np.linspace(0, 1, 16 * 255 + 1), x, y))
    rows = np.atleast_2d(np.asarray(table, dtype=np.float64)) / max
    return looked_up(rows[0]) if len(rows) == 1 else ByColour([looked_up(row) for row in rows])


def linear(gain=1.0, bias=0.0):
    curves = [Curve(lambda v, g=g, b=b: g * v + b, abs(g) + abs(b))
              for g, b in np.broadcast(gain, bias)]
    return curves[0] if len(curves) == 1 else ByColour(curves)


def levels(black=0.0, white=1.0, gamma=1.0):
    return Curve(lambda v: np.clip((v - black) / (white - black), 0, 1) ** (1 / gamma),
                 1 / (white - black))


def grayscale(weights="bt601"):
    weights = {"bt601": [0.299, 0.587, 0.114], "bt709": [0.2126, 0.7152, 0.0722],
               "mean": [1 / 3] * 3}[weights]
    return Mix(np.array([[*weights, 0, 0]] * 3))


def colormatrix(matrix):
    matrix = np.asarray(matrix, dtype=np.float64)
    return Mix(matrix if len(matrix) == 4 else np.insert(matrix, 3, 0, axis=1))


def clahe(band, kind, tiles=8, clip=2.0):
    """Returns a band by contrast-limited adaptive histogram equalization, as OpenCV's CLAHE; floats as if
    they were 16-bit, linear between two entries of a table."""
    n = 256 if kind == "u8" else 65536
    share = np.clip(band.astype(float) / FULL_SCALE[kind], 0, 1) * (n - 1)
    sides = np.array(band.shape)
    padding = np.where((sides % tiles).any(), tiles - sides % tiles, 0)
    counted = np.pad(np.rint(share).astype(int), [(0, side) for side in padding], "reflect")
    height, width = np.array(counted.shape) // tiles
    tables = np.empty((tiles, tiles, n))
    for i, j in np.ndindex(tiles, tiles):
        tile = counted[i * height:(i + 1) * height, j * width:(j + 1) * width]
        counts = np.bincount(tile.ravel(), minlength=n)
        if clip > 0:
            limit = max(int(clip * tile.size / n), 1)
            whole, rest = divmod(int(np.maximum(counts - limit, 0).sum()), n)
            counts = np.minimum(counts, limit) + whole
            counts[np.arange(rest) * (n // max(rest, 1))] += 1
        tables[i, j] = np.rint(np.cumsum(counts).astype(np.float32) * (np.float32(n - 1) / np.float32(tile.size)))

    def around(length, side):
        before, part = np.divmod(np.arange(length) / side - 0.5, 1)
        return np.clip([before, before + 1], 0, tiles - 1).astype(int), part

    (above, down), (left, across) = around(sides[0], height), around(sides[1], width)
    entry = np.minimum(share.astype(int), n - 2)

    def mixed(entry):
        corners = [[tables[above[i][:, None], left[j], entry] for j in range(2)] for i in range(2)]
        rows = [corners[i][0] + across * (corners[i][1] - corners[i][0]) for i in range(2)]
        return rows[0] + down[:, None] * (rows[1] - rows[0])

    done = mixed(entry) + (share - entry) * (mixed(entry + 1) - mixed(entry))
    return np.rint(done) if kind != "f32" else done / (n - 1)


OPERATIONS = {
    "gaussian": gaussian, "box": box, "motion": motion, "dog": dog,
    "highpass": lambda sigma=3.0: dog(0.1, sigma), "log": laplacian_of_gaussian,
    "convolve": convolve, "laplacian": laplacian, "emboss": emboss, "sharpen": sharpen,
    "unsharp": unsharp, "bilateral": Bilateral, "threshold": Threshold,
    "sobel": functools.partial(Gradient, (1.0, 2.0, 1.0)),
    "scharr": functools.partial(Gradient, (3.0, 10.0, 3.0)),
    "prewitt": functools.partial(Gradient, (1.0, 1.0, 1.0)),
    "median": Rank, "rank": Rank,
    **{name: functools.partial(Morphology, name) for name in MORPHOLOGIES},
    "invert": lambda: Curve(lambda v: 1 - v, 1.0), "linear": linear, "levels": levels, "lut": lut,
    "gamma": lambda gamma=2.2: Curve(lambda v: np.maximum(v, 0) ** (1 / gamma), 10.0),
    "grayscale": grayscale, "colormatrix": colormatrix, "pixelate": Pixelate, "resize": Resize}


# Filtering ----------------------------------------------------------------------------------------

@dataclass
class Estimate:
    """Samples (height, width, bands) with the errors that they may have: hard, and tight."""
    value: np.ndarray
    errors: np.ndarray  # (2, height, width, bands)
    period: np.ndarray = None  # period of each band's directions; None: none
    misrounded: float = MISROUNDED["u8"]  # the share of samples that may be

    def __post_init__(self):
        if self.period is None:
            self.period = np.full(self.value.shape[2:], np.inf)

    def each(self, function, *others):
        """Returns an estimate with the function applied to each part, and that of others."""
        return Estimate(*(function(*(getattr(one, part) for one in (self, *others)))
                          for part in ("value", "errors")))


def largest_around(padded, op):
    """Returns the largest magnitude in each sample's window."""
    size = (2 * op.radius_y + 1, 2 * op.radius_x + 1)
    return inner(scipy.ndimage.maximum_filter(np.abs(padded), size=size, mode="constant"), op)


def float_error(padded, op, kind):
    """Returns the possible error of a sum in float32."""
    if kind == "f32" and isinstance(op, Resize):
        return F32_TOLERANCE * op.magnified(np.abs(padded))
    if kind == "f32":
        share = F32_TOLERANCE * max(1.0, op.gain) + 2 * op.approximation
        return share * largest_around(padded, op)
    return (FLOAT32_ERROR * op.gain + op.approximation) * np.abs(padded).max()


def filter_plain(planes, op, kind):
    """Returns one padded band, filtered."""
    if isinstance(op, Curve):
        op.full = FULL_SCALE[kind]
    value = op.correlate(planes.value) + op.offset + MIDPOINT[kind] * op.signed
    return Estimate(value, magnified(planes, op) + float_error(planes.value, op, kind))


def magnified(planes, op):
    return np.stack([op.magnified(error) for error in planes.errors])


def inner(planes, op):
    """Returns padded planes without their padding."""
    return planes[..., op.radius_y:planes.shape[-2] - op.radius_y,
                  op.radius_x:planes.shape[-1] - op.radius_x]


def filter_direction(planes, op, kind):
    """atan2(y, x) over the type's range. The shorter the gradient, the less is known of its angle."""
    x, y = op.X.correlate(planes.value) + 0.0, op.Y.correlate(planes.value) + 0.0
    length, full = np.hypot(x, y), FULL_SCALE[kind]
    noise = F32_TOLERANCE * op.gain * largest_around(planes.value, op) if kind == "f32" else 0.0
    off = np.hypot(magnified(planes, op.X), magnified(planes, op.Y)) + noise
    with np.errstate(invalid="ignore", divide="ignore"):
        angle = np.where(off == 0, 0, np.where(off < length, np.arcsin(np.minimum(off / length, 1)),
                                               np.pi))
    value = np.arctan2(y, x)
    if kind == "f32":
        return Estimate(value, angle + F32_TOLERANCE * np.pi)
    turn = full / (2 * np.pi)
    return Estimate(value * turn + full / 2, angle * turn + FLOAT32_ERROR * full)


def filter_blurred(colour, plain, mask, blur, kind):
    """Returns a band blurred, weighed by the mask; `plain` where that comes to nothing."""
    if mask is None:
        return filter_plain(colour, blur, kind)
    total = filter_plain(mask, blur, kind)
    blurred = filter_premultiplied(colour, mask, blur, kind, total)
    nothing = total.value <= 0
    return Estimate(np.where(nothing, plain.value, blurred.value),
                    np.where(nothing, 0, blurred.errors))


def filter_threshold(colour, mask, op, kind):
    plain = colour.each(lambda part: inner(part, op))
    base = (filter_blurred(colour, plain, mask, op.blur, kind) if op.blur
            else exactly(np.zeros_like(plain.value)))
    full = FULL_SCALE[kind]
    stored = np.rint if kind != "f32" else lambda v: v

    def above(v, b):
        return v - stored(b) > op.limit * full

    highest = above(plain.value + plain.errors, base.value - base.errors)
    lowest = above(plain.value - plain.errors, base.value + base.errors)
    return Estimate(full * above(plain.value, base.value), full * (highest != lowest))


def filter_unsharp(colour, mask, op, kind):
    plain = colour.each(lambda part: inner(part, op))
    blurred = filter_blurred(colour, plain, mask, op.blur, kind)
    difference = plain.value - blurred.value
    limit = op.threshold * FULL_SCALE[kind]
    flat = np.abs(difference) < limit
    value = np.where(flat, plain.value, plain.value + op.amount * difference)
    off = plain.errors + blurred.errors
    # Samples next to the threshold may be on either side of it.
    near = (op.threshold > 0) & (np.abs(np.abs(difference) - limit)
                                 <= off + 1e-5 * FULL_SCALE[kind])
    return Estimate(value, plain.errors + op.amount * np.where(near, np.abs(difference) + off,
                                                               np.where(flat, 0, off)))


def filter_bilateral(colours, mask, op, kind):
    """Returns all bands at once, as they have the same weights; of exact samples only."""
    r, full = op.radius, FULL_SCALE[kind]
    centre = np.stack([inner(c.value, op) for c in colours])
    height, width = centre.shape[1:]
    assert not any(c.errors.any() for c in colours), "a bilateral filter comes first in a chain"
    weights, weighed, sums = np.zeros((height, width)), np.zeros((height, width)), 0.0
    lost = np.zeros((height, width))  # part of `weighed` that may count as 0
    for dy in range(-r, r + 1):
        for dx in range(-r, r + 1):
            if dx * dx + dy * dy > r * r:
                continue
            here = np.s_[r + dy:r + dy + height, r + dx:r + dx + width]
            there = np.stack([c.value[here] for c in colours])
            e2 = (((there - centre) / full) ** 2).sum(axis=0)
            w = np.exp(-(dx * dx + dy * dy) / (2 * op.sigma_space ** 2)
                       - e2 / (2 * op.sigma_range ** 2))
            a = 1.0 if mask is None else mask.value[here]
            weights += w
            weighed += w * a
            lost += np.where(w < BILATERAL_LEAST, w * np.abs(a), 0)
            sums = sums + w * a * there
    colour = np.where(weighed > 0, sums / np.where(weighed > 0, weighed, 1), 0)
    # Among transparent pixels all weights may be too small for float32, or of large exponents.
    faint = np.log(np.maximum(full / np.maximum(weighed, 1e-300), 1)) * (mask is not None)
    least = weighed - lost
    spread = max(c.value.max() for c in colours) - min(c.value.min() for c in colours)
    slack = np.where((weighed > 0) & (least < 1e-30 * full), np.inf, faint * FLOAT32_ERROR * full
                     + spread * lost / np.maximum(least, 1e-300)) if mask is not None else 0 * faint
    done = [Estimate(value, np.stack(2 * [float_error(c.value, op, kind) + slack]))
            for value, c in zip(colour, colours)]
    if mask is not None:
        done.append(Estimate(weighed / weights, np.full((2, height, width),
                                                        float_error(mask.value, op, kind))))
    return done


def filter_premultiplied(colour, alpha, op, kind, total):
    """Returns one band of colour, weighted by alpha; total is alpha filtered."""
    product = Estimate(colour.value * alpha.value, np.abs(colour.value) * alpha.errors
                       + np.abs(alpha.value) * colour.errors + alpha.errors * colour.errors)
    weighted = filter_plain(product, op, kind)
    weighted.value = weighted.value - op.offset
    nothing = np.abs(total.value) <= 1e-12 * op.gain * FULL_SCALE[kind]
    # Unless every term is 0, float32 may find a little more or less than that.
    chance = nothing & (op.magnified(np.abs(alpha.value)) > 0)
    divisor = np.where(nothing, 1, total.value)
    value = np.where(nothing, 0, weighted.value / divisor)
    least = np.abs(divisor) - total.errors
    errors = (weighted.errors + np.abs(value) * total.errors) / np.where(least > 0, least, np.inf)
    errors = np.where(nothing & (total.errors < 1e-3), 0, np.where(least > 0, errors, np.inf))
    errors = np.where(chance, np.inf, errors)
    # If alpha comes to (nearly) nothing, no colour may be reported instead of the quotient.
    vague = (total.value < (0.5 if kind != "f32" else 0) + total.errors[0]) & ~nothing
    if op.offset:
        vague |= nothing
    value = value + op.offset
    return Estimate(value, np.where(vague, np.maximum(errors, np.abs(value)), errors))


def quantised(estimate, kind):
    """Rounded to nearest even and saturated; the hard bound then grows by the 1 that is allowed."""
    if kind == "f32":
        return Estimate(estimate.value.astype(np.float32).astype(np.float64),
                        estimate.errors + 1e-6 * np.abs(estimate.value))
    full = FULL_SCALE[kind]

    def stored(v):
        return np.fmin(np.fmax(np.rint(v), 0), full)  # not a number becomes 0

    value, (hard, tight) = stored(estimate.value), estimate.errors
    tight = np.maximum(stored(estimate.value + tight) - value,
                       value - stored(estimate.value - tight))
    return Estimate(value, np.stack([np.minimum(np.floor(hard) + 1, full), tight]))


def filter_bands(colours, mask, op, kind):
    """Returns the bands of colour, and alpha where the filter changes that."""
    if isinstance(op, Bilateral):
        return filter_bilateral(colours, mask, op, kind)
    if isinstance(op, ByColour):
        return [filter_plain(c, one, kind) for c, one in zip(colours, op.curves)]
    if isinstance(op, Mix):
        return op.applied(colours, mask, kind)
    if isinstance(op, Threshold):
        return [filter_threshold(c, mask, op, kind) for c in colours]
    if isinstance(op, Unsharp):
        return [filter_unsharp(c, mask, op, kind) for c in colours]
    if op.circular:
        return [filter_direction(c, op, kind) for c in colours]
    if not mask or not op.smoothing:
        return [filter_plain(c, op, kind) for c in colours]
    total = filter_plain(mask, op, kind)
    total.value = total.value - op.offset
    return [filter_premultiplied(c, mask, op, kind, total) for c in colours] + [total]


def filter_once(image, op, border, constants, alpha, kind, quantised=quantised):
    """Applies one filter to all bands of an estimate."""
    bands = image.value.shape[2]

    def padded(band):
        radii = op.radius_y, op.radius_x
        return Estimate(pad(image.value[..., band], *radii, border, constants[band]),
                        pad(image.errors[..., band], *radii, border))

    colours = [padded(b) for b in range(bands - alpha)]
    mask = padded(bands - 1) if alpha else None
    done = [quantised(e, kind) for e in filter_bands(colours, mask, op, kind)]
    if len(done) < bands:
        done.append(mask.each(lambda part: inner(part, op)))
    done = done[0].each(lambda *bands: np.stack(bands, axis=-1), *done[1:])
    if op.circular:
        done.period[:bands - alpha] = 2 * np.pi if kind == "f32" else FULL_SCALE[kind]
    return done


# Channels -----------------------------------------------------------------------------------------

# JPEG's YCbCr (BT.601, full range); chroma is stored around the middle.
TO_YCBCR = np.array([[0.299, 0.587, 0.114],
                     [-0.299 / 1.772, -0.587 / 1.772, 0.886 / 1.772],
                     [0.701 / 1.402, -0.587 / 1.402, -0.114 / 1.402]])
FROM_YCBCR = np.linalg.inv(TO_YCBCR)


def mixed(image, matrix):
    """Returns the first three bands times a matrix; the others as they are."""
    def one(part, m):
        return np.concatenate([part[..., :3] @ m.T, part[..., 3:]], axis=-1)
    return Estimate(one(image.value, matrix), one(image.errors, np.abs(matrix)))


def inside(image, op, border):
    """Returns the result of a filter that changes nothing."""
    y, x = (op.radius_y, op.radius_x) if border == "crop" else (0, 0)
    height, width = image.value.shape[:2]
    return image.each(lambda part: part[..., y:height - y, x:width - x, :])


def with_bands(image, other, bands):
    """Returns the image with these bands from one of only them."""
    def one(a, b):
        a = a.copy()
        a[..., bands] = b
        return a
    done = image.each(one, other)
    done.period[bands] = other.period
    return done


def only(image, bands):
    """Returns an image of these bands."""
    done = image.each(lambda part: part[..., bands])
    done.period = image.period[bands]
    return done


def filter_ycbcr(image, calls, border, constants, kind):
    """Filters [(operation, "luma" or "chroma"), …] on YCbCr; rounded only when RGB again."""
    middle = np.array([0.0, 1, 1] + [0.0] * (image.value.shape[2] - 3)) * MIDPOINT[kind]
    constants = TO_YCBCR @ constants[:3] + middle[:3]
    ycbcr = mixed(image, TO_YCBCR)
    ycbcr.value = ycbcr.value + middle
    for op, channels in calls:
        assert np.isinf(ycbcr.period).all(), "a direction comes last in a chain"
        bands = [0] if channels == "luma" else [1, 2]
        changed = filter_once(only(ycbcr, bands), op, border, constants[bands], 0, kind,
                              lambda e, kind: e)
        ycbcr = with_bands(inside(ycbcr, op, border), changed, bands)
        image = inside(image, op, border)
    ycbcr.value = ycbcr.value - middle
    done = mixed(ycbcr, FROM_YCBCR)
    error = (F32_TOLERANCE if kind == "f32" else FLOAT32_ERROR) * 4 * np.abs(image.value).max()
    done = quantised(Estimate(done.value, done.errors + error), kind)
    others = list(range(3, image.value.shape[2]))
    return with_bands(done, only(image, others), others)


def filter_channels(image, op, border, constants, alpha, kind, channels):
    """Applies one filter to the samples that `channels` names; alpha weighs all colours."""
    bands = image.value.shape[2]
    op.sized(*image.value.shape[:2])
    assert np.isinf(image.period).all(), "a direction comes last in a chain"
    if channels in ("all", "color"):
        done = filter_once(image, op, border, constants, alpha, kind)
        if channels == "all":
            return done
        changed = list(range(bands - alpha))
        return with_bands(inside(image, op, border), only(done, changed), changed)
    changed = [{"alpha": bands - 1, "red": 0, "green": 1, "blue": 2}[channels]]
    if isinstance(op, (ByColour, Mix)):
        done = filter_once(image, op, border, constants, alpha, kind)
        return with_bands(image, only(done, changed), changed)
    done = filter_once(only(image, changed), op, border, [constants[c] for c in changed], 0, kind)
    return with_bands(inside(image, op, border), done, changed)


def filtered(pixels, filters, border="replicate", border_value=None, alpha=False, roi=None,
             target=None, channels="all", luma=(), chroma=()):
    """Returns the estimate for pixels (height, width, bands) after filters [(name, parameters), …]:
    of the part roi (x, y, width, height), placed at target (x, y) of the pixels."""
    kind = type_name(pixels.dtype)
    whole = exactly(pixels)
    image = whole
    if roi is not None:
        x, y, width, height = roi
        image = exactly(pixels[y:y + height, x:x + width])
    constants = border_pixel(border_value, pixels.shape[2], int(alpha), kind)
    calls = [(*call, c) for calls, c in ((filters, channels), (luma, "luma"), (chroma, "chroma"))
             for call in calls]
    calls = [(OPERATIONS[name](**parameters), which) for name, parameters, which in calls]
    for ycbcr, some in itertools.groupby(calls, lambda call: call[1] in ("luma", "chroma")):
        if ycbcr:
            image = filter_ycbcr(image, list(some), border, constants, kind)
            continue
        for op, which in some:
            image = filter_channels(image, op, border, constants, int(alpha), kind, which)
    if target is not None:
        (x, y), (height, width) = target, image.value.shape[:2]
        there = np.s_[..., y:y + height, x:x + width, :]
        whole.value[there], whole.errors[there] = image.value, image.errors
        whole.period, image = image.period, whole
    image.misrounded = misrounded([op for op, _ in calls], kind)
    return image


def stretched(mask, width, height):
    """Returns weights, 0 to 1, for an image of this size: a mask (height, width) or (…, 3) by its
    luma, between the centres of whose pixels they are linear."""
    shares = np.clip(np.nan_to_num(mask / FULL_SCALE[type_name(mask.dtype)]), 0, 1)
    if shares.ndim == 3:
        shares = shares @ [0.299, 0.587, 0.114]
    for axis, count in ((0, height), (1, width)):
        there = shares.shape[axis]
        at = np.clip((np.arange(count) + 0.5) * there / count - 0.5, 0, there - 1)
        before = np.floor(at).astype(int)
        share = np.expand_dims(at - before, 1 - axis)
        shares = (shares.take(before, axis) * (1 - share)
                  + shares.take(np.minimum(before + 1, there - 1), axis) * share)
    return shares


def blended(pixels, result, weights, alpha=False):
    """Returns an estimate of pixels mixed with their result, of which the weights say how much;
    colours count by their alphas, unless those are nothing."""
    kind = type_name(pixels.dtype)
    before, after, share = pixels.astype(float), result.astype(float), weights[:, :, None]
    parts = np.repeat(share, pixels.shape[2], 2)
    if alpha:
        total = share * after[:, :, -1:] + (1 - share) * before[:, :, -1:]
        part = np.divide(share * after[:, :, -1:], total, out=share.copy(), where=total > 0)
        parts[:, :, :-1] = part
    mixed = np.where(parts == 1, after, np.where(parts == 0, before, parts * after + (1 - parts) * before))
    noise = 1e-6 * (np.abs(before) + np.abs(after)) * ((share > 0) & (share < 1))
    return quantised(Estimate(mixed, np.stack([noise, noise])), kind)


def misrounded(ops, kind):
    """Returns the share of samples that may be rounded wrongly by filters one after another."""
    share = 0.0
    for op in ops:
        share = min(1.0, share * max(1.0, op.spread or op.gain) + MISROUNDED[kind])
    return share


def exactly(pixels):
    return Estimate(pixels.astype(np.float64), np.zeros((2, *pixels.shape)))


def check(answer, expected):
    """Raises AssertionError if the answer's pixels are not the expected ones."""
    assert answer.shape == expected.value.shape, (answer.shape, expected.value.shape)
    got = answer.astype(np.float64)
    assert np.isfinite(got).all(), "not all samples are finite"
    difference = np.abs(got - expected.value)
    difference = np.minimum(difference, np.abs(expected.period - difference))
    hard, tight = expected.errors
    excess = difference - hard
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    assert excess[worst] <= 0, (
        f"sample (row, column, band) {tuple(map(int, worst))} is {got[worst]:.9g}, "
        f"expected {expected.value[worst]:.9g} ± {hard[worst]:.3g}; "
        f"{np.count_nonzero(excess > 0)} of {got.size} samples are out of bounds")
    rounded = np.count_nonzero(difference > tight)
    assert rounded <= max(2, expected.misrounded * got.size), (
        f"{rounded} of {got.size} samples are rounded wrongly, largest difference "
        f"{difference.max():.3g}")
