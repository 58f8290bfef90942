"""rooms.py, given trees whose order is kept or broken."""
import pathlib
import subprocess
import sys

import pytest

ROOMS = pathlib.Path(__file__).resolve().with_name("rooms.py")


def found(top, files):
    """The output of rooms.py for a tree of files, {name: included files}, and its exit status."""
    for name, included in files.items():
        file = top / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f'#include "{other}"\n' for other in included.split()))
    done = subprocess.run([sys.executable, ROOMS, top], capture_output=True, text=True, timeout=60)
    return done.stderr.splitlines(), done.returncode


@pytest.mark.parametrize("files, findings", [
    ({"front/main.c": "front/api/a.h common/list.def", "front/api/a.c": "front/api/a.h front/api/b.h",
      "front/api/a.h": "front/jobs/job.h", "front/api/b.h": "common/list.def",
      "front/jobs/job.h": "common/list.def", "common/list.def": ""}, []),
    ({"front/jobs/job.c": "front/jobs/job.h front/api/a.h", "front/jobs/job.h": "", "front/api/a.h": ""},
     ["daemon/front/jobs/job includes front/api/a, which is above it"]),
    ({"codec/main.c": "device/cl/memory.h", "device/cl/memory.h": ""},
     ["daemon/codec/main includes device/cl/memory, which is above it"]),
    ({"http/main.c": "link/link.h front/base/metrics.h", "link/link.h": "", "front/base/metrics.h": ""},
     ["daemon/http/main includes front/base/metrics, which is above it"]),
    ({"attic/old.c": "common/log.h", "common/log.h": ""}, ["daemon/attic/old: attic is not in ORDERS"]),
    ({"common/a.h": "", "common/a.c": "common/b.h", "common/b.h": "", "common/b.c": "common/c.h",
      "common/c.h": "common/a.h"}, ["a circle: common/a -> common/b -> common/c -> common/a"]),
    # A table is a module of its own: the struct that it makes is not part of what reads it.
    ({"common/a.h": "common/b.def", "common/b.h": "common/a.h common/b.def", "common/b.def": ""}, []),
])
def test_findings(tmp_path, files, findings):
    assert found(tmp_path, files) == (findings, bool(findings))


def test_here():
    """The order of this tree."""
    done = subprocess.run([sys.executable, ROOMS], capture_output=True, text=True, timeout=60)
    assert (done.stderr, done.returncode) == ("", 0)
