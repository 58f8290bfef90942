"""Connections: clients that close their side, and a client's share of all."""
import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import resource
import signal
import select
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from service import SMALL, Client, Process, free_port, multipart, poll, raw_kind, read_answer

LARGE = np.zeros((2000, 2000, 3), np.uint8)


def head(pixels, *headers, filter_name="box", size=None):
    size = size or pixels.nbytes
    lines = [f"POST /v1/filters/{filter_name}?raw={raw_kind(pixels)}&format=raw HTTP/1.1", "Host: x",
             f"Content-Length: {size}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def slow_reader(service):
    """Returns a connection that takes little of an answer at a time."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    connection.settimeout(60)
    connection.connect((service.host, service.port))
    return connection


def busy_seconds(process):
    return sum(map(int, process.stat[11:13])) / os.sysconf("SC_CLK_TCK")


def test_half_closed(service):
    """A client that closes its side while its answer is being sent gets all of it, and costs
    nothing."""
    with slow_reader(service) as connection:
        connection.sendall(head(LARGE) + LARGE.tobytes())
        began = connection.recv(1, socket.MSG_PEEK)
        connection.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        front = Process(service.process.pid)
        before = busy_seconds(front)
        time.sleep(2)
        used = busy_seconds(front) - before
        answer = read_answer(connection)
        assert began and answer.status == 200 and answer.pixels.shape == LARGE.shape
        assert not connection.recv(1), "the connection is kept"
    assert used < 0.1, f"{used} s of processor time in 2 s"


def test_half_closed_between(service):
    """Each request that came before the end is answered."""
    request = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
    with service.socket() as connection:
        connection.sendall(3 * request)
        connection.shutdown(socket.SHUT_WR)
        text = b""
        while more := connection.recv(1 << 16):
            text += more
    assert text.count(b"HTTP/1.1 200") == 3, text


def test_left_at_once(service):
    """A request whose client is gone before it has been read costs no more than a look."""
    left = service.total("convolved_jobs_failed_total", reason="client-gone")
    with service.socket() as connection:
        connection.sendall(head(LARGE, filter_name="gaussian") + LARGE.tobytes())
    poll(lambda: service.total("convolved_jobs_failed_total",
                                         reason="client-gone") == left + 1, 60, "the end of it")
    service.rest()


@pytest.mark.parametrize("kind", ["body", "form"])
def test_uploads_that_end_with_the_drain(launch, kind):
    """A request that arrives as the time to finish runs out is answered, or told that it is too
    late, and the service ends as it should."""
    body, headers = SMALL.tobytes(), []
    if kind == "form":
        body, content_type = multipart([("image", "a", body)])
        headers = [f"Content-Type: {content_type}"]
    with launch("--drain-timeout", "1", "--max-jobs", "1000", "--max-bodies", "1000") as service, \
            contextlib.ExitStack() as stack:
        uploads = [stack.enter_context(service.socket()) for _ in range(400)]
        for upload in uploads:
            upload.sendall(head(SMALL, *headers, size=len(body)) + body[:-1])
        poll(lambda: service.total("convolved_requests") > len(uploads), 60, "uploads")
        end = time.monotonic() + 0.98
        service.process.send_signal(signal.SIGTERM)
        time.sleep(max(end - time.monotonic(), 0))
        for upload in uploads:
            with contextlib.suppress(OSError):
                upload.sendall(body[-1:])
            time.sleep(0.0001)
        assert service.process.wait(60) == 0, service.tail()
        for upload in uploads:
            with contextlib.suppress(OSError):
                assert not (answer := upload.recv(1 << 16)) or answer.split()[1] in (b"200", b"503")


# A client's share
# ----------------------------------------------------------------------------------

class Other(Client):
    """A client at another address."""

    def connect(self, timeout):
        return http.client.HTTPConnection(self.host, self.port, timeout,
                                          source_address=("127.0.0.2", 0))


def other(service):
    return Other(service.host, service.port)


@contextlib.contextmanager
def begun(service, count, pixels=SMALL, sent=10):
    """Connections whose request's head has come, and some of its body."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(service.socket()) for _ in range(count)]
        for connection in connections:
            connection.sendall(head(pixels) + pixels.tobytes()[:sent])
        yield connections


def under_way(service, count):
    poll(lambda: service.total("convolved_requests") == count + 1, 60, "the requests")


def test_trickling_bodies(launch):
    """A body that has not come is no job: it keeps nobody out, whatever client sends it."""
    with launch("--max-jobs", "8", "--body-rate", "0") as service, begun(service, 80) as connections:
        under_way(service, 80)
        for byte in range(10, 15):
            for connection in connections:
                connection.sendall(SMALL.tobytes()[byte:byte + 1])
            for client in (service, other(service)):
                assert client.filter(SMALL, [("box", {})]).status == 200
        for connection in connections[:4]:
            connection.sendall(SMALL.tobytes()[15:])
            assert read_answer(connection).status == 200


def test_bodies_of_one_client(launch):
    with launch("--max-bodies", "8") as service, begun(service, 6) as connections:
        under_way(service, 6)
        problem = service.filter(SMALL, [("box", {})]).refused(429, "queue-full")
        assert "6 of at most 8" in problem["detail"], problem
        assert other(service).works()
        connections[0].sendall(SMALL.tobytes()[10:])
        assert read_answer(connections[0]).status == 200 and service.works()


def test_body_memory_of_one_client(launch):
    """Memory that a body has announced is its client's."""
    large, small = np.zeros((1000, 1000, 3), np.uint8), np.zeros((500, 500, 2), np.uint8)
    with launch("--max-memory", "4M") as service:
        with begun(service, 1, large) as (connection,):
            under_way(service, 1)
            problem = service.filter(small, [("box", {})]).refused(429, "queue-full")
            assert "3000000 of at most 4194304 bytes" in problem["detail"], problem
            assert other(service).filter(small, [("box", {})]).status == 200
            connection.sendall(large.tobytes()[10:])
            assert read_answer(connection).status == 200
            assert service.filter(small, [("box", {})]).status == 200
        service.rest()


def test_jobs_of_one_client(launch):
    slow = np.zeros((700, 700, 3), np.uint8)
    filters = [("bilateral", {"radius": 8})]
    with launch("--max-jobs", "4") as service, \
            concurrent.futures.ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(service.filter, slow, filters, variant="general") for _ in range(3)]
        poll(lambda: service.total("convolved_jobs") == 3, 60, "the jobs")
        problem = service.filter(SMALL, [("box", {})]).refused(429, "queue-full")
        assert "3 of at most 4" in problem["detail"], problem
        assert other(service).works()
        assert all(job.result().status == 200 for job in jobs)
        assert service.works()


def test_workers_take_turns(launch):
    """Connections that are opened one after another are not all the same worker's."""
    def sockets(process):
        return sum(fd.is_socket() for fd in pathlib.Path(f"/proc/{process.pid}/fd").glob("*"))
    with launch("--http-workers", "2") as service, contextlib.ExitStack() as stack:
        def each_has_some():  # the second may start later
            for _ in range(4):
                connection = stack.enter_context(service.socket())
                connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
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
                connections[-1].sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.2)
            return in_backlog(service.port) >= 3
        service.process.send_signal(signal.SIGSTOP)
        try:
            poll(wait, 60, "clients in the socket")
        finally:
            service.process.send_signal(signal.SIGCONT)
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
            problem = read_answer(connection).refused(429, "queue-full")
            assert "of at most 64 connections" in problem["detail"] or (
                "there are 64 connections" in problem["detail"]), problem
        poll(service.works)


def test_connections_of_one_client(launch):
    """Above its share a client is told so; others, and those who look after the service, come in."""
    port = free_port()
    with launch("--max-connections", "16", "--metrics-listen", f"127.0.0.1:{port}") as service:
        watch = Client("127.0.0.1", port)
        with contextlib.ExitStack() as stack:
            for _ in range(12):
                stack.enter_context(service.socket())
            poll(lambda: watch.total("convolved_connections") == 13, 60, "connections")
            for _ in range(20):
                with service.socket() as connection:
                    problem = read_answer(connection).refused(429, "queue-full")
                assert "12 of at most 16 connections" in problem["detail"], problem
            for _ in range(5):
                with service.socket() as connection:
                    with contextlib.suppress(OSError):
                        connection.sendall(head(SMALL) + SMALL.tobytes())
                    assert read_answer(connection).status == 429
            assert other(service).works()
            refused = watch.total("convolved_requests_rejected_total",
                                            reason="queue-full")
            assert refused == 25
        poll(service.works)


def test_operator_gets_in(launch):
    """However many connections to the address for metrics are held, another one gets in."""
    port = free_port()
    with launch("--metrics-listen", f"127.0.0.1:{port}", "--http-workers", "1"), \
            contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
                for _ in range(300)]
        poll(lambda: not in_backlog(port), 60, "clients to be accepted")
        assert Client("127.0.0.1", port).get("/livez").status == 200
        poll(lambda: len(select.select(held, [], [], 0)[0]) >= 300 - 64, 60, "the oldest to be ended")
        assert held[0] in select.select(held, [], [], 0)[0]
        assert held[-1] not in select.select(held, [], [], 0)[0], "the newest is ended"


def test_addresses_at_once(launch):
    """A client of one address is not taken for one that comes to another address at the same time."""
    port = free_port()
    with launch("--metrics-listen", f"127.0.0.1:{port}", "--http-workers", "1") as service, \
            contextlib.ExitStack() as stack:
        worker, = service.workers("http")
        connections = []
        for _ in range(5):
            worker.kill(signal.SIGSTOP)
            try:
                for address in (service.port, port):
                    connection = stack.enter_context(socket.create_connection((service.host, address), 60))
                    connection.sendall(b"GET /v1/filters HTTP/1.1\r\nHost: x\r\n\r\n")
                    connections.append(connection)
            finally:
                worker.kill(signal.SIGCONT)
            poll(lambda: not in_backlog(service.port) + in_backlog(port), 60, "clients to be accepted")
        assert [read_answer(connection).status for connection in connections] == 5 * [200, 404]


AS_USER = """
import os, socket, sys
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    connection.sendall(b"GET /livez HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
    print(connection.recv(1 << 16).split()[1].decode())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_users_of_a_unix_socket(launch):
    """They are clients of their own."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        os.chmod(directory, 0o755)
        path = f"{directory}/socket"
        stack.enter_context(launch("--max-connections", "4", "--listen", f"unix:{path}",
                                   "--socket-mode", "0666"))
        for allowed in (True, True, True, False):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(path)
            with contextlib.suppress(OSError):  # the answer may be there before the request
                connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_answer(connection).status == (200 if allowed else 429)
        done = subprocess.run([sys.executable, "-c", AS_USER, path], capture_output=True, text=True)
        assert done.stdout == "200\n", done


# Half-closed ---------------------------------------------------------------------------------------

def after_continue(connection):
    """Returns the answer, after any number of 100 Continue."""
    while connection.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) == b"HTTP/1.1 100":
        assert connection.recv(25, socket.MSG_WAITALL) == b"HTTP/1.1 100 Continue\r\n\r\n"
    return read_answer(connection)


def is_readable(connection):
    return bool(select.select([connection], [], [], 0)[0])


@pytest.mark.parametrize("when", ["at once", "later"])
def test_half_closed_waiting(service, when):
    """A client that closes its side while its image is filtered gets it."""
    pixels = np.random.default_rng(3).integers(0, 256, (700, 700, 3), np.uint8)
    with service.socket() as connection:
        connection.sendall(head(pixels, filter_name="bilateral") + pixels.tobytes())
        if when == "later":
            poll(lambda: service.total("convolved_jobs") == 1 or is_readable(connection), 60,
                 "the job, or its answer")
        connection.shutdown(socket.SHUT_WR)
        answer = after_continue(connection)
        assert answer.status == 200 and answer.pixels.shape == pixels.shape
        assert not connection.recv(1)
    service.rest()


def test_half_closed_unix(launch):
    with tempfile.TemporaryDirectory() as directory, \
            launch("--listen", f"unix:{directory}/socket") as service:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{directory}/socket")
            connection.sendall(head(LARGE) + LARGE.tobytes())
            connection.shutdown(socket.SHUT_WR)
            assert after_continue(connection).status == 200
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{directory}/socket")
            connection.sendall(head(LARGE, filter_name="bilateral") + LARGE.tobytes())
            poll(lambda: service.total("convolved_jobs") == 1, 60, "the job")
        poll(lambda: service.total("convolved_jobs_failed_total",
                                             reason="client-gone") == 1, 60, "the end of it")
        service.rest()
