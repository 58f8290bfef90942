"""Lists of names on standard input or in a file: read while they are worked on, and continued."""
import re
import signal
import subprocess
import threading

import pytest

from client import complains, fill, found, ppm, run, start
from service import Process, poll, sanitized


def listed(*names, end="\n"):
    return "".join(f"{name}{end}" for name in names).encode()


# Places -------------------------------------------------------------------------------------------

def test_results_keep_their_paths(server, store, tree, tmp_path):
    """Below the output directory, wherever the names come from."""
    asked, out = server(), tmp_path / "out"
    web = server(lambda handler: (200, {}, ppm(7)))
    store.put("s3://from/2024/a b.ppm", ppm(8))
    names = ["images/a.ppm", "./images//sub/./a.ppm", str(tree / "b.PPM"), "", "s3://from/2024/a b.ppm",
             f"{web.url}/x/y%20z.ppm?q=1"]
    store.run(asked.url, "box", "--files-from", "-", "-o", out, input=listed(*names), cwd=tmp_path)
    right = {"images/a.ppm": ppm(0), "images/sub/a.ppm": ppm(2), f"{str(tree)[1:]}/b.PPM": ppm(1),
             "2024/a b.ppm": ppm(8), "x/y z.ppm": ppm(7)}
    assert found(out) == {name: body[::-1] for name, body in right.items()}
    store.run(asked.url, "box", "--files-from", "-", "-o", "s3://into/x/", "--format", "png",
              input=listed(*names), cwd=tmp_path)
    assert store.buckets["into"].keys() == {f"x/{name[:-4]}.png" for name in right}


def test_names_with_everything_in_them(server, tmp_path):
    """Ended by zero bytes: find -print0."""
    names = ("-", "a\nb.ppm", " c.ppm ", "d.ppm\r")
    for i, name in enumerate(names):
        (tmp_path / name).write_bytes(ppm(i))
    (tmp_path / "list").write_bytes(listed(*names, end="\0")[:-1])
    run(server().url, "box", "--files-from", "list", "--null", "--format", "ppm", "-o", "out", cwd=tmp_path)
    assert found(tmp_path / "out") == {name: ppm(i)[::-1] for name, i in
                                       (("-.ppm", 0), ("a\nb.ppm", 1), (" c.ppm", 2), ("d.ppm", 3))}


def test_lists_of_windows(server, tmp_path):
    fill(tmp_path, "0.ppm", "1.ppm")
    run(server().url, "box", "--files-from", "-", "-o", "out", input=b"0.ppm\r\n\r\n1.ppm\r", cwd=tmp_path)
    assert found(tmp_path / "out") == {f"{i}.ppm": ppm(i)[::-1] for i in range(2)}


def test_names_that_are_none(server, store, tmp_path):
    """Each is told of, and the others go on; none leads out of the directory."""
    fill(tmp_path, "a.ppm")
    (tmp_path / "d").mkdir()
    lines = {"../a.ppm": "the name has no path below", "s3://from/x/../../../a.ppm": "a key with . or .. between slashes",
             "s3://from/": "the name has no key", "gs://in/a": "the address is of an unknown kind",
             "http://h/%2e%2e/a.ppm": "the name has no path below", "d": "Is a directory",
             "none.ppm": "No such file or directory", "d/": "the name has no path below"}
    _, said = store.run(server().url, "box", "--files-from", "-", "-o", "out", "-j", 1,
                        input=listed(*lines, "a.ppm"), cwd=tmp_path, status=1)
    assert len(said.splitlines()) == len(lines)
    for line, (name, words) in zip(said.splitlines(), lines.items()):
        assert line.startswith(f"convolve: {name}: {words}")
    assert found(tmp_path / "out") == {"a.ppm": ppm()[::-1]} and not store.requests


def test_lists_that_are_none(server, tmp_path):
    (tmp_path / "image").write_bytes(bytes(range(1, 10)) * 20000)
    for name, words in (("image", "a name is longer than 64 KiB"), (".", "Is a directory")):
        complains(words, server().url, "box", "--files-from", name, "-o", "out", cwd=tmp_path)


def test_lists_spare_what_is_not_theirs(server, store, tmp_path):
    """Files that are no results, links, inputs in the directory of results, and another's result."""
    names = ["a.ppm", "b.ppm", "c.ppm", "d/e.ppm", "out/f.ppm"]
    asked, before = server(), found(fill(tmp_path, *names))
    (tmp_path / "out/b.ppm").write_bytes(b"precious")
    (tmp_path / "out/c.ppm").symlink_to("../c.ppm")
    (tmp_path / "out/d").symlink_to("../d")
    for force in (False, True):
        _, said = run(asked.url, "box", "--files-from", "-", "-o", "out", "-j", 1, *["--force"] * force,
                      input=listed(*names), cwd=tmp_path, status=1)
        assert "out/f.ppm: the file is in the directory of the results" in said
        if force:
            assert "out/d/e.ppm: a link leads there, out of the directory of results" in said and said.count("\n") == 2
        else:
            assert said.count("--force replaces it") == 3 and said.count("\n") == 4
        assert (tmp_path / "out/b.ppm").read_bytes() == (ppm(1)[::-1] if force else b"precious")
        assert found(tmp_path).items() >= before.items()
    store.put("s3://from/a.ppm", ppm(1))
    complains("convolve: s3://from/a.ppm: the result would overwrite it: choose another output\n", asked.url, "box",
              "--files-from", "-", "-o", "s3://from/", "--force", run=store.run, input=b"s3://from/a.ppm\n")


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("place", ["out", "s3://into"])
def test_two_names_with_one_result(server, store, tmp_path, place, jobs):
    """The second is refused, also when the first has been made; a name that comes twice is one."""
    fill(tmp_path, "a.ppm", "a.pgm", "b.ppm")
    asked = server()
    _, said = store.run(asked.url, "box", "--files-from", "-", "-o", place, "--format", "png", "-j", jobs,
                        input=listed("a.ppm", "a.ppm", "a.pgm", "b.ppm"), cwd=tmp_path, status=1)
    assert said.count("\n") == 1 and re.search(r"a\.(pgm|png): .*(too, would become|another result of this)", said)
    assert sorted(asked.bodies) == sorted((ppm(0), ppm(2)))


# Resuming -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("place", ["out", "s3://into/x"])
def test_lists_resume(server, store, tmp_path, place):
    """A result is not made again, unless its input or the request has changed, or it is gone."""
    web_body = [ppm(20)]
    web = server(lambda handler: (304, {"Content-Length": None}, b"") if handler.headers.get(
        "If-Modified-Since") == f"version {len(web_body)}" else
        (200, {"Last-Modified": f"version {len(web_body)}"}, web_body[-1]))
    asked = server()
    for i in range(3):
        store.put(f"s3://from/{i}.ppm", ppm(i))
        (tmp_path / f"f{i}.ppm").write_bytes(ppm(10 + i))
    names = [*(f"s3://from/{i}.ppm" for i in range(3)), *(f"f{i}.ppm" for i in range(3)), f"{web.url}/w.ppm"]

    def made(*arguments):
        before = len(asked.bodies)
        store.run(asked.url, "box", *arguments, "--files-from", "-", "-o", place,
                  input=listed(*names), cwd=tmp_path)
        return sorted(asked.bodies[before:])

    def lose(name):
        if place == "out":
            (tmp_path / "out" / name).unlink()
        else:
            del store.buckets["into"][f"x/{name}"]

    everything = sorted([*map(ppm, range(3)), *map(ppm, range(10, 13)), ppm(20)])
    assert made() == everything
    if place == "out":  # as a full disk leaves it
        with (tmp_path / "out/.convolve.jsonl").open("ab") as manifest:
            manifest.write(b'{"output": "f0.p')
    store.asked()
    assert made() == []
    assert not [line for line in store.asked() if line.startswith("PUT")]
    store.put("s3://from/1.ppm", ppm(31))
    (tmp_path / "f1.ppm").write_bytes(ppm(32))
    web_body.append(ppm(33))
    lose("2.ppm")
    lose("f2.ppm")
    assert made() == sorted([ppm(31), ppm(32), ppm(33), ppm(2), ppm(12)])
    assert made() == []
    now = sorted([ppm(0), ppm(31), ppm(2), ppm(10), ppm(32), ppm(12), ppm(33)])
    assert made("--size", 5) == now and made("--size", 5) == []
    assert made("--size", 5, "--force") == now


@pytest.mark.parametrize("place", ["out", "s3://into/x"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_lists_resume_after_a_kill(server, store, tmp_path, place, number):
    """Those under way come again, and none that was made."""
    held, going = set(), threading.Event()
    files, bodies = [f"{i}.ppm" for i in range(12)], [ppm(i) for i in range(12)]
    fill(tmp_path, *files)

    def answer(handler):
        if bodies.index(handler.body) in (2, 8, 9):  # one that is slow, while others get ahead of it
            held.add(handler.body)
            going.wait(60)
        return 200, {}, handler.body

    asked = server(answer)
    arguments = ("box", "--files-from", "list", "-o", place, "-j", 3)
    (tmp_path / "list").write_bytes(listed(*files))
    client = start(asked.url, *arguments, cwd=tmp_path, variables=store.environment())

    def made():
        return found(tmp_path / "out") if place == "out" else {
            name[2:]: result.body for name, result in list(store.buckets["into"].items())}

    def recorded():  # a result is there a moment before the manifest says so
        manifest = tmp_path / "out/.convolve.jsonl"
        text = manifest.read_text() if place == "out" and manifest.exists() else ""
        early = {f"{i}.ppm" for i in (0, 1, 3, 4, 5, 6, 7)}
        return early <= set(made()) and (place != "out" or all(f"{name}\"" in text for name in early))

    poll(lambda: len(held) == 3, 60, "those that are slow")
    poll(recorded, 60, "the results so far")
    client.send_signal(number)
    assert client.wait(60) == -number
    going.set()
    before = len(asked.bodies)
    store.run(asked.url, *arguments, cwd=tmp_path)
    assert sorted(asked.bodies[before:]) == sorted(bodies[i] for i in (2, 8, 9, 10, 11))
    assert made() == dict(zip(files, bodies))


# Streams ------------------------------------------------------------------------------------------

def test_lists_are_read_as_they_come(server, tmp_path):
    """An image does not wait for the next name, nor one name for the end of the list."""
    fill(tmp_path, *(f"{i}.ppm" for i in range(3)))
    client = start(server().url, "box", "--files-from", "-", "-o", "out", stdin=subprocess.PIPE, cwd=tmp_path)
    for i in range(3):
        client.stdin.write(f"{i}.p".encode())
        client.stdin.flush()
        client.stdin.write(b"pm\n")
        client.stdin.flush()
        poll(lambda: f"{i}.ppm" in found(tmp_path / "out"), 60, "the result")
    client.stdin.close()
    assert client.wait(60) == 0
    client = start(server().url, "box", "--files-from", "-", "-o", "out", stdin=subprocess.PIPE, cwd=tmp_path)
    client.send_signal(signal.SIGTERM)  # while it waits for a name
    assert client.wait(60) == -signal.SIGTERM


@pytest.mark.skipif(sanitized(), reason="a sanitizer's memory says nothing")
def test_lists_are_not_kept_in_memory(server, tmp_path):
    """10 MB of names: those of one image, written in many ways, and then of another."""
    peak = []
    fill(tmp_path, "0.ppm", "1.ppm")

    def answer(handler):
        peak.append(Process(client.pid).peak)
        return 200, {}, handler.body

    with open(tmp_path / "list", "wb") as file:
        for i in range(2500):
            file.write(b"./" * (1900 + i % 100) + b"0.ppm\n")
        file.write(b"1.ppm\n")
    client = start(server(answer).url, "box", "--files-from", "list", "-o", "out", "-j", 1, cwd=tmp_path)
    assert client.wait(120) == 0, client.stderr.read()
    assert len(peak) == 2 and peak[1] < peak[0] + (4 << 20), peak
