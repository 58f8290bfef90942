"""comments.py, given comments that start as they should and others."""
import pathlib
import subprocess
import sys

import pytest

COMMENTS = pathlib.Path(__file__).resolve().with_name("comments.py")


@pytest.mark.parametrize("name, text, findings", [
    ("a.c", "/* Returns what is left, and where. */\nint a; /* bytes */\n", []),
    ("a.c", "int a; /* of the image */\n", ["1: of the image"]),
    ("a.c", '/* A file.\n * Where it lies is known. */\nchar *b = "/* What */";\n', ["1: Where it lies is known."]),
    ("a.h", "/* A file.\n *\n * How it is read:\n * by rows. */\n", ["1: How it is read: by rows."]),
    ("a.h", "/* Frees it. (Likewise all others.) */\n", ["1: Likewise all others.)"]),
    ("a.def", "\n/* What they share. */\n", ["2: What they share."]),
    ("a.cl", "// Reads. Who\n// waits is told.\n", ["1: Who waits is told."]),
    ("a.js", "const a = `// What`; // likewise\n", ["1: likewise"]),
    ("a.py", 'def a():\n    """What it does."""\n    return "# Of"\n', ["2: What it does."]),
    ("a.py", "#!/usr/bin/python3\na = 1  # where it is\n# Reads.\n# Of a\n# file.\n",
     ["2: where it is Reads. Of a file."]),
    ("a.sh", "#!/bin/sh\n[ $# = 0 ] # Of no use\n", ["2: Of no use"]),
    ("a.md", "What is this?\n", []),
])
def test_findings(tmp_path, name, text, findings):
    (tmp_path / name).write_text(text)
    done = subprocess.run([sys.executable, COMMENTS, tmp_path], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stderr.splitlines(), done.returncode) == ([f"{name}:{found}" for found in findings], bool(findings))
