"""The work by which the service and OpenCV are compared: filters and formats with equal parameters,
and OpenCV's service, which granian runs in a process for each core with one thread at work in each.

A body posted to /FILTER/FORMAT is decoded, filtered and encoded. Borders are replicated, as by the
service's default."""
import cv2
import numpy
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

cv2.setNumThreads(1)
EDGE = cv2.BORDER_REPLICATE


def gaussian(size, sigma):
    return lambda image: cv2.GaussianBlur(image, (size, size), sigma, borderType=EDGE)


def sobel(image):
    """Returns the magnitude of each band, as bytes."""
    x, y = (cv2.Sobel(image, cv2.CV_32F, dx, 1 - dx, ksize=3, borderType=EDGE) for dx in (1, 0))
    rows = len(image), -1
    return cv2.convertScaleAbs(cv2.magnitude(x.reshape(rows), y.reshape(rows))).reshape(image.shape)


def canny(image):
    """Edges in all bands, as the service's answer has them."""
    edges = cv2.Canny(gaussian(11, 1.4)(image), 102, 204, apertureSize=3, L2gradient=True)
    return cv2.cvtColor(edges, cv2.COLOR_GRAY2BGR)


# name: the service's filter, the same by OpenCV, and how far their pixels are apart at most, in the mean (of 255): one
# level where both round, nothing where they choose a pixel; as distance of two colours OpenCV's bilateral filter
# adds up the differences of bands, and the service takes the root of the sum of squares.
FILTERS = {
    "gaussian": ("gaussian?sigma=1.1", gaussian(9, 1.1), 0.2),
    "gaussian20": ("gaussian?sigma=20", gaussian(121, 20), 0.2),
    "median5": ("median?radius=2", lambda image: cv2.medianBlur(image, 5), 0),
    "bilateral9": ("bilateral?radius=4&sigma_space=3&sigma_range=0.1",
                   lambda image: cv2.bilateralFilter(image, 9, 25.5, 3, borderType=EDGE), 4),
    "sobel": ("sobel?output=magnitude", sobel, 0),
    "canny": ("canny?low=0.4&high=0.8&sigma=1.4", canny, 0.2),
    "erode7": ("erode?size=7", lambda image: cv2.erode(image, numpy.ones((7, 7), numpy.uint8), borderType=EDGE), 0),
}
# name: parameters for the service, and for OpenCV. A JPEG has its colours at half the resolution; a
# PNG is compressed as each of them does by default.
FORMATS = {
    "jpeg": ("&quality=85", (".jpg", [cv2.IMWRITE_JPEG_QUALITY, 85])),
    "png": ("", (".png", [])),
    "webp": ("&quality=80", (".webp", [cv2.IMWRITE_WEBP_QUALITY, 80])),
}


def encode(image, name):
    return cv2.imencode(FORMATS[name][1][0], image, FORMATS[name][1][1])[1].tobytes()


def decode(body):
    return cv2.imdecode(numpy.frombuffer(body, numpy.uint8), cv2.IMREAD_COLOR)


async def answer(request):
    try:
        image = decode(await request.body())
    except ClientDisconnect:  # wrk's turn is over
        return Response(status_code=400)
    image = FILTERS[request.path_params["filter"]][1](image)
    name = request.path_params["format"]
    return Response(encode(image, name), media_type=f"image/{name}")


app = Starlette(routes=[Route("/{filter}/{format}", answer, methods=["POST"])])
