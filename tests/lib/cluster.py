"""Nodes behind an HAProxy with etc/haproxy/convolved.cfg, each at its own loopback address."""
import collections
import contextlib
import csv
import io
import os
import re
import signal
import socket
import subprocess
import time

from service import REPOSITORY, Client, Service, agent_says, free_port, meanwhile, poll, tool

CONFIGURATION = REPOSITORY / "etc/haproxy/convolved.cfg"
NAMES = "abcdefghijklmnopqrstuvwxyz"
HTTP, TLS, METRICS, AGENT, STATISTICS = 8700, 8743, 9700, 9702, 8404  # ports


def address(number):
    """Returns an address that no node of another process has; 1 is the balancer's."""
    return f"127.{1 + os.getpid() // 256 % 254}.{os.getpid() % 256}.{number}"


# Nodes --------------------------------------------------------------------------------------------

class Node(Service):
    def __init__(self, number, directory, cache, *options, tls=None, **more):
        name, host = NAMES[number], address(11 + number)
        if tls:
            options += ("--listen", f"tls:{host}:{TLS}", "--tls-certificate", f"{tls}/certificate.pem", "--tls-key",
                        f"{tls}/key.pem")
        super().__init__(directory / name, cache, "--node", name, "--metrics-listen", f"{host}:{METRICS}",
                         "--agent-listen", f"{host}:{AGENT}", "--trusted-proxies", "127.0.0.1", *options, **more)
        self.name, self.host, self.port = name, host, HTTP
        self.arguments[self.arguments.index("--listen") + 1] = f"{host}:{HTTP}"

    def agent(self):
        return agent_says(self.host, AGENT)

    def signal(self, number):
        """To all its processes: a stop to the front first, as it looks after the others."""
        processes = self.processes()
        for process in processes if number != signal.SIGCONT else processes[::-1]:
            with contextlib.suppress(ProcessLookupError):
                process.kill(number)


def slowed(node):
    """The node runs for a quarter of the time meanwhile."""
    def slow():
        begun = time.monotonic()
        time.sleep(0.02)
        node.signal(signal.SIGSTOP)
        time.sleep(3 * (time.monotonic() - begun))  # it may have run for longer, on a busy machine
        node.signal(signal.SIGCONT)
    return meanwhile(slow)


# The balancer -------------------------------------------------------------------------------------

def balanced(nodes, listen, directory, statistics, tls=None):
    """Returns the shipped configuration with these nodes and addresses. tls: the directory of
    `both.pem`, a certificate with its key, and `certificate.pem`: both sides are encrypted."""
    text = CONFIGURATION.read_text()
    text = re.sub(r"(?m)^\t(user|group|log /dev/log) .*\n", "", text)
    text = text.replace("/run/haproxy/admin.sock", f"{directory}/haproxy.sock")
    text = text.replace("bind 127.0.0.1:8404", f"bind {statistics}")
    text = text.replace("\tbind :8700", f"\tbind {listen}")
    port = HTTP
    if tls:
        port = TLS
        text = text.replace(f"\tbind {listen}", f"\tbind {listen} ssl crt {tls}/both.pem alpn http/1.1")
        text = re.sub(r"(?m)^\t#(default-server ssl .*) ca-file \S+ verifyhost \S+",
                      rf"\t\1 ca-file {tls}/certificate.pem verifyhost localhost", text)
    text = re.sub(r"(?m)^\tserver [bc] .*\n", "", text)

    def servers(match):
        return "".join(f"\tserver {n.name} {n.host}:{port}{match[1].replace('nodes/a', f'nodes/{n.name}')}\n"
                       for n in nodes)
    return re.sub(r"(?m)^\tserver a 10\.0\.0\.1:8700(.*)\n", servers, text)


class Balancer(Client):
    """An HAProxy before nodes. Requests go through it; `answered` counts those of each node."""

    def __init__(self, directory, nodes, host=None, port=HTTP, tls=None):
        super().__init__(host or address(1), port)
        self.directory, self.nodes = directory, nodes
        self.statistics = Client(self.host, STATISTICS if port == HTTP else free_port())
        self.answered = collections.Counter()
        self.file, self.log = directory / "haproxy.cfg", directory / "haproxy.log"
        self.file.write_text(balanced(nodes, f"{self.host}:{port}", directory,
                                      f"{self.host}:{self.statistics.port}", tls))
        self.process = None

    def __enter__(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([tool("haproxy"), "-db", "-f", self.file], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        self.await_all("UP")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def request(self, *arguments, **options):
        answer = super().request(*arguments, **options)
        self.answered[node_of(answer)] += 1
        return answer

    def command(self, text):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{self.directory}/haproxy.sock")
            connection.sendall(text.encode() + b"\n")
            with connection.makefile() as answer:
                return answer.read()

    def servers(self):
        """Returns {name: row of `show stat`} of the nodes."""
        rows = csv.DictReader(io.StringIO(self.command("show stat").removeprefix("# ")))
        return {row["svname"]: row for row in rows if row["pxname"] == "nodes" and len(row["svname"]) == 1}

    def awaits(self, node, *statuses):
        """Waits until a node has one of these: UP, DRAIN, DOWN."""
        def there():
            assert self.process.poll() is None, self.log.read_text()
            with contextlib.suppress(OSError):
                return self.servers()[node.name]["status"].split()[0] in statuses
        poll(there, 60, f"node {node.name} to be {statuses}", 0.1,
             lambda: self.log.read_text()[-2000:] + node.tail())

    def await_all(self, *statuses):
        for node in self.nodes:
            self.awaits(node, *statuses)


def node_of(answer):
    """Returns the name of the node that has answered; None: the balancer itself."""
    return answer.headers.get("X-Request-Id", "").partition("-")[2] or None


@contextlib.contextmanager
def started(count, directory, cache, *options, **more):
    nodes = [Node(i, directory, cache, *options, **more) for i in range(count)]
    with contextlib.ExitStack() as stack:
        for node in nodes:
            stack.callback(node.kill)
            node.start(ready=False)
        try:
            for node in nodes:
                node.wait_ready()
            yield nodes
        except BaseException:
            for node in nodes:
                print(f"--- node {node.name}\n{node.tail()}")
            raise
        for node in nodes:
            node.process.send_signal(signal.SIGTERM)
        for node in nodes:
            node.end(None)  # a second signal: nobody waits for balancers
            assert not (report := node.sanitizer_report()), report
