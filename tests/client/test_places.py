"""The places of results: a file there stays, unless it is a result as it was made, or --force is
given."""
import os

import pytest

from client import complains, fill, found, ppm, run, start
from service import poll

MANIFEST = ".convolve.jsonl"
NO_RESULT = "the file is not a result of this command, or has been changed since: --force replaces it"
LINK = "a symbolic link is there: --force replaces it"


@pytest.fixture
def photographs(tmp_path):
    """Two directories with different photographs of the same names."""
    return fill(tmp_path, "a/0.ppm", "a/1.ppm", "b/0.ppm", "b/1.ppm")


def refused(asked, *arguments, **why):
    """The run leaves all places in `why` as they are, says so, and sends nothing for them."""
    before = len(asked.requests)
    _, said = run(asked.url, "box", *arguments, "-j", 1, status=1)
    assert sorted(said.splitlines()) == sorted(f"convolve: {place}: {text}" for place, text in why["why"].items())
    return len(asked.requests) - before


def test_results_into_other_photographs(server, photographs, monkeypatch):
    monkeypatch.chdir(photographs / "a")
    asked, before = server(), found(photographs / "b")
    for _ in range(2):  # a second run knows no more
        assert refused(asked, ".", "-o", "../b", why={f"../b/{name}": NO_RESULT for name in before}) == 0
    assert found(photographs / "b") == before
    run(asked.url, "box", ".", "-o", "../b", "--force")
    assert found(photographs / "b") == {f"{i}.ppm": ppm(i)[::-1] for i in range(2)}


def test_results_through_links(server, photographs):
    """That are a result's place, or its directory's."""
    asked, out, before = server(), photographs / "out", found(photographs / "b")
    out.mkdir()
    (out / "0.ppm").symlink_to(photographs / "b/0.ppm")
    (out / "1.ppm").symlink_to("nothing")
    assert refused(asked, photographs / "a", "-o", out, why={f"{out}/{i}.ppm": LINK for i in range(2)}) == 0
    (photographs / "all").mkdir()
    os.rename(photographs / "a", photographs / "all/a")
    (out / "a").symlink_to(photographs / "b")
    assert refused(asked, photographs / "all", "-o", out, why={f"{out}/a/{i}.ppm": NO_RESULT for i in range(2)}) == 0
    assert found(photographs / "b") == before and (out / "0.ppm").is_symlink()
    run(asked.url, "box", photographs / "all/a", "-o", out, "--force")
    assert found(photographs / "b") == before, "a link is replaced, and not what it leads to"
    assert found(out).items() >= {(f"{i}.ppm", ppm(i)[::-1]) for i in range(2)} and not (out / "0.ppm").is_symlink()


def test_results_that_their_owner_has_edited(server, photographs):
    asked, out = server(), photographs / "out"
    run(asked.url, "box", photographs / "a", "-o", out)
    made = (out / "1.ppm").stat()
    (out / "0.ppm").write_bytes(b"edited")
    (out / "1.ppm").write_bytes(ppm(7))  # same size
    assert (out / "1.ppm").stat().st_size == made.st_size
    for more in ((), ("--size", 5)):
        assert refused(asked, photographs / "a", "-o", out, *more, why={f"{out}/{i}.ppm": NO_RESULT for i in range(2)}) == 0
    assert found(out) == {"0.ppm": b"edited", "1.ppm": ppm(7)}
    run(asked.url, "box", photographs / "a", "-o", out, "--force")
    run(asked.url, "box", photographs / "a", "-o", out, "--size", 5)  # now they are results
    assert found(out) == {f"{i}.ppm": ppm(i)[::-1] for i in range(2)} and len(asked.requests) == 6


@pytest.mark.parametrize("precious", [b"precious", b""])
def test_objects_that_are_not_results(server, store, image, precious):
    """This holds for a single image, too."""
    asked = server()
    store.put("s3://into/a.ppm", precious)
    for force in ((), ("--force",)):
        _, said = store.run(asked.url, "box", image, "-o", "s3://into/a.ppm", *force, status=0 if force else 1)
        assert said == ("" if force else "convolve: s3://into/a.ppm: the object is not a result of this command: "
                                         "--force replaces it\n")
        assert store.body("s3://into/a.ppm") == (image.read_bytes()[::-1] if force else precious)
    store.run(asked.url, "box", image, "-o", "s3://into/a.ppm")
    assert len(asked.requests) == 1, "it is what was made"


@pytest.mark.parametrize("command", [("box", "in.ppm"), ("jobs", "fetch", "ab")])
def test_a_file_that_is_there(server, image, tmp_path, command):
    """One result has no record; a pipe is written to and not replaced."""
    asked = server([(200, {"Content-Type": "image/x-portable-pixmap", "X-Image": "40x30x3:u8"}, b"result")])
    out, link = tmp_path / "out.ppm", tmp_path / "link.ppm"
    out.write_bytes(b"precious")
    out.chmod(0o640)
    link.symlink_to(out)
    for place, why in ((out, "the file exists: --force replaces it"), (link, LINK)):
        complains(f"convolve: {place}: {why}\n", asked.url, *command, "-o", place, cwd=tmp_path)
        assert out.read_bytes() == b"precious"
    run(asked.url, *command, "-f", "-o", link, cwd=tmp_path)
    assert (out.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"precious", b"result", False)
    run(asked.url, *command, "--force", "-o", out, cwd=tmp_path)
    assert out.read_bytes() == b"result" and out.stat().st_mode & 0o777 == 0o640
    assert set(found(tmp_path)) == {"in.ppm", "out.ppm", "link.ppm"}, "nothing is left over"


def test_what_appears_while_a_result_is_made(server, image, tmp_path):
    """New, or in the place of a result."""
    out = tmp_path / "out"

    def answer(handler):
        (out / "in.ppm").write_bytes(b"precious")
        return 200, {}, handler.body

    asked = server()
    run(asked.url, "box", image, "-o", f"{out}/")
    asked.answer = answer
    assert refused(asked, image, "-o", f"{out}/", "--size", 5, why={f"{out}/in.ppm": NO_RESULT}) == 1
    (out / "in.ppm").unlink()
    assert refused(asked, image, "-o", f"{out}/", why={f"{out}/in.ppm": NO_RESULT}) == 1
    assert found(out) == {"in.ppm": b"precious"}, "and nothing is left over"


def test_the_record_is_no_place(server, image, tmp_path):
    (tmp_path / MANIFEST).write_bytes(image.read_bytes())
    for force in ((), ("--force",)):
        why = {tmp_path / f"out/{MANIFEST}": "the name is that of the record of results"}
        assert refused(server(), tmp_path / MANIFEST, "-o", f"{tmp_path}/out/", *force, why=why) == 0


def test_what_a_killed_run_leaves(server, stalling, photographs):
    """The next run removes it; while a run lives, another does not take its place."""
    out = photographs / "out"
    client = start(stalling.url, "box", photographs / "a", "-o", out, "-j", 2)
    try:
        poll(lambda: [len(body) for body in found(out).values()] == [50000] * 2, 60, "the partial results")
        assert refused(server(), photographs / "a", "-o", out,
                       why={f"{out}/{i}.ppm": "another convolve is making it" for i in range(2)}) == 0
    finally:
        client.kill()
        client.wait(60)
    assert len(found(out)) == 2
    pipe = out / min(found(out))
    pipe.unlink()
    os.mkfifo(pipe)  # no run has left it
    _, said = run(server().url, "box", photographs / "a", "-o", out, status=1)
    assert said.endswith(".ppm: File exists\n") and said.count("\n") == 1 and pipe.is_fifo()
    pipe.unlink()
    (out / (MANIFEST + "-new")).write_bytes(b"half a manifest")
    run(server().url, "box", photographs / "a", "-o", out)
    assert sorted(os.listdir(out)) == [MANIFEST, "0.ppm", "1.ppm"]
    assert found(out) == {f"{i}.ppm": ppm(i)[::-1] for i in range(2)}


def test_dry_run(server, store, photographs):
    """Pairs and what would happen; nothing is asked or written."""
    asked, out = server(), photographs / "out"

    def planned(*arguments, status=0, **options):
        before, seen = found(photographs), len(asked.requests)
        plan, said = store.run(asked.url, "box", "--dry-run", *arguments, status=status, **options)
        assert found(photographs) == before and len(asked.requests) == seen and not store.requests
        return [line.replace(f"{photographs}/", "") for line in plan.decode().splitlines()], said

    a = photographs / "a"
    assert planned(a, "-o", out) == (["a/0.ppm -> out/0.ppm: make", "a/1.ppm -> out/1.ppm: make"], "")
    assert not out.exists()
    run(asked.url, "box", a, "-o", out)
    (out / "1.ppm").write_bytes(b"edited")
    record = (out / MANIFEST).read_bytes()
    skipped = "a/0.ppm -> out/0.ppm: skip: it is made"
    assert planned(a, "-o", out, status=1) == ([skipped], f"convolve: {out}/1.ppm: {NO_RESULT}\n")
    assert planned("--size", 5, a / "0.ppm", "-o", f"{out}/") == (["a/0.ppm -> out/0.ppm: replace"], "")
    assert planned("--force", a, "-o", out)[0] == [f"a/{i}.ppm -> out/{i}.ppm: replace" for i in range(2)]
    assert planned("--unknown", 1, "-", "-o", photographs / "x.ppm", input=b"")[0] == ["- -> x.ppm: make"]
    assert planned("--files-from", "-", "-o", "s3://into", input=b"s3://from/a.ppm\nhttps://h/b.ppm\n")[0] == [
        "s3://from/a.ppm -> s3://into/a.ppm: make, if the store does not have it",
        "https://h/b.ppm -> s3://into/b.ppm: make, if the store does not have it"]
    assert (out / MANIFEST).read_bytes() == record
