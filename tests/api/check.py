"""Tries /openapi.json against the service with other projects' programs, as `./dev api` does: a
client that openapi-python-client generates filters an image, and schemathesis sends requests that
the description allows and others."""
import collections
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from service import REPOSITORY, Service  # noqa: E402

# Bytes at random are no image, which the description cannot say.
EXCLUDED = "positive_data_acceptance"
SECONDS = "600"  # the first images wait until their kernels are compiled
# Requests come as fast as they are answered, from a single client; refused ones would try nothing.
OPTIONS = ("--max-jobs", "100000", "--client-share", "1", "--max-wait", "3600")

CLIENT = """
import io, pathlib, sys
from generated import Client, types
from generated.api.filters import post_v1_filters_box
image = types.File(payload=io.BytesIO(pathlib.Path(sys.argv[2]).read_bytes()))
answer = post_v1_filters_box.sync_detailed(client=Client(base_url=sys.argv[1]), body=image, size=5)
sys.stdout.buffer.write(answer.parsed.payload.read())
"""


def try_client(service, url, programs, directory):
    subprocess.run([programs / "openapi-python-client", "generate", "--path", "openapi.json",
                    "--output-path", "generated", "--meta", "none"], cwd=directory, check=True,
                   capture_output=True)
    photograph = REPOSITORY / "tests/photograph.jpg"
    made = subprocess.run([programs / "python", "-c", CLIENT, url, photograph], cwd=directory, check=True,
                          stdout=subprocess.PIPE).stdout
    assert made == service.post("/v1/filters/box?size=5", photograph.read_bytes()).body
    print(f"generated client: an image of {len(made)} bytes", flush=True)


def count_answers(service):
    """Returns {status: number}, from 500 on {status and route: number}; {reason: number} of
    refusals, and of jobs that have failed."""
    metrics, codes = service.metrics(), collections.Counter()
    for labels, count in metrics.samples("convolved_request_duration_seconds_count"):
        codes[labels["code"] + (f" {labels['route']}" if labels["code"] >= "500" else "")] += int(count)
    return codes, *(collections.Counter({labels["reason"]: int(count) for labels, count in
                                         metrics.samples(f"convolved_{name}_total")})
                    for name in ("requests_rejected", "jobs_failed"))


def listed(counts):
    return ", ".join(f"{name}: {count}" for name, count in sorted(counts.items()))


def main(programs, seconds, directory):
    with Service(directory / "service", programs.parent / "cache", *OPTIONS) as service:
        url = f"http://{service.host}:{service.port}"
        (directory / "openapi.json").write_bytes(service.get("/openapi.json").body)
        try_client(service, url, programs, directory)
        before = count_answers(service)
        tried = subprocess.run(
            [programs / "schemathesis", "--config-file", pathlib.Path(__file__).with_name("schemathesis.toml"),
             "run", "openapi.json", "--url", url, "--checks", "all", "--exclude-checks", EXCLUDED,
             "--phases", "examples,coverage,fuzzing", "--max-time", seconds, "--max-examples", "4",
             "--request-timeout", SECONDS, "--max-response-time", SECONDS, "--suppress-health-check", "all"], cwd=directory)
        codes, refusals, failures = (now - then for now, then in zip(count_answers(service), before))
    print(f"answers: {listed(codes)}\nrefusals: {listed(refusals)}\njobs failed: {listed(failures)}")
    return 1 if any(code.startswith("500") for code in codes) else tried.returncode


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(place)))
