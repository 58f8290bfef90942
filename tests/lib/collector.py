"""A collector of traces: what OTLP over HTTP sends, in JSON."""
import json
import threading

from scripted import Server


class Collector(Server):
    """Keeps the spans it is sent. `answers`: (status, headers) before 200; none while `held`."""

    def __init__(self, certificate=None):
        super().__init__(self.receive, certificate)
        self.spans, self.resources, self.answers = [], [], []
        self.endpoint = self.url
        self.held = threading.Event()
        self.held.set()

    def of(self, trace):
        return {span["name"]: span for span in self.spans if span["traceId"] == trace}

    def receive(self, request):
        assert request.path == "/v1/traces" and request.headers["Content-Type"] == "application/json"
        self.held.wait()
        status, headers = self.answers.pop(0) if self.answers else (200, {})
        if status == 200:
            for part in json.loads(request.body)["resourceSpans"]:
                self.resources.append(attributes(part["resource"]))
                for scope in part["scopeSpans"]:
                    self.spans += scope["spans"]
        return status, headers, b"{}"

    def __exit__(self, *error):
        self.held.set()
        super().__exit__(*error)


def attributes(span):
    values = {"stringValue": str, "intValue": int}
    return {a["key"]: values[kind](value) for a in span["attributes"]
            for kind, value in a["value"].items()}
