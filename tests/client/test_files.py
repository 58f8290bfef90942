"""The client's changes to the user's files, and those that it must never make."""
import json
import os
import resource
import signal
import threading

import pytest

from client import complains, fill, found, in_namespace, ppm, run, start
from service import poll

MANIFEST = ".convolve.jsonl"
HEAD = b'{"convolve":"manifest","version":1}\n'

# Originals ----------------------------------------------------------------------------------------

def test_no_result_takes_the_place_of_an_input(server, tmp_path):
    """This holds for any input, whatever its path is called."""
    asked = server()
    d = fill(tmp_path / "d", "a.ppm", "sub/b.ppm", "sub/sub/b.ppm", "other/c.png", "other/c.ppm")
    (d / "link.ppm").symlink_to("a.ppm")
    (d / "hard.ppm").hardlink_to(d / "a.ppm")
    (d / "directory").symlink_to("sub")
    before = found(d)

    def refused(*arguments, **options):
        complains(" would overwrite ", asked.url, "box", *arguments, status=2, **options)

    refused(d / "sub", "-o", d)  # the result of sub/sub/b.ppm is sub/b.ppm
    refused(d / "sub/sub", "-o", d / "directory", d / "sub/b.ppm")
    refused("--format", "png", d / "other", "-o", d / "other")
    refused(d / "a.ppm", "-o", d / "a.ppm")
    refused(d / "a.ppm", "-o", d / "link.ppm")
    refused(d / "a.ppm", "-o", d / "hard.ppm")
    refused(d / "link.ppm", "-o", f"{d}/sub/../a.ppm")
    with (d / "a.ppm").open("rb") as file:
        refused("-", "-o", d / "hard.ppm", stdin=file)
    with (d / "a.ppm").open("ab") as file:
        client = start(asked.url, "box", d / "link.ppm", "-o", "-", stdout=file)
        assert b" would overwrite " in client.communicate(timeout=60)[1] and client.returncode == 2
    assert found(d) == before and not asked.requests


def test_originals_in_the_directory_of_results(server, tmp_path):
    """The results' directory lies in the images' and is left out, but not all in it are results."""
    asked, d = server(), fill(tmp_path / "d", "a.ppm", "b.ppm", "sub/b.ppm")
    for _ in range(2):
        complains(f"convolve: {d}/sub/b.ppm: the file is not a result of this command, or has been changed since: "
                  "--force replaces it\n", asked.url, "box", d, "-o", d / "sub")
        assert found(d / "sub") == {"a.ppm": ppm(0)[::-1], "b.ppm": ppm(2)}
    (d / "sub/b.ppm").unlink()
    run(asked.url, "box", d, "-o", d / "sub")
    run(asked.url, "box", d, "-o", d / "sub", "--force")
    assert found(d / "sub") == {"a.ppm": ppm(0)[::-1], "b.ppm": ppm(1)[::-1]}


def test_two_results_in_one_place(server, tmp_path):
    """Which only shows when the first of them is there."""
    asked, out = server(), tmp_path / "out"
    images = fill(tmp_path / "images", "l/a.ppm", "m/a.ppm")
    (out / "m").mkdir(parents=True)
    (out / "l").symlink_to("m")
    for _ in range(2):  # also when the first is not made again
        complains(f"convolve: {out}/m/a.ppm: it is the same file as {out}/l/a.ppm, which is not overwritten\n",
                  asked.url, "box", images, "-o", out, "-j", 1)
        assert found(out / "m") == {"a.ppm": ppm(0)[::-1]}


def test_full_disk_stops_a_batch(server, tmp_path):
    """At once: there is no room for the next, either. No part of a result is left."""
    asked, out = server(lambda handler: (200, {}, handler.body * 40)), tmp_path / "out"
    images = fill(tmp_path / "images", *(f"{i}.ppm" for i in range(60)))
    out.mkdir()
    done = in_namespace(asked.url, f'mount -t tmpfs -o size=400k none {out}; '
                        f'"$@" || echo "status $?"; ls -A {out}', "box", images, "-o", out, "-j", 1)
    status, *left = done.stdout.splitlines()
    assert status == "status 1" and done.stderr.count("\n") == 1, done
    assert "cannot store the result: No space left on device" in done.stderr
    assert len(left) == len(asked.requests) < 10, "one fewer, and the manifest"


# The manifest -------------------------------------------------------------------------------------

def test_what_is_no_manifest_is_left_alone(server, tree, tmp_path):
    asked, out, precious = server(), tmp_path / "out", tmp_path / "precious"
    manifest = out / MANIFEST
    out.mkdir()

    def refused(words):
        complains(f"convolve: {manifest}: {words}: move it away\n", asked.url, "box", tree, "-o", out)

    for text in (b"a diary\n", HEAD[:-1], HEAD[:-3] + b"2}\n", b'{"output": "a.ppm"}\n' * 3000):
        manifest.write_bytes(text)
        refused("the file is not a manifest of convolve")
        assert manifest.read_bytes() == text
    manifest.unlink()
    os.mkfifo(manifest)
    refused("the file is not a manifest of convolve")
    manifest.unlink()
    for target in (b"", HEAD, None):
        if target is not None:
            precious.write_bytes(target)
        manifest.symlink_to(precious)
        refused("the manifest is a symbolic link, which convolve does not write through")
        assert target is None or precious.read_bytes() == target
        manifest.unlink()
        precious.unlink(missing_ok=True)
    assert not asked.requests and found(out) == {}


def test_one_image_and_the_manifest(server, image, tmp_path):
    """A directory has one, also of a single result; a file that is named has none."""
    asked, out = server(), tmp_path / "out"
    run(asked.url, "box", image, "-o", out / "in.ppm")
    assert os.listdir(out) == ["in.ppm"]
    for _ in range(2):
        run(asked.url, "box", image, "-o", f"{tmp_path}/other/")
    assert sorted(os.listdir(tmp_path / "other")) == [MANIFEST, "in.ppm"] and len(asked.requests) == 2


def test_the_manifest_is_renewed(server, tree, tmp_path):
    """When most of it is out of date; another process that works in the directory loses nothing."""
    out, going = tmp_path / "out", threading.Event()
    manifest = out / MANIFEST

    def answer(handler):
        if "strip=1" in handler.path:
            going.wait(60)
        return 200, {}, handler.body

    asked = server(answer)
    run(asked.url, "box", tree, "-o", out)
    head, *lines = manifest.read_bytes().splitlines(True)
    assert head == HEAD and len(lines) == 4
    before, slow = manifest.stat(), fill(tmp_path / "slow", "x.ppm", "y.ppm")
    other = start(asked.url, "box", "--strip", "1", slow, "-o", out)
    try:
        poll(lambda: len(asked.requests) == 6, 60, "the other's requests")
        with manifest.open("ab") as file:
            file.write(b"".join(lines) * 1000)
        run(asked.url, "box", tree, "-o", out)
    finally:
        going.set()
        assert other.wait(60) == 0
    after = manifest.read_bytes().splitlines(True)
    assert after[0] == HEAD and sorted(after[1:5]) == sorted(lines) and len(after) == 7
    assert {json.loads(line)["output"] for line in after[5:]} == {"x.ppm", "y.ppm"}
    assert manifest.stat().st_ino != before.st_ino and len(asked.requests) == 6
    assert manifest.stat().st_mode == before.st_mode
    assert sorted(os.listdir(out)) == [MANIFEST, "a.ppm", "b.PPM", "sub", "x.ppm", "y.ppm"]


# Disks --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("call, why", [
    ("fsync", "Input/output error"), ("close", "Disk quota exceeded"), ("fchmod", None)])
def test_what_the_disk_did_not_take_is_no_result(server, image, tmp_path, failing, call, why):
    """On FAT or CIFS files may be another's to change the mode of, which is no error."""
    out = tmp_path / "out.ppm"
    out.write_bytes(b"old")
    _, said = run(server().url, "box", image, "--force", "-o", out, status=1 if why else 0,
                  variables={**failing, "FAIL": call})
    assert said == (f"convolve: {out}: {why}\n" if why else "")
    assert out.read_bytes() == (b"old" if why else image.read_bytes()[::-1])
    assert sorted(found(tmp_path)) == ["in.ppm", "out.ppm"]


def test_directories_are_synced(server, tree, tmp_path, failing):
    _, said = run(server().url, "box", tree, "-o", tmp_path / "out", "-j", 1, status=1,
                  variables={**failing, "FAIL": "directories"})
    assert sorted(said.splitlines()) == [
        f"convolve: {tmp_path}/out/{name}: Input/output error" for name in ("", "sub/", "sub/deep/")]
    assert len(found(tmp_path / "out")) == 4


def test_a_file_that_may_not_be_so_large(server, image, tmp_path):
    """By ulimit -f, whose signal would leave the hidden file."""
    asked = server(lambda handler: (200, {}, b"x" * (1 << 20)))
    client = start(asked.url, "box", image, "-o", tmp_path / "out.ppm",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)))
    said = client.communicate(timeout=60)[1].decode()
    assert (client.returncode, said) == (
        1, f"convolve: {image}: cannot store the result: File too large\n")
    assert os.listdir(tmp_path) == ["in.ppm"]


def test_directories_that_cannot_be_made(server, tree, tmp_path):
    asked, out = server(), tmp_path / "out"
    _, said = run(asked.url, "box", tree / "a.ppm", "-o", tree / "b.PPM/x/y.ppm", status=1)
    assert said == f"convolve: {tree}/b.PPM/x/y.ppm: Not a directory\n" and not asked.requests
    out.mkdir()
    (out / "sub").write_bytes(b"a file")
    _, said = run(asked.url, "box", tree, "-o", out, status=1)
    assert sorted(said.splitlines()) == [f"convolve: {out}/sub/a.ppm: Not a directory",
                                         f"convolve: {out}/sub/deep/c d.ppm: Not a directory"]
    assert sorted(found(out)) == ["a.ppm", "b.PPM", "sub"]
    done = in_namespace(asked.url, f'mount -t tmpfs -o ro none {out}; exec "$@"', "box",
                        tree / "a.ppm", "-o", out / "new/a.ppm")
    assert (done.returncode, done.stderr) == (
        1, f"convolve: {out}/new/a.ppm: Read-only file system\n")


# Signals ------------------------------------------------------------------------------------------

def test_signals_that_are_ignored_stay_so(server, image, tmp_path):
    """As nohup wants it."""
    going = threading.Event()
    asked = server(lambda handler: going.wait(60) and (200, {}, handler.body))
    client = start(asked.url, "box", image, "-o", tmp_path / "out.ppm",
                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    poll(lambda: asked.requests, 60, "the request")
    client.send_signal(signal.SIGHUP)
    going.set()
    assert client.wait(60) == 0, client.stderr.read()
