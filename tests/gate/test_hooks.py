"""Subjects and files that the git hooks of ./dev hooks accept and refuse."""
import os
import pathlib
import shutil
import subprocess

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
IDENTITY = {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")}


@pytest.fixture
def clone(tmp_path):
    """A repository with the hooks and nothing else."""
    for name in (".clang-format", "tests/gate/lint.sh", "tests/gate/hooks/pre-commit", "tests/gate/hooks/commit-msg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.hooksPath", "tests/gate/hooks")
    git(tmp_path, "add", ".clang-format")
    return tmp_path


def git(directory, *arguments):
    return subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, timeout=60,
                          env={**os.environ, **IDENTITY})


def commit(directory, subject="tests: say hello"):
    done = git(directory, "commit", "-qm", subject)
    assert (done.returncode == 0) == (git(directory, "log", "-1", "--format=%s").stdout.strip() == subject)
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("subject, complaint", [
    ("tests: say hello", ""),
    ("lane, tests/fault: say hello", ""),
    (".ci: " + "x" * 55, ""),
    ("Revert \"tests: say what is much too long for one of our own subjects\"", ""),
    ("say hello", "module: imperative"),
    ("tests:say hello", "module: imperative"),
    ("two words: say hello", "module: imperative"),
    ("tests: say hello.", "module: imperative"),
    (".ci: " + "x" * 56, "61 characters"),
])
def test_subjects(clone, subject, complaint):
    said = commit(clone, subject)
    assert complaint in said and bool(complaint) == bool(said)


def test_formatting(clone):
    source = clone / "some file.c"
    source.write_text("int  main;\n")
    git(clone, "add", source.name)
    source.write_text("int main;\n")  # the staged content counts
    assert "code should be clang-formatted" in commit(clone)
    git(clone, "add", source.name)
    source.write_text("int  main;\n")
    assert commit(clone) == ""


def test_unused_names(clone):
    source = clone / "a.py"
    source.write_text("import os\nimport sys\nfrom a import b  # noqa\n\nprint(sys)\n")
    git(clone, "add", source.name)
    assert "a.py:1:1: 'os' imported but unused" in commit(clone)
    source.write_text("import sys\nfrom a import b  # noqa\n\nprint(sys)\n")
    git(clone, "add", source.name)
    assert commit(clone) == ""


def test_files_that_go(clone):
    source = clone / "a.c"
    source.write_text("int main;\n")
    git(clone, "add", source.name)
    assert commit(clone) == ""
    git(clone, "rm", "-q", source.name)
    assert commit(clone, "tests: say nothing") == ""
