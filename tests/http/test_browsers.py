"""Requests of pages by visitors' browsers: refused, but for pages of sites that are allowed."""
import pytest

from service import SMALL, at_unix_socket, raw_kind

SITE, EVIL = "https://editor.example", "https://evil.example"


@pytest.fixture(scope="module")
def guarded(launch, tmp_path_factory):
    """A service as it is by default but for one site and one name."""
    path = str(tmp_path_factory.mktemp("unix") / "socket")
    with launch("--cors-origins", f"{SITE};http://localhost:3000", "--hosts", "images.example",
                "--listen", f"unix:{path}", environment={"CONVOLVED_HOSTS": ""}) as service:
        service.local = at_unix_socket(path)
        yield service


def asks(host):
    return f"GET /livez HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


@pytest.mark.parametrize("host, known", [
    ("localhost", True), ("LOCALHOST:8700", True), ("a.b.localhost:1", True), ("127.0.0.1", True),
    ("127.1.2.3:8700", True), ("[::1]", True), ("[::1]:8700", True), ("images.example", True),
    ("Images.Example:80", True), ("example.org", False), ("images.example.org", False),
    ("ximages.example", False), ("notlocalhost", False), ("localhost.example.org", False),
    ("128.0.0.1", False), ("[::2]", False), ("127.0.0.1.example.org", False), ("0.0.0.0", False),
    ("x" * 300, False),
])
def test_host(guarded, host, known):
    answer = guarded.send(asks(host))
    assert answer.status == 200 if known else answer.refused(421, "misdirected", "hosts")


def test_host_elsewhere(guarded):
    """HTTP/1.0 need not say it; no page reaches a Unix socket."""
    assert guarded.send(b"GET /livez HTTP/1.0\r\n\r\n").status == 200
    assert guarded.local.send(asks("example.org")).status == 200


@pytest.mark.parametrize("headers, allowed", [
    ({}, True), ({"Sec-Fetch-Site": "none"}, True), ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:8700"}, True),
    ({"Origin": "http://localhost:8700"}, True), ({"Origin": "HTTP://LocalHost:8700"}, True),
    ({"Sec-Fetch-Site": "cross-site"}, False), ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Origin": EVIL}, False), ({"Origin": EVIL}, False),
    ({"Origin": "null"}, False),
    ({"Origin": "http://localhost:8701"}, False), ({"Origin": ""}, False),
    ({"Origin": SITE + ".evil.example"}, False), ({"Origin": "http://editor.example"}, False),
    ({"Origin": SITE}, True), ({"Origin": SITE, "Sec-Fetch-Site": "cross-site"}, True),
    ({"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, True),
])
def test_sites(guarded, headers, allowed):
    origin = headers.get("Origin")
    for path, status in (("/livez", 200), ("/v1/filters", 200), ("/nowhere", 404)):
        answer = guarded.get(path, headers={"Host": "localhost:8700", **headers})
        assert answer.status == status if allowed else (
            answer.refused(403, "cross-site", "cors-origins"))
        named = allowed and origin in (SITE, "http://localhost:3000")
        assert answer.headers.get("Access-Control-Allow-Origin") == (origin if named else None)
        assert "Origin" in ", ".join(answer.headers.get_all("Vary"))


def test_image_for_a_page(guarded):
    target = f"/v1/filters/box?raw={raw_kind(SMALL)}&format=raw"
    answer = guarded.post(target, SMALL.tobytes(),
                          headers={"Origin": SITE, "Sec-Fetch-Site": "cross-site"})
    assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == SITE
    assert "X-Image" in answer.headers["Access-Control-Expose-Headers"]
    guarded.post(target, SMALL.tobytes(), headers={"Origin": EVIL}).refused(403, "cross-site")


def preflight(service, path, origin, method="POST"):
    return service.request("OPTIONS", path, headers={
        "Origin": origin, "Access-Control-Request-Method": method, "Sec-Fetch-Site": "cross-site",
        "Access-Control-Request-Headers": "authorization,content-type"})


def test_preflight(guarded):
    answer = preflight(guarded, "/v1/filters/box", SITE)
    assert answer.status == 204 and answer.headers["Access-Control-Allow-Origin"] == SITE
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    assert {"authorization", "content-type"} <= {
        name.strip().lower() for name in answer.headers["Access-Control-Allow-Headers"].split(",")}
    answer = preflight(guarded, "/v1/jobs/0123456789abcdef", SITE, "DELETE")
    assert "DELETE" in answer.headers["Access-Control-Allow-Methods"]
    answer = preflight(guarded, "/v1/filters/box", EVIL)
    answer.refused(403, "cross-site")
    assert "Access-Control-Allow-Methods" not in answer.headers


def test_preflight_has_no_token(launch, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("[a]\ntoken-sha256=" + 64 * "0" + "\n")
    tokens.chmod(0o600)
    with launch("--tokens", str(tokens), "--cors-origins", SITE) as service:
        assert preflight(service, "/v1/filters/box", SITE).status == 204
        preflight(service, "/v1/filters/box", EVIL).refused(403, "cross-site")
        for headers in ({}, {"Access-Control-Request-Method": "GET"}):
            answer = service.get("/v1/filters", headers={"Origin": SITE, **headers})
            answer.refused(401, "token-required")


def test_all_sites(launch):
    site = {"Sec-Fetch-Site": "cross-site"}
    with launch("--cors-origins", "*", environment={"CONVOLVED_HOSTS": ""}) as service:
        answer = service.get("/v1/filters", headers={"Origin": SITE, **site})
        assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == SITE
        service.get("/livez", headers=site).refused(403, "cross-site")


def test_closed_by_default(launch):
    with launch(environment={"CONVOLVED_HOSTS": ""}) as service:
        service.get("/livez", headers={"Origin": SITE}).refused(403, "cross-site")
        service.get("/livez", headers={"Host": "example.org"}).refused(421, "misdirected")
        assert "Origin" not in (service.get("/livez").headers["Vary"] or "")
