"""The order of the rooms (docs/architecture.md): a file includes only files of its own room and of
those after it, and no two modules include each other, directly or through others. A room has at most
MODULES modules, and a module of fewer than LINES lines more than one user."""
import graphlib
import pathlib
import re
import sys

GROUND = "process wire filters image base"
ORDERS = tuple(f"{rooms} {GROUND}" for rooms in (
    "front front/api front/workers front/jobs front/config front/base link reference",
    "http link",
    "codec codec/formats codec/metadata reference",
    "trace",
    "bench device device/plan device/cl reference",
))


MODULES, LINES = 18, 80
ALONE = {"codec/metadata/known_memory": "replaces functions of the C library"}


def included(file):
    return re.findall(r'^#include "([\w/]+(?:\.def)?)(?:\.h)?"', file.read_text(), re.M)


def modules(top):
    """Returns {module: modules that its files include}; a module is the path of its .c and .h
    without the ending, or of a .def, which is a table of its own."""
    found = {}
    for file in sorted(top.rglob("*.[ch]")) + sorted(top.rglob("*.def")):
        name = str(file.relative_to(top)).removesuffix(".c").removesuffix(".h")
        found.setdefault(name, set()).update(set(included(file)) - {name})
    return {name: {other for other in others if other in found} for name, others in found.items()}


def room(module):
    return module.rpartition("/")[0]


def backwards(graph):
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


def crowded(graph):
    for name in sorted(set(map(room, graph))):
        count = sum(room(module) == name for module in graph)
        if count > MODULES:
            yield f"{name}: {count} modules, at most {MODULES}"


def slight(graph, top):
    for module in sorted(graph):
        parts = [part for part in (top / f"{module}.c", top / f"{module}.h") if part.exists()]
        lines = sum(len(part.read_text().splitlines()) for part in parts)
        users = [other for other, others in graph.items() if module in others]
        if parts and lines < LINES and len(users) == 1 and module not in ALONE:
            yield f"{module}: {lines} lines for {users[0]} alone"


def circles(graph):
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield "a circle: " + " -> ".join(reversed(error.args[1]))


def main(*top):
    top = pathlib.Path(*top or [pathlib.Path(__file__).resolve().parents[2] / "daemon"])
    graph = modules(top)
    findings = [*backwards(graph), *circles(graph), *crowded(graph), *slight(graph, top)]
    print(*findings, sep="\n", file=sys.stderr, end="\n" if findings else "")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main(*sys.argv[1:])
