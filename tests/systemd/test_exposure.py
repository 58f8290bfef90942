"""The rights that the units leave the service, as systemd-analyze rates them."""
import re
import shutil
import subprocess

import pytest

from service import BUILD, REPOSITORY, tool


@pytest.mark.parametrize("drop_in, most", [(None, 0.5), ("gpu.conf", 1.0), ("otlp.conf", 1.0)])
def test_exposure(tmp_path, drop_in, most):
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
