"""The peers' services, run by granian in a process for each core: a posted image, blurred, as a JPEG
of quality 85. One thread computes in each process, as many processes as cores are at work."""
import os

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

os.environ["VIPS_CONCURRENCY"] = "1"


def opencv_blur(body):
    import cv2
    import numpy

    cv2.setNumThreads(1)
    image = cv2.imdecode(numpy.frombuffer(body, numpy.uint8), cv2.IMREAD_COLOR)
    image = cv2.GaussianBlur(image, (9, 9), 1.1, borderType=cv2.BORDER_REPLICATE)
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 85])[1].tobytes()


def pyvips_blur(body):
    import pyvips

    image = pyvips.Image.new_from_buffer(body, "", access="sequential")
    return image.gaussblur(1.1).jpegsave_buffer(Q=85)


def app(blur):
    async def answer(request):
        return Response(blur(await request.body()), media_type="image/jpeg")
    return Starlette(routes=[Route("/", answer, methods=["POST"])])


opencv = app(opencv_blur)
pyvips = app(pyvips_blur)
