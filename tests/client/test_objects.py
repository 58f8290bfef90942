"""Inputs and results in object stores, and inputs from web servers."""
import hashlib
import os
import shutil
import socket

import pytest

import store as store_module
from certificates import localhost_certificate
from client import complains, fill, found, in_namespace, ppm, run
from service import free_port

# Characters that must be percent-encoded, and be the same in the signature; % and + mean
# themselves.
NAMES = ("a.ppm", "deep/down/a b.ppm", "1+1=2&c;d?e#f%20g.ppm", "ü/字.ppm", "x//y.ppm", "..a/.b./c..ppm",
         "it's*(!)[]{}~@:,$|\\^`\"<>.ppm")


def test_the_store_signs_as_s3_does():
    """As in the example "GET Object" of Amazon's description of Signature Version 4 for S3."""
    nothing = hashlib.sha256(b"").hexdigest()
    request = "\n".join([
        "GET", "/test.txt", "", "host:examplebucket.s3.amazonaws.com", "range:bytes=0-9",
        f"x-amz-content-sha256:{nothing}", "x-amz-date:20130524T000000Z", "",
        "host;range;x-amz-content-sha256;x-amz-date", nothing])
    text = "\n".join(["AWS4-HMAC-SHA256", "20130524T000000Z", "20130524/us-east-1/s3/aws4_request",
                      hashlib.sha256(request.encode()).hexdigest()])
    assert store_module.signature("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524", "us-east-1", text) == (
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")


def test_from_and_to(server, store, image, tmp_path):
    asked, out = server(), tmp_path / "out.ppm"
    for name in NAMES:
        store.put(f"s3://from/{name}", ppm(len(name)))
        store.run(asked.url, "box", f"s3://from/{name}", "-f", "-o", out)
        assert out.read_bytes() == ppm(len(name))[::-1], name
        store.run(asked.url, "box", f"s3://from/{name}", "-o", f"s3://into/{name}")
        assert store.body(f"s3://into/{name}") == ppm(len(name))[::-1], name
    assert store.buckets["into"].keys() == set(NAMES)
    store.run(asked.url, "box", image, "-o", "s3://into/from/file.ppm")
    made = store.buckets["into"]["from/file.ppm"]
    assert made.body == image.read_bytes()[::-1]
    assert made.headers["Content-Type"] == "image/x-portable-pixmap"
    store.run(asked.url, "box", "-", "-o", "s3://into/from/stream.ppm", input=ppm(9))
    assert store.body("s3://into/from/stream.ppm") == ppm(9)[::-1]
    assert store.run(asked.url, "box", "s3://from/a.ppm", "-o", "-")[0] == ppm(5)[::-1]
    # Its name alone says the format.
    store.asked()
    store.run(asked.url, "box", "s3://from/a.ppm", "-o", "s3://into/b.webp")
    assert store.asked() == ["GET into/b.webp", "GET from/a.ppm", "PUT into/b.webp"]
    assert asked.requests[-1].path == "/v1/filters/box?format=webp"


def test_styles_and_tokens(server, store, tmp_path):
    """The bucket in the host's name, unless it has dots; temporary keys; another region."""
    store.token, store.region = "a/session+token==", "eu-west-3"
    store.buckets |= {"my-bucket": {}, "my.bucket": {}}
    config = tmp_path / "config"
    config.write_text("[default]\nregion = eu-west-3\ns3 =\n  max_concurrent_requests = 20\n"
                      "  addressing_style = virtual\n")
    local = f"http://localhost:{store.server_address[1]}"
    variables = store.environment(AWS_CONFIG_FILE=str(config), AWS_ENDPOINT_URL_S3=f"{local}/")
    for name in ("s3://my-bucket/a/ü b.ppm", "s3://my.bucket/a.ppm"):
        store.put(name, ppm())
        out = name.replace(".ppm", ".png")
        run(server().url, "box", name, "-o", out, variables=variables)
        assert store.body(out) == ppm()[::-1]
        host = "my-bucket.localhost" if "my-bucket" in name else "localhost"
        assert store.requests[-1].headers["Host"] == f"{host}:{store.server_address[1]}"


# Keys ---------------------------------------------------------------------------------------------

KEYS = f"aws_access_key_id = {store_module.Store.access_key}\naws_secret_access_key={store_module.Store.secret_key}\n"


@pytest.mark.parametrize("variables, credentials, config", [
    ({}, f"[default]\n{KEYS}", ""),
    ({}, f"# keys\n[other]\naws_access_key_id = no\n\n[default]\r\n{KEYS}", "[default]\nregion=us-east-1\n"),
    ({"AWS_PROFILE": "my own"}, f"[default]\naws_access_key_id=x\naws_secret_access_key=y\n[my own]\n  {KEYS}", ""),
    ({"AWS_DEFAULT_PROFILE": "p"}, "", f"[default]\nregion = x\n[profile p]\nAWS_Access_Key_ID=z\n{KEYS}"),
    ({"AWS_PROFILE": "p", "AWS_REGION": "us-east-1"}, f"[p]\n{KEYS}",
     "[profile p]\nregion=mars-1\ncredential_process = /bin/false\n"),
])
def test_keys_in_files(server, store, tmp_path, variables, credentials, config):
    store.put("s3://from/a.ppm", ppm())
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(credentials)
    (tmp_path / ".aws/config").write_text(config)
    run(server().url, "box", "s3://from/a.ppm", "-o", tmp_path / "out.ppm",
        variables={"HOME": str(tmp_path), "AWS_ENDPOINT_URL": store.url, **variables})
    assert (tmp_path / "out.ppm").read_bytes() == ppm()[::-1]


def test_endpoints_in_files(server, store, tmp_path):
    """That of the profile's services before that of the profile; the environment before both."""
    store.put("s3://from/a.ppm", ppm())
    config, nowhere = tmp_path / "config", f"http://127.0.0.1:{free_port()}"
    services = (f"[services local]\nec2 =\n  endpoint_url = {nowhere}\ns3 =\n  endpoint_url = {store.url}\n"
                "  unknown = 1\n")
    for text, more in ((f"[default]\nendpoint_url = {store.url}/\n", {}),
                       (f"[default]\nservices = local\nendpoint_url = {nowhere}\n{services}", {}),
                       (f"[default]\nendpoint_url = {nowhere}\n", {"AWS_ENDPOINT_URL": store.url})):
        config.write_text(text)
        store.run(server().url, "box", "s3://from/a.ppm", "-f", "-o", tmp_path / "out.ppm",
                  variables=dict(AWS_ENDPOINT_URL_S3="", AWS_CONFIG_FILE=str(config), **more))


@pytest.mark.parametrize("variables, config, words", [
    ({"AWS_SECRET_ACCESS_KEY": ""}, "", "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not"),
    ({"AWS_PROFILE": "nobody"}, "", "no profile nobody in /dev/null or "),
    ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "", "no keys for s3://: expected AWS_ACCESS_KEY_ID"),
    ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://x"}, "",
     "AWS_CONTAINER_CREDENTIALS_FULL_URI: expected https://, or http:// of this host or of a link-local address"),
    ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "x"}, "",
     "AWS_WEB_IDENTITY_TOKEN_FILE is set, and convolve does not fetch keys"),
    ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "[default]\naws_access_key_id = a\n",
     "config: aws_access_key_id without aws_secret_access_key"),
    ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "p"},
     "[profile p]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = default\n",
     "role_arn is set, and convolve does not fetch keys: put temporary ones into the environment, as `aws "
     "configure export-credentials --format env --profile p` prints them"),
    ({"AWS_ACCESS_KEY_ID": "two words"}, "", "the environment: expected keys of printable ASCII, without blanks"),
    ({}, "[default]\nregion eu-west-1\n", "config:2: expected [SECTION], or KEY = VALUE below one"),
    ({}, "region = eu-west-1\n", "config:1: expected [SECTION], or KEY = VALUE below one"),
    ({"AWS_REGION": "Mars/1"}, "", "the region Mars/1 is none"),
    ({"AWS_ENDPOINT_URL_S3": "127.0.0.1:9000"}, "", "the endpoint 127.0.0.1:9000 is none: expected http://HOST:PORT"),
    ({}, "[default]\ns3 =\n addressing_style = sideways\n", "addressing_style: expected path, virtual or auto"),
])
def test_keys_that_are_none(store, tmp_path, variables, config, words):
    (tmp_path / "config").write_text(config)
    given = {**store.environment(), "AWS_CONFIG_FILE": str(tmp_path / "config"), **variables}
    said = complains(words, "http://127.0.0.1:1", "box", "s3://from/a.ppm", "-o", tmp_path / "out.ppm", status=2,
                     variables={name: value for name, value in given.items() if value})
    assert store.secret_key not in said and not store.requests


# Refusals -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments, words", [
    (("s3://from", "-o", "x"), "s3://from: the name has no key: expected s3://BUCKET/KEY"),
    (("s3://from/photos/", "-o", "x.ppm"), "several images, but -o x.ppm names one file"),
    (("s3://from/photos/",), "several images need an output directory: -o DIRECTORY/"),
    (("s3://In_1/photos/", "-o", "x"), "s3://In_1/photos/: expected s3://BUCKET/KEY, with a bucket of 3 to 63"),
    (("s3://In_1/a", "-o", "x"), "s3://In_1/a: expected s3://BUCKET/KEY, with a bucket of 3 to 63 lower-case"),
    (("s3:///a", "-o", "x"), "expected s3://BUCKET/KEY"),
    (("s3://from/" + "k" * 1025, "-o", "x"), "the key is too long: a store takes up to 1024 bytes"),
    (("a.ppm", "-o", "s3://a..b/c"), "s3://a..b/c: expected s3://BUCKET/KEY"),
    (("a.ppm", "-o", "https://h/a.ppm"), "https://h/a.ppm: results cannot be sent to web servers"),
    (("gs://bucket/a", "-o", "x"), "gs://bucket/a: the address is of an unknown kind"),
    (("https://me:secret@h/a", "-o", "x"), "an address with a user name or a password is not read"),
    (("https://h/a b", "-o", "x"), "the address is malformed"),
    (("s3://from/a.ppm", "-o", "s3://from/a.ppm"), "the result of s3://from/a.ppm would overwrite s3://from/a.ppm"),
    (("s3://from/x/a.ppm", "s3://from/a.ppm", "-o", "s3://from/"), "the result of s3://from/x/a.ppm would overwrite s3://from/a"),
    (("s3://from/x/a.ppm", "s3://from/y/a.ppm", "-o", "s3://into/z"), "would both become s3://into/z/a.ppm"),
    (("s3://from/a.ppm", "s3://from/b.ppm", "-o", "s3://into/c.png"), "names one file: end it with a slash"),
    (("s3://from/a/../b", "-o", "x"), "s3://from/a/../b: a key with . or .. between slashes cannot be asked for"),
    (("a.ppm", "-o", "s3://into/."), "s3://into/.: a key with . or .. between slashes cannot be asked for"),
    (("https://h/", "-o", "d/"), "https://h/: the name has no path below a directory"),
])
def test_names_that_are_none(store, tmp_path, arguments, words):
    store.buckets["from"] = {}
    complains(words, "http://127.0.0.1:1", "box", *arguments, run=store.run, status=2, cwd=tmp_path)
    assert not store.requests


@pytest.mark.parametrize("change, name, words", [
    ({}, "s3://from/none.ppm", "there is no such object"),
    ({}, "s3://none/a.ppm", "there is no such bucket"),
    ({"AWS_ACCESS_KEY_ID": "AKIDOTHER"}, "s3://from/a.ppm",
     "the store does not know the access key (keys from the environment)"),
    ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "s3://from/a.ppm", "the signature is not that of the access key"),
    ({"AWS_SESSION_TOKEN": "old"}, "s3://from/a.ppm", "the session token is not valid"),
])
def test_what_the_store_refuses(server, store, tmp_path, change, name, words):
    store.put("s3://from/a.ppm", ppm())
    asked = server()
    complains(f"convolve: {name}: {words}", asked.url, "box", name, "-o", tmp_path / "out.ppm", run=store.run,
              variables=change)
    assert os.listdir(tmp_path) == [] and not asked.requests


@pytest.mark.parametrize("answer, words", [
    (store_module.Refusal(301, "PermanentRedirect", headers={"x-amz-bucket-region": "ap-south-1"}).answer,
     "the bucket is in the region us-east-1, not ap-south-1: set AWS_REGION=us-east-1"),
    (store_module.Refusal(301, "PermanentRedirect", headers={"x-amz-bucket-region": "evil.example/"}).answer,
     "the bucket is in the region evil.example/, not us-east-1"),
    (store_module.Refusal(403, "AccessDenied", "You &lt;may&gt; not &amp; will not").answer,
     "access denied: You <may> not & will not"),
    (store_module.Refusal(403, "InvalidObjectState").answer, "the object is archived"),
    (store_module.Refusal(400, "ExpiredToken").answer, "the session token has expired; with a new one, the same"),
    (store_module.Refusal(418, "Teapot", "I am\nshort").answer, "Teapot: I am?short"),
    ((502, {"Content-Type": "text/html"}, b"<html>" * 50000), "status 502 of the object store"),
    ((307, {"Location": "http://elsewhere/"}, b""), "the object store redirects to http://elsewhere/: is its"),
    ((200, {}, b""), "it is empty"),
    ((200, {"Content-Length": None, "Connection": "close"}, b"half"), "it may be cut short: its end is not marked"),
    ((200, {"Content-Length": 6 << 30}, b"the start"), "it is too large: the maximum is 5 GiB"),
    ((304, {}, b""), "status 304, although no version was named"),
])
def test_answers_of_stores(server, store, tmp_path, answer, words):
    asked = server()
    store.trouble = lambda handler, *_: (setattr(handler, "close_connection", True), answer)[1]
    complains(f"convolve: s3://from/a.ppm: {words}", asked.url, "box", "s3://from/a.ppm", "-o", tmp_path / "out.ppm",
              "--retries", 0, run=store.run)
    assert not asked.requests


def test_what_refuses_a_result_ends_a_batch(server, store, tree):
    """At its first image; an input that cannot be read does not."""
    fill(tree, *(f"{i}.ppm" for i in range(8)))
    _, said = store.run(server().url, "box", tree, "-o", "s3://none/x", "-j", 1, status=1)
    assert said == "convolve: s3://none/x/0.ppm: there is no such bucket\n"
    store.put("s3://from/a.ppm", ppm())
    _, said = store.run(server().url, "box", "s3://from/b.ppm", "s3://none/c.ppm",
                        "s3://from/a.ppm", "-o", "s3://into", "-j", 1, status=1)
    assert said == ("convolve: s3://from/b.ppm: there is no such object\n"
                    "convolve: s3://none/c.ppm: there is no such bucket\n")
    assert store.body("s3://into/a.ppm") == ppm()[::-1]


def test_stores_that_are_busy(server, store, tmp_path):
    """Every request is repeated, its body from the start: one that goes through a file, being above
    the size that is sent without asking."""
    troubles = [store_module.Refusal(503, "SlowDown", headers={"Retry-After": 1}).answer,
                store_module.Refusal(400, "RequestTimeout").answer, (500, {}, b"")]
    seen = {}

    def trouble(handler, *_):
        seen[handler.command] = seen.get(handler.command, 0) + 1
        return troubles[seen[handler.command] - 1] if seen[handler.command] <= len(troubles) else None
    store.put("s3://from/a.ppm", ppm(0, 900, 700))
    store.trouble = trouble
    asked = server()
    store.run(asked.url, "box", "s3://from/a.ppm", "-o", "s3://into/a.ppm")
    assert seen == {"GET": 5, "PUT": 4} and len(asked.requests) == 1
    assert store.body("s3://into/a.ppm") == ppm(0, 900, 700)[::-1]


def test_stores_that_are_not_there(server, tree, tmp_path):
    asked, url = server(), f"http://127.0.0.1:{free_port()}"
    complains(f"convolve: the object store at {url} cannot be reached: ", asked.url, "box", tree, "-o", "s3://into",
              "--retries", 1, status=3, variables={
                  "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": url})
    assert not asked.requests


# Web servers --------------------------------------------------------------------------------------

def test_certificates_are_those_of_the_service_alone(server, tmp_path):
    certificate = public, _ = localhost_certificate(tmp_path)
    web, asked = server([(200, {}, ppm())], certificate), server(certificate=certificate)
    with store_module.Store(certificate) as store:
        store.put("s3://from/a.ppm", ppm())
        for name in ("s3://from/a.ppm", f"{web.url}/a.ppm"):
            _, said = store.run(asked.url, "box", name, "-o", tmp_path / "a.ppm", "--cacert",
                                public, "--retries", 0, status=3 if name[0] == "s" else 1)
            assert "SSL certificate problem" in said and not asked.requests
        store.run(asked.url, "box", "s3://from/a.ppm", "-o", tmp_path / "a.ppm", "--cacert", public,
                  variables=dict(AWS_CA_BUNDLE=str(public)))


def test_from_web_servers(server, tmp_path):
    """With redirections, but not away from TLS; without the service's token."""
    def answer(handler):
        if "/moved" in handler.path:
            return 302, {"Location": handler.path.replace("moved", "there")}, b"this is elsewhere"
        if "/down" in handler.path:
            return 302, {"Location": "http://127.0.0.1:1/"}, b""
        return (200, {}, ppm(3)) if "/there" in handler.path else (404, {}, b"<html>no")
    certificate = localhost_certificate(tmp_path)
    web, asked = server(answer, certificate), server()
    token, system = tmp_path / "token", tmp_path / "system"
    token.write_text("s3cret")
    out = tmp_path / "out/"
    system.mkdir()
    shutil.copy(certificate[0], system / "ca-certificates.crt")

    def run_trusting(*arguments, status=0):
        done = in_namespace(asked.url, f'mount --bind {system} /etc/ssl/certs; exec "$@"', "box", *arguments)
        assert done.returncode == status, done
        return done.stderr

    run_trusting(f"{web.url}/moved/a%20b.ppm?size=large", "-o", f"{out}/", "--token-file", token)
    assert found(out) == {"a b.ppm": ppm(3)[::-1]}
    assert not any("Authorization" in r.headers for r in web.requests)
    for path, words in (("/none.ppm", "there is no such file"), ("/down.ppm", "the web server at ")):
        said = run_trusting(f"{web.url}{path}", "-o", f"{out}/", status=1)
        assert said.startswith(f"convolve: {web.url}{path}: {words}") and said.count("\n") == 1, said
    complains(f"the web server at {web.url} cannot be reached: SSL certificate problem", asked.url, "box",
              f"{web.url}/there.ppm", "-o", f"{out}/", "--retries", 0)
    # One that is not there fails alone.
    said = run_trusting(f"http://127.0.0.1:{free_port()}/a.ppm", f"{web.url}/there/b.ppm", "-o", out, "--retries", 0,
                        status=1)
    assert "cannot be reached" in said and sorted(found(out)) == ["a b.ppm", "b.ppm"]


@pytest.mark.parametrize("given", ["https://me:5ecre7@h/a b", "https://h:5ecre7@h/a.png", "gs://me:5ecre7@bucket/a",
                                   "https://[h/a?token=5ecre7", "http://me:5ecre7/#?@h/a"])
def test_what_is_secret_in_names_that_are_none(tmp_path, given):
    for arguments in ((given, "-o", "x"), ("a.ppm", "-o", given), ("a.ppm", "b.ppm", "-o", given),
                      ("--files-from", "-", "-o", "d/", given)):
        assert "5ecre7" not in complains("", "http://127.0.0.1:1", "box", *arguments, status=2, cwd=tmp_path)
    assert "5ecre7" not in complains("", "http://127.0.0.1:1", "box", "--files-from", "-", "-o", "d/", cwd=tmp_path,
                                     input=given.encode())


def test_secrets_in_addresses(server, store, image, tmp_path):
    """Are neither shown nor recorded: of the service, of inputs, of where they redirect to, of a store."""
    web = server(lambda handler: (404, {}, b"") if "none" in handler.path else (200, {}, ppm()))
    asked, out = server(), tmp_path / "out"
    service = asked.url.replace("://", "://me:5ecre7@")
    queries = ("access_token=5ecre7", "X-Amz-Date=1&X-Amz-Signature=5ecre7", "id=1&v=5ecre75ecre75ecre75ecre7", "5ecre7&pass")
    names = [f"{web.url}/{i}.ppm?{query}#5ecre7" for i, query in enumerate(queries)]
    for more in (("--dry-run",), ("-v",)):
        plan, said = run(service, "box", *more, *names, "-o", out)
        assert "5ecre" not in plan.decode() + said and f"{web.url}/0.ppm -> {out}/0.ppm" in plan.decode() + said
    _, said = run(service, "box", "-v", f"{web.url}/none.ppm?{queries[1]}", "-o", out, status=1)
    assert "5ecre" not in said and "/none.ppm: there is no such file" in said
    assert "5ecre" not in (out / ".convolve.jsonl").read_text() and len(found(out)) == 4
    assert all("Basic " in r.headers["Authorization"] for r in asked.requests)
    _, said = run(f"http://me:5ecre7@127.0.0.1:{free_port()}", "devices", "--retries", 0, status=3)
    assert "5ecre" not in said
    moved = server(lambda handler: (307, {"Location": "http://me:5ecre7@h/?token=5ecre7"}, b""))
    _, said = run(moved.url, "box", image, "-o", tmp_path / "x.ppm", status=1)
    assert "5ecre" not in said and "redirects to http://h/:" in said
    store.run("http://127.0.0.1:1", "box", image, "-o", "s3://into/a", status=2,
              variables=dict(AWS_ENDPOINT_URL_S3="http://me:5ecre7@h"))
    # Two inputs that differ only in an unrecorded part are two.
    twice = "".join(f"{web.url}/x.ppm?id={i}&token=5ecre7\n" for i in range(2)).encode()
    _, said = run(asked.url, "box", "--files-from", "-", "-o", tmp_path / "list", "-j", 1, input=twice, status=1)
    assert "too, would become" in said and "5ecre" not in said


def test_messages_without_end(server, tmp_path):
    def answer(handler):
        handler.send_response(404)
        handler.send_header("Connection", "close")
        handler.end_headers()
        while True:  # until the client leaves
            handler.wfile.write(b"no, no, no, " * 10000)
    web = server(answer)
    _, said = run(server().url, "box", f"{web.url}/a.ppm", "-o", tmp_path / "a.ppm", "--retries", 0, status=1)
    assert said == f"convolve: {web.url}/a.ppm: there is no such file\n"


def test_web_servers_that_fall_silent(server, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/a.ppm"
        said = complains(f"convolve: {address}: ", server().url, "box", address, "-o", tmp_path / "a.ppm", "--timeout", 1,
                         "--retries", 1)
    assert "fell silent" in said
