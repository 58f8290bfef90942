"""Many honest connections at once: data that waits between processes costs none, clients take
turns; and a front that stands still meanwhile."""
import contextlib
import os
import resource
import select
import selectors
import socket
import time

import numpy as np
import pytest

import exposition
from jobs import HEAVY, submit
from service import (PATIENCE, Process, multipart, poll, raw_kind, read_answer, request_head, sanitized,
                     target_of)

RESULT = np.random.default_rng(1).integers(0, 256, (58, 58, 3), np.uint8)  # 10 kB
HERD = 500 if sanitized() else 3900
# In one worker, with memory for what one address asks for, and with time: a client of thousands of
# connections is slow where others use the processors, too.
OPTIONS = ("--http-workers", "1", "--codecs", "1", "--max-client-connections", "8000", "--header-timeout", "600",
           "--keepalive-timeout", "600", "--idle-timeout", "600")


@pytest.fixture(scope="module")
def descriptors():
    """A connection is one here, and in the service up to three more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 5 * HERD:
        pytest.skip(f"{before[1]} file descriptors are too few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture(scope="module")
def herded(launch, descriptors):
    with launch(*OPTIONS) as service:
        yield service
        assert service.restarts() == 0, service.tail()


@contextlib.contextmanager
def connected(service, count):
    """So many connections that the service has accepted."""
    with service.connections(count) as found:
        poll(lambda: service.total("convolved_connections") > count, 60, "the connections")
        yield found


def front(service):
    return Process(service.process.pid)


def get(target, *headers):
    return request_head(target, *headers, method="GET")


def send_all(connections, data):
    """Sends it on each, whether it is taken at once or not."""
    end = time.monotonic() + PATIENCE
    with selectors.DefaultSelector() as left:
        for connection in connections:
            left.register(connection, selectors.EVENT_WRITE, data)
        while left.get_map():
            assert time.monotonic() < end, f"{len(left.get_map())} requests could not be sent"
            for key, _ in left.select(0.1):
                rest = key.data[key.fileobj.send(key.data, socket.MSG_DONTWAIT):]
                if rest:
                    left.modify(key.fileobj, selectors.EVENT_WRITE, rest)
                else:
                    left.unregister(key.fileobj)


def test_result_at_once(herded):
    """A stored result, which thousands ask for at once: each answer has a descriptor."""
    target = submit(herded, RESULT) + "/result"
    wanted = herded.get(target + "?wait=60").body
    with connected(herded, HERD) as connections:
        with front(herded).stopped():
            send_all(connections, get(target))
        for connection in connections:
            answer = read_answer(connection)
            assert (answer.status, answer.body) == (200, wanted), answer


@pytest.mark.slow
def test_listeners(herded):
    """Thousands who listen to one job hear of its end; a front that stalls costs them some news."""
    job = submit(herded, np.zeros((3000, 3000, 3), np.uint8), HEAVY)  # nobody waits for its end
    with connected(herded, HERD) as connections:
        send_all(connections, get(f"{job}/events"))
        with front(herded).stopped():
            time.sleep(0.5)
        herded.request("DELETE", job)
        for connection in connections:
            assert b"event: " in read_answer(connection).body


def image(*headers):
    target = target_of([("box", {"size": 3})], raw=raw_kind(RESULT), format="raw")
    return request_head(target, f"Content-Length: {RESULT.nbytes}", *headers) + RESULT.tobytes()


@pytest.mark.parametrize("data, count, statuses", [
    # Some of one client's images are refused, because it has so many of them.
    pytest.param(image(f"Authorization: {'x' * 91000}"), 900, {200, 429}, marks=pytest.mark.slow),
    (image(), 3000, {200, 429}), (get("/convolved.js"), 2000, {200})], ids=["long heads", "bodies", "long answers"])
@pytest.mark.parametrize("seconds", [0.2, pytest.param(0.5, marks=pytest.mark.slow)])
def test_front_that_stalls(herded, data, count, statuses, seconds):
    with connected(herded, min(count, HERD)) as connections:
        with front(herded).stopped():
            send_all(connections, data)
            time.sleep(seconds)
        found = [read_answer(connection).status for connection in connections]
    assert set(found) <= statuses
    assert found.count(200) >= 10
    herded.rest()


def test_few_descriptors(launch):
    """Unread answers leave no descriptor for more: that ends connections, not the worker."""
    count, spare, large = 200, 150, np.zeros((2000, 1000, 3), np.uint8)
    with launch(*OPTIONS, "--unread-client-size", "10G", "--unread-size", "10G") as service:
        target = submit(service, large) + "/result"
        assert service.get(target + "?wait=60").status == 200
        with connected(service, count) as connections:
            for process in (front(service), *service.workers("http")):
                used = len(os.listdir(f"/proc/{process.pid}/fd"))
                resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + spare, used + spare))
            with front(service).stopped():
                send_all(connections, get(target))
            poll(lambda: len(select.select(connections, [], [], 0)[0]) == count, 60,
                 "an answer or the end of each")
            answered = 0
            for connection in connections:
                with contextlib.suppress(ConnectionError):
                    answer = read_answer(connection)
                    assert answer.status == 200 and len(answer.body) == large.nbytes, answer
                    answered += 1
        assert answered >= spare / 4, answered
        assert service.restarts() == 0, service.tail()


def test_clients_take_turns(herded):
    """One that asks for much waits for itself; another is served before it has all."""
    def answered(text):
        return exposition.total(text, "convolved_request_duration_seconds_count",
                                route="/openapi.json")
    count = 300 if sanitized() else 1000
    with connected(herded, count) as connections, \
            herded.neighbour().socket() as other:
        other.sendall(get("/livez"))
        assert read_answer(other).status == 200
        before = answered(herded.metrics_text())
        with front(herded).stopped():
            send_all(connections, get("/openapi.json", "Accept-Encoding: gzip"))
            other.sendall(get("/metrics"))
            time.sleep(0.1)
            worker, = herded.workers("http")
            poll(lambda: worker.stat[0] == "S", what="the worker to have read all that it will")
        assert answered(read_answer(other).body.decode()) - before < count / 2
        for each in connections:
            assert read_answer(each).status == 200


# HTTP while the front stands still ----------------------------------------------------------------
# Its words come late: whatever a client sends meanwhile, it gets the one answer that it would have
# got at once.

INVERT = "/v1/filters/invert?format=raw&raw=256x40x1:u8"
GET, NONE = get("/livez"), get("/none")
BAD = b"GET /livez HTTP/1.1\r\nHost : x\r\n\r\n"
PROXY = b"PROXY TCP4 192.0.2.9 192.0.2.1 1 2\r\n"
EXPECT = "Expect: 100-continue"
BODY = bytes(range(256)) * 40
INVERTED = bytes(255 - value for value in BODY)


def post(body, *headers, path=INVERT, size=None):
    size = len(body) if size is None else size
    return request_head(path, f"Content-Length: {size}", *headers) + body


def chunked(*chunks):
    text = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    return request_head(INVERT, "Transfer-Encoding: chunked") + text


FORM, FORM_TYPE = multipart([("filters", None, b"invert"), ("image", "a", BODY)])
CHAIN = INVERT.replace("filters/invert", "chain")
# name: (bytes, answers), an answer being its status or the inverted body.
CASES = {
    "three at once": (GET + NONE + GET, [200, 404, 200]),
    "two bodies": (post(BODY) + post(BODY) + GET, [INVERTED, INVERTED, 200]),
    "an empty body": (post(b"") + GET, [400, 200]),
    "chunks": (chunked(BODY[:5000], BODY[5000:]), [INVERTED]),
    "no chunk": (chunked() + GET, [400, 200]),
    "a body that nobody wants": (post(BODY, path="/none") + GET, [404, 200]),
    "a form": (post(FORM, f"Content-Type: {FORM_TYPE}", path=CHAIN), [INVERTED]),
    "no form": (post(b"--b\r\n\r\nimage", "Content-Type: multipart/form-data; boundary=b") + GET,
                [400, 200]),
    "a body with all that it asks for": (post(BODY, EXPECT), [INVERTED]),
    "too large a body": (chunked(bytes(0x180000)) + GET, [413, 200]),
    "parameters and images that are none": (
        post(BODY, path="/v1/filters/box?size=4") + post(b"text", path="/v1/filters/box")
        + post(BODY), [400, 415, INVERTED]),
    "a bad request between good ones": (GET + BAD + GET, [200, 400]),
    "a bad chunk": (chunked(b"abcde")[:-5] + b"x\r\n", [400]),
}


@pytest.fixture(scope="module")
def proxied(launch):
    with launch("--http-workers", "1", "--max-body", "1M", "--trusted-proxies", "127.0.0.1",
                "--max-client-connections", "20") as service:
        yield service
        service.rest()  # every request has ended
        assert service.restarts() == 0, service.tail()


@contextlib.contextmanager
def standing(service):
    """The front stands still meanwhile, and a little longer."""
    with front(service).stopped():
        yield
        time.sleep(0.03)


def answers(connection):
    """Returns all answers but invitations, each as its status or the inverted body."""
    found, data = [], connection.makefile("rb").read()
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 100"):
            size = int(head.lower().partition(b"content-length:")[2].split()[0])
            found.append(INVERTED if data[:size] == INVERTED else int(head.split()[1]))
            data = data[size:]
    return found


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_half_closed(proxied, case, pieces):
    """All of it at once and the client's end behind it; and the second half later."""
    data, expected = CASES[case]
    with proxied.socket() as connection:
        with standing(proxied):
            if pieces == 2:
                connection.sendall(data[:len(data) // 2])
                time.sleep(0.05)
                data = data[len(data) // 2:]
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        assert answers(connection) == expected


@pytest.mark.parametrize("sent", [GET, GET + GET + BAD, post(BODY) + GET, post(BODY, EXPECT)],
                         ids=["no body", "several", "a body", "a client that asks"])
def test_no_place(proxied, sent):
    """A client that is refused its place after it has sent something gets that answer alone."""
    poll(lambda: proxied.total("convolved_connections") == 1, 60, "the end of those before")
    with proxied.connections(20, PROXY + GET) as held:
        assert [read_answer(each).status for each in held] == [200] * 20
        with proxied.socket() as connection:
            with standing(proxied):
                connection.sendall(PROXY + sent)
            assert answers(connection) == [429]


def test_expect(proxied):
    """The invitation comes only if the body is wanted; a refused one need not be sent."""
    for refused in (post(b"", EXPECT, path="/none", size=len(BODY)),
                    post(b"x" * 100, path="/none", size=9 << 20)):
        with proxied.socket() as connection:
            with standing(proxied):
                connection.sendall(refused)
            assert read_answer(connection).status == 404
    with proxied.socket() as connection:
        with standing(proxied):
            connection.sendall(post(b"", EXPECT, size=len(BODY)))
        invitation = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert connection.recv(len(invitation), socket.MSG_WAITALL) == invitation
        with standing(proxied):
            connection.sendall(BODY)
            connection.shutdown(socket.SHUT_WR)
        assert answers(connection) == [INVERTED]


def test_left(proxied):
    for data in (GET, GET[:9], BAD, post(BODY), post(BODY[:10], size=20),
                 post(b"", EXPECT, size=5)):
        with standing(proxied), proxied.socket() as connection:
            connection.sendall(data)
    assert proxied.get("/livez").status == 200
