"""HTTP workers that have been taken over (hostile_http.c): whatever one sends, it is ended for it, and the
other one serves on."""
import os
import re
import time

import pytest

from service import poll

TARGET = "/v1/filters/box?size=3&raw=10x10x1:u8&format=raw"
# Acts of workers in turn, and the message for which each is then ended.
MODES = {
    "guests": {"guest-unknown": "GUEST_END", "guest-name": "GUEST", "guest-ended": "GUEST_END", "guest-busy": "GUEST_END"},
    "heads": {"head-alone": "HEAD", "head-number": "HEAD", "head-second": "HEAD", "head-empty": "HEAD",
              "head-cut": "HEAD", "head-path": "HEAD", "head-complete": "HEAD",
              "head-mask": "HEAD"},
    "wholes": {"whole-alone": "HEAD", "whole-empty": "HEAD", "whole-large": "HEAD", "whole-finish": "FINISH"},
    "bodies": {"lend-twice": "LEND", "lend-nothing": "LEND", "finish-more": "FINISH", "finish-twice": "FINISH",
               "fail-not": "FAIL", "fail-what": "FAIL", "refusal": "FAIL"},
    "forms": {"form-of-none": "FORM", "form-cut": "FINISH", "form-unnamed": "FINISH", "form-path": "FINISH",
              "form-many": "FINISH", "form-late": "FORM", "form-mask": "FINISH", "next-none": "NEXT", "read-early": "READ"},
    "others": {"request-unknown": "END", "fronts-word": "CUT", "fronts-answer": "ANSWER", "flags": "PONG",
               "data": "PONG", "type": "packet", "descriptors": "packet", "other-socket": "TILE_WAITS"}}


@pytest.fixture
def hostile(taken_over):
    """hostile(word...): a service with two HTTP workers; one does what the words say, in turn."""
    return lambda *words, options=(): taken_over(
        "http", words, "--codecs", "1", "--http-workers", "2", *options)


def end_workers(service):
    """Before it is noticed that the hostile one only waits, which takes many seconds."""
    for worker in service.workers("http"):
        worker.kill()


def check_honest(service):
    """The other one serves, and nothing of the hostile one's requests is left."""
    answer = service.post(TARGET, bytes(100))
    assert (answer.status, len(answer.body)) == (200, 100), answer
    service.rest()


@pytest.mark.parametrize("about", MODES)
def test_refused(hostile, about):
    modes = MODES[about]
    with hostile(*modes) as service:
        poll(lambda: service.restarts(worker="http", reason="protocol") == len(modes), 180, "the end of each")
        # a log line may come after its event
        poll(lambda: re.findall("http-. sent an invalid (.*)", service.said) == list(modes.values()), 60,
             f"a line of each: {modes}")
        check_honest(service)


@pytest.mark.parametrize("mode, reason", [
    ("closes", "link"), ("greedy", None), ("crowded", "protocol"), ("endless", "protocol"),
    pytest.param("sleeps", "stuck", marks=pytest.mark.slow),
    pytest.param("spins", "hung", marks=pytest.mark.slow)])
def test_ended(hostile, mode, reason):
    """It has closed its end, does nothing or too much, or does not read its answers."""
    with hostile(mode) as service:
        labels = {"reason": reason} if reason else {}
        poll(lambda: service.restarts(worker="http", **labels) >= 1, 300, "its end")
        check_honest(service)


@pytest.mark.parametrize("mode, size, status, count", [
    # The front measures a body itself: it is less than was said, or can still be mapped.
    ("lies", "64M", 500, 1), ("maps", "64M", 500, 1),
    # With its request: shorter than announced, still to be changed, and no memory.
    ("lies-whole", "64M", 500, 3),
    # A body in memory stays as it was when complete, and none exceeds the limit.
    ("later", "64M", 200, 1),
    # An answer is for reading alone, in memory or in a file.
    ("reads", "64M", 200, 1), ("reads", "0", 200, 1)])
def test_bodies_and_answers(hostile, mode, size, status, count):
    """Nobody can change them, or their size."""
    with hostile(mode, options=("--spool-size", size)) as service:
        poll(lambda: service.said.count(f"hostile: the answer is {status}") == count, 60, "answers")
        assert "CAN BE" not in service.said
        end_workers(service)
        check_honest(service)


def test_empty_datagrams(hostile):
    """Descriptors that come with nothing else do not stay with the front."""
    def descriptors():
        return len(os.listdir(f"/proc/{service.process.pid}/fd"))
    words = ["empty", "empty-link"] * 2
    with hostile(*words) as service:
        poll(lambda: service.restarts(worker="http") == len(words), 180, "the end of each")
        check_honest(service)
        poll(lambda: len(service.workers("http")) == 2, 60, "the next worker")
        after = descriptors()
    with hostile("none") as service:
        check_honest(service)
        assert after <= descriptors() + 2


@pytest.mark.parametrize("how", ["failed", "ended"])
def test_job_that_nobody_waits_for(hostile, how):
    """A worker that forgets to say that its client has gone: the job ends with the request."""
    with hostile(f"leaves-{how}") as service:
        poll(lambda: service.total("convolved_jobs_failed_total", reason="client-gone") == 1, 60, "its end")
        assert service.restarts(worker="http") == 0
        end_workers(service)
        check_honest(service)


def test_heads(hostile):
    """However many requests a worker has, their heads take a part of the front's memory."""
    with hostile("heads") as service:
        poll(lambda: "hostile: the answer is" in service.said, 120, "the last answer")
        assert "hostile: the answer is 429" in service.said
        end_workers(service)
        check_honest(service)


def test_anything(hostile):
    """Random messages for some seconds."""
    with hostile(*["random"] * 200) as service:
        ends = time.monotonic() + float(os.environ.get("CONVOLVED_FAULT_SECONDS", "2"))
        while time.monotonic() < ends or service.restarts(worker="http") < 2:
            assert service.post(TARGET, bytes(100)).status == 200
        check_honest(service)
