"""HTTP before a service that says everything a while later (late.c), as one in another process does:
whatever a client sends meanwhile, it gets the one answer that it would have got at once."""
import socket
import subprocess
import time

import pytest

from service import BUILD, PATIENCE, multipart

GET = b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
NONE = b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = bytes(range(256)) * 40
PROXY = b"PROXY TCP4 192.0.2.9 192.0.2.1 1 2\r\n"
BAD = b"GET /wait HTTP/1.1\r\nHost : x\r\n\r\n"


def post(body, *headers, path="/echo", size=None):
    size = len(body) if size is None else size
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {size}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(text, path="/echo"):
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + text


def form(data):
    body, kind = multipart(data)
    return post(body, f"Content-Type: {kind}")


EXPECT = "Expect: 100-continue"
CUT = post(b"--b\r\n\r\nimage", "Content-Type: multipart/form-data; boundary=b")

# name: (bytes, answers), an answer being its status and, where it counts, its body.
CASES = {
    "no body": (GET, [200]),
    "nothing there": (NONE, [404]),
    "three at once": (GET + NONE + GET, [200, 404, 200]),
    "a body": (post(BODY), [(200, BODY)]),
    "an empty body": (post(b""), [200]),
    "chunks": (chunked(b"5\r\nabcde\r\n3\r\nfgh\r\n0\r\n\r\n"), [(200, b"abcdefgh")]),
    "no chunk": (chunked(b"0\r\n\r\n"), [200]),
    "two bodies": (post(BODY) + post(b"x") + GET, [(200, BODY), (200, b"x"), 200]),
    "a body that nobody wants": (post(BODY, path="/none") + GET, [404, 200]),
    "a form": (form([("chain", None, b"[]"), ("image", "a", BODY)]), [(200, BODY)]),
    "no form": (CUT + GET, [400, 200]),
    "a body with all that it asks for": (post(BODY, EXPECT), [(200, BODY)]),
    "too large a body": (chunked(b"180000\r\n" + bytes(0x180000) + b"\r\n0\r\n\r\n") + GET, [413, 200]),
    "a bad request": (BAD, [400]),
    "a bad request after a good one": (GET + BAD, [200, 400]),
    "a bad chunk": (chunked(b"5\r\nabcde\r\nx\r\n"), [400]),
    "a bad chunk that nobody wants": (chunked(b"5\r\nabcde\r\nx\r\n", "/none"), [(400, 404)]),
}


class Service:
    def __init__(self, path, ms):
        self.path = str(path)
        self.process = subprocess.Popen([BUILD / "late", str(path), str(ms)],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout.readline() == b"ready\n"

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(self.path)
        return connection

    def end(self):
        self.process.terminate()
        return self.process.wait(PATIENCE)


@pytest.fixture(scope="module", params=[1, 30])
def late(request, tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("late") / "socket", request.param)
    yield service
    assert service.end() == 0, "not every request has ended"


def read_all(connection):
    data = b""
    while piece := connection.recv(1 << 16):
        data += piece
    return data


def split(data):
    """[(status, body)] of answers that follow each other; invitations are none."""
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
            assert status == wanted
        elif isinstance(wanted[1], int):
            assert status in wanted
        else:
            assert (status, body) == wanted


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_half_closed(late, case, pieces):
    """All of it at once and the client's end behind it; and the second half later."""
    data, expected = CASES[case]
    with late.connect() as connection:
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
    with late.connect() as connection:
        connection.sendall(PROXY + WITHOUT_PLACE[case])
        agree(split(read_all(connection)), [429])


@pytest.mark.parametrize("path, first", [("/echo", b"HTTP/1.1 100"), ("/none", b"HTTP/1.1 404")])
def test_expect(late, path, first):
    """The invitation comes when the service has decided, and only if it wants the body."""
    with late.connect() as connection:
        connection.sendall(post(b"", EXPECT, path=path, size=len(BODY)))
        assert connection.recv(12, socket.MSG_WAITALL) == first
        if path == "/echo":
            assert connection.recv(13, socket.MSG_WAITALL) == b" Continue\r\n\r\n"
            connection.sendall(BODY)
            connection.shutdown(socket.SHUT_WR)
            agree(split(read_all(connection)), [(200, BODY)])


def test_not_worth_sending(late):
    """Of a body that is longer than what is read in vain, not all need be sent."""
    with late.connect() as connection:
        connection.sendall(post(b"x" * 100, path="/none", size=9 << 20))
        assert connection.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 404"


def test_kept_alive(late):
    with late.connect() as connection:
        for _ in range(3):
            for data, expected in ((GET, 200), (post(BODY), (200, BODY)), (NONE, 404)):
                connection.sendall(data)
                text = b""
                while b"\r\n\r\n" not in text or not split(text)[0][1] or \
                        (expected == (200, BODY) and len(split(text)[0][1]) < len(BODY)):
                    text += connection.recv(1 << 16)
                agree(split(text), [expected])


def test_left(late):
    """Clients that leave before anything is said."""
    for data in (GET, post(BODY), post(BODY[:10], size=20), post(b"", EXPECT, size=5), BAD, GET[:9]):
        with late.connect() as connection:
            connection.sendall(data)
    with late.connect() as connection:
        connection.sendall(GET)
        connection.shutdown(socket.SHUT_WR)
        agree(split(read_all(connection)), [200])
