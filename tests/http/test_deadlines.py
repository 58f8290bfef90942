"""Slow clients: each state of a connection has a deadline, however busily they trickle."""
import contextlib
import select
import socket
import ssl
import time

import pytest

from certificates import tls_address
from service import SMALL, Client, multipart, raw_kind, read_answer, request_head

GET = request_head("/livez", method="GET")
HELLO = b"\x16\x03\x01\x02\0\1\0\1\xfc\3\3"  # the begin of a handshake


def box(*headers):
    return request_head(f"/v1/filters/box?raw={raw_kind(SMALL)}&format=raw", *headers)


@pytest.fixture(scope="module")
def hasty(launch, tmp_path_factory):
    """A service with short deadlines; .secure is its client by TLS, .encrypted knows no TLS."""
    secure, options = tls_address(tmp_path_factory.mktemp("tls"))
    with launch(*options, "--header-timeout", "5", "--keepalive-timeout", "5",
                "--body-timeout", "6", "--body-rate", "100", "--max-client-connections", "700",
                "--max-connections", "2000") as service:
        service.secure, service.encrypted = secure, Client(secure.host, secure.port)
        yield service


FORM, FORM_TYPE = multipart([("image", "a", bytes(100000))])
FORM = box(f"Content-Type: {FORM_TYPE}", f"Content-Length: {len(FORM)}") + FORM


@pytest.mark.parametrize("secure, sent, says", [
    (False, GET[:-2] + b"X: ", "5 s"), (True, GET[:-2] + b"X: ", "5 s"),
    (False, box("Content-Length: 1000000"), "at least 100"), (False, FORM[:500], "at least 100"),
], ids=["headers", "headers in tls", "body", "form"])
def test_slow(hasty, secure, sent, says):
    with (hasty.secure if secure else hasty).socket() as connection:
        connection.sendall(sent)
        while not select.select([connection], [], [], 0.1)[0]:
            connection.sendall(b"y")
        read_answer(connection).refused(408, "request-timeout", says)
        assert not connection.recv(1)
    hasty.rest()


def test_headers_of_the_second_request(hasty):
    with hasty.socket() as connection:
        connection.sendall(GET + GET[:13])
        assert read_answer(connection).status == 200
        read_answer(connection).refused(408, "request-timeout")


def test_long_body(hasty):
    with hasty.socket() as connection:
        connection.sendall(box("Transfer-Encoding: chunked") + b"8000\r\n" + 32768 * b"x" + b"\r\n")  # it is not slow
        with contextlib.suppress(OSError):
            while not select.select([connection], [], [], 0.1)[0]:
                connection.sendall(b"400\r\n" + 1024 * b"x" + b"\r\n")
        read_answer(connection).refused(408, "request-timeout", "6 s")
    hasty.rest()


def test_no_request(hasty):
    """A connection is kept as long as requests come, and is then closed without a word."""
    with hasty.socket() as silent, hasty.socket() as connection:
        for _ in range(4):
            connection.sendall(GET)
            assert read_answer(connection).status == 200
            time.sleep(1.5)
        assert not silent.recv(1) and not connection.recv(1)


def test_no_handshake(hasty):
    """Half a handshake costs no processor time, and is ended."""
    def used():
        return sum(process.busy for process in hasty.serving())

    with hasty.encrypted.connections(10) as silent, hasty.encrypted.connections(10, HELLO) as begun:
        time.sleep(0.3)
        before = used()
        time.sleep(1)
        assert used() - before < 0.2
        for connection in silent + begun:
            assert not connection.recv(100)


def test_handshake_in_pieces(hasty):
    """A job that waits for its client goes on with it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    inside = hasty.secure.tls.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with hasty.encrypted.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def carry(step):
            while True:
                try:
                    done = step()
                except ssl.SSLWantReadError:
                    done = None
                data = outgoing.read()
                for i in range(0, len(data), 50):
                    connection.sendall(data[i:i + 50])
                    time.sleep(0.005)
                if done is not None:
                    return done
                incoming.write(connection.recv(1 << 16))
        carry(lambda: inside.do_handshake() or True)
        carry(lambda: inside.write(GET))
        assert carry(lambda: inside.read(1000)).startswith(b"HTTP/1.1 200")


def test_many(hasty):
    """Hundreds of each kind at a time, and others are served."""
    other = hasty.neighbour()
    with hasty.connections(200) as idle, hasty.connections(200, GET[:-2]) as heads, \
            hasty.connections(200, box("Content-Length: 1000000")) as bodies, \
            hasty.encrypted.connections(50, HELLO[:3]) as hands:
        for _ in range(20):
            assert other.get("/livez").status == 200
            assert other.filter(SMALL, [("box", {})]).status == 200
        for connection in heads:
            assert read_answer(connection).status == 408
        for connection in bodies:
            assert read_answer(connection).status in (408, 429)
        for connection in idle + hands:
            assert not connection.recv(1)
    hasty.rest()
