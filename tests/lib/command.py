"""The service's program as a command that ends: it checks, prints or refuses something."""
import os
import subprocess

from service import PATIENCE, PROGRAM

INVALID = os.EX_CONFIG  # the exit status


def run(*arguments, environment=None, text=None):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE,
                          input=text, env={**os.environ, **(environment or {})})


def hashed(token):
    """Returns the line of the file for a token."""
    done = run("--hash-token", text=token + "\n")
    assert done.returncode == 0, done.stderr
    return done.stdout
