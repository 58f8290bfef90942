"""All objects below a prefix."""
import itertools
import signal
import threading

import pytest

import store as store_module
from client import complains, fill, found, ppm, run, start
from service import poll


def put_all(store, names):
    for i, name in enumerate(names):
        store.put(f"s3://from/{name}", ppm(i))


NAMES = ("p/a.ppm", "p/sub/b c.ppm", "p/sub/<&>'\"+%20.ppm", "p/\u00fc/\u5b57\r\n.ppm", "p//twice.ppm")
OTHERS = ("p/notes.txt", "p/.hidden.ppm", "p/.git/c.ppm", "p/folder/", "p.ppm", "px/d.ppm")


@pytest.mark.parametrize("page", [1, 2, 1000])
def test_prefixes(server, store, tmp_path, page):
    """Pages of keys with everything in them; results keep the rest of the path."""
    asked, store.page = server(), page
    put_all(store, (*NAMES, *OTHERS))
    expected = {name[2:]: ppm(i)[::-1] for i, name in enumerate(NAMES)}
    _, said = store.run(asked.url, "box", "s3://from/p/", "-o", "s3://into/r/", "-j", 3)
    assert said == "" and {k: v.body for k, v in store.buckets["into"].items()} == {
        f"r/{name}": body for name, body in expected.items()}
    store.run(asked.url, "box", "s3://from/p/", "-o", tmp_path / "out")
    assert found(tmp_path / "out") == {name.lstrip("/"): body for name, body in expected.items()}
    count = len(asked.requests)
    for place in ("s3://into/r", tmp_path / "out"):
        store.run(asked.url, "box", "s3://from/p/", "-o", place)
    assert len(asked.requests) == count
    store.asked()
    plan, _ = store.run(asked.url, "box", "--dry-run", "s3://from/p/", "-o", "s3://into/r/")
    assert len(plan.splitlines()) == len(NAMES)
    assert set(store.asked()) == {"LIST from/p/"} and len(asked.requests) == count
    store.run(asked.url, "box", "s3://from/", "-o", tmp_path / "all")
    assert set(found(tmp_path / "all")) == {name.replace("//", "/") for name in (*NAMES, "p.ppm", "px/d.ppm")}


def test_results_below_the_prefix(server, store):
    """They are no inputs of the next run; an input is not replaced."""
    asked = server()
    put_all(store, ("a.ppm", "sub/b.ppm"))
    for _ in range(2):
        store.run(asked.url, "box", "s3://from/", "-o", "s3://from/small/")
    assert set(store.buckets["from"]) == {"a.ppm", "sub/b.ppm", "small/a.ppm", "small/sub/b.ppm"}
    complains("the result of s3://from/sub/b.ppm would overwrite s3://from/sub/b.ppm", asked.url, "box", "s3://from/sub/",
              "-o", "s3://from/sub/", run=store.run, status=2)
    for _ in range(2):
        _, said = store.run(asked.url, "box", "--suffix", "-x", "s3://from/sub/")
    assert said == "convolve: left out: 1 name with -x at the end, as results have it\n"
    assert store.body("s3://from/sub/b-x.ppm") == ppm(1)[::-1]
    complains("s3://from/sub/: --in-place replaces files", asked.url, "box", "--in-place", "s3://from/sub/", run=store.run)
    assert len(asked.requests) == 3


@pytest.mark.parametrize("options, taken", [
    (("--include", "*.ppm"), "a/1.ppm a/2.ppm b/1.ppm"), (("--include", "1.*", "--include", "b/*"), "a/1.pgm a/1.ppm b/1.ppm"),
    (("--exclude", "a/*"), "b/1.ppm"), (("--include", "*/[12].p?m", "--exclude", "*.pgm", "--exclude", "b/1*"), "a/1.ppm a/2.ppm"),
    (("--include", "A*"), ""), (("--include", "b"), "")])
def test_globs(server, store, tmp_path, options, taken):
    """They mean the same for directories and prefixes."""
    names, asked = ("a/1.ppm", "a/1.pgm", "a/2.ppm", "b/1.ppm"), server()
    put_all(store, (f"p/{name}" for name in names))
    fill(tmp_path / "d", *names)
    for name in ("s3://from/p/", tmp_path / "d"):
        out = tmp_path / ("objects" if name == "s3://from/p/" else "files")
        _, said = store.run(asked.url, "box", name, "-o", out, *options)
        assert sorted(found(out)) == taken.split() and said == ("" if taken else f"convolve: no images in {name}, of 0 files\n")


def test_globs_are_not_for_lists(tmp_path):
    for option in ("--include", "--exclude"):
        complains(f"{option} is for directories and prefixes, not for --files-from", "http://127.0.0.1:1", "box", "--files-from",
                  "-", "-o", "x/", option, "*", status=2, cwd=tmp_path)


@pytest.mark.parametrize("name, answer, words, status", [
    ("s3://none/p/", None, "s3://none/p/: there is no such bucket", 1),
    ("s3://from/p/", store_module.Refusal(403, "AccessDenied", "No list").answer, "s3://from/p/: access denied: No list", 1),
    ("s3://from/p/", (200, {}, b"<html>"), "s3://from/p/: the store's list of objects is malformed", 1),
    ("s3://from/p/", (200, {}, b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"), "is malformed", 1),
    ("s3://from/p/", (200, {}, b"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/a.ppm</Key>"), "is malformed", 1),
    ("s3://from/p/", (200, {}, b"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>q/../a.ppm</Key>"
                              b"<Size>1</Size></Contents></ListBucketResult>"), "is malformed", 1),
    ("s3://from/p/", (200, {}, b"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/a.ppm</Key>"
                              b"<Size>-1</Size></Contents></ListBucketResult>"), "is malformed", 1),
])
def test_lists_that_are_none(server, store, tmp_path, name, answer, words, status):
    asked, store.trouble = server(), lambda *_: answer
    complains(words, asked.url, "box", name, "-o", tmp_path / "out", "--retries", 0, run=store.run, status=status)
    assert not asked.requests and not (tmp_path / "a.ppm").exists()


def test_keys_that_lead_elsewhere(server, store, tmp_path):
    """They are told of, and the others are made."""
    put_all(store, ("p/../../a.ppm", "p/../b.ppm", "p/./c.ppm", "p/d.ppm"))
    for place in ("s3://into/r/", "out"):
        _, said = store.run(server().url, "box", "s3://from/p/", "-o", place, status=1, cwd=tmp_path)
        assert sorted(said.splitlines()) == [
            f"convolve: s3://from/p/{name}.ppm: a key with . or .. between slashes cannot be asked for"
            for name in ("../../a", "../b", "./c")]
    assert found(tmp_path) == {"out/d.ppm": ppm(3)[::-1]} and set(store.buckets["into"]) == {"r/d.ppm"}


@pytest.mark.parametrize("place", ["s3://into/r/", "out"])
@pytest.mark.parametrize("count", [60, pytest.param(10000, marks=pytest.mark.slow)])
def test_killed_in_the_middle(server, store, tmp_path, count, place):
    """Each object is filtered exactly once, but for those that were under way."""
    names = [f"p/{i // 100}/{i}.ppm" for i in range(count)]
    bodies = [b"%d" % i for i in range(count)]
    for name, body in zip(names, bodies):
        store.put(f"s3://from/{name}", body)
    held, many = threading.Event(), itertools.count()

    def answer(handler):
        if next(many) > count // 2:
            held.wait(600)
        return 200, {}, handler.body + b"+"

    asked = server(answer)
    arguments = (asked.url, "box", "s3://from/p/", "-o", place, "-j", 8)
    client = start(*arguments, variables=store.environment(), cwd=tmp_path)
    poll(lambda: len(asked.requests) == count // 2 + 9, 600, "requests that hang")
    client.send_signal(signal.SIGKILL)
    client.wait(60)
    held.set()
    run(*arguments, variables=store.environment(), cwd=tmp_path)
    made = (found(tmp_path / "out") if place == "out" else
            {name.removeprefix("r/"): result.body for name, result in store.buckets["into"].items()})
    assert made == {name[2:]: body + b"+" for name, body in zip(names, bodies)}
    assert len(asked.requests) == count + 8 and set(asked.bodies) == set(bodies)
    run(*arguments, variables=store.environment(), cwd=tmp_path)
    assert len(asked.requests) == count + 8
