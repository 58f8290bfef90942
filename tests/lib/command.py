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


def passing(listener, name="convolved.socket"):
    """Returns the beginning of a command that gets this socket, so named, as systemd passes it."""
    return ("/bin/bash", "-c", 'exec 3<&"$1"; export LISTEN_FDNAMES=$2 LISTEN_PID=$$ LISTEN_FDS=1; '
            'shift 2; exec "$@"', "bash", str(listener.fileno()), name)
