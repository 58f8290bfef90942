"""The filters, one function each, and the options of all: made by generate.py from /openapi.json."""
from __future__ import annotations

from typing import Literal, TypedDict

from convolved.values import Filter, Matrix, Numbers, Value, given


class Options(TypedDict, total=False):
    """The options of any request."""
    # Pixels outside the image: replicate (default), reflect, reflect101, wrap or constant; crop: a
    # smaller result
    border: Literal["replicate", "reflect", "reflect101", "wrap", "constant", "crop"]
    # For border=constant: one value, or one for each band; default: 0
    border_value: Value
    # x,y,width,height: filter this region as if it were the image; without target, answer with it
    # alone
    roi: Value
    # x,y: place the result here in the original image, and answer with the whole image
    target: Value
    # x,y,width,height;…: write the result only in these rectangles, ellipses
    # (ellipse:x,y,width,height) or polygons (polygon:x,y x,y x,y…; polygon-nonzero:… where edges
    # cross), of the image; at most 256. Other pixels are kept bit for bit
    regions: Value
    # Pixels around each region over which the result fades out
    feather: int
    # 1: write the result everywhere but in the regions, or by the inverse of the mask
    invert: bool
    # Channels that the filters change: all (default), color, alpha, red, green, blue, luma or
    # chroma
    channels: Literal["all", "color", "alpha", "red", "green", "blue", "luma", "chroma"]
    # Kernel to use for the filters that it supports; general: only general kernels, for
    # reproducible bytes; reference: the CPU reference, without a device
    variant: Value
    # Format of the result; default: that of the body
    format: str
    # 1 to 100; default: 85 for JPEG, 80 for WebP, 60 for AVIF, 90 for JPEG XL
    quality: int
    # 1: lossless WebP or JPEG XL. PNG, TIFF, BMP, PPM and raw are always lossless; JPEG, GIF and
    # AVIF never (400)
    lossless: bool
    # PNG: 0 (not at all) to 9 (small), default 1, for drawings 6; TIFF: none (default), lzw,
    # deflate or zstd
    compression: Literal["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "none", "lzw", "deflate",
        "zstd"]
    # JPEG and AVIF chroma subsampling (half the colour resolution): on, off, or auto (default): off
    # from quality 90, and for a JPEG body without subsampling
    subsample: Literal["auto", "on", "off"]
    # Colour onto which alpha is blended for a format without alpha (JPEG): one value or R,G,B, 0 to
    # 255; default: 0 (black)
    background: Value
    # The body is raw pixels: WIDTHxHEIGHTxBANDS:u8|u16|f32
    raw: Value
    # 1: the last band of raw pixels is alpha
    alpha: bool
    # The page or frame of the image to filter, from 0 (default)
    page: int
    # all: filter every page of a TIFF and every frame of a GIF, WebP, PNG or JPEG XL, and answer
    # with all of them
    pages: Literal["first", "all"]
    # 1: remove metadata
    strip: bool
    # 1: a JPEG or WebP for a chain that begins with resize may be decoded smaller, at most to twice
    # the result's size: faster, and not exact
    draft: bool
    # 1: compare every sample of the result with the reference
    verify: bool
    # The side that decodes and encodes JPEGs: auto (default), whichever is expected to finish
    # first; cpu; or gpu, where it can. The answer's bytes are the same
    codec: Literal["auto", "cpu", "gpu"]
    # Devices that may filter the image: cpu, gpu, a label of /v1/devices, PLATFORM:DEVICE or a
    # name, with * and ?
    device: Value
    # Milliseconds from the first byte to the answer: 429 if the deadline cannot be met, 504 if it
    # passes
    deadline_ms: int
    # interactive (default, unless the token is for batch work) or batch, which gets a tenth of the
    # devices while other work waits
    priority: Literal["interactive", "batch"]


def gaussian(*, sigma: float | str | None = None, size: int | None = None,
             sigma_x: float | str | None = None, sigma_y: float | str | None = None) -> Filter:
    """Gaussian blur with a sampled kernel of radius ceil(3 sigma); above sigma 8, unless size is
    given, the untruncated Gaussian to within 6e-6 of the value range

    sigma: Standard deviation; without sigma and size: 1
    size: Window width; without sigma, sigma is 0.3 ((size - 1) / 2 - 1) + 0.8
    sigma_x: Standard deviation across, instead of sigma; the radius is ceil(3 sigma_x) unless size
        is given
    sigma_y: Standard deviation down, likewise
    """
    return Filter("gaussian", given(locals()))


def box(*, size: int | None = None) -> Filter:
    """Mean of a square window

    size: Window width
    """
    return Filter("box", given(locals()))


def convolve(*, kernel: Matrix, scale: float | None = None, offset: float | None = None) -> Filter:
    """Convolution with a matrix, applied as written, not flipped

    kernel: Matrix with odd sides, such as 1,2,1;2,4,2;1,2,1 (required), of numbers from -1e9 to 1e9
    scale: Divisor, not 0; default: the sum of the matrix, or 1 if the sum is 0; the sum of the
        magnitudes divided by it is at most 2^32 / (coefficients + 2)
    offset: Added to every result
    """
    return Filter("convolve", given(locals()))


def sobel(*, output: Literal["magnitude", "x", "y", "direction"] | None = None) -> Filter:
    """Sobel gradient; x points right, y down

    output: Magnitude of the gradient; one component, stored around the middle of the range; or the
        direction atan2(y, x), with -pi to pi mapped to the type's range (f32: radians)
    """
    return Filter("sobel", given(locals()))


def scharr(*, output: Literal["magnitude", "x", "y", "direction"] | None = None) -> Filter:
    """Scharr gradient; x points right, y down

    output: Magnitude of the gradient; one component, stored around the middle of the range; or the
        direction atan2(y, x), with -pi to pi mapped to the type's range (f32: radians)
    """
    return Filter("scharr", given(locals()))


def prewitt(*, output: Literal["magnitude", "x", "y", "direction"] | None = None) -> Filter:
    """Prewitt gradient; x points right, y down

    output: Magnitude of the gradient; one component, stored around the middle of the range; or the
        direction atan2(y, x), with -pi to pi mapped to the type's range (f32: radians)
    """
    return Filter("prewitt", given(locals()))


def laplacian(*, connectivity: Literal["4", "8"] | None = None) -> Filter:
    """Laplacian, stored around the middle of the range

    connectivity: Number of neighbours that count
    """
    return Filter("laplacian", given(locals()))


def dog(*, sigma1: float | None = None, sigma2: float | None = None) -> Filter:
    """Difference of Gaussians: the first minus the second, stored around the middle of the range;
    alpha is kept

    sigma1: Standard deviation of the first Gaussian; its radius is ceil(3 sigma1)
    sigma2: Standard deviation of the second Gaussian; its radius is ceil(3 sigma2)
    """
    return Filter("dog", given(locals()))


def median(*, radius: int | None = None,
           window: Literal["square", "circle"] | None = None) -> Filter:
    """Median of a window: removes specks, and preserves edges; NaN counts as larger than all
    numbers, alpha is kept

    radius: Radius of the window
    window: Shape of the window
    """
    return Filter("median", given(locals()))


def rank(*, radius: int | None = None, window: Literal["square", "circle"] | None = None,
         percentile: float | None = None) -> Filter:
    """Percentile of a window: the value above this share of the window's other values; NaN counts
    as larger than all numbers, alpha is kept

    radius: Radius of the window
    window: Shape of the window
    percentile: 0 is the smallest, 50 the median, 100 the largest
    """
    return Filter("rank", given(locals()))


def erode(*, size: int | None = None,
          shape: Literal["rectangle", "ellipse", "cross"] | None = None) -> Filter:
    """Erosion: the smallest value in a window; NaN counts as larger than all numbers, alpha is kept

    size: Window width
    shape: Shape of the window
    """
    return Filter("erode", given(locals()))


def dilate(*, size: int | None = None,
           shape: Literal["rectangle", "ellipse", "cross"] | None = None) -> Filter:
    """Dilation: the largest value in a window; NaN counts as larger than all numbers, alpha is kept

    size: Window width
    shape: Shape of the window
    """
    return Filter("dilate", given(locals()))


def open(*, size: int | None = None,
         shape: Literal["rectangle", "ellipse", "cross"] | None = None) -> Filter:
    """Opening: erosion, then dilation; removes bright details that are smaller than the window

    size: Window width
    shape: Shape of the window
    """
    return Filter("open", given(locals()))


def close(*, size: int | None = None,
          shape: Literal["rectangle", "ellipse", "cross"] | None = None) -> Filter:
    """Closing: dilation, then erosion; removes dark details that are smaller than the window

    size: Window width
    shape: Shape of the window
    """
    return Filter("close", given(locals()))


def tophat(*, size: int | None = None,
           shape: Literal["rectangle", "ellipse", "cross"] | None = None) -> Filter:
    """White top hat: the image minus its opening

    size: Window width
    shape: Shape of the window
    """
    return Filter("tophat", given(locals()))


def blackhat(*, size: int | None = None,
             shape: Literal["rectangle", "ellipse", "cross"] | None = None) -> Filter:
    """Black hat: the closing minus the image

    size: Window width
    shape: Shape of the window
    """
    return Filter("blackhat", given(locals()))


def morphgradient(*, size: int | None = None,
                  shape: Literal["rectangle", "ellipse", "cross"] | None = None) -> Filter:
    """Morphological gradient: dilation minus erosion

    size: Window width
    shape: Shape of the window
    """
    return Filter("morphgradient", given(locals()))


def highpass(*, sigma: float | None = None) -> Filter:
    """High pass: in - gaussian of sigma, stored around the middle of the range; alpha is kept

    sigma: Standard deviation of the Gaussian; its radius is ceil(3 sigma)
    """
    return Filter("highpass", given(locals()))


def log(*, sigma: float | None = None) -> Filter:
    """Laplacian of a Gaussian, times sigma^2, stored around the middle of the range; alpha is kept

    sigma: Standard deviation of the Gaussian; the radius is ceil(4 sigma)
    """
    return Filter("log", given(locals()))


def motion(*, length: float | None = None, angle: float | None = None) -> Filter:
    """Motion blur: the mean along a line, with smooth edges

    length: Length of the line
    angle: Direction of the line, counterclockwise from the right
    """
    return Filter("motion", given(locals()))


def gamma(*, gamma: float | None = None) -> Filter:
    """Gamma correction: in^(1 / gamma) in fractions of full scale; below 0 it is 0; alpha is kept

    gamma: Above 1: brighter; below 1: darker
    """
    return Filter("gamma", given(locals()))


def levels(*, black: float | None = None, white: float | None = None,
           gamma: float | None = None) -> Filter:
    """Levels: black to white becomes 0 to full scale, with a gamma between; alpha is kept

    black: Input that becomes 0, like all below it
    white: Input that becomes full scale, like all above it; at least 0.01 above black
    gamma: Above 1: brighter; below 1: darker
    """
    return Filter("levels", given(locals()))


def linear(*, gain: Numbers | None = None, bias: Numbers | None = None) -> Filter:
    """gain in + bias; alpha is kept

    gain: Factor: one number, or one for each colour, as in 1.2,1,0.9
    bias: Added to every result: one number, or one for each colour
    """
    return Filter("linear", given(locals()))


def invert() -> Filter:
    """Negative: full scale - in; alpha is kept"""
    return Filter("invert", given(locals()))


def lut(*, table: Numbers | None = None, points: Numbers | None = None,
        max: float | None = None) -> Filter:
    """Lookup table: replaces each sample by a table's entry, or by the value of lines through
    points; alpha is kept

    table: 2 to 4096 results for inputs from 0 to full scale at equal distances, linear in between:
        256 numbers, say; one row for all colours, or one for each, separated by ';'
    points: Instead of table: 2 to 64 rows of an input and its result, as in 0,0;64,40;255,255;
        inputs rise, and lines join the points
    max: The number in table and points that means full scale; 1: they are fractions
    """
    return Filter("lut", given(locals()))


def grayscale(*, weights: Literal["bt601", "bt709", "mean"] | None = None) -> Filter:
    """Every colour becomes the luma, so that the image is grey; it keeps its bands, and alpha

    weights: Of red, green and blue: 0.299, 0.587, 0.114; 0.2126, 0.7152, 0.0722; or a third each
    """
    return Filter("grayscale", given(locals()))


def colormatrix(*, matrix: Numbers) -> Filter:
    """Each colour becomes a weighted sum of red, green and blue; a matrix of 4x5 also makes alpha

    matrix: A row each for red, green and blue: its weights of red, green and blue, then a constant
        in fractions of full scale (required); or also a row for alpha, with a weight of alpha
        before each constant
    """
    return Filter("colormatrix", given(locals()))


def pixelate(*, size: int | None = None) -> Filter:
    """Mosaic: each block of the image, starting at its top left corner, becomes its mean

    size: Width and height of a block
    """
    return Filter("pixelate", given(locals()))


def emboss() -> Filter:
    """Relief lit from the top left: -2,-1,0;-1,1,1;0,1,2"""
    return Filter("emboss", given(locals()))


def sharpen(*, amount: float | None = None) -> Filter:
    """Sharpening: in + amount (in - 3x3 gaussian)

    amount: Weight of the added difference
    """
    return Filter("sharpen", given(locals()))


def unsharp(*, sigma: float | str | None = None, amount: float | None = None,
            threshold: float | None = None) -> Filter:
    """Unsharp mask: in + amount (in - gaussian of sigma); alpha is kept

    sigma: Standard deviation of the Gaussian
    amount: Weight of the added difference
    threshold: Smaller differences are ignored
    """
    return Filter("unsharp", given(locals()))


def threshold(*, method: Literal["value", "mean", "gaussian", "otsu"] | None = None,
              value: Numbers | None = None, size: int | None = None,
              offset: float | None = None) -> Filter:
    """Full scale where a sample is above a threshold, else 0: a value, the mean around the sample,
    or Otsu's; alpha is kept

    method: A value; the mean of a square or the gaussian of size around the sample, minus offset;
        or for each colour the threshold that best separates the image's values into two classes
    value: The threshold of method=value: one number, or one for each colour, as in 0.3,0.5,0.4
    size: Window width of the other methods; default: 11
    offset: Subtracted from the mean or the gaussian, which is rounded to the image's type first;
        default: 0
    """
    return Filter("threshold", given(locals()))


def canny(*, low: float | None = None, high: float | None = None,
          sigma: float | str | None = None) -> Filter:
    """Edges, one pixel wide: full scale where the gradient is a maximum across the edge and above
    high, or above low and connected with such a pixel, however far away; else 0; alpha is kept

    low: Pixels that continue an edge have a Sobel gradient above this; at most high
    high: Pixels that begin an edge have a Sobel gradient above this; the largest is 5.66
    sigma: Standard deviation of the Gaussian blur before; below 0.1: none
    """
    return Filter("canny", given(locals()))


def equalize(*, method: Literal["global", "clahe"] | None = None, tiles: int | None = None,
             clip: float | None = None) -> Filter:
    """Histogram equalization: each colour's values are spread evenly from 0 to full scale, by those
    of the whole image, or by those around each place with limited contrast; alpha is kept

    method: By the whole image; or contrast-limited and adaptive: by a grid of tiles, interpolated
        between their centres
    tiles: Tiles across and down of method=clahe; default: 8
    clip: Limit of contrast with method=clahe: a value counts at most so many times as often as all
        do on average; 1 leaves hardly any change, 0 sets no limit; default: 2
    """
    return Filter("equalize", given(locals()))


def resize(*, width: float | str | None = None, height: float | str | None = None,
           fit: Literal["inside", "cover", "fill"] | None = None,
           gravity: Literal["center", "north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest"] | None = None,
           enlarge: Literal["0", "1"] | None = None,
           kernel: Literal["lanczos3", "lanczos2", "mitchell", "catmullrom", "triangle", "box", "nearest"] | None = None) -> Filter:
    """Changes the size; filters before it see the image as it was, those after it the result

    width: Width of the result, up to 100 times that of the image, and down to a hundredth; without
        it the height decides
    height: Height of the result, likewise
    fit: With the image's aspect, as large as fits inside both sides; or as covers them, and what
        exceeds them is cut off; or exactly both sides, with another aspect
    gravity: The part that fit=cover leaves
    enlarge: 1: also to more pixels than the image has; 0: a side is never made longer
    kernel: The kernel by whose values a result's pixel weighs the image's; it is stretched when the
        image shrinks
    """
    return Filter("resize", given(locals()))


def bilateral(*, radius: int | None = None, sigma_space: float | None = None,
              sigma_range: float | None = None) -> Filter:
    """Bilateral filter: smooths, and preserves edges

    radius: Radius of the circular window
    sigma_space: Standard deviation of the distance weight
    sigma_range: Standard deviation of the difference weight; the difference is over all colour
        bands together
    """
    return Filter("bilateral", given(locals()))
