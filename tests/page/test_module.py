"""The module for JavaScript, in the browser."""
import itertools
import re

import numpy as np
import pytest

import imagefiles
from service import REPOSITORY

PIXELS = np.arange(24 * 32 * 3, dtype=np.uint16).reshape(24, 32, 3).astype(np.uint8)
PNG = imagefiles.write_png(PIXELS)
# Begins with the service of the module at an address.
START = "const { Problem, Service } = await import(arguments[0]), image = new Uint8Array(arguments[1]), service = new Service(); "


BLANK = 200, {"Content-Type": "text/html"}, b""


@pytest.fixture
def beside(browser, service, server):
    """beside(answer) opens the service's module at another address, whose other answers are those
    of answer(path). Gives its server, and run(script, *arguments) with the module."""
    def start(answer):
        def reply(handler):
            if handler.path != "/convolved.js":
                return answer(handler.path)
            own = service.get(handler.path)
            return own.status, own.headers, own.body
        site = server(reply)
        browser.open(site, "/convolved.js")
        return site, lambda body, *arguments: browser.run(
            START + body, site.url + "/convolved.js", list(PNG), *arguments)
    return start


@pytest.fixture
def run(browser, service):
    """Runs a script with the service's module, in a page of the service."""
    browser.open(service, "/convolved.js")
    return lambda body, *arguments: browser.run(
        START + body, service.url + "/convolved.js", list(PNG), *arguments)


def expected(service, target):
    answer = service.post(target, PNG)
    assert answer.status == 200, answer
    return answer


def test_images(run, service):
    inverted = list(expected(service, "/v1/filters/invert").body)
    for image in ("image", "image.buffer", "new Blob([image])", "new File([image], 'a.png')"):
        result = run(f"return bytesOf((await service.apply({image}, {{filter: 'invert'}})).blob);")
        assert result == inverted, image


@pytest.mark.parametrize("filters, target", [
    ("{filter: 'convolve', kernel: [[1, 2, 1], [0, 0, 0], [1, 0, 1]]}", "/v1/filters/convolve?kernel=1,2,1;0,0,0;1,0,1"),
    ("'gaussian=sigma=1.4,invert'", "/v1/chain?filters=gaussian=sigma=1.4,invert"),
    ("[{filter: 'gaussian', sigma: 1.4}, {filter: 'convolve', kernel: [[1, 2, 1]]}]",
     "/v1/chain?filters=gaussian=sigma=1.4,convolve=kernel=1+2+1")])
def test_filters_and_parameters(run, service, filters, target):
    made = run(f"const result = await service.apply(image, {filters}, {{format: 'jpeg', regions: [[1, 2, 9, 8], [10, 10, 5, 6]], strip: true,"
               " variant: 'general', quality: undefined});"
               "return [await bytesOf(result.blob), result.image, result.lost, result.timing.map(({name}) => name)];")
    answer = expected(service, target + "&format=jpeg&regions=1,2,9,8;10,10,5,6&strip=1&variant=general")
    assert made[0] == list(answer.body)
    assert made[1] == {"width": 32, "height": 24, "bands": 3, "type": "u8"}
    assert made[2] == answer.headers["X-Lost"].split(", ")
    assert {"decode", "encode", "total"} <= set(made[3])


@pytest.mark.parametrize("filters, target", [
    ("{filter: 'gaussian', sigma: 3}", "/v1/filters/gaussian?sigma=3"), ("'gaussian=sigma=3,invert'", "/v1/chain?filters=gaussian=sigma=3,invert"),
    ("[{filter: 'gaussian', sigma: 3}, {filter: 'invert'}]", "/v1/chain?filters=gaussian=sigma=3,invert")])
def test_masks(run, service, filters, target):
    """A second image goes with the first, also for a job."""
    mask = imagefiles.write_png((PIXELS[:, :, :1] > 99).astype(np.uint8) * 255)
    answer = service.post_masked(PNG, mask, f"{target}&border=wrap")
    assert answer.status == 200 and answer.body != expected(service, f"{target}&border=wrap").body
    assert run(f"const mask = new Uint8Array(arguments[2]), parameters = {{border: 'wrap', mask}}, {{blob}} = await service.apply(image, {filters}, parameters);"
               f"const job = await service.submit(image, {filters}, {{...parameters, mask: new Blob([mask])}});"
               "return [await bytesOf(blob), await bytesOf((await service.result(job)).blob)];", list(mask)) == 2 * [list(answer.body)]
    assert run("return service.apply(image, {preset: 'x'}, {mask: image}).catch((problem) => problem.status);") == 404


def test_jobs(run, service):
    """They are followed to their end, forgotten, and fail as their image does."""
    states, body, after = run(
        "const job = await service.submit(image, 'invert,grayscale', {format: 'png'}), states = [];"
        "for await (const {state} of service.progress(job)) states.push(state);"
        "return [states, await bytesOf((await service.result(job.id)).blob), (await service.job(job)).state];")
    assert states[-1] == after == "done" and set(states[:-1]) <= {"waiting", "running"}
    assert body == list(expected(service, "/v1/chain?filters=invert,grayscale&format=png").body)
    assert run("const job = await service.submit(image, 'box'); await service.result(job); await service.cancel(job);"
               "return service.job(job).catch(({status, type}) => [status, type]);") == [404, "not-found"]
    assert run("const job = await service.submit(image.slice(0, -99), 'box');"
               "return service.result(job).catch((problem) => problem instanceof Problem && problem.status);") == 422


def test_a_job_is_asked_for_once_more(beside, service):
    """If the network fails, by the same key; a form gets the same job, though it has another boundary."""
    site, run = beside(lambda path: None)
    told = run("return service.submit(image, [{filter: 'box'}]).catch((p) => [p instanceof Problem, p.status, p.title]);")
    posts = [request for request in site.requests if request.command == "POST"]
    assert told == [True, 0, "The service does not answer"]
    assert len({post.body for post in posts}) == 2, "a browser repeats some, too"
    ids = set()
    for post in posts:
        sent = {name: post.headers[name] for name in ("Content-Type", "Prefer", "Idempotency-Key")}
        answer = service.post(post.path, post.body, headers=sent)
        assert answer.status == 202, answer
        ids.add(answer.json()["id"])
    assert len(ids) == 1


def test_the_example(browser, service):
    """That of docs/api.md."""
    code = re.search(r"^```js\n(.*?)^```", (REPOSITORY / "docs/api.md").read_text(), re.M | re.S)[1]
    code, count = re.subn(r'^import (.*) from ".*";', r"const \1 = await import(arguments[0]);", code, flags=re.M)
    browser.open(service, "/convolved.js")
    assert count == 1 and browser.run(
        "const file = new Blob([new Uint8Array(arguments[1])], {type: 'image/png'});" + code
        + "return [blob.type, edges.blob.type, edges.image, smooth.image.width];",
        service.url + "/convolved.js", list(PNG)) == [
            "image/png", "image/png", {"width": 32, "height": 24, "bands": 3, "type": "u8"}, 32]


def test_problems(run, service):
    """In the service's words; who stops waiting gets what fetch() throws."""
    problem = run("return service.apply(image, {filter: 'box', size: 4}).catch((p) => ({...p, message: p.message, known: p instanceof Problem}));")
    said = service.post("/v1/filters/box?size=4", PNG).problem
    assert problem["known"] and problem["type"] == "bad-parameter" and problem["requestId"]
    assert (problem["message"], problem["title"], problem["status"], problem["parameter"], problem["value"]) == (
        said["detail"], said["title"], 400, "size", "4")
    assert run("const stop = new AbortController(), asked = service.apply(image, 'box', {}, {signal: stop.signal}); stop.abort();"
               "return asked.catch((e) => e.name);") == "AbortError"


def test_asks_again(beside, service):
    """When the service says so, and within its patience."""
    planned = {"/v1/filters": [(429, "1"), (503, "1")], "/v1/devices": [(503, "3600")],
               "/v1/kernels": [(502, None)]}

    def unwilling(path):
        if planned[path]:
            status, wait = planned[path].pop(0)
            return status, {"Content-Type": "text/html", "Retry-After": wait}, b"not now"
        own = service.get(path)
        return own.status, own.headers, own.body
    refusal = ("return service.get(arguments[2]).catch("
               "(p) => [p instanceof Problem, p.status, p.retryAfter, p.title]);")
    site, run = beside(unwilling)
    assert "filters" in run("return service.get('v1/filters');")
    assert run(refusal, "v1/devices") == [True, 503, 3600, "The answer is 503 Service Unavailable"]
    assert run(refusal, "v1/kernels") == [True, 502, None, "The answer is 502 Bad Gateway"]
    assert [r.path for r in site.requests if r.path.startswith("/v1/")] == (
        3 * ["/v1/filters"] + ["/v1/devices", "/v1/kernels"])


PROBLEM = {"Content-Type": "application/problem+json"}
NO_ANSWERS = [
    (200, {"Content-Type": "text/html", "X-Image": None}, b"<h1>Sign in</h1>", "Expected an image"),
    (200, {"Content-Type": "image/png", "X-Image": None}, b"image", "Expected an image"),
    (200, {"Content-Type": "image/png", "X-Image": "1x1x1:u8"}, b"", "Expected an image"),
    (202, {"Content-Type": "application/json"}, b"{}", "Expected an image"),
    *((422, PROBLEM, body, "The answer is 422") for body in (
        b"", b"{", b"[]", b"null", b"5", b"\xff", b'{"type": 5, "title": [], "detail": {}}'))]


def test_what_is_no_answer(beside):
    """A page of another server is no image, and a malformed problem is one."""
    _, run = beside(lambda path: answer)
    for use, (*answer, said) in itertools.product(("apply(image, 'box')", "result('aa')"), NO_ANSWERS):
        name, number, kind, message = run(
            f"return service.{use}.then(() => [], (p) => [p.name, p.status, p.type, p.message]);")
        assert (name, number, kind) == ("Problem", answer[0], "") and message.startswith(said), answer


def test_at_once_is_not_in_a_spin(beside):
    """A service that always says now is asked with pauses, and so is one about a job."""
    site, run = beside(lambda path: (409 if "jobs" in path else 503, {**PROBLEM, "Retry-After": "0"},
                                     b'{"type": "/problems/not-finished", "title": "no"}'))
    assert run("service.patience = 1; return service.get('v1/filters').catch((p) => p.status);") == 503
    assert run("return service.result('aa', {signal: AbortSignal.timeout(1000)}).catch((e) => e.name);"
               ) == "TimeoutError"
    asked = [request.path for request in site.requests]
    assert 1 <= asked.count("/v1/filters") <= 3 and 1 <= sum("jobs" in path for path in asked) <= 4


def test_of_another_site(browser, server, guarded):
    """A page of a site that the service allows imports the module, and uses it with a token; others do not."""
    site = server([BLANK])
    with guarded("--cors-origins", site.url) as service:
        address = service.url + "/convolved.js"
        browser.open(site)
        job = START + "const job = await service.submit(image, [{filter: 'invert'}]);" \
            "return [await bytesOf((await service.result(job)).blob), (await service.apply(image, {filter: 'box'})).image.width];"
        body, width = browser.run(job.replace("new Service()", "new Service(undefined, {token: 'secret-token'})"), address, list(PNG))
        service.headers = {"Authorization": "Bearer secret-token"}
        assert body == list(expected(service, "/v1/filters/invert").body) and width == 32
        with pytest.raises(AssertionError, match="token"):
            browser.run(job, address, list(PNG))
        browser.driver.get(f"http://localhost:{site.port}/")
        with pytest.raises(AssertionError, match="Failed to fetch"):
            browser.run(START, address, [])


METRICS = r"""# HELP convolved_a_seconds What takes a while
# TYPE convolved_a_seconds histogram
convolved_a_seconds_bucket{kind="x}\"y\n",le="0.1"} %d
convolved_a_seconds_bucket{kind="x}\"y\n",le="1"} %d
convolved_a_seconds_bucket{kind="x}\"y\n",le="+Inf"} %d
convolved_a_seconds_sum{kind="x}\"y\n"} 2.5
convolved_a_seconds_count{kind="x}\"y\n"} %d
convolved_b 5
"""
NONSENSE = ["", "\n\n", "{", "{} 4", "convolved_", "a b c", "convolved_b{x=\"y\"} NaN", "convolved_b{x=\"y\" 1", "# TYPE", "# TYPE convolved_a_seconds",
            "convolved_a_seconds_bucket 1", "convolved_a_seconds_bucket{le=\"\"} 1", "<html>", "\0\x80", "}" * 1000, "convolved_c{" + "a=\"" * 1000]


def test_metrics_are_read(browser, service):
    """By the status page: with quantiles between two readings, whatever else is in the text."""
    browser.open(service, "/status")
    read = """const { parse, quantile } = await import('/page/metrics.js');
        const [before, now, restarted] = arguments[0].map(parse), b = now.get('b').series;
        const of = (one) => one.get('a_seconds').series.find(({ labels }) => labels.kind === 'x}"y\\n');
        return [b.find(({ key }) => key === '').value, of(now).count, of(now).sum,
                now.get('a_seconds').text, quantile(of(now), of(before), 0.5),
                quantile(of(now), null, 0.5), quantile(of(now), of(now), 0.5),
                quantile(of(restarted), of(now), 0.99)];"""
    for nonsense in NONSENSE:
        text = (nonsense + "\n") + METRICS
        found = browser.run(read, [text % (10, 10, 10, 10), text % (10, 14, 14, 14), text % (0, 0, 1, 1)])
        assert found[:4] == [5, 14, 2.5, "What takes a while"], nonsense
        assert found[4:] == pytest.approx([0.55, 0.07, 0, 1]), nonsense
