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


CHAINS = [
    [("gaussian", {"sigma": 1.2345678901234567}), ("sobel", {})],
    [("sobel", {"output": "x"})],
    [("convolve", {"kernel": [[1, 2.5, 1], [0, -1e-3, 0], [1, 2, 1]], "scale": 7, "offset": 0.1}),
     ("box", {"size": 5})],
    [("convolve", {"kernel": [1, 2, 1]})],
    [("convolve", {"kernel": "1 2 1;2 4 2;1 2 1"})],  # as in a query
    [("laplacian", {"connectivity": 8}), ("bilateral", {"radius": 2, "sigma_range": 0.3})],
]


@pytest.mark.parametrize("filename", [None, "chain.json"])
@pytest.mark.parametrize("chain", CHAINS)
def test_equals_the_text(service, chain, filename):
    """Byte for byte what the same filters in the query make, with its other parameters."""
    options = {"format": "ppm", "variant": "general", "border": "crop", "luma": [("box", {})]}
    as_text = service.post(target_of(chain * 2, **options), PNG)
    as_json = post(service, [{"filter": name, **parameters} for name, parameters in chain * 2],
                   target_of([], **options), filename)
    assert as_text.status == as_json.status == 200, (as_text, as_json)
    assert as_text.body == as_json.body


@pytest.mark.parametrize("chain, parameter, says", [
    ("[{", "chain", "not JSON"), ('{"filter":"box"}', "chain", "list"), ("[]", "chain", "list"),
    ("7", "chain", "list"), ('["box"]', "chain", "member filter"),
    ('[{"sigma":1}]', "chain", "member filter"),
    ('[{"filter":"box","size":3,"size":5}]', "chain", "not JSON"),
    ('[{"filter":"bux"}]', "filter", "box"), ('[{"filter":"box","size":4}]', "size", "odd"),
    ('[{"filter":"box","size":true}]', "size", "a number"),
    ('[{"filter":"box","size":[]}]', "size", "a number"),
    ('[{"filter":"box","size":{"a":1}}]', "size", "a number"),
    ('[{"filter":"box","sigma":4}]', "sigma", "box takes size"),
    ('[{"filter":"convolve","kernel":[[1,2,1],[1,2]]}]', "kernel", "row 2"),
    ('[{"filter":"convolve","kernel":[[1],[[1]],[1]]}]', "kernel", "rows"),
    ('[{"filter":"convolve"}]', "kernel", "needs kernel"),
    ('[{"filter":"box\\u0000"}]', "chain", "not JSON"),
    ("[" * 3000 + "]" * 3000, "chain", "not JSON"),
    (json.dumps([{"filter": "box"}] * 9), "filters", "at most 8")])
def test_errors_are_those_of_the_text(service, chain, parameter, says):
    error = (404, "unknown-filter") if parameter == "filter" else (400, "bad-parameter")
    post(service, chain).refused(*error, says, parameter=parameter)


@pytest.mark.parametrize("target, says", [("/v1/chain?filters=sobel", "one of them"),
                                          ("/v1/filters/box", "")])
def test_only_for_a_chain(service, target, says):
    """One that has none in its query."""
    answer = post(service, [{"filter": "box"}], target)
    answer.refused(400, "bad-parameter", says, parameter="chain")
