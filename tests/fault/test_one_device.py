"""The only device, on which one_device.py says more; that script runs on a host with a GPU, too."""
import os
import subprocess
import sys

from service import BUILD, PROGRAM, REPOSITORY

LAYER = BUILD / "fault_layer.so"
STRIKES = int(os.environ.get("CONVOLVED_FAULT_STRIKES", "5"))


def test_struck_again_and_again(cache):
    """Requests wait for a device that takes as long as a GPU to start, quarantine or not."""
    assert LAYER.exists(), f"{LAYER} is not built: make check TESTS="
    ended = subprocess.run(
        [sys.executable, REPOSITORY / "tests/fault/one_device.py", "--program", PROGRAM, "--pocl",
         "--layer", LAYER, "--cache-dir", cache, "--strikes", str(STRIKES), "--every", "4.5", "--quiet", "11",
         "--", "--quarantine-failures", "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout
