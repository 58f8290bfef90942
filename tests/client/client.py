"""The client as its user starts it, and files for it."""
import contextlib
import os
import pathlib
import signal
import subprocess

import numpy as np
import pytest

from service import BUILD, PATIENCE

PROGRAM = BUILD / "convolve"

# A shell ignores it in background processes, and the client would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def environment(url, variables=None):
    kept = {k: v for k, v in os.environ.items()
            if not k.lower().endswith("_proxy") and not k.startswith("AWS_")}
    kept.pop("CONVOLVED_TOKEN_FILE", None)
    return {**kept, "CONVOLVED_URL": url, **(variables or {})}


def start(url, *arguments, variables=None, **options):
    return subprocess.Popen([PROGRAM, *map(str, arguments)], env=environment(url, variables),
                            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                               "stderr": subprocess.PIPE, **options})


def run(url, *arguments, status=0, variables=None, **options):
    """Runs the client, asserts its exit status, and returns (standard output, standard error)."""
    options = options if "input" in options else {"stdin": subprocess.DEVNULL} | options
    done = subprocess.run([PROGRAM, *map(str, arguments)], env=environment(url, variables),
                          capture_output=True, timeout=PATIENCE, **options)
    assert done.returncode == status, done
    return done.stdout, done.stderr.decode()


def complains(words, url, *arguments, run=run, status=1, **options):
    """Runs the client, asserts that it says one line, with these words, and returns that."""
    _, said = run(url, *arguments, status=status, **options)
    assert said.startswith("convolve: ") and words in said and said.count("\n") == 1, said
    return said


def in_namespace(url, script, *arguments):
    """Runs a script that may mount file systems; "$@" is the client with the arguments."""
    apart = ["unshare", "-m" if os.geteuid() == 0 else "-Urm"]
    tried = subprocess.run([*apart, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True,
                           text=True)
    if tried.returncode:
        pytest.skip(f"no file system can be mounted: {tried.stderr.strip()}")
    return subprocess.run([*apart, "sh", "-euc", script, "sh", PROGRAM,
                           *map(str, arguments)], env=environment(url), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE)


def ppm(seed=0, width=40, height=30):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return b"P6\n%d %d\n255\n" % (width, height) + pixels.tobytes()


def fill(directory, *names):
    """Writes an image in each of these places, each another one; returns the directory."""
    for seed, name in enumerate(names):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(ppm(seed))
    return directory


def found(directory):
    """Returns {path: content} below a directory, less the manifest and what goes meanwhile."""
    files = {}
    for path in pathlib.Path(directory).rglob("*"):
        if path.is_file() and path.name != ".convolve.jsonl":
            with contextlib.suppress(FileNotFoundError):
                files[str(path.relative_to(directory))] = path.read_bytes()
    return files
