"""Keys that are fetched and renewed, and what a store's answers correct: regions, clocks, conditions."""
import datetime
import json
import os
import subprocess
import sys
import threading

import pytest

import store as store_module
from client import PROGRAM, complains, environment, found, ppm, run
from scripted import Server

NO_KEYS = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}


def document(store, token="Token", **more):
    return {"AccessKeyId": store.access_key, "SecretAccessKey": store.secret_key, token: store.token, **more}


def soon(seconds):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).isoformat()


@pytest.fixture
def program(store, tmp_path):
    """Settings with a program that prints the file `keys`, and counts its runs in `runs`."""
    script = tmp_path / "a script"
    script.write_text('#!/bin/sh\necho "$1" >>"$(dirname "$0")/runs"\ncat "$(dirname "$0")/keys"\n')
    script.chmod(0o755)
    (tmp_path / "config").write_text(f'[default]\ncredential_process = "{script}" \'an "argument\'\\ $HOME\n')
    return {**store.environment(**NO_KEYS), "AWS_CONFIG_FILE": str(tmp_path / "config")}


def test_programs(server, store, program, tmp_path):
    store.token = "a/token"
    store.put("s3://from/a.ppm", ppm())
    keys = tmp_path / "keys"
    for expires in ({}, {"Expiration": "2100-01-01T00:00:00Z"}, {"Expiration": soon(3600)}):
        keys.write_text(json.dumps({"Version": 1, **document(store, "SessionToken", **expires)}))
        run(server().url, "box", "s3://from/a.ppm", "-f", "-o", tmp_path / "out.ppm", variables=program)
        assert (tmp_path / "out.ppm").read_bytes() == ppm()[::-1]
    assert (tmp_path / "runs").read_text() == 'an "argument $HOME\n' * 3


@pytest.mark.parametrize("command, words", [
    ("none", "none: No such file or directory"), ("sh -c 'exit 3'", "sh: it ended with status 3"),
    ("sh -c 'kill -9 $$'", "sh: it ended with signal 9"), ("echo not JSON", "expected JSON with AccessKeyId"),
    ("echo '{\"AccessKeyId\": \"5ecret\"}'", "expected JSON with AccessKeyId, SecretAccessKey and, for temporary"),
    ("yes", "yes: no answer of at most 64 KiB within 60 s"), ("echo 'x", "expected a command, with quotes in pairs"),
    ("echo '{\"AccessKeyId\": \"5ecret\", \"SecretAccessKey\": \"5ecret\", \"Expiration\": \"never\"}'",
     "Expiration: expected a time such as")])
def test_programs_without_keys(store, tmp_path, command, words):
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {command}\n")
    said = complains(f"convolve: credential_process: {words}", "http://127.0.0.1:1", "box", "s3://from/a.ppm", "-o", "x.ppm",
                     status=2, cwd=tmp_path, variables={**store.environment(**NO_KEYS), "AWS_CONFIG_FILE": "config"})
    assert "5ecret" not in said and not store.requests


def test_containers(server, store, tmp_path):
    """The file's token counts, and is read anew."""
    store.token = "a/token"
    store.put("s3://from/a.ppm", ppm())
    with Server(lambda handler: (200, {}, json.dumps(document(store, Expiration=soon(900))).encode())) as endpoint:
        settings = {**store.environment(**NO_KEYS), "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{endpoint.url}/keys?role=1",
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN": "given", "http_proxy": "http://127.0.0.1:1"}
        for more in ({}, {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token")}):
            (tmp_path / "token").write_text("of the file\n")
            run(server().url, "box", "s3://from/a.ppm", "-f", "-o", tmp_path / "out.ppm", variables={**settings, **more})
        assert [(r.path, r.headers["Authorization"]) for r in endpoint.requests] == [
            ("/keys?role=1", "given"), ("/keys?role=1", "of the file")]
        endpoint.answer = lambda handler: (404, {}, b"5ecret")
        said = complains("convolve: AWS_CONTAINER_CREDENTIALS_FULL_URI: status 404\n", server().url, "box", "s3://from/a.ppm",
                         "-f", "-o", tmp_path / "out.ppm", status=2, variables=settings)
        assert "5ecret" not in said
        complains("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: /none: No such file", server().url, "box", "s3://from/a.ppm", "-o",
                  tmp_path / "x.ppm", status=2, variables={**settings, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/none"})


def test_containers_of_ecs(tmp_path):
    """Their address is a link-local one, here in a network of its own."""
    server = ("import http.server, sys\nclass H(http.server.BaseHTTPRequestHandler):\n"
              " def do_GET(self):\n  print(self.path, flush=True); self.send_response(403); self.end_headers()\n"
              "listening = http.server.HTTPServer(('169.254.170.2', 80), H)\nopen('listens', 'w').close()\n"
              "listening.handle_request()\n")
    script = (f'ip link set lo up; ip addr add 169.254.170.2/32 dev lo; {sys.executable} -c "$1" & shift; '
              'until [ -e listens ]; do sleep 0.02; done; "$@" || echo "status $?"; wait')
    apart = ["unshare", "-n" if os.geteuid() == 0 else "-Urn"]
    if subprocess.run([*apart, "ip", "link", "set", "lo", "up"], capture_output=True).returncode:
        pytest.skip("no network of its own can be made")
    done = subprocess.run([*apart, "sh", "-euc", script, "sh", server, PROGRAM, "box", "s3://from/a.ppm", "-o", "x.ppm"],
                          env=environment("http://127.0.0.1:1", {
                              "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/1", "AWS_CONFIG_FILE": "/dev/null",
                              "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}), cwd=tmp_path, capture_output=True, text=True,
                          timeout=60)
    assert "/v2/credentials/1" in done.stdout and "status 2" in done.stdout, done
    assert "convolve: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: status 403\n" in done.stderr, done


# Renewed ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("source", ["program", "file"])
def test_keys_that_expire_in_a_batch(server, store, program, tmp_path, source):
    """All images are made, each by one request to the service; the keys are read once more."""
    store.token, count, changed = "token 0".replace(" ", ""), 20, threading.Lock()
    for i in range(count):
        store.put(f"s3://from/p/{i}.ppm", ppm(i))
    credentials = tmp_path / "credentials"

    def write():
        if source == "program":
            (tmp_path / "keys").write_text(json.dumps({"Version": 1, **document(store, "SessionToken")}))
        else:
            credentials.write_text(f"[default]\naws_access_key_id = {store.access_key}\naws_secret_access_key = "
                                   f"{store.secret_key}\naws_session_token = {store.token}\n")

    def answer(handler):
        with changed:
            if len(asked.requests) == count // 2 and store.token == "token0":
                store.expired, store.token = ("token0",), "token1"
                write()
        return 200, {}, handler.body[::-1]

    asked = server(answer)
    write()
    settings = program if source == "program" else {**program, "AWS_CONFIG_FILE": "/dev/null",
                                                    "AWS_SHARED_CREDENTIALS_FILE": str(credentials)}
    assert run(asked.url, "box", "s3://from/p/", "-o", "s3://into/r/", "-j", 4, variables=settings) == (b"", "")
    assert {k: v.body for k, v in store.buckets["into"].items()} == {f"r/{i}.ppm": ppm(i)[::-1] for i in range(count)}
    assert len(asked.requests) == count and store.token == "token1"
    assert source == "file" or len((tmp_path / "runs").read_text().splitlines()) == 2


def test_keys_that_expire_soon(server, store, program, tmp_path):
    """They are renewed before; a program that fails then does no harm."""
    store.token = "token"
    store.put("s3://from/p/a.ppm", ppm())
    (tmp_path / "keys").write_text(json.dumps(document(store, "SessionToken", Expiration=soon(100))))
    run(server().url, "box", "s3://from/p/", "-o", tmp_path / "out", variables=program)
    assert len((tmp_path / "runs").read_text().splitlines()) == 2 and len(found(tmp_path / "out")) == 1


def test_keys_that_stay_expired(server, store, tmp_path):
    store.token, store.expired = "new", ("old",)
    store.put("s3://from/a.ppm", ppm())
    complains("the session token has expired; with a new one, the same command continues (keys from the environment)",
              server().url, "box", "s3://from/a.ppm", "-o", tmp_path / "x.ppm", run=store.run,
              variables={"AWS_SESSION_TOKEN": "old"})
    assert len(store.requests) == 1


# Corrected ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("style", ["path", "virtual"])
def test_regions_are_followed(server, store, tmp_path, style):
    """Once for a bucket; its other requests go there at once."""
    store.region = "eu-west-3"
    (tmp_path / "config").write_text(f"[default]\ns3 =\n  addressing_style = {style}\n")
    for i in range(4):
        store.put(f"s3://from/{i}.ppm", ppm(i))
    local = f"http://localhost:{store.server_address[1]}"
    store.run(server().url, "box", "s3://from/", "-o", "s3://into/", "-j", 1, variables={
        "AWS_REGION": "us-east-1", "AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_ENDPOINT_URL_S3": local})
    assert len(store.buckets["into"]) == 4
    assert len(store.requests) == 1 + 4 * 3 + 2, "a list, three for each image, one more for each bucket"


@pytest.mark.parametrize("setting", ["region", "clock"])
def test_many_requests_are_corrected(server, store, setting):
    """All those that were under way when the first was."""
    names = "".join(f"s3://from/{i}.ppm\n" for i in range(16)).encode()
    for i in range(16):
        store.put(f"s3://from/{i}.ppm", ppm(i))
    setattr(store, setting, "eu-west-3" if setting == "region" else 7200)
    together = threading.Barrier(8)

    def first(handler):  # eight requests are refused before one is corrected
        if len(store.requests) <= 8:
            together.wait(60)
        return reply(handler)

    reply, store.answer = store.answer, first
    assert store.run(server().url, "box", "--files-from", "-", "-o", "s3://into/", "-j", 8, input=names) == (b"", "")
    assert len(store.buckets["into"]) == 16


@pytest.mark.parametrize("ahead", [-7200, 3600, 86400 * 400])
def test_clocks_are_corrected(server, store, tmp_path, ahead):
    store.clock = ahead
    for i in range(3):
        store.put(f"s3://from/{i}.ppm", ppm(i))
    store.run(server().url, "box", "s3://from/", "-o", "s3://into/", "-j", 1)
    assert len(store.buckets["into"]) == 3 and len(store.requests) == 1 + 1 + 3 * 3


def test_clocks_that_cannot_be_corrected(server, store, tmp_path):
    store.trouble = lambda *_: store_module.Refusal(403, "RequestTimeTooSkewed").answer
    complains("this machine's clock and the store's are too far apart", server().url, "box", "s3://from/a.ppm", "-o",
              tmp_path / "x.ppm", run=store.run)
    assert len(store.requests) == 2


def test_requester_pays(server, store, tmp_path):
    store.payer = True
    store.put("s3://from/p/a.ppm", ppm())
    complains("access denied: Requester pays", server().url, "box", "s3://from/p/", "-o", "s3://into/", run=store.run)
    store.run(server().url, "box", "--requester-pays", "s3://from/p/", "-o", "s3://into/")
    assert store.body("s3://into/a.ppm") == ppm()[::-1]


# Writes -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("before", [False, True])
def test_objects_that_appear_meanwhile(server, store, image, before):
    """Are not replaced: neither new ones nor those that take a result's place. --force does not ask."""
    if before:
        store.run(server().url, "box", "--size", 5, image, "-o", "s3://into/a.ppm")

    def answer(handler):
        store.put("s3://into/a.ppm", b"precious")
        return 200, {}, handler.body[::-1]

    complains("convolve: s3://into/a.ppm: an object has been written there meanwhile\n", server(answer).url, "box", image, "-o",
              "s3://into/a.ppm", run=store.run)
    assert store.body("s3://into/a.ppm") == b"precious"
    store.run(server(answer).url, "box", "--force", image, "-o", "s3://into/a.ppm")
    assert store.body("s3://into/a.ppm") == image.read_bytes()[::-1]


def test_answers_that_are_lost(server, store, image):
    """A repeated write finds its own object."""
    def trouble(handler, bucket, key):
        if handler.command == "PUT" and not store.buckets["into"]:
            store.serve(handler, store.buckets[bucket], key)
            return 503, {"Retry-After": 1}, b""
        return None

    store.trouble, asked = trouble, server()
    assert store.run(asked.url, "box", image, "-o", "s3://into/a.ppm") == (b"", "")
    assert store.asked() == ["GET into/a.ppm", "PUT into/a.ppm", "PUT into/a.ppm", "GET into/a.ppm"]
    assert store.body("s3://into/a.ppm") == image.read_bytes()[::-1] and len(asked.requests) == 1


def test_what_was_damaged_on_its_way(server, store, image):
    """Is sent again; the checksum is verified by the store of these tests, for every write."""
    damaged = [True]

    def trouble(handler, *_):
        if handler.command == "PUT" and damaged:
            handler.body = b"x" + handler.body[damaged.pop():]

    store.trouble = trouble
    store.run(server().url, "box", image, "-o", "s3://into/a.ppm")
    assert store.body("s3://into/a.ppm") == image.read_bytes()[::-1] and not damaged


def test_stores_without_conditions(server, store, tmp_path):
    """It is told once."""
    def trouble(handler, *_):
        if handler.headers.get("If-None-Match") == "*":
            raise store_module.Refusal(501, "NotImplemented")

    store.trouble = trouble
    for i in range(3):
        store.put(f"s3://from/{i}.ppm", ppm(i))
    _, said = store.run(server().url, "box", "s3://from/", "-o", "s3://into/", "-j", 1)
    assert len(store.buckets["into"]) == 3 and said.count("\n") == 1 and "knows no conditional writes" in said
