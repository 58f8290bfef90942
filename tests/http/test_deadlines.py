"""Clients that take their time: each state of a connection has a deadline, however busily the client
trickles, and whatever they do costs others nothing."""
import contextlib
import socket
import ssl
import time

import pytest

from certificates import localhost_certificate
from service import SMALL, Client, Process, free_port, multipart, poll, raw_kind, read_answer

BOX = f"POST /v1/filters/box?raw={raw_kind(SMALL)}&format=raw HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def hasty(launch, tmp_path_factory):
    """A service with short deadlines, at a bare address and (service.secure) with TLS."""
    certificate, key = localhost_certificate(tmp_path_factory.mktemp("tls"))
    port = free_port()
    with launch("--listen", f"tls:127.0.0.1:{port}", "--tls-certificate", str(certificate),
                "--tls-key", str(key), "--header-timeout", "2", "--keepalive-timeout", "3",
                "--body-timeout", "5", "--body-rate", "100", "--max-client-connections", "700",
                "--max-connections", "2000") as service:
        service.secure = Client("localhost", port)
        service.context = ssl.create_default_context(cafile=certificate)
        yield service


def trickled(connection, text, pause):
    """Sends a byte after the other for ever; returns the answer that ends it."""
    connection.settimeout(pause)
    for byte in text:
        try:
            connection.sendall(bytes([byte]))
            if connection.recv(1, socket.MSG_PEEK):
                break
        except (TimeoutError, ssl.SSLWantReadError):
            continue
    connection.settimeout(60)
    return read_answer(connection)


def test_headers(hasty):
    with hasty.socket() as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nX: ")
        problem = trickled(connection, 10000 * b"y", 0.1).refused(408, "request-timeout")
        assert "headers" in problem["detail"] and "2 s" in problem["detail"]
        assert not connection.recv(1)


def test_headers_of_the_second_request(hasty):
    with hasty.socket() as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /livez HT")
        assert read_answer(connection).status == 200
        read_answer(connection).refused(408, "request-timeout")


def test_slow_body(hasty):
    with hasty.socket() as connection:
        connection.sendall((BOX + "Content-Length: 1000000\r\n\r\n").encode())
        problem = trickled(connection, 10000 * b"y", 0.1).refused(408, "request-timeout")
        assert "at least 100" in problem["detail"], problem
    hasty.rest()


def test_long_body(hasty):
    """Fast enough, and yet too long."""
    with hasty.socket() as connection:
        connection.sendall((BOX + "Transfer-Encoding: chunked\r\n\r\n").encode())
        with contextlib.suppress(OSError):
            for _ in range(600):
                connection.sendall(b"400\r\n" + 1024 * b"x" + b"\r\n")
                time.sleep(0.1)
        problem = read_answer(connection).refused(408, "request-timeout")
        assert "5 s" in problem["detail"], problem
    hasty.rest()


def test_slow_form(hasty):
    body, kind = multipart([("image", "a", bytes(100000))])
    with hasty.socket() as connection:
        connection.sendall((BOX + f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n")
                           .encode() + body[:200])
        read_answer(connection).refused(408, "request-timeout")


def test_no_request(hasty):
    """A connection is kept as long as requests come, and is then closed without a word."""
    with hasty.socket() as silent, hasty.socket() as connection:
        for _ in range(4):
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_answer(connection).status == 200
            time.sleep(1)
        assert not silent.recv(1) and not connection.recv(1)


def test_no_handshake(hasty):
    """Half a handshake costs no processor time, and is ended."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(hasty.secure.socket()) for _ in range(20)]
        for connection in connections[10:]:
            connection.sendall(b"\x16\x03\x01\x02\0\1\0\1\xfc\3\3")
        time.sleep(0.3)
        front = Process(hasty.process.pid)
        before = front.stat[11:13]
        time.sleep(1)
        assert sum(map(int, front.stat[11:13])) - sum(map(int, before)) < 20, "hundredths of 1 s"
        for connection in connections:
            assert not connection.recv(100)


def test_handshake_in_pieces(hasty):
    """A job that waits for its client goes on with it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    inside = hasty.context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with hasty.secure.socket() as connection:
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
        carry(lambda: inside.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"))
        assert carry(lambda: inside.read(1000)).startswith(b"HTTP/1.1 200")


def test_headers_in_tls(hasty):
    with hasty.context.wrap_socket(socket.create_connection(("localhost", hasty.secure.port)),
                                   server_hostname="localhost") as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nX: ")
        read_answer(connection).refused(408, "request-timeout")
        assert not connection.recv(1)


def test_left_in_tls(hasty):
    """The job of a client that has gone ends at once."""
    left = hasty.total("convolved_jobs_failed_total", reason="client-gone")
    with hasty.context.wrap_socket(socket.create_connection(("localhost", hasty.secure.port)),
                                   server_hostname="localhost") as connection:
        connection.sendall(b"POST /v1/filters/bilateral?raw=2000x2000x3:u8&format=raw HTTP/1.1\r\nHost: x\r\n"
                           b"Content-Length: 12000000\r\n\r\n" + bytes(12000000))
        poll(lambda: hasty.total("convolved_jobs") == 1, 60, "the job")
    poll(lambda: hasty.total("convolved_jobs_failed_total", reason="client-gone") == left + 1, 60, "the end of it")


def test_many(hasty):
    """Hundreds of each kind at a time, and others are served."""
    other = hasty.neighbour()
    with contextlib.ExitStack() as stack:
        heads, bodies, idle = ([stack.enter_context(hasty.socket()) for _ in range(200)]
                               for _ in range(3))
        hands = [stack.enter_context(hasty.secure.socket()) for _ in range(50)]
        for connection in heads:
            connection.sendall(b"GET /livez HTTP/1.1\r\nX: ")
        for connection in bodies:
            connection.sendall((BOX + "Content-Length: 1000000\r\n\r\n").encode())
        for connection in hands:
            connection.sendall(b"\x16\x03\x01")
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


def test_connections_of_an_address(launch):
    with launch("--max-client-connections", "5") as service, contextlib.ExitStack() as stack:
        connections = [stack.enter_context(service.socket()) for _ in range(5)]
        with service.socket() as connection:
            problem = read_answer(connection).refused(429, "queue-full")
            assert "5 of at most 5" in problem["detail"], problem
        assert service.neighbour().get("/livez").status == 200
        connections[0].close()
        poll(service.works)
