"""Behind proxies clients are told apart by what trusted ones say, and by nobody else's word."""
import contextlib
import ipaddress
import itertools
import json
import socket
import struct
import tempfile
import time

import pytest

from certificates import tls_address
from service import read_answer, request_head

PROXY, STRANGER = "127.0.0.2", "127.0.0.1"
numbers = itertools.count()


@pytest.fixture(scope="module")
def behind(launch, tmp_path_factory):
    secure, options = tls_address(tmp_path_factory.mktemp("tls"))
    path = f"{tempfile.mkdtemp()}/socket"
    with launch("--trusted-proxies", f"{PROXY};10.1.0.0/16;2001:db8:1::/48;unix", "--log-format", "json",
                "--log-level", "debug", *options, "--listen", f"unix:{path}", "--max-connections",
                "40", "--header-timeout", "5") as service:
        service.secure, service.path = secure, path
        yield service


def ask(service, connection, *headers):
    """Asks for a missing path, and returns the client as the log has it."""
    path = f"/nowhere-{next(numbers)}"
    connection.sendall(request_head(path, *headers, method="GET"))
    assert read_answer(connection).status == 404
    service.says(f"{path}:")
    return json.loads(next(line for line in service.said.splitlines() if f"{path}:" in line))["client"]


@pytest.mark.parametrize("source, client, headers", [
    *((PROXY, *row) for row in (
        ("192.0.2.1", ["X-Forwarded-For: 192.0.2.1"]),
        ("192.0.2.2", ["X-Forwarded-For: 198.51.100.9, 192.0.2.2"]),
        ("192.0.2.3", ["X-Forwarded-For: 192.0.2.3, 10.1.2.3"]),
        ("192.0.2.4", ["X-Forwarded-For: 198.51.100.9", "X-Forwarded-For: 192.0.2.4 ,\t10.1.2.3"]),
        ("192.0.2.5", ["X-Forwarded-For: 192.0.2.5:1234"]),
        ("2001:db8:2::", ["X-Forwarded-For: 2001:db8:2::5:6:7"]),
        ("192.0.2.6", ["X-Forwarded-For: 192.0.2.6, 2001:db8:1:ffff::1"]),
        ("192.0.2.7", ["Forwarded: for=192.0.2.7;proto=https;by=10.1.0.1"]),
        ("192.0.2.8", ["Forwarded: for=198.51.100.9, proto=http; For=\"192.0.2.8:80\""]),
        ("2001:db8:3::", ["Forwarded: for=\"[2001:db8:3::1]:4711\""]),
        *((strange, [f"X-Forwarded-For: 192.0.2.3, {strange}"])
          for strange in ("10.0.255.255", "10.2.0.1", "2001:db8:2::", "2001:db8::")),
        ("192.0.2.9", ["Forwarded: for=192.0.2.9, for=10.1.9.9"]),
        ("10.1.7.7", ["X-Forwarded-For: 10.1.7.7"]),
        ("10.1.7.8", ["X-Forwarded-For: 198.51.100.9, unknown, 10.1.7.8"]))),
    # These headers say nothing, or may be the client's.
    *((PROXY, PROXY, headers) for headers in (
        [], ["X-Forwarded-For:"], ["X-Forwarded-For: me"], ["Forwarded: for=_hidden"],
        ["Forwarded: by=192.0.2.30"],
        ["X-Forwarded-For: 192.0.2.31", "Forwarded: for=192.0.2.32"])),
    # Nobody else's word counts.
    (STRANGER, STRANGER, ["X-Forwarded-For: 192.0.2.20"]),
    (STRANGER, STRANGER, ["Forwarded: for=192.0.2.21"]),
], ids=str)
def test_forwarded(behind, source, client, headers):
    with behind.neighbour(source).socket() as connection:
        assert ask(behind, connection, *headers) == client


def version_2(source, command=1, extra=b""):
    address = ipaddress.ip_address(source)
    body = address.packed + address.packed + struct.pack(">HH", 1234, 80) + extra
    family = 0x11 if address.version == 4 else 0x21
    return b"\r\n\r\n\0\r\nQUIT\n" + bytes([0x20 | command, family]) + struct.pack(">H", len(body)) + body


@pytest.mark.parametrize("header, client", [
    (b"PROXY TCP4 192.0.2.40 127.0.0.1 1234 80\r\n", "192.0.2.40"),
    (b"PROXY TCP6 2001:db8:4::1 ::1 1234 80\r\n", "2001:db8:4::"),
    (version_2("192.0.2.41"), "192.0.2.41"), (version_2("2001:db8:5::1"), "2001:db8:5::"),
    (version_2("192.0.2.42", extra=b"\4\0\5abcde" * 50), "192.0.2.42"),
], ids=["1-4", "1-6", "2-4", "2-6", "2-more"])
@pytest.mark.parametrize("kind", ["whole", "pieces"])
def test_proxy_protocol(behind, header, client, kind):
    size = len(header) if kind == "whole" else 7
    with behind.neighbour(PROXY).socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(0, len(header), size):
            connection.sendall(header[i:i + size])
            time.sleep(0.002)
        assert ask(behind, connection) == client
        assert ask(behind, connection, "X-Forwarded-For: 198.51.100.1") == client


@pytest.mark.parametrize("header", [b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN a b 1 2\r\n",
                                    version_2("192.0.2.50", command=0)], ids=["1", "1-more", "2"])
def test_proxy_for_itself(behind, header):
    with behind.neighbour(PROXY).socket() as connection:
        connection.sendall(header)
        assert ask(behind, connection) == PROXY


@pytest.mark.parametrize("header", [
    b"PROXY TCP4 192.0.2.60 127.0.0.1 1234\r\n", b"PROXY TCP4 ::1 ::1 1 2\r\n",
    b"PROXY TCP4 192.0.2.60 127.0.0.1 1 70000\r\n", b"PROXY " + 200 * b"x",
    b"PROXY TCP4 192.0.2.60 127.0.0.1 1 2\n", version_2("192.0.2.60")[:12] + b"\x31\x11\0\0",
    version_2("192.0.2.60")[:14] + b"\0\4abcd", version_2("192.0.2.60")[:14] + b"\xff\xff" + bytes(2000),
], ids=["ports", "family", "port", "long", "LF", "version", "short", "length"])
def test_malformed(behind, header):
    with behind.neighbour(PROXY).socket() as connection:
        connection.sendall(header + request_head("/livez", method="GET"))
        with contextlib.suppress(ConnectionError):
            assert not connection.recv(1)


def test_stranger_with_the_protocol(behind):
    answer = behind.neighbour(STRANGER).send(b"PROXY TCP4 192.0.2.70 127.0.0.1 1 2\r\n")
    answer.refused(400, "bad-request")


def test_within_tls(behind):
    bare = socket.create_connection(("127.0.0.1", behind.secure.port), source_address=(PROXY, 0))
    bare.sendall(b"PROXY TCP4 192.0.2.71 127.0.0.1 1 2\r\n")
    with behind.secure.tls.wrap_socket(bare, server_hostname="localhost") as connection:
        assert ask(behind, connection) == "192.0.2.71"


def test_unix_socket(behind):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(behind.path)
        assert ask(behind, connection, "X-Forwarded-For: 192.0.2.72") == "192.0.2.72"


def test_shares(behind):
    """A proxy may have all connections; of its clients each has its share."""
    header = b"PROXY TCP4 192.0.2.%d 127.0.0.1 1 2\r\n"
    request = header + request_head("/livez", method="GET")
    with contextlib.ExitStack() as stack:
        for i in range(30):  # three quarters of all: all that one client may have
            connection = stack.enter_context(behind.neighbour(PROXY).socket())
            connection.sendall(request % 80)
            assert read_answer(connection).status == 200, i
        with behind.neighbour(PROXY).socket() as refused, behind.neighbour(PROXY).socket() as other:
            refused.sendall(header % 80)
            read_answer(refused).refused(429, "queue-full")
            other.sendall(request % 81)
            assert read_answer(other).status == 200
