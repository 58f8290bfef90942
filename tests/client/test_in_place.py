"""Results that replace their inputs, each once, or lie beside them."""
import itertools
import json
import os
import shutil
import signal
import struct
import subprocess
import threading

import pytest

from client import PROGRAM, complains, environment, fill, found, in_namespace, ppm, run, start
from scripted import problem
from service import poll

MANIFEST = ".convolve.jsonl"
CHANGED = "it is a result of this command that has been changed since: --force filters it again"


def filtered(body, times=1):
    """The size stays, and each time counts."""
    return body[:-1] + bytes([(body[-1] + times) % 256])


@pytest.fixture
def asked(server):
    return server(lambda handler: (200, {}, filtered(handler.body)))


@pytest.fixture
def originals(tmp_path):
    return fill(tmp_path / "d", "a.ppm", "b.PPM", "sub/a.ppm", "sub/c\nd.ppm")


def test_each_once(asked, originals):
    """Whichever way the files are named, and whatever came before."""
    before = found(originals)
    (originals / "notes.txt").write_bytes(b"x")
    run(asked.url, "box", "--in-place", originals, "-j", 3)
    once = {name: filtered(body) for name, body in before.items()}
    assert found(originals) == {**once, "notes.txt": b"x"} and len(asked.requests) == 4
    names = "\0".join(str(originals / name) for name in before).encode()
    for arguments, options in (((originals,), {}), ((originals / "a.ppm", originals / "sub/../sub"), {}),
                               ((".",), {"cwd": originals / "sub"}), (("a.ppm",), {"cwd": originals}),
                               (("--files-from", "-", "--null"), {"input": names + b"\0" + names})):
        assert run(asked.url, "box", "--in-place", *arguments, **options) == (b"", "")
    os.rename(originals, originals.parent / "moved")
    run(asked.url, "box", "--in-place", originals.parent / "moved")
    assert len(asked.requests) == 4 and found(originals.parent / "moved") == {**once, "notes.txt": b"x"}


def test_what_is_filtered_again(asked, originals):
    """Another request, more files, an original that was brought back, and what --force asks for."""
    a = originals / "a.ppm"
    shutil.copy2(a, originals / "kept")
    run(asked.url, "box", "--in-place", a)
    run(asked.url, "box", "--in-place", "--size", 5, a)
    run(asked.url, "box", "--in-place", "--size", 5, a)
    assert a.read_bytes() == filtered(ppm(0), 2)
    run(asked.url, "box", "--in-place", "--size", 5, originals)
    assert a.read_bytes() == filtered(ppm(0), 2) and (originals / "sub/a.ppm").read_bytes() == filtered(ppm(2))
    run(asked.url, "box", "--in-place", "--size", 5, "--force", a)
    assert a.read_bytes() == filtered(ppm(0), 3)
    for text in (b"edited", a.read_bytes()):
        a.write_bytes(text)
        os.utime(a)
        complains(f"convolve: {a}: {CHANGED}\n", asked.url, "box", "--in-place", "--size", 5, a)
        assert a.read_bytes() == text
    b, kept = originals / "b.PPM", originals / "b.orig"
    shutil.copy2(b, kept)
    b.unlink()
    shutil.copy2(originals / "kept", originals / "e.ppm")
    shutil.copy2(originals / "e.ppm", originals / "e.orig")
    run(asked.url, "box", "--in-place", originals / "e.ppm")
    shutil.copy2(originals / "e.orig", originals / "e.ppm")
    run(asked.url, "box", "--in-place", originals / "e.ppm")
    assert (originals / "e.ppm").read_bytes() == filtered(ppm(0))


def test_dry_run(asked, originals):
    run(asked.url, "box", "--in-place", originals / "sub")
    (originals / "sub/a.ppm").write_bytes(b"edited")
    before, seen = {path: path.read_bytes() for path in originals.rglob("*") if path.is_file()}, len(asked.requests)
    plan, said = run(asked.url, "box", "--in-place", "--dry-run", originals, status=1)
    assert plan.decode().replace(f"{originals}/", "").splitlines() == [
        "a.ppm -> a.ppm: replace", "b.PPM -> b.PPM: replace", "sub/c?d.ppm -> sub/c?d.ppm: skip: it is made"]
    assert said == f"convolve: {originals}/sub/a.ppm: {CHANGED}\n"
    plan, _ = run(asked.url, "box", "--suffix", "-x", "--dry-run", originals / "a.ppm")
    assert plan.decode() == f"{originals}/a.ppm -> {originals}/a-x.ppm: make\n"
    assert {path: path.read_bytes() for path in originals.rglob("*") if path.is_file()} == before
    assert len(asked.requests) == seen


@pytest.mark.parametrize("arguments, words, status", [
    (("a.ppm", "-o", "x.ppm"), "--in-place and -o: give one place for results", 2),
    (("a.ppm", "--output-dir", "x"), "--in-place and --output-dir: give one place", 2),
    (("a.ppm", "--suffix", "x"), "--in-place and --suffix: give one place", 2),
    ((), "no input: give image files, or a directory", 2),
    (("-",), "standard input has no file name: give -o FILE\n", 2),
    (("a.ppm", "./a.ppm"), "a.ppm would both become ", 2),
    (("a.ppm", "--format", "png"), "a.ppm: --format is not the format that its name says", 1),
    (("noname",), "noname: its name does not say the format, so that the result may have another", 1),
    (("s3://from/a.ppm",), "s3://from/a.ppm: --in-place replaces files", 1),
    (("https://h/a.ppm",), "https://h/a.ppm: --in-place replaces files", 1),
    (("link.ppm",), "link.ppm: a symbolic link, which --in-place does not follow", 1),
    (("pipe.ppm",), "pipe.ppm: --in-place replaces files", 1),
    (("none.ppm",), "none.ppm: No such file or directory", 1),
    (("none/none.ppm",), "none/none.ppm: No such file or directory", 1),
    (("a.ppm/b.ppm",), "a.ppm/b.ppm: Not a directory", 1),
    (("folder.ppm/",), "no images in folder.ppm/", 0),
])
def test_what_cannot_be_replaced(asked, originals, arguments, words, status):
    (originals / "noname").write_bytes(ppm())
    (originals / "link.ppm").symlink_to("a.ppm")
    (originals / "folder.ppm").mkdir()
    os.mkfifo(originals / "pipe.ppm")
    before = found(originals)
    complains(words, asked.url, "box", "--in-place", *arguments, status=status, cwd=originals)
    assert found(originals) == before and not asked.requests and not (originals / "none").exists()


def test_jobs_have_no_place(asked):
    for option in (("--in-place",), ("--suffix", "x")):
        complains(f"{option[0]}: a job has no input file: give -o", asked.url, "jobs", "fetch", "ab", *option, status=2)


def test_links(asked, originals):
    """Symbolic ones in directories are left out; other hard ones keep the original."""
    elsewhere = fill(originals.parent / "elsewhere", "x.ppm")
    (originals / "linked.ppm").symlink_to("a.ppm")
    (originals / "directory").symlink_to(elsewhere)
    (elsewhere / "hard.ppm").hardlink_to(originals / "a.ppm")
    _, said = run(asked.url, "box", "--in-place", originals)
    assert said == "convolve: left out: 2 symbolic links, which --in-place does not follow\n"
    assert (originals / "linked.ppm").is_symlink() and found(elsewhere) == {"x.ppm": ppm(0), "hard.ppm": ppm(0)}
    assert (originals / "a.ppm").read_bytes() == filtered(ppm(0))
    (originals / "e.ppm").hardlink_to(originals / "a.ppm")  # its name is another file to us
    (originals / "top").symlink_to("sub")
    run(asked.url, "box", "--in-place", originals / "top", originals / "e.ppm")
    assert (originals / "e.ppm").read_bytes() == filtered(ppm(0), 2)
    assert (originals / "a.ppm").read_bytes() == filtered(ppm(0)) and len(asked.requests) == 5


def test_the_result_has_another_format(server, originals):
    asked = server([(200, {"Content-Type": "image/png"}, b"result")])
    complains(f"convolve: {originals}/a.ppm: the result is of the type image/png, and its name says another",
              asked.url, "box", "--in-place", originals / "a.ppm")
    assert (originals / "a.ppm").read_bytes() == ppm(0) and not list(originals.glob(".conv*-*"))


def test_no_foreign_result_in_their_places(asked, originals):
    """A result that has replaced its input is the only copy."""
    other = fill(originals.parent / "other", "a.ppm")
    run(asked.url, "box", "--in-place", originals / "a.ppm")
    complains("the file is not a result of this command, or has been changed since", asked.url, "box", other, "-o",
              originals)
    assert (originals / "a.ppm").read_bytes() == filtered(ppm(0))
    run(asked.url, "box", other, "-o", originals, "--force")
    run(asked.url, "box", "--in-place", originals / "a.ppm")
    assert (originals / "a.ppm").read_bytes() == filtered(ppm(0), 2)


def test_modes_and_owners(asked, originals):
    a = originals / "a.ppm"
    a.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(a, 12345, 23456)
    def acl(entry):
        return struct.pack("<HHI", *entry)
    try:
        os.setxattr(a, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(map(acl, (
            (1, 6, 0xffffffff), (2, 6, 1000), (4, 0, 0xffffffff), (0x10, 6, 0xffffffff), (0x20, 0, 0xffffffff)))))
        kept = os.getxattr(a, "system.posix_acl_access")
    except OSError:
        kept = None
    before = a.stat()
    run(asked.url, "box", "--in-place", a)
    after = a.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino and a.read_bytes() == filtered(ppm(0))
    assert kept is None or os.getxattr(a, "system.posix_acl_access") == kept


def without_powers(url, *arguments):
    """Runs the client without the superuser's right to what files forbid."""
    apart = ["setpriv", "--bounding-set", "-dac_override,-chown", "--inh-caps", "-dac_override,-chown"]
    return subprocess.run([*(apart if os.geteuid() == 0 else []), PROGRAM, *map(str, arguments)],
                          env=environment(url), capture_output=True, text=True, timeout=60)


def test_write_protected(asked, originals):
    a = originals / "a.ppm"
    a.chmod(0o444)
    done = without_powers(asked.url, "box", "--in-place", a)
    assert (done.returncode, done.stderr) == (1, f"convolve: {a}: it is write-protected: --force replaces it\n")
    assert a.read_bytes() == ppm(0)
    assert without_powers(asked.url, "box", "--in-place", "--force", a).returncode == 0
    assert a.read_bytes() == filtered(ppm(0)) and a.stat().st_mode & 0o777 == 0o444
    originals.joinpath("sub").chmod(0o555)
    done = without_powers(asked.url, "box", "--in-place", originals / "sub")
    assert done.returncode == 1 and done.stderr == f"convolve: {originals}/sub/{MANIFEST}: Permission denied\n"
    assert found(originals / "sub") == {"a.ppm": ppm(2), "c\nd.ppm": ppm(3)}


def test_a_group_that_cannot_be_kept(asked, originals):
    """Then it must not give its rights to another."""
    if os.geteuid():
        pytest.skip("only the superuser has files of other groups")
    a = originals / "a.ppm"
    os.chown(a, 0, 23456)
    a.chmod(0o664)
    assert without_powers(asked.url, "box", "--in-place", a).returncode == 0
    assert a.stat().st_mode & 0o777 == 0o644 and a.stat().st_gid != 23456


def test_times_that_are_coarse(asked, originals, failing):
    """A result of the size and time of its input is not taken for it."""
    a = originals / "a.ppm"
    os.utime(a, (10**9, 10**9))
    run(asked.url, "box", "--in-place", a, variables={**failing, "MTIME": f"{10**9}"})
    assert a.read_bytes() == filtered(ppm(0)) and a.stat().st_mtime == 10**9 + 2
    run(asked.url, "box", "--in-place", a)
    assert a.read_bytes() == filtered(ppm(0)) and len(asked.requests) == 1


# Broken off ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [(), ("--suffix", "-x")])
def test_killed_at_every_step(asked, originals, failing, options):
    """The file is the original or the whole result, and the next run makes it that, once."""
    d, a = originals / "sub", originals / "sub/a.ppm"
    place = a if not options else d / "a-x.ppm"
    for steps in itertools.count(1):
        shutil.rmtree(d)
        fill(d, "a.ppm")
        client = start(asked.url, "box", *(options or ["--in-place"]), a, variables={**failing, "KILL": str(steps)})
        if client.wait(60) == 0:
            break
        assert client.returncode == -signal.SIGKILL
        bodies = {name: body for name, body in found(d).items() if not name.startswith(".")}
        assert bodies.get("a.ppm") in ([ppm(0), filtered(ppm(0))] if place == a else [ppm(0)]), steps
        assert place == a or bodies.get("a-x.ppm") in (None, filtered(ppm(0))), steps
        run(asked.url, "box", *(options or ["--in-place"]), a)
        assert place.read_bytes() == filtered(ppm(0)), steps
        assert sorted(os.listdir(d)) == sorted({MANIFEST, "a.ppm", place.name}), steps
    assert steps > 10


def test_killed_in_the_middle(server, tmp_path):
    """Those of a batch that were replaced are not filtered again."""
    names = [f"{i:02}.ppm" for i in range(30)]
    d, held = fill(tmp_path / "d", *names), threading.Event()

    def answer(handler):
        if len(asked.requests) > 12:
            held.wait(60)
        return 200, {}, filtered(handler.body)

    asked = server(answer)
    client = start(asked.url, "box", "--in-place", d, "-j", 4)
    poll(lambda: len(asked.requests) == 16, 60, "the requests that hang")
    client.kill()
    client.wait(60)
    assert sorted(os.listdir(d)) != sorted([MANIFEST, *names]), "something was under way"
    held.set()
    run(asked.url, "box", "--in-place", d, "-j", 4)
    assert found(d) == {name: filtered(ppm(i)) for i, name in enumerate(names)} and len(asked.requests) == 34
    assert sorted(os.listdir(d)) == sorted([MANIFEST, *names])


def test_two_runs_at_once(server, originals):
    """The second has read the record before the first writes to it."""
    first, second = threading.Event(), threading.Event()

    def answer(handler):
        if handler.body == ppm(0):
            first.wait(60)
        elif handler.body == ppm(1):
            second.wait(60)
            return problem(422, "it is too large", "too-many-pixels")
        return 200, {}, filtered(handler.body)

    asked = server(answer)
    a, b = originals / "a.ppm", originals / "b.PPM"
    one = start(asked.url, "box", "--in-place", a)
    poll(lambda: len(asked.requests) == 1, 60, "the first's request")
    complains(f"convolve: {a}: another convolve is making it\n", asked.url, "box", "--in-place", a)
    other = start(asked.url, "box", "--in-place", b, a, "-j", 1)
    poll(lambda: len(asked.requests) == 2, 60, "the second's request")
    first.set()
    assert one.wait(60) == 0
    second.set()
    assert other.wait(60) == 1
    assert a.read_bytes() == filtered(ppm(0)) and b.read_bytes() == ppm(1) and len(asked.requests) == 2


def test_many_runs_at_once(asked, tmp_path):
    names = [f"{i:03}.ppm" for i in range(200)]
    d = fill(tmp_path / "d", *names)
    for client in [start(asked.url, "box", "--in-place", d, "-j", 4) for _ in range(4)]:
        client.wait(60)
    run(asked.url, "box", "--in-place", d)
    assert found(d) == {name: filtered(ppm(i)) for i, name in enumerate(names)} and len(asked.requests) == 200


@pytest.mark.parametrize("change", ["edited", "replaced", "removed"])
def test_an_input_that_changes_meanwhile(server, originals, change):
    a = originals / "a.ppm"

    def answer(handler):
        if change == "edited":
            a.write_bytes(b"edited")
        else:
            a.unlink()
        if change == "replaced":
            a.write_bytes(b"replaced")
        return 200, {}, filtered(handler.body)

    asked = server(answer)
    complains(f"convolve: {a}: it has been changed meanwhile\n", asked.url, "box", "--in-place", a)
    assert found(originals).get("a.ppm") == {"edited": b"edited", "replaced": b"replaced"}.get(change)
    assert not list(originals.glob(".conv*-*"))


@pytest.mark.parametrize("call", ["fsync", "close", "fdatasync", "directories"])
def test_what_the_disk_does_not_take(asked, originals, failing, call):
    """Neither the result nor that it is one."""
    a = originals / "a.ppm"
    run(asked.url, "box", "--in-place", a, status=1, variables={**failing, "FAIL": call})
    assert a.read_bytes() == ppm(0) and sorted(os.listdir(originals)) == [MANIFEST, "a.ppm", "b.PPM", "sub"]
    run(asked.url, "box", "--in-place", a)
    assert a.read_bytes() == filtered(ppm(0))


def test_durable(server, originals, failing):
    """The job is deleted once its result has replaced the input, and not before."""
    a, had = originals / "a.ppm", []

    def answer(handler):
        had.append((handler.command, a.read_bytes() == b"result"))
        return {"POST": (202, {"Location": "/v1/jobs/ab"}, b"{}"), "DELETE": (204, {}, b""), "GET": (
            200, {"Content-Type": "image/x-portable-pixmap", "X-Image": "40x30x3:u8"}, b"result")}[handler.command]

    asked = server(answer)
    run(asked.url, "box", "--in-place", "--durable", a, status=1, variables={**failing, "FAIL": "fdatasync"})
    assert had == [("POST", False), ("GET", False)] and a.read_bytes() == ppm(0)
    for _ in range(2):
        run(asked.url, "box", "--in-place", "--durable", a)
    assert had[2:] == [("POST", False), ("GET", False), ("DELETE", True)]
    assert len({r.headers["Idempotency-Key"] for r in asked.requests if r.command == "POST"}) == 1


def test_disks_that_are_full_or_read_only(server, originals):
    asked, disk = server(lambda handler: (200, {}, filtered(handler.body) * 40)), originals.parent / "disk"
    disk.mkdir()
    for size, after, words, lines in (("100k", ":", "cannot store the result: No space left on device\n", 1),
                                      ("1m", f"mount -o remount,ro {disk}", ".ppm: Read-only file system\n", 2)):
        done = in_namespace(asked.url, f'mount -t tmpfs -o size={size} none {disk}; cp -r {originals}/sub {disk}; {after}; '
                            f'"$@" || echo "status $?"; diff -r -x {MANIFEST} {originals}/sub {disk}/sub; '
                            f'ls -A {disk}/sub | grep convolve-', "box", "--in-place", disk, "-j", 1)
        assert done.stdout == "status 1\n" and done.stderr.endswith(words) and done.stderr.count("\n") == lines, done


def test_a_file_that_is_mounted(asked, originals):
    """As into containers: nothing can take its place."""
    a = originals / "a.ppm"
    done = in_namespace(asked.url, f'mount --bind {a} {a}; exec "$@"', "box", "--in-place", a)
    assert (done.returncode, done.stderr) == (1, f"convolve: {a}: Device or resource busy\n")
    assert sorted(os.listdir(originals)) == [MANIFEST, "a.ppm", "b.PPM", "sub"] and a.read_bytes() == ppm(0)
    run(asked.url, "box", "--in-place", a)
    assert a.read_bytes() == filtered(ppm(0))


# Beside -------------------------------------------------------------------------------------------

def test_suffixes(asked, originals):
    """Results are not taken for inputs, whichever way they are named, and replace nothing foreign."""
    def result(name):
        return str(name).replace(".ppm", "-x.ppm").replace(".PPM", "-x.PPM")
    before = found(originals)
    right = {**before, **{result(name): filtered(body) for name, body in before.items()}}
    run(asked.url, "box", "--suffix", "-x", originals)
    assert found(originals) == right
    told = "convolve: left out: {} with -x at the end, as results have it\n"
    names = [originals / name for name in right]
    assert run(asked.url, "box", "--suffix", "-x", originals)[1] == told.format("4 names")
    assert run(asked.url, "box", "--suffix", "-x", *names)[1] == told.format("4 names")
    assert run(asked.url, "box", "--suffix", "-x", "--files-from", "-", "--null",
               input=b"\0".join(os.fsencode(name) for name in names))[1] == told.format("4 names")
    assert run(asked.url, "box", "--suffix", "-x", originals / "a-x.ppm")[1] == told.format("1 name")
    assert len(asked.requests) == 4 and found(originals) == right
    run(asked.url, "box", "--suffix=-x", "--format", "png", originals / "a.ppm")
    assert (originals / "a-x.png").read_bytes() == filtered(ppm(0))
    (originals / "a-x.ppm").write_bytes(b"edited")
    (originals / "a-y.ppm").write_bytes(b"precious")
    for suffix, place in (("-x", "a-x.ppm"), ("-y", "a-y.ppm")):
        complains(f"{originals}/{place}: the file is not a result of this command", asked.url, "box", "--suffix", suffix,
                  "--size", 3, originals / "a.ppm")
    run(asked.url, "box", "--suffix", "-x", "--size", 3, originals / "b.PPM")
    assert len(asked.requests) == 6
    for line in (originals / MANIFEST).read_text().splitlines()[1:]:
        assert "/" not in json.loads(line)["output"]


def test_suffixes_of_objects(asked, store):
    store.put("s3://from/d/a.ppm", ppm(0))
    for _ in range(2):
        store.run(asked.url, "box", "--suffix", ".small", "s3://from/d/a.ppm")
    assert store.body("s3://from/d/a.small.ppm") == filtered(ppm(0)) and len(asked.requests) == 1


@pytest.mark.parametrize("arguments, words, status", [
    (("--suffix", ""), "--suffix: expected a text without slashes, such as -small, not nothing", 2),
    (("--suffix", "/x"), "--suffix: expected a text without slashes, such as -small, not /x", 2),
    (("--suffix", "x", "-o", "y"), "--suffix and -o: give one place for results", 2),
    (("--suffix", "x", "https://h/a.ppm"), "https://h/a.ppm: results cannot be sent to web servers", 1),
    (("--suffix", "x", "--format", "png", "a.pgm"), " would both become ", 2),
])
def test_suffixes_that_are_none(asked, originals, arguments, words, status):
    (originals / "a.pgm").write_bytes(ppm())
    inputs = () if "https://h/a.ppm" in arguments else ("a.ppm",)
    complains(words, asked.url, "box", *arguments[:2], *inputs, *arguments[2:], status=status, cwd=originals)
    assert not asked.requests
