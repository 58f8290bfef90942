"""Jobs of the service: the command that shows them, and batches (--durable) that lose none when
connections break, or when the client or the service is killed."""
import itertools
import re
import signal
import threading

import numpy as np
import pytest

import imagefiles
import service as service_module
from client import complains, fill, found, ppm, run, start
from jobs import HEAVY, MEDIUM, PREFER, forget_all, jobs_of, submit
from scripted import busy, problem
from service import chain_text, poll, target_of

GENERAL = ("--variant", "general")
SLOW = (chain_text(HEAVY), "--variant", "reference")  # a second or some for MEDIUM
RESULT = {"Content-Type": "image/x-portable-pixmap", "X-Image": "40x30x3:u8"}
OF_JOB = {"Server-Timing": "receive;dur=1, queue;dur=2"}


def accepted(job="ab"):
    return 202, {"Location": f"/v1/jobs/{job}"}, b"{}"


def result(body=b"result"):
    return 200, RESULT, body


DELETED = 204, {}, b""
RUNNING = problem(409, "running", "not-finished", {"Retry-After": 1})
GONE = problem(404, "no job has this id", "not-found")


def asked_for(server):
    """The requests as METHOD and the path's last parts."""
    return [f"{request.command} {request.path.split('?')[0].rpartition('/v1/')[2]}" for request in server.requests]


POSTED, WAITED, LEFT = "POST filters/box", "GET jobs/ab/result", "DELETE jobs/ab"


def started(directory, cache):
    return service_module.Service(directory, cache, "--durable", "yes", environment={**service_module.UNDER_TEST, **service_module.ONE_DEVICE})


@pytest.fixture(scope="module")
def durable(tmp_path_factory, cache):
    with started(tmp_path_factory.mktemp("durable"), cache) as service:
        yield service


@pytest.fixture
def killable(tmp_path, cache):
    """A service that a test may kill and start again."""
    with started(tmp_path / "service", cache) as service:
        yield service


@pytest.fixture
def through(server):
    """through(service, breaks): a proxy, which breaks a connection where `breaks(handler, answer)` is
    true for the answer of the service; `made`: the key and the place of the job for each 202."""
    def begin(service, breaks=lambda *_: False):
        def answer(handler):
            if len(handler.body) != int(handler.headers.get("Content-Length", 0)):
                return None  # the client has left
            names = {"Prefer", "Idempotency-Key"} & set(handler.headers)
            try:
                got = service.request(handler.command, handler.path, handler.body or None,
                                      {name: handler.headers[name] for name in names})
            except OSError:
                return None
            if got.status == 202:
                proxy.made.append((handler.headers["Idempotency-Key"], got.headers["Location"]))
            if breaks(handler, got):
                return None
            passed = {name: value for name, value in got.headers.items()
                      if name not in ("Content-Length", "Connection", "Date")}
            return got.status, passed, got.body
        proxy = server(answer)
        proxy.made = []
        return proxy
    return begin


def medium(directory, *names):
    """Images that take a second or some."""
    directory.mkdir()
    for i, name in enumerate(names):
        imagefiles.pil(np.tile(MEDIUM + np.uint8(i), (2, 1, 1))).save(directory / name)
    return directory


@pytest.fixture
def service(service):
    """Without the jobs of other tests."""
    forget_all(service)
    return service


# The command ------------------------------------------------------------------------------------------

def test_jobs(service, tmp_path):
    """They are listed, waited for, fetched and deleted."""
    ids = [submit(service).rpartition("/")[2], submit(service, MEDIUM, HEAVY, format="png").rpartition("/")[2]]
    bad = service.post("/v1/filters/box", b"text", headers=PREFER).json()["id"]
    shown = run(service.url, "jobs")[0].decode()
    assert shown.startswith("JOB ") and all(f"\n{one}  " in shown for one in (*ids, bad)), shown
    assert set(run(service.url, "jobs", "--names")[0].decode().split()) == {*ids, bad}
    told, said = run(service.url, "jobs", "wait", *ids)
    assert (told.decode(), said) == (f"{ids[0]} done\n{ids[1]} done\n", "")
    told, said = run(service.url, "jobs", "wait", ids[0], bad, "none", status=1)
    assert told.decode() == f"{ids[0]} done\n{bad} failed: The body is not an image in a supported format\n"
    assert said.startswith("convolve: none: Resource not found: ") and said.count("\n") == 1
    assert b'"state": "failed"' in run(service.url, "jobs", "wait", bad, "--json", status=1)[0]
    shown = run(service.url, "jobs")[0].decode()
    assert re.search(rf"^{ids[0]}  done +1/1 +- +\d+ s *$", shown, re.M), shown
    assert re.search(rf"^{bad}  failed .* s  The body is not an image", shown, re.M), shown
    assert b'"jobs": [' in run(service.url, "jobs", "--json")[0]

    out = tmp_path / "out"
    complains(f"convolve: {bad}: The body is not an image", service.url, "jobs", "fetch", *ids, bad, "-o", out)
    assert found(out) == {name: service.get(f"/v1/jobs/{name[:-4]}/result").body
                          for name in (f"{ids[0]}.raw", f"{ids[1]}.png")}
    assert run(service.url, "jobs", "fetch", ids[0], "-o", "-")[0] == found(out)[f"{ids[0]}.raw"]
    (out / f"{ids[0]}.raw").write_bytes(b"old")
    complains("the file exists: --force replaces it", service.url, "jobs", "fetch", ids[0], "-o", out)
    assert found(out)[f"{ids[0]}.raw"] == b"old"
    complains("convolve: none: Resource not found", service.url, "jobs", "delete", *ids, bad, "none")
    assert not jobs_of(service)


def test_fetch_and_wait_wait(server, tmp_path):
    """Until the end, also if somebody answers at once, but not without a pause."""
    open_job = (200, {}, b'{"id": "ab", "state": "running"}')
    asked = server([open_job, open_job, (200, {}, b'{"id": "ab", "state": "cancelled"}')])
    assert run(asked.url, "jobs", "wait", "ab", status=1)[0] == b"ab cancelled\n"
    assert [request.path for request in asked.requests] == ["/v1/jobs/ab?wait=50"] * 3
    fetched = server([RUNNING, RUNNING, result()])
    run(fetched.url, "jobs", "fetch", "ab", "-o", tmp_path / "out.ppm", "--timeout", 5)
    assert (tmp_path / "out.ppm").read_bytes() == b"result"
    assert [request.path for request in fetched.requests] == ["/v1/jobs/ab/result?wait=2"] * 3
    for one in (asked, fetched):
        assert all(later.time - earlier.time > 0.9 for earlier, later in itertools.pairwise(one.requests))


# Batches ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kept", ["service", "durable"])
def test_durable_batches(request, tree, tmp_path, kept):
    """Their results are those of others, and no job is left, not even of an image that is none."""
    service = request.getfixturevalue(kept)
    run(service.url, "box", *GENERAL, tree, "-o", tmp_path / "right")
    (tree / "sub/bad.png").write_bytes(b"this is no PNG")
    for _ in range(2):  # it is tried again, as without --durable
        complains(f"convolve: {tree}/sub/bad.png: The body is not an image", service.url, "box", *GENERAL, "--durable",
                  tree, "-o", tmp_path / "out")
    assert found(tmp_path / "out") == found(tmp_path / "right") and not jobs_of(service)
    table = " ".join(f"{(37 * i) % 256}.0000" for i in range(4096))  # parameters that travel as a form
    run(service.url, "lut", "--table", table, *GENERAL, "--durable", tree / "a.ppm", "-o", tmp_path / "lut.ppm")
    assert not jobs_of(service)
    complains("size: expected an odd integer", service.url, "box", "--size", 4, "--durable", tree, "-o", tmp_path / "none",
              status=2)


def test_what_is_asked(server, image, tmp_path):
    (tmp_path / "token").write_text("secret")
    asked = server([accepted(), RUNNING, result(), DELETED])
    run(asked.url, "box", "--durable", image, "-o", tmp_path / "out.ppm", "--token-file", tmp_path / "token")
    assert asked_for(asked) == [POSTED, WAITED, WAITED, LEFT]
    assert {request.headers["Authorization"] for request in asked.requests} == {"Bearer secret"}
    assert asked.requests[0].headers["Prefer"] == "respond-async" and asked.requests[0].body == image.read_bytes()
    assert (tmp_path / "out.ppm").read_bytes() == b"result"
    plain = server([result()])  # one that knows no jobs
    run(plain.url, "box", "--durable", image, "-f", "-o", tmp_path / "out.ppm", "--token-file", __file__, status=2)
    run(plain.url, "box", "--durable", image, "-f", "-o", tmp_path / "out.ppm")
    assert asked_for(plain) == [POSTED]


def test_keys(server, tmp_path):
    """The same command has the same key; another image, parameter or name has another."""
    asked = server([(422, {}, b"")])
    one, other = fill(tmp_path, "one.ppm", "other.ppm") / "one.ppm", tmp_path / "other.ppm"

    def key(image, name, *arguments):
        run(asked.url, "box", *arguments, "--durable", image, "-o", tmp_path / name, status=1)
        return asked.requests[-1].headers["Idempotency-Key"]

    first = key(one, "out.ppm")
    assert re.fullmatch("[0-9a-f]{32}", first) and key(one, "out.ppm") == first
    one.touch()
    assert key(one, "out.ppm") == first
    others = [key(other, "out.ppm"), key(one, "another.ppm"), key(one, "in/out.ppm"), key(one, "out.ppm", "--size", 5),
              key(one, "out.ppm", "--format", "png")]
    one.write_bytes(ppm()[:-1] + b"\0")
    others.append(key(one, "out.ppm"))
    assert len({first, *others}) == 7


@pytest.mark.parametrize("answers, asked_so", [
    # A service that has forgotten the job.
    ([accepted(), GONE, GONE, accepted("cd"), result(), DELETED],
     [POSTED, WAITED, LEFT, POSTED, "GET jobs/cd/result", "DELETE jobs/cd"]),
    # A job for which no device was there in time.
    ([accepted(), problem(503, "no device", "no-device", {**OF_JOB, "Retry-After": 1}), DELETED, accepted(),
      result(), DELETED], [POSTED, WAITED, LEFT, POSTED, WAITED, LEFT]),
    # A service that starts, and a proxy before one that does or that is impatient.
    ([busy(1), accepted(), busy(1), (502, {}, b"<html>"), (504, {}, b"<html>"), RUNNING, result(), DELETED],
     [POSTED, POSTED, *[WAITED] * 5, LEFT]),
    # A result that breaks off.
    ([accepted(), (200, {**RESULT, **OF_JOB, "Content-Length": 99, "Connection": "close"}, b"half of it"), result(),
      DELETED], [POSTED, WAITED, WAITED, LEFT]),
    # A job that somebody else deletes meanwhile.
    ([accepted(), result(), GONE], [POSTED, WAITED, LEFT])])
def test_goes_on(server, image, tmp_path, answers, asked_so):
    asked = server(answers)
    assert run(asked.url, "box", "--durable", image, "-o", tmp_path / "out.ppm") == (b"", "")
    assert asked_for(asked) == asked_so
    assert (tmp_path / "out.ppm").read_bytes() == b"result"
    assert len({request.headers["Idempotency-Key"] for request in asked.requests} - {None}) == 1


@pytest.mark.parametrize("answers, asked_so, words", [
    # The problem of an image goes with its job.
    ([accepted(), problem(422, "too many pixels", "too-many-pixels", OF_JOB), DELETED], [POSTED, WAITED, LEFT],
     "It is not so: too many pixels"),
    ([accepted(), problem(410, "cancelled", "cancelled", OF_JOB), DELETED], [POSTED, WAITED, LEFT],
     "It is not so: cancelled"),
    # A service that forgets it again and again.
    ([accepted(), GONE, GONE] * 3, [POSTED, WAITED, LEFT] * 3, "It is not so: no job has this id"),
    # A failure that is not the job's, which may still have its result.
    ([accepted(), problem(500, "it failed", "internal")], [POSTED, WAITED], "It is not so: it failed"),
    ([(202, {}, b"")], [POSTED], "the answer names no job"),
    ([(202, {"Location": "/v1/jobs/a%20b"}, b"")], [POSTED], "the answer names no job")])
def test_failures(server, image, tmp_path, answers, asked_so, words):
    asked = server(answers)
    _, said = run(asked.url, "box", "--durable", image, "-o", tmp_path / "out.ppm", "--retries", 2, status=1)
    assert said == f"convolve: {image}: {words}\n" and asked_for(asked) == asked_so
    assert set(found(tmp_path)) == {"in.ppm"}


def test_a_job_that_cannot_be_deleted(server, image, tmp_path):
    """The result is there all the same."""
    asked = server([accepted(), result(), problem(500, "a disk is broken", "input-output")])
    _, said = run(asked.url, "box", "--durable", image, "-o", tmp_path / "out.ppm")
    assert said == f"convolve: {image}: the service still has its job ab: It is not so: a disk is broken\n"
    assert (tmp_path / "out.ppm").read_bytes() == b"result"


def test_no_result_no_deletion(server, image, tmp_path):
    """A result that could not be kept stays at the service."""
    asked = server([accepted(), result(), DELETED])
    with open("/dev/full", "wb") as full:
        client = start(asked.url, "box", "--durable", "--format", "ppm", image, "-o", "-", stdout=full)
    assert client.communicate(timeout=60)[1] == b"convolve: standard output: No space left on device\n"
    assert client.returncode == 1 and asked_for(asked) == [POSTED, WAITED]


def test_objects(server, store):
    """The job is deleted once the store has its result."""
    store.put("s3://from/a.ppm", ppm())
    had = []

    def answer(handler):
        had.append((handler.command, "b.ppm" in store.buckets["into"]))
        return {"POST": accepted(), "GET": result(), "DELETE": DELETED}[handler.command]

    store.run(server(answer).url, "box", "--durable", "s3://from/a.ppm", "-o", "s3://into/b.ppm")
    assert had == [("POST", False), ("GET", False), ("DELETE", True)]
    assert store.body("s3://into/b.ppm") == b"result"
    store.run(server([result()]).url, "jobs", "fetch", "ab", "-o", "s3://into/c.ppm")
    assert store.body("s3://into/c.ppm") == b"result"


# Broken connections -----------------------------------------------------------------------------------

def first(command, status):
    """Breaks the first connection with such an answer."""
    left = [True]

    def breaks(handler, answer):
        return (handler.command, answer.status) == (command, status) and left and left.pop()
    return breaks


@pytest.mark.parametrize("command, status", [("POST", 202), ("GET", 200), ("DELETE", 204)])
def test_a_connection_that_breaks(durable, through, image, tmp_path, command, status):
    """Before the answer has come to the client; or the service's proxy restarts meanwhile."""
    proxy = through(durable, first(command, status))
    run(proxy.url, "box", *GENERAL, "--durable", image, "-o", tmp_path / "out.ppm")
    right = durable.post(target_of([("box", {})], variant="general", format="ppm"), image.read_bytes())
    assert (tmp_path / "out.ppm").read_bytes() == right.body
    assert len(set(proxy.made)) == 1 and len(proxy.requests) == 4, asked_for(proxy)
    assert not jobs_of(durable)


# Killed -----------------------------------------------------------------------------------------------

def test_a_client_that_is_killed(durable, through, tmp_path):
    """The same command finds its jobs: those that have ended, that run and that wait."""
    images, out = medium(tmp_path / "images", *(f"{i}.png" for i in range(4))), tmp_path / "out"
    proxy = through(durable)
    arguments = (*SLOW, "--durable", images, "-o", out, "-j", 4)
    for number, posts in (signal.SIGKILL, 4), (signal.SIGINT, 5):
        client = start(proxy.url, *arguments)
        poll(lambda posts=posts: len(proxy.made) >= posts, what="the jobs")
        client.send_signal(number)
        assert client.wait(60) == -number
    assert run(proxy.url, *arguments) == (b"", "")
    assert len(set(proxy.made)) == 4 < len(proxy.made), "four images are four jobs, some found again"
    assert len(found(out)) == 4 and not jobs_of(durable)
    before = len(proxy.requests)
    run(proxy.url, *arguments)
    assert len(proxy.requests) == before, "the results are there"


@pytest.mark.slow
def test_a_service_that_is_killed(killable, through, tmp_path):
    """Its jobs are those of before, with the results of any other service."""
    images, out = medium(tmp_path / "images", *(f"{i}.png" for i in range(4))), tmp_path / "out"
    proxy = through(killable)
    client = start(proxy.url, *SLOW, "--durable", images, "-o", out, "-j", 4, "--retries", 1000)
    poll(lambda: len(proxy.made) == 4 and len(jobs_of(killable)) >= 3, what="the jobs")
    before = {*jobs_of(killable)}
    killable.kill()
    killable.start()
    assert client.wait(service_module.PATIENCE) == 0, client.stderr.read()
    assert len(proxy.made) == 4 and killable.total("convolved_jobs_recovered_total") >= 3, asked_for(proxy)
    assert {r.path for r in proxy.requests if r.command == "DELETE"} >= before
    assert not jobs_of(killable)
    run(killable.url, *SLOW, images, "-o", tmp_path / "right")
    assert found(out) == found(tmp_path / "right")


def test_interrupted_while_it_waits(server, image, tmp_path):
    waiting = threading.Event()

    def answer(handler):
        if handler.command == "POST":
            return accepted()
        waiting.set()
        threading.Event().wait(60)
        return None

    client = start(server(answer).url, "box", "--durable", image, "-o", tmp_path / "out.ppm")
    assert waiting.wait(60)
    client.send_signal(signal.SIGTERM)
    assert client.wait(60) == -signal.SIGTERM and client.stderr.read() == b""
    assert set(found(tmp_path)) == {"in.ppm"}
