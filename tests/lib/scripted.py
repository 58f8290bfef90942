"""A server that answers as a test wants, and remembers its requests."""
import copy
import http.server
import json
import ssl
import threading
import time


def problem(status, detail, slug="bad-parameter", headers=(), **more):
    """Returns the answer with a problem document, as the service would give it."""
    document = {"type": f"/problems/{slug}", "title": "It is not so", "status": status,
                "detail": detail, **more}
    return (status, {"Content-Type": "application/problem+json", **dict(headers)},
            json.dumps(document).encode())


def busy(after, status=503):
    """Returns the problem of a service that wants to be asked again after so many seconds."""
    return problem(status, "the queue is full", "queue-full", {"Retry-After": after})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def do_POST(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.time = time.monotonic()
        with self.server.lock:
            self.server.requests.append(copy.copy(self))  # this is of the connection
        self.reply(self.server.answer(self))

    def reply(self, answer):
        if answer is None:  # it breaks off
            self.close_connection = True
            return
        status, headers, body = answer
        usual = {"Content-Length": len(body)}
        if self.command == "POST" and status == 200:
            usual |= {"Content-Type": "image/x-portable-pixmap", "X-Image": "40x30x3:u8"}
        self.send_response(status)
        for name, value in {**usual, **headers}.items():
            if value is not None:
                self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def handle_expect_100(self):
        return self.server.expected(self) and super().handle_expect_100()

    do_GET = do_PUT = do_DELETE = do_POST

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """`answer(handler)` returns (status, headers, body), or None to close the connection; it may be
    a list: an answer for each request, then the last. By default the body comes back, turned
    round. Headers that are None are left out of a result. `certificate`: its path and its key's.
    `expected(handler)` tells whether a body may come whose client asks that first."""
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, answer=None, certificate=None, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.answer = answer or (lambda handler: (200, {}, handler.body[::-1]))
        if isinstance(answer, list):
            self.answer = lambda _: answer[min(len(self.requests), len(answer)) - 1]
        self.requests, self.connections = [], 0
        self.expected = lambda _: True
        self.lock = threading.Lock()
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.host, self.port = self.server_address
        self.url = f"http{'s' if certificate else ''}://{self.host}:{self.port}"

    @property
    def bodies(self):
        return [request.body for request in self.requests]

    def handle_error(self, *_):
        pass  # clients that leave

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
