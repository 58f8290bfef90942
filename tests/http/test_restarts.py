"""Restarts under load: with sockets that the service is passed (systemd.socket(5)) no request is
lost. It answers the accepted ones; later ones wait for the next process."""
import random
import signal
import socket
import time

import pytest

import oracle
from clients import Clients
from command import passing
from fixtures import some
from pixels import random_pixels
from service import Client, Process, poll, read_answer, request_head

FILTERS = [("box", {"size": 3})]
IMAGES = [random_pixels(seed, 100 + 30 * seed, 80, 3, "u8") for seed in range(3)]


@pytest.fixture
def activated(launch_one):
    """A service, not yet started, whose listening socket is the test's own."""
    service = launch_one("--codecs", "2")
    at = service.arguments.index("--listen")
    del service.arguments[at:at + 2]
    with socket.create_server((service.host, 0), backlog=1024) as listener:
        service.port = listener.getsockname()[1]
        service.arguments[:0], service.passed = passing(listener), [listener.fileno()]
        yield service
        service.kill()


@pytest.mark.parametrize("restarts", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_nothing_is_lost(activated, restarts):
    """However soon after its start the service is told to end."""
    wait = random.Random(1)
    activated.start()
    with Clients(Client(activated.host, activated.port), IMAGES, FILTERS, 4) as clients:
        for turn in range(restarts):
            if turn % 4 != 2:
                clients.more(11)
            # Before that the signal ends it, as any program that is still being loaded.
            poll(lambda: Process(activated.process.pid).catches(signal.SIGTERM), 60, "the program")
            time.sleep(wait.uniform(0.05, 0.3))
            assert activated.stop(60) == 0, activated.tail()
            activated.start(ready=False)
        clients.more(11)
    assert not clients.problems, (len(clients.problems), clients.problems[:3], activated.tail())
    assert activated.stop() == 0


REQUEST = request_head("/v1/filters/box?raw=100x80x3:u8&format=raw",
                       f"Content-Length: {IMAGES[0].nbytes}")


@pytest.mark.parametrize("before", some([20, 0, len(REQUEST) + 5000, len(REQUEST)]))
def test_accepted_is_served(launch_one, before):
    """A connection that was there before SIGTERM, however much of its request had come. Nobody is let
    in who would not be answered, and idle connections do not hold the service."""
    message = REQUEST + IMAGES[0].tobytes()
    with launch_one("--codecs", "1") as running, running.socket() as connection, \
            running.socket(), running.socket() as kept:
        connection.sendall(message[:before])
        kept.sendall(request_head("/livez", method="GET"))
        assert read_answer(kept).status == 200  # so the connections before it are accepted
        running.process.send_signal(signal.SIGTERM)
        poll(running.refuses, what="every worker's end of listening")
        time.sleep(0.2)  # more than a look at what is open takes
        connection.sendall(message[before:])
        answer = read_answer(connection)
        oracle.check(answer.pixels, oracle.filtered(IMAGES[0], [("box", {})]))
        assert answer.headers["Connection"].lower() == "close"
        assert connection.recv(1) == b""
        assert running.process.wait(60) == 0, running.tail()
