"""Connections: clients that close their side, and a client's share of all."""
import concurrent.futures
import contextlib
import os
import pathlib
import resource
import select
import signal
import socket
import subprocess
import tempfile
import time

import numpy as np
import pytest

from certificates import tls_address
from pixels import random_pixels
from service import (SMALL, Client, Process, at_unix_socket, free_port, multipart, poll, raw_kind, read_answer,
                     request_head, tool)

LARGE = np.zeros((2000, 2000, 3), np.uint8)
BOX = [("box", {})]
GET = request_head("/livez", method="GET")


def head(pixels, *headers, filter_name="box", size=None):
    return request_head(f"/v1/filters/{filter_name}?raw={raw_kind(pixels)}&format=raw",
                        f"Content-Length: {size or pixels.nbytes}", *headers)


def test_half_closed(service):
    """A client that closes its side while its answer is sent gets all of it, and costs nothing."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)  # it reads slowly
        connection.settimeout(60)
        connection.connect((service.host, service.port))
        connection.sendall(head(LARGE) + LARGE.tobytes())
        assert connection.recv(1, socket.MSG_PEEK)
        connection.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        before = sum(process.busy for process in service.serving())
        time.sleep(2)
        used = sum(process.busy for process in service.serving()) - before
        assert read_answer(connection).pixels.shape == LARGE.shape
        assert not connection.recv(1), "the connection is kept"
    assert used < 0.1, f"{used} s of processor time in 2 s"


@pytest.fixture(scope="module")
def doors(launch, tmp_path_factory):
    """A service, and a client of each kind of its addresses."""
    directory = tmp_path_factory.mktemp("doors")
    secure, options = tls_address(directory)
    with launch("--listen", f"unix:{directory}/socket", *options) as service:
        yield service, {"bare": service, "unix": at_unix_socket(directory / "socket"), "tls": secure}
        service.rest()


@pytest.mark.parametrize("kind", ["bare", "unix"])
def test_half_closed_waiting(doors, kind):
    """A client that closes its side while its image is filtered gets it."""
    service, clients = doors
    pixels = random_pixels(3, 700, 700, 3, "u8")
    with clients[kind].socket() as connection:
        connection.sendall(head(pixels, filter_name="bilateral") + pixels.tobytes())
        poll(lambda: service.total("convolved_jobs") or select.select([connection], [], [], 0)[0],
             60, "the job, or its answer")
        connection.shutdown(socket.SHUT_WR)
        assert read_answer(connection).pixels.shape == pixels.shape
        assert not connection.recv(1)


@pytest.mark.parametrize("kind, at_once", [("bare", True), ("bare", False), ("unix", False),
                                           ("tls", False)])
def test_left(doors, kind, at_once):
    """The job of a client that has gone ends, or is not begun."""
    service, clients = doors

    def gone():
        return service.total("convolved_jobs_failed_total", reason="client-gone")
    left = gone()
    with clients[kind].socket() as connection:
        connection.sendall(head(LARGE, filter_name="bilateral") + LARGE.tobytes())
        poll(lambda: at_once or service.total("convolved_jobs") == 1, 60, "the job")
    poll(lambda: gone() == left + 1, 60, "the end of it")


def test_uploads_that_end_with_the_drain(launch):
    """A request that comes as the time runs out is answered or refused; the service ends well."""
    form, kind = multipart([("image", "a", SMALL.tobytes())])
    requests = [head(SMALL) + SMALL.tobytes(),
                head(SMALL, f"Content-Type: {kind}", size=len(form)) + form]
    with launch("--drain-timeout", "1", "--max-jobs", "1000", "--max-bodies", "1000") as service, \
            service.connections(400) as connections:
        uploads = list(zip(connections, requests * 200))
        for upload, request in uploads:
            upload.sendall(request[:-1])
        poll(lambda: service.total("convolved_requests") > len(uploads), 60, "uploads")
        end = time.monotonic() + 0.98
        service.process.send_signal(signal.SIGTERM)
        time.sleep(max(end - time.monotonic(), 0))
        for upload, request in uploads:
            with contextlib.suppress(OSError):
                upload.sendall(request[-1:])
            time.sleep(0.0001)
        assert service.process.wait(60) == 0, service.tail()
        for upload, _ in uploads:
            with contextlib.suppress(OSError):
                assert not (answer := upload.recv(1 << 16)) or answer.split()[1] in (b"200", b"503")


@contextlib.contextmanager
def begun(service, count, pixels=SMALL):
    """Connections of requests whose head has come, and 10 bytes of their body."""
    with service.connections(count, head(pixels) + pixels.tobytes()[:10]) as connections:
        poll(lambda: service.total("convolved_requests") == count + 1, 60, "the requests")
        yield connections


def test_trickling_bodies(launch):
    """A body that has not come is no job: it keeps nobody out, whatever client sends it."""
    with launch("--max-jobs", "8", "--body-rate", "0") as service, begun(service, 80) as uploads:
        for byte in range(10, 15):
            for connection in uploads:
                connection.sendall(SMALL.tobytes()[byte:byte + 1])
            for client in (service, service.neighbour()):
                assert client.filter(SMALL, BOX).status == 200
        for connection in uploads[:4]:
            connection.sendall(SMALL.tobytes()[15:])
            assert read_answer(connection).status == 200


def test_bodies_of_one_client(launch):
    with launch("--max-bodies", "8") as service, begun(service, 6) as connections:
        service.filter(SMALL, BOX).refused(429, "queue-full", "6 of at most 8")
        assert service.neighbour().works()
        connections[0].sendall(SMALL.tobytes()[10:])
        assert read_answer(connections[0]).status == 200 and service.works()


def test_body_memory_of_one_client(launch):
    """Memory that a body has announced is its client's."""
    large, small = np.zeros((1000, 1000, 3), np.uint8), np.zeros((500, 500, 2), np.uint8)
    with launch("--max-memory", "4M") as service:
        with begun(service, 1, large) as (connection,):
            service.filter(small, BOX).refused(
                429, "queue-full", "3000000 of at most 4194304 bytes")
            assert service.neighbour().filter(small, BOX).status == 200
            connection.sendall(large.tobytes()[10:])
            assert read_answer(connection).status == 200
            assert service.filter(small, BOX).status == 200
        service.rest()


def test_jobs_of_one_client(launch):
    slow, filters = np.zeros((700, 700, 3), np.uint8), [("bilateral", {"radius": 8})]
    with launch("--max-jobs", "4") as service, concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = [pool.submit(service.filter, slow, filters, variant="general") for _ in range(3)]
        poll(lambda: service.total("convolved_jobs") == 3, 60, "the jobs")
        service.filter(SMALL, BOX).refused(429, "queue-full", "3 of at most 4")
        assert service.neighbour().works()
        assert all(job.result().status == 200 for job in jobs)
        assert service.works()


def test_workers_take_turns(launch):
    """Connections that are opened one after another are not all the same worker's."""
    def sockets(process):
        return sum(name.startswith("socket:") for name in process.descriptors.values())
    with launch("--http-workers", "2") as service, contextlib.ExitStack() as stack:
        def each_has_some():  # the second may start later
            for _ in range(4):
                connection = stack.enter_context(service.socket())
                connection.sendall(GET)
                assert read_answer(connection).status == 200
            return all(sockets(worker) >= before + 4 for worker in service.workers("http"))
        before = max(sockets(worker) for worker in service.workers("http"))
        poll(each_has_some, 60, "connections of each")


def in_backlog(port):
    """Returns the number of clients that wait to be accepted."""
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, queues = line.split()[:5]
        if state == "0A" and int(local.partition(":")[2], 16) == port:
            return int(queues.partition(":")[2], 16)
    return 0


def test_front_that_hangs(launch):
    """Clients wait in the socket, where its end would not cost them their connections."""
    with launch() as service, contextlib.ExitStack() as stack:
        connections = []

        def wait():
            for _ in range(3):
                connections.append(stack.enter_context(service.socket()))
                connections[-1].sendall(GET)
            time.sleep(0.2)
            return in_backlog(service.port) >= 3
        with Process(service.process.pid).stopped():
            poll(wait, 60, "clients in the socket")
        assert all(read_answer(connection).status == 200 for connection in connections)


def test_connections_follow_descriptors(launch):
    """However many clients come, descriptors are left for the requests of those who are in."""
    with launch("--max-connections", "100") as service:
        assert service.total("convolved_connections_limit") == 100
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (128, 128))
        assert service.total("convolved_connections_limit") == 64
        with contextlib.ExitStack() as stack:
            for i in range(150):
                connection = stack.enter_context(socket.create_connection(
                    (service.host, service.port), source_address=(f"127.0.1.{i % 50 + 1}", 0)))
            connection.settimeout(60)
            read_answer(connection).refused(429, "queue-full", " 64 connections")
        poll(service.works)


@pytest.mark.parametrize("option, limit, share", [
    ("--max-connections", 16, 12), ("--max-client-connections", 5, 5)])
def test_connections_of_one_client(launch, option, limit, share):
    """Above its share a client is told so; others come in, and whoever looks after the service."""
    port = free_port()
    with launch(option, str(limit), "--metrics-listen", f"127.0.0.1:{port}") as service:
        watch = Client("127.0.0.1", port)
        with service.connections(share):
            poll(lambda: watch.total("convolved_connections") == share + 1, 60, "connections")
            for sent in [b""] * 20 + [head(SMALL) + SMALL.tobytes()] * 5:
                with service.socket() as connection:
                    with contextlib.suppress(OSError):
                        connection.sendall(sent)
                    answer = read_answer(connection)
                answer.refused(429, "queue-full", f"{share} of at most {limit}")
            assert service.neighbour().works()
            assert watch.total("convolved_requests_rejected_total", reason="queue-full") == 25
        poll(service.works)


def test_operator_gets_in(launch):
    """However many connections to the address for metrics are held, another one gets in."""
    port = free_port()
    watch = Client("127.0.0.1", port)
    with launch("--metrics-listen", f"127.0.0.1:{port}", "--http-workers", "1"), \
            watch.connections(300) as held:
        def ended():
            return select.select(held, [], [], 0)[0]
        poll(lambda: not in_backlog(port), 60, "clients to be accepted")
        assert watch.get("/livez").status == 200
        poll(lambda: len(ended()) >= 300 - 64, 60, "the oldest to be ended")
        assert held[0] in ended()
        assert held[-1] not in ended(), "the newest is ended"


def test_addresses_at_once(launch):
    """A client of one address is not taken for one that comes to another at the same time."""
    port = free_port()
    with launch("--metrics-listen", f"127.0.0.1:{port}", "--http-workers", "1") as service, \
            contextlib.ExitStack() as stack:
        worker, = service.workers("http")
        connections = []
        for _ in range(5):
            with Process(service.process.pid).stopped(), worker.stopped():  # the front would end a stopped worker
                for client in (service, Client("127.0.0.1", port)):
                    connections.append(stack.enter_context(client.socket()))
                    connections[-1].sendall(request_head("/v1/filters", method="GET"))
            poll(lambda: not in_backlog(service.port) + in_backlog(port), 60, "places")
        assert [read_answer(connection).status for connection in connections] == 5 * [200, 404]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_users_of_a_unix_socket(launch):
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        os.chmod(directory, 0o755)
        path = f"{directory}/socket"
        stack.enter_context(launch("--max-connections", "4", "--listen", f"unix:{path}",
                                   "--socket-mode", "0666"))
        for allowed in (True, True, True, False):
            connection = stack.enter_context(at_unix_socket(path).socket())
            with contextlib.suppress(OSError):  # the answer may be there before the request
                connection.sendall(GET)
            assert read_answer(connection).status == (200 if allowed else 429)
        subprocess.run([tool("curl"), "-sf", "--unix-socket", path, "http://localhost/livez"],
                       user=65534, check=True)
