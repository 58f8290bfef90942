"""Prometheus' text format. ValueError is raised for errors that promtool does not notice: a series
that is there twice, and a histogram that does not add up."""
import functools
import math
import re

NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf"({NAME}(?:\{{.*\}})?) (\S+)( -?\d+)?")


def parse_value(text):
    return {"+Inf": math.inf, "-Inf": -math.inf, "NaN": math.nan}.get(text) or float(text)


@functools.lru_cache(10000)
def parse_series(text):
    """Returns (name, frozenset of labels) of the text before a value."""
    name, _, rest = text.rstrip("}").partition("{")
    found = re.findall(LABEL, rest)
    labels = {key: re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value)
              for key, value in found}
    if not re.fullmatch(f"(?:{LABEL}(?:,|$))*", rest) or len(labels) < len(found):
        raise ValueError(f"labels {rest!r}")
    return name, frozenset(labels.items())


@functools.lru_cache(10000)
def split_bound(key):
    """Returns (the labels of a bucket without its bound, that bound)."""
    bound, = (value for name, value in key if name == "le")
    return key - {("le", bound)}, parse_value(bound)


def total(text, name, **labels):
    """Returns Metrics.total() of a text without reading all of it, for those who ask often."""
    wanted = set(labels.items())
    return sum(parse_value(value) for series, value in re.findall(
        rf"^({name}(?:{{.*}})?) (\S+)", text, re.M) if wanted <= parse_series(series)[1])


class Metrics:
    def __init__(self, text):
        types = dict(re.findall(r"^# TYPE (\S+) (\w+)\n", text, re.M))
        self.families, self.values = set(types), {}  # {name: {frozenset of labels: value}}
        for line in text.splitlines():
            if not line.startswith("#"):
                self.add(line)
        for name, kind in types.items():
            if kind == "histogram":
                self.check_histogram(name)

    def add(self, line):
        if not (match := SAMPLE.fullmatch(line)):
            raise ValueError(line)
        name, labels = parse_series(match[1])
        if labels in self.values.setdefault(name, {}):
            raise ValueError(f"{line!r}: twice")
        self.values[name][labels] = parse_value(match[2])

    def check_histogram(self, name):
        """Buckets grow, the last is +Inf and equals the count, and there is a sum."""
        buckets, counts, sums = (self.values.get(f"{name}_{part}", {})
                                 for part in ("bucket", "count", "sum"))
        found = {labels: [] for labels in counts}
        for key, value in buckets.items():
            labels, bound = split_bound(key)
            found[labels].append((bound, value))
        for labels, pairs in found.items():
            pairs.sort()
            values = [value for _, value in pairs]
            last = math.inf, counts[labels]
            if pairs[-1] != last or values != sorted(values) or sums[labels] < 0:
                raise ValueError(f"{name}{dict(labels)}: {pairs}")

    def samples(self, name, **labels):
        """Returns the samples of this name with at least these labels, as [(labels, value)]."""
        wanted = set(labels.items())
        return [(dict(key), value) for key, value in self.values.get(name, {}).items()
                if wanted <= key]

    def total(self, name, **labels):
        """Returns the sum of those samples."""
        return sum(value for _, value in self.samples(name, **labels))
