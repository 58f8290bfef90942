"""Real files and what becomes of them when they are damaged: every image of Debian's source packages,
whole and mutated, posted to two services with different histories, by every lane.

A post has a name, DIGEST:KIND:SEED, from which it is made again: --only NAME."""
import collections
import concurrent.futures
import contextlib
import hashlib
import http.client
import itertools
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zlib

import numpy as np
from PIL import Image, ImageOps

from measure import CACHE, measured, memory
from service import ONE_DEVICE, left_over, target_of
from soak import BLOCKS, FLOORS, judge

PLACE = CACHE.with_name("convolved-corpus")
MAGIC = {"jpeg": rb"\xff\xd8\xff", "png": rb"\x89PNG\r\n\x1a\n", "gif": rb"GIF8[79]a", "webp": rb"RIFF....WEBP",
         "tiff": rb"II[*+]\0|MM\0[*+]", "bmp": rb"BM.{12}[\x0c(48@l|]\0\0\0", "pnm": rb"P[1-7Ff]\s", "heif": rb"....ftyp",
         "jxl": rb"\xff\n|\0\0\0\x0cJXL ", "hdr": rb"#\?R"}
SUFFIX = re.compile(r"\.(jpe?g|jfif|png|apng|gif|webp|tiff?|bmp|dib|p[bgpnaf]m|heic|heif|avif|jxl|hdr|jp2|j2k|jpf|ico|icns|cur|"
                    r"tga|psd|pcx|xpm|xbm|svg|wbmp|qtif|fits|exr|mng|miff|sgi|fli|dcx|im|ras|crw|cr2|orf|nef|pict?)"
                    r"(\.gz|\.xz|\.bz2)?$", re.I)
OPTIONS = ("--codecs", "1", "--jpeg-on-any", "yes", "--verify-share", "0")
LANES = {"jpeg": ("cpu", "gpu")}
EXPECTED = {200, 413, 415, 422}  # 400: of an empty file
SECONDS = 5.0        # of processors, for one post
SHARE = 40e6         # bytes and samples of a file that all its mutations may come to
PIXELS = [("convolve", {"kernel": "1"})]
GAUSSIAN = [("gaussian", {"sigma": 1.1})]


# Files --------------------------------------------------------------------------------------------

def mirror():
    """Returns where this system has its packages from, and its release."""
    release = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)[1]
    for file in sorted(pathlib.Path("/etc/apt").glob("sources.list*/**/*.sources")):
        for part in re.split(r"\n\s*\n", file.read_text()):
            fields = dict(re.findall(r"^([\w-]+):\s*(\S+)", part, re.M))
            if fields.get("Suites") == release:
                return fields["URIs"], release
    for file in [pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*.list")]:
        found = re.search(rf"^deb(?:-src)?\s+(?:\[.*?\]\s+)?(\S+)\s+{release}\s", file.read_text() if file.exists() else "", re.M)
        if found:
            return found[1], release
    sys.exit(f"corpus: no source of packages for {release} in /etc/apt")


def fetch(package):
    """Returns the archives of a source package, fetched once. The system's own sources stay as they are."""
    place = PLACE / "archives" / package.partition("/")[0]
    apt = [f"-oDir::State::Lists={PLACE}/lists", f"-oDir::Etc::SourceList={PLACE}/sources.list",
           "-oDir::Etc::SourceParts=/dev/null", f"-oDir::Cache={PLACE}/apt", "-qq"]
    if not place.exists():
        if not (PLACE / "lists").exists():
            (PLACE / "lists/partial").mkdir(parents=True)
            (PLACE / "apt/archives/partial").mkdir(parents=True)
            (PLACE / "sources.list").write_text("deb-src {} {} main\n".format(*mirror()))
            subprocess.run(["apt-get", *apt, "update"], check=True)
        with tempfile.TemporaryDirectory(dir=PLACE) as fresh:
            for name in package.split("/"):
                if not subprocess.run(["apt-get", *apt, "--download-only", "source", name], cwd=fresh, check=False,
                                      stdout=subprocess.DEVNULL).returncode:
                    break
            else:
                sys.exit(f"corpus: cannot fetch {package}")
            place.parent.mkdir(exist_ok=True)
            os.rename(fresh, place)
            os.mkdir(fresh)
    return sorted(path for path in place.iterdir() if ".tar." in path.name and path.suffix != ".asc")


def format_of(data):
    return next((name for name, magic in MAGIC.items() if re.match(magic, data, re.S)), "other")


def extract(package):
    """Returns {digest: path} of a package's images, by their first bytes or their names; each is there once."""
    place, listed = PLACE / "files", PLACE / f"{package.partition('/')[0]}.files"
    if not listed.exists():
        place.mkdir(parents=True, exist_ok=True)
        names = {}
        for archive in fetch(package):
            with tarfile.open(archive) as members:
                for member in members:
                    if member.isfile() and member.size:
                        data = members.extractfile(member).read()
                        if format_of(data[:64]) != "other" or SUFFIX.search(member.name):
                            digest = hashlib.sha256(data).hexdigest()[:16]
                            names[digest] = member.name
                            (place / digest).write_bytes(data)
        listed.write_text("".join(f"{digest} {name}\n" for digest, name in sorted(names.items())))
    return {line.split()[0]: place / line.split()[0] for line in listed.read_text().splitlines()}


# Mutations ----------------------------------------------------------------------------------------

def sizes(data):
    """Returns where a file tells its width and height: [(start, end, code)], code being struct's or
    "text"."""
    kind = format_of(data)
    if kind == "png":
        return [(16, 20, ">I"), (20, 24, ">I")]
    if kind == "gif":
        table = 3 << (data[10] & 7) + 1 if data[10] & 128 else 0
        image = data.find(b",", 13 + table)
        return [(at, at + 2, "<H") for at in (6, 8, *((image + 5, image + 7) if image > 0 else ()))]
    if kind == "bmp":
        return [(18, 20, "<H"), (20, 22, "<H")] if data[14] == 12 else [(18, 22, "<i"), (22, 26, "<i")]
    if kind == "webp":
        at = {b"VP8 ": (26, 28), b"VP8L": (21, 22), b"VP8X": (24, 27)}.get(data[12:16], ())
        return [(start, start + 2, "<H") for start in at]
    if kind == "jpeg":
        at = 2
        while at + 9 < len(data) and data[at] == 0xff:
            if data[at + 1] & 0xf0 == 0xc0 and data[at + 1] not in (0xc4, 0xc8, 0xcc):
                return [(at + 5, at + 7, ">H"), (at + 7, at + 9, ">H")]
            at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    if kind == "tiff" and data[2:4] in (b"*\0", b"\0*"):
        order = "<" if data[:1] == b"I" else ">"
        first = struct.unpack(order + "I", data[4:8].ljust(4, b"\0"))[0]
        entries = range(first + 2, min(first + 2 + 12 * 40, len(data) - 12), 12)
        return [(at + 8, at + 10, order + "H") if field == 3 else (at + 8, at + 12, order + "I") for at in entries
                for tag, field in (struct.unpack(order + "HH", data[at:at + 4]),) if tag in (256, 257)][:2]
    if kind == "heif" and (at := data.find(b"ispe")) > 0:
        return [(at + 8, at + 12, ">I"), (at + 12, at + 16, ">I")]
    text = {"pnm": rb"P[1-7Ff]\s+(?:#.*\n|WIDTH )*(\d+)\s+(?:HEIGHT )?(\d+)", "hdr": rb"(?s).*?\n[-+]Y (\d+) [-+]X (\d+)\n"}.get(kind)
    found = text and re.match(text, data)
    return [(*found.span(group), "text") for group in (1, 2)] if found else []


def resized(data, rng):
    """Rewrites one of the sizes that a file tells, or both; of a file without them, any two bytes."""
    body = bytearray(data)
    places = sizes(data) or [(at, at + 2, ">H") for at in (rng.randrange(len(data)),)]
    for start, end, code in sorted(rng.sample(places, rng.randint(1, min(2, len(places)))), reverse=True):
        old = bytes(body[start:end])
        if code == "text":
            value = int(old)
        elif len(old) == struct.calcsize(code):
            value, = struct.unpack(code, old)
        else:
            continue
        value = rng.choice((0, 1, value - 1, value + 1, value // 2, value * 2, value + 8, 65535, rng.randrange(1 << 14)))
        most = (1 << 31) - 1 if code[1] in "Iie" else 65535
        value = max(0, min(value, most))
        body[start:end] = b"%d" % value if code == "text" else struct.pack(code, value)
    if data[12:16] == b"IHDR":
        body[29:33] = struct.pack(">I", zlib.crc32(body[12:29]))
    return bytes(body)


def flipped(data, rng):
    body = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        # Half of them at the front, where headers are.
        body[int(rng.randrange(len(body)) * rng.choice((1, rng.random() ** 4)))] ^= 1 << rng.randrange(8)
    return bytes(body)


def spliced(data, rng, donor):
    """The head of a file, then the rest of another one, from the same place or any."""
    at = rng.randrange(len(data))
    return data[:at] + donor[at if at < len(donor) and rng.random() < 0.5 else rng.randrange(len(donor)):]


MUTATIONS = {"cut": lambda data, rng: data[:rng.randrange(len(data))], "bits": flipped, "splice": spliced, "sizes": resized}


class Corpus:
    """Files by digest: {digest: path}."""

    def __init__(self, files):
        self.files, self.cost = files, dict.fromkeys(files, 0)
        self.formats, self.kin = {}, collections.defaultdict(list)
        for digest in sorted(files):
            with open(files[digest], "rb") as file:
                self.formats[digest] = format_of(file.read(64))
            self.kin[self.formats[digest]].append(digest)

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


# Posts --------------------------------------------------------------------------------------------

Told = collections.namedtuple("Told", "status answer seconds lost")


def busy(service):
    """Returns {(name, process id): seconds of processors}."""
    return {(process.name.removeprefix("convolved-") if process.pid != service.process.pid else "front", process.pid):
            process.busy for process in service.processes()}


def post(service, name, body, lane):
    """Asks for pixels, or for a file of the same format: which, the name decides."""
    filters, form = (PIXELS, "raw") if zlib.crc32(name.encode()) % 4 or name.endswith(":whole:0") else (GAUSSIAN, None)
    try:
        answer = service.post(target_of(filters, format=form, codec=lane, variant="general"), body)
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
            gone = [f"{kind} {pid}" for kind, pid in before if (kind, pid) not in after]
            spent = sum(seconds - before.get(process, 0) for process, seconds in after.items())
            told[name, lane] = Told(status, text, spent, gone)
            before = after
            if status == 200 and name.endswith(":whole:0"):
                width, height, bands, _ = answer.kind
                corpus.cost[name.partition(":")[0]] = len(body) + width * height * bands
    return told


def reason(service, process):
    """Returns the log's reason for the end of "KIND PID"."""
    kind, pid = process.split()
    found = re.search(rf"\(pid {pid}\) has ended: (.*)", service.said)
    return f"{kind}: {found[1] if found else 'for no reason in the log'}"


def sample(service):
    """Returns {(kind of process, measure): value}."""
    seen = collections.Counter()
    for process in service.processes():
        kind = "front" if process.pid == service.process.pid else process.name.removeprefix("convolved-")
        seen.update({(kind, "pss"): memory(process), (kind, "fds"): len(process.descriptors)})
    return seen


class Ledger:
    """Counts of a run, and what is wrong."""

    def __init__(self):
        self.posts, self.finds, self.lost = 0, {}, collections.Counter()
        self.rows = collections.defaultdict(lambda: {"files": 0, "posts": 0, "statuses": collections.Counter(), "worst s": 0.0,
                                                     "workers lost": 0})

    def note(self, service, corpus, told):
        for (name, lane), one in told.items():
            row = self.rows[corpus.format(name)]
            row["files"] += name.endswith(":whole:0") and lane != "gpu"
            row["posts"] += 1
            row["statuses"][one.status] += 1
            row["worst s"] = max(row["worst s"], one.seconds)
            self.posts += 1
            for process in one.lost:
                why = reason(service, process)
                self.lost[why] += 1
                row["workers lost"] += 1
                if not why.startswith("codec"):
                    self.finds[name, lane] = f"lost {why}"
            if one.status not in EXPECTED and not (one.status == 400 and not corpus.body(name)):
                self.finds[name, lane] = f"{one.status}: {one.answer}"
            elif one.seconds > SECONDS:
                self.finds[name, lane] = f"{one.seconds:.1f} s of processors, {one.status}"

    def compare(self, ours, others):
        """All lanes of both services must tell the same of a file."""
        first = {}
        for (name, lane), one in itertools.chain(ours.items(), others.items()):
            right = first.setdefault(name, one)
            if right[:2] != one[:2]:
                self.finds.setdefault((name, lane), f"unlike: {right[:2]} and {one[:2]}")

    def grown(self, samples):
        """Whether anything grows in the second half of the run."""
        samples = samples[len(samples) // 2:]
        if len(samples) < 2 * BLOCKS:
            return
        for what in samples[-1][1]:
            line = judge([at for at, _ in samples], [seen.get(what, 0) for _, seen in samples], FLOORS[what[1]])
            yield {"of": what[0], "measure": what[1], "first": line.first, "last": line.last, "grows": "yes" if line.grows else ""}
            if line.grows:
                self.finds[what] = f"grows from {line.first:.0f} to {line.last:.0f}"

    def table(self):
        for kind, row in sorted(self.rows.items()):
            yield {"format": kind, **row, "statuses": dict(sorted(row["statuses"].items()))}
        statuses = sum((row["statuses"] for row in self.rows.values()), collections.Counter())
        yield {"format": "all", "files": sum(row["files"] for row in self.rows.values()), "posts": self.posts,
               "statuses": dict(sorted(statuses.items())), "worst s": max(row["worst s"] for row in self.rows.values()),
               "workers lost": sum(self.lost.values())}
        for why, times in self.lost.items():
            yield {"lost": why, "times": times}
        for (name, lane), what in self.finds.items():
            yield {"find": name, "lane": lane, "what": what}


def run(services, corpus, posts, seed, ledger, batch=400):
    """Yields rows while it posts; the finds are in the ledger. The second service gets each batch
    backwards, so what its processes have seen before a file is something else."""
    samples = []
    with concurrent.futures.ThreadPoolExecutor(len(services)) as pool:
        for number in itertools.count():
            names = corpus.names(number, seed)
            for at in range(0, len(names), batch):
                part = names[at:at + batch]
                told = list(pool.map(ask, services, [corpus] * 2, (part, part[::-1])))
                for service, one in zip(services, told):
                    ledger.note(service, corpus, one)
                ledger.compare(*told)
                samples.append((ledger.posts, sum(map(sample, services), collections.Counter())))
                print(f"{ledger.posts} posts, {len(ledger.finds)} finds", file=sys.stderr)
                if ledger.posts >= posts:
                    break
            else:
                continue
            break
    yield from ledger.grown(samples)
    yield from ledger.table()
    for service in services:
        if left := left_over(service.rest()):
            ledger.finds["at rest", service.port] = str(left)


# Beside others ------------------------------------------------------------------------------------

def by_pillow(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = Image.open(path)
        image.load()
        image = ImageOps.exif_transpose(image)
    clear = "transparency" in image.info
    if image.mode in ("1", "P", "PA", "YCbCr", "LAB", "HSV", "RGBX", "La", "RGBa") or clear and image.mode in ("L", "RGB"):
        image = image.convert("RGBA" if clear or image.mode[-1] in "Aa" else "L" if image.mode == "1" else "RGB")
    pixels = np.asarray(image)
    if pixels.dtype == np.int32:
        pixels = pixels.astype(np.uint16)
    return pixels.reshape(*pixels.shape[:2], -1)


def by_libvips(path):
    with tempfile.NamedTemporaryFile(suffix=".v") as made:
        subprocess.run(["vips", "autorot", path, made.name], check=True, capture_output=True, timeout=100)
        head = struct.unpack("<7i", made.read(32)[4:])
        width, height, bands, kind = *head[:3], head[4]
        pixels = np.fromfile(made.name, ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "c8", "f8")[kind],
                             width * height * bands, offset=64)
    return pixels.reshape(height, width, bands)


def spread(pixels):
    """Returns RGBA, of 255; what is not seen has no colour."""
    scale = {"u": 255 / np.iinfo(pixels.dtype).max} if pixels.dtype.kind == "u" else {}
    pixels = pixels.astype(np.float32) * scale.get("u", 255)
    if pixels.shape[2] < 3:
        pixels = np.concatenate([pixels[:, :, :1]] * 3 + [pixels[:, :, 1:]], axis=2)
    if pixels.shape[2] == 3:
        pixels = np.concatenate([pixels, np.full_like(pixels[:, :, :1], 255)], axis=2)
    return np.where(pixels[:, :, 3:4] == 0, 0, pixels)


def verdict(answer, decode, path):
    """Says how another decoder's picture differs from this answer."""
    try:
        theirs = decode(path)
    except Exception:
        theirs = None
    if answer.status != 200:
        said = re.sub(r"\d+", "N", answer.problem["detail"])[:90]
        return "both refuse" if theirs is None else f"only they read it ({answer.status}): {said}"
    if theirs is None:
        return "only we read it"
    ours = answer.pixels
    if ours.shape[:2] != theirs.shape[:2]:
        return "other size"
    ours, theirs = spread(ours), spread(theirs)
    if ours.shape != theirs.shape:
        return "other bands"
    off = np.nanmax(np.abs(ours - theirs))
    return "the same" if off < 0.51 else "off by 1 or 2" if off < 2.51 else "differs"


def beside(service, corpus, names):
    """Yields how whole files are decoded beside Pillow and libvips, by kind of difference."""
    def judged(name):
        answer = service.post(target_of(PIXELS, format="raw"), corpus.body(name))
        path = corpus.files[name.partition(":")[0]]
        return [(corpus.format(name), who, verdict(answer, decode, path))
                for who, decode in (("Pillow", by_pillow), ("libvips", by_libvips))]
    classes = collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, every in zip(names, pool.map(judged, names)):
            for one in every:
                classes[one].append(name)
    for (kind, who, what), found in sorted(classes.items()):
        yield {"format": kind, "beside": who, "verdict": what, "count": len(found), "such as": " ".join(
            name.partition(":")[0] for name in found[:6])}


def corpus(options):
    """Every image of Debian's source packages of image libraries, whole and mutated, to two services
    with different histories, by every lane: no 5xx, no more than 5 s of processors for any post, no
    lost process but a codec worker, the same answer from both. It fails at any find; --only posts one
    again. Packages are fetched once, into the user's cache directory."""
    files = {}
    for package in options.packages:
        files |= extract(package)
    every, ledger = Corpus(files), Ledger()
    with contextlib.ExitStack() as stack:
        services = [stack.enter_context(measured(*OPTIONS, *options.service, environment=ONE_DEVICE)) for _ in range(2)]
        for service in services:
            service.compiled(lambda: service.get("/v1/devices").json()["devices"][0]["jpeg"], what="the programs for JPEG")
        if options.only:
            for service in services:
                for (name, lane), one in ask(service, every, [options.only]).items():
                    yield {"name": name, "lane": lane, **one._asdict()}
            if not options.only.endswith(":whole:0"):
                return
        yield from beside(services[0], every, [options.only] if options.only else every.names(0, options.seed))
        if not options.only:
            yield from run(services, every, options.posts, options.seed, ledger)
    if ledger.finds:
        sys.exit(f"{len(ledger.finds)} finds")
