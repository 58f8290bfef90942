"""Throughput of HTTP: the service beside bare sockets that carry the same bytes, in turns.

For each case: requests a second, bytes a second in both directions, milliseconds of an answer, how many
cores each kind of process uses, the load generator (`client`) among them, and the rate as a share of
what bare sockets carry to the same load generator. Medians of the rounds. With `--sets`, services with
different options are compared: each set is a word of options, e.g. --sets '--codecs 1' '--codecs 2'.
Cases: livez, small (1 KB raw), large (50 MB raw), tls (the same by TLS), 256, 1024, 4096 (JPEGs of that
side), and any file of a JPEG."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy

from lanes import busy, spent
from service import BUILD, PORT, TOP, Service, photograph, post

sys.path.append(os.path.join(TOP, "tests", "lib"))
from certificates import localhost_certificate

SECURE = PORT + 1
JPEG = "/v1/filters/gaussian?sigma=1.1&quality=85"
RAW = "/v1/filters/box?size=3&format=raw&raw={}x{}x1:u8"
CASES = ("livez", "small", "large", "tls", "256", "1024", "4096")


def noise(path, width, height):
    path.write_bytes(numpy.random.default_rng(1).integers(0, 256, width * height, numpy.uint8).tobytes())
    return path


def prepared(case, directory):
    """Returns (target, file of the body or None)."""
    if case == "livez":
        return "/livez", None
    if case == "small":
        return RAW.format(32, 32), noise(directory / "small", 32, 32)
    if case in ("large", "tls"):
        return RAW.format(8000, 6250), noise(directory / "large", 8000, 6250)
    if not case.isdigit():
        return JPEG, pathlib.Path(case)
    source = directory / f"{case}.jpg"
    photograph(source, int(case))
    return JPEG, source


def generate(*arguments):
    ran = subprocess.run([os.path.join(BUILD, "bench_http"), *map(str, arguments)], capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(ran.stderr)
    return json.loads(ran.stdout)


def load(options, body):
    return ["-c", options.connections, "-s", options.seconds, *(("-b", body) if body else ())]


def of_service(service, case, target, body, options):
    before = busy(service)
    secure = case == "tls"
    found = generate(*load(options, body), *(("--tls",) if secure else ()),
                     f"127.0.0.1:{SECURE if secure else PORT}", target)
    found["cores"] = {kind: seconds / options.seconds for kind, seconds in spent(before, busy(service)).items()}
    return found


def of_bare_sockets(way, body, answer, options):
    found = generate(*load(options, body), "--answer", answer, "--bare", way)
    found["cores"] = {"server": found.pop("server_cores")}
    return found


def middle(rounds):
    """Returns the median of each figure."""
    return {name: middle([one[name] for one in rounds]) if isinstance(value, dict)
            else statistics.median(one[name] for one in rounds) for name, value in rounds[0].items()}


def measure(case, directory, options):
    target, body = prepared(case, directory)
    certificate, key = localhost_certificate(directory)
    rows = {}
    for number in range(options.rounds):
        for words in options.sets:
            service = Service("--verify-share", "0", "--listen", f"tls:127.0.0.1:{SECURE}", "--tls-certificate",
                              str(certificate), "--tls-key", str(key), *words.split()).ready()
            try:
                if body:
                    for _ in range(10):
                        answer = post(target, body.read_bytes()).headers["Content-Length"]
                    service.settle()
                rows.setdefault(words, []).append(of_service(service, case, target, body, options))
            finally:
                service.stop()
        for way in ("write", "mapping") if body else ():
            rows.setdefault(f"bare sockets, {way}", []).append(of_bare_sockets(way, body, answer, options))
    return {"case": case, "target": target, "body": body.stat().st_size if body else 0,
            "rows": {name: middle(rounds) for name, rounds in rows.items()}}


def show(found):
    bare = max((row["per_second"] for name, row in found["rows"].items() if name.startswith("bare")), default=0)
    print(f"{found['case']}: {found['target']}, bodies of {found['body']} bytes")
    for name, row in found["rows"].items():
        cores = {**row["cores"], "client": row["client_cores"]}
        share = f"{row['per_second'] / bare:6.3f}" if bare else "      "
        print(f"  {name or 'service':24}{row['per_second']:10.1f}/s {share} "
              f"{row['sent_per_second'] / 1e6:8.1f} MB/s in {row['received_per_second'] / 1e6:8.1f} out "
              f"{row['p50_ms']:9.2f} ms, p99 {row['p99_ms']:9.2f}  cores: "
              + ", ".join(f"{kind} {used:.2f}" for kind, used in cores.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--sets", nargs="+", default=[""])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="convolved-bench-"))
    try:
        figures = []
        for case in options.cases:
            figures.append(measure(case, directory, options))
            if not options.json:
                show(figures[-1])
    finally:
        shutil.rmtree(directory)
    if options.json:
        print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
