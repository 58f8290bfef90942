"""Prometheus' text format, read strictly: errors that a scraper would refuse raise ValueError."""
import functools
import math
import re
from dataclasses import dataclass, field

NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
COMMENT = re.compile(f"# (HELP|TYPE) ({NAME}) (.+)")
SAMPLE = re.compile(rf"({NAME}(?:\{{.*\}})?) (\S+)( -?\d+)?")
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")


@dataclass
class Family:
    name: str
    type: str = None
    help: str = None
    samples: dict = field(default_factory=dict)  # (sample name, frozenset of labels) -> value


class Metrics:
    def __init__(self):
        self.families = {}

    def samples(self, name, **labels):
        """Returns the samples of this name with at least these labels, as [(labels, value)]."""
        wanted = set(labels.items())
        family = self.families.get(name) or self.families.get(
            re.sub(r"_(bucket|sum|count)$", "", name))
        if not family:
            return []
        return [(dict(key), value) for (sample, key), value in family.samples.items()
                if sample == name and wanted <= key]

    def total(self, name, **labels):
        """Returns the sum of those samples."""
        return sum(value for _, value in self.samples(name, **labels))


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


def total(text, name, **labels):
    """Returns the same of a text without reading all of it, for those who ask often."""
    wanted = set(labels.items())
    return sum(parse_value(value) for series, value in re.findall(
        rf"^({name}(?:{{.*}})?) (\S+)", text, re.M) if wanted <= parse_series(series)[1])


def parse(text):
    if not text.endswith("\n"):
        raise ValueError("the last line does not end")
    metrics, last = Metrics(), None
    families = metrics.families
    for line in text.splitlines():
        if comment := COMMENT.fullmatch(line):
            keyword, name, rest = comment[1].lower(), comment[2], comment[3]
            family = families.setdefault(name, Family(name))
            if getattr(family, keyword) is not None or family.samples:
                raise ValueError(f"{line!r}: second time or late")
            setattr(family, keyword, rest)
        elif match := SAMPLE.fullmatch(line):
            name, labels = key = parse_series(match[1])
            family = families.get(name) or families.get(re.sub(r"_(bucket|sum|count)$", "", name))
            if not family or family.name != name and family.type != "histogram":
                raise ValueError(f"{line!r}: no TYPE")
            if last is not family and family.samples:
                raise ValueError(f"{line!r}: the family is torn apart")
            last = family
            if key in family.samples:
                raise ValueError(f"{line!r}: twice")
            family.samples[key] = parse_value(match[2])
        elif line and not line.startswith("#"):
            raise ValueError(line)
    for family in families.values():
        check_family(family)
    return metrics


def check_family(family):
    if family.type not in TYPES or not family.help:
        raise ValueError(f"{family.name} lacks HELP or a known TYPE")
    if family.type == "counter":
        if not family.name.endswith("_total"):
            raise ValueError(f"{family.name} is a counter and does not end in _total")
        if any(value < 0 for value in family.samples.values()):
            raise ValueError(f"{family.name} is below 0")
    if family.type == "histogram":
        check_histogram(family)


@functools.lru_cache(10000)
def split_bound(key):
    """Returns (a histogram sample's labels without its bucket's bound, that bound or None)."""
    labels = dict(key)
    bound = labels.pop("le", None)
    return frozenset(labels.items()), bound and parse_value(bound)


def check_histogram(family):
    """Buckets grow, the last is +Inf and equals the count, and there is a sum."""
    series = {}
    for (name, key), value in family.samples.items():
        labels, bound = split_bound(key)
        part = series.setdefault(labels, {"buckets": []})
        if name.endswith("_bucket"):
            part["buckets"].append((bound, value))
        else:
            part[name[len(family.name):]] = value
    for labels, part in series.items():
        buckets = sorted(part["buckets"])
        counts = [count for _, count in buckets]
        if (not buckets or buckets[-1][0] != math.inf or counts != sorted(counts)
                or counts[-1] != part.get("_count") or part.get("_sum", -1) < 0):
            raise ValueError(f"{family.name}{dict(labels)}: {part}")
