"""Presets: chains that the configuration names."""
import re
import urllib.parse

import pytest

import imagefiles
from command import INVALID, run
from jobs import PREFER, begin
from pixels import random_pixels
from reloads import read_again
from service import ONE_DEVICE, SMALL, Service, multipart, poll, raw_kind
from test_access import bearer, section, token_file

PNG = imagefiles.write_png(random_pixels(5, 90, 70, 3, "u8"))
LONG = "box," * 7 + "convolve=kernel=" + ";".join(["1 2 3 4 5 6 7 8 9 8 7"] * 49)
PRESETS = {
    "thumb": "resize=width=32,sharpen=amount=0.6",
    "card": "resize=width=64:height=36:fit=cover&format=webp&quality=80",
    "long": LONG,
    "both": "filters=box&luma=gaussian=size=5&chroma=box=size=3&border=reflect101",
    "luma-alone": "luma=gaussian=sigma=2%",
    "invert": "invert",
    "curve": "lut=points=0 0;60 20;255 255&regions=1,2,30,20;ellipse:9,9,20,10&strip=1",
    "A_1-z": "canny&format=png&priority=batch&device=*",
    "x" * 63: "box=size=5&quality=7&format=jpg",
}


def text(presets, access=""):
    """Returns a configuration file with these presets."""
    lines = "".join(f"{name} = {query}\n" for name, query in presets.items())
    return f"[workers]\ncodecs=1\n[access]\n{access}\n[presets]\n{lines}"


def written_out(query):
    """Returns the target of the request that a preset stands for."""
    first, *rest = query.split("&")
    parts = [first if re.match("filters=|luma=", first) else f"filters={first}", *rest]
    pairs = [tuple(part.split("=", 1)) for part in parts]
    return f"/v1/chain?{urllib.parse.urlencode(pairs, safe=',;:=')}"


def again(service, file, presets, access="", says="has been read again"):
    file.write_text(text(presets, access))
    return read_again(service, says)


@pytest.fixture(scope="module")
def started(launch, tmp_path_factory):
    file = tmp_path_factory.mktemp("presets") / "convolved.conf"
    file.write_text(text(PRESETS))
    with launch("--config", str(file), environment=ONE_DEVICE) as service:
        service.file = file
        yield service


@pytest.fixture
def service(started):
    yield started
    again(started, started.file, PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_same_bytes(started, name):
    """As the request that is written out; also as a form, and as a job."""
    expected = started.post(written_out(PRESETS[name]), PNG)
    assert expected.status == 200, expected
    form, kind = multipart([("image", "a.png", PNG)])
    job = begin(started, f"/v1/presets/{name}", PNG)
    for answer in (started.post(f"/v1/presets/{name}", PNG), started.get(f"{job}/result?wait=60"),
                   started.post(f"/v1/presets/{name}", form, headers={"Content-Type": kind})):
        assert (answer.status, answer.type, answer.body) == (200, expected.type, expected.body), answer


def test_catalogue(started):
    presets = started.get("/v1/filters").json()["presets"]
    assert [one["name"] for one in presets] == list(PRESETS)
    parameters = {one["name"]: one["parameters"] for one in presets}
    assert parameters["card"] == {"filters": "resize=width=64:height=36:fit=cover", "format": "webp", "quality": "80"}
    assert parameters["long"] == {"filters": LONG} and len(LONG) > 1000
    assert list(parameters["luma-alone"]) == ["luma"] and parameters["invert"] == {"filters": "invert"}


def test_what_a_request_may_add(started):
    raw = {"raw": raw_kind(SMALL), "format": "raw", "verify": 1, "priority": "batch", "codec": "cpu",
           "deadline_ms": 60000, "device": "*"}
    query = urllib.parse.urlencode(raw)
    answer = started.post(f"/v1/presets/invert?{query}", SMALL.tobytes())
    assert (answer.pixels == 255 - SMALL).all() and answer.headers["X-Verify-Samples"]
    form, kind = multipart([*((name, None, str(value).encode()) for name, value in raw.items()),
                            ("image", "a", SMALL.tobytes())])
    answer = started.post("/v1/presets/invert", form, headers={"Content-Type": kind})
    assert (answer.pixels == 255 - SMALL).all()
    for format in ("webp", "WEBP"):
        assert started.post(f"/v1/presets/card?format={format.lower()}", PNG).type == "image/webp"
    for format in ("jpg", "jpeg"):  # one format
        assert started.post(f"/v1/presets/{'x' * 63}?format={format}", PNG).type == "image/jpeg"
    assert started.post("/v1/presets/thumb", PNG, headers={"Accept": "image/webp"}).type == "image/webp"
    assert started.post("/v1/presets/card", PNG, headers={"Accept": "image/png"}).type == "image/webp"


@pytest.mark.parametrize("name, query, parameter, says", [
    ("card", "format=png", "format", "expected webp, which the preset has"),
    ("card", "format=", "format", "expected webp"), ("thumb", "format=foo", "format", "expected one of jpeg"),
    ("A_1-z", "priority=interactive", "priority", "expected batch"),
    ("thumb", "format=png&format=png", "format", "more than once"),
    *(("thumb", query, query.partition("=")[0], "a request for a preset takes format, raw,") for query in (
        "filters=box", "chain=[]", "luma=box", "chroma=box", "width=5", "quality=80", "roi=0,0,5,5", "strip=1",
        "regions=1,1,2,2", "border=wrap", "variant=general", "page=0", "pages=all", "x", "filters=")),
    *(("both", query, query.partition("=")[0], "a request for a preset takes format, raw,") for query in (
        "filters=box", "border=reflect101", "luma=gaussian=size=5"))])
def test_what_a_request_may_not_add(started, name, query, parameter, says):
    """In the query, and as a part of a form."""
    started.post(f"/v1/presets/{name}?{query}", PNG).refused(400, "bad-parameter", says, parameter=parameter)
    pairs = [part.partition("=")[::2] for part in query.split("&")]
    if all(name for name, _ in pairs):
        form, kind = multipart([("image", "a.png", PNG), *((name, None, value.encode()) for name, value in pairs)])
        started.post(f"/v1/presets/{name}", form, headers={"Content-Type": kind}).refused(
            400, "bad-parameter", says, parameter=parameter)


def test_many_parts(started):
    """With those of a preset there may be more parameters than a request has."""
    form, kind = multipart([("image", "a.png", PNG), *((f"p{i}", None, b"") for i in range(63))])
    answer = started.post("/v1/presets/both", form, headers={"Content-Type": kind})
    answer.refused(400, "bad-request", "at most 64 parameters")
    query = "&".join(f"p{i}=" for i in range(64))
    started.post(f"/v1/presets/both?{query}", PNG).refused(400, "bad-request", "at most 64 parameters")


@pytest.mark.parametrize("name, says", [
    ("thum", "did you mean thumb?"), ("Card", "did you mean card?"), ("nothing", "the presets are thumb, card,"),
    ("thumb%00x", None), ("thumb%2Fx", None), ("", None), ("thumb/", None), ("%C3%A4", "the presets are"),
    ("thumb=", "did you mean thumb?"), ("x" * 64, "did you mean x"), ("y" * 9000, "the presets are"), (".", "the presets are"),
    ("%20thumb", "did you mean thumb?"), ("thumb?", None)])
def test_odd_names(started, name, says):
    answer = started.post(f"/v1/presets/{name}", PNG)
    if name == "thumb?":
        assert answer.status == 200
    elif says:
        answer.refused(404, "unknown-preset", says, parameter="preset")
    else:
        assert answer.status in (400, 404), answer


def test_methods(started):
    answer = started.get("/v1/presets/thumb")
    answer.refused(405, "method-not-allowed")
    assert answer.headers["Allow"] == "OPTIONS, POST"
    started.get("/v1/presets").refused(404, "not-found")
    started.post("/v1/presets/thumb").refused(400, "empty-body")
    started.post("/v1/presets/thumb", b"text").refused(415, "not-an-image")


def test_reload(service):
    """It adds, changes and removes; an invalid preset leaves all as they were."""
    file = service.file
    before = service.get("/v1/filters")
    again(service, file, {"thumb": "box"})
    log = again(service, file, {"thumb": "invert&format=png", "new": "box"})
    assert "preset: thumb=box -> thumb=invert&format=png" in log and "new=box" in log
    assert service.post("/v1/presets/thumb", PNG).body == service.post("/v1/filters/invert?format=png", PNG).body
    assert service.post("/v1/presets/new", PNG).status == 200
    service.post("/v1/presets/card", PNG).refused(404, "unknown-preset", "the presets are thumb, new")
    after = service.get("/v1/filters", headers={"If-None-Match": before.headers["ETag"]})
    assert [one["name"] for one in after.json()["presets"]] == ["thumb", "new"]
    log = again(service, file, {"thumb": "box", "bad": "box=size=4"}, says="stays as it was")
    assert "[presets] bad: size=4: size: expected an odd integer" in log
    assert service.post("/v1/presets/thumb", PNG).body == service.post("/v1/filters/invert?format=png", PNG).body
    again(service, file, {})
    service.post("/v1/presets/thumb", PNG).refused(404, "unknown-preset", "this service has no presets")
    assert service.get("/v1/filters").json()["presets"] == []


def test_reload_while_the_body_arrives(service):
    """A request that has begun runs the preset as it was then, also if its parameters come later."""
    expected = service.post("/v1/filters/invert", PNG).body
    again(service, service.file, {"thumb": "invert"})
    form, kind = multipart([("image", "a.png", PNG), ("format", None, b"png")])
    heads = {"image/png": PNG, kind: form}
    for kind, body in heads.items():
        with service.socket() as connection:
            connection.sendall(f"POST /v1/presets/thumb HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
                               f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body[:100])
            poll(lambda: service.total("convolved_requests") > 1, what="the request")
            again(service, service.file, {"other": "box"})
            connection.sendall(body[100:])
            received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
            assert received.startswith(b"HTTP/1.1 200 ") and received.endswith(expected)
        again(service, service.file, {"thumb": "invert"})


def invalid(lines, *says, name=""):
    """A file with these lines in [presets] is refused, in these words."""
    return pytest.param(lines, says, id=name or lines[:20])


INVALID_PRESETS = [
    invalid("thumb=", "thumb=:", "NAME=CHAIN"), invalid("thumb=resizze", "[presets] thumb: ", "did you mean resize?"),
    invalid("thumb=resize=witdh=3", "thumb: witdh=3: ", "resize takes width"),
    invalid("th umb=box", "th umb=box", "letters, digits, - and _"), invalid("thümb=box", "letters, digits"),
    invalid("a.b=box", "a.b=box", "letters, digits"), invalid(f"{'x' * 64}=box", "at most 63"),
    invalid("a/b=box", "a/b=box"), invalid("thumb", "KEY=VALUE"), invalid("=box", "KEY=VALUE"),
    invalid("a=box\na=sobel", "a is a duplicate of line 2"), invalid("a=box&", "[presets] a: ", "NAME=VALUE after each &"),
    invalid("a=box&&format=png", "[presets] a: "), invalid("a=&format=png", "[presets] a: ", "at least one filter"),
    invalid("a=format=png", "[presets] a: ", "at least one filter"), invalid("a=box&format=foo", "format=foo", "one of jpeg"),
    invalid("a=box&format=png&format=png", "more than once"), invalid("a=box&filters=box", "more than once"),
    invalid("a=box&quality=101", "quality=101", "from 1 to 100"), invalid("a=box&raw=1x1", "raw=1x1"),
    invalid("a=box&alpha=1", "alpha is for raw"), invalid("a=box&nope=1", "nope=1", "a chain takes filters"),
    invalid("a=invert=1", "key=value"), invalid("a=" + ",".join(["box"] * 9), "at most 8"),
    invalid("a=convolve=kernel=" + "1 " * 2000 + "1", "[presets] a: kernel=", name="long"),
    invalid("a=resize=width=5,resize=width=5", "at most one resize"), invalid("a=chain=[", "not JSON"), invalid("a=box&chain=[]", "give one of them"),
    invalid("a=box\\nb", "letters, digits"), invalid("a=box\\tb", "letters, digits"),
    invalid("a=gaussian=sigma=2%25", "sigma=2%25"), invalid("a=box|rm -rf", "[presets] a: ", "filters are"),
    invalid("".join(f"p{i}=box\n" for i in range(65)), "p64=box", "up to 64", name="65"),
]


@pytest.mark.parametrize("lines, says", INVALID_PRESETS)
def test_refused_at_the_start(tmp_path, lines, says):
    file = tmp_path / "convolved.conf"
    file.write_text(f"[presets]\n{lines}\n")
    done = run("--config", file)
    assert done.returncode == INVALID and all(text in done.stderr for text in says), done.stderr
    assert all(line.startswith("convolved: error: ") for line in done.stderr.splitlines()), done.stderr


def test_refused_by_a_reload(service):
    for one in INVALID_PRESETS[::3]:
        lines, says = one.values
        service.file.write_text(f"[presets]\n{lines}\n")
        log = read_again(service, "stays as it was")
        assert all(text in log for text in says), log
    assert service.post("/v1/presets/invert", PNG).status == 200


@pytest.mark.parametrize("lines", [
    "", "# thumb=nonsense\n", "".join(f"p{i}=box\n" for i in range(64)),
    "a   =   box   \n", "soft = luma=gaussian=sigma=2%&chroma=box=size=5&border=reflect101\n", "a=chain=[{\"filter\":\"box\"}]\n",
    f"{'x' * 63}=box\n", "0=box\n-=box\n_=box\n"])
def test_valid(tmp_path, lines):
    file = tmp_path / "convolved.conf"
    file.write_text(f"[presets]\n{lines}[limits]\nmax-jobs=3\n")
    done = run("--check-config", "--config", file)
    assert (done.returncode, done.stderr) == (0, "")


def test_other_sources(tmp_path):
    """Flags and the environment take the place of the file's; duplicates are errors there, too."""
    def check(*arguments, **options):
        done = run("--check-config", *arguments, **options)
        return done.returncode, done.stderr
    assert check("--preset", "a=box", "--preset", "b=sobel&format=png") == (0, "")
    assert check(environment={"CONVOLVED_PRESET": "a=box\nb=sobel"}) == (0, "")
    status, said = check("--preset", "a=box", "--preset", "a=box")
    assert status == INVALID and "[presets] a: this preset is given more than once" in said
    status, said = check("--preset", "box")
    assert status == INVALID and "--preset: preset=box: expected" in said
    status, said = check("--presets-only", "yes")
    assert status == INVALID and "presets-only=yes: nothing can be filtered" in said


OTHERS = ["/v1/filters/box", "/v1/chain?filters=box", "/v1/chain?luma=box", "/v1/filters/nothing", "/v1/chain",
          "/v1/filters/thumb"]


def test_presets_only(service):
    """No other route filters anything, at once or as a job, with a query or a form."""
    again(service, service.file, {"thumb": "invert", "card": "box"}, "presets-only=yes")
    form, kind = multipart([("image", "a.png", PNG), ("filters", None, b"box")])
    json, json_kind = multipart([("image", "a.png", PNG), ("chain", None, b'[{"filter":"box"}]')])
    for target in OTHERS:
        for headers in ({}, PREFER):
            for body, own in ((PNG, {}), (form, {"Content-Type": kind}), (json, {"Content-Type": json_kind})):
                service.post(target, body, headers={**headers, **own}).refused(
                    403, "presets-only", "POST /v1/presets/NAME, with one of thumb, card")
    for body, own in ((form, {"Content-Type": kind}), (json, {"Content-Type": json_kind})):
        service.post("/v1/presets/thumb", body, headers=own).refused(400, "bad-parameter", "takes format, raw")
    service.post("/v1/presets/thumb?filters=invert&quality=3", PNG).refused(400, "bad-parameter")
    expected = service.post("/v1/presets/thumb", PNG)
    assert expected.status == 200
    job = begin(service, "/v1/presets/thumb", PNG)
    assert service.get(f"{job}/result?wait=60").body == expected.body
    assert service.get("/v1/filters").status == service.get("/v1/filters/box").status == 200
    log = again(service, service.file, {}, "presets-only=yes", says="stays as it was")
    assert "presets-only=yes: nothing can be filtered" in log
    again(service, service.file, {"thumb": "invert"})
    assert service.post("/v1/filters/box", PNG).status == 200


def test_presets_only_by_token(launch, tmp_path):
    token_file(tmp_path, section("alice", "presets-only=yes\n"), section("bob", "presets-only=no\n"), section("carol"))
    with launch("--tokens", str(tmp_path / "tokens"), "--codecs", "1", "--preset", "thumb=invert",
                environment=ONE_DEVICE) as service:
        alice, key = bearer("alice"), {"Idempotency-Key": "a", **PREFER}
        for target in OTHERS:
            for more in ({}, PREFER, key):
                service.post(target, PNG, headers={**alice, **more}).refused(403, "presets-only", "thumb")
        service.post("/v1/presets/thumb", PNG).refused(401, "token-required")
        expected = service.post("/v1/filters/invert", PNG, headers=bearer("bob"))
        assert expected.status == 200
        for name in ("alice", "bob", "carol"):
            assert service.post("/v1/presets/thumb", PNG, headers=bearer(name)).body == expected.body
        job = service.post("/v1/presets/thumb", PNG, headers={**alice, **key}).headers["Location"]
        assert service.get(f"{job}/result?wait=60", headers=alice).body == expected.body
        token_file(tmp_path, section("alice", "presets-only=perhaps\n"))
        assert "presets-only of [alice]: expected no or yes" in read_again(service, "stays as it was")
        token_file(tmp_path, section("alice"))
        read_again(service)
        assert service.post("/v1/filters/box", PNG, headers=alice).status == 200


def test_jobs_outlive_their_preset(cache, tmp_path):
    """A job that waits when the service ends is what its preset was when it was accepted."""
    file, state = tmp_path / "convolved.conf", tmp_path / "service"
    options = ("--config", str(file), "--durable", "yes")
    file.write_text(text({"slow": "bilateral=radius=16,bilateral=radius=16,invert&format=png&variant=general"}))
    large = imagefiles.write_png(random_pixels(2, 500, 500, 3, "u8"))
    with Service(state, cache, *options, environment=ONE_DEVICE) as service:
        jobs = [begin(service, "/v1/presets/slow?priority=batch&format=png", body) for body in (large, PNG)]
        service.kill()
        file.write_text(text({"other": "box"}, "presets-only=yes"))
        service.start()
        answer = service.get(f"{jobs[1]}/result?wait=300")
        assert answer.status == 200, answer
        again(service, file, {})
        query = "filters=bilateral=radius=16,bilateral=radius=16,invert&format=png&variant=general"
        assert answer.body == service.post(f"/v1/chain?{query}", PNG).body
        for job in jobs:
            service.request("DELETE", job)


def test_keys(started):
    """A key with the same preset is the same request, as long as the preset is the same."""
    key = {"Idempotency-Key": "one", **PREFER}
    jobs = {started.post("/v1/presets/thumb", PNG, headers=key).headers["Location"] for _ in range(2)}
    assert len(jobs) == 1
    started.post("/v1/presets/invert", PNG, headers=key).refused(422, "key-reused")


def test_log_and_metrics(started):
    before = started.total("convolved_request_duration_seconds_count", route="/v1/presets/{preset}")
    started.post("/v1/presets/thumb", PNG)
    assert started.total("convolved_request_duration_seconds_count", route="/v1/presets/{preset}") == before + 1
    assert started.post("/v1/presets/thumb?x=1", PNG).status == 400
