"""The rights that the units leave the service, as systemd-analyze rates them; and log lines
elsewhere."""
import json
import re
import shutil
import subprocess

import pytest

from service import BUILD, PROGRAM, REPOSITORY, tool


@pytest.mark.parametrize("drop_in, most", [(None, 0.5), ("gpu.conf", 1.0), ("otlp.conf", 1.0)])
def test_exposure(tmp_path, drop_in, most):
    """At most this exposed, without and with GPUs."""
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    shutil.copy(BUILD / "convolved.service", units)
    shutil.copy(REPOSITORY / "systemd/convolved.socket", units)
    if drop_in:
        (units / "convolved.service.d").mkdir()
        shutil.copy(REPOSITORY / "systemd" / drop_in, units / "convolved.service.d")
    result = subprocess.run(
        [tool("systemd-analyze"), "security", "--no-pager", "--offline=true",
         f"--root={tmp_path}", f"--threshold={most * 10:.0f}", "convolved.service"],
        capture_output=True, text=True, check=False)
    level = re.search(r"Overall exposure level for convolved\.service: ([0-9.]+)", result.stdout)
    assert level, result
    assert float(level[1]) <= most, result.stdout
    assert result.returncode == 0, result
    assert ("char-nvidia" in result.stdout) == (drop_in == "gpu.conf")


def test_json_lines():
    """--log-format json: an object a line, whatever is in the text."""
    directory = 'quote " newline \n'
    result = subprocess.run([PROGRAM, "--log-format", "json", "--cache-dir", f"/proc/{directory}"],
                            capture_output=True, text=True, check=False)
    assert result.returncode == 1
    first, last = (json.loads(line) for line in result.stderr.splitlines())
    assert first["level"] == last["level"] == "error"
    assert first["program"] == "convolved"
    assert 'cache-dir=/proc/quote " newline ?' in first["message"]
    assert last["message"].startswith("cannot start")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", first["time"])
