"""Our kernels beside OpenCV on the CPU."""
import collections
import os
import tempfile

import cv2
import numpy as np

from measure import fastest, middle, timed
from service import BUILD

EDGE = cv2.BORDER_REPLICATE
TURNS = 3  # as in convolved-bench, so that a run does not find the last one's pixels in a cache


def matrix(side):
    weights = np.array([1 + i * i % 7 for i in range(side * side)], np.float64).reshape(side, side)
    text = ";".join(" ".join(f"{w:g}" for w in row) for row in weights)
    return (weights / weights.sum()).astype(np.float32), f"convolve=kernel={text}"


def sobel_magnitude(image):
    gx = cv2.Sobel(image, cv2.CV_32F, 1, 0, ksize=3, borderType=EDGE)
    gy = cv2.Sobel(image, cv2.CV_32F, 0, 1, ksize=3, borderType=EDGE)
    magnitude = cv2.magnitude(gx.reshape(gx.shape[0], -1), gy.reshape(gy.shape[0], -1)).reshape(gx.shape)
    return magnitude if image.dtype == np.float32 else cv2.convertScaleAbs(magnitude)


def gauss(size, sigma):
    return lambda image: cv2.GaussianBlur(image, (size, size), sigma, borderType=EDGE)


def full(image):
    return 255 if image.dtype == np.uint8 else 1


def morphology(what, side):
    return lambda image: cv2.morphologyEx(image, what, np.ones((side, side)), borderType=EDGE)


def difference(image):
    """Makes the difference of Gaussians, around the middle of the range."""
    narrow, wide = (cv2.GaussianBlur(image, (2 * reach + 1,) * 2, sigma, borderType=EDGE)
                    for sigma, reach in ((1, 3), (1.6, 5)))
    return cv2.addWeighted(narrow, 1, wide, -1, (full(image) + 1) // 2 if full(image) > 1 else 0.5)


def unsharp(image):
    blurred = cv2.GaussianBlur(image, (13, 13), 2, borderType=EDGE)
    return cv2.addWeighted(image, 2, blurred, -1, 0)


def pixelate(image):
    height, width = image.shape[:2]
    small = cv2.resize(image, (width // 16, height // 16), interpolation=cv2.INTER_AREA)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_NEAREST)


def gamma(image):
    return cv2.pow(image, 0.5) if image.dtype == np.float32 else cv2.LUT(image, ROOT)


def invert(image):
    return cv2.subtract(1, image) if image.dtype == np.float32 else cv2.bitwise_not(image)


MATRIX5, TEXT5 = matrix(5)
MATRIX15, TEXT15 = matrix(15)
ROOT = np.round(255 * (np.arange(256) / 255) ** 0.5).astype(np.uint8)
MIX = np.array([[.6, .3, .1], [.2, .7, .1], [.1, .2, .7]], np.float32)
ALL, GRAY, BYTES, COLOR = ("u8", "u8x4", "f32"), ("u8", "f32"), ("u8", "u8x4"), ("u8x3",)
# name, our chain, OpenCV's call, and the pixels that OpenCV has it for
FILTERS = [
    ("gaussian 3x3", "gaussian=size=3:sigma=0.8", gauss(3, 0.8), ALL),
    ("gaussian 5x5", "gaussian=size=5:sigma=1.1", gauss(5, 1.1), ALL),
    ("gaussian 31x31", "gaussian=size=31:sigma=5", gauss(31, 5), ALL),
    ("matrix 5x5", TEXT5, lambda image: cv2.filter2D(image, -1, MATRIX5, borderType=EDGE), ALL),
    ("matrix 15x15", TEXT15, lambda image: cv2.filter2D(image, -1, MATRIX15, borderType=EDGE), ALL),
    ("sobel", "sobel", sobel_magnitude, ALL),
    ("bilateral 9x9", "bilateral=radius=4:sigma_space=5:sigma_range={range}",
     lambda image: cv2.bilateralFilter(image, 9, 30 if image.dtype == np.uint8 else 30 / 255, 5,
                                       borderType=EDGE), ("u8", "u8x3", "f32")),
    ("median 3x3", "median", lambda image: cv2.medianBlur(image, 3), ALL),
    ("median 5x5", "median=radius=2", lambda image: cv2.medianBlur(image, 5), ALL),
    ("median 11x11", "median=radius=5", lambda image: cv2.medianBlur(image, 11), BYTES),
    ("erode 3x3", "erode", lambda image: cv2.erode(image, np.ones((3, 3)), borderType=EDGE), ALL),
    ("erode 31x31", "erode=size=31",
     lambda image: cv2.erode(image, np.ones((31, 31)), borderType=EDGE), ALL),
    ("open 5x5", "open=size=5", morphology(cv2.MORPH_OPEN, 5), ALL),
    ("morphgradient 5x5", "morphgradient=size=5", morphology(cv2.MORPH_GRADIENT, 5), ALL),
    ("dog", "dog=sigma1=1:sigma2=1.6", difference, GRAY),
    ("unsharp", "unsharp=sigma=2", unsharp, GRAY),
    ("pixelate", "pixelate=size=16", pixelate, ALL),
    ("threshold", "threshold=value=.4",
     lambda image: cv2.threshold(image, .4 * full(image), full(image), cv2.THRESH_BINARY)[1], GRAY),
    ("threshold mean", "threshold=method=mean:size=31:offset=.02",
     lambda image: cv2.adaptiveThreshold(image, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY,
                                         31, 5), ("u8",)),
    ("threshold gaussian", "threshold=method=gaussian:size=31:offset=.02",
     lambda image: cv2.adaptiveThreshold(image, 255, cv2.ADAPTIVE_THRESH_GAUSSIAN_C,
                                         cv2.THRESH_BINARY, 31, 5), ("u8",)),
    ("invert", "invert", invert, GRAY),
    ("gamma", "gamma=gamma=2", gamma, GRAY),
    ("colormatrix", "colormatrix=matrix=.6 .3 .1 0;.2 .7 .1 0;.1 .2 .7 0",
     lambda image: cv2.transform(image, MIX), COLOR),
]
# pixels, type, bands
PIXELS = [("u8", np.uint8, 1), ("u8x3", np.uint8, 3), ("u8x4", np.uint8, 4), ("f32", np.float32, 1)]


def opencv(options):
    """Our kernels beside OpenCV on the CPU, both on the same processors, in turn.

    Each round runs every filter by OpenCV and by the variant that convolved-bench found fastest, 10
    times each; the times are medians over all rounds. Border (replicate), weights and types are the
    same, and so many images are used in turn; convolved-bench compares ours with its reference."""
    cv2.setNumThreads(len(os.sched_getaffinity(0)))
    cv2.ocl.setUseOpenCL(False)
    with tempfile.TemporaryDirectory() as cache:
        for pixels, dtype, bands in PIXELS:
            images = random_images(options.side, dtype, bands)
            for name, chain, run, kinds in FILTERS:
                if pixels in kinds and pixels in options.pixels.split(",") and name in (options.filters or [name]):
                    command = [BUILD / "convolved-bench", "-t", "cpu", "-W", str(options.side), "--pixels", pixels,
                               "--filter", chain.format(range=30 / 255), "-i", "10", "--warmup", "2", "--cache-dir",
                               cache]
                    yield {"filter": name, "pixels": pixels, **compare(command, run, images, options.rounds)}


def bilateral_by_opencl(side):
    """Returns who, and milliseconds for gray bytes that are on the device already."""
    cv2.ocl.setUseOpenCL(True)
    if not cv2.ocl.useOpenCL():
        raise OSError("OpenCV finds no GPU; see OPENCV_OPENCL_DEVICE")
    image = cv2.UMat(random_images(side, np.uint8, 1)[0])

    def once():
        cv2.bilateralFilter(image, 9, 30, 5, borderType=EDGE)
        cv2.ocl.finish()

    return f"OpenCV, OpenCL on {cv2.ocl.Device.getDefault().name()}", middle([timed(once) for _ in range(9)][2:])


def random_images(side, dtype, bands):
    rng = np.random.default_rng(1)
    shape = (side, side, bands) if bands > 1 else (side, side)
    image = rng.integers(0, 256, shape, dtype) if dtype == np.uint8 else rng.random(shape, dtype)
    return [image.copy() for _ in range(TURNS)]


def compare(command, run, images, rounds):
    variant = fastest(command)["variant"]
    times = [(fastest([*command, "--variant", variant])["median_seconds"] * 1e3, theirs(run, images))
             for _ in range(rounds)]
    return {"variant": variant, "ms": middle([a for a, _ in times]),
            f"OpenCV {cv2.__version__} ms": middle([b for _, b in times]), "times": middle([b / a for a, b in times])}


def theirs(run, images, runs=10):
    results = collections.deque(map(run, images * 2), TURNS)
    return middle([timed(lambda: results.append(run(images[i % TURNS]))) for i in range(runs)])
