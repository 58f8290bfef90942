"""rooms.py, given trees whose order is kept or broken."""
import pathlib
import subprocess
import sys

import pytest

ROOMS = pathlib.Path(__file__).resolve().with_name("rooms.py")


def found(top, files):
    """Returns rooms.py's output and exit status for a tree of files, {name: included files}."""
    for name, included in files.items():
        file = top / name
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = 1 if "short" in name else 80
        file.write_text("".join(f'#include "{other}"\n' for other in included.split()) + lines * "\n")
    done = subprocess.run([sys.executable, ROOMS, top], capture_output=True, text=True, timeout=60)
    return done.stderr.splitlines(), done.returncode


def test_order():
    """The repository's own holds."""
    done = subprocess.run([sys.executable, ROOMS], capture_output=True, text=True, timeout=60)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("files, findings", [
    ({"front/main.c": "front/api/a.h base/list.def", "front/api/a.c": "front/api/a.h front/api/b.h",
      "front/api/a.h": "front/jobs/job.h", "front/api/b.h": "base/list.def",
      "front/jobs/job.h": "base/list.def", "base/list.def": ""}, []),
    ({"front/jobs/job.c": "front/jobs/job.h front/api/a.h", "front/jobs/job.h": "", "front/api/a.h": ""},
     ["daemon/front/jobs/job includes front/api/a, which is above it"]),
    ({"codec/main.c": "device/cl/memory.h", "device/cl/memory.h": ""},
     ["daemon/codec/main includes device/cl/memory, which is above it"]),
    ({"http/main.c": "link/link.h front/base/metrics.h", "link/link.h": "", "front/base/metrics.h": ""},
     ["daemon/http/main includes front/base/metrics, which is above it"]),
    ({"attic/old.c": "base/log.h", "base/log.h": ""}, ["daemon/attic/old: attic is not in ORDERS"]),
    ({"base/a.h": "", "base/a.c": "base/b.h", "base/b.h": "", "base/b.c": "base/c.h",
      "base/c.h": "base/a.h"}, ["a circle: base/a -> base/b -> base/c -> base/a"]),
    # A table is a module of its own: the struct that it makes is not part of its readers.
    ({"base/a.h": "base/b.def", "base/b.h": "base/a.h base/b.def", "base/b.def": ""}, []),
    ({f"image/{n}.h": "" for n in range(18)}, []),
    ({f"image/{n}.h": "" for n in range(19)}, ["image: 19 modules, at most 18"]),
    ({"base/a.c": "base/short.h", "base/short.h": "", "base/short.c": "base/short.h"},
     ["base/short: 3 lines for base/a alone"]),
    ({"base/a.c": "base/short.h", "base/b.c": "base/short.h", "base/short.h": ""}, []),
])
def test_findings(tmp_path, files, findings):
    assert found(tmp_path, files) == (findings, bool(findings))
