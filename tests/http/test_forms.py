"""Forms as clients send them, and as none should: the image is found or the answer names the error,
and the service lives."""
import numpy as np
import pytest

import oracle
from service import SMALL, poll, raw_kind, read_answer

TARGET = f"/v1/filters/box?raw={raw_kind(SMALL)}&format=raw"
IMAGE = np.ascontiguousarray(SMALL).tobytes()


def part(disposition, content=IMAGE, boundary=b"b"):
    header = b"Content-Disposition: " + disposition + b"\r\n" if disposition is not None else b""
    return b"--" + boundary + b"\r\n" + header + b"\r\n" + content + b"\r\n"


def post(service, body, kind="multipart/form-data; boundary=b", target=TARGET):
    return service.post(target, body, headers={"Content-Type": kind})


def right(answer, size=3):
    assert answer.status == 200, answer
    oracle.check(answer.pixels, oracle.filtered(SMALL, [("box", {"size": size})]))


@pytest.mark.parametrize("disposition", [
    b'form-data; name="image"; filename="a.raw"', b"form-data; name=image",
    b"form-data; name=image; filename=a.raw; filename*=utf-8''a.raw",  # as .NET sends them
    b"FORM-DATA;FILENAME*=utf-8''%e2%82%ac;NAME=picture", b'form-data; name="image";'])
def test_names(service, disposition):
    right(post(service, part(disposition) + b"--b--\r\n"))


def test_parameters(service):
    """Before the image and after it, their names quoted or not."""
    for before, after in ((b"form-data; name=size", None), (None, b'form-data; name="size"')):
        body = (part(before, b"5") if before else b"") + part(b"form-data; name=image")
        body += part(after, b"5") if after else b""
        right(post(service, body + b"--b--"), 5)


@pytest.mark.parametrize("kind, boundary", [
    ("multipart/form-data; BOUNDARY=b", b"b"), ('Multipart/Form-Data;charset=x;Boundary="a b"', b"a b"),
    ("multipart/form-data; boundary=" + 70 * "-", 70 * b"-"),
    ("multipart/form-data; boundary=\"'()+_,-./:=?\"", b"'()+_,-./:=?")])
def test_boundaries(service, kind, boundary):
    """Forms of each length are read, with a preamble, spaces behind it and an epilogue, in however
    small pieces."""
    body = (b"\r\n--preamble\r\n" + part(b"form-data; name=image", IMAGE, boundary + b" \t")
            + b"--" + boundary + b"-- \r\nepilogue\r\n--" + boundary + b"\r\n")
    right(post(service, body, kind))
    right(service.post(TARGET, iter([body[i:i + 7] for i in range(0, len(body), 7)]),
                       headers={"Content-Type": kind}))


WHOLE = part(b"form-data; name=image") + b"--b--\r\n"


@pytest.mark.parametrize("body, says", [
    (part(b"form-data") + b"--b--", "no name"),
    (part(b'form-data; filename="a.png"') + b"--b--", "no name"),
    (part(b'form-data; name=""') + b"--b--", "no name"),
    (part(None) + b"--b--", "no Content-Disposition"),
    (b"--b\r\nContent-Type: image/png\r\n\r\n" + IMAGE + b"\r\n--b--", "no Content-Disposition"),
    (part(b"attachment; name=image") + b"--b--", "not form-data"),
    (part(b'form-data; name="im\0age"') + b"--b--", "0x00"),
    (part(b"form-data; name=\0") + b"--b--", "0x00"),
    (part(b'form-data; name="image') + b"--b--", "malformed"),
    (part(b"form-data; name=image; x=" + 9000 * b"y") + b"--b--", "8192"),
    (b"--b\r\nContent-Transfer-Encoding: base64\r\n" + WHOLE[5:], "base64"),
    (WHOLE.replace(b"\r\n", b"\n"), "followed by neither"),
    (b"--c" + WHOLE[3:-7] + b"--c--", "not in the form"),
    (WHOLE[:-6], "cut short"), (WHOLE[:-4], "cut short"), (WHOLE[:20], "cut short"),
    (b"--b-", "cut short"),
    (part(b"form-data; name=image") + part(b"form-data; name=image") + b"--b--", "two images"),
    (part(b"form-data; name=image") + part(b"form-data; name=x; filename=y") + b"--b--",
     "two images")], ids=range(19))
def test_malformed(service, body, says):
    problem = post(service, body).refused(400, "bad-request")
    assert says in problem["detail"], problem


@pytest.mark.parametrize("kind, says", [
    ("multipart/form-data", "boundary=TEXT"), ("multipart/form-data; boundary=", "malformed"),
    ("multipart/form-data; boundary=" + 71 * "-", "71 characters"),
    ('multipart/form-data; boundary="b', "malformed"),
    ("multipart/form-data; boundary=b; boundary=c", "two boundaries"),
    ("multipart/form-data; boundary=[b]", "invalid character")])
def test_content_type(service, kind, says):
    problem = post(service, WHOLE, kind).refused(400, "bad-request")
    assert says in problem["detail"], problem


def test_without_image(service):
    for body in (b"--b--", part(b"form-data; name=size", b"3") + b"--b--",
                 part(b"form-data; name=image", b"") + b"--b--"):
        post(service, body).refused(400, "empty-body")


def test_parameter_values(service):
    """Text of a bounded length; more of them than a request may have."""
    image = part(b"form-data; name=image")
    answer = post(service, part(b"form-data; name=size", b"3\0") + image + b"--b--")
    assert "NUL" in answer.refused(400, "bad-parameter")["detail"]
    answer = post(service, part(b"form-data; name=size", 70000 * b"3") + image + b"--b--")
    assert "65536" in answer.refused(400, "bad-parameter")["detail"]
    answer = post(service, 65 * part(b"form-data; name=size", b"3") + image + b"--b--")
    assert "at most 64" in answer.refused(400, "bad-request")["detail"]
    large = b"".join(part(b"form-data; name=" + name, 60000 * b"3") for name in (b"filters", b"luma", b"chroma"))
    answer = post(service, image + large + part(b"form-data; name=last", b"") + b"--b--",
                  target=TARGET.replace("filters/box", "chain"))
    assert "last" in answer.refused(400, "bad-parameter")["parameter"]


def test_image_of_boundaries(service):
    """Bytes like the beginning of a boundary are part of the image."""
    image = (b"\r\n--\r\n--bou\r\r\n-" * 99)[:len(IMAGE)]
    body = part(b"form-data; name=image", image, b"bound") + b"--bound--"
    pixels = np.frombuffer(image, np.uint8).reshape(SMALL.shape)
    for pieces in (body, iter([body[i:i + 1] for i in range(len(body))])):
        answer = post(service, pieces, "multipart/form-data; boundary=bound",
                      TARGET + "&size=1")
        assert answer.status == 200 and np.array_equal(answer.pixels, pixels), answer


def test_refused_under_way(service):
    """An error in the middle is told when the body ends; nothing of it is kept until then."""
    body = part(b"form-data; name=image") + b"--b\r\n\r\n"
    with service.socket() as connection:
        connection.sendall(f"POST {TARGET} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body) + 1}\r\n"
                           "Content-Type: multipart/form-data; boundary=b\r\n\r\n".encode() + body)
        poll(lambda: service.total("convolved_requests") == 2, 60, "the request")
        poll(lambda: service.total("convolved_spools") == 0, 60, "no body")
        connection.sendall(b"x")
        assert "Disposition" in read_answer(connection).refused(400, "bad-request")["detail"]


def test_nothing_is_left(service):
    service.rest()
