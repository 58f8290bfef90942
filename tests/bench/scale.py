"""1 to 1,000 nodes behind balancers, simulated by bench_simulate: the figure and the tables of
docs/scale.md."""
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess

from service import BUILD

LOADS = 0.5, 0.7, 0.8, 0.9, 1.0, 1.2
# Ways to choose a node: their names in the figure, and the options.
WAYS = {
    "random": ("random", {}),
    "weights": ("random, by weight", {"weights": "wait"}),
    "weights-1": ("the same, max-wait = 1 s", {"weights": "wait", "max-wait": 1}),
    "two-choices": ("two choices", {"balancing": "two-choices"}),
    "leastconn": ("fewest for its weight", {"balancing": "leastconn", "weights": "wait"}),
}
# Nodes: balancers, seconds, the share of these before anything is measured, loads.
SIZES = {1: (1, 300, 0.2, LOADS), 10: (2, 50, 0.2, LOADS), 100: (6, 9, 0.4, LOADS),
         1000: (40, 3.5, 0.6, (0.5, 0.8, 1.0, 1.2))}
SLOW = 4


def case(nodes, way, load, **more):
    balancers, seconds, warmup, _ = SIZES[nodes]
    return way, {"nodes": nodes, "balancers": balancers, "seconds": seconds, "warmup": warmup, "load": load,
                 **WAYS[way][1], **more}


def ways(nodes):
    """One node is not chosen; ways that take long for a thousand are left out."""
    return [way for way in WAYS if way == "random" or nodes > 1 and (way, nodes) != ("weights-1", 1000)]


def cases():
    for nodes, (*_, loads) in SIZES.items():
        for way in ways(nodes):
            for load in loads:
                yield case(nodes, way, load)
                if nodes > 1:
                    yield case(nodes, way, load, slow=SLOW)
    for way in WAYS:
        yield case(100, way, 0.7, bursts=1)
        for load in (0.8, 1.2):
            yield case(10, way, load, kind="gpu", seconds=5, warmup=0.35)


def simulate(way, options, share):
    options = {**options, "seconds": options["seconds"] * share}
    words = [str(word) for name, value in options.items() for word in ("--" + name, value)]
    done = subprocess.run([BUILD / "bench_simulate", *words], check=True, stdout=subprocess.PIPE)
    run = json.loads(done.stdout)
    return {**{name: run[name] for name in ("kind", "nodes", "slow", "bursts", "load")}, "way": way,
            "goodput": run["goodput"] / run["capacity"],
            **{name: run[name] for name in ("p50_ms", "p99_ms", "p999_ms")},
            "refused": run["refused"] / run["offered"], "sent again": run["retries"] / run["requests"]}


def simulate_all(share):
    """In as many processes as there are cores, the longest first."""
    ordered = sorted(cases(), key=lambda one: -one[1]["nodes"] * one[1]["seconds"] * one[1]["load"])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(lambda one: simulate(*one, share), ordered))
    return sorted(runs, key=lambda run: (*(run[name] for name in ("kind", "bursts", "slow", "nodes", "load")),
                                         list(WAYS).index(run["way"])))


def pick(runs, **wanted):
    wanted = {"slow": 1, "bursts": 0, "kind": "cpu", **wanted}
    return [run for run in runs if all(run[name] == value for name, value in wanted.items())]


STYLE = """
svg { font: 12px sans-serif; }
.ground { fill: #ffffff; } text { fill: #1f2328; } .axis { stroke: #59636e; fill: none; }
.grid { stroke: #d1d9e0; fill: none; } .ideal { stroke: #59636e; fill: none; stroke-dasharray: 2 3; }
.line { fill: none; stroke-width: 2; } .title { font-weight: bold; }
.random { stroke: #b35900; } .weights { stroke: #8250df; stroke-dasharray: 6 3; }
.two-choices { stroke: #0969da; } .weights-1 { stroke: #bf3989; stroke-dasharray: 2 2; }
.leastconn { stroke: #1a7f37; }
@media (prefers-color-scheme: dark) {
.ground { fill: #0d1117; } text { fill: #e6edf3; } .axis, .ideal { stroke: #9198a1; } .grid { stroke: #30363d; }
.random { stroke: #f0883e; } .weights { stroke: #bc8cff; } .two-choices { stroke: #58a6ff; }
.weights-1 { stroke: #ff7ac6; } .leastconn { stroke: #56d364; }
}
"""
WIDTH, HEIGHT, LEFT, TOP, GAP_X, GAP_Y = 200, 150, 62, 62, 24, 58
LOAD_MIN, LOAD_MAX = 0.45, 1.25


class Panel:
    """Axes at a place of the figure; y is linear, or logarithmic."""

    def __init__(self, column, row, low, high, logarithmic):
        self.x0, self.y0 = LEFT + column * (WIDTH + GAP_X), TOP + row * (HEIGHT + GAP_Y)
        self.low, self.high, self.logarithmic = low, high, logarithmic
        self.parts = []

    def x(self, load):
        return self.x0 + WIDTH * (load - LOAD_MIN) / (LOAD_MAX - LOAD_MIN)

    def y(self, value):
        scale = math.log if self.logarithmic else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.y0 + HEIGHT * (1 - min(max(share, 0), 1))

    def axes(self, title, ticks, labelled):
        for value, label in ticks:
            y = self.y(value)
            self.parts.append(f'<path class="grid" d="M{self.x0} {y:.1f}h{WIDTH}"/>')
            if labelled:
                self.parts.append(f'<text x="{self.x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        for load in LOADS:
            self.parts.append(f'<text x="{self.x(load):.1f}" y="{self.y0 + HEIGHT + 16}" '
                              f'text-anchor="middle" font-size="10">{load:g}</text>')
        self.parts.append(f'<rect class="axis" x="{self.x0}" y="{self.y0}" width="{WIDTH}" height="{HEIGHT}"/>')
        self.parts.append(f'<text class="title" x="{self.x0}" y="{self.y0 - 8}">{title}</text>')

    def line(self, style, points):
        path = "M" + "L".join(f"{self.x(load):.1f} {self.y(value):.1f}" for load, value in points)
        self.parts.append(f'<path class="{style}" d="{path}"/>')


MILLISECONDS = [(100, "100 ms"), (200, "200"), (500, "500"), (1000, "1 s"), (2000, "2"), (5000, "5"), (10000, "10"),
                (20000, "20 s")]
SHARES = [(share, f"{share:g}") for share in (0, 0.25, 0.5, 0.75, 1)]
# The contents of a row of panels: its title, its figure of a run, its ticks, whether they are
# logarithmic, and the factor of the first node.
ROWS = (
    ("goodput", "goodput", SHARES, False, 1),
    ("p99", "p99_ms", MILLISECONDS, True, 1),
    ("p99, a slow node", "p99_ms", MILLISECONDS, True, SLOW),
    ("p99.9, a slow node", "p999_ms", MILLISECONDS, True, SLOW),
)


def legend(column, row):
    x, y = LEFT + column * (WIDTH + GAP_X), TOP + row * (HEIGHT + GAP_Y)
    for i, (name, (text, _)) in enumerate(WAYS.items()):
        at = y + 20 + 22 * i
        yield f'<path class="line {name}" d="M{x} {at}h28"/><text x="{x + 36}" y="{at + 4}">{text}</text>'
    yield f'<path class="ideal" d="M{x} {y + 130}h28"/><text x="{x + 36}" y="{y + 134}">what could be done</text>'
    for i, text in enumerate(("A slow node: the first one", f"takes {SLOW} times as long as", "the others.")):
        yield f'<text x="{x}" y="{y + 164 + 16 * i}">{text}</text>'


def draw(runs):
    width, height = LEFT + len(SIZES) * (WIDTH + GAP_X), TOP + len(ROWS) * (HEIGHT + GAP_Y) - 14
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" role="img">',
             "<title>Goodput and latency of 1 to 1,000 nodes against load</title>", f"<style>{STYLE}</style>",
             f'<rect class="ground" width="{width}" height="{height}"/>',
             f'<text class="title" x="{LEFT}" y="24">Nodes of two cores behind balancers, simulated; across: '
             "requests, as a share of what all nodes can do</text>", *legend(0, 2)]
    for column, nodes in enumerate(SIZES):
        for row, (title, figure, ticks, logarithmic, slow) in enumerate(ROWS):
            if slow > 1 and nodes == 1:
                continue
            panel = Panel(column, row, ticks[0][0], ticks[-1][0] * (1 if logarithmic else 1.1), logarithmic)
            panel.axes(f"{nodes:,} node{'s' * (nodes > 1)}: {title}", ticks, column == (slow > 1))
            if not logarithmic:
                panel.line("ideal", [(load, min(load, 1)) for load in (LOAD_MIN, 1, LOAD_MAX)])
            for way in WAYS:
                points = [(run["load"], run[figure]) for run in pick(runs, nodes=nodes, way=way, slow=slow)]
                if points:
                    panel.line(f"line {way}", points)
            parts += panel.parts
    return "\n".join([*parts, "</svg>", ""])


def scale(options):
    """Simulates 1 to 1,000 nodes behind balancers: goodput and latency against load, the figure of
    docs/scale.md and its rows. Goodput and refusals are shares: of what the nodes can do, and of
    all requests. A --share of 0.05 of the simulated time only shows that it works."""
    os.nice(10)
    runs = json.loads(pathlib.Path(options.draw).read_text()) if options.draw else simulate_all(options.share)
    pathlib.Path(options.output).write_text(draw(runs))
    yield from runs
