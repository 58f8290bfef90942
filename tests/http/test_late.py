"""HTTP while the front stands still, so that all that it says comes late: whatever a client sends meanwhile,
it gets the one answer that it would have got at once."""
import contextlib
import socket
import time

import pytest

from service import Process, multipart

INVERT = "/v1/filters/invert?format=raw&raw="
GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
NONE = b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = bytes(range(256)) * 40
PROXY = b"PROXY TCP4 192.0.2.9 192.0.2.1 1 2\r\n"
BAD = b"GET /livez HTTP/1.1\r\nHost : x\r\n\r\n"


def inverted(body):
    return bytes(255 - value for value in body)


def post(body, *headers, path=f"{INVERT}256x40x1:u8", size=None):
    size = len(body) if size is None else size
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {size}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(text, path=f"{INVERT}8x1x1:u8"):
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + text


def form(data):
    body, kind = multipart(data)
    return post(body, f"Content-Type: {kind}", path="/v1/chain?format=raw&raw=256x40x1:u8")


EXPECT = "Expect: 100-continue"
CUT = post(b"--b\r\n\r\nimage", "Content-Type: multipart/form-data; boundary=b")
GOOD = (200, inverted(BODY))

# name: (bytes, answers), an answer being its status and, where it counts, its body.
CASES = {
    "no body": (GET, [200]),
    "nothing there": (NONE, [404]),
    "three at once": (GET + NONE + GET, [200, 404, 200]),
    "a body": (post(BODY), [GOOD]),
    "an empty body": (post(b"") + GET, [400, 200]),
    "chunks": (chunked(b"5\r\nabcde\r\n3\r\nfgh\r\n0\r\n\r\n"), [(200, inverted(b"abcdefgh"))]),
    "no chunk": (chunked(b"0\r\n\r\n") + GET, [400, 200]),
    "two bodies": (post(BODY) + post(b"x", path=f"{INVERT}1x1x1:u8") + GET, [GOOD, (200, inverted(b"x")), 200]),
    "a body that nobody wants": (post(BODY, path="/none") + GET, [404, 200]),
    "a form": (form([("filters", None, b"invert"), ("image", "a", BODY)]), [GOOD]),
    "no form": (CUT + GET, [400, 200]),
    "a body with all that it asks for": (post(BODY, EXPECT), [GOOD]),
    "too large a body": (chunked(b"180000\r\n" + bytes(0x180000) + b"\r\n0\r\n\r\n") + GET, [413, 200]),
    "a bad request": (BAD, [400]),
    "a bad request after a good one": (GET + BAD, [200, 400]),
    "a bad chunk": (chunked(b"5\r\nabcde\r\nx\r\n"), [400]),
    "a bad chunk that nobody wants": (chunked(b"5\r\nabcde\r\nx\r\n", "/none"), [(400, 404)]),
}


@pytest.fixture(scope="module")
def proxied(launch):
    with launch("--http-workers", "1", "--max-body", "1M", "--trusted-proxies", "127.0.0.1",
                "--max-client-connections", "20") as service:
        yield service
        service.rest()  # every request has ended


@pytest.fixture(params=[0, 0.03], ids=["at once", "late"])
def late(request, proxied):
    """Seconds for which the front stands still, from before the client's bytes."""
    @contextlib.contextmanager
    def standing():
        with Process(proxied.process.pid).stopped() if request.param else contextlib.nullcontext():
            yield
            time.sleep(request.param)
    proxied.late = standing
    before = proxied.restarts()
    yield proxied
    assert proxied.restarts() == before, proxied.tail()


def read_all(connection):
    data = b""
    while piece := connection.recv(1 << 16):
        data += piece
    return data


def split(data):
    """Returns [(status, body)] of answers that follow each other; invitations are none."""
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        if status == 100:
            continue
        size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:"))
        found.append((status, data[:size]))
        data = data[size:]
    return found


def agree(answers, expected):
    assert len(answers) == len(expected), answers
    for (status, body), wanted in zip(answers, expected):
        if isinstance(wanted, int):
            assert status == wanted, body
        elif isinstance(wanted[1], int):
            assert status in wanted, body
        else:
            assert (status, body) == wanted


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_half_closed(late, case, pieces):
    """All of it at once and the client's end behind it; and the second half later."""
    data, expected = CASES[case]
    with late.socket() as connection:
        with late.late():
            if pieces == 2:
                connection.sendall(data[:len(data) // 2])
                time.sleep(0.05)
                data = data[len(data) // 2:]
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        agree(split(read_all(connection)), expected)


WITHOUT_PLACE = {
    "no body": GET,
    "several": GET + GET + BAD,
    "a body": post(BODY) + GET,
    "a client that asks": post(BODY, EXPECT),
}


@pytest.mark.parametrize("case", WITHOUT_PLACE)
def test_no_place(late, case):
    """A client that is refused its place after it has sent something gets that answer alone."""
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            held = stack.enter_context(late.socket())
            held.sendall(PROXY + GET)
            assert held.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 200"
        connection = stack.enter_context(late.socket())
        with late.late():
            connection.sendall(PROXY + WITHOUT_PLACE[case])
        agree(split(read_all(connection)), [429])


@pytest.mark.parametrize("path, first", [(f"{INVERT}256x40x1:u8", b"HTTP/1.1 100"), ("/none", b"HTTP/1.1 404")])
def test_expect(late, path, first):
    """The invitation comes when the service has decided, and only if it wants the body."""
    with late.socket() as connection:
        with late.late():
            connection.sendall(post(b"", EXPECT, path=path, size=len(BODY)))
        assert connection.recv(12, socket.MSG_WAITALL) == first
        if first.endswith(b"100"):
            assert connection.recv(13, socket.MSG_WAITALL) == b" Continue\r\n\r\n"
            with late.late():
                connection.sendall(BODY)
                connection.shutdown(socket.SHUT_WR)
            agree(split(read_all(connection)), [GOOD])


def test_not_worth_sending(late):
    """A body that is longer than the part that is read in vain need not be sent completely."""
    with late.socket() as connection:
        with late.late():
            connection.sendall(post(b"x" * 100, path="/none", size=9 << 20))
        assert connection.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 404"


def test_left(late):
    """Clients that leave before anything is said."""
    for data in (GET, post(BODY), post(BODY[:10], size=20), post(b"", EXPECT, size=5), BAD, GET[:9]):
        with late.late(), late.socket() as connection:
            connection.sendall(data)
    with late.socket() as connection:
        with late.late():
            connection.sendall(GET)
            connection.shutdown(socket.SHUT_WR)
        agree(split(read_all(connection)), [200])
