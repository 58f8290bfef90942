"""Several nodes behind an HAProxy that runs etc/haproxy/convolved.cfg, on one machine: each node at an
address of the loopback network, or in a network namespace of its own."""
import collections
import contextlib
import csv
import ctypes
import io
import os
import re
import signal
import socket
import subprocess
import threading
import time

from agent import agent_says
from service import REPOSITORY, Client, Service, children, poll, tool

CONFIGURATION = REPOSITORY / "etc/haproxy/convolved.cfg"
NAMES = "abcdefghijklmnopqrstuvwxyz"
HTTP, TLS, METRICS, AGENT = 8700, 8743, 9700, 9702  # ports of a node
CLONE_NEWNET = 0x40000000


# Networks -----------------------------------------------------------------------------------------

class Loopback:
    """Every node has an address of 127.0.0.0/8, and no network of its own."""
    proxy = "127.0.0.1"  # the balancer's address for the nodes

    @staticmethod
    def address(number):
        return f"127.0.0.{11 + number}"

    @staticmethod
    def enter(_):
        return []


class Namespaces:
    """A network namespace for the balancer, which this thread and those that it starts enter, and one for
    each node, with a cable (veth) between. A context manager."""
    proxy = "10.99.0.0/16"

    def __init__(self, count):
        self.count, self.prefix, self.made = count, f"convolved-{os.getpid()}", []

    def ip(self, *arguments):
        subprocess.run([tool("ip"), *arguments], check=True, capture_output=True, text=True)

    def add(self, name):
        self.ip("netns", "add", name)
        self.made.append(name)
        self.ip("-n", name, "link", "set", "lo", "up")

    def __enter__(self):
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            self.connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def connect(self):
        self.add(self.prefix)
        for i in range(self.count):
            node = f"{self.prefix}-{i}"
            self.add(node)
            self.ip("-n", self.prefix, "link", "add", f"v{i}", "type", "veth", "peer", "name", "eth0", "netns", node)
            for space, link, host in ((self.prefix, f"v{i}", 254), (node, "eth0", 1)):
                self.ip("-n", space, "addr", "add", f"10.99.{i}.{host}/24", "dev", link)
                self.ip("-n", space, "link", "set", link, "up")
        with open(f"/run/netns/{self.prefix}", "rb") as space:
            self.move(space.fileno())

    @staticmethod
    def move(space):
        if ctypes.CDLL(None, use_errno=True).setns(space, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def __exit__(self, *_):
        self.move(self.home)
        os.close(self.home)
        for name in self.made:
            subprocess.run([tool("ip"), "netns", "del", name], check=False, capture_output=True)

    @staticmethod
    def address(number):
        return f"10.99.{number}.1"

    def enter(self, number):
        return [tool("nsenter"), f"--net=/run/netns/{self.prefix}-{number}"]


@contextlib.contextmanager
def network(count):
    """Namespaces where they can be made, else the loopback network."""
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(Namespaces(count))
        except (OSError, subprocess.CalledProcessError, AssertionError) as error:
            print(f"without network namespaces: {error}")
            found = Loopback()
        yield found


# Nodes --------------------------------------------------------------------------------------------

class Node(Service):
    def __init__(self, number, net, directory, cache, *options, **more):
        name, host = NAMES[number], net.address(number)
        super().__init__(directory, cache, "--node", name, "--metrics-listen", f"{host}:{METRICS}",
                         "--agent-listen", f"{host}:{AGENT}", "--trusted-proxies", net.proxy,
                         "--allow-anonymous", "yes", *options, **more)
        self.name, self.host, self.port = name, host, HTTP
        self.arguments[self.arguments.index("--listen") + 1] = f"{host}:{HTTP}"
        self.arguments = [*net.enter(number), *self.arguments]

    def agent(self):
        """Returns its answer to a balancer that asks."""
        return agent_says(self.host, AGENT)

    def signal(self, number):
        """To the front and all its workers: for a stop the front comes first, as it looks after the others,
        and for a continuation last."""
        processes = self.processes()
        for process in processes if number != signal.SIGCONT else processes[::-1]:
            with contextlib.suppress(ProcessLookupError):
                process.kill(number)

    def die(self):
        """Ends at once, with all its workers, as if its host had lost power."""
        workers = children(self.process.pid)
        for process in (self.processes()[0], *workers):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        self.process.wait()
        poll(lambda: all(worker.gone for worker in workers), 60, "the end of all workers")


class Slowed:
    """A context manager in which a node runs for a quarter of the time."""

    def __init__(self, node, on=0.02, off=0.06):
        self.node, self.on, self.off = node, on, off
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.wait(self.on):
            self.node.signal(signal.SIGSTOP)
            time.sleep(self.off)
            self.node.signal(signal.SIGCONT)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.node.signal(signal.SIGCONT)


# The balancer -------------------------------------------------------------------------------------

def balanced(nodes, listen, directory, statistics, tls=None):
    """Returns the configuration of HAProxy as it is shipped, but with these nodes and addresses.
    tls: the directory of a certificate `both.pem` (with its key) and `certificate.pem`: then both
    sides are encrypted."""
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

    def __init__(self, directory, nodes, listen=("127.0.0.1", 8700), statistics=("127.0.0.1", 8404), tls=None):
        super().__init__(*listen)
        self.directory, self.nodes, self.statistics = directory, nodes, Client(*statistics)
        self.answered = collections.Counter()
        self.file, self.log = directory / "haproxy.cfg", directory / "haproxy.log"
        self.file.write_text(balanced(nodes, "%s:%d" % listen, directory, "%s:%d" % statistics, tls))
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
        """Returns the answer of the administrator's socket."""
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
        try:
            poll(there, 60, f"node {node.name} to be {statuses}", 0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()[-2000:]}\n{node.tail()}") from None

    def await_all(self, *statuses):
        for node in self.nodes:
            self.awaits(node, *statuses)


def node_of(answer):
    """Returns the name of the node that has answered; None: the balancer itself."""
    return answer.headers.get("X-Request-Id", "").partition("-")[2] or None


@contextlib.contextmanager
def started(count, net, directory, cache, *options, tls=None, **more):
    """Nodes that are ready."""
    nodes = [Node(i, net, directory / NAMES[i], cache, *options,
                  *(("--listen", f"tls:{net.address(i)}:{TLS}", "--tls-certificate", f"{tls}/certificate.pem",
                     "--tls-key", f"{tls}/key.pem") if tls else ()), **more)
             for i in range(count)]
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
