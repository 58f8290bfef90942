#!/usr/bin/env python3
"""Measurements and long trials: `./dev bench [CASE] [ARGUMENT...]`.

Machines are shared. Things to compare are measured in turns, A B A B …, within one run, and
each figure is the median: a machine that drifts does so for all alike.

In a checkout with a build, a case first has its packages installed, its programs made, and its
packages of Python put into an environment of its own in the build directory. Elsewhere these are
there already, or options name them: then this directory and ../lib are enough (peers)."""
import argparse
import dataclasses
import importlib
import inspect
import json
import os
import pathlib
import signal
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CONVOLVED_BUILD", TOP / "build")).resolve()
PHOTOGRAPH = TOP / "tests/photograph.jpg"


@dataclasses.dataclass
class Case:
    """A function of a module here that yields rows of figures, `options` being its options and
    their defaults (those in capitals are arguments), or a command."""
    about: str
    function: str = None
    options: dict = dataclasses.field(default_factory=dict)
    command: tuple = ()
    packages: str = ""      # Debian's, beside those that all functions need
    programs: tuple = ()    # made in the build directory
    wheels: str = ""        # arguments of pip
    venv: tuple = ()        # options of the environment that has them
    inside: bool = False    # runs in that environment
    environment: dict = dataclasses.field(default_factory=dict)


# Commands, which a host without a build names.
PROGRAMS = {"program": str(BUILD / "convolved"), "wrk": "wrk"}
PACKAGES = "python3-numpy python3-pil python3-scipy wrk"
# Source packages; the first name of those with a slash between that a release has.
CORPUS = ("pillow libpng1.6 tiff libwebp gdk-pixbuf vips imagemagick graphicsmagick openjpeg2 libheif libavif exiv2 "
          "golang-1.19/golang-1.24 qtimageformats-opensource-src")
GPU = {"sides": "4096,1024,256", "side": 8192, "rounds": 3, "seconds": 3, "connections": 32, "streams": 64, "files": "",
       **PROGRAMS, "turbo": str(BUILD / "bench_jpeg"), "engine": str(BUILD / "bench_engine"),
       "kernels": f"{BUILD / 'convolved-bench'} -t gpu -d 0"}
CASES = {
    "service": Case(
        "a large image beside libvips, small ones, first answers, memory at rest", "whole.whole",
        {"rounds": 9, "seconds": 10, "side": 4096}, packages="libvips-tools curl"),
    "http": Case(
        "requests and bytes a second beside bare sockets that carry the same", "throughput.http",
        {"CASES": ["livez", "small", "large", "tls", "256", "1024", "4096"], "sets": [""], "rounds": 3, "seconds": 4,
         "connections": 8, **PROGRAMS, "sockets": str(BUILD / "bare_sockets")},
        packages="openssl", programs=("bare_sockets",)),
    "lanes": Case(
        "JPEGs decoded and encoded by a device beside those by codec workers, through HTTP", "throughput.http",
        {"CASES": ["256", "1024", "4096"], "sets": ["size=5 codec=gpu", "size=5 codec=cpu", "size=5 codec=auto"],
         "rounds": 3, "seconds": 5, "connections": 16, **PROGRAMS, "sockets": str(BUILD / "bare_sockets")},
        packages="openssl", programs=("bare_sockets",)),
    "cluster": Case(
        "goodput of N nodes behind HAProxy beside the sum of the nodes; --play: to play with", "throughput.cluster",
        {"NODES": 3, "play": False, "rounds": 5, "seconds": 5, "side": 512}, packages="haproxy"),
    "load": Case(
        "goodput, refusals and memory under up to three times the sustainable load", "load.overload",
        {"rounds": 5, "seconds": 3.0, "side": 512}),
    "loads": Case(
        "what hundreds of slow clients cost another one", "load.slow_clients",
        {"LOADS": [], "one": False, "seconds": 15.0, "ramp": 5.0, "share": 1.0}, packages="openssl"),
    "thumbnail": Case(
        "latency of a small image while another client's large one is in progress", "load.thumbnail",
        {"side": 256, "other": 20000, "count": 100}, packages="libvips-tools"),
    "peers": Case(
        "formats and filters beside OpenCV and libvips in Python, on any number of cores", "peers.peers",
        {"rows": "*", "cores": str(len(os.sched_getaffinity(0))), "rounds": 5, "seconds": 5, "connections": 32,
         **PROGRAMS, "turbo": str(BUILD / "bench_jpeg")},
        packages="python3-venv", programs=("bench_jpeg",), wheels="granian starlette opencv-python-headless pyvips[binary]",
        inside=True),
    "report": Case(
        "a page of figures of one commit: speed, what was tried and survived, growth, exposure, sizes", "report.report",
        {"commit": "", "gpu": False, "rows": "*", "cores": "2,4,8,16", **GPU},
        packages="python3-pytest systemd git clang", programs=("fault_layer.so",)),
    "gpu": Case(
        "JPEGs and kernels on a GPU beside the processor, NPP and OpenCV; a part of report", "report.gpu", GPU,
        packages="python3-venv", programs=("bench_jpeg", "bench_engine"), wheels="opencv-python-headless pillow",
        inside=True),
    "opencv": Case(
        "kernels compared with OpenCV on this machine's CPU", "opencv.opencv",
        {"FILTERS": [], "pixels": "u8,u8x3,u8x4,f32", "side": 4096, "rounds": 5}, packages="python3-venv", wheels="opencv-python-headless numpy",
        # A result lies where an earlier one was, so its pages are mapped already.
        inside=True, environment={"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}),
    "kernels": Case("time and check every variant of every kernel",
                    command=("convolved-bench", "--cache-dir", BUILD / "bench-cache")),
    "tables": Case("tables for docs/benchmarks.md, from convolved-bench --json", "tables.tables",
                   {"BENCH": "bench.json", "PEERS": ""}),
    "photograph": Case("write a JPEG like a photograph, for engine, jpeg, lanes and http", "measure.make",
                       {"FILE": "photograph.jpg", "side": 4096, "bytes": 0}),
    "engine": Case("images per second of scheduler and devices alone", command=("bench_engine",)),
    "scheduler": Case("cost of a scheduling decision, with simulated devices", command=("bench_scheduler",)),
    "reference": Case("processor time of verify=1 for every filter, beside what is predicted",
                      command=("bench_reference",)),
    "jpeg": Case("a JPEG by libjpeg-turbo on all cores", command=("bench_jpeg",)),
    "simulate": Case(
        "1 to 1,000 nodes behind balancers: goodput and latency against load, as a figure", "scale.scale",
        {"output": str(TOP / "docs/images/scale.svg"), "draw": "", "share": 1.0}, programs=("bench_simulate",)),
    "soak": Case("look for growth under a mix of requests", "soak.soak", {"MINUTES": 10.0}),
    "strikes": Case("kill, stop and abort workers under load, and look for wrong answers", "strikes.strikes",
                    {"seconds": 600, "rate": 2.8, "devices": 2, "clients": 8}),
    "corpus": Case("every image of Debian's image libraries, whole and damaged, through every lane", "corpus.corpus",
                   {"posts": 100000, "packages": CORPUS.split(), "seed": 1, "only": ""}, packages="libvips-tools"),
    "api": Case("try the description of the API with schemathesis and a generated client", "api.api",
                {"SECONDS": 120}, packages="python3-venv", wheels="schemathesis openapi-python-client"),
    "axe": Case("look for what keeps people from using the pages, with axe-core", "axe.axe",
                packages="python3-venv python3-selenium chromium-headless-shell chromium-driver",
                wheels="--no-deps axe-playwright-python"),  # it brings axe-core for another driver of browsers
    "s3": Case("try the client with moto's object store",
               command=(sys.executable, "-m", "pytest", "-q", TOP / "tests/client/moto_store.py"),
               packages=f"{PACKAGES} python3-venv python3-pytest", wheels="moto[server]", inside=True,
               venv=("--system-site-packages",)),
}
HELP = {
    "rounds": "turns of each measurement", "seconds": "of each measurement; peers: or longer where requests are slow",
    "side": "width and height of the image", "connections": "clients at a time; peers: at most 4 a core of 4096x4096",
    "sets": "options of services and parameters of requests to compare, each set a word: '--codecs 1' codec=gpu",
    "bytes": "0: as many as it has", "play": "only start them",
    "one": "the slow clients have one address, not 250", "share": "only this part of it",
    "ramp": "seconds in which a load comes up", "count": "small images", "other": "the same of the large image",
    "rate": "strikes a second", "devices": "1 or 2, of PoCL; 0: those of the host",
    "clients": "of the load, each of which asks again once it is answered",
    "program": "the command of the service",
    "wrk": "the command of wrk", "turbo": "the command of bench_jpeg; '': without libjpeg-turbo alone",
    "sockets": "the command of bare_sockets; '': without it",
    "engine": "the command of bench_engine", "kernels": "that of convolved-bench, with the device",
    "commit": "if there is no git to ask", "gpu": "also with a GPU", "streams": "JPEGs in flight without HTTP",
    "sides": "of JPEGs with a GPU, the first one without HTTP, too",
    "files": "directory with SIDE.jpg of these; those missing are made and kept; '': make all anew",
    "rows": "patterns of rows, with commas between; report: of sections",
    "cores": "numbers of cores, with commas between; report: those that there are",
    "pixels": "their kinds, with commas between", "posts": "about so many", "packages": "source packages, other names of one with slashes between",
    "seed": "of the mutations", "only": "post this one, DIGEST:KIND:SEED",
    "output": "file of the figure", "draw": "from such a file of --json, without simulating",
}


def environment_of(name):
    """Returns the directory of the case's packages of Python."""
    return BUILD / "python" / name


def prepare(name, case):
    """Installs and makes what the case needs."""
    packages = f"{case.packages} {PACKAGES if case.function else ''}".split()
    if packages:
        subprocess.run([TOP / "dev", "install", *packages], check=True)
    programs = [*case.programs, *(word for word in case.command[:1] if word.startswith("bench_"))]
    if programs:
        subprocess.run(["make", "-s", "-C", BUILD, *programs], check=True)
    if case.wheels:
        place = environment_of(name)
        if not place.exists():
            subprocess.run([sys.executable, "-m", "venv", *case.venv, place], check=True)
        subprocess.run([place / "bin/pip", "-q", "install", *case.wheels.split()], check=True,
                       env={**os.environ, "PKG_CONFIG": "false"})  # with the wheels' libraries, not the system's


def parser_of(name, case):
    parser = argparse.ArgumentParser(
        prog=f"./dev bench {name}", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Behind -- are options of the service.", description=inspect.getdoc(function_of(case)) or case.about)
    for option, default in case.options.items():
        arguments = {"default": default, "help": HELP.get(option)}
        if isinstance(default, bool):
            arguments["action"] = "store_true"
        elif isinstance(default, list):
            arguments["nargs"] = "*"
        else:
            arguments["type"] = type(default)
        if option.isupper():
            arguments.setdefault("nargs", "?")
            parser.add_argument(option.lower(), **arguments)
        else:
            parser.add_argument(f"--{option}", **arguments)
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the figures, as JSON")
    return parser


def function_of(case):
    module, _, function = case.function.partition(".")
    return getattr(importlib.import_module(module), function)


def cell(value):
    if isinstance(value, dict):
        return ", ".join(f"{name} {cell(number)}" for name, number in value.items())
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def show(row, head):
    """Prints a row of a table in Markdown, after a new head if its columns are others."""
    if list(row) != head:
        print(f"\n| {' | '.join(row)} |\n|{' --- |' * len(row)}")
    print(f"| {' | '.join(f'{cell(value):>{len(name)}}' for name, value in row.items())} |", flush=True)
    return list(row)


def measure(name, case, arguments):
    """Runs a function, and prints its rows as they come, or all as JSON."""
    after = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser_of(name, case).parse_args(arguments[:after])
    options.service = arguments[after + 1:]
    rows, head = [], None
    for number in signal.SIGTERM, signal.SIGHUP:  # end the services, too
        signal.signal(number, signal.default_int_handler)
    try:
        for row in function_of(case)(options):
            rows.append(row)
            if options.json != "-":
                head = show(row, head)
            if options.json and options.json != "-":
                pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    finally:
        if options.json == "-":
            print(json.dumps(rows, indent=1))


def usage():
    print(f"{__doc__}\n")
    for name, case in CASES.items():
        print(f"./dev bench {name:12}{case.about}")
    print("\nThe first one is the default. --help behind a case lists its options.")


def main():
    name, *arguments = sys.argv[1:] or ["service"]
    if name in ("-h", "--help"):
        return usage()
    if name.startswith("-"):
        name, arguments = "service", sys.argv[1:]
    if name not in CASES:
        sys.exit(f"bench: {name} is not a case; --help lists them")
    case = CASES[name]
    os.environ["CONVOLVED_BUILD"] = str(BUILD)
    if (BUILD / "Makefile").exists() and "CONVOLVED_CASE" not in os.environ:
        prepare(name, case)
        if case.inside:
            python = environment_of(name) / "bin/python"
            os.execve(python, [python, __file__, name, *arguments],
                      {**os.environ, **case.environment, "CONVOLVED_CASE": name})
    if case.command:
        program, *words = case.command
        os.execv(BUILD / program, [BUILD / program, *words, *arguments])
    sys.path.append(str(TOP / "tests/lib"))
    measure(name, case, arguments)


if __name__ == "__main__":
    main()
