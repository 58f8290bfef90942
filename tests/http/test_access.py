"""Access: tokens, TLS, addresses for metrics alone, and what may be served to whom."""
import contextlib
import hashlib
import http.client
import os
import re
import secrets
import socket
import ssl
import stat
import subprocess

import pytest

from certificates import localhost_certificate
from clients import Clients
from command import INVALID, hashed, passing, run
from jobs import PREFER, begin
from pixels import random_pixels
from reloads import read_again, reload
from service import (PROGRAM, SMALL, Client, free_port, raw_kind, read_answer, request_head,
                     target_of)

NAMES = ("alice", "bob", "carol")
TOKENS = {name: secrets.token_urlsafe(32) for name in NAMES}
TARGET = "/v1/filters/box?raw=11x7x3:u8&format=raw"
BODY = SMALL.tobytes()


def bearer(name):
    return {"Authorization": f"Bearer {TOKENS[name]}"}


def section(name, more=""):
    """Returns the lines of a file of tokens about one of them."""
    return f"[{name}]\ntoken-sha256={hashlib.sha256(TOKENS[name].encode()).hexdigest()}\n{more}"


def token_file(directory, *sections):
    """Writes a file of tokens at once, as an editor would; by default of one."""
    path, new = directory / "tokens", directory / "tokens.new"
    new.write_text("".join(sections or [section("alice")]))
    new.chmod(0o640)
    return new.rename(path)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Two certificates that are their own authorities, and their keys."""
    return [localhost_certificate(tmp_path_factory.mktemp("tls")) for _ in range(2)]


@pytest.fixture
def guarded(launch, tmp_path):
    file = token_file(tmp_path, section("alice"), section("bob", "share=3\n"),
                      section("carol", "class=batch\n"))
    with launch("--tokens", str(file), "--codecs", "2", "--log-level", "debug") as service:
        service.headers, service.tokens = bearer("alice"), file
        yield service


def plain(service):
    """Returns the same address without a token."""
    return Client(service.host, service.port)


def test_tokens(guarded):
    """Each token allows its own requests; and no token is ever written anywhere."""
    anyone = plain(guarded)
    for answer in (anyone.post(TARGET, BODY), anyone.get("/v1/filters"), anyone.get("/metrics"),
                   anyone.get("/nothing"), anyone.get("/v1/jobs/1")):
        answer.refused(401, "token-required")
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="convolved"'
    said = b""
    for wrong in (f"Bearer {TOKENS['alice'][:-1]}", f"Bearer {TOKENS['alice']}x", "Bearer ",
                  f"Basic {TOKENS['alice']}", TOKENS["alice"]):
        answer = anyone.post(TARGET, BODY, headers={"Authorization": wrong})
        assert answer.status == 401, (wrong, answer)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
        said += answer.body + str(answer.headers).encode()
    unknown = {"Authorization": f"Bearer {'a' * 40}"}
    anyone.get("/v1/devices", headers=unknown).refused(401, "token-unknown")
    for path in ("/livez", "/readyz", "/readyz?verbose"):
        assert anyone.get(path).status == 200
    for name in NAMES:
        for target in (TARGET, f"{TARGET}&priority=batch"):
            assert anyone.post(target, BODY, headers=bearer(name)).status == 200
        assert anyone.get("/metrics", headers=bearer(name)).status == 200
    spaced = {"Authorization": f"bearer  {TOKENS['bob']}"}
    assert anyone.get("/v1/filters", headers=spaced).status == 200
    assert guarded.total("convolved_requests_rejected_total", reason="token-required") >= 5
    said += guarded.log.read_bytes()
    for token in TOKENS.values():
        assert token.encode() not in said


BATCH_ALONE = {"slug": "class-not-allowed", "parameter": "priority"}


@pytest.mark.parametrize("target, who, status, problem", [
    (TARGET, None, 401, {"slug": "token-required"}),
    (TARGET + "&priority=interactive", "carol", 403, BATCH_ALONE)])
@pytest.mark.parametrize("size", [
    ["Content-Length: 200000000"], [f"Content-Length: {len(BODY)}", "Expect: 100-continue"]])
def test_refused_before_the_body(guarded, target, who, status, problem, size):
    token = [f"Authorization: Bearer {TOKENS[who]}"] if who else []
    guarded.send(request_head(target, *size, *token)).refused(status, **problem)


def test_jobs_belong_to_their_token(guarded):
    job = begin(guarded, TARGET, BODY)
    for method, target in (("GET", job), ("GET", f"{job}/result?wait=9"), ("GET", f"{job}/events"),
                           ("DELETE", job)):
        guarded.request(method, target, headers=bearer("bob")).refused(404, "not-found")
        plain(guarded).request(method, target).refused(401, "token-required")
    key = {**PREFER, "Idempotency-Key": "a key"}
    paths = [guarded.post(TARGET, BODY, headers={**key, **bearer(name)}).headers["Location"]
             for name in ("alice", "bob")]
    assert len({job, *paths}) == 3
    for name, own in (("alice", {job, paths[0]}), ("bob", {paths[1]}), ("carol", set())):
        listed = guarded.get("/v1/jobs", headers=bearer(name)).json()["jobs"]
        assert {one["links"]["self"] for one in listed} == own
    plain(guarded).get("/v1/jobs").refused(401, "token-required")
    assert guarded.get(f"{job}/result?wait=60").pixels.shape == SMALL.shape
    assert guarded.get(f"{job}/events").body.startswith(b"event: end")
    assert guarded.request("DELETE", job).status == 204


def test_reload(guarded, tmp_path):
    """Tokens come and go while requests run; an invalid file changes nothing."""
    images, alice = [random_pixels(1, 200, 150, 3, "u8")], section("alice")
    invalid = [
        ("[alice]\ntoken-sha256=12\n", r"tokens:2: token-sha256 of \[alice\]: expected 64 hex"),
        ("[alice]\n", r"\[alice\] has no valid token-sha256"),
        (f"[alice]\ntoken={TOKENS['alice']}\n", "tokens:2: unknown key token; expected token-"),
        (alice + alice.replace("alice", "b"), "tokens:4: .*no other section"),
        (alice + "share=0\n", "tokens:3: share of .*0.01 to 100"),
        (alice + "class=slow\n", "tokens:3: class of .*interactive or batch"),
        (alice.replace("alice", "al ice"), r"tokens:1: \[al ice\]: expected a name"),
        ("", "no token in the file")]

    def allowed():
        return [name for name in NAMES
                if guarded.get("/v1/filters", headers=bearer(name)).status == 200]
    with Clients(guarded, images, [("box", {"size": 3})], 2) as load:
        load.more(5)
        token_file(tmp_path, alice, section("bob"))
        read_again(guarded)
        assert allowed() == ["alice", "bob"]
        load.more(5)
        for broken, says in invalid:
            guarded.tokens.write_text(broken)
            log = read_again(guarded, "stays as it was")
            assert re.search(says, log), log
            assert allowed() == ["alice", "bob"]
        token_file(tmp_path).chmod(0o644)
        assert "others may read" in read_again(guarded, "stays as it was")
        token_file(tmp_path, alice, section("carol"))
        read_again(guarded)
        assert allowed() == ["alice", "carol"]
        load.more(5)
    assert not load.problems, load.problems[:3]
    assert TOKENS["alice"] not in guarded.log.read_text()


def test_hash_token():
    """The line holds the SHA-256; a token too short to be random is refused."""
    known = hashlib.sha256(b"a-token-of-some-length").hexdigest()
    assert hashed("a-token-of-some-length") == f"token-sha256={known}\n"
    for unfit in ("", "short", "with spaces in between it", "x" * 1025):
        done = run("--hash-token", text=unfit)
        assert done.returncode == INVALID and "openssl rand" in done.stderr and not done.stdout


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:192.0.2.1]:1"])
def test_other_hosts(address, tmp_path):
    """Addresses in others' reach need tokens or a word; the refusal says all ways out."""
    listen = ("--check-config", "--listen", address)
    done = run(*listen)
    assert done.returncode == INVALID
    for way in (address, "tokens=", "allow-anonymous=yes", "127.0.0.1"):
        assert way in done.stderr, done.stderr
    assert run(*listen, "--allow-anonymous", "yes").returncode == 0
    done = run(*listen, "--tokens", token_file(tmp_path))
    assert done.returncode == 0 and "not encrypted" in done.stderr, done.stderr
    assert run(*listen[1:]).returncode == INVALID  # a start, too
    here = "127.0.0.1:1;127.8.9.1:1;[::1]:1;unix:/x;[::ffff:127.0.0.1]:1"
    assert run("--check-config", "--listen", here).returncode == 0


def test_credentials(tmp_path, pairs):
    """Without options, what systemd has put into the directory of credentials."""
    directory = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    token_file(tmp_path)
    install(pairs[0], [tmp_path / "tls-certificate", tmp_path / "tls-key"])
    listen = ("--check-config", "--listen", "tls:0.0.0.0:1")
    done = run(*listen, environment=directory)
    assert done.returncode == 0 and not done.stderr, done.stderr
    (tmp_path / "tls-key").unlink()
    done = run(*listen, environment=directory)
    assert done.returncode == INVALID and "tls-certificate is set but not tls-key" in done.stderr


def test_pairs_that_do_not_fit(tmp_path, pairs):
    (first, key), (second, _) = pairs
    listen = ("--check-config", "--listen", "tls:127.0.0.1:1")
    loose, text = tmp_path / "loose.key", tmp_path / "text"
    loose.write_bytes(key.read_bytes())
    loose.chmod(0o644)
    text.write_text("not a certificate\n")
    for pair, says in (([], ["tls-certificate", "tls-key"]), ([second, key], ["do not match"]),
                       ([first, loose], ["tls-key", "others"]), ([text, key], ["PEM"]),
                       ([first, tmp_path / "none"], ["tls-key", "No such file"])):
        options = ["--tls-certificate", *pair[:1], "--tls-key", *pair[1:]] if pair else []
        done = run(*listen, *options)
        assert done.returncode == INVALID
        assert all(word in done.stderr for word in says), done.stderr


@pytest.fixture
def encrypted(launch, tmp_path, pairs):
    """A service with an address by TLS; .secure is its client."""
    files, port = [tmp_path / name for name in ("current.crt", "current.key")], free_port()
    install(pairs[0], files)
    with launch("--listen", f"tls:127.0.0.1:{port}", "--tls-certificate", str(files[0]),
                "--tls-key", str(files[1]), "--codecs", "1",
                "--tokens", str(token_file(tmp_path))) as service:
        service.pair, service.secure = files, Client("127.0.0.1", port)
        service.headers = service.secure.headers = bearer("alice")
        service.secure.tls = ssl.create_default_context(cafile=str(files[0]))
        yield service


def install(pair, places):
    for source, place in zip(pair, places):
        place.write_bytes(source.read_bytes())
        place.chmod(0o600)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_in_pieces(encrypted, version):
    """A client that sends small records, reads slowly and leaves TLS open gets its answer."""
    secure, image = encrypted.secure, random_pixels(4, 1500, 1200, 3, "u8")
    secure.tls.minimum_version = secure.tls.maximum_version = version
    body, filters = image.tobytes(), [("box", {"size": 3})]
    expected = encrypted.filter(image, filters, variant="general").pixels
    target = target_of(filters, raw=raw_kind(image), format="raw", variant="general")
    with socket.socket() as bare:
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        bare.settimeout(60)
        bare.connect((secure.host, secure.port))
        with secure.tls.wrap_socket(bare, server_hostname=secure.host) as connection:
            connection.sendall(request_head(target, f"Content-Length: {len(body)}",
                                            f"Authorization: Bearer {TOKENS['alice']}"))
            for at in range(0, len(body), 9000):
                connection.sendall(body[at:at + 9000])
            with socket.socket(fileno=os.dup(connection.fileno())) as same:
                same.shutdown(socket.SHUT_WR)
            answer = read_answer(connection)
    assert (answer.pixels == expected).all()


def test_no_tls(encrypted):
    """(More is in test_grammar.py.)"""
    encrypted.secure.tls = None
    with pytest.raises((OSError, http.client.HTTPException)):
        encrypted.secure.get("/livez", timeout=10)


def test_renewal(encrypted, pairs):
    """A reload takes the new certificate for new connections, but no pair that does not fit."""
    def shown():
        return ssl.get_server_certificate(("127.0.0.1", encrypted.secure.port))

    first, second = (certificate.read_text() for certificate, _ in pairs)
    assert shown() == first
    with contextlib.closing(encrypted.secure.connect(60)) as old:
        def works():
            old.request("POST", TARGET, BODY, headers=bearer("alice"))
            answer = old.getresponse()
            return answer.read() and answer.status == 200
        assert works()
        install(pairs[1], encrypted.pair)
        for _ in range(3):
            read_again(encrypted)
            assert works()
        assert shown() == second
        encrypted.pair[0].write_text(first)
        assert "do not match" in read_again(encrypted, "stays as it was")
        assert shown() == second
        assert works()


def test_metrics_apart(launch, tmp_path):
    """Their address serves them without a token, and nothing else to anybody."""
    path, port = tmp_path / "socket", free_port()
    with launch("--tokens", str(token_file(tmp_path)), "--metrics-listen", f"127.0.0.1:{port}",
                "--listen", f"unix:{path}", "--socket-mode", "0600") as service:
        apart = Client("127.0.0.1", port)
        for target in ("/metrics", "/livez", "/readyz"):
            assert apart.get(target).status == 200
        for method, target in (("GET", "/"), ("GET", "/v1/filters"), ("GET", "/nothing"),
                               ("POST", TARGET), ("POST", "/metrics"), ("GET", "/v1/jobs/1")):
            apart.request(method, target, headers=bearer("alice")).refused(404, "not-found")
        plain(service).get("/metrics").refused(401, "token-required")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.mark.parametrize("name, host, status", [
    ("convolved.socket", "0.0.0.0", INVALID), ("convolved.socket", "127.0.0.1", 0),
    ("metrics", "0.0.0.0", 0), ("tls", "127.0.0.1", INVALID)])
def test_passed_sockets(name, host, status):
    """The same rules hold for sockets of systemd, whose names say their kind."""
    with socket.create_server((host, 0)) as listener:
        done = subprocess.run([*passing(listener, name), PROGRAM, "--check-config"],
                              capture_output=True, text=True, pass_fds=[listener.fileno()])
    assert done.returncode == status, done.stderr
    assert status == 0 or "passed by systemd" in done.stderr


def test_reload_to_everyone(reloadable, tmp_path):
    """Tokens are not taken away from an address that others can reach."""
    with reloadable(f"codecs=1\ntokens={token_file(tmp_path)}\n",
                    "--listen", f"0.0.0.0:{free_port()}") as service:
        service.headers = bearer("alice")
        assert "allow-anonymous" in reload(service, "codecs=1\n", "stays as it was")
        plain(service).get("/v1/filters").refused(401, "token-required")
        reload(service, "codecs=1\nallow-anonymous=yes\n")
        assert plain(service).get("/v1/filters").status == 200
