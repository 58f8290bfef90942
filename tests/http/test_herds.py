"""Many connections at once, all of them honest: data that waits between the front and an HTTP
worker costs nobody a connection, and one client's requests do not keep others waiting."""
import contextlib
import os
import resource
import select
import socket
import time

import numpy as np
import pytest

import exposition
from jobs import submit
from service import Process, poll, raw_kind, read_answer, sanitized, target_of

RESULT = np.random.default_rng(1).integers(0, 256, (58, 58, 3), np.uint8)  # 10 kB
HERD = 500 if sanitized() else 3900
# In one worker, and with memory for what one address asks for.
OPTIONS = ("--http-workers", "1", "--codecs", "1", "--max-client-connections", "8000")


@pytest.fixture(scope="module", autouse=True)
def descriptors():
    """A connection is one here, and in the service up to three more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 5 * HERD:
        pytest.skip(f"{before[1]} file descriptors are too few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture(scope="module")
def one(launch):
    with launch(*OPTIONS) as service:
        yield service


@pytest.fixture
def herded(one):
    """Fails the test if it cost a worker its life, and with it all connections."""
    before = one.restarts()
    yield one
    assert one.restarts() == before, one.tail()


@contextlib.contextmanager
def connected(service, count):
    """So many connections that the service has accepted."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(service.socket(120)) for _ in range(count)]
        poll(lambda: service.total("convolved_connections") > count, 60, "the connections")
        yield found


def front(service):
    return Process(service.process.pid)


def request(target, method="GET", *headers, body=b""):
    lines = [f"{method} {target} HTTP/1.1", "Host: x", *headers]
    lines += [f"Content-Length: {len(body)}"] if body else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def send_all(connections, data):
    """Sends it on each, whether it is taken at once or not."""
    left = {connection: data for connection in connections}
    end = time.monotonic() + 60
    while left:
        assert time.monotonic() < end, f"{len(left)} requests could not be sent"
        poller = select.poll()
        by_number = {connection.fileno(): connection for connection in left}
        for number in by_number:
            poller.register(number, select.POLLOUT)
        for number, _ in poller.poll(100):
            connection = by_number[number]
            rest = left[connection][connection.send(left[connection], socket.MSG_DONTWAIT):]
            left[connection] = rest
            if not rest:
                del left[connection]


def test_result_at_once(herded):
    """A stored result, which thousands ask for at once: each answer has a descriptor."""
    target = submit(herded, RESULT) + "/result"
    wanted = herded.get(target + "?wait=60").body
    with connected(herded, HERD) as connections:
        with front(herded).stopped():
            send_all(connections, request(target))
        for connection in connections:
            answer = read_answer(connection)
            assert (answer.status, answer.body) == (200, wanted), answer


def test_listeners(herded):
    """Thousands who listen to one job hear of its end, and one that stalls costs them no more than some news."""
    slow = np.zeros((1200, 1200, 3), np.uint8)
    job = submit(herded, slow, [("bilateral", {"radius": 12})])
    with connected(herded, HERD) as connections:
        send_all(connections, request(f"{job}/events"))
        with front(herded).stopped():
            time.sleep(0.5)
        herded.request("DELETE", job)
        for connection in connections:
            assert b"event: " in read_answer(connection).body


@pytest.mark.parametrize("kind", ["heads", "bodies", "answers"])
@pytest.mark.parametrize("seconds", [0.2, 0.5])
def test_front_that_stalls(herded, kind, seconds):
    """Requests with heads of 91 kB, with bodies, or for long answers come while the front stands still."""
    target = target_of([("box", {"size": 3})], raw=raw_kind(RESULT), format="raw")
    count, data = {"heads": (900, request(target, "POST", f"Authorization: {'x' * 91000}", body=RESULT.tobytes())),
                   "bodies": (3000, request(target, "POST", body=RESULT.tobytes())),
                   "answers": (2000, request("/convolved.js"))}[kind]
    count = min(count, HERD)
    with connected(herded, count) as connections:
        with front(herded).stopped():
            send_all(connections, data)
            time.sleep(seconds)
        answers = [read_answer(connection) for connection in connections]
    # some of one client's images are refused, because it has so many of them
    assert {answer.status for answer in answers} <= ({200} if kind == "answers" else {200, 429})
    assert sum(answer.status == 200 for answer in answers) >= 10
    herded.rest()


def test_few_descriptors(launch):
    """Answers that are not read leave their worker no descriptor for more: that ends connections, not the worker."""
    count, spare, large = 200, 150, np.zeros((2000, 1000, 3), np.uint8)
    with launch(*OPTIONS, "--unread-client-size", "10G", "--unread-size", "10G") as service:
        target = submit(service, large) + "/result"
        assert service.get(target + "?wait=60").status == 200
        with connected(service, count) as connections:
            for process in (front(service), *service.workers("http")):
                used = len(os.listdir(f"/proc/{process.pid}/fd"))
                resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + spare, used + spare))
            with front(service).stopped():
                send_all(connections, request(target))
            poll(lambda: sum(map(begun, connections)) == count, 60, "an answer or the end of each")
            answered = 0
            for connection in connections:
                with contextlib.suppress(ConnectionError):
                    answer = read_answer(connection)
                    assert answer.status == 200 and len(answer.body) == large.nbytes, answer
                    answered += 1
        assert answered >= spare / 4, answered
        assert service.restarts() == 0, service.tail()


def begun(connection):
    """Tells whether an answer, or the end of the connection, has come."""
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    return bool(poller.poll(0))


def test_clients_take_turns(herded):
    """One that asks for much waits for itself; another is served before it has all."""
    count = 300 if sanitized() else 1000
    other = herded.neighbour()
    with connected(herded, count) as connections, contextlib.closing(other.connect(60)) as connection:
        connection.connect()
        connection.sock.sendall(request("/livez"))
        assert read_answer(connection.sock).status == 200
        before = answered(herded.metrics_text(), "/openapi.json")
        with front(herded).stopped():
            send_all(connections, request("/openapi.json", "GET", "Accept-Encoding: gzip"))
            connection.sock.sendall(request("/metrics"))
            time.sleep(0.1)
        text = read_answer(connection.sock).body.decode()
        assert answered(text, "/openapi.json") - before < count / 2
        for each in connections:
            assert read_answer(each).status == 200


def answered(text, route):
    return exposition.total(text, "convolved_request_duration_seconds_count", route=route)
