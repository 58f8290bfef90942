"""JPEG to JPEG through HTTP, decoded and encoded by a device and by codec workers, in turns.

For each file: images a second over CONNECTIONS with codec=gpu, codec=cpu and codec=auto, medians of
the rounds; the cores that front, codec workers and device workers use meanwhile; and
Server-Timing's entries for an image alone. Files are JPEGs; without any, three like photographs are
made. Answers of both lanes are compared first. --any: on devices that are no GPUs, too, which shows
only that it works."""
import argparse
import json
import os
import re
import shutil
import statistics
import tempfile
import time
import urllib.request

from service import PORT, POST, Service, own_seconds, photograph, post, wait_until, wrk

LANES = ("gpu", "cpu", "auto")
PATH = "/v1/filters/gaussian?size=5&quality=85&codec="


def takes_jpeg():
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v1/devices") as answer:
        return any(device["jpeg"] for device in json.load(answer)["devices"])


def command(directory, source, lane, connections):
    script = os.path.join(directory, "post.lua")
    with open(script, "w") as f:
        f.write(POST.format(source=source))
    return ["wrk", f"-t{min(4, connections)}", f"-c{connections}", "--timeout", "60s", "-s", script,
            f"http://127.0.0.1:{PORT}{PATH}{lane}"]


def fetch(body, lane):
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{PATH}{lane}", body) as answer:
        return answer.read()


def alone(body, lane, times):
    """Returns the median of the service's times for an image alone, in milliseconds."""
    totals = []
    for _ in range(times):
        timing = post(PATH + lane, body).headers["Server-Timing"]
        totals.append(float(re.search(r"total;dur=([\d.]+)", timing)[1]))
    return statistics.median(totals)


def busy(service):
    """Returns processor seconds so far of each process: (kind, pid) and seconds."""
    return {(name.removeprefix("convolved-"), pid): own_seconds(pid) for name, pid in service.processes()}


def spent(before, after):
    """Returns processor seconds since then by the kind of process, but those of processes that have
    ended."""
    found = {}
    for process, seconds in after.items():
        found[process[0]] = found.get(process[0], 0) + seconds - before.get(process, 0)
    return found


def loaded(service, directory, source, lane, options):
    time.sleep(0.5)  # jobs of the last run, whose clients have gone, end
    before, begun = busy(service), time.monotonic()
    rate, _ = wrk(command(directory, source, lane, options.connections), options.seconds)
    took = time.monotonic() - begun
    return rate, {kind: seconds / took for kind, seconds in spent(before, busy(service)).items()}


def measure(service, directory, source, options):
    with open(source, "rb") as f:
        body = f.read()
    answers = {lane: fetch(body, lane) for lane in LANES}
    for lane in LANES:  # every program that the tuner tries is there
        for _ in range(3):
            fetch(body, lane)
    service.settle()
    rounds = {lane: [] for lane in LANES}
    for _ in range(options.rounds):
        for lane in LANES:
            rounds[lane].append(loaded(service, directory, source, lane, options))
    return {"file": os.path.basename(source), "bytes": len(body),
            "same_bytes": answers["gpu"] == answers["cpu"],
            **{lane: {"images_per_second": statistics.median(rate for rate, _ in found),
                      "cores": found[-1][1], "alone_ms": alone(body, lane, 9)}
               for lane, found in rounds.items()}}


def show(found):
    print(f"{found['file']}, {found['bytes']} bytes, answers of both "
          f"{'are the same bytes' if found['same_bytes'] else 'DIFFER'}")
    for lane in LANES:
        one = found[lane]
        cores = ", ".join(f"{kind} {cores:.2f}" for kind, cores in sorted(one["cores"].items()))
        print(f"  codec={lane:5}{one['images_per_second']:10.1f} images/s "
              f"{one['images_per_second'] / found['cpu']['images_per_second']:6.2f} of cpu   alone "
              f"{one['alone_ms']:8.2f} ms   cores: {cores}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--any", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="convolved-bench-")
    service = Service("--verify-share", "0", *(("--jpeg-on-any", "yes") if options.any else ())).ready()
    try:
        for side in () if options.files else (256, 1024, 4096):
            options.files.append(os.path.join(directory, f"{side}.jpg"))
            photograph(options.files[-1], side)
        wait_until(takes_jpeg, 600, "no device takes JPEGs; --any allows others than GPUs")
        figures = [measure(service, directory, file, options) for file in options.files]
    finally:
        service.stop()
        shutil.rmtree(directory)
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    for found in figures:
        show(found)


if __name__ == "__main__":
    main()
