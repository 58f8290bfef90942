"""A page of figures of one commit: speed, what was tried and survived, growth, exposure, sizes."""
import argparse
import ast
import collections
import datetime
import fnmatch
import importlib
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from measure import CACHE, HERE, fastest, middle, photograph, turbo, turns
from packages import PLACE
from service import BUILD

TOP = HERE.parents[1]
# bytes of a file like a photograph by the side of the image
BYTES = {4096: 1_700_000, 1024: 220_000, 256: 24_000}


def report(options):
    """A page of figures, all of one commit, at most 15 minutes without a GPU.

    The last table says how each section ended: one that lacks what it needs says so, and one that fails
    makes the command fail.

    On a host without a build, name the commands and the commit, and run this by a Python with granian,
    starlette, cv2 and PIL. With --kernels 'convolved-bench -t cpu' and -- --device cpu --jpeg-on-any yes, --gpu
    takes the processor, which shows only that it works."""
    wanted = [name for name in SECTIONS if any(fnmatch.fnmatch(name, one) for one in options.rows.split(","))
              and (name != "gpu" or options.gpu)]
    if not wanted:
        sys.exit(f"no such sections; there are {', '.join(SECTIONS)}")
    usable = len(os.sched_getaffinity(0))
    options.cores = ",".join(count for count in options.cores.split(",") if int(count) <= usable) or str(usable)
    yield about(options)
    ended = []
    for name in wanted:
        begun = time.monotonic()
        how, rows = done(name, options)
        yield from rows
        ended.append({"section": name, "has": SECTIONS[name].about, "seconds": time.monotonic() - begun, "ended": how})
    yield from ended
    if any(one["ended"].startswith("FAILED") for one in ended):
        sys.exit("sections have failed")


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


# Sections -----------------------------------------------------------------------------------------

def done(name, options):
    """Returns how a section ended, and its rows."""
    section = SECTIONS[name]
    missing = [pathlib.Path(need).name for need in section.needs
               if not (shutil.which(need) or pathlib.Path(TOP, need).exists())]
    if missing:
        return f"cannot run here: there is no {', '.join(missing)}", []
    print(f"{name}: {section.about}", file=sys.stderr, flush=True)
    words = [word for one in section.command for word in (
        options.service if one == "{service}" else [str(one).format(**vars(options))])]
    with tempfile.TemporaryFile("w+") as told, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(words, cwd=TOP, stdout=told, stderr=said, start_new_session=True)
        try:
            status = process.wait(section.limit)
            wrong = f"{status}: " if status else ""
        except subprocess.TimeoutExpired:
            wrong = f"not within {section.limit} s"
        finally:
            end(process)
        texts = [file.seek(0) or file.read() for file in (told, said)]
    if wrong.endswith(": "):
        wrong += "".join(texts).strip().rpartition("\n")[2]
    rows = []
    try:
        for row in section.reader(*texts):
            rows.append(row)
    except AssertionError as find:
        wrong = wrong or str(find)
    except (ValueError, KeyError, IndexError) as problem:
        wrong = wrong or f"without figures ({problem!r})"
    if not wrong:
        return "well", rows
    sys.stderr.write("".join(texts)[-4000:])
    return f"FAILED: {wrong}", rows


def end(process):
    """Ends it and what it has started, services too."""
    for number in signal.SIGTERM, signal.SIGKILL:
        try:
            os.killpg(process.pid, number)
            process.wait(60)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def case(name, *arguments):
    """Returns the command of a case of run.py. {OPTION}: this option of the report."""
    return sys.executable, HERE / "run.py", name, *arguments, "--json", "-"


def tests(*arguments):
    return "/usr/bin/python3", "-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider", *arguments


def figures(told):
    """Returns the rows of a case, which are behind all else that it printed."""
    return json.loads(told[told.rindex("\n[") + 1 if "\n[" in told else 0:])


def rows(told, _said):
    return figures(told)


def sizes(told, _said):
    paths = [path for path in told.split("\0") if path]
    texts = {path: text for path in paths if b"\0" not in (text := (TOP / path).read_bytes())}
    for name, begin, end in (("daemon", "daemon/", ""), ("its headers", "daemon/", ".h"), ("kernels", "kernels/", ""),
                             ("client", "client/", ""), ("tests", "tests/", "")):
        those = [text for path, text in texts.items() if path.startswith(begin) and path.endswith(end)]
        yield {"code": name, "files": len(those), "lines": sum(text.count(b"\n") for text in those)}


def exposure(told, _said):
    yield {"exposure of": "convolved.service", "by systemd-analyze, of 10": first(r"exposure level.*: ([\d.]+)", told)}


def speed(told, _said):
    for row in figures(told):
        if "row" in row:
            yield {"row": row["row"], **{key: row[key] for key in (
                "cores", "requests/s", "OpenCV", "by rate", "by processor", "p50 ms", "p99 ms", "of libjpeg-turbo")}}


def faults(told, _said):
    survived = sum(map(int, re.findall(r"^(\d+) faults$", told, re.M)))
    yield {"faults survived": survived, "tests": first(r"^(\d+) passed", told, int),
           "failed": first(r"\b(\d+) failed", told, int) or 0}


def strikes(told, _said):
    found = figures(told)
    every, = (row for row in found if row.get("struck") == "all")
    answers, = (row for row in found if "answers" in row)
    yield {"workers struck": every["times"], "recovery p50 s": every["p50 s"], "longest s": every["longest s"],
           **{key: answers[key] for key in ("answers", "200", "refused", "slowest s", "finds")}}


def files(told, _said):
    """By real files, or by generated ones: a test, which prints the same rows."""
    found = figures(told) if told.rstrip().endswith("]") else [
        ast.literal_eval(line) for line in re.findall(r"^{'(?:format|find|lost)':.*}$", told, re.M)]
    every, = (row for row in found if row.get("format") == "all" and "posts" in row)
    yield {"files": every["whole"], "mutated": every["mutated"], "posts": every["posts"], "statuses": every["statuses"],
           "worst s": every["worst s"], "workers lost": every["workers lost"], "finds": sum("find" in row for row in found)}


def cases(told, _said):
    yield {"tests by HTTP": first(r"^(\d+) tests collected", told, int)}


def fuzzed(told, _said):
    """Both this run and the ledger have rows of a target, its executions and more, at last its finds."""
    ledger = TOP / "tests/fuzz/LEDGER.md"
    runs, all_runs = (re.findall(r"^\| `?(\w+)`? \| ([\d,]+) \|.* (\d+) \|$", text, re.M) for text in (
        told, ledger.read_text() if ledger.exists() else ""))
    count, sum_of = len(runs), lambda every: sum(int(one[1].replace(",", "")) for one in every)
    yield {"fuzzers": count, "executions now": sum_of(runs), "in tests/fuzz/LEDGER.md": sum_of(all_runs) or None}
    assert count == len([*TOP.glob("tests/fuzz/*.c")]), "fuzzers are missing"
    assert not (finds := [name for name, _, number in runs if int(number)]), f"finds of {', '.join(finds)}"


def leaks(told, _said):
    for row in figures(told):
        if row.get("measure") == "pss MB":
            yield {"memory of": row["of"], "MB": row["last"], "bytes a request": row["a million requests"],
                   "± error": row["± error"], "grows": row["grows"]}


# about; the command; seconds that it may take; reader(output, error output), which yields rows; programs and
# files that it needs
Section = collections.namedtuple("Section", "about command limit reader needs", defaults=((),))
SECTIONS = {
    "code": Section("lines of the programs and their tests", (
        "git", "ls-files", "-z", "daemon", "kernels", "client", "tests"), 120, sizes, ("git", ".git")),
    "exposure": Section("what the unit may do", (
        "systemd-analyze", "security", "--offline=yes", BUILD / "convolved.service"), 120, exposure, ("systemd-analyze",)),
    "peers": Section("JPEGs beside OpenCV in Python and libjpeg-turbo, by the processor", case(
        "peers", "--rows", "gaussian-jpeg-*", "--cores", "{cores}", "--rounds", "{rounds}", "--seconds", "{seconds}",
        "--connections", "{connections}", "--program", "{program}", "--wrk", "{wrk}", "--turbo", "{turbo}") + (
            "--", "--device", "cpu"), 500, speed),
    "kernels": Section("kernels beside OpenCV, by the processor", case(
        "opencv", "gaussian 5x5", "sobel", "median 3x3", "--pixels", "u8", "--side", "2048", "--rounds", "{rounds}"), 150, rows, (
            BUILD / "convolved-bench",)),
    "load": Section("goodput and latency up to three times the capacity", case("load", "--rounds", "1"), 90, rows, (
        BUILD / "convolved",)),
    "strikes": Section("workers killed, stopped and aborted under load", case(
        "strikes", "--seconds", "40", "--devices", "1"), 150, strikes, (BUILD / "convolved",)),
    "faults": Section("OpenCL calls that fail under load", (
        "env", f"TEST_CACHE={BUILD}/test-cache", *tests("tests/fault/test_layer.py::test_calls_fail[one each]")),
        150, faults, (BUILD / "fault_layer.so",)),
    "files": Section("real and damaged files", case("corpus", "--packages", "libpng1.6", "tiff", "--posts", "2500"), 150,
                     files, (BUILD / "convolved",)) if (PLACE / "tiff.files").exists() else Section(
        "generated and damaged files", tests("tests/http/test_corpus.py::test_fixed_files"), 150, files, (
            BUILD / "convolved",)),
    "cases": Section("tests by HTTP", tests("--collect-only", "tests/http"), 300, cases, (BUILD / "Makefile",)),
    "api": Section("requests by schemathesis, a generated client", case("api", "20"), 120, rows, (BUILD / "Makefile",)),
    "fuzz": Section("parsers of what comes from outside, by libFuzzer", ("./dev", "fuzz", "all", "2"), 300, fuzzed, (
        "clang", BUILD / "Makefile")),
    "leaks": Section("memory by request under a mix of requests", case("soak", "0.7"), 200, leaks, (BUILD / "convolved",)),
    "gpu": Section("JPEGs and kernels on a GPU", case(
        "gpu", *(word for name in ("sides", "side", "rounds", "seconds", "connections", "streams", "files", "program",
                                   "wrk", "turbo", "engine", "kernels") for word in (f"--{name}", f"{{{name}}}"))) + (
            "--", "{service}"), 600, rows),
}


# With a GPU ---------------------------------------------------------------------------------------

def gpu(options):
    """JPEGs by a GPU, with and without HTTP, beside the processor; kernels beside NPP and OpenCV. A library that
    is not there has no figure."""
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
