"""Real files and what becomes of them when they are damaged: every image of Debian's source packages,
whole and mutated, posted to two services with different histories, by every lane.

A post has a name, DIGEST:KIND:SEED, from which it is made again: --only NAME."""
import collections
import concurrent.futures
import contextlib
import functools
import hashlib
import http.client
import itertools
import pathlib
import random
import re
import sys
import tempfile
import zlib

import beside
from measure import measured, memory
from mutations import MUTATIONS, format_of
from packages import extract
from reloads import reload
from service import ONE_DEVICE, left_over, target_of
from soak import BLOCKS, judge

MOST = 16000000, beside.MOST  # pixels of a file, and of those that wide() names: processor time, and memory here, follow them
OPTIONS = ("--codecs", "1", "--jpeg-on-any", "yes", "--verify-share", "0", "--log-level", "notice")
LANES = {"jpeg": ("cpu", "gpu")}
EXPECTED = {200, 413, 415, 422}
REFUSED = re.compile(r"send the image as the body|of \w+ a single picture is read")  # with 400
SECONDS = 5.0        # processor time for one post
SHARE = 40e6         # bytes and samples of a file that all its mutations may come to
FLOORS = {"pss": 64e6, "fds": 2}  # memory: two codec workers keep 50 to 230 MB, as their latest pictures will have it
PIXELS = [("convolve", {"kernel": "1"})], {"format": "raw"}
# Mutated files are asked for in one of these ways.
WAYS = PIXELS, PIXELS, (PIXELS[0], {"format": "raw", "pages": "all"}), ([("gaussian", {"sigma": 1.1})], {})


class Corpus:
    """Files by digest: {digest: path}."""

    def __init__(self, files):
        self.files, self.formats, self.cost, self.kin = files, {}, {}, collections.defaultdict(list)
        for digest in sorted(files):
            with open(files[digest], "rb") as file:
                kind = self.formats[digest] = format_of(file.read(64))
            self.kin[kind].append(digest)
            self.cost[digest] = SHARE / 2 if kind == "other" else 0  # no image: two of its mutations will do

    def format(self, name):
        return self.formats[name.partition(":")[0]]

    def body(self, name):
        digest, kind, seed = name.split(":")
        data = self.files[digest].read_bytes()
        donor = [self.files[seed.partition("-")[2]].read_bytes()] if kind == "splice" else []
        return data if kind == "whole" else MUTATIONS[kind](data, random.Random(name), *donor)

    def names(self, number, seed):
        """Returns the names of a round: the first one has whole files, of the later ones each has a
        mutation of each file that is not too large for so many."""
        if not number:
            return [f"{digest}:whole:0" for digest in self.formats]
        found = []
        for at, digest in enumerate(self.formats):
            if self.cost[digest] * number <= SHARE:
                kind = list(MUTATIONS)[(at + number) % len(MUTATIONS)]
                kin = self.kin[self.formats[digest]]
                donor = f"-{kin[(at * 7 + number) % len(kin)]}" if kind == "splice" else ""
                found.append(f"{digest}:{kind}:{seed + number}{donor}")
        return found


def wide(name):
    """Whether a file may have more pixels than others: whole ones, and each eighth round."""
    return int(name.split(":")[2].partition("-")[0]) % 8 == 0


Told = collections.namedtuple("Told", "status answer seconds lost device")


def processes(service):
    """Yields (kind, process)."""
    for process in service.processes():
        yield "front" if process.pid == service.process.pid else process.name.removeprefix("convolved-"), process


def busy(service):
    """Returns {(kind, process id): seconds of processors}."""
    return {(kind, process.pid): process.busy for kind, process in processes(service)}


def post(service, name, body, lane):
    """Asks for what the name decides."""
    filters, options = PIXELS if ":whole:" in name else WAYS[zlib.crc32(name.encode()) % len(WAYS)]
    try:
        answer = service.post(target_of(filters, **options, codec=lane, variant="general"), body)
    except (OSError, http.client.HTTPException) as error:
        return 0, repr(error), None
    if answer.status == 200:
        return 200, f"{answer.headers['X-Image']} {hashlib.sha256(answer.body).hexdigest()}", answer
    return answer.status, answer.problem["detail"], answer


def ask(service, corpus, names):
    """Posts these files one after the other, by every lane; returns {(name, lane): Told}."""
    told, before = {}, busy(service)
    for name in names:
        body = corpus.body(name)
        for lane in LANES.get(corpus.format(name), (None,)):
            status, text, answer = post(service, name, body, lane)
            after = busy(service)
            gone = [process for process in before if process not in after]
            spent = sum(seconds - before.get(process, 0) for process, seconds in after.items())
            told[name, lane] = Told(status, text, spent, gone, bool(answer) and "cpu0" in answer.headers.get("X-Codec", ""))
            before = after
            if status == 200 and name.endswith(":whole:0"):
                width, height, bands, _ = answer.kind
                corpus.cost[name.partition(":")[0]] = len(body) + width * height * bands
    return told


def sample(service):
    """Returns {(kind of process, measure): value}."""
    seen = collections.Counter()
    for kind, process in processes(service):
        seen.update({(kind, "pss"): memory(process), (kind, "fds"): len(process.descriptors)})
    return seen


class Ledger:
    """Counts of a run, and what is wrong."""

    def __init__(self):
        self.posts, self.finds, self.lost = 0, {}, collections.defaultdict(list)
        self.rows = collections.defaultdict(lambda: {
            "whole": 0, "mutated": 0, "posts": 0, "by device": 0, "statuses": collections.Counter(), "workers lost": 0,
            "worst s": 0.0, "worst": ""})

    def note(self, service, corpus, told):
        for (name, lane), one in told.items():
            row = self.rows[corpus.format(name)]
            row["posts"] += 1
            row["statuses"][one.status] += 1
            row["by device"] += one.device
            row["worst s"], row["worst"] = max((row["worst s"], row["worst"]), (one.seconds, name))
            self.posts += 1
            for kind, pid in one.lost:
                found = re.search(rf"\(pid {pid}\) has ended: (.*)", service.said)
                why = f"{kind}: {found[1] if found else 'for no reason in the log'}"
                self.lost[why].append(name)
                row["workers lost"] += 1
                if not why.startswith("codec"):
                    self.finds[name, lane] = f"lost {why}"
            if one.status not in EXPECTED and not (one.status == 400 and REFUSED.search(one.answer)):
                self.finds[name, lane] = f"{one.status}: {one.answer}"
            elif one.seconds > SECONDS:
                self.finds[name, lane] = f"{one.seconds:.1f} s of processors, {one.status}"

    def compare(self, corpus, ours, others):
        """All lanes of both services must tell the same of a file."""
        first = {}
        for (name, lane), one in itertools.chain(ours.items(), others.items()):
            if name not in first:
                self.rows[corpus.format(name)]["whole" if ":whole:" in name else "mutated"] += 1
            right = first.setdefault(name, one)
            if right[:2] != one[:2]:
                self.finds.setdefault((name, lane), f"unlike: {right[:2]} and {one[:2]}")

    def grown(self, samples):
        """Yields what grows in the second half of the run."""
        most = {what: max(seen.get(what, 0) for _, seen in samples) for what in samples[-1][1]}
        samples = samples[len(samples) // 2:]
        if len(samples) < 2 * BLOCKS:
            return
        for what in samples[-1][1]:
            line = judge([at for at, _ in samples], [seen.get(what, 0) for _, seen in samples], FLOORS[what[1]])
            yield {"of": what[0], "measure": what[1], "first": line.first, "last": line.last, "most": most[what],
                   "grows": "yes" if line.grows else ""}
            if line.grows:
                self.finds[what] = f"grows from {line.first:.0f} to {line.last:.0f}"

    def table(self):
        for kind, row in sorted(self.rows.items()):
            yield {"format": kind, **row, "statuses": dict(sorted(row["statuses"].items()))}
        rows = list(self.rows.values())
        yield {"format": "all", **{key: sum(row[key] for row in rows) for key in ("whole", "mutated", "posts", "by device")},
               "statuses": dict(sorted(sum((row["statuses"] for row in rows), collections.Counter()).items())),
               "workers lost": sum(map(len, self.lost.values())),
               **dict(zip(("worst s", "worst"), max((row["worst s"], row["worst"]) for row in rows)))}
        for why, names in self.lost.items():
            yield {"lost": why, "times": len(names), "such as": " ".join(names[:4])}
        for (name, lane), what in self.finds.items():
            yield {"find": name, "lane": lane, "what": what}


def prepare(services, names):
    """Lets them read as many pixels as these files of a round may have, and waits until their devices decode JPEGs."""
    for service in services:
        reload(service, f"max-pixels={MOST[wide(names[0])]}\n")
        service.compiled(lambda: service.get("/v1/devices").json()["devices"][0]["jpeg"], what="the programs for JPEG")


def post_each(services, corpus, ledger, *orders):
    """Posts files of a round to each service in its order, to all at once; returns what they told."""
    prepare(services, orders[0])
    with concurrent.futures.ThreadPoolExecutor(len(services)) as pool:
        told = list(pool.map(ask, services, [corpus] * len(services), orders))
    for service, one in zip(services, told):
        ledger.note(service, corpus, one)
    ledger.compare(corpus, *told)
    return told


def run(services, corpus, posts, seed, ledger, batch=400):
    """Yields rows while it posts; the finds are in the ledger. The second service gets each batch
    backwards, so what its processes have seen before a file is something else."""
    samples, rounds = [], (corpus.names(number, seed) for number in itertools.count())
    for part in (names[at:at + batch] for names in rounds for at in range(0, len(names), batch)):
        post_each(services, corpus, ledger, part, part[::-1])
        samples.append((ledger.posts, sum(map(sample, services), collections.Counter())))
        print(f"{ledger.posts} posts, {len(ledger.finds)} finds", file=sys.stderr)
        if ledger.posts >= posts:
            break
    for service in services:
        if left := left_over(service.rest()):
            ledger.finds["at rest", service.port] = str(left)
    yield from ledger.grown(samples)
    yield from ledger.table()


@contextlib.contextmanager
def pair(start):
    """Two services; start(*options) makes one."""
    with tempfile.NamedTemporaryFile(suffix=".conf") as file, contextlib.ExitStack() as stack:
        services = [stack.enter_context(start(*OPTIONS, "--config", file.name, environment=ONE_DEVICE)) for _ in range(2)]
        for service in services:
            service.file = pathlib.Path(file.name)
        yield services


def corpus(options):
    """Every image of Debian's source packages of image libraries, whole and mutated, to two services
    with different histories, by every lane: no 5xx, no more than 5 s of processors for any post, no
    lost process but a codec worker, the same answer from both. It fails at any find; --only posts one
    again. Packages are fetched once, into the user's cache directory. One that no mirror has is named,
    and no find: that says nothing about the service."""
    files, ledger = {}, Ledger()
    for package in options.packages:
        version, found = extract(package)
        files |= found
        yield {"package": package, "version": version or "not fetched: no mirror has its archives", "files": len(found)}
    if not files:
        sys.exit("no package can be fetched")
    every = Corpus(files)
    names = [options.only] if options.only else every.names(0, options.seed)
    with pair(functools.partial(measured, *options.service)) as services:
        if ":whole:" in names[0]:
            prepare(services, names)
            yield from beside.beside(services[0], target_of(PIXELS[0], **PIXELS[1]), every, names)
        if options.only:
            told = post_each(services, every, ledger, names, names)
            yield from ({"name": name, "lane": lane, **one._asdict()} for every in told for (name, lane), one in every.items())
        else:
            yield from run(services, every, options.posts, options.seed, ledger)
    if ledger.finds:
        sys.exit(f"{len(ledger.finds)} finds")
