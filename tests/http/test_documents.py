"""The examples of docs/api.md and docs/operations.md."""
import hashlib
import re
import subprocess

import numpy as np

from command import run
from imagefiles import read_png, write_png
from pixels import random_pixels
from service import REPOSITORY

API, OPERATIONS = ((REPOSITORY / "docs" / name).read_text() for name in ("api.md", "operations.md"))
PIXELS = random_pixels(1, 40, 30, 3, "u8")


def test_every_filter_has_an_example_that_works(service):
    rows = re.findall(r"^\| !\[(\w+)\]\(images/\1\.jpg\) \| `(/v1/[^`]+)`", API, re.M)
    filters = {one["name"] for one in service.get("/v1/filters").json()["filters"]}
    assert {name for name, _ in rows} == filters | {"chain"}
    for name, target in rows:
        assert target.startswith(("/v1/chain?", f"/v1/filters/{name if name in filters else ''}"))
        answer = service.post(target, write_png(PIXELS))
        assert answer.status == 200, answer
        assert not np.array_equal(read_png(answer.body), PIXELS), name


def test_every_default_is_documented(service):
    sections = {text.split("\n")[0]: text for text in API.split("\n### ")}
    told = 0
    for one in service.get("/v1/filters").json()["filters"]:
        rows = dict(re.findall(r"^\| `(\w+)` \| .* \| `?(-?[\d.]+)`? \|$", sections[one["name"]], re.M))
        for parameter in one["parameters"]:
            if parameter["name"] in rows and parameter["default"] is not None:
                assert float(rows[parameter["name"]]) == float(parameter["default"]), (one["name"], parameter)
                told += 1
    assert told > 30


def test_detected_faces_are_hidden(service, tmp_path):
    """By the commands of docs/api.md."""
    faces, commands = re.search(r"^\$ cat faces\n(.*?)^(\$ ellipses.*?)^```", API, re.M | re.S).groups()
    pixels = random_pixels(2, 800, 300, 3, "u8")
    (tmp_path / "faces").write_text(faces)
    (tmp_path / "in.jpg").write_bytes(write_png(pixels))
    script = re.sub(r"^\$ ", "", commands, flags=re.M).replace("http://localhost:8700", service.url)
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True, timeout=60, capture_output=True)
    changed = (read_png((tmp_path / "out.jpg").read_bytes()) != pixels).any(axis=2)
    assert changed[175, 355] and changed[128, 742] and changed.mean() < 0.12
    (tmp_path / "faces").write_text("")
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True, timeout=60, capture_output=True)
    assert b"regions: expected" in (tmp_path / "out.jpg").read_bytes()


def test_the_token_file_is_valid(tmp_path):
    text = re.search(r"^\$ cat /etc/convolved/tokens\n(.*?)^\$", OPERATIONS, re.M | re.S)[1]
    tokens = tmp_path / "tokens"
    tokens.write_text(re.sub(r"5f1d…", hashlib.sha256(b"a token").hexdigest(), text))
    tokens.chmod(0o600)
    done = run("--check-config", "--tokens", tokens)
    assert (done.returncode, done.stderr) == (0, "")
