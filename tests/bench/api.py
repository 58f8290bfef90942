"""The description of the API, tried by other projects' programs."""
import pathlib
import re
import subprocess
import sys
import tempfile

from measure import HERE, measured
from run import PHOTOGRAPH, environment_of

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


def api(options):
    """Tries /openapi.json against the service: a client that openapi-python-client generates
    filters an image, and schemathesis sends requests that the description allows and others."""
    programs = environment_of("api") / "bin"
    with tempfile.TemporaryDirectory() as name, measured(*OPTIONS, *options.service) as service:
        directory = pathlib.Path(name)
        (directory / "openapi.json").write_bytes(service.get("/openapi.json").body)
        subprocess.run([programs / "openapi-python-client", "generate", "--path", "openapi.json", "--output-path",
                        "generated", "--meta", "none"], cwd=directory, check=True, capture_output=True)
        made = subprocess.run([programs / "python", "-c", CLIENT, service.url, PHOTOGRAPH], cwd=directory, check=True,
                              stdout=subprocess.PIPE).stdout
        assert made == service.post("/v1/filters/box?size=5", PHOTOGRAPH.read_bytes()).body
        yield {"tried": "generated client", "bytes": len(made)}
        tried = subprocess.run(
            [programs / "schemathesis", "--config-file", HERE / "schemathesis.toml", "run", "openapi.json", "--url",
             service.url, "--checks", "all", "--exclude-checks", EXCLUDED, "--phases", "examples,coverage,fuzzing",
             "--max-time", str(options.seconds), "--max-examples", "4", "--request-timeout", SECONDS,
             "--max-response-time", SECONDS, "--suppress-health-check", "all"], cwd=directory, stdout=subprocess.PIPE,
            text=True)
    sys.stderr.write(tried.stdout)
    operations, (cases, passed) = re.findall(r"Tested: (\d+)", tried.stdout), *re.findall(
        r"(\d+) generated,.* (\d+) passed", tried.stdout)
    yield {"tried": "schemathesis", "operations": int(operations[0]), "cases": int(cases), "passed": int(passed)}
    if tried.returncode:
        sys.exit("schemathesis has finds")
