"""The order of the rooms (docs/architecture.md): a file includes only files of its own room and of
those after it, and no two modules include each other, directly or through others."""
import pathlib
import re
import sys

ORDERS = (
    "front front/api front/workers front/jobs front/config front/base link base reference common",
    "http link base common",
    "codec reference common",
    "trace common",
    "bench device device/plan device/cl reference common",
)


def included(file):
    return re.findall(r'^#include "([\w/]+(?:\.def)?)(?:\.h)?"', file.read_text(), re.M)


def modules(top):
    """{module: modules that its files include}; a module is the path of its .c and .h without the
    ending, or of a .def, which is a table of its own."""
    found = {}
    for file in sorted(top.rglob("*.[ch]")) + sorted(top.rglob("*.def")):
        name = str(file.relative_to(top)).removesuffix(".c").removesuffix(".h")
        found.setdefault(name, set()).update(set(included(file)) - {name})
    return {name: {other for other in others if other in found} for name, others in found.items()}


def room(module):
    return module.rpartition("/")[0]


def backwards(graph):
    """Includes that the order forbids."""
    below = {}
    for order in ORDERS:
        rooms = order.split()
        for i, name in enumerate(rooms):
            below.setdefault(name, set(rooms[i:]))
    for module, others in graph.items():
        if room(module) not in below:
            yield f"daemon/{module}: {room(module)} is not in ORDERS"
            continue
        for other in sorted(others):
            if room(other) not in below[room(module)]:
                yield f"daemon/{module} includes {other}, which is above it"


def circles(graph):
    """Every circle that a depth-first walk finds, once."""
    state = {}

    def walk(module, path):
        state[module] = "open"
        for other in sorted(graph[module]):
            if state.get(other) == "open":
                yield "a circle: " + " -> ".join([*path[path.index(other):], other])
            elif other not in state:
                yield from walk(other, [*path, other])
        state[module] = "closed"
    for module in graph:
        if module not in state:
            yield from walk(module, [module])


def main(*top):
    graph = modules(pathlib.Path(*top or [pathlib.Path(__file__).resolve().parents[2] / "daemon"]))
    findings = [*backwards(graph), *circles(graph)]
    print(*findings, sep="\n", file=sys.stderr, end="\n" if findings else "")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main(*sys.argv[1:])
