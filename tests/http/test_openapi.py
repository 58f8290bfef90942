"""/openapi.json: valid, and true of the service that gave it."""
import contextlib
import copy
import functools
import json
import pathlib
import re
import urllib.parse

import jsonschema
import numpy as np
import pytest
import yaml

import imagefiles
from service import multipart

PIXELS = np.arange(24 * 32 * 4, dtype=np.uint32).reshape(24, 32, 4).astype(np.uint8)
PNG = imagefiles.write_png(PIXELS)
RANDOM = imagefiles.write_png(np.random.default_rng(1).integers(0, 256, (24, 32, 3), np.uint8))
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
# The schema of OpenAPI 3.0 (Debian 12 has none of 3.1), of the package openapi-specification.
OFFICIAL = pathlib.Path("/usr/share/openapi-specification/schemas/v3.0/schema.yaml")


@pytest.fixture(scope="module")
def document(shared):
    answer = shared.get("/openapi.json")
    assert answer.status == 200 and answer.type == "application/json"
    return answer.json()


def resolve(document, node):
    while "$ref" in node:
        node = functools.reduce(dict.get, node["$ref"].removeprefix("#/").split("/"), document)
    return node


def walk(node):
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from walk(child)


def operations(document, *methods):
    """Returns [(path, operation)] of these methods, or of all."""
    return [(path, operation) for path, item in document["paths"].items()
            for method, operation in item.items() if method in (methods or METHODS)]


def schemas(document):
    """Yields all schemas: those of components, and those that stand elsewhere."""
    yield from document["components"]["schemas"].values()
    yield from (node["schema"] for node in walk(document) if isinstance(node.get("schema"), dict))


def conforms(document, value, schema):
    """Validates the value; the schema may refer to the document's components."""
    schema = {**schema, "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(value)


def test_official_schema(document):
    """In the words of 3.0: what 3.1 has of JSON Schema beyond that is respelt."""
    assert document["openapi"] == "3.1.0"
    old = {**copy.deepcopy(document), "openapi": "3.0.3"}
    for node in walk(old):
        for key in ("examples", "contentMediaType", "contentSchema"):
            node.pop(key, None)
        if isinstance(node.get("type"), list):
            node.update(type=next(t for t in node["type"] if t != "null"), nullable=True)
    jsonschema.Draft4Validator(yaml.safe_load(OFFICIAL.read_text())).validate(old)


def test_schemas_are_json_schema(document):
    for schema in schemas(document):
        jsonschema.Draft202012Validator.check_schema(schema)
        defaults = [schema["default"]] if "default" in schema else []
        for value in schema.get("examples", []) + defaults:
            jsonschema.validate(value, schema)


def test_references(document):
    """Each leads somewhere, and no component is unused."""
    found = {node["$ref"] for node in walk(document) if "$ref" in node}
    for target in found:
        assert resolve(document, {"$ref": target})
    kept = {f"#/components/{kind}/{name}" for kind, items in document["components"].items()
            for name in items}
    # Security schemes are referred to by their names.
    found |= {f"#/components/securitySchemes/{name}" for way in document["security"] for name in way}
    idle = {target for target in kept - found if not target.startswith("#/components/responses/")}
    assert not idle


def test_operations_are_well_formed(document):
    ids = []
    for path, operation in operations(document):
        ids.append(operation["operationId"])
        places = [(p["in"], p["name"]) for p in
                  (resolve(document, p) for p in operation["parameters"])]
        assert len(set(places)) == len(places), path
        assert {name for place, name in places if place == "path"} == set(
            re.findall(r"\{(\w+)\}", path)), path
        assert operation["summary"] and operation["tags"]
        assert any(status.startswith("2") for status in operation["responses"])
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z0-9-]+", one) for one in ids)


def test_bodies_are_bytes(document):
    """Generators make bytes of binary contents, and drop those without a schema."""
    for node in walk(document):
        for media, content in node.get("content", {}).items() if "content" in node else ():
            schema = resolve(document, content["schema"])
            image = media.startswith("image/") or media == "application/octet-stream"
            assert (schema == {"type": "string", "format": "binary"}) == image, (media, schema)
    for path, operation in operations(document, "post"):
        assert {"application/octet-stream", "image/*", "multipart/form-data"} == set(
            operation["requestBody"]["content"]), path
        images = resolve(document, operation["responses"]["200"])["content"]
        assert {"image/jpeg", "image/png", "application/octet-stream"} <= set(images)


def test_filters_are_those_of_the_catalogue(document, shared):
    for one in shared.get("/v1/filters").json()["filters"]:
        assert shared.get(f"/v1/filters/{one['name']}").json() == one
        assert one["text"] and all(parameter["text"] for parameter in one["parameters"])
        if one["name"] == "gaussian":
            assert one["parameters"][0]["unit"] == "pixels, or % of the shorter side"
        operation = document["paths"][f"/v1/filters/{one['name']}"]["post"]
        described = {p["name"]: p["schema"] for p in operation["parameters"] if "$ref" not in p}
        assert set(described) == {p["name"] for p in one["parameters"]}
        for parameter in one["parameters"]:
            schema = described[parameter["name"]]
            if parameter["type"] == "choice":
                assert schema["enum"] == parameter["choices"]
            elif parameter["type"] != "matrix":
                assert (schema["minimum"], schema["maximum"]) == (parameter["minimum"],
                                                                  parameter["maximum"])
            assert schema.get("default") == parameter["default"]


GIVEN = {"convolve": "kernel=0,0,1", "lut": "points=0,9;255,200", "colormatrix": "matrix=0,0,1,0;0,1,0,0;1,0,0,0", "resize": "width=9",
         "threshold": "method=mean"}


def test_filters_that_look_at_the_border(shared):
    """The catalogue names those whose results it changes, and no others; if a choice decides, with which."""
    cases = []
    for one in shared.get("/v1/filters").json()["filters"]:
        assert all(set(p["border"]) < set(p["choices"]) for p in one["parameters"] if "border" in p)
        cases.append((f"/v1/filters/{one['name']}?{GIVEN.get(one['name'], 'strip=1')}", one["border"]))
        # Some of a resize's kernels hardly ever look there.
        cases += [(f"/v1/filters/{one['name']}?{p['name']}={word}", one["border"] and word in p.get("border", p["choices"]))
                  for p in one["parameters"] if one["name"] != "resize" for word in p.get("choices", [])]
    assert ("/v1/filters/threshold?method=value", False) in cases
    for target, expected in cases:
        plain, *others = [shared.post(f"{target}&variant=general&format=ppm&border={border}", RANDOM)
                          for border in ("replicate", "constant", "constant&border_value=255")]
        assert {answer.status for answer in (plain, *others)} == {200}, (target, plain)
        assert any(answer.body != plain.body for answer in others) == expected, target


def test_choices_of_common_parameters(document, shared):
    """Those that are words stand in the catalogue, too, for completion and forms."""
    common = {p["name"]: p for p in shared.get("/v1/filters").json()["common"]}
    for name, parameter in document["components"]["parameters"].items():
        words = [one for one in parameter["schema"].get("enum", []) if isinstance(one, str)]
        if name in common:
            assert common[name].get("choices", []) == words
    for name in ("border", "format", "channels", "priority"):
        assert len(common[name]["choices"]) > 1
    assert all(len(parameter["text"]) > 10 for parameter in common.values())
    assert [common["feather"].get(fact) for fact in ("type", "unit", "minimum")] == ["integer", "pixels", 0]
    assert common["luma"]["chain_only"] and not common["roi"]["chain_only"]


@pytest.mark.parametrize("status, target, body", [
    (400, "/v1/filters/box?size=2", PNG), (415, "/v1/filters/box", b"text"),
    (422, "/v1/filters/box", PNG[:-99]), (404, "/v1/chain?filters=bux", PNG)])
def test_problems(document, service, status, target, body):
    """Every problem that is met is described for its operation."""
    answer = service.post(target, body)
    assert answer.problem["status"] == status
    check_answer(document, document["paths"][target.partition("?")[0]]["post"], answer)


@pytest.mark.parametrize("status, sent", [
    (400, "GET /livez HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"),
    (413, f"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: {10 ** 30}\r\n\r\n"),
    (414, f"GET /livez?{'x' * 200000} HTTP/1.1\r\nHost: x\r\n\r\n"),
    (415, "GET /livez HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"),
    (431, f"GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: {'x' * 200000}\r\n\r\n"),
    (501, "GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"),
    (505, "GET /livez HTTP/2.0\r\nHost: x\r\n\r\n")])
def test_refusals_of_any_request(document, service, status, sent):
    """They are described for every operation, as is 421 (test_browsers.py), with their headers."""
    for path, operation in operations(document):
        assert {"421", str(status)} <= set(operation["responses"]), path
    answer = service.send(sent.encode())
    assert answer.status == status, answer
    check_answer(document, document["paths"]["/livez"]["get"], answer)


# Headers of every answer, for caches and browsers rather than clients.
PLAIN = {"X-Content-Type-Options"}


def check_events(document, schema, text):
    """The events of a stream, whose data are JSON in a text."""
    events = [dict(line.split(": ", 1) for line in event.split("\n") if not line.startswith(":"))
              for event in text.split("\n\n") if event]
    data = resolve(document, schema)["properties"]["data"]
    assert events and data["contentMediaType"] == "application/json"
    for event in filter(None, events):
        conforms(document, event, schema)
        conforms(document, json.loads(event["data"]), data["contentSchema"])


def check_answer(document, operation, answer):
    status = str(answer.status)
    assert status in operation["responses"], (status, operation["operationId"])
    response = resolve(document, operation["responses"][status])
    own = {name for name in answer.headers
           if name.startswith("X-") or name in document["components"]["headers"]}
    assert own - PLAIN <= set(response["headers"]), (own, operation["operationId"])
    for name, header in response["headers"].items():
        header = resolve(document, header)
        assert answer.headers[name] or not header["required"], (name, operation["operationId"])
        if answer.headers[name]:
            jsonschema.validate(answer.headers[name], header["schema"])
    content = response.get("content", {})
    assert answer.type in content or not content and not answer.body, answer
    schema = content.get(answer.type, {}).get("schema", {})
    if answer.type == "text/event-stream":
        check_events(document, schema, answer.body.decode())
    elif schema and schema.get("type") != "string":
        conforms(document, answer.json(), schema)


def test_every_get(document, service):
    """Also of jobs, of which one is done and one has failed."""
    jobs = []
    for body in (PNG, b"text"):
        answer = service.post("/v1/filters/box", body, headers={"Prefer": "respond-async"})
        check_answer(document, document["paths"]["/v1/filters/box"]["post"], answer)
        jobs.append(answer.headers["Location"])
    states = [service.get(f"{job}?wait=300").json()["state"] for job in jobs]
    assert states == ["done", "failed"]
    for path, operation in operations(document, "get"):
        for job in jobs if "{id}" in path else jobs[:1]:
            answer = service.get(path.replace("{id}", job.rpartition("/")[2]))
            check_answer(document, operation, answer)
    answer = service.request("DELETE", jobs[0])
    check_answer(document, document["paths"]["/v1/jobs/{id}"]["delete"], answer)


def test_index_names_them_all(document, service):
    index = service.get("/").body.decode()
    for path in document["paths"]:
        known = [line for line in index.split() if line.strip("'").rstrip("?,").startswith(
            re.sub(r"/v1/filters/\w+", "/v1/filters", path).replace("{id}", "ID"))
            or line.endswith(path.replace("{preset}", "NAME"))]
        assert known or path == "/v1/chain", path


def bad_values(schema):
    if "enum" in schema or "pattern" in schema:
        return ["no-such-thing"]
    return [schema["minimum"] - 1, schema["maximum"] + 1, "x"] if "minimum" in schema else []


# Parameters that some parameters cannot do without.
NEEDS = {"border_value": {"border": "constant"}, "alpha": {"raw": "4x3x2:u8"},
         "target": {"roi": "1,2,16,8"}, "chain": {}, "luma": {}, "chroma": {},
         "subsample": {"format": "jpeg"}}
FORMATS = {("compression", method): {"format": "tiff"}
           for method in ("none", "lzw", "deflate", "zstd")}
BODIES = {"raw": bytes(24), "alpha": bytes(24)}


def ask(service, path, values, body):
    return service.post(f"{path}?{urllib.parse.urlencode(values, safe=',;:=')}", body)


def test_common_parameters(document, service):
    """Every described value is taken, and others are not. (Filters' are in test_metrics.py.)"""
    path = "/v1/chain"
    operation = document["paths"][path]["post"]
    described = [resolve(document, p) for p in operation["parameters"]]
    queries = {p["name"]: p["schema"] for p in described if p["in"] == "query"}
    assert len(queries) > 15
    for name, schema in queries.items():
        base = dict(NEEDS.get(name, {}))
        if name not in ("filters", "chain", "luma", "chroma"):
            base["filters"] = "box"
        body = BODIES.get(name, PNG)
        bounds = [schema[key] for key in ("minimum", "maximum", "default") if key in schema]
        for value in schema.get("enum", []) + schema.get("examples", []) + bounds:
            values = {**base, **FORMATS.get((name, value), {}), name: value}
            answer = ask(service, path, values, body)
            # Whether it fits this image (alpha in a JPEG, green in raw grey) is another question.
            if answer.status == 400 and (name, value) == ("page", schema.get("maximum")):
                assert "has 1 page" in answer.problem["detail"]
            elif answer.status != 400 or answer.problem["parameter"] == name:
                assert answer.status in (200, 422, 429, 504), (name, value, answer)
            check_answer(document, operation, answer)
        for value in bad_values(schema):
            answer = ask(service, path, {**base, name: value}, body)
            answer.refused(400, "bad-parameter", parameter=name)


def test_every_post(document, service):
    for path, operation in operations(document, "post"):
        if "{preset}" in path:  # test_presets.py
            continue
        values = {"filters": "box"} if path == "/v1/chain" else {
            p["name"]: p["schema"]["examples"][0] for p in operation["parameters"]
            if p.get("required")}
        values |= {"/v1/filters/lut": {"table": "0,255"},  # either of two parameters
                   "/v1/filters/resize": {"width": 5}}.get(path, {})
        answer = ask(service, path, values, PNG)
        assert answer.status == 200, (path, answer)
        check_answer(document, operation, answer)


LINKS = [{"filter": "gaussian", "sigma": 2}, {"filter": "convolve", "kernel": [[1, 2, 1]]},
         {"filter": "lut", "points": [[0, 9], [255, 90]]}, {"filter": "linear", "gain": 2},
         {"filter": "lut", "table": [0, 255, 0]}, {"filter": "linear", "bias": "0.1"}]


@pytest.mark.parametrize("chain", [
    LINKS, LINKS * 2, [], [{"filter": "bux"}], [{"filter": "box", "size": 700}], [{"size": 3}],
    [{"filter": "box", "sigma": 3}], [{"filter": "box", "size": 4}], [{"filter": "convolve"}],
    [{"filter": "linear", "gain": 101}], [{"filter": "lut", "table": [[[0]]]}],
    [{"filter": "colormatrix"}]])
def test_chain_schema(document, service, chain):
    """The service takes a JSON chain if and only if the schema does."""
    body, kind = multipart([("image", "a.png", PNG), ("chain", None, json.dumps(chain).encode())])
    status = service.post("/v1/chain", body, headers={"Content-Type": kind}).status
    assert status == 200 if chain == LINKS else status in (400, 404)
    wrong = pytest.raises(jsonschema.ValidationError)
    with contextlib.nullcontext() if chain == LINKS else wrong:
        conforms(document, chain, {"$ref": "#/components/schemas/Chain"})
