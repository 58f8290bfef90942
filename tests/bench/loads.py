"""Clients that take their time, hundreds at once, and whether another one notices. `./dev bench loads`.

Each load is held for some seconds by a process of its own: a connection that the service ends (for its
deadline, its share, or because the limit is reached) is opened anew. Meanwhile a probe from an address of
its own asks twice a second, on a new connection, for an image; a load is passed if the probes' 99th
percentile is within 100 ms and each is answered 200. The slow clients come from 250 addresses, or
(--one) from one, which the shares must then keep from others' places."""
import argparse
import errno
import multiprocessing
import os
import pathlib
import random
import resource
import select
import socket
import sys
import tempfile
import time

from service import PORT, TOP, Service

sys.path.append(os.path.join(TOP, "tests", "lib"))
from certificates import localhost_certificate

SECURE = PORT + 1
TARGET = "/v1/filters/box?size=3&format=raw&raw={0}x{0}x3:u8"
SIDE = 500  # side of the images whose answers are read slowly
HELLO = b"\x16\x03\x01\x02\0\1\0\1\xfc\3\3"  # start of a TLS handshake


def post(side, sent=None):
    """Returns a request with its body, or with `sent` bytes of it."""
    body = bytes(side * side * 3)
    return (f"POST {TARGET.format(side)} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            .encode() + body[:sent])


# name: (how many, port, what each sends at once, what then each second, bytes that it reads a second)
LOADS = {
    "nothing": (0, PORT, b"", b"", 1 << 16),
    "heads": (1100, PORT, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", b"y", 1 << 16),
    "readers": (500, PORT, post(SIDE), b"", 1),
    "idle": (1000, PORT, b"", b"", 1 << 16),
    "handshakes": (500, SECURE, HELLO, b"\0", 1 << 16),
    "bodies": (80, PORT, post(SIDE, 100), b"\0", 1 << 16),
}


class Holder:
    """Keeps the connections of a load open."""

    def __init__(self, load, one, share):
        count, self.port, self.first, self.more, self.appetite = LOADS[load]
        self.count, self.one = max(min(count, 1), round(count * share)), one
        self.poller, self.open = select.epoll(), {}
        self.opened = 0

    def connect(self):
        self.opened += 1
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.appetite == 1:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.bind((f"127.0.1.{1 if self.one else self.opened % 250 + 1}", 0))
        connection.connect_ex(("127.0.0.1", self.port))
        self.open[connection.fileno()] = [connection, memoryview(self.first)]
        self.poller.register(connection, select.EPOLLOUT | (select.EPOLLIN if self.appetite > 1 else 0))

    def end(self, number):
        self.open.pop(number)[0].close()

    def progress(self, number, events):
        """Sends the rest of the first bytes; an answer, or the end, ends the connection."""
        connection, left = self.open[number]
        try:
            if events & (select.EPOLLERR | select.EPOLLHUP) or (
                    events & select.EPOLLIN and connection.recv(self.appetite) is not None):
                self.end(number)
                return
            if left:
                self.open[number][1] = left = left[connection.send(left):]
            if not left:
                self.poller.modify(connection, select.EPOLLIN if self.appetite > 1 else 0)
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno == errno.EMFILE:
                raise
            self.end(number)

    def trickle(self, number):
        connection, left = self.open[number]
        try:
            if not left and self.more:
                connection.send(self.more)
            if self.appetite == 1:
                connection.recv(1)
        except BlockingIOError:
            pass
        except OSError:
            self.end(number)

    def run(self, held, opened):
        """For ever; each connection trickles once a second."""
        queue, begun, done = [], time.monotonic(), 0
        while True:
            for _ in range(min(self.count - len(self.open), 50)):
                self.connect()
            for number, events in self.poller.poll(0.01):
                if number in self.open:
                    self.progress(number, events)
            held.value, opened.value = len(self.open), self.opened
            due = int((time.monotonic() - begun) * self.count) - done
            done += due
            for _ in range(min(due, self.count)):
                if not queue:
                    queue = list(self.open)
                    random.shuffle(queue)
                if queue and (number := queue.pop()) in self.open:
                    self.trickle(number)


def probe():
    """Seconds until an image is answered on a new connection; None if it was not answered 200."""
    begun = time.monotonic()
    try:
        with socket.socket() as connection:
            connection.settimeout(60)
            connection.bind(("127.0.0.2", 0))
            connection.connect(("127.0.0.1", PORT))
            connection.sendall(post(64))
            answer = connection.recv(1 << 16)
        return time.monotonic() - begun if answer.startswith(b"HTTP/1.1 200") else None
    except OSError:
        return None


def measure(load, options):
    """Returns (milliseconds of the probes in order, probes that were not answered, held at least,
    opened)"""
    held, opened = multiprocessing.Value("i"), multiprocessing.Value("i")
    holder = multiprocessing.Process(target=Holder(load, options.one, options.share).run, args=(held, opened),
                                     daemon=True)
    holder.start()
    try:
        time.sleep(options.ramp)
        least, took = LOADS[load][0], []
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            due = time.monotonic() + 0.5
            took.append(probe())
            least = min(least, held.value)
            time.sleep(max(0, due - time.monotonic()))
        if not holder.is_alive():
            raise SystemExit(f"loads: the process that holds `{load}` has ended")
    finally:
        holder.kill()
        holder.join()
    answered = sorted(1e3 * seconds for seconds in took if seconds is not None)
    return answered, len(took) - len(answered), least, opened.value


def show(load, one, found):
    took, missing, least, opened = found
    if not took:
        print(f"{load:12}{'one' if one else 'many':5} no probe was answered")
        return False
    p50, p99 = (took[min(len(took) * part // 100, len(took) - 1)] for part in (50, 99))
    passed = p99 <= 100 and not missing
    print(f"{load:12}{'one' if one else 'many':5}held {least:5}, opened {opened:6}; probes {len(took):4}, "
          f"not answered {missing:3}, ms p50 {p50:7.1f} p99 {p99:7.1f} max {took[-1]:7.1f}"
          f"  {'passed' if passed else 'NOT PASSED'}", flush=True)
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loads", nargs="*", default=[], help=", ".join(LOADS))
    parser.add_argument("--one", action="store_true", help="the slow clients have one address")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--ramp", type=float, default=5, help="seconds in which a load comes up")
    parser.add_argument("--share", type=float, default=1, help="of the connections")
    parser.add_argument("--flags", default="", help="more options of the service")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="convolved-bench-") as directory:
        certificate, key = localhost_certificate(pathlib.Path(directory))
        service = Service("--listen", f"tls:127.0.0.1:{SECURE}", "--tls-certificate", str(certificate), "--tls-key",
                          str(key), "--max-jobs", "1000", "--max-bodies", "1000", *options.flags.split()).ready()
        try:
            while probe() is None:
                time.sleep(0.1)
            service.settle()
            passed = [show(load, options.one, measure(load, options))
                      for load in LOADS if not options.loads or load in options.loads]
        finally:
            service.stop()
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
