"""Several nodes behind HAProxy. Clients ask without a pause or a second try while nodes end, hang
and drain: no request fails, but for answers that break off when their node is killed."""
import signal
import ssl
import socket

import numpy as np
import pytest

import imagefiles
import oracle
from clients import Clients
from cluster import Balancer, node_of, slowed
from jobs import HEAVY, PREFER
from pixels import random_pixels
from service import SMALL, Client, free_port, poll, raw_kind, read_answer, request_head, target_of

FILTERS = [("box", {"size": 3})]
IMAGES = [random_pixels(seed, 100 + 30 * seed, 80, 3, "u8") for seed in range(3)]
PNG = imagefiles.write_png(SMALL)
# More than HAProxy's buffer holds: passed on as it comes.
LARGE = random_pixels(9, 900, 700, 3, "u8")
BUSY = np.zeros((900, 900, 3), np.uint8)


def asking(cluster, count=4):
    return Clients(cluster, IMAGES, FILTERS, count)


def nothing_failed(clients, cluster, killed=0):
    """killed: how often a node was. An answer that had begun can then be neither finished nor repeated."""
    broken = [problem for problem in clients.problems if problem.startswith("IncompleteRead")]
    assert len(broken) <= killed * len(clients.threads), broken
    assert len(broken) == len(clients.problems), (len(clients.problems), clients.problems[:3], cluster.log.read_text()[-2000:],
                                  *(node.tail()[-1500:] for node in cluster.nodes))


def alone(cluster, node):
    return [other for other in cluster.nodes if other is not node]


def come_back(cluster, node):
    node.start()
    cluster.awaits(node, "UP")


def test_all_answer(cluster):
    """With the right pixels, for the client that asks the balancer, and never more than they may."""
    with asking(cluster) as clients:
        poll(lambda: {"a", "b", "c"} <= set(cluster.answered), 60, "answers of all nodes")
    nothing_failed(clients, cluster)
    assert cluster.neighbour("127.0.0.9").filter(SMALL, FILTERS).status == 200
    poll(lambda: any("for 127.0.0.9" in node.log.read_text() for node in cluster.nodes), 60, "its address")
    answer = cluster.post(target_of(FILTERS), headers={"Content-Length": str(1 << 30)})
    answer.refused(413, "body-too-large")
    assert node_of(answer) is None
    for node in cluster.nodes:  # once it does not test itself
        poll(lambda n=node: n.agent() == "ready up 100%\n", what="all of its weight")
    assert b'haproxy_server_status{proxy="nodes",server="a",state="UP"} 1' in cluster.statistics.get("/metrics").body
    assert cluster.statistics.get("/").status == 200


def test_jobs_find_their_node(cluster):
    """Whichever that is, also when it is draining; 503 while it cannot be reached."""
    jobs = {}

    def more():
        answer = cluster.post("/v1/filters/box", PNG, headers=PREFER)
        assert answer.status == 202 and node_of(answer) == answer.headers["Location"].rpartition("-")[2], answer
        jobs[node_of(answer)] = answer.headers["Location"]
        return len(jobs) == 3
    poll(more, 60, "a job at every node", 0)
    for name, job in jobs.items():
        answer = cluster.get(f"{job}/result?wait=60")
        assert (answer.status, node_of(answer)) == (200, name)
    for unknown in ("/v1/jobs/0123456789abcdef", "/v1/jobs/0123456789abcdef-x", "/v1/jobs/", f"{jobs['a']}x"):
        assert cluster.get(unknown).status == 404
    cluster.get("/v1/jobs").refused(403, "list-not-allowed")
    node = cluster.nodes[0]
    node.kill()
    cluster.awaits(node, "DOWN")
    answer = cluster.get(jobs["a"])
    answer.refused(503, "no-node")
    assert answer.headers["Retry-After"] == "1"
    assert cluster.get(jobs["b"]).status == 200
    come_back(cluster, node)
    cluster.get(jobs["a"]).refused(404, "not-found")
    assert cluster.request("DELETE", jobs["b"]).status == 204


def fill(node, places):
    """Gives a node jobs that take long, until it refuses more."""
    target = target_of(HEAVY, raw=raw_kind(BUSY), format="raw", variant="reference")
    while (answer := node.post(target, BUSY.tobytes(), headers=PREFER)).status == 202:
        places.append((node, answer.headers["Location"]))
    answer.refused(429, "queue-full")


def test_refusals_go_elsewhere(cluster):
    """A node that is full refuses, and another one answers; when all are full clients get the 429."""
    places, first = [], cluster.nodes[0]
    try:
        fill(first, places)
        with asking(cluster) as clients:
            rejected = "convolved_requests_rejected_total"
            poll(lambda: first.total(rejected, reason="queue-full") > 5, 60, "refusals")
        nothing_failed(clients, cluster)
        for node in alone(cluster, first):
            fill(node, places)
        answer = cluster.filter(SMALL, FILTERS)
        answer.refused(429, "queue-full")
        assert int(answer.headers["Retry-After"]) >= 1 and "X-Busy-Status" not in answer.headers
    finally:
        for node, place in places:
            node.request("DELETE", place)
        for node in cluster.nodes:
            poll(lambda: not node.metrics().total("convolved_jobs"), 60, "the end of all jobs")


@pytest.mark.parametrize("hangs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_killed(cluster, hangs):
    """One that hangs gets no more requests; the others do its unfinished ones when a watchdog ends it."""
    node = cluster.nodes[2]
    with asking(cluster, 6) as clients:
        clients.more(40)
        if hangs:
            node.signal(signal.SIGSTOP)
            cluster.awaits(node, "DOWN")
            cluster.answered.clear()
            clients.more(40)
            assert "c" not in cluster.answered
        node.kill()
        clients.more(40)
        come_back(cluster, node)
        clients.more(20)
    nothing_failed(clients, cluster, 1)


def test_slow(cluster):
    """One that runs a quarter of the time gets less to do, but it does get something."""
    with asking(cluster, 9) as clients:
        with slowed(cluster.nodes[0]):
            clients.more(30)
            cluster.answered.clear()
            clients.more(150)
            answered = dict(cluster.answered)
    nothing_failed(clients, cluster)
    assert 0 < answered["a"] < min(answered["b"], answered["c"]), answered


def begin_upload(cluster):
    """Sends half a body, more than HAProxy keeps; returns (connection, the rest, its node)."""
    body = LARGE.tobytes()
    target = target_of(FILTERS, raw=raw_kind(LARGE), format="raw")
    connection = socket.create_connection((cluster.host, cluster.port), timeout=120)
    connection.sendall(request_head(target, f"Content-Length: {len(body)}") + body[:1200000])

    def arriving():
        return [node for node in cluster.nodes if node.metrics().total("convolved_spool_memory_bytes") > 100000]
    node, = poll(arriving, 60, "the body at a node")
    return connection, body[1200000:], node


@pytest.mark.slow
def test_rolling_restart(cluster):
    """All nodes, one after another; the first while a body arrives that could not be repeated."""
    connection, rest, first = begin_upload(cluster)
    with connection, asking(cluster) as clients:
        for node in [first, *alone(cluster, first)]:
            node.process.send_signal(signal.SIGTERM)
            cluster.awaits(node, "DRAIN", "DOWN")
            if node is first:
                assert node.agent() == "drain\n"
                connection.sendall(rest)
                answer = read_answer(connection)
                assert node_of(answer) == first.name
                oracle.check(answer.pixels, oracle.filtered(LARGE, FILTERS))
            assert node.process.wait(60) == 0, node.tail()
            come_back(cluster, node)
            clients.more(20)
    nothing_failed(clients, cluster)


def test_encrypted(cluster, tls, tmp_path):
    with Balancer(tmp_path, cluster.nodes, "127.0.0.1", free_port(), tls) as balancer:
        balancer.host, balancer.tls = "localhost", ssl.create_default_context(cafile=tls / "certificate.pem")
        answer = balancer.filter(SMALL, FILTERS)
        oracle.check(answer.pixels, oracle.filtered(SMALL, FILTERS))
        job = balancer.post("/v1/filters/box", PNG, headers=PREFER).headers["Location"]
        assert balancer.get(f"{job}/result?wait=60").status == 200
    assert Client(cluster.host, cluster.port).filter(SMALL, FILTERS).status == 200
