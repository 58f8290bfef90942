"""Prometheus' text format, read strictly: errors that a scraper would refuse raise ValueError."""
import functools
import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
SAMPLE = re.compile(r"([^ {]+(?:\{.*\})?) (\S+)( -?\d+)?")
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")


class Family:
    def __init__(self, name):
        self.name, self.type, self.help = name, None, None
        self.samples = {}  # (sample name, frozenset of labels) -> value


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
        """Returns the sum of the samples of this name with at least these labels; 0 if there is
        none."""
        return sum(value for _, value in self.samples(name, **labels))


def parse_value(text):
    return {"+Inf": math.inf, "-Inf": -math.inf, "NaN": math.nan}.get(text) or float(text)


@functools.lru_cache(10000)
def parse_series(text):
    """Returns (name, frozenset of labels) of the text before a value. Most of it stands in every
    text."""
    match = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?", text)
    if not match:
        raise ValueError(text)
    return match[1], frozenset(parse_labels(match[2] or "").items())


def parse_labels(text):
    labels, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        if not match:
            raise ValueError(f"labels {text!r}")
        name, value = match[1], match[2]
        if name in labels:
            raise ValueError(f"label {name} twice in {text!r}")
        labels[name] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value)
        at = match.end()
        if at < len(text):
            if text[at] != ",":
                raise ValueError(f"labels {text!r}")
            at += 1
    return labels


def family_name(sample, families):
    """Returns the family that a sample belongs to: histograms have three kinds of samples."""
    for suffix in ("_bucket", "_sum", "_count"):
        base = sample.removesuffix(suffix)
        if base != sample and base in families and families[base].type == "histogram":
            return base
    return sample


def total(text, name, **labels):
    """Returns the sum of the samples of this name with at least these labels, whatever else stands
    there: for those who ask often."""
    wanted = set(labels.items())
    return sum(parse_value(value) for series, value in
               re.findall(rf"^({name}(?:{{.*}})?) (\S+)", text, re.M) if wanted <= parse_series(series)[1])


def parse(text):
    if not text.endswith("\n"):
        raise ValueError("the last line does not end")
    metrics, last = Metrics(), None
    families = metrics.families
    for line in text.splitlines():
        if not line:
            continue
        if line.startswith("# HELP ") or line.startswith("# TYPE "):
            _, keyword, name, *rest = line.split(" ", 3)
            if not NAME.fullmatch(name):
                raise ValueError(line)
            family = families.setdefault(name, Family(name))
            attribute = keyword.lower()
            if getattr(family, attribute) is not None or family.samples:
                raise ValueError(f"{line!r}: second time or late")
            if keyword == "TYPE" and rest[0] not in TYPES:
                raise ValueError(line)
            setattr(family, attribute, rest[0] if rest else "")
            continue
        if line.startswith("#"):
            continue
        match = SAMPLE.fullmatch(line)
        if not match:
            raise ValueError(line)
        key = parse_series(match[1])
        name = family_name(key[0], families)
        if name not in families:
            raise ValueError(f"{line!r}: no TYPE")
        family = families[name]
        if last not in (None, name) and family.samples:
            raise ValueError(f"{line!r}: the family is torn apart")
        last = name
        if key in family.samples:
            raise ValueError(f"{line!r}: twice")
        family.samples[key] = parse_value(match[2])
    for family in families.values():
        check_family(family)
    return metrics


def check_family(family):
    if family.type is None or not family.help:
        raise ValueError(f"{family.name} lacks HELP or TYPE")
    if family.type == "counter":
        if not family.name.endswith("_total"):
            raise ValueError(f"{family.name} is a counter and does not end in _total")
        if any(value < 0 for value in family.samples.values()):
            raise ValueError(f"{family.name} is below 0")
    if family.type == "histogram":
        check_histogram(family)


@functools.lru_cache(10000)
def split_bound(key):
    """Returns (the labels of a histogram's sample without the bound of its bucket, that bound or
    None)"""
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
