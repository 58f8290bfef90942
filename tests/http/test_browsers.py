"""Requests of pages through their visitors' browsers: all are refused, unless the pages are of a
site that the service allows, however they name it."""
import socket
import tempfile

import pytest

from service import SMALL, raw_kind, read_answer

SITE = "https://editor.example"


@pytest.fixture(scope="module")
def guarded(launch, tmp_path_factory):
    """A service as it is by default but for one site and one name."""
    directory = tempfile.mkdtemp()
    with launch("--cors-origins", f"{SITE};http://localhost:3000", "--hosts", "images.example",
                "--listen", f"unix:{directory}/socket", environment={"CONVOLVED_HOSTS": ""}) as service:
        service.path = f"{directory}/socket"
        yield service


@pytest.fixture(scope="module")
def open_to_all(launch):
    with launch("--cors-origins", "*", environment={"CONVOLVED_HOSTS": ""}) as service:
        yield service


def ask(connection, *headers, method="GET", path="/livez"):
    connection.sendall("\r\n".join([f"{method} {path} HTTP/1.1", *headers, "", ""]).encode())
    return read_answer(connection)


@pytest.mark.parametrize("host, known", [
    ("localhost", True), ("LOCALHOST:8700", True), ("a.b.localhost:1", True), ("127.0.0.1", True),
    ("127.1.2.3:8700", True), ("[::1]", True), ("[::1]:8700", True), ("images.example", True),
    ("Images.Example:80", True), ("example.org", False), ("images.example.org", False),
    ("ximages.example", False), ("notlocalhost", False), ("localhost.example.org", False),
    ("128.0.0.1", False), ("[::2]", False), ("127.0.0.1.example.org", False), ("0.0.0.0", False),
    ("x" * 300, False),
])
def test_host(guarded, host, known):
    with guarded.socket() as connection:
        answer = ask(connection, f"Host: {host}")
        if known:
            assert answer.status == 200
        else:
            assert "hosts" in answer.refused(421, "misdirected")["detail"]


def test_host_elsewhere(guarded):
    """HTTP/1.0 need not say it; no page reaches a Unix socket."""
    with guarded.socket() as connection:
        connection.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        assert read_answer(connection).status == 200
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(guarded.path)
        assert ask(connection, "Host: example.org").status == 200


@pytest.mark.parametrize("headers, allowed", [
    ({}, True), ({"Sec-Fetch-Site": "none"}, True), ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:8700"}, True),
    ({"Origin": "http://localhost:8700"}, True), ({"Origin": "HTTP://LocalHost:8700"}, True),
    ({"Sec-Fetch-Site": "cross-site"}, False), ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, False),
    ({"Origin": "https://evil.example"}, False), ({"Origin": "null"}, False),
    ({"Origin": "http://localhost:8701"}, False), ({"Origin": ""}, False),
    ({"Origin": SITE + ".evil.example"}, False), ({"Origin": "http://editor.example"}, False),
    ({"Origin": SITE}, True), ({"Origin": SITE, "Sec-Fetch-Site": "cross-site"}, True),
    ({"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, True),
])
def test_sites(guarded, headers, allowed):
    lines = ["Host: localhost:8700", *(f"{name}: {value}" for name, value in headers.items())]
    for path in ("/livez", "/v1/filters", "/nowhere"):
        with guarded.socket() as connection:
            answer = ask(connection, *lines, path=path)
        if allowed:
            assert answer.status == (404 if path == "/nowhere" else 200), answer
        else:
            assert "cors-origins" in answer.refused(403, "cross-site")["detail"]
        named = allowed and headers.get("Origin") in (SITE, "http://localhost:3000")
        assert answer.headers.get("Access-Control-Allow-Origin") == (
            headers["Origin"] if named else None)
        assert "Origin" in ", ".join(answer.headers.get_all("Vary"))


def test_image_for_a_page(guarded):
    answer = guarded.post(f"/v1/filters/box?raw={raw_kind(SMALL)}&format=raw", SMALL.tobytes(),
                          headers={"Origin": SITE, "Sec-Fetch-Site": "cross-site"})
    assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == SITE
    assert "X-Image" in answer.headers["Access-Control-Expose-Headers"]
    problem = guarded.post(f"/v1/filters/box?raw={raw_kind(SMALL)}&format=raw", SMALL.tobytes(),
                           headers={"Origin": "https://evil.example"})
    problem.refused(403, "cross-site")


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
    answer = preflight(guarded, "/v1/filters/box", "https://evil.example")
    answer.refused(403, "cross-site")
    assert "Access-Control-Allow-Methods" not in answer.headers


def test_preflight_has_no_token(launch, tmp_path):
    (tmp_path / "tokens").write_text("[a]\ntoken-sha256=" + 64 * "0" + "\n")
    (tmp_path / "tokens").chmod(0o600)
    with launch("--tokens", str(tmp_path / "tokens"), "--cors-origins", SITE) as service:
        assert preflight(service, "/v1/filters/box", SITE).status == 204
        preflight(service, "/v1/filters/box", "https://evil.example").refused(403, "cross-site")
        for headers in ({}, {"Access-Control-Request-Method": "GET"}):
            service.get("/v1/filters", headers={"Origin": SITE, **headers}).refused(
                401, "token-required")


def test_all_sites(open_to_all):
    answer = open_to_all.get("/v1/filters", headers={"Origin": SITE, "Sec-Fetch-Site": "cross-site"})
    assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == SITE
    open_to_all.get("/livez", headers={"Sec-Fetch-Site": "cross-site"}).refused(403, "cross-site")


def test_closed_by_default(launch):
    with launch(environment={"CONVOLVED_HOSTS": ""}) as service:
        service.get("/livez", headers={"Origin": SITE}).refused(403, "cross-site")
        service.get("/livez", headers={"Host": "example.org"}).refused(421, "misdirected")
        assert "Origin" not in (service.get("/livez").headers["Vary"] or "")
