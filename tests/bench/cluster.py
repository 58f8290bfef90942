"""Several nodes of the service on one machine, behind HAProxy with etc/haproxy/convolved.cfg: to
play with (`./dev cluster [N]`), or to measure (`./dev cluster --bench [N]`).

The measure is answers a second, to as many clients as there are nodes, with as many connections
each: when each asks a node of its own, and when all ask the balancer. Both use the same processors,
and so does HAProxy: the difference is the cost of balancing. The measurements take turns, and
medians are compared."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from cluster import AGENT, HTTP, METRICS, NAMES, Balancer, Loopback, network, started  # noqa: E402
from load import Generator, goodput, picture, request, statuses  # noqa: E402
from service import Process  # noqa: E402

CONNECTIONS = 8  # a client's
OPTIONS = ("--log-level", "warning", "--drain-delay", "2")


def codecs(nodes):
    """Codec workers of each node, as if its share of the processors were all."""
    return ("--codecs", str(max(2, os.cpu_count() // nodes + 3)), "--http-workers", "1")


def ask(address, content, seconds):
    """Returns (answers a second, {status: number})"""
    generator = Generator(address, content)
    start = time.monotonic()
    missing = generator.closed_loop(CONNECTIONS, seconds)
    found = statuses(generator.done)
    generator.close()
    return goodput(generator.done, start), found | ({"none": missing} if missing else {})


def processor(balancer):
    """Returns seconds of a processor that HAProxy has used."""
    return sum(map(int, Process(balancer.process.pid).stat[11:13])) / os.sysconf("SC_CLK_TCK")


def measure(balancer, nodes, content, options):
    direct = [(node.host, node.port) for node in nodes]
    rows, seen = collections.defaultdict(list), collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(len(nodes)) as pool:
        def all_ask(addresses):
            found = list(pool.map(ask, addresses, [content] * len(nodes), [options.seconds] * len(nodes)))
            for _, counts in found:
                seen.update(counts)
            return [rate for rate, _ in found]

        all_ask(direct)
        for node in nodes:
            node.rest(programs=options.rounds > 1)
        for _ in range(options.rounds):
            for node, rate in zip(nodes, each := all_ask(direct)):
                rows[node.name].append(rate)
            rows["sum"].append(sum(each))
            before = processor(balancer), seen.total()
            rows["balanced"].append(sum(all_ask([(balancer.host, balancer.port)] * len(nodes))))
            rows["cost"].append((processor(balancer) - before[0]) / (seen.total() - before[1]))
    shares = [b / a for a, b in zip(rows["sum"], rows["balanced"])]
    print(f"{len(nodes)} nodes on {os.cpu_count()} processors; {options.side}x{options.side} JPEG, "
          f"{len(content) / 1e3:.0f} kB; {len(nodes)} clients with {CONNECTIONS} connections; medians of "
          f"{options.rounds}; answers by status: {dict(seen)}")
    for node in nodes:
        print(f"node {node.name:18}{statistics.median(rows[node.name]):9.1f}/s")
    print(f"sum of the nodes       {statistics.median(rows['sum']):9.1f}/s\n"
          f"through HAProxy        {statistics.median(rows['balanced']):9.1f}/s, {statistics.median(shares):.0%} of it "
          f"(rounds {min(shares):.0%} to {max(shares):.0%})\n"
          f"HAProxy takes {statistics.median(rows['cost']) * 1e3:.2f} ms of a processor for a request")


def play(balancer, nodes):
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
    while balancer.process.poll() is None:
        for node in nodes:
            if node.process.poll() is not None:
                node.start(ready=False)
                print(f"{node.name} has ended, and was started again as {node.process.pid}", flush=True)
        time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("nodes", type=int, nargs="?", default=3, help="how many, 1 to 26")
    parser.add_argument("--bench", action="store_true", help="measure")
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", type=int, default=512)
    options = parser.parse_args()
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.default_int_handler)
    if not 1 <= options.nodes <= len(NAMES):
        parser.error(f"{options.nodes}: expected a number of nodes from 1 to {len(NAMES)}")
    cache = pathlib.Path.home() / ".cache/convolved"
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="convolved-cluster-") as name:
        directory = pathlib.Path(name)
        if options.bench:
            with network(options.nodes) as net, \
                    started(options.nodes, net, directory, cache, *OPTIONS, *codecs(options.nodes)) as nodes, \
                    Balancer(directory, nodes) as balancer:
                measure(balancer, nodes, request(picture(options.side)), options)
        else:
            with started(options.nodes, Loopback(), directory, cache, *OPTIONS, *codecs(options.nodes)) as nodes, \
                    Balancer(directory, nodes) as balancer:
                try:
                    play(balancer, nodes)
                except KeyboardInterrupt:
                    print()


if __name__ == "__main__":
    main()
