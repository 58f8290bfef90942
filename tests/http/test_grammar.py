"""The grammar of requests (RFC 9110, RFC 9112): bytes that are no request, or could be read as
two, are refused and end the connection; every request is answered."""
import re
import socket
import subprocess
import time

import pytest

from certificates import tls_address
from service import SMALL, poll, raw_kind, read_answer

GET = "GET /livez HTTP/1.1\r\nHost: x\r\n"
BOX = f"POST /v1/filters/box?raw={raw_kind(SMALL)}&format=raw HTTP/1.1\r\nHost: x\r\n"
BODY = SMALL.tobytes().decode("latin-1")
CHUNKED = BOX + "Transfer-Encoding: chunked\r\n\r\n"
WHOLE = f"{len(BODY):x}\r\n{BODY}\r\n0\r\n\r\n"


# Requests with one part that varies, in place of the dots. A header's value begins at the colon.
ANY, LINE, TARGET = "…", "…\r\nHost: x\r\n\r\n", "GET … HTTP/1.1\r\nHost: x\r\n\r\n"
HEADER, HOST = f"{GET}…\r\n\r\n", "GET /livez HTTP/1.1\r\nHost:…\r\n\r\n"
CODING = f"{BOX}Transfer-Encoding:…\r\n\r\n{WHOLE}"
LENGTH, WHOLE_LENGTH = (f"{BOX}Content-Length:…\r\n\r\n{body}" for body in ("hello", BODY))
CONTENT_CODING = f"{BOX}Content-Encoding:…\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"
CHUNK_SIZE, CHUNKS = f"{CHUNKED}…\r\nhello\r\n0\r\n\r\n", f"{CHUNKED}…"
TRAILER = f"{CHUNKED}{WHOLE[:-2]}…\r\n\r\n"


def characters(text, codes):
    """Returns the text with each character in place of its @."""
    return [text.replace("@", chr(code)) for code in codes]


CONTROLS = [0, *range(1, 9), 11, 12, *range(14, 32), 127]
REFUSED = [(request, status) for status, form, texts in (
    # Request lines
    (400, LINE, [
        "GET", "GET /livez", "GET  /livez HTTP/1.1", "GET /livez  HTTP/1.1", "GET /livez HTTP/1.1 ",
        " GET /livez HTTP/1.1", "GET\t/livez HTTP/1.1", "GET /livez\tHTTP/1.1",
        "GET /live z HTTP/1.1", "GE(T /livez HTTP/1.1", "GET: /livez HTTP/1.1", " /livez HTTP/1.1",
        "\r\n\r\nGET /livez HTTP/1.1", "\nGET /livez HTTP/1.1", "\rGET /livez HTTP/1.1",
        "GET /livez http/1.1", "GET /livez HTTP", "GET /livez HTTP/1", "GET /livez HTTP/1.1.1",
        "GET /livez HTTP/1.10", "GET /livez HTTP/1,1", "GET /livez ICY/1.1"]),
    (505, LINE, ["GET /livez HTTP/0.9", "GET /livez HTTP/1.2", "GET /livez HTTP/9.9"]),
    (505, ANY, ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]),
    # Other protocols: TLS, nothing, SSH, SMTP
    (400, ANY, ["\x16\x03\x01\x02\0\1\0\1\xfc\3\3" + "\0" * 100, "\0" * 500,
                "SSH-2.0-OpenSSH_9.2\r\n", "EHLO example.org\r\n"]),
    # Targets
    (400, LINE, ["OPTIONS *x HTTP/1.1", "CONNECT example.org:443 HTTP/1.1"]),
    (400, TARGET, [
        "livez", "*", "ftp://x/livez", "http:///livez", "http://", "http://me@x/livez",
        "http://x:y/livez", "/livez#top", "/livez%", "/livez%4", "/livez%zz", "/livez?a=50%",
        "/livez?a=%00", "/livez%00.jpg", "/g\xc3\xa4ussian",
        *(f"/livez?a=%{code:02x}" for code in (1, 9, 10, 13, 27, 31, 127)),
        *characters("/livez?a=@", (0, 1, 8, 11, 27, 127, 128, 255))]),
    (414, ANY, ["GET /" + "a" * 100000]),
    (414, TARGET, ["/" + "a" * 300000, "/livez?" + "&a" * 1900, "/livez?" + "&" * 90000]),
    # Line ends
    (400, ANY, ["GET /livez HTTP/1.1\nHost: x\r\n\r\n", "GET /livez HTTP/1.1\rHost: x\r\n\r\n",
                GET + "\n"]),
    (400, HEADER, ["A: b\nC: d", "A: b\rC: d", "A: b\r", "A\rB: c", "A: b\rc"]),
    # Headers
    (400, LINE, ["GET /livez HTTP/1.1\r\n A: b", "GET /livez HTTP/1.1\r\n\tA: b"]),
    (400, HEADER, [
        "Accept", ": x", "A: b\r\n c", "A: b\r\n\tc", "A: b\r\n ", "Accept : */*", "Accept\t: */*",
        "A b: c", "\xc3\xa4: c", *characters("A@B: c", map(ord, '()/<>?@[]\\{}",;=')),
        *characters("A: b@c", CONTROLS)]),
    (431, HEADER, ["X: y\r\n" * 100 + "X: y", "X: " + "y" * 100000,
                   ("X: " + "y" * 5000 + "\r\n") * 19 + "X: " + "y" * 5000,
                   "Cookie: " + "a=b;" * 2000, "Cookie: " + "a," * 2000,
                   "Cookie: a=" + "b" * 70000]),
    # Host
    (400, ANY, ["GET /livez HTTP/1.1\r\n\r\n", "GET http://x/livez HTTP/1.1\r\n\r\n",
                "GET /livez HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n",
                "GET /livez HTTP/1.1\r\nHost : x\r\n\r\n"]),
    (400, HEADER, ["Host: y", "Host: x", "hOST: x"]),
    (400, HOST, ["", "  \t ", " x y", " x/y", " http://x/", " me@x", " x:http", " x:1:2",
                 " x:65536", " :80", " [::1", " []", " [::1]x", " [x::1]", ' "x"', " \xc3\xa4"]),
    # Transfer-Encoding
    (400, CODING, [
        " chunked, chunked", " chunked\r\nTransfer-Encoding: chunked",
        " chunked\r\nTransfer-Encoding: gzip", " gzip, chunked", "", " chunked;q=1", ' "chunked"',
        " chunked ", " chunked\t", " chunked,", " ,chunked", " \vchunked",
        " chunked\r\nContent-Length: 5"]),
    (501, CODING, [" gzip", " identity", " xchunked", " gzip\r\nTransfer-Encoding: chunked"]),
    (400, ANY, [
        f"{BOX}Transfer-Encoding : chunked\r\n\r\n{WHOLE}",
        CHUNKED.replace("HTTP/1.1", "HTTP/1.0") + WHOLE,
        f"{BOX}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n{WHOLE}",
        f"{BOX}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n{WHOLE}",
        f"{GET}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]),
    # Content-Length
    (400, LENGTH, [" 5\r\nContent-Length: 6", " 5\r\nContent-Length: 5", " 5, 5", " +5", " -5",
                   " 0x5", " 5a", " 5.0", " 1e1", " 5 0", ' "5"', " 5 ", "", " \t"]),
    (400, ANY, [BOX + "Content-Length : 5\r\n\r\nhello"]),
    (413, LENGTH, [" 18446744073709551621", " 9223372036854775808", " " + "9" * 500]),
    # Chunks
    (400, CHUNK_SIZE, ["", "zz", "0x5", "+5", "-5", " 5", "5 ", "5\t", "5 ;a=b", "5 5", "5;a=\rb",
                       "5;a=\0", "4", "5;a=" + "b" * 4096, "0" * 5000 + "5"]),
    (400, CHUNKS, [
        "5\nhello\r\n0\r\n\r\n", "5;a=b\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\r0\r\n\r\n", "5\r\nhello0\r\n\r\n", WHOLE[:-4] + "\n\r\n", WHOLE[:-2] + "\n",
        "5;a=" + "b" * 200000, "0" * 17 + "\r\n\r\n"]),
    (413, CHUNKS, ["1" + "0" * 16 + "\r\nhello", "f" * 16 + "\r\nhello"]),
    # Trailers
    (400, TRAILER, ["trailer", "A: b\r\n c", "A : b", "Content-Length: 5",
                    "Transfer-Encoding: chunked", "Host: y", "A: \0"]),
    (431, TRAILER, ["A: " + "b" * 9000]),
    # Content
    (415, CONTENT_CODING, [" gzip", " identity, br"]),
    (415, ANY, [f"{BOX}Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n{WHOLE}"]),
) for request in (form.replace("…", text) for text in texts)]

TRAILERS = TRAILER.replace("…", "Digest: x\r\nA: b")
MANY_CHUNKS = CHUNKED + "".join(f"1\r\n{c}\r\n" for c in BODY) + "0\r\n\r\n"
EXTENSIONS = (f"{CHUNKED}1;a=b\r\n{BODY[0]}\r\n{len(BODY) - 1:x};c\r\n{BODY[1:]}\r\n"
              '0;d="e"\r\n\r\n')
LONG_EXTENSIONS = ("PUT /v1/filters/box HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                   + ("3e8;" + "x" * 3000 + "\r\n" + "a" * 1000 + "\r\n") * 100 + "0\r\n\r\n")
ANSWERED = [(request, status) for status, form, texts in (
    (200, LINE, ["GET /livez HTTP/1.1", "\r\nGET /livez HTTP/1.1", "GET /livez HTTP/1.0"]),
    (200, ANY, ["GET /livez HTTP/1.0\r\n\r\n",
                "GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"]),
    (200, TARGET, ["http://x/livez", "http://example.org:8700/livez", "HTTPS://example.org/livez",
                   "http://[::1]:80/readyz?verbose", "http://example.org", "/l%69vez"]),
    (204, LINE, ["OPTIONS /livez HTTP/1.1", "OPTIONS * HTTP/1.1"]),
    (404, LINE, ["OPTIONS /nothing HTTP/1.1"]),
    (405, LINE, ["BREW /livez HTTP/1.1"]),
    (405, ANY, [LONG_EXTENSIONS]),
    (400, TARGET, ["/livez?" + "a&" * 1200]),  # no parameter of such a request, but not too many
    (200, ANY, ["GET /livez HTTP/1.1\r\nhOsT: x\r\n\r\n"]),
    (200, HOST, ["x", " \t x \t ", " example.org:8700", " example.org:", " 127.0.0.1:65535",
                 " [2001:db8::1]:8700", " my_service-1.local"]),
    (200, HEADER, ["A:", "A: \xc3\xa4 \xff", "A: b\tc", "!#$%&'*+-.^_`|~09AZaz: c",
                   "X: y\r\n" * 98 + "X: y", "X: " + "y" * 65536, "Cookie: " + "a=b; " * 1000,
                   "Cookie: a=" + "b" * 40000, "Content-Encoding: gzip"]),
    (200, ANY, [GET + "Content-Length: 5\r\n\r\nhello"]),
    (200, WHOLE_LENGTH, [f" 000{len(BODY)}", f" \t {len(BODY)}"]),
    (200, CHUNKS, [WHOLE, "000000" + WHOLE, WHOLE.replace(f"{len(BODY):x}", f"{len(BODY):X}", 1),
                   f"1;{'a' * 4000}\r\n{BODY[0]}\r\n{len(BODY) - 1:x}\r\n{BODY[1:]}\r\n0\r\n\r\n"]),
    (200, ANY, [f"{BOX}TRANSFER-ENCODING: \t Chunked\r\n\r\n{WHOLE}", MANY_CHUNKS, EXTENSIONS,
                TRAILERS]),
    (200, CONTENT_CODING, [" Identity"]),
) for request in (form.replace("…", text) for text in texts)]


def shown(value):
    """Returns the name of a request: its end tells more, where it is long."""
    text = repr(value)
    return text if len(text) < 80 else f"{text[:30]}...{text[-40:]}"


def ask(connection, text):
    connection.sendall(text.encode("latin-1"))
    return read_answer(connection)


@pytest.fixture(scope="module")
def encrypted(launch, shared, tmp_path_factory):
    """The address with TLS of another service. No test costs either a worker."""
    before = shared.restarts()
    client, options = tls_address(tmp_path_factory.mktemp("tls"))
    with launch(*options) as other:
        yield client
        assert (other.restarts(), shared.restarts()) == (0, before), other.tail() + shared.tail()


@pytest.fixture(params=["plain", pytest.param("TLS", marks=pytest.mark.slow)])
def client(request, shared, encrypted):
    return encrypted if request.param == "TLS" else shared


@pytest.fixture
def connection(client):
    with client.socket() as opened:
        yield opened


@pytest.mark.parametrize("text, status", REFUSED, ids=shown)
def test_refused(connection, text, status):
    answer = ask(connection, text)
    assert answer.status == status, answer
    assert answer.problem
    if status == 415:
        assert ask(connection, GET + "\r\n").status == 200, "the next request"
    else:
        assert not connection.recv(1), "the connection stays open"


@pytest.mark.parametrize("text, status", ANSWERED, ids=shown)
def test_answered(connection, text, status):
    answer = ask(connection, text)
    assert answer.status == status, answer
    if text.startswith("POST"):
        assert answer.pixels.shape == SMALL.shape
    if "HTTP/1.0" in text and "keep-alive" not in text:
        assert not connection.recv(1), "the connection stays open"
    else:
        assert ask(connection, GET + "\r\n").status == 200, "the next request"


@pytest.mark.parametrize("text, status", [(CHUNK_SIZE.replace("…", "4"), 400),
                                          (HEADER.replace("…", "Host: y"), 400),
                                          (EXTENSIONS, 200), (TRAILERS, 200)], ids=shown)
def test_every_byte_alone(service, text, status):
    """Cut anywhere, a request is the same."""
    with service.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in text.encode("latin-1"):
            try:
                connection.sendall(bytes([byte]))
            except OSError:
                break  # refused before its end
        assert read_answer(connection).status == status


@pytest.mark.parametrize("follows", [
    b"Connection: close\r\n\r\n\0\0\0garbage",
    # A request that the library takes for another's predecessor, because of the space.
    b"Connection: close \r\n\r\nGET /livez HTTP/1.1\r\n\r\n"])
def test_after_the_last_request(service, follows):
    """Bytes that follow a request that ends its connection are not read."""
    with service.socket() as connection:
        connection.sendall(GET.encode() + follows)
        found = connection.makefile("rb").read()
    assert found.count(b"HTTP/1.1 ") == 1 and found.startswith(b"HTTP/1.1 200"), found


def sent_whole(connection, *pieces):
    """Returns the answer that a client finds that sends all before it looks."""
    for piece in pieces:
        connection.sendall(piece)
    return read_answer(connection)


def in_time(client, talk):
    """Returns what a talk over a new connection returns. The service goes on reading for 2 s after its
    answer: whoever is slower may find a reset, and talks again."""
    def done():
        begun = time.monotonic()
        with client.socket() as connection:
            try:
                return talk(connection)
            except OSError:
                assert time.monotonic() - begun > 2, "a reset"
                return None
    return poll(done, what="a client that is fast enough")


@pytest.mark.parametrize("text, more, status", [
    (CHUNK_SIZE.replace("…", "zz"), b"x" * 65536, 400),
    (CHUNKED.replace("box", "none"), b"10000\r\n" + b"x" * 65536 + b"\r\n", 404)], ids=shown)
def test_answer_while_sending(service, text, more, status):
    """The refusal reaches a client that goes on sending more than is dropped, and whose connection
    then ends."""
    def talk(connection):
        answer = sent_whole(connection, text.encode("latin-1"), *[more] * 150)
        with pytest.raises(ConnectionError):
            while True:
                connection.sendall(more)
        return answer
    assert in_time(service, talk).status == status


def test_options(service):
    answer = service.request("OPTIONS", "/v1/filters/box")
    assert answer.status == 204 and not answer.body
    assert answer.headers["Allow"] == "OPTIONS, POST, GET, HEAD"
    assert "DELETE" in service.request("OPTIONS", "*").headers["Allow"]


def test_content_coding(service):
    answer = service.post("/v1/filters/box", b"x", headers={"Content-Encoding": "br"})
    answer.refused(415, "content-coded", "br")
    assert answer.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("options, taken", [
    (["-tls1_3"], True), (["-tls1_2"], True), (["-tls1_1"], False), (["-tls1"], False),
    (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], True),
    (["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"], True),
    (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"], False),
    (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384"], False),
    (["-tls1_3", "-groups", "ffdhe2048"], False),
], ids=str)
def test_suites(encrypted, options, taken):
    address = f"{encrypted.host}:{encrypted.port}"
    done = subprocess.run(["openssl", "s_client", "-connect", address, *options,
                           *([] if "-cipher" in options else ["-cipher", "ALL:@SECLEVEL=0"])],
                          input="", capture_output=True, text=True, timeout=60)
    agreed = re.search(r"Cipher is (?!\(NONE\))", done.stdout)
    assert bool(agreed) == taken, done.stdout


LONG = 30 << 20
CHUNK = f"HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{LONG:x}\r\n"
FORM = ("POST /v1/filters/box HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B"
        f"\r\nContent-Length: {LONG}\r\n\r\n--B\r\n")


@pytest.mark.parametrize("text, status", [
    (f"POST /v1/filters/none {CHUNK}", 404), (f"PUT /v1/filters/box {CHUNK}", 405),
    (FORM + "nonsense\r\n", 400),
    (FORM + "Content-Disposition: form-data; name=sigma\r\n\r\n", 400)], ids=shown)  # a long text
@pytest.mark.parametrize("client", ["plain", "TLS"], indirect=True)
def test_long_body_that_is_refused(client, text, status):
    """A client that sends all of it before it looks finds the answer, not a reset."""
    answer = in_time(client, lambda connection: sent_whole(
        connection, text.encode(), *[b"a" * (1 << 20)] * (LONG >> 20)))
    assert answer.status == status and answer.problem, answer
