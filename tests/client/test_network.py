"""Hosts that the client believes, its secrets and who sees them, and bad connections."""
import contextlib
import re
import shutil
import socket
import subprocess
import threading

import pytest

from certificates import localhost_certificate
from client import fill, found, in_namespace, ppm, run, start
from scripted import problem


@contextlib.contextmanager
def listening(serve):
    """Calls serve(connection) for one connection after another; gives the URL and a list to which
    connections are added as they come."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:
        def accept():
            with contextlib.suppress(OSError):
                while True:
                    came.append(stack.enter_context(listener.accept()[0]))
                    serve(came[-1])

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", came
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def head_of(connection):
    """Reads the head of a request, and what came with it of the body."""
    got = b""
    while b"\r\n\r\n" not in got:
        more = connection.recv(65536)
        assert more, got
        got += more
    return got.split(b"\r\n\r\n", 1)


def body_of(connection, size, got=b""):
    while len(got) < size and (more := connection.recv(1 << 20)):
        got += more
    return got


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
    _, said = run(asked.url, "devices", "--token-file", token, status=2)
    assert "expected a token of one word" in said and "two words" not in said


@pytest.mark.parametrize("address", [
    "http://192.0.2.1", "192.0.2.1:8700", "http://localhost.example", "http://127.0.0.1.example",
    "http://127.0.0.1@192.0.2.1", "http://[2001:db8::1]:8700", "HTTP://192.0.2.1/localhost",
    "http://notlocalhost"])
def test_no_token_in_clear(token, address):
    _, said = run(address, "devices", "--token-file", token, status=2)
    assert "the token would travel unencrypted" in said and said.count("\n") == 1


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
    _, said = run(asked.url, "box", image, "-o", tmp_path / "out.ppm", "--token-file", token,
                  status=1)
    assert said == (f"convolve: {image}: the service redirects to {elsewhere.url}/v1: give that "
                    "address if you trust it\n")
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

def answer(body, *headers, kind="image/x-portable-pixmap", image="40x30x3:u8"):
    """Returns an answer as the service sends it; without a header if that is None."""
    lines = ["HTTP/1.1 200 OK", *headers, *[f"Content-Type: {kind}"] * (kind is not None),
             *[f"X-Image: {image}"] * (image is not None)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def sending(sent):
    """Returns an answer of scripted.Server: these bytes, and the connection's end."""
    return lambda handler: handler.wfile.write(sent) and None


def whole(body, **more):
    return answer(body, f"Content-Length: {len(body)}", **more)


CUT_SHORT = "cut short|the connection broke off"


@pytest.mark.parametrize("sent, words", [
    (whole(b"<html>Welcome!", kind="text/html; charset=utf-8", image=None), "the answer is not an image "
     r"\(its type is text/html; charset=utf-8\): is there a convolved at "),
    (whole(b"<html>", kind="text/html"), r"is not an image \(its type is text/html\)"),
    (whole(b"P6", image=None), r"is not an image \(its type is image/x-portable-pixmap\)"),
    (whole(b"P6", kind=None), r"is not an image \(its type is not given\)"),
    (whole(b""), "the result is empty"),
    (answer(b"half of it"), CUT_SHORT),  # its end is that of the connection
    (answer(b"half of it", "Content-Length: 100"), CUT_SHORT),
    (answer(b"a\r\nhalf of it\r\n", "Transfer-Encoding: chunked"), CUT_SHORT),
    (answer(b"6\r\nhalf o", "Transfer-Encoding: chunked"), CUT_SHORT),
])
def test_what_is_no_result(server, image, tmp_path, sent, words):
    asked, out = server(sending(sent)), tmp_path / "out.ppm"
    out.write_bytes(b"old")
    retries = ("--retries", 0) if words == CUT_SHORT else ()  # others are not asked for again
    _, said = run(asked.url, "box", image, "--force", "-o", out, *retries, status=1)
    assert re.search(words, said) and said.count("\n") == 1 and asked.connections == 1
    assert out.read_bytes() == b"old" and found(tmp_path).keys() == {"in.ppm", "out.ppm"}


def test_no_batch_for_another_service(server, tree, tmp_path):
    asked = server(lambda handler: (200, {"Content-Type": "text/html"}, b"<html>"))
    run(asked.url, "box", tree, "-o", tmp_path / "out", "-j", 1, status=1)
    assert len(asked.requests) == 1 and found(tmp_path / "out") == {}


def test_a_result_in_chunks(server, image, tmp_path):
    chunks = answer(b"9\r\nall of it\r\n0\r\n\r\n", "Transfer-Encoding: chunked")
    run(server(sending(chunks)).url, "box", image, "-o", tmp_path / "out.ppm")
    assert (tmp_path / "out.ppm").read_bytes() == b"all of it"


def test_a_refusal_comes_before_a_large_body(tmp_path):
    large, rest = tmp_path / "large.ppm", []
    with large.open("wb") as file:
        file.truncate(40 << 20)

    def refuse(connection):
        head, body = head_of(connection)
        assert b"Expect: 100-continue" in head and not body
        _, headers, document = problem(413, "the body is too large", "body-too-large")
        connection.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: %d\r\n\r\n" %
                           len(document) + document)
        rest.append(body_of(connection, 1))

    with listening(refuse) as (url, _):
        _, said = run(url, "box", large, "-o", tmp_path / "out.ppm", status=1)
    assert "the body is too large" in said and rest == [b""], "nothing of the body was sent"


# Silence ------------------------------------------------------------------------------------------

def test_a_service_that_is_silent(tmp_path, image):
    """It takes the request and says nothing; or takes nothing of it, or stops in the middle."""
    (tmp_path / "large.ppm").write_bytes(bytes(40 << 20))

    def says_half(connection):
        _, body = head_of(connection)
        body_of(connection, len(ppm()), body)
        connection.sendall(answer(b"half of it", "Content-Length: 100"))

    with contextlib.ExitStack() as stack:
        clients = []
        for serve, arguments in ((lambda connection: None, ("devices",)),
                                 (lambda connection: None, ("box", tmp_path / "large.ppm", "-o-")),
                                 (head_of, ("box", image, "-o-")),
                                 (says_half, ("box", image, "-o-"))):
            url, came = stack.enter_context(listening(serve))
            client = stack.enter_context(start(url, *arguments, "--timeout", 1))
            stack.callback(client.kill)
            clients.append((client, url, came))
        for client, url, came in clients:
            written, said = client.communicate(timeout=60)
            assert said.decode().startswith(
                f"convolve: {url} timed out (see --timeout): ") and said.count(b"\n") == 1
            assert (client.returncode, written, len(came)) == (3, b"", 1)


# Bodies -------------------------------------------------------------------------------------------

def test_a_body_is_sent_again_from_its_start(tmp_path):
    """By the library, over a new connection, since the one that was kept has gone meanwhile."""
    bodies = []
    images = fill(tmp_path / "images", "a.ppm", "b.ppm")
    size = 900 << 10  # not so large that the service is asked first
    for name in "ab":
        (images / f"{name}.ppm").write_bytes(name.encode() * size)

    def serve(connection):
        for turn in range(2):
            head, body = head_of(connection)
            if turn and len(came) == 1:
                body_of(connection, size, body)  # all: the error that breaks off a sending
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.close()  # a reset
                return
            bodies.append(body_of(connection, size, body))
            connection.sendall(answer(b"result", "Content-Length: 6"))
            if len(bodies) == 2:
                return

    with listening(serve) as (url, came):
        run(url, "box", images, "-o", tmp_path / "out", "-j", 1, "--retries", 0, "--timeout", 9)
    assert bodies == [b"a" * size, b"b" * size] and len(came) == 2
    assert found(tmp_path / "out") == {"a.ppm": b"result", "b.ppm": b"result"}


def test_an_input_that_shrinks(tmp_path):
    large = tmp_path / "large.ppm"
    with large.open("wb") as file:
        file.truncate(40 << 20)

    def serve(connection):
        head_of(connection)  # the body waits for leave to come
        with large.open("r+b") as file:
            file.truncate(1 << 20)
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body_of(connection, 40 << 20)

    with listening(serve) as (url, came):
        _, said = run(url, "box", large, "-o", tmp_path / "out.ppm", status=1)
    assert said == f"convolve: {large}: the file became shorter while it was read\n" and len(came) == 1
    assert found(tmp_path).keys() == {"large.ppm"}
