"""Large bodies and answers: where they lie; the front's thread does not write them to a disk."""
import contextlib
import http.client
import re
import socket
import time

import numpy as np
import pytest

import imagefiles
from fixtures import service_with
from jobs import begin
from service import ONE_DEVICE, multipart, poll, raw_kind, request_head, sanitized

SPOOL = 1 << 20
SIDE = 1500
PIXELS = np.random.default_rng(5).integers(0, 256, (SIDE, SIDE, 3), np.uint8)  # 6.75 MB
ANSWER = PIXELS.nbytes
TARGET = f"/v1/filters/box?size=1&raw={raw_kind(PIXELS)}&format=raw"
# A service that keeps a megabyte of a body in memory.
spooling = service_with("--codecs", "1", "--spool-size", str(SPOOL), environment=ONE_DEVICE)


def written_by_loop(service):
    """Returns bytes that the first threads of the front and the HTTP workers have written."""
    texts = [process.read(f"task/{process.pid}/io") for process in service.serving()]
    return sum(int(text.split("wchar: ")[1].split()[0]) for text in texts)


def chunked(body, size=60000):
    for at in range(0, len(body), size):
        yield body[at:at + size]


@pytest.mark.parametrize("way", ["announced", "chunked"])
def test_files_are_not_written_by_the_loop(spooling, way):
    """The loop writes only the part of a spooled body that lay in memory before."""
    body = PIXELS.tobytes()
    before = written_by_loop(spooling)
    answer = spooling.post(TARGET, body if way == "announced" else chunked(body))
    assert np.array_equal(answer.pixels, PIXELS)
    sent = len(answer.body)  # sendfile() counts
    assert written_by_loop(spooling) - before < sent + SPOOL + (1 << 19)


@pytest.mark.parametrize("rows", (300, 400))
def test_codec_worker_stays(spooling, rows):
    """After an answer in memory, of 0.9 MB, and one in a file, of 1.2 MB: it has kept nothing of it."""
    pixels = np.ascontiguousarray(PIXELS[:rows, :1000])
    poll(lambda: len(spooling.workers("codec")) == 1, 60, "the codec worker")
    worker, = spooling.workers("codec")
    answer = spooling.post(f"/v1/filters/box?size=1&raw={raw_kind(pixels)}&format=raw", pixels.tobytes())
    assert np.array_equal(answer.pixels, pixels)
    for format in ("jpeg", "png", "tiff", "webp", "gif", "avif", "bmp", "ppm", "raw"):
        answer = spooling.identity(imagefiles.write_png(pixels), format=format)
        assert answer.status == 200 and len(answer.body) > 1000
    assert worker.alive


def test_form_in_a_file(spooling):
    """Parts come in many pieces, and the boundary may lie anywhere."""
    body, kind = multipart([("image", "x", PIXELS.tobytes())])
    for cut in (1000, 100001):
        answer = spooling.post(TARGET, chunked(body, cut), headers={"Content-Type": kind})
        assert np.array_equal(answer.pixels, PIXELS)


def test_too_large_for_its_file(launch_one):
    """A body of unknown length is refused while its file is made or written, and nothing waits."""
    with launch_one("--codecs", "1", "--spool-size", "100K", "--max-body", "1M") as service:
        for size in (1000, 60000, 300000):
            service.post(TARGET, chunked(bytes(3 << 20), size)).refused(413, "body-too-large")
        service.rest()


def test_clients_that_leave(spooling):
    """In the middle of a body that goes to a file, or by closing their side then: nothing stays."""
    body = PIXELS.tobytes()
    for part in (SPOOL - 1000, SPOOL + 1000, 3 * SPOOL):
        with spooling.socket() as connection:
            connection.sendall(request_head(TARGET, "Transfer-Encoding: chunked"))
            connection.sendall(b"%x\r\n" % len(body) + body[:part])
    with spooling.socket() as connection:
        connection.sendall(request_head(TARGET, f"Content-Length: {ANSWER}", "Connection: close"))
        connection.sendall(body)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass
    spooling.rest()


def test_no_file(launch_one, cache, tmp_path):
    """A directory in which nothing can be made is an error of ours, which the log explains."""
    directory = tmp_path / "cache"
    directory.symlink_to(cache)
    with launch_one("--codecs", "1", "--spool-size", str(SPOOL),
                    "--cache-dir", str(directory)) as service:
        service.rest(programs=True)  # its programs are there
        directory.unlink()
        directory.symlink_to(tmp_path / "nowhere")  # a worker would make one that is not there
        for body in (PIXELS.tobytes(), chunked(PIXELS.tobytes())):
            service.post(TARGET, body).refused(500, "input-output")
        black = imagefiles.write_png(np.zeros((SIDE, SIDE, 3), np.uint8))
        assert len(black) < SPOOL // 2
        service.identity(black, format="raw").refused(500, "input-output")
        service.rest()
        service.says("cannot be made: No such file")


# Answers that nobody reads ------------------------------------------------------------------------

UNREAD, UNREAD_CLIENT = 60 << 20, 30 << 20
BOUNDS = ("--codecs", "2", "--unread-size", str(UNREAD), "--unread-client-size", str(UNREAD_CLIENT))
read_slowly = service_with(*BOUNDS, environment=ONE_DEVICE)


@contextlib.contextmanager
def slow_readers(service, count, address):
    """Answers to this address that are ready and not read."""
    with contextlib.ExitStack() as stack:
        answers = []
        for _ in range(count):
            connection = service.neighbour(address).connect(60)
            stack.callback(connection.close)
            connection.connect()
            # The kernel's buffers would hold whole answers.
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            connection.request("POST", TARGET, PIXELS.tobytes())
            answers.append(connection.getresponse())
        yield answers


@contextlib.contextmanager
def readers_at_once(service, *wanted):
    """As slow_readers() for each (count, address), begun so soon that none of them counts as slow."""
    if sanitized():
        pytest.skip("never begun so soon")
    for _ in range(20):
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            answers = [stack.enter_context(slow_readers(service, *one)) for one in wanted]
            if time.monotonic() - began < 3:
                yield answers
                return
        service.rest()
    pytest.fail("the machine is too busy")


def held(service):
    metrics = service.metrics()
    return (metrics.total("convolved_unread_bytes"),
            metrics.total("convolved_unread_ended_total", bound="client"),
            metrics.total("convolved_unread_ended_total", bound="all"))


def whole(answers):
    """Returns the number of those that come to their end."""
    count = 0
    for answer in answers:
        with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
            count += len(answer.read()) == ANSWER
    return count


def test_slow_readers_of_a_client(read_slowly):
    """A slow client makes room for others and its later answers, by one of its own that it has hardly read."""
    room = UNREAD_CLIENT // ANSWER
    with readers_at_once(read_slowly, (1, "127.0.0.3"), (12, "127.0.0.2")) as (oldest, answers):
        before = held(read_slowly)
        assert [answer.status for answer in answers] == [200] * room + [429] * (12 - room)
        assert answers[-1].headers["Retry-After"]
        assert read_slowly.post(TARGET, PIXELS.tobytes()).body == PIXELS.tobytes()
        assert held(read_slowly) == before and before[0] == (room + 1) * ANSWER, "nobody has been cut"
        most = answers[0].read(ANSWER * 9 // 10)
        again = read_slowly.neighbour("127.0.0.2")
        with slow_readers(read_slowly, 1, "127.0.0.2") as more:
            poll(lambda: again.post(TARGET, PIXELS.tobytes()).body == PIXELS.tobytes(), 60, "room")
            assert held(read_slowly)[1:] == (before[1] + 1, before[2])
            assert most + answers[0].read() == PIXELS.tobytes()
            assert whole(answers[1:room] + more) == room - 1
        assert whole(oldest) == 1
    read_slowly.rest()


def test_larger_than_the_bounds(launch_one):
    """An answer above both bounds comes whole, though others of the client begin and end meanwhile."""
    size = str(ANSWER // 2)
    bounds = ("--unread-size", size, "--unread-client-size", size)
    with launch_one("--codecs", "2", *bounds) as service, \
            slow_readers(service, 2, "127.0.0.1") as (first, second):
        small = imagefiles.write_png(np.zeros((100, 100, 3), np.uint8))
        service.identity(small).refused(429, "queue-full")
        assert second.read() == PIXELS.tobytes()
        poll(lambda: service.identity(small).status == 200, 60, "room")
        read = b""
        for _ in range(5):
            read += first.read(ANSWER // 8)
            assert service.identity(small).status == 200
        assert read + first.read() == PIXELS.tobytes()


@pytest.mark.parametrize("addresses", (
    pytest.param(("127.0.0.2",), marks=pytest.mark.slow), ("127.0.0.2", "127.0.0.3", "127.0.0.4")))
def test_memory_of_slow_readers(launch_one, addresses):
    """Another's small answers are kept in memory, and no codec worker is replaced."""
    most = 64 << 20
    with launch_one("--codecs", "2", "--max-memory", str(most)) as service, \
            contextlib.ExitStack() as stack:
        poll(lambda: len(service.workers("codec")) == 2, 60, "the codec workers")
        codecs = {worker.pid for worker in service.workers("codec")}
        for address in addresses:
            stack.enter_context(slow_readers(service, 13, address))
        assert service.total("convolved_spool_memory_bytes") <= most * 5 / 8
        files, memory = (service.total("convolved_spools", place=place) for place in ("file", "memory"))
        assert files >= 13 * len(addresses) - most * 5 / 8 // ANSWER, "those that do not fit"
        for _ in range(20):
            begin(service, "/v1/filters/box?size=1&raw=100x100x3:u8&format=raw", bytes(30000))
        poll(lambda: service.total("convolved_spools", place="memory") == memory + 20, 60, "20 results in memory")
        assert service.total("convolved_spools", place="file") == files
        assert {worker.pid for worker in service.workers("codec")} == codecs


@pytest.mark.slow
def test_slow_readers_of_many_clients(read_slowly):
    """Nobody is above the bound of a client: once some are known to be slow, these go."""
    before = held(read_slowly)
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(slow_readers(read_slowly, 3, f"127.0.0.{i}"))
                for i in range(3, 7)]
        begun = sum(answer.status == 200 for answers in many for answer in answers)
        assert begun == UNREAD // ANSWER and held(read_slowly)[1:] == before[1:]
        poll(lambda: read_slowly.post(TARGET, PIXELS.tobytes()).status == 200, 60, "room")
        now = held(read_slowly)
        assert now[0] <= UNREAD and now[1:] == (before[1], before[2] + 1)
        assert sum(map(whole, many)) == begun - 1
    read_slowly.rest()


def disk_taken(service):
    """Returns bytes of files that have no name any more: bodies and answers."""
    files = {(status.st_dev, status.st_ino): status.st_blocks * 512
             for process in service.serving() for name, status in process.files.values()
             if re.search(r"^/(?!memfd:).*\(deleted\)$", name)}
    return sum(files.values())


def test_disk_of_slow_readers(launch_one):
    """For answers in files, their disk space is bounded, and given back in the end."""
    with launch_one(*BOUNDS, "--spool-size", "0") as service:
        with contextlib.ExitStack() as stack:
            for i in range(3, 8):
                stack.enter_context(slow_readers(service, 3, f"127.0.0.{i}"))
                poll(lambda: disk_taken(service) <= UNREAD, 60, "the bound")
            assert disk_taken(service) > UNREAD - ANSWER
            # The others have been refused; on a busy machine those go that the buffers hide no longer.
            ages = re.findall(r"unread-size: .* bytes in ([\d.]+) s", service.said)
            assert len(ages) == held(service)[2] and all(float(age) >= 4 for age in ages), ages
        poll(lambda: disk_taken(service) == 0, 60, "nothing on disk")
