"""Requests that the service carries: beside bare sockets, by its lanes for JPEGs, and by
several nodes."""
import concurrent.futures
import contextlib
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np

from certificates import localhost_certificate
from cluster import AGENT, HTTP, METRICS, NAMES, Balancer, started
from measure import CACHE, GAUSSIAN, cores, measured, middle, turns, used, write, wrk
from service import free_port, poll

# Beside bare sockets ------------------------------------------------------------------------------

def http(options):
    """Throughput of HTTP: services with different options, and bare sockets that carry the same
    bytes to the same wrk.

    CASES are livez, small (1 KB raw), large (50 MB raw), tls (the same by TLS), 256, 1024, 4096
    (JPEGs of that side), and any file of a JPEG. A set of --sets has options of the service, and
    parameters of the requests: 'codec=cpu --codecs 35'. `alone` is the service's time for an image
    alone; cores are those of each kind of process of the service, and of wrk. With the parameter
    codec=gpu and -- --jpeg-on-any yes, devices that are no GPUs take JPEGs, too, which shows only
    that it works."""
    with tempfile.TemporaryDirectory(prefix="convolved-bench-") as name:
        directory = pathlib.Path(name)
        for case in options.cases:
            certificate = localhost_certificate(directory) if case == "tls" else None
            yield from measure(case, *prepared(case, directory), certificate, options)


def prepared(case, directory):
    """Returns (target, file of the body or None)."""
    if case == "livez":
        return "/livez", None
    sides = {"small": (32, 32), "large": (8000, 6250), "tls": (8000, 6250)}.get(case)
    if sides:
        file = directory / case
        file.write_bytes(np.random.default_rng(1).bytes(sides[0] * sides[1]))
        return f"/v1/filters/box?size=3&format=raw&raw={sides[0]}x{sides[1]}x1:u8", file
    return GAUSSIAN, write(directory, int(case)) if case.isdigit() else pathlib.Path(case)


def measure(case, target, body, certificate, options):
    answers, alone = {}, {}

    def by_service(words):
        secure = free_port()
        settings = [word for word in words.split() if word.startswith("-") or "=" not in word]
        query = target + "".join(f"&{word}" for word in words.split() if word not in settings)
        if certificate:
            settings += ["--listen", f"tls:127.0.0.1:{secure}", "--tls-certificate", str(certificate[0]),
                         "--tls-key", str(certificate[1])]
        with measured("--verify-share", "0", *options.service, *settings, program=options.program) as service:
            if "codec=gpu" in words:
                poll(lambda: any(device["jpeg"] for device in service.get("/v1/devices").json()["devices"]),
                     what="a device that takes JPEGs")
            if body:
                service.post(query, body.read_bytes())  # has its programs made
            service.rest(programs=True)
            if body:
                found = [service.post(query, body.read_bytes()) for _ in range(9)]
                alone[words] = middle([one.timing["total"] for one in found])
                # Whatever kernel the tuner chooses otherwise.
                answers[words] = service.post(query + "&variant=general", body.read_bytes()).body
            with cores(service.process.pid) as by_kind:
                figures = ask(f"https://127.0.0.1:{secure}" if certificate else service.url, query)
        return {**figures, "cores": {**by_kind, "wrk": figures["client"]}}

    def by_sockets():
        with bare_sockets(options.sockets, len(answers[options.sets[0]])) as (process, url):
            with cores(process.pid) as by_kind:
                figures = ask(url, target)
        return {**figures, "cores": {"server": sum(by_kind.values()), "wrk": figures["client"]}}

    def ask(url, query):
        return wrk(url + query, body, options.connections, options.seconds, program=options.wrk)

    ways = {words: lambda words=words: by_service(words) for words in options.sets}
    if body and options.sockets:
        ways["bare sockets"] = by_sockets
    found = {name: middle(rounds) for name, rounds in turns(options.rounds, ways, warm=False).items()}
    bare = found["bare sockets"]["rate"] if "bare sockets" in found else None
    for name, figures in found.items():
        sent = figures["rate"] * (body.stat().st_size if body else 0)
        yield {"case": case, "by": name or "service", "requests/s": figures["rate"],
               "of sockets": bare and figures["rate"] / bare, "MB/s in": sent / 1e6,
               "MB/s out": figures["received"] / 1e6, "p50 ms": figures["p50_ms"], "p99 ms": figures["p99_ms"],
               "alone ms": alone.get(name), "same bytes": str(answers[name] == answers[options.sets[0]])
               if name in answers else None, "cores": figures["cores"]}


@contextlib.contextmanager
def bare_sockets(program, size):
    """The program (bare_sockets.c), and its address."""
    process = subprocess.Popen([*shlex.split(program), str(size)], stdout=subprocess.PIPE, text=True)
    try:
        yield process, f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()


# Nodes --------------------------------------------------------------------------------------------

CONNECTIONS = 8  # a client's


def cluster(options):
    """Several nodes on one machine behind HAProxy with etc/haproxy/convolved.cfg.

    Answers a second, to as many clients as there are nodes, with as many connections each: when
    each asks a node of its own, and when all ask the balancer. Both use the same processors, and so
    does HAProxy: the difference is the cost of balancing."""
    count = options.nodes
    if not 1 <= count <= len(NAMES):
        sys.exit(f"{count}: expected a number of nodes from 1 to {len(NAMES)}")
    CACHE.mkdir(parents=True, exist_ok=True)
    # Codec workers of each node as if its share of the processors were all.
    settings = ("--log-level", "warning", "--drain-delay", "2", "--http-workers", "1",
                "--codecs", str(max(2, os.cpu_count() // count + 3)), *options.service)
    with tempfile.TemporaryDirectory(prefix="convolved-cluster-") as name:
        directory = pathlib.Path(name)
        with started(count, directory, CACHE, *settings) as nodes, \
                Balancer(directory, nodes, "127.0.0.1" if options.play else None) as balancer:
            if options.play:
                play(balancer, nodes)
            else:
                yield from balance(balancer, nodes, write(directory, options.side), options)


def balance(balancer, nodes, file, options):
    addresses = [f"http://{node.host}:{node.port}" for node in nodes]
    balanced = [f"http://{balancer.host}:{balancer.port}"] * len(nodes)

    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        def all_ask(urls):
            return list(pool.map(lambda url: wrk(url + GAUSSIAN, file, CONNECTIONS, options.seconds, threads=1), urls))

        def directly():
            return {node.name: figures["rate"] for node, figures in zip(nodes, all_ask(addresses))}

        def through():
            before = sum(used(balancer.process.pid).values())
            figures = all_ask(balanced)
            took = sum(used(balancer.process.pid).values()) - before
            return {"rate": sum(one["rate"] for one in figures),
                    "ms": took * 1e3 / sum(one["requests"] for one in figures)}

        all_ask(addresses)
        for node in nodes:
            node.rest(programs=options.rounds > 1)
        found = turns(options.rounds, {"nodes": directly, "balancer": through}, warm=False)
    shares = [b["rate"] / sum(a.values()) for a, b in zip(found["nodes"], found["balancer"])]
    single, both = middle(found["nodes"]), middle(found["balancer"])
    for name, rate in single.items():
        yield {"by": f"node {name}", "answers/s": rate, "of the sum": None, "rounds": None, "ms of HAProxy": None}
    total = middle([sum(rates.values()) for rates in found["nodes"]])
    yield {"by": "all nodes", "answers/s": total, "of the sum": 1.0, "rounds": None, "ms of HAProxy": None}
    yield {"by": "HAProxy", "answers/s": both["rate"], "of the sum": middle(shares),
           "rounds": f"{min(shares):.2f} to {max(shares):.2f}", "ms of HAProxy": both["ms"]}


def play(balancer, nodes):
    """Until Ctrl-C, or until HAProxy has ended; nodes that end are started again."""
    url = f"http://{balancer.host}:{balancer.port}"
    print(f"\n{len(nodes)} nodes behind HAProxy:\n")
    for node in nodes:
        print(f"  {node.name}  pid {node.process.pid:<8} http://{node.host}:{HTTP}  metrics :{METRICS}  agent :{AGENT}")
    print(f"""
  statistics     http://{balancer.statistics.host}:{balancer.statistics.port}/
  configuration  {balancer.file}

Try, and look at the statistics meanwhile:
  curl -s --data-binary @tests/photograph.jpg {url}/v1/filters/sobel -o out.jpg -D - | grep -i x-request-id
  curl -s -H 'Prefer: respond-async' --data-binary @tests/photograph.jpg {url}/v1/filters/sobel
  kill -STOP {nodes[-1].process.pid}; kill -CONT {nodes[-1].process.pid}
  kill {nodes[0].process.pid}     # it drains for two seconds, then it ends, and is started again

Serving on {url} until Ctrl-C.""", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while balancer.process.poll() is None:
            for node in nodes:
                if node.process.poll() is not None:
                    node.start(ready=False)
                    print(f"{node.name} has ended, and was started again as {node.process.pid}", flush=True)
            time.sleep(0.2)
