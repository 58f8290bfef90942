"""A collector of traces: what OTLP over HTTP sends, in JSON."""
import contextlib
import http.server
import json
import threading


class Collector(http.server.ThreadingHTTPServer):
    """Keeps the spans that it is sent. `answers`: what it says first (status, headers), in order; then
    200. While `held` it answers nothing."""
    daemon_threads = True

    def __init__(self, port=0):
        self.spans, self.resources, self.requests, self.answers = [], [], 0, []
        self.held = threading.Event()
        self.held.set()
        super().__init__(("127.0.0.1", port), Receiver)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_port}"

    def of(self, trace):
        return {span["name"]: span for span in self.spans if span["traceId"] == trace}

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.held.set()
        self.shutdown()
        self.server_close()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
        self.server.requests += 1
        self.server.held.wait()
        status, headers = self.server.answers.pop(0) if self.server.answers else (200, {})
        if status == 200:
            for part in json.loads(body)["resourceSpans"]:
                self.server.resources.append(attributes(part["resource"]))
                for scope in part["scopeSpans"]:
                    self.server.spans += scope["spans"]
        with contextlib.suppress(OSError):
            self.send_response(status)
            for name, value in {"Content-Length": "2", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def attributes(span):
    values = {"stringValue": str, "intValue": int}
    return {a["key"]: values[kind](value) for a in span["attributes"]
            for kind, value in a["value"].items()}
