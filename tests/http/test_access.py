"""Access: tokens, TLS, addresses for metrics alone, and what may be served to whom."""
import contextlib
import http.client
import os
import re
import secrets
import signal
import socket
import ssl
import stat
import subprocess

import pytest

from clients import Clients
from command import INVALID, hashed, run
from pixels import random_pixels
from service import (PROGRAM, SMALL, Client, configuration, free_port, poll, raw_kind, read_answer, target_of,
                     tool)

NAMES = ("alice", "bob", "carol")
TOKENS = {name: secrets.token_urlsafe(32) for name in NAMES}
TARGET = "/v1/filters/box?raw=11x7x3:u8&format=raw"
BODY = SMALL.tobytes()


def bearer(name):
    return {"Authorization": f"Bearer {TOKENS[name]}"}


def token_file(path, entries, mode=0o640):
    """Writes a file of tokens, {name: lines}, at once, as an editor would."""
    new = path.with_suffix(".new")
    new.write_text("".join(f"[{name}]\n{lines}" for name, lines in entries.items()))
    new.chmod(mode)
    new.rename(path)
    return path


@pytest.fixture(scope="module")
def lines():
    return {name: hashed(TOKENS[name]) for name in NAMES}


def pair(directory, name, bits=2048):
    """Returns a certificate for 127.0.0.1 that is its own authority, and its key: (certificate,
    key)."""
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    subprocess.run([tool("openssl"), "req", "-x509", "-newkey", f"rsa:{bits}", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    key.chmod(0o600)
    return certificate, key


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    return {name: pair(directory, name) for name in ("first", "second")}


@pytest.fixture
def guarded(launch, tmp_path, lines):
    """A service with tokens, and its file of them."""
    file = token_file(tmp_path / "tokens", {"alice": lines["alice"], "bob": lines["bob"] + "share=3\n",
                                            "carol": lines["carol"] + "class=batch\n"})
    service = launch("--tokens", str(file), "--codecs", "2", "--log-level", "debug")
    service.headers = bearer("alice")
    service.tokens = file
    with service:
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
    anyone.get("/v1/devices", headers={"Authorization": f"Bearer {'a' * 40}"}).refused(
        401, "token-unknown")
    for path in ("/livez", "/readyz", "/readyz?verbose"):
        assert anyone.get(path).status == 200
    for name in NAMES:
        answer = anyone.post(TARGET, BODY, headers=bearer(name))
        assert answer.status == 200, answer
        assert anyone.get("/metrics", headers=bearer(name)).status == 200
    assert anyone.get("/v1/filters", headers={"Authorization": f"bearer  {TOKENS['bob']}"}).status == 200
    rejected = guarded.total("convolved_requests_rejected_total", reason="token-required")
    assert rejected >= 5
    said += guarded.log.read_bytes()
    for token in TOKENS.values():
        assert token.encode() not in said


def head(headers, target=TARGET):
    return (f"POST {target} HTTP/1.1\r\nHost: x\r\n"
            + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode()


@pytest.mark.parametrize("target, who, status", [
    (TARGET, None, 401), (TARGET + "&priority=interactive", "carol", 403)])
@pytest.mark.parametrize("size", [{"Content-Length": "200000000"},
                                  {"Content-Length": str(len(BODY)), "Expect": "100-continue"}])
def test_refused_before_the_body(guarded, target, who, status, size):
    headers = {**size, **(bearer(who) if who else {})}
    with guarded.socket() as connection:
        connection.sendall(head(headers, target))
        assert read_answer(connection).status == status


def test_class(guarded):
    """A token for batch work does nothing else, and that by default."""
    carol = bearer("carol")
    answer = guarded.post(TARGET + "&priority=interactive", BODY, headers=carol)
    assert answer.refused(403, "class-not-allowed")["parameter"] == "priority"
    assert guarded.post(TARGET + "&priority=batch", BODY, headers=carol).status == 200
    assert guarded.post(TARGET + "&priority=interactive", BODY).status == 200
    assert guarded.post(TARGET + "&priority=batch", BODY).status == 200


def test_jobs_belong_to_their_token(guarded):
    answer = guarded.post(TARGET, BODY, headers={"Prefer": "respond-async"})
    assert answer.status == 202, answer
    job = answer.headers["Location"]
    for method, target in (("GET", job), ("GET", f"{job}/result?wait=9"), ("GET", f"{job}/events"),
                           ("DELETE", job)):
        guarded.request(method, target, headers=bearer("bob")).refused(404, "not-found")
        plain(guarded).request(method, target).refused(401, "token-required")
    assert guarded.get(f"{job}/result?wait=60").pixels.shape == SMALL.shape
    assert guarded.get(f"{job}/events").body.startswith(b"event: end")
    assert guarded.request("DELETE", job).status == 204


def reload(service, says):
    before = len(service.log.read_text())
    service.process.send_signal(signal.SIGHUP)
    poll(lambda: says in service.log.read_text()[before:], 60, says)
    return service.log.read_text()[before:]


def test_reload(guarded, lines):
    """Tokens come and go while requests run; an invalid file changes nothing."""
    images = [random_pixels(1, 200, 150, 3, "u8")]

    def may(name):
        return guarded.get("/v1/filters", headers=bearer(name)).status == 200
    with Clients(guarded, images, [("box", {"size": 3})], 2) as load:
        load.more(5)
        token_file(guarded.tokens, {"alice": lines["alice"], "bob": lines["bob"]})
        reload(guarded, "has been read again")
        assert [may(name) for name in NAMES] == [True, True, False]
        load.more(5)
        for broken, says in (
                ("[alice]\ntoken-sha256=12\n", r"tokens:2: token-sha256 of \[alice\]: expected 64 hex"),
                ("[alice]\n", r"\[alice\] has no valid token-sha256"),
                (f"[alice]\ntoken={TOKENS['alice']}\n", "tokens:2: unknown key token; expected token-sha256"),
                (f"[a]\n{lines['alice']}[b]\n{lines['alice']}", "tokens:4: .*no other section"),
                (f"[alice]\n{lines['alice']}share=0\n", "tokens:3: share of .*0.01 to 100"),
                (f"[alice]\n{lines['alice']}class=slow\n", "tokens:3: class of .*interactive or batch"),
                (f"[al ice]\n{lines['alice']}", r"tokens:1: \[al ice\]: expected a name"),
                ("", "no token in the file")):
            guarded.tokens.write_text(broken)
            log = reload(guarded, "stays as it was")
            assert re.search(says, log), log
            assert [may(name) for name in NAMES] == [True, True, False]
        token_file(guarded.tokens, {"alice": lines["alice"]}, mode=0o644)
        assert "others may read" in reload(guarded, "stays as it was")
        token_file(guarded.tokens, {"alice": lines["alice"], "carol": lines["carol"]})
        reload(guarded, "has been read again")
        assert [may(name) for name in NAMES] == [True, False, True]
        load.more(5)
    assert not load.problems, load.problems[:3]
    assert TOKENS["alice"] not in guarded.log.read_text()


def test_hash_token():
    """The line holds the SHA-256; a token too short to be random is refused."""
    known = subprocess.run(["sha256sum"], input="a-token-of-some-length".encode(), check=True,
                           capture_output=True).stdout.split()[0].decode()
    assert hashed("a-token-of-some-length") == f"token-sha256={known}\n"
    for unfit in ("", "short", "with spaces in between it", "x" * 1025):
        done = run("--hash-token", text=unfit)
        assert done.returncode == INVALID and "openssl rand" in done.stderr and not done.stdout


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:192.0.2.1]:1"])
def test_other_hosts(address, tmp_path, lines):
    """Addresses in others' reach need tokens or a word; the refusal says all ways out."""
    listen = ("--check-config", "--listen", address)
    done = run(*listen)
    assert done.returncode == INVALID
    for way in (address, "tokens=", "allow-anonymous=yes", "127.0.0.1"):
        assert way in done.stderr, done.stderr
    assert run(*listen, "--allow-anonymous", "yes").returncode == 0
    file = token_file(tmp_path / "tokens", {"alice": lines["alice"]})
    done = run(*listen, "--tokens", file)
    assert done.returncode == 0 and "not encrypted" in done.stderr, done.stderr
    assert run(*listen[1:]).returncode == INVALID  # a start, too


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "unix:/x", "[::ffff:127.0.0.1]:1"])
def test_this_host_alone(address):
    assert run("--check-config", "--listen", address).returncode == 0


def test_credentials(tmp_path, lines, pairs):
    """Without options, what systemd has put into the directory of credentials."""
    directory = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    token_file(tmp_path / "tokens", {"alice": lines["alice"]})
    for name, file in zip(("tls-certificate", "tls-key"), pairs["first"]):
        (tmp_path / name).write_bytes(file.read_bytes())
        (tmp_path / name).chmod(0o400)
    listen = ("--check-config", "--listen", "tls:0.0.0.0:1")
    done = run(*listen, environment=directory)
    assert done.returncode == 0 and not done.stderr, done.stderr
    (tmp_path / "tls-key").unlink()
    done = run(*listen, environment=directory)
    assert done.returncode == INVALID and "tls-certificate is set but not tls-key" in done.stderr


def test_pairs_that_do_not_fit(tmp_path, pairs):
    (first, key), (second, _) = pairs["first"], pairs["second"]
    listen = ("--check-config", "--listen", "tls:127.0.0.1:1")
    loose, text = tmp_path / "loose.key", tmp_path / "text"
    loose.write_bytes(key.read_bytes())
    loose.chmod(0o644)
    text.write_text("not a certificate\n")
    for options, says in (((), ["tls-certificate", "tls-key"]), ((second, key), ["do not match"]),
                          ((first, loose), ["tls-key", "others"]), ((text, key), ["PEM"]),
                          ((first, tmp_path / "none"), ["tls-key", "No such file"])):
        flags = zip(("--tls-certificate", "--tls-key"), options)
        done = run(*listen, *(word for flag in flags for word in flag))
        assert done.returncode == INVALID
        assert all(word in done.stderr for word in says), done.stderr


def context(certificate, version=None):
    made = ssl.create_default_context(cafile=str(certificate))
    if version:
        made.set_ciphers("ALL:@SECLEVEL=0")
        made.minimum_version = made.maximum_version = version
    return made


@pytest.fixture
def encrypted(launch, tmp_path, pairs, lines):
    """A service with an address by TLS; .secure is its client."""
    certificate, key = tmp_path / "current.crt", tmp_path / "current.key"
    install(pairs["first"], (certificate, key))
    port = free_port()
    tokens = token_file(tmp_path / "tokens", {"alice": lines["alice"]})
    service = launch("--listen", f"tls:127.0.0.1:{port}", "--tls-certificate", str(certificate),
                     "--tls-key", str(key), "--codecs", "1", "--tokens", str(tokens))
    service.headers = bearer("alice")
    with service:
        service.secure = Client("127.0.0.1", port)
        service.secure.headers = bearer("alice")
        service.secure.tls = context(certificate)
        service.pair = certificate, key
        yield service


def install(pair_of_files, places):
    for source, place in zip(pair_of_files, places):
        place.write_bytes(source.read_bytes())
        place.chmod(0o600)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls(encrypted, tmp_path):
    """By 1.2 and 1.3, large images too; not by 1.1, and not to who speaks bare HTTP."""
    secure, (certificate, _) = encrypted.secure, encrypted.pair
    image = random_pixels(2, 1200, 900, 3, "u8")
    expected = encrypted.filter(image, [("box", {"size": 3})], variant="general").pixels
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        secure.tls = context(certificate, version)
        answer = secure.filter(image, [("box", {"size": 3})], variant="general")
        assert (answer.pixels == expected).all()
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        secure.tls = context(certificate, version)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            secure.get("/livez")
    secure.tls = None
    with pytest.raises((OSError, http.client.HTTPException)):
        secure.get("/livez", timeout=10)
    done = subprocess.run([tool("curl"), "-sS", "--cacert", certificate, "-H",
                           f"Authorization: Bearer {TOKENS['alice']}", "--data-binary", "@-",
                           f"https://127.0.0.1:{secure.port}{TARGET}"], input=BODY, capture_output=True)
    assert done.returncode == 0 and len(done.stdout) == len(BODY), done
    done = subprocess.run([tool("curl"), "-sS", f"https://127.0.0.1:{secure.port}/livez"],
                          capture_output=True, text=True)
    assert done.returncode != 0 and "certificate" in done.stderr


def test_tls_in_pieces(encrypted):
    """Small records in, and an answer that the client takes as slowly as it sends; the client closes its
    side without a word of TLS, and the answer is still its."""
    secure, image = encrypted.secure, random_pixels(4, 1500, 1200, 3, "u8")
    body, filters = image.tobytes(), [("box", {"size": 3})]
    expected = encrypted.filter(image, filters, variant="general").pixels
    target = target_of(filters, raw=raw_kind(image), format="raw", variant="general")
    with socket.socket() as bare:
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        bare.settimeout(60)
        bare.connect((secure.host, secure.port))
        with secure.tls.wrap_socket(bare, server_hostname=secure.host) as connection:
            connection.sendall(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
                               f"Authorization: Bearer {TOKENS['alice']}\r\n\r\n".encode())
            for at in range(0, len(body), 9000):
                connection.sendall(body[at:at + 9000])
            with socket.socket(fileno=os.dup(connection.fileno())) as same:
                same.shutdown(socket.SHUT_WR)
            answer = read_answer(connection)
    assert answer.status == 200 and (answer.pixels == expected).all()


def subject(port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as bare:
        unchecked = ssl._create_unverified_context()
        with unchecked.wrap_socket(bare) as wrapped:
            text = ssl.DER_cert_to_PEM_cert(wrapped.getpeercert(binary_form=True))
    return subprocess.run([tool("openssl"), "x509", "-noout", "-subject"], input=text, check=True,
                          capture_output=True, text=True).stdout


def test_renewal(encrypted, pairs):
    """A reload takes the new certificate for new connections; old ones go on, and a pair that does
    not fit leaves the one before."""
    port = encrypted.secure.port
    assert "first" in subject(port)
    with contextlib.closing(encrypted.secure.connect(60)) as old:
        def works():
            old.request("POST", TARGET, BODY, headers=bearer("alice"))
            answer = old.getresponse()
            return answer.read() and answer.status == 200
        assert works()
        install(pairs["second"], encrypted.pair)
        for _ in range(3):
            reload(encrypted, "has been read again")
            assert works()
        assert "second" in subject(port)
        encrypted.pair[0].write_bytes(pairs["first"][0].read_bytes())
        assert "do not match" in reload(encrypted, "stays as it was")
        assert "second" in subject(port)
        assert works()


def test_metrics_apart(launch, tmp_path, lines):
    """Their address serves them without a token, and nothing else to anybody."""
    tokens, path = token_file(tmp_path / "tokens", {"alice": lines["alice"]}), tmp_path / "socket"
    port = free_port()
    with launch("--tokens", str(tokens), "--metrics-listen", f"127.0.0.1:{port}", "--codecs", "1",
                "--listen", f"unix:{path}", "--socket-mode", "0600") as service:
        apart = Client("127.0.0.1", port)
        for target in ("/metrics", "/livez", "/readyz"):
            assert apart.get(target).status == 200
        for method, target in (("GET", "/"), ("GET", "/v1/filters"), ("GET", "/nothing"),
                               ("POST", TARGET), ("POST", "/metrics"), ("GET", "/v1/jobs/1")):
            apart.request(method, target, headers=bearer("alice")).refused(404, "not-found")
        plain(service).get("/metrics").refused(401, "token-required")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


# Passes descriptor $2, named $1, as systemd does.
PASS = ('exec 3<&"$2"; LISTEN_FDNAMES=$1; shift 2; '
        'LISTEN_FDNAMES=$LISTEN_FDNAMES LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"')


@pytest.mark.parametrize("name, host, status", [
    ("convolved.socket", "0.0.0.0", INVALID), ("convolved.socket", "127.0.0.1", 0),
    ("metrics", "0.0.0.0", 0), ("tls", "127.0.0.1", INVALID)])
def test_passed_sockets(name, host, status):
    """The same rules hold for sockets of systemd, whose names say their kind."""
    with socket.create_server((host, 0)) as listener:
        fd = listener.fileno()
        done = subprocess.run(["/bin/bash", "-c", PASS, "bash", name, str(fd), PROGRAM,
                               "--check-config"], capture_output=True, text=True, pass_fds=[fd])
    assert done.returncode == status, done.stderr
    assert status == 0 or "passed by systemd" in done.stderr


def test_reload_to_everyone(launch, tmp_path, lines):
    """Tokens are not taken away from an address that others can reach."""
    file, tokens = tmp_path / "convolved.conf", tmp_path / "tokens"
    token_file(tokens, {"alice": lines["alice"]})
    port = free_port()
    text = f"codecs=1\nlisten=0.0.0.0:{port}\n"
    file.write_text(configuration(text + f"tokens={tokens}\n"))
    service = launch("--config", str(file))
    at = service.arguments.index("--listen")
    del service.arguments[at:at + 2]
    service.port = port
    service.headers = bearer("alice")
    with service:
        file.write_text(configuration(text))
        assert "allow-anonymous" in reload(service, "stays as it was")
        plain(service).get("/v1/filters").refused(401, "token-required")
        file.write_text(configuration(text + "allow-anonymous=yes\n"))
        reload(service, "has been read again")
        assert plain(service).get("/v1/filters").status == 200
