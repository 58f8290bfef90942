"""A page of figures of one commit: those of the README, and the size of the code."""
import argparse
import datetime
import importlib
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import tempfile

from measure import CACHE, HERE, fastest, middle, photograph, turbo, turns
from service import BUILD

TOP = HERE.parents[1]
# bytes of a file like a photograph by the side of the image
BYTES = {4096: 1_700_000, 1024: 220_000, 256: 24_000}


def report(options):
    """A page of figures, all of one commit.

    The size of the code and of its tests; with --gpu, JPEGs and kernels on a GPU beside the
    processor, NPP and OpenCV; JPEGs without a GPU beside OpenCV in Python. A library that is not
    there has no figure.

    On a host without a build, name the commands and the commit, and run this by a Python with
    granian, starlette and cv2. With --kernels 'convolved-bench -t cpu' and -- --device cpu
    --jpeg-on-any yes, --gpu takes the processor, which shows only that it works."""
    yield about(options)
    failed = False
    for section in (code, *([gpu] if options.gpu else []), *([host] if options.rows else [])):
        try:
            yield from section(options)
        except (AssertionError, ImportError, OSError, subprocess.SubprocessError, SystemExit) as problem:
            print(f"{section.__name__}: {problem}", file=sys.stderr, flush=True)
            failed = True  # the others can do without it
    if failed:
        sys.exit("sections are missing")


def output(*command):
    """Returns what a program prints, "" if it fails or is not there."""
    try:
        return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def first(pattern, text, kind=float):
    """Returns what the pattern finds first, or None."""
    found = re.search(pattern, text, re.M)
    return found and kind(found[1])


def about(options):
    commit = options.commit or output("git", "describe", "--always", "--dirty")
    if not commit:
        sys.exit("report: there is no git to ask for the commit; name it by --commit")
    device, _, driver = output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader",
                               "--id=0").partition(", ")
    return {"commit": commit, "date": datetime.date.today().isoformat(),
            "processor": first(r"^model name\s*: (.+)", pathlib.Path("/proc/cpuinfo").read_text(), str),
            "cores": len(os.sched_getaffinity(0)), "GPU": device or None, "driver": driver or None,
            "system": f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {platform.release()}"}


# Code ---------------------------------------------------------------------------------------------

def code(_options):
    """Its size, and that of its tests. Hosts without a checkout or a build have no figures."""
    for name in "daemon", "kernels", "client", "tests":
        texts = [text for path in output("git", "ls-files", "-z", name).split("\0") if path
                 if b"\0" not in (text := (TOP / path).read_bytes())]
        yield {"code": f"{name}/", "files": len(texts) or None, "lines": sum(text.count(b"\n") for text in texts) or None}
    collected = output("/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "tests/http")
    exposure = output("systemd-analyze", "security", "--offline=yes", BUILD / "convolved.service")
    yield {"also": "cases of tests by HTTP", "number": first(r"^(\d+) tests collected", collected, int)}
    yield {"also": "fuzzers", "number": len([*TOP.glob("tests/fuzz/*.c")]) or None}
    yield {"also": "exposure by systemd-analyze", "number": first(r"exposure level.*: ([\d.]+)", exposure)}


# With a GPU ---------------------------------------------------------------------------------------

def gpu(options):
    with tempfile.TemporaryDirectory(prefix="convolved-bench-") as name:
        directory = pathlib.Path(name)
        files = [file_of(pathlib.Path(options.files or name), int(side)) for side in options.sides.split(",")]
        for file in files:  # first, for these wait until all kernels are compiled
            yield beside("JPEGs, by HTTP", "/s", size(file), *by_http(file, options))
        yield beside("JPEGs, without HTTP", "/s", size(files[0]), *without_http(files[0], directory, options))
        for kernel in KERNELS:
            yield by_kernel(*kernel, directory, options)


def beside(what, unit, of, ours, theirs, who):
    times = theirs and (ours / theirs if unit == "/s" else theirs / ours)
    return {"with a GPU": what, "of": of, "unit": unit, "convolved": ours, "instead": theirs, "times": times, "by": who}


def file_of(directory, side):
    path = directory / f"{side}.jpg"
    if not path.exists():
        path.write_bytes(photograph(side, BYTES.get(side)))
    return path


def size(file):
    return f"{file.stem}x{file.stem}, {file.stat().st_size / 1e6:.2g} MB"


def without_http(file, directory, options):
    command = [*shlex.split(options.engine), "-n", str(options.streams), "-s", str(options.seconds), "-j", file, "-f",
               "gaussian=size=5", "--", "--log-level", "warning", *options.service, "--cache-dir", CACHE, "--state-dir",
               directory / "state"]

    def engine():
        ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return first(r"([\d.]+) images/s", ran.stdout)

    count = len(os.sched_getaffinity(0))
    ways = {"ours": engine}
    if options.turbo:
        ways["theirs"] = lambda: turbo(options.turbo, file, count, options.seconds)
    found = turns(options.rounds, ways, warm=False)
    return (middle(found["ours"]), middle(found["theirs"]) if "theirs" in found else None,
            f"libjpeg-turbo on {count} cores, without the Gaussian")


def by_http(file, options):
    from throughput import http

    ours, theirs = http(argparse.Namespace(**{
        **vars(options), "cases": [str(file)], "sets": ["size=5 codec=gpu", "size=5 codec=cpu"], "sockets": ""}))
    assert theirs["same bytes"] == "True", f"{file}: lanes answer different bytes"
    return (ours["requests/s"], theirs["requests/s"],
            f"the same with codecs on {len(os.sched_getaffinity(0))} cores")


# name, chain, variants that may be the fastest, and what measures the same by others
KERNELS = (
    ("gaussian 5x5", "gaussian=sigma=1.1:size=5", "separable_half,separable", "npp.gaussian"),
    ("sobel", "sobel", "gradient_half,gradient", "npp.sobel"),
    ("bilateral 9x9", "bilateral=radius=4:sigma_space=5:sigma_range=0.1176", "bilateral_table,bilateral",
     "opencv.bilateral_by_opencl"),
)


def by_kernel(name, chain, variants, other, directory, options):
    ours = fastest([*shlex.split(options.kernels), "-W", str(options.side), "--pixels", "u8", "--filter", chain,
                    "--variant", variants, "--cache-dir", directory / "kernels"])
    try:
        module, _, function = other.partition(".")
        who, theirs = getattr(importlib.import_module(module), function)(options.side)
    except (ImportError, OSError) as missing:
        print(f"{name}: {missing}", file=sys.stderr, flush=True)
        who, theirs = None, None
    return beside(f"kernel, {name}", "ms", f"{options.side}x{options.side} gray bytes", ours["median_seconds"] * 1e3,
                  theirs, who)


# Without a GPU ------------------------------------------------------------------------------------

def host(options):
    """The processor alone, also where there is a GPU."""
    from peers import peers

    usable = len(os.sched_getaffinity(0))
    counts = [count for count in options.cores.split(",") if int(count) <= usable] or [str(usable)]
    yield from peers(argparse.Namespace(**{
        **vars(options), "cores": ",".join(counts), "service": ["--device", "cpu"]}))
