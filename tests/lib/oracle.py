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
import itertools
from dataclasses import dataclass, field

import numpy as np
from scipy import fft, linalg, ndimage, signal

TYPES = {"u8": np.uint8, "u16": np.uint16, "f32": np.float32}
FULL_SCALE = {"u8": 255.0, "u16": 65535.0, "f32": 1.0}
MIDPOINT = {"u8": 128.0, "u16": 32768.0, "f32": 0.0}
BORDERS = ("replicate", "reflect", "reflect101", "wrap", "constant", "crop")

FLOAT32_ERROR = 1e-6  # part of gain * magnitude: a sum of some hundred terms in float32
F32_TOLERANCE = 1e-5  # promise for f32
# Shares of samples that may be rounded wrongly by a filter: kernels for bytes sum in 16 bits.
MISROUNDED = {"u8": 0.01, "u16": 0.002, "f32": 0.002}
BILATERAL_LEAST = 1.1 * 2.0 ** -100  # weights below may count as 0


def type_name(dtype):
    return {np.dtype(t): name for name, t in TYPES.items()}[np.dtype(dtype)]


# Borders ------------------------------------------------------------------------------------------

def index_map(n, before, after, border):
    """Returns the source in [0, n) of each place from -before to n + after - 1."""
    i = np.arange(-before, n + after)
    if border == "replicate":
        return np.clip(i, 0, n - 1)
    if border == "wrap":
        return i % n
    if border == "reflect":  # cba|abc|cba: period 2n
        i = i % (2 * n)
        return np.where(i < n, i, 2 * n - 1 - i)
    if border == "reflect101":  # cb|abc|ba: period 2n - 2
        if n == 1:
            return np.zeros_like(i)
        i = i % (2 * n - 2)
        return np.where(i < n, i, 2 * n - 2 - i)
    raise ValueError(border)


def pad(plane, radius_y, radius_x, border, constant=0.0):
    """Returns a plane with radius rows and columns around it; crop adds none."""
    if border == "crop":
        return plane
    if border == "constant":
        return np.pad(plane, ((radius_y, radius_y), (radius_x, radius_x)),
                      constant_values=constant)
    rows = index_map(plane.shape[0], radius_y, radius_y, border)
    columns = index_map(plane.shape[1], radius_x, radius_x, border)
    return plane[np.ix_(rows, columns)]


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

@dataclass
class Linear:
    """A correlation, as a matrix or as the row and column whose product is the matrix."""
    matrix: np.ndarray = None
    row: np.ndarray = None
    column: np.ndarray = None
    offset: float = 0.0
    smoothing: bool = True
    signed: bool = False  # stored around the middle of the range
    approximation: float = 0.0  # promise for the method, as a share of the range

    def __post_init__(self):
        if self.matrix is None:
            self.gain = np.abs(self.row).sum() * np.abs(self.column).sum()
            self.radius_y, self.radius_x = len(self.column) // 2, len(self.row) // 2
        else:
            self.gain = np.abs(self.matrix).sum()
            self.radius_y, self.radius_x = (side // 2 for side in self.matrix.shape)

    def correlate(self, padded):
        if self.matrix is not None:
            return correlate_matrix(padded, self.matrix)
        return correlate_separable(padded, self.row, self.column)

    def magnified(self, error):
        """Returns the most that errors of the padded samples can come to."""
        if error.min() == error.max():  # as the errors of rounding are
            return np.full([n - 2 * r for n, r in
                            zip(error.shape, (self.radius_y, self.radius_x))], error[0, 0] * self.gain)
        if self.matrix is not None:
            return np.maximum(correlate_matrix(error, np.abs(self.matrix)), 0)
        return np.maximum(correlate_separable(error, np.abs(self.row), np.abs(self.column)), 0)


@dataclass
class Gradient:
    output: str
    smooth: tuple = (1.0, 2.0, 1.0)
    smoothing: bool = False
    radius_y: int = 1
    radius_x: int = 1
    gain: float = field(init=False)

    @property
    def circular(self):
        return self.output == "direction"

    def __post_init__(self):
        matrix = np.outer(self.smooth, (-1.0, 0.0, 1.0))
        self.X, self.Y = Linear(matrix=matrix), Linear(matrix=matrix.T)
        self.gain = np.abs(matrix).sum() * (np.sqrt(2) if self.output == "magnitude" else 1)

    def correlate(self, padded):
        return self.joined(self.X.correlate(padded), self.Y.correlate(padded))

    def magnified(self, error):
        return self.joined(self.X.magnified(error), self.Y.magnified(error))

    def joined(self, x, y):
        return {"x": x, "y": y, "magnitude": np.hypot(x, y)}[self.output]


@dataclass
class Dog:
    """The first blur less the second."""
    first: Linear
    second: Linear
    smoothing: bool = False
    signed: bool = True
    offset: float = 0.0
    gain: float = 2.0

    def __post_init__(self):
        self.radius_y = self.radius_x = max(self.first.radius_x, self.second.radius_x)

    def within(self, blur, padded):
        """Returns the part that a blur with a smaller radius needs."""
        margin = self.radius_x - blur.radius_x
        return padded[margin:padded.shape[0] - margin, margin:padded.shape[1] - margin]

    def correlate(self, padded):
        first, second = (b.correlate(self.within(b, padded)) for b in (self.first, self.second))
        return first - second

    def magnified(self, error):
        return sum(b.magnified(self.within(b, error)) for b in (self.first, self.second))


def element(size, shape):
    """Returns the places of a window, as OpenCV's getStructuringElement() of an odd square has
    them."""
    r = size // 2
    sides = {"rectangle": lambda j: r, "cross": lambda j: 0 if j else r,
             "ellipse": lambda j: int(np.rint(np.sqrt(r * r - j * j)))}[shape]
    return np.array([[abs(i) <= sides(j) for i in range(-r, r + 1)] for j in range(-r, r + 1)])


@dataclass
class Rank:
    radius: int = 1
    window: str = "square"
    percentile: float = 50
    smoothing: bool = False
    signed: bool = False
    offset: float = 0.0
    gain: float = 1.0

    def __post_init__(self):
        r = self.radius_y = self.radius_x = self.radius
        j, i = np.mgrid[-r:r + 1, -r:r + 1]
        self.footprint = i * i + j * j <= r * r if self.window == "circle" else abs(i) <= r
        self.rank = int(np.floor(self.percentile / 100 * (self.footprint.sum() - 1) + 0.5))

    def correlate(self, padded):
        return inner(ndimage.rank_filter(padded, self.rank, footprint=self.footprint,
                                         mode="nearest"), self)

    def magnified(self, error):
        return inner(ndimage.maximum_filter(error, footprint=self.footprint, mode="nearest"), self)


@dataclass
class Morphology:
    """Extremes of a window: min, max, one of the other, and what is taken from what."""
    name: str
    size: int = 3
    shape: str = "rectangle"
    smoothing: bool = False
    signed: bool = False
    offset: float = 0.0
    gain: float = 1.0

    def __post_init__(self):
        self.margin = self.size // 2
        self.footprint = element(self.size, self.shape)
        once = self.name in ("erode", "dilate", "morphgradient")
        self.radius_y = self.radius_x = self.margin * (1 if once else 2)

    def extreme(self, padded, largest):
        m = self.margin
        find = ndimage.maximum_filter if largest else ndimage.minimum_filter
        found = find(padded, footprint=self.footprint, mode="nearest")
        return found[m:found.shape[0] - m, m:found.shape[1] - m]

    def correlate(self, padded):
        def both(largest_first):
            return self.extreme(self.extreme(padded, largest_first), not largest_first)
        return {"erode": lambda: self.extreme(padded, False),
                "dilate": lambda: self.extreme(padded, True),
                "open": lambda: both(False), "close": lambda: both(True),
                "tophat": lambda: inner(padded, self) - both(False),
                "blackhat": lambda: both(True) - inner(padded, self),
                "morphgradient": lambda: self.extreme(padded, True) - self.extreme(padded, False),
                }[self.name]()

    def magnified(self, error):
        size = (2 * self.radius_y + 1, 2 * self.radius_x + 1)
        terms = 2 if self.name in ("tophat", "blackhat", "morphgradient") else 1
        return terms * inner(ndimage.maximum_filter(error, size=size, mode="nearest"), self)


@dataclass
class Curve:
    """A function of each sample by itself, in shares of full scale; of exact samples only. gain: its
    largest slope, or of f32 how much larger than a sample its result may be."""
    function: object
    gain: float
    smoothing: bool = False
    signed: bool = False
    offset: float = 0.0
    radius_y: int = 0
    radius_x: int = 0
    full: float = 1.0

    def correlate(self, padded):
        return self.function(padded / self.full) * self.full

    def magnified(self, error):
        assert not error.any(), "a curve comes first in a chain"
        return error


@dataclass
class ByColour:
    """A curve for each colour."""
    curves: list
    smoothing: bool = False
    radius_y: int = 0
    radius_x: int = 0

    def __post_init__(self):
        self.gain = max(c.gain for c in self.curves)


@dataclass
class Mix:
    """out = matrix @ (red, green, blue, alpha, full scale); a single colour counts as three, a missing
    alpha as opaque."""
    matrix: np.ndarray
    smoothing: bool = False
    radius_y: int = 0
    radius_x: int = 0

    def __post_init__(self):
        self.gain = np.abs(self.matrix[:, :4]).sum(axis=1).max()

    def applied(self, colours, mask, kind):
        three = colours * 3 if len(colours) == 1 else colours
        none = exactly(np.zeros_like(three[0].value))
        full = Estimate(none.value + FULL_SCALE[kind], none.hard, none.tight)
        inputs = [*three, mask or full, full]
        rows = [*self.matrix[:len(colours)], *self.matrix[3:len(self.matrix) if mask else 3]]
        error = F32_TOLERANCE if kind == "f32" else FLOAT32_ERROR

        def made(row):
            def total(part, weights):
                return sum(w * getattr(i, part) for w, i in zip(weights, inputs))
            noise = error * sum(abs(w) * np.abs(i.value) for w, i in zip(row, inputs))
            return Estimate(total("value", row), total("hard", np.abs(row)) + noise,
                            total("tight", np.abs(row)) + noise)
        return [made(row) for row in rows]


def table(entries):
    """Returns a curve that is looked up, linear between entries at equal distances."""
    entries = np.asarray(entries, dtype=np.float64)
    places = np.linspace(0, 1, len(entries))
    return Curve(lambda v: np.interp(v, places, entries),
                 np.abs(np.diff(entries)).max() * (len(entries) - 1))


def lut(table_=None, points=None, max=255):  # pylint: disable=redefined-builtin
    if points is not None:
        x, y = np.asarray(points, dtype=np.float64).T / max
        return table(np.interp(np.linspace(0, 1, 16 * 255 + 1), x, y))
    rows = np.atleast_2d(np.asarray(table_, dtype=np.float64)) / max
    return table(rows[0]) if len(rows) == 1 else ByColour([table(row) for row in rows])


def mix(name, parameters):
    if name == "grayscale":
        weights = {"bt601": [0.299, 0.587, 0.114], "bt709": [0.2126, 0.7152, 0.0722],
                   "mean": [1 / 3] * 3}[parameters.get("weights", "bt601")]
        return Mix(np.array([[*weights, 0, 0]] * 3))
    matrix = np.asarray(parameters["matrix"], dtype=np.float64)
    return Mix(matrix if len(matrix) == 4 else np.insert(matrix, 3, 0, axis=1))


def curve(name, parameters):
    """Returns the curve of a filter."""
    if name == "invert":
        return Curve(lambda v: 1 - v, 1.0)
    if name == "linear":
        pairs = np.broadcast(parameters.get("gain", 1.0), parameters.get("bias", 0.0))
        curves = [Curve(lambda v, g=gain, b=bias: g * v + b, abs(gain) + abs(bias))
                  for gain, bias in pairs]
        return curves[0] if len(curves) == 1 else ByColour(curves)
    gamma = parameters.get("gamma", 2.2 if name == "gamma" else 1.0)
    if name == "gamma":
        return Curve(lambda v: np.maximum(v, 0) ** (1 / gamma), 10.0)
    black, white = parameters.get("black", 0.0), parameters.get("white", 1.0)
    return Curve(lambda v: np.clip((v - black) / (white - black), 0, 1) ** (1 / gamma),
                 1 / (white - black))


@dataclass
class Pixelate:
    """The mean of each block, counted from the image's first pixel; not with border=crop."""
    size: int
    smoothing: bool = True
    signed: bool = False
    offset: float = 0.0
    gain: float = 1.0

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


@dataclass
class Unsharp:
    """in + amount (in - blurred), unless the difference is below the threshold (in shares of full
    scale)."""
    blur: Linear
    amount: float
    threshold: float
    smoothing: bool = False  # alpha is kept, though it weighs the blur

    def __post_init__(self):
        self.radius_y, self.radius_x = self.blur.radius_y, self.blur.radius_x
        self.gain = 1 + 2 * self.amount


@dataclass
class Threshold:
    """Full scale where a sample is above the value, or by more than -offset above the blur around it,
    which is rounded first; all in shares of full scale."""
    method: str = "value"
    value: float = 0.5
    size: int = 11
    offset: float = 0.0
    smoothing: bool = False  # alpha is kept, though it weighs the blur
    gain: float = 1.0

    def __post_init__(self):
        taps = np.full(self.size, 1 / self.size) if self.method == "mean" else \
            gaussian_taps(size=self.size)
        self.blur = None if self.method == "value" else Linear(row=taps, column=taps)
        self.limit = self.value if self.method == "value" else -self.offset
        self.radius_y = self.radius_x = self.blur.radius_x if self.blur else 0


@dataclass
class Bilateral:
    radius: int
    sigma_space: float
    sigma_range: float  # in shares of full scale
    smoothing: bool = True
    gain: float = 1.0

    def __post_init__(self):
        self.radius_y = self.radius_x = self.radius


def correlate_matrix(padded, matrix):
    """sum of m[j][i] * in(y + j, x + i), where the whole window lies inside."""
    rows, columns = matrix.shape
    height, width = padded.shape[0] - rows + 1, padded.shape[1] - columns + 1
    if matrix.size > 150:
        return signal.oaconvolve(padded, matrix[::-1, ::-1], mode="valid")
    out = np.zeros((height, width))
    for j, i in zip(*np.nonzero(matrix)):
        out += matrix[j, i] * padded[j:j + height, i:i + width]
    return out


def correlate_separable(padded, row, column):
    return correlate_rows(correlate_rows(padded, row).T, column).T


def correlate_rows(padded, taps):
    """Correlates each row with the taps, where they all lie inside."""
    radius, width = len(taps) // 2, padded.shape[1] - len(taps) + 1
    # For rows that are mostly border a band matrix makes only the wanted part; many taps are
    # quicker by their spectrum. Both would also multiply zero by infinity.
    mostly_border, many = width < 4 * radius, len(taps) > 60
    if (mostly_border or many) and np.isfinite(padded).all():
        if mostly_border:
            zeros = np.zeros(width - 1)
            band = linalg.toeplitz(np.r_[taps, zeros], np.r_[taps[0], zeros])
            return padded @ band
        size = fft.next_fast_len(padded.shape[1], real=True)
        spectrum = fft.rfft(padded, size, axis=1) * fft.rfft(taps[::-1], size)
        return fft.irfft(spectrum, size, axis=1)[:, 2 * radius:padded.shape[1]]
    return ndimage.correlate1d(padded, taps, axis=1, mode="constant")[:, radius:radius + width]


LARGE_SIGMA, LARGE_SIGMA_ERROR = 8, 6e-6


def large_sigma_reach(sigma):
    """Returns the reach of the Gaussian of a large sigma; docs/architecture.md, "Large sigma"."""
    stride = next(s for most, s in ((12, 3), (30, 4), (50, 5), (80, 6), (100, 8)) if sigma <= most)
    half = 3 * (stride - 1)
    spare = -(2 * half + 1) % stride
    radius = int(np.ceil(4.65 * np.sqrt((sigma / stride) ** 2 - 1 + 1 / stride ** 2)))
    return radius * stride + 2 * half + spare - spare // 2


def blur(sigma=None, size=None):
    """Returns a Gaussian; above a sigma of 8, and without a size, the service approximates the
    whole one."""
    taps = gaussian_taps(sigma, size)
    large = size is None and sigma is not None and sigma > LARGE_SIGMA
    return Linear(row=taps, column=taps, approximation=LARGE_SIGMA_ERROR if large else 0.0)


def directed_blur(sigma=None, size=None, sigma_x=None, sigma_y=None):
    """Returns a Gaussian whose directions have sigmas of their own; cut at its window."""
    def taps(own):
        one = own if own is not None else sigma
        if size is None:
            one = 1.0 if one is None else one
            return gaussian_taps(one, 2 * int(np.ceil(3 * one)) + 1)
        return gaussian_taps(one, size)
    return Linear(row=taps(sigma_x), column=taps(sigma_y))


def laplacian_of_gaussian(sigma):
    r = int(np.ceil(4 * sigma))
    y, x = np.mgrid[-r:r + 1, -r:r + 1]
    square = (x * x + y * y) / sigma ** 2
    g = np.exp(-square / 2)
    g /= g.sum()
    matrix = square * g - (square * g).sum() * g
    return Linear(matrix=matrix, smoothing=False, signed=True)


def motion(length, angle):
    """Pixels count by how near they are to a line, up to a distance of 1."""
    half, along = (length - 1) / 2, np.exp(-1j * np.deg2rad(angle))  # y down
    rx, ry = (int(np.ceil(abs(e) * half - 1e-9)) for e in (along.real, along.imag))
    y, x = np.mgrid[-ry:ry + 1, -rx:rx + 1]
    turned = (x + 1j * y) / along  # the line lies on the real axis
    beyond = np.maximum(np.abs(turned.real) - half, 0)
    weights = np.maximum(0, 1 - np.hypot(beyond, turned.imag))
    return Linear(matrix=weights / weights.sum())


def cut_blur(sigma):
    """Returns a Gaussian that is cut at 3 sigma, however large."""
    taps = gaussian_taps(sigma, 2 * int(np.ceil(3 * sigma)) + 1)
    return Linear(row=taps, column=taps)


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


GRADIENTS = {"sobel": (1.0, 2.0, 1.0), "scharr": (3.0, 10.0, 3.0), "prewitt": (1.0, 1.0, 1.0)}

MORPHOLOGIES = ("erode", "dilate", "open", "close", "tophat", "blackhat", "morphgradient")


def operation(name, parameters):
    """Returns the arithmetic of a filter with these parameters."""
    if name == "gaussian" and ("sigma_x" in parameters or "sigma_y" in parameters):
        return directed_blur(**parameters)
    if name == "gaussian":
        return blur(**parameters)
    if name == "highpass":
        return Dog(cut_blur(0.1), cut_blur(parameters.get("sigma", 3.0)))
    if name == "log":
        return laplacian_of_gaussian(parameters.get("sigma", 1.4))
    if name == "motion":
        return motion(parameters.get("length", 9), parameters.get("angle", 0))
    if name == "box":
        taps = np.full(parameters.get("size", 3), 1.0)
        return Linear(row=taps / taps.size, column=taps / taps.size)
    if name == "convolve":
        matrix = np.atleast_2d(np.asarray(parameters["kernel"], dtype=np.float64))
        total, gain = matrix.sum(), np.abs(matrix).sum()
        smoothing = abs(total) > 1e-9 * gain
        scale = parameters.get("scale", total if smoothing else 1.0)
        return Linear(matrix=matrix / scale, offset=parameters.get("offset", 0.0),
                      smoothing=smoothing)
    if name in GRADIENTS:
        return Gradient(parameters.get("output", "magnitude"), GRADIENTS[name])
    if name == "laplacian":
        matrix = {4: [[0, 1, 0], [1, -4, 1], [0, 1, 0]],
                  8: [[1, 1, 1], [1, -8, 1], [1, 1, 1]]}[parameters.get("connectivity", 4)]
        return Linear(matrix=np.array(matrix, dtype=np.float64), smoothing=False, signed=True)
    if name == "dog":
        return Dog(cut_blur(parameters.get("sigma1", 1.0)), cut_blur(parameters.get("sigma2", 1.6)))
    if name == "threshold":
        return Threshold(**parameters)
    if name in ("median", "rank"):
        return Rank(**parameters)
    if name in MORPHOLOGIES:
        return Morphology(name, **parameters)
    if name in ("gamma", "levels", "linear", "invert"):
        return curve(name, parameters)
    if name == "lut":
        return lut(**{"table_" if k == "table" else k: v for k, v in parameters.items()})
    if name in ("grayscale", "colormatrix"):
        return mix(name, parameters)
    if name == "pixelate":
        return Pixelate(parameters.get("size", 16))
    if name == "emboss":
        return Linear(matrix=np.array([[-2.0, -1, 0], [-1, 1, 1], [0, 1, 2]]), smoothing=False)
    if name == "sharpen":
        taps, amount = gaussian_taps(size=3), parameters.get("amount", 1.0)
        matrix = -amount * np.outer(taps, taps)
        matrix[1, 1] += 1 + amount
        return Linear(matrix=matrix)
    if name == "unsharp":
        return Unsharp(blur(parameters.get("sigma", 1.0)), parameters.get("amount", 1.0),
                       parameters.get("threshold", 0.0))
    if name == "bilateral":
        return Bilateral(parameters.get("radius", 4), parameters.get("sigma_space", 3.0),
                         parameters.get("sigma_range", 0.1))
    raise ValueError(name)


# Filtering ----------------------------------------------------------------------------------------

@dataclass
class Estimate:
    """Samples (height, width, bands) with the errors that they may have."""
    value: np.ndarray
    hard: np.ndarray
    tight: np.ndarray
    period: np.ndarray = None  # period of each band's directions; None: none
    misrounded: float = MISROUNDED["u8"]  # the share of samples that may be

    def __post_init__(self):
        if self.period is None:
            self.period = np.full(self.value.shape[2:], np.inf)


def offset_of(op, kind):
    if isinstance(op, Gradient):
        return MIDPOINT[kind] if op.output in ("x", "y") else 0.0
    return op.offset + (MIDPOINT[kind] if op.signed else 0.0)


def largest_around(padded, op):
    """Returns the largest magnitude in each sample's window."""
    size = (2 * op.radius_y + 1, 2 * op.radius_x + 1)
    out = ndimage.maximum_filter(np.abs(padded), size=size, mode="constant")
    return out[op.radius_y:out.shape[0] - op.radius_y, op.radius_x:out.shape[1] - op.radius_x]


def float_errors(padded, op, kind):
    """Returns the possible error of a sum in float32: (hard, tight)."""
    approximation = getattr(op, "approximation", 0.0)
    if kind == "f32":
        share = F32_TOLERANCE * max(1.0, op.gain) + 2 * approximation
        error = share * largest_around(padded, op)
    else:
        error = (FLOAT32_ERROR * op.gain + approximation) * np.abs(padded).max()
    return error, error


def filter_plain(planes, op, kind):
    """Returns one band; planes are the padded value, hard and tight."""
    if isinstance(op, Curve):
        op.full = FULL_SCALE[kind]
    value = op.correlate(planes.value) + offset_of(op, kind)
    hard, tight = float_errors(planes.value, op, kind)
    return Estimate(value, op.magnified(planes.hard) + hard, op.magnified(planes.tight) + tight)


def inner(plane, op):
    """Returns a padded plane without its padding."""
    return plane[op.radius_y:plane.shape[0] - op.radius_y, op.radius_x:plane.shape[1] - op.radius_x]


def filter_direction(planes, op, kind):
    """atan2(y, x) over the type's range. The shorter the gradient, the less is known of its angle."""
    x, y = op.X.correlate(planes.value) + 0.0, op.Y.correlate(planes.value) + 0.0
    length, full = np.hypot(x, y), FULL_SCALE[kind]
    noise = F32_TOLERANCE * op.gain * largest_around(planes.value, op) if kind == "f32" else 0.0
    errors = []
    for error in (planes.hard, planes.tight):
        off = np.hypot(op.X.magnified(error), op.Y.magnified(error)) + noise
        with np.errstate(invalid="ignore", divide="ignore"):
            angle = np.where(off == 0, 0, np.where(off < length, np.arcsin(np.minimum(
                off / length, 1)), np.pi))
        errors.append(angle)
    value = np.arctan2(y, x)
    if kind == "f32":
        return Estimate(value, *(e + F32_TOLERANCE * np.pi for e in errors))
    turn = full / (2 * np.pi)
    return Estimate(value * turn + full / 2, *(e * turn + FLOAT32_ERROR * full for e in errors))


def filter_threshold(colour, mask, op, kind, total):
    """mask, total: the padded alpha and what it comes to blurred, if there is one."""
    plain = Estimate(*(inner(getattr(colour, part), op) for part in ("value", "hard", "tight")))
    base = exactly(np.zeros_like(plain.value))
    if op.blur and mask is None:
        base = filter_plain(colour, op.blur, kind)
    elif op.blur:
        base = filter_premultiplied(colour, mask, op.blur, kind, total)
        nothing = total.value <= 0
        base.value = np.where(nothing, plain.value, base.value)
        base.hard, base.tight = (np.where(nothing, 0, e) for e in (base.hard, base.tight))
    full = FULL_SCALE[kind]
    stored = np.rint if kind != "f32" else lambda v: v

    def above(v, b):
        return v - stored(b) > op.limit * full

    errors = [full * (above(plain.value + before, base.value - after)
                      != above(plain.value - before, base.value + after))
              for before, after in ((plain.hard, base.hard), (plain.tight, base.tight))]
    return Estimate(full * above(plain.value, base.value), *errors)


def filter_unsharp(colour, mask, op, kind, total):
    """mask, total: the padded alpha and what it comes to blurred, if there is one."""
    plain = Estimate(*(inner(getattr(colour, part), op) for part in ("value", "hard", "tight")))
    if mask is None:
        blurred = filter_plain(colour, op.blur, kind)
    else:
        blurred = filter_premultiplied(colour, mask, op.blur, kind, total)
        nothing = total.value <= 0
        blurred.value = np.where(nothing, plain.value, blurred.value)
        blurred.hard, blurred.tight = (np.where(nothing, 0, e)
                                       for e in (blurred.hard, blurred.tight))
    difference = plain.value - blurred.value
    limit = op.threshold * FULL_SCALE[kind]
    flat = np.abs(difference) < limit
    value = np.where(flat, plain.value, plain.value + op.amount * difference)
    errors = []
    for before, after in ((plain.hard, blurred.hard), (plain.tight, blurred.tight)):
        off = before + after
        # Samples next to the threshold may be on either side of it.
        near = (op.threshold > 0) & (np.abs(np.abs(difference) - limit)
                                     <= off + 1e-5 * FULL_SCALE[kind])
        errors.append(before + op.amount * np.where(near, np.abs(difference) + off,
                                                    np.where(flat, 0, off)))
    return Estimate(value, *errors)


def filter_bilateral(colours, mask, op, kind):
    """Returns all bands of colour at once, as the weights are the same; of exact samples only.
    Returns them and alpha, if there is one."""
    r, full = op.radius, FULL_SCALE[kind]
    centre = np.stack([inner(c.value, op) for c in colours])
    height, width = centre.shape[1:]
    assert not any(c.hard.any() for c in colours), "a bilateral filter comes first in a chain"
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
    done = []
    for c, value in zip(colours, colour):
        hard, tight = float_errors(c.value, op, kind)
        done.append(Estimate(value, hard + slack, tight + slack))
    if mask is not None:
        hard, tight = float_errors(mask.value, op, kind)
        value = weighed / weights
        done.append(Estimate(value, hard + 0 * value, tight + 0 * value))
    return done


def filter_premultiplied(colour, alpha, op, kind, total):
    """Returns one band of colour, weighted by alpha; total is alpha filtered."""
    product = Estimate(colour.value * alpha.value, *(
        np.abs(colour.value) * a + np.abs(alpha.value) * c + a * c
        for c, a in ((colour.hard, alpha.hard), (colour.tight, alpha.tight))))
    weighted = filter_plain(product, op, kind)
    weighted.value = weighted.value - op.offset
    nothing = np.abs(total.value) <= 1e-12 * op.gain * FULL_SCALE[kind]
    # Unless every term is 0, float32 may find a little more or less than that.
    chance = nothing & (op.magnified(np.abs(alpha.value)) > 0)
    divisor = np.where(nothing, 1, total.value)
    value = np.where(nothing, 0, weighted.value / divisor)
    errors = []
    for part, whole in ((weighted.hard, total.hard), (weighted.tight, total.tight)):
        least = np.abs(divisor) - whole
        error = (part + np.abs(value) * whole) / np.where(least > 0, least, np.inf)
        error = np.where(nothing & (whole < 1e-3), 0, np.where(least > 0, error, np.inf))
        errors.append(np.where(chance, np.inf, error))
    # If alpha comes to (nearly) nothing, no colour may be reported instead of the quotient.
    vague = (total.value < (0.5 if kind != "f32" else 0) + total.hard) & ~nothing
    if op.offset:
        vague |= nothing
    value = value + op.offset
    return Estimate(value, *(np.where(vague, np.maximum(e, np.abs(value)), e) for e in errors))


def quantised(estimate, kind):
    """Rounded to nearest even and saturated; the hard bound then grows by the 1 that is allowed."""
    if kind == "f32":
        slack = 1e-6 * np.abs(estimate.value)
        return Estimate(estimate.value.astype(np.float32).astype(np.float64),
                        estimate.hard + slack, estimate.tight + slack)
    full = FULL_SCALE[kind]

    def stored(v):
        return np.fmin(np.fmax(np.rint(v), 0), full)  # not a number becomes 0

    value = stored(estimate.value)
    tight = np.maximum(stored(estimate.value + estimate.tight) - value,
                       value - stored(estimate.value - estimate.tight))
    return Estimate(value, np.minimum(np.floor(estimate.hard) + 1, full), tight)


def filter_bands(colours, mask, op, kind):
    """Returns the padded bands of colour, and alpha (mask, if there is one) where the filter
    changes that."""
    if isinstance(op, Bilateral):
        return filter_bilateral(colours, mask, op, kind)
    if isinstance(op, ByColour):
        return [filter_plain(c, one, kind) for c, one in zip(colours, op.curves)]
    if isinstance(op, Mix):
        return op.applied(colours, mask, kind)
    if isinstance(op, Threshold):
        total = filter_plain(mask, op.blur, kind) if mask and op.blur else None
        return [filter_threshold(c, mask, op, kind, total) for c in colours]
    if isinstance(op, Unsharp):
        total = filter_plain(mask, op.blur, kind) if mask else None
        return [filter_unsharp(c, mask, op, kind, total) for c in colours]
    if getattr(op, "circular", False):
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
        def one(plane, constant):
            return pad(plane, op.radius_y, op.radius_x, border, constant)
        return Estimate(one(image.value[:, :, band], constants[band]),
                        one(image.hard[:, :, band], 0), one(image.tight[:, :, band], 0))

    colours = [padded(b) for b in range(bands - alpha)]
    mask = padded(bands - 1) if alpha else None
    done = [quantised(e, kind) for e in filter_bands(colours, mask, op, kind)]
    if len(done) < bands:
        done.append(Estimate(*(inner(getattr(mask, part), op)
                               for part in ("value", "hard", "tight"))))
    done = Estimate(*(np.stack([getattr(d, part) for d in done], axis=2)
                      for part in ("value", "hard", "tight")))
    if getattr(op, "circular", False):
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
        return np.concatenate([part[:, :, :3] @ m.T, part[:, :, 3:]], axis=2)
    return Estimate(one(image.value, matrix), one(image.hard, np.abs(matrix)),
                    one(image.tight, np.abs(matrix)))


def inside(image, op, border):
    """Returns the result of a filter that changes nothing."""
    if border != "crop":
        return image
    height, width = image.value.shape[:2]
    part = np.s_[op.radius_y:height - op.radius_y, op.radius_x:width - op.radius_x]
    return Estimate(image.value[part], image.hard[part], image.tight[part])


def with_bands(image, other, bands):
    """Returns the image with these bands from one of only them."""
    def one(a, b):
        a = a.copy()
        a[:, :, bands] = b
        return a
    done = Estimate(*(one(getattr(image, part), getattr(other, part))
                      for part in ("value", "hard", "tight")))
    done.period[bands] = other.period
    return done


def only(image, bands):
    """Returns an image of these bands."""
    return Estimate(image.value[:, :, bands], image.hard[:, :, bands], image.tight[:, :, bands],
                    image.period[bands])


def filter_ycbcr(image, calls, border, constants, kind):
    """Filters [(operation, "luma" or "chroma"), …], each on its bands of YCbCr as on an image of their
    own; rounded only when it is RGB again."""
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
    done = ycbcr
    done.value = done.value - middle
    done = mixed(done, FROM_YCBCR)
    error = (F32_TOLERANCE if kind == "f32" else FLOAT32_ERROR) * 4 * np.abs(image.value).max()
    done = quantised(Estimate(done.value, done.hard + error, done.tight + error), kind)
    others = list(range(3, image.value.shape[2]))
    return with_bands(done, only(image, others), others)


def filter_channels(image, op, border, constants, alpha, kind, channels):
    """Applies one filter to the samples that `channels` names, as an image of their own, but that
    alpha weighs all colours together; the others are kept."""
    bands = image.value.shape[2]
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
    calls = [(operation(name, parameters), which) for name, parameters, which in calls]
    for ycbcr, some in itertools.groupby(calls, lambda call: call[1] in ("luma", "chroma")):
        if ycbcr:
            image = filter_ycbcr(image, list(some), border, constants, kind)
            continue
        for op, which in some:
            image = filter_channels(image, op, border, constants, int(alpha), kind, which)
    image = image if target is None else placed(image, whole, target)
    image.misrounded = misrounded([op for op, _ in calls], kind)
    return image


def spread(op):
    """Returns the share of results that one sample rounded wrongly by 1 can tip over a boundary, at
    most."""
    if isinstance(op, Gradient):
        return 8.0
    if isinstance(op, Linear):
        one = [op.matrix] if op.matrix is not None else [op.row, op.column]
        return np.prod([np.minimum(np.abs(weights), 1).sum() for weights in one])
    return op.gain


def misrounded(ops, kind):
    """Returns the share of samples that may be rounded wrongly by filters one after another."""
    share = 0.0
    for op in ops:
        share = min(1.0, share * max(1.0, spread(op)) + MISROUNDED[kind])
    return share


def exactly(pixels):
    return Estimate(pixels.astype(np.float64), np.zeros(pixels.shape), np.zeros(pixels.shape))


def placed(image, whole, target):
    x, y = target
    height, width = image.value.shape[:2]
    for part in ("value", "hard", "tight"):
        getattr(whole, part)[y:y + height, x:x + width] = getattr(image, part)
    whole.period = image.period
    return whole


def check(answer, expected):
    """Raises AssertionError if the answer's pixels are not the expected ones."""
    assert answer.shape == expected.value.shape, (answer.shape, expected.value.shape)
    got = answer.astype(np.float64)
    assert np.isfinite(got).all(), "not all samples are finite"
    difference = np.abs(got - expected.value)
    difference = np.minimum(difference, np.abs(expected.period - difference))
    excess = difference - expected.hard
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    assert excess[worst] <= 0, (
        f"sample (row, column, band) {tuple(map(int, worst))} is {got[worst]:.9g}, "
        f"expected {expected.value[worst]:.9g} ± {expected.hard[worst]:.3g}; "
        f"{np.count_nonzero(excess > 0)} of {got.size} samples are out of bounds")
    rounded = np.count_nonzero(difference > expected.tight)
    assert rounded <= max(2, expected.misrounded * got.size), (
        f"{rounded} of {got.size} samples are rounded wrongly, largest difference "
        f"{difference.max():.3g}")
