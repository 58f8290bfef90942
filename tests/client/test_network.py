"""Hosts that the client believes, its secrets and who sees them, and bad connections."""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import threading

import pytest

from certificates import localhost_certificate
from client import complains, fill, found, in_namespace, ppm, run, start
from scripted import problem
from service import poll


# Tokens -------------------------------------------------------------------------------------------

@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text("s3cret.token\n")
    return path


def test_token(server, image, tmp_path, token):
    asked = server()
    run(asked.url, "box", image, "-o", tmp_path / "out.ppm", "--token-file", token)
    assert asked.requests[-1].headers["Authorization"] == "Bearer s3cret.token"
    token.write_text("two words")
    said = complains("expected a token of one word", asked.url, "devices", "--token-file", token, status=2)
    assert "two words" not in said


@pytest.mark.parametrize("address", [
    "http://192.0.2.1", "192.0.2.1:8700", "http://localhost.example", "http://127.0.0.1.example",
    "http://127.0.0.1@192.0.2.1", "http://[2001:db8::1]:8700", "HTTP://192.0.2.1/localhost",
    "http://notlocalhost"])
def test_no_token_in_clear(token, address):
    complains("the token would travel unencrypted", address, "devices", "--token-file", token, status=2)


def test_a_token_in_clear_where_that_is_well(server, tmp_path, token):
    """It goes to this host, elsewhere by consent: 0.0.0.0 leads here, but is no known name."""
    asked = server(lambda handler: (200, {}, b'{"devices": []}'))
    port = asked.server_address[1]
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "a.localhost", "127.1"):
        run(f"http://{host}:{port}", "devices", "--token-file", token)
    run(f"127.0.0.1:{port}", "devices", "--token-file", token)
    run(f"http://0.0.0.0:{port}", "devices", "--token-file", token, status=2)
    assert len(asked.requests) == 6
    run(f"http://0.0.0.0:{port}", "devices", "--token-file", token, "--insecure-token")
    assert {r.headers["Authorization"] for r in asked.requests} == {"Bearer s3cret.token"}
    run(f"unix:{tmp_path}/none", "devices", "--token-file", token, "--retries", 0, status=3)


def test_redirections_are_not_followed(server, image, tmp_path, token):
    elsewhere = server()
    asked = server(lambda handler: (307, {"Location": f"{elsewhere.url}/v1"}, b""))
    complains(f"convolve: {image}: the service redirects to {elsewhere.url}/v1: give that address if you trust it\n",
              asked.url, "box", image, "-o", tmp_path / "out.ppm", "--token-file", token)
    assert elsewhere.connections == 0 and found(tmp_path).keys() == {"in.ppm", "token"}


@pytest.mark.parametrize("name", ["http_proxy", "ALL_PROXY"])
def test_proxies_are_not_for_this_host(server, service, store, name):
    proxy, asked = server(), server(lambda handler: (200, {}, b'{"devices": []}'))
    for url in (asked.url, asked.url.replace("127.0.0.1", "localhost"), service.unix):
        run(url, "devices", "--retries", 0, variables={name: proxy.url})
    store.put("s3://from/a.ppm", ppm())
    store.run(server().url, "box", "s3://from/a.ppm", "-o", "-", variables={name: proxy.url})
    assert proxy.connections == 0
    proxy.answer = asked.answer
    run("http://192.0.2.1", "devices", variables={name: proxy.url})
    assert proxy.requests[0].path == "http://192.0.2.1/v1/devices"


# Certificates -------------------------------------------------------------------------------------

def test_certificates(server, image, tmp_path):
    """Those given are trusted instead of the system's, which are the server's here."""
    system, apart = tmp_path / "system", tmp_path / "apart"
    system.mkdir()
    apart.mkdir()
    theirs, (other, _) = localhost_certificate(tmp_path), localhost_certificate(apart)
    for name in ("theirs.pem", "ca-certificates.crt"):
        shutil.copy(theirs[0], system / name)
    subprocess.run(["openssl", "rehash", system], check=True)
    asked, out = server(certificate=theirs), tmp_path / "out.ppm"

    def with_system(*arguments):
        return in_namespace(asked.url, f'mount --bind {system} /etc/ssl/certs; exec "$@"', "box",
                            image, "-f", "-o", out, *arguments)

    run(asked.url, "box", image, "-o", out, "--cacert", theirs[0])
    assert out.read_bytes() == image.read_bytes()[::-1]
    assert with_system().returncode == 0, "the system's certificates are there"
    _, said = run(asked.url, "box", image, "-f", "-o", out, status=3)
    assert "certificate" in said and len(asked.requests) == 2
    done = with_system("--cacert", other)
    assert done.returncode == 3 and "certificate" in done.stderr and len(asked.requests) == 2, done


# Answers that are no results ----------------------------------------------------------------------

CUT_SHORT = "cut short|the connection broke off"
CLOSED = {"Content-Length": None, "Connection": "close"}  # its end is that of the connection
CHUNKED = {**CLOSED, "Transfer-Encoding": "chunked"}


@pytest.mark.parametrize("headers, body, words", [
    ({"Content-Type": "text/html; charset=utf-8", "X-Image": None}, b"<html>Welcome!", "the answer is not an image "
     r"\(its type is text/html; charset=utf-8\): is there a convolved at "),
    ({"Content-Type": "text/html"}, b"<html>", r"is not an image \(its type is text/html\)"),
    ({"X-Image": None}, b"P6", r"is not an image \(its type is image/x-portable-pixmap\)"),
    ({"Content-Type": None}, b"P6", r"is not an image \(its type is not given\)"),
    ({}, b"", "the result is empty"),
    (CLOSED, b"half of it", CUT_SHORT),
    ({**CLOSED, "Content-Length": 100}, b"half of it", CUT_SHORT),
    (CHUNKED, b"a\r\nhalf of it\r\n", CUT_SHORT), (CHUNKED, b"6\r\nhalf o", CUT_SHORT)])
def test_what_is_no_result(server, image, tmp_path, headers, body, words):
    asked, out = server([(200, headers, body)]), tmp_path / "out.ppm"
    out.write_bytes(b"old")
    retries = ("--retries", 0) if words == CUT_SHORT else ()  # others are not asked for again
    said = complains("", asked.url, "box", image, "--force", "-o", out, *retries)
    assert re.search(words, said) and asked.connections == 1
    assert out.read_bytes() == b"old" and found(tmp_path).keys() == {"in.ppm", "out.ppm"}


def test_no_batch_for_another_service(server, tree, tmp_path):
    asked = server(lambda handler: (200, {"Content-Type": "text/html"}, b"<html>"))
    run(asked.url, "box", tree, "-o", tmp_path / "out", "-j", 1, status=1)
    assert len(asked.requests) == 1 and found(tmp_path / "out") == {}


def test_a_result_in_chunks(server, image, tmp_path):
    asked = server([(200, CHUNKED, b"9\r\nall of it\r\n0\r\n\r\n")])
    run(asked.url, "box", image, "-o", tmp_path / "out.ppm")
    assert (tmp_path / "out.ppm").read_bytes() == b"all of it"


# Bodies -------------------------------------------------------------------------------------------

@pytest.fixture
def large(tmp_path):
    """An image for whose body the client asks first."""
    path = tmp_path / "large.ppm"
    with path.open("wb") as file:
        file.truncate(40 << 20)
    return path


def test_a_refusal_comes_before_a_large_body(server, tmp_path, large):
    asked, rest = server(), []

    def refuse(handler):
        handler.reply(problem(413, "the body is too large", "body-too-large"))
        rest.append(handler.rfile.read(1))

    asked.expected = refuse
    complains("the body is too large", asked.url, "box", large, "-o", tmp_path / "out.ppm")
    poll(lambda: rest, what="the client's end")
    assert rest == [b""], "nothing of the body was sent"


def test_an_input_that_shrinks(server, tmp_path, large):
    asked = server()
    asked.expected = lambda _: os.truncate(large, 1 << 20) is None
    _, said = run(asked.url, "box", large, "-o", tmp_path / "out.ppm", status=1)
    assert said == f"convolve: {large}: the file became shorter while it was read\n" and asked.connections == 1
    assert found(tmp_path).keys() == {"large.ppm"}


def test_a_body_is_sent_again_from_its_start(server, tmp_path):
    """By the library, over a new connection, since the one that was kept has gone meanwhile."""
    size = 900 << 10  # not so large that the service is asked first
    images = fill(tmp_path / "images", "a.ppm", "b.ppm")
    for name in "ab":
        (images / f"{name}.ppm").write_bytes(name.encode() * size)

    def answer(handler):
        if len(asked.requests) != 2:
            return 200, {}, b"result"
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        os.close(handler.connection.detach())  # a reset
        return None

    asked = server(answer)
    run(asked.url, "box", images, "-o", tmp_path / "out", "-j", 1, "--retries", 0, "--timeout", 9)
    assert asked.bodies == [b"a" * size, b"b" * size, b"b" * size] and asked.connections == 2
    assert found(tmp_path / "out") == {"a.ppm": b"result", "b.ppm": b"result"}


# Silence ------------------------------------------------------------------------------------------

def test_a_service_that_is_silent(server, stalling, image, large):
    """It takes the request and says nothing; or takes nothing of it, or stops in the middle."""
    silent = server(lambda _: threading.Event().wait(60))
    with socket.create_server(("127.0.0.1", 0)) as deaf, contextlib.ExitStack() as stack:
        nobody = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        clients = []
        for url, *arguments in ((nobody, "devices"), (nobody, "box", large, "-o-"),
                                (silent.url, "box", image, "-o-"), (stalling.url, "box", image, "-o-")):
            client = stack.enter_context(start(url, *arguments, "--timeout", 1))
            stack.callback(client.kill)
            clients.append((client, url))
        for client, url in clients:
            written, said = client.communicate(timeout=60)
            assert said.decode().startswith(
                f"convolve: {url} timed out (see --timeout): ") and said.count(b"\n") == 1
            assert (client.returncode, written) == (3, b"")
        assert silent.connections == stalling.connections == 1
        deaf.setblocking(False)
        for _ in range(2):
            deaf.accept()[0].close()
        with pytest.raises(BlockingIOError):
            deaf.accept()
