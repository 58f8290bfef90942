"""The counts of ./dev test, passed, failed and skipped, given programs that lie."""
import os
import pathlib
import subprocess
import sys
import time

import pytest

GATE = pathlib.Path(__file__).resolve().with_name("gate.sh")
TESTS = GATE.parents[1]
REPOSITORY = GATE.parents[2]

CMOCKA = """echo '[==========] Running 2 test(s).'
echo '[ RUN      ] test_a'; echo '[       OK ] test_a'
echo '[ RUN      ] test_b'; {b}
echo '[==========] 2 test(s) run.'"""
OK = "echo '[       OK ] test_b'"


def judged(tmp_path, *programs, after="", **environment):
    """Returns (passed, failed, skipped, stderr) of shell scripts that run as test programs."""
    script = f"set -eu\nlogs={tmp_path}\n. {GATE}\n"
    for number, program in enumerate(programs):
        path = tmp_path / f"program{number}"
        path.write_text(f"#!/usr/bin/env bash\n{program}\n")
        path.chmod(0o755)
        script += f"start {path.name} {path}\n"
    script += f"judge_all\n{after}\necho $passed $failed $skipped"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True,
                          timeout=60, env={**os.environ, **environment})
    return (*map(int, done.stdout.split()), done.stderr)


@pytest.mark.parametrize("program, counts", [
    (CMOCKA.format(b=OK), (2, 0, 0)),
    (CMOCKA.format(b=OK) + "; exit 1", (2, 1, 0)),
    (CMOCKA.format(b=OK) + "; echo 'ERROR: LeakSanitizer: detected memory leaks' >&2; exit 23",
     (2, 1, 0)),
    (CMOCKA.format(b="echo '[  FAILED  ] test_b'") + "; exit 1", (1, 1, 0)),
    (CMOCKA.format(b="echo '[  FAILED  ] test_b'"), (1, 1, 0)),
    (CMOCKA.format(b="echo '[  SKIPPED ] test_b'"), (1, 1, 0)),
    (CMOCKA.format(b="kill -SEGV $$"), (1, 1, 0)),
    ("echo '[==========] 0 test(s) run.'", (0, 1, 0)),
    ("echo 1 passed, 0 failed", (1, 0, 0)),
    ("echo 1 passed, 0 failed; exit 1", (1, 1, 0)),
    ("echo 1 passed, 2 failed", (1, 2, 0)),
    ("echo 0 passed, 0 failed", (0, 1, 0)),
    ("echo 1 passed, 0 failed, 1 skipped", (1, 1, 0)),
    ("echo 9 passed; echo 3 passed, 0 failed; kill -KILL $$", (3, 1, 0)),
    ("true", (0, 1, 0)),
    ("exec /no/such/program", (0, 1, 0)),
])
def test_programs(tmp_path, program, counts):
    assert judged(tmp_path, program)[:3] == counts


def test_several(tmp_path):
    """They run side by side, and their output stays separate."""
    *counts, said = judged(tmp_path, "sleep 0.3; echo 1 passed, 0 failed", "exit 3",
                           "echo 10 passed, 0 failed", CMOCKA.format(b=OK))
    assert counts == [13, 1, 0]
    assert "program1: exit status 3" in said
    assert "program0: exit" not in said


def test_the_end(tmp_path):
    """Running programs end with their children; a program that has ended does not change the status."""
    done = subprocess.run(["bash", "-c", f"""set -eu
        logs={tmp_path}; . {GATE}; set -m; trap end_jobs EXIT
        jobs() {{ builtin jobs "$@"; [ "$1" != -p ] || echo 2147483646; }}
        start lasting bash -c 'echo $$ >{tmp_path}/own; sleep 60'
        until [ -s {tmp_path}/own ]; do sleep 0.01; done"""], timeout=60, check=False)
    assert done.returncode == 0
    own = pathlib.Path(f"/proc/{(tmp_path / 'own').read_text().strip()}/stat")
    deadline = time.monotonic() + 60
    while own.exists() and own.read_text().split(") ")[1][0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_all_are_known():
    built, dev = ((REPOSITORY / name).read_text() for name in ("tests/sources.am", "dev"))
    for source in TESTS.glob("*/test_*.c"):
        assert str(source.relative_to(REPOSITORY).with_suffix("")) in built or source.name in dev, source


def selected(tmp_path, *names):
    """Returns (exit status, [tests to run], stderr) of these names in a small tree."""
    for name in ("http/test_a.py", "http/test_b.py", "http/b.py", "unit/test_b.c", "unit/b.h",
                 "fuzz/form.c", "lib/a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    done = subprocess.run(["bash", "-c", f'''tests={tmp_path}; . {GATE}; select_tests "$@" || exit
        echo ${{selected[@]}}''', "bash", *names], capture_output=True, text=True, timeout=60, check=False)
    run = sorted(path.removeprefix(f"{tmp_path}/") for path in done.stdout.split())
    return done.returncode, run, done.stderr


@pytest.mark.parametrize("names, run", [
    ([], ["fuzz/form.c", "http/test_a.py", "http/test_b.py", "unit/test_b.c"]),
    (["http"], ["http/test_a.py", "http/test_b.py"]), (["fuzz", "unit"], ["fuzz/form.c", "unit/test_b.c"]),
    (["fuzz_form"], ["fuzz/form.c"]), (["test_a"], ["http/test_a.py"]),
    (["test_b"], ["http/test_b.py", "unit/test_b.c"]),
    (["test_b::test_x"], ["http/test_b.py::test_x"]),
    (["test_a::test_x", "test_a::test_y[1]"], ["http/test_a.py::test_x", "http/test_a.py::test_y[1]"]),
])
def test_names(tmp_path, names, run):
    assert selected(tmp_path, *names) == (0, run, "")


@pytest.mark.parametrize("name", ["test_c", "a", "b", "lib", "form", "test_", "http/test_a.py", "*", "",
                                  "::test_x"])
def test_unknown_name(tmp_path, name):
    """The message lists the tests, and nothing runs."""
    status, run, said = selected(tmp_path, "test_a", name)
    assert (status, run) == (1, [])
    assert said.startswith(f"{name} is not a test") and {"http", "test_b", "fuzz_form"} <= set(said.split())


SANITIZER = "a sanitizer's memory says nothing"


@pytest.mark.parametrize("text, counts, sanitized", [
    ("def test(): assert False", (0, 1, 0), ""),
    ("import pytest\ndef test(): pass\ndef test_skip(): pytest.skip('it is late')", (1, 1, 0), ""),
    (f"import pytest\n@pytest.mark.parametrize('n', [1, 2])\n"
     f"def test(n): pytest.skip(\"{SANITIZER}\" if n else '')\n"
     "def test_other(): pytest.skip('it is late')", (0, 1, 2), "yes"),
    *(pytest.param(*row, marks=pytest.mark.slow) for row in (
        ("def test(): pass", (1, 0, 0), ""),
        ("import no_such_module", (0, 1, 0), ""),
        ("def no_test(): pass", (0, 1, 0), ""),
        ("import os\ndef test(): os._exit(0)", (0, 1, 0), ""),
        ("import os\ndef test(): pass\ndef test_crash(): os.abort()", (0, 1, 0), ""),
        (f"import pytest\ndef test(): pytest.skip(\"{SANITIZER}\")", (0, 1, 0), ""),
        ("import pytest\n@pytest.fixture\ndef broken(): yield; assert False\n"
         "def test(broken): pass", (1, 1, 0), ""))),
])
def test_pytest(tmp_path, text, counts, sanitized):
    (tmp_path / "test_it.py").write_text(text)
    assert judged(tmp_path, f"{sys.executable} -m pytest -q -rs --no-header -p no:cacheprovider "
                  f"{tmp_path}", sanitized=sanitized)[:3] == counts
