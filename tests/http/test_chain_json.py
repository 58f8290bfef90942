"""POST /v1/chain with the chain as JSON in a part of the form."""
import json

import pytest

import imagefiles
from pixels import random_pixels
from service import multipart, target_of

PIXELS = random_pixels(9, 50, 41, 3, "u8")
PNG = imagefiles.write_png(PIXELS)


def post(service, chain, target="/v1/chain?format=ppm", filename=None):
    text = chain if isinstance(chain, str) else json.dumps(chain)
    body, kind = multipart([("chain", filename, text.encode()), ("image", "a.png", PNG)])
    return service.post(target, body, headers={"Content-Type": kind})


MATRIX = [[1, 2.5, 1], [0, -1e-3, 0], [1, 2, 1]]
CHAINS = [
    [("gaussian", {"sigma": 1.4}), ("sobel", {})],
    [("sobel", {"output": "x"})],
    [("convolve", {"kernel": MATRIX, "scale": 7, "offset": 0.1}), ("box", {"size": 5})],
    [("convolve", {"kernel": [1, 2, 1]})],
    [("laplacian", {"connectivity": 8}), ("bilateral", {"radius": 2, "sigma_range": 0.3})],
]


@pytest.mark.parametrize("filename", [None, "chain.json"])
@pytest.mark.parametrize("chain", CHAINS)
def test_equals_the_text(service, chain, filename):
    """Byte for byte what the same filters in the query make."""
    as_text = service.post(target_of(chain * 2, format="ppm", variant="general"), PNG)
    as_json = post(service, [{"filter": name, **parameters} for name, parameters in chain * 2],
                   "/v1/chain?format=ppm&variant=general", filename)
    assert as_text.status == as_json.status == 200, (as_text, as_json)
    assert as_text.body == as_json.body


def test_values_as_text(service):
    """A value may be spelt as in a query."""
    one = post(service, [{"filter": "convolve", "kernel": "1 2 1;2 4 2;1 2 1"}])
    two = post(service, [{"filter": "convolve", "kernel": [[1, 2, 1], [2, 4, 2], [1, 2, 1]]}])
    assert one.status == two.status == 200 and one.body == two.body


def test_common_parameters_apply(service):
    answer = post(service, [{"filter": "box", "size": 5}],
                  "/v1/chain?format=raw&border=crop&luma=box")
    assert answer.kind[:2] == (PIXELS.shape[1] - 6, PIXELS.shape[0] - 6)


def test_many_numbers_keep_their_digits(service):
    sigma = 1.2345678901234567
    exact = post(service, [{"filter": "gaussian", "sigma": sigma}])
    assert exact.body == service.post(f"/v1/filters/gaussian?format=ppm&sigma={sigma!r}", PNG).body


@pytest.mark.parametrize("chain, status, slug, parameter, says", [
    ("[{", 400, "bad-parameter", "chain", "not JSON"),
    ('{"filter":"box"}', 400, "bad-parameter", "chain", "list"),
    ("[]", 400, "bad-parameter", "chain", "list"),
    ("7", 400, "bad-parameter", "chain", "list"),
    ('["box"]', 400, "bad-parameter", "chain", "member filter"),
    ('[{"sigma":1}]', 400, "bad-parameter", "chain", "member filter"),
    ('[{"filter":"box","size":3,"size":5}]', 400, "bad-parameter", "chain", "not JSON"),
    ('[{"filter":"bux"}]', 404, "unknown-filter", "filter", "box"),
    ('[{"filter":"box","size":4}]', 400, "bad-parameter", "size", "odd"),
    ('[{"filter":"box","size":true}]', 400, "bad-parameter", "size", "a number"),
    ('[{"filter":"box","size":[]}]', 400, "bad-parameter", "size", "a number"),
    ('[{"filter":"box","size":{"a":1}}]', 400, "bad-parameter", "size", "a number"),
    ('[{"filter":"box","sigma":4}]', 400, "bad-parameter", "sigma", "box takes size"),
    ('[{"filter":"convolve","kernel":[[1,2,1],[1,2]]}]', 400, "bad-parameter", "kernel", "row 2"),
    ('[{"filter":"convolve","kernel":[[1],[[1]],[1]]}]', 400, "bad-parameter", "kernel", "rows"),
    ('[{"filter":"convolve"}]', 400, "bad-parameter", "kernel", "needs kernel"),
    ('[{"filter":"box\\u0000"}]', 400, "bad-parameter", "chain", "not JSON"),
    ("[" * 3000 + "]" * 3000, 400, "bad-parameter", "chain", "not JSON"),
    (json.dumps([{"filter": "box"}] * 9), 400, "bad-parameter", "filters", "at most 8"),
])
def test_errors_are_those_of_the_text(service, chain, status, slug, parameter, says):
    problem = post(service, chain).refused(status, slug)
    assert problem["parameter"] == parameter and says in problem["detail"], problem


def test_two_ways_at_once(service):
    problem = post(service, [{"filter": "box"}],
                   "/v1/chain?filters=sobel").refused(400, "bad-parameter")
    assert problem["parameter"] == "chain" and "one of them" in problem["detail"]


def test_only_for_a_chain(service):
    problem = post(service, [{"filter": "box"}], "/v1/filters/box").refused(400, "bad-parameter")
    assert problem["parameter"] == "chain"
