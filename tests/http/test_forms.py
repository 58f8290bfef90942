"""Forms: the image is found, or the error named. unit/test_form.c has the grammar."""
import numpy as np
import pytest

import oracle
from service import SMALL, poll, raw_kind, read_answer, request_head

TARGET = f"/v1/filters/box?raw={raw_kind(SMALL)}&format=raw"
IMAGE = np.ascontiguousarray(SMALL).tobytes()


def part(disposition, content=IMAGE):
    return b"--b\r\nContent-Disposition: %b\r\n\r\n%b\r\n" % (disposition, content)


def parameter(name, value):
    return part(b"form-data; name=" + name, value)


PICTURE = part(b"form-data; name=image")


def post(service, body, target=TARGET):
    return service.post(target, body, headers={"Content-Type": "multipart/form-data; boundary=b"})


def right(answer, filters):
    oracle.check(answer.pixels, oracle.filtered(SMALL, filters))


def test_parameters(service):
    """Before the image and after it, their names quoted or not, also one that is read in pieces."""
    right(post(service, parameter(b"size", b"5") + PICTURE + b"--b--"), [("box", {"size": 5})])
    matrix = np.random.default_rng(1).random((63, 63)).round(6)
    text = ";".join(",".join(f"{value:.6f}" for value in row) for row in matrix).encode()
    right(post(service, PICTURE + parameter(b'"kernel"', text) + b"--b--",
               target=TARGET.replace("box", "convolve")), [("convolve", {"kernel": matrix})])


@pytest.mark.parametrize("body, says", [
    (PICTURE, "cut short"), (PICTURE + PICTURE + b"--b--", "two images"),
    (PICTURE + part(b"form-data; name=x; filename=y") + b"--b--", "two images")], ids=range(3))
def test_malformed(service, body, says):
    post(service, body).refused(400, "bad-request", says)


def test_no_boundary(service):
    answer = service.post(TARGET, PICTURE, headers={"Content-Type": "multipart/form-data"})
    answer.refused(400, "bad-request", "boundary=TEXT")


def test_without_image(service):
    for body in (b"--b--", parameter(b"size", b"3") + b"--b--",
                 part(b"form-data; name=image", b"") + b"--b--"):
        post(service, body).refused(400, "empty-body")


def test_parameter_values(service):
    """Text of a bounded length; more of them than a request may have."""
    for value, says in ((b"-1", "odd"), (b"3\0", "NUL"), (70000 * b"3", "65536")):
        answer = post(service, parameter(b"size", value) + PICTURE + b"--b--")
        answer.refused(400, "bad-parameter", says, parameter="size")
    answer = post(service, 65 * parameter(b"size", b"3") + PICTURE + b"--b--")
    answer.refused(400, "bad-request", "at most 64")
    large = b"".join(parameter(name, 60000 * b"3") for name in (b"filters", b"luma", b"chroma"))
    answer = post(service, PICTURE + large + parameter(b"last", b"") + b"--b--",
                  target=TARGET.replace("filters/box", "chain"))
    answer.refused(400, "bad-parameter", parameter="last")


def test_refused_under_way(service):
    """An error in the middle is told when the body ends; nothing of it is kept until then."""
    body, before = PICTURE + b"--b\r\n\r\n", service.total("convolved_spools")
    with service.socket() as connection:
        connection.sendall(request_head(TARGET, f"Content-Length: {len(body) + 1}",
                                        "Content-Type: multipart/form-data; boundary=b") + body)
        poll(lambda: service.total("convolved_requests") == 2, 60, "the request")
        poll(lambda: service.total("convolved_spools") == before, 60, "no body")
        connection.sendall(b"x")
        read_answer(connection).refused(400, "bad-request", "Disposition")
    service.rest()
