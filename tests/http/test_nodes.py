"""For balancers: names in ids, agent checks, a delay before the end, a status to repeat on."""
import contextlib
import os
import re
import resource
import signal
import socket
import stat

import pytest

import imagefiles
from jobs import HEAVY, MEDIUM, PREFER, cancel, submit
from service import SMALL, Client, Process, agent_says, free_port, poll

PNG = imagefiles.write_png(SMALL)
BOX = "/v1/filters/box"
DURATIONS = "convolved_request_duration_seconds_count"


@pytest.fixture(scope="module")
def node(launch_one, tmp_path_factory):
    """With agent checks over TCP and at a Unix socket."""
    port, path = free_port(), str(tmp_path_factory.mktemp("agent") / "socket")
    with launch_one("--node", "n-1.x", "--codecs", "1", "--max-wait", "20", "--max-jobs", "50",
                    "--client-share", "1", "--agent-listen", f"127.0.0.1:{port};unix:{path}") as service:
        service.agent, service.path = ("127.0.0.1", port), path
        yield service


def test_ids(node):
    """Ids of a request and its job have the name; each result has a version of its own."""
    answer = node.post(BOX, PNG)
    assert re.fullmatch(r"[0-9a-f]{16}-n-1\.x", answer.headers["X-Request-Id"])
    tags = set()
    for _ in range(2):
        answer = node.post(BOX, PNG, headers=PREFER)
        name = answer.json()["id"]
        assert name == answer.headers["X-Request-Id"]
        assert answer.headers["Location"] == f"/v1/jobs/{name}"
        tag = node.get(f"/v1/jobs/{name}/result?wait=60").headers["ETag"]
        assert node.get(f"/v1/jobs/{name}/result", headers={"If-None-Match": tag}).status == 304
        tags.add(tag)
    assert len(tags) == 2
    node.get(f"/v1/jobs/{name.partition('-')[0]}").refused(404, "not-found")


def weight_in(text):
    return int(re.fullmatch(r"ready up (\d+)%\n", text)[1])


def weight(node):
    return weight_in(agent_says(*node.agent))


def whole(node):
    """Waits for all of the weight, less than which there is while the service tests itself."""
    node.rest()
    poll(lambda: weight(node) == 100, 60, "all of the weight")


def test_weight(node):
    """It falls with the work that is waiting, and is whole again at rest; on both sockets."""
    whole(node)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(node.path)
        assert weight_in(connection.makefile().read()) > 0
    assert stat.S_IMODE(os.stat(node.path).st_mode) == 0o660
    before = node.total("convolved_agent_checks_total", state="ready")
    jobs = []

    def less():
        """More jobs come until there is. One has to end before anything is known."""
        if len(jobs) < 50:
            jobs.append(submit(node, MEDIUM, HEAVY, variant="reference"))
        return weight(node) < 90
    try:
        poll(less, what="less weight")
        assert node.total("convolved_free_ratio") < 1
    finally:
        cancel(node, jobs)
    whole(node)
    assert node.total("convolved_agent_checks_total", state="ready") >= before + 2
    assert node.total("convolved_agent_checks_total", state="drain") == 0


def test_silent_and_talking_clients(node):
    """A thousand that neither read nor close, and one that talks, hold nothing."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
    node.rest()
    front = Process(node.process.pid)
    before = len(front.files)
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(socket.create_connection(node.agent, timeout=60))
        assert weight(node)  # after them, in their order
        poll(lambda: len(front.files) <= before, 60, "their end")
        assert node.works()
    with socket.create_connection(node.agent, timeout=60) as connection:
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                connection.sendall(b"GET / HTTP/1.1\r\n\r\n" * 5000)
    assert weight(node)


def test_no_descriptors(node):
    """A client that waits then is answered later; meanwhile the front does not spin."""
    front = Process(node.process.pid)
    limits = resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))  # which there are
    try:
        with socket.create_connection(node.agent, timeout=2) as connection:
            before = front.busy
            with pytest.raises(TimeoutError):
                connection.recv(1)
            assert front.busy - before < 1
            resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, limits)
            connection.settimeout(60)
            assert connection.recv(100).startswith(b"ready up ")
    finally:
        resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, limits)


def test_status_of_refusals(launch_one):
    """A balancer may ask for it if load alone is the reason; metrics count the reason."""
    with launch_one("--max-jobs", "1", "--codecs", "2", "--client-share", "1") as service:
        job = submit(service, MEDIUM, HEAVY, variant="reference")
        for headers in ({}, *({"X-Busy-Status": other} for other in ("500", "", "5033"))):
            answer = service.post(BOX, PNG, headers=headers)
            answer.refused(429, "queue-full")
            assert "X-Busy-Status" not in answer.headers
        asked = {"X-Busy-Status": "503"}
        answer = service.post(BOX, PNG, headers=asked)
        assert (answer.status, answer.headers["X-Busy-Status"]) == (503, "429")
        assert answer.json()["type"] == "/problems/queue-full"
        assert int(answer.headers["Retry-After"]) >= 1
        service.request("DELETE", job)
        poll(service.works, 60, "room")
        for target, status in ((BOX, 200), (f"{BOX}?size=2", 400)):
            answer = service.post(target, PNG, headers=asked)
            assert answer.status == status and "X-Busy-Status" not in answer.headers
        assert service.total(DURATIONS, route="/v1/filters/{name}", code="503") == 0
        assert service.total(DURATIONS, code="429") >= 5


def test_delay(launch_one):
    """After a signal it says that it will end, and still accepts; a second one ends that."""
    agent = "127.0.0.1", free_port()
    with launch_one("--drain-delay", "3600", "--agent-listen", "%s:%d" % agent, "--codecs", "1") as service:
        service.process.send_signal(signal.SIGTERM)
        poll(lambda: agent_says(*agent) == "drain\n", 60, "its word")
        assert service.get("/readyz").status == 503
        assert service.filter(SMALL, [("box", {})]).status == 200
        service.post(BOX, PNG, headers=PREFER).refused(503, "draining")
        assert service.total("convolved_agent_checks_total", state="drain") >= 1
        assert service.stop() == 0
        assert Client(*agent).refuses()
