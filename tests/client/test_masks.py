"""Masks: a second image, which goes with each image of a call."""
import os
import re
import shutil
import signal
import socket
import threading

import pytest

from client import complains, fill, found, ppm, run, start
from imagefiles import write_png, write_pnm
from jobs import PREFER, jobs_of
from pixels import random_pixels
from scripted import busy, problem
from service import Process, poll, target_of

GENERAL = ("--variant", "general")


@pytest.fixture
def mask(tmp_path):
    path = tmp_path / "mask.png"
    path.write_bytes(write_png(random_pixels(1, 9, 7, 1, "u8")))
    return path


def by_hand(service, image, mask, target, headers=None, status=200):
    """Returns the answer to a form, or the id of its job."""
    answer = service.post_masked(image, mask, target, headers)
    assert answer.status == status, answer
    return answer.body if status == 200 else answer.json()["id"]


def parts(request):
    """Returns {name: content} of a form; {"": the body} of another request."""
    boundary = request.headers.get_param("boundary", header="content-type")
    if not boundary:
        return {"": request.body}
    fields = {}
    for part in request.body.split(b"--" + boundary.encode())[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        fields[re.search(rb'name="(.*?)"', head)[1].decode()] = content.removesuffix(b"\r\n")
    return fields


def shifted(handler):
    """A result that is of the size of its image, and depends on the mask."""
    image, mask = parts(handler)["image"], parts(handler)["mask"]
    return 200, {}, image[:-1] + bytes([(image[-1] + len(mask)) % 256])


# Sent ---------------------------------------------------------------------------------------------

def test_right(service, image, mask, tmp_path):
    """Whatever the request is: the answer is that of a form by hand."""
    body, drawn, out = image.read_bytes(), mask.read_bytes(), tmp_path / "out.png"
    plain = service.post("/v1/filters/box?size=9&variant=general&format=png", body).body
    right = by_hand(service, body, drawn, "/v1/filters/box?size=9&variant=general&format=png")
    assert right != plain
    arguments = ("box", "--size", 9, *GENERAL, "--mask", mask)
    run(service.url, *arguments, image, "-o", out)
    assert out.read_bytes() == right
    assert run(service.unix, *arguments, "--format", "png", "-", input=body)[0] == right
    run(service.url, *arguments, image, "--invert", 1, "-f", "-o", out)
    assert out.read_bytes() == by_hand(service, body, drawn, "/v1/filters/box?size=9&variant=general&invert=1&format=png")
    run(service.url, "box,sobel", *GENERAL, "--luma", "invert", "--mask", image, image, "-f", "-o", out)
    assert out.read_bytes() == by_hand(service, body, body, target_of(
        [("box", {}), ("sobel", {})], luma=[("invert", {})], variant="general", format="png"))
    table = [37 * i % 256 for i in range(4096)]
    run(service.url, "lut", "--table", " ".join(f"{n}.0000" for n in table), *GENERAL, "--mask", mask, image, "-f", "-o", out)
    assert out.read_bytes() == by_hand(service, body, drawn,
                                       target_of([("lut", {"table": table})], variant="general", format="png"))


def test_what_is_asked(server, image, mask, tmp_path):
    """Parameters stay in the address, where the service looks first; nothing else is there."""
    asked, table = server(), " ".join(["1.0000"] * 4096)
    run(asked.url, "box", "--size", 3, "--mask", mask, image, "-o", tmp_path / "out.ppm")
    run(asked.url, "lut", "--table", table, "--mask", mask, image, "-o", tmp_path / "lut.ppm")
    run(asked.url, "chain", "--mask", mask, image, "-o", tmp_path / "none")
    sent = {"image": image.read_bytes(), "mask": mask.read_bytes()}
    assert [request.path for request in asked.requests] == ["/v1/filters/box?size=3&format=ppm", "/v1/filters/lut", "/v1/chain"]
    assert list(map(parts, asked.requests)) == [sent, {"table": table.encode(), "format": b"ppm", **sent}, sent]
    assert list(parts(asked.requests[0])) == ["image", "mask"]
    assert all(b'name="mask"; filename=' in request.body for request in asked.requests)


def test_one_mask_for_all(service, store, tree, mask, tmp_path):
    """Directories, lists, prefixes and jobs of the service."""
    before = {name: body for name, body in found(tree).items() if name.lower().endswith(".ppm") and "/." not in f"/{name}"}
    right = {name: by_hand(service, body, mask.read_bytes(), "/v1/filters/box?size=5&variant=general&format=ppm")
             for name, body in before.items()}
    arguments = ("box", "--size", 5, *GENERAL, "--mask", mask)
    run(service.url, *arguments, "-j", 3, tree, "-o", tmp_path / "out")
    assert found(tmp_path / "out") == right
    run(service.url, *arguments, "--durable", tree, "-o", tmp_path / "durable")
    assert found(tmp_path / "durable") == right and not jobs_of(service)
    run(service.url, *arguments, "--files-from", "-", "-o", tmp_path / "listed", cwd=tree, input="\n".join(right).encode())
    assert found(tmp_path / "listed") == right
    run(service.url, *arguments, "--suffix=-x", tree)
    assert (tree / "sub/a-x.ppm").read_bytes() == right["sub/a.ppm"]
    for name, body in before.items():
        store.put(f"s3://from/d/{name}", body)
    store.run(service.url, *arguments, "s3://from/d/", "-o", "s3://into/r/")
    assert {name: store.body(f"s3://into/r/{name}") for name in right} == right


def test_a_mask_that_changes_meanwhile(server, mask, tmp_path):
    """All images get what it was at the start."""
    images, first = fill(tmp_path / "images", *(f"{i}.ppm" for i in range(9))), mask.read_bytes()

    def answer(handler):
        if len(asked.requests) == 3:
            mask.write_bytes(b"another")
        elif len(asked.requests) == 6:
            mask.unlink()
        return shifted(handler)

    asked = server(answer)
    run(asked.url, "box", "--mask", mask, images, "-o", tmp_path / "out", "-j", 2)
    assert [parts(request)["mask"] for request in asked.requests] == [first] * 9 and len(found(tmp_path / "out")) == 9


def test_sent_again_from_its_start(server, tmp_path, mask):
    """After a refusal and a broken connection; and by the library, when a kept connection has gone."""
    images = fill(tmp_path / "images", "a.ppm", "b.ppm")
    mask.write_bytes(b"m" * (600 << 10))

    def answer(handler):
        if len(asked.requests) == 1:
            return busy(1)
        if len(asked.requests) == 2:
            return None
        if len(asked.requests) == 4:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            os.close(handler.connection.detach())  # a reset
            return None
        return 200, {}, b"result"

    asked = server(answer)
    run(asked.url, "box", "--mask", mask, images, "-o", tmp_path / "out", "-j", 1, "--retries", 2)
    assert list(map(parts, asked.requests)) == [
        {"image": ppm(seed), "mask": mask.read_bytes()} for seed in (0, 0, 0, 1, 1)]
    assert found(tmp_path / "out") == {"a.ppm": b"result", "b.ppm": b"result"}


def test_large(server, mask, tmp_path):
    """Neither file is kept in memory, and the service may refuse them before they come."""
    large, peak, rest = tmp_path / "large.ppm", [], []
    os.truncate(mask, 60 << 20)
    with large.open("wb") as file:
        file.truncate(50 << 20)

    def answer(handler):
        peak.append(Process(client.pid).peak)
        return 200, {}, b"%d" % len(handler.body)

    asked = server(answer)
    client = start(asked.url, "box", "--mask", mask, large, "-o", tmp_path / "out.ppm")
    assert client.wait(60) == 0 and peak[0] < 40 << 20, peak
    assert 110 << 20 < int((tmp_path / "out.ppm").read_bytes()) < (110 << 20) + 1000

    def refuse(handler):
        handler.reply(problem(413, "the body is too large", "body-too-large"))
        rest.append(handler.rfile.read(1))

    asked.expected = refuse
    complains("the body is too large", asked.url, "box", "--mask", mask, "-f", large, "-o", tmp_path / "out.ppm")
    poll(lambda: rest, what="the client's end")
    assert rest == [b""], "nothing of the body was sent"


# Refused ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("command, path, words", [
    ("@neg", "mask.png", "--mask mask.png: a preset takes no mask\n"),
    ("box", "none.png", "--mask none.png: No such file or directory\n"), ("box", "", "--mask : No such file"),
    ("box", "-", "--mask -: expected the path of a file\n"),
    ("box", "s3://from/mask.png", "--mask s3://from/mask.png: expected the path of a file\n"),
    ("box", "https://u:secret@h/mask.png", "--mask https://h/mask.png: expected the path of a file\n"),
    ("box", ".", "--mask .: expected a plain file, not a directory, a pipe or a device\n"),
    ("box", "pipe", "--mask pipe: expected a plain file"), ("box", "/dev/zero", "--mask /dev/zero: expected a plain file"),
    ("box", "empty", "--mask empty: the file is empty\n"), ("box", "in.ppm/m", "--mask in.ppm/m: Not a directory\n"),
    ("devices", "mask.png", "devices takes no --mask; see"), ("jobs", "mask.png", "jobs takes no --mask; see"),
    ("filters", "mask.png", "filters takes no --mask; see")])
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_refused(server, image, mask, tmp_path, command, path, words, more):
    asked, operands = server(), () if "takes no --mask" in words else ("in.ppm", "-o", "out.ppm")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    before = found(tmp_path)
    complains(f"convolve: {words}", asked.url, command, "--mask", path, *operands, *more, status=2, cwd=tmp_path)
    assert found(tmp_path) == before and not asked.requests


def test_unreadable(server, image, mask, tmp_path):
    mask.chmod(0)
    if os.access(mask, os.R_OK):
        mask = "/proc/self/mem"  # nothing is mapped at its start
    _, said = run(server().url, "box", "--mask", mask, image, "-o", tmp_path / "out.ppm", status=2)
    assert said in (f"convolve: --mask {mask}: {why}\n" for why in ("Permission denied", "Input/output error")), said


def test_no_room_for_its_copy(server, image, mask, tmp_path):
    complains(f"convolve: --mask {mask}: No such file or directory\n", server().url, "box", "--mask", mask, image, "-o",
              tmp_path / "out.ppm", status=2, variables={"TMPDIR": str(tmp_path / "none")})


@pytest.mark.parametrize("body, words", [
    (b"no image at all", "not an image"), (write_png(random_pixels(1, 9, 7, 2, "u8", True)), "without alpha"),
    (write_png(random_pixels(1, 9, 7, 1, "u8"))[:60], "mask: ")],
    ids=["text", "alpha", "cut"])
def test_what_the_service_refuses_for_all(service, tree, tmp_path, mask, body, words):
    """A batch stops at the first image, and leaves no job."""
    mask.write_bytes(body)
    for durable in ((), ("--durable",)):
        said = complains("(mask)", service.url, "box", "--mask", mask, *durable, tree, "-o", tmp_path / "out", "-j", 1,
                         status=2)
        assert words in said and not found(tmp_path / "out") and not jobs_of(service)


def test_jobs_have_masks_of_their_own(service, image, tmp_path):
    """One of another's says nothing about the next job."""
    body = image.read_bytes()
    ids = [by_hand(service, body, drawn, "/v1/filters/box?variant=general&format=ppm", PREFER, 202)
           for drawn in (b"text", write_png(random_pixels(1, 9, 7, 1, "u8")))]
    complains("(mask)", service.url, "jobs", "fetch", *ids, "-o", f"{tmp_path}/out/", "-j", 1)
    assert list(found(tmp_path / "out")) == [f"{ids[1]}.pnm"]
    run(service.url, "jobs", "delete", *ids)


def test_resize(service, tree, mask, tmp_path):
    complains("without resize", service.url, "resize", "--width", 9, "--mask", mask, tree, "-o", tmp_path / "out", "-j", 1,
              status=2)
    assert not found(tmp_path / "out")


def test_too_large_for_one_image(server, tmp_path, mask):
    """It may have more pixels with a larger image, so the batch goes on."""
    images, answers = fill(tmp_path / "images", "a.ppm", "b.ppm"), [
        problem(422, "mask: too many", "too-many-pixels", parameter="mask"), (200, {}, b"result")]
    complains("a.ppm: It is not so: mask: too many (mask)", server(answers).url, "box", "--mask", mask, images, "-o",
              tmp_path / "out", "-j", 1)
    assert found(tmp_path / "out") == {"b.ppm": b"result"}


# Its own place ------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["mask.ppm", "hard.ppm", "link.ppm"])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_no_result_takes_its_place(server, image, tmp_path, name, force):
    asked, own = server(), fill(tmp_path / "own", "mask.ppm")
    drawn, others = own / "mask.ppm", fill(tmp_path / "others", name)
    (own / "hard.ppm").hardlink_to(drawn)
    (own / "link.ppm").symlink_to(drawn)
    arguments = ("box", "--mask", drawn, *force)
    words = f"would overwrite the mask {drawn}: choose another output\n"
    complains(words, asked.url, *arguments, image, "-o", own / name, status=2)
    complains(words, asked.url, *arguments, others, "-o", own, status=2)
    complains(f"it is the same file as the mask {drawn}, which is not overwritten\n", asked.url, *arguments,
              "--files-from", "-", "-o", own, input=name.encode(), cwd=others)
    with (own / name).open("ab") as out:
        client = start(asked.url, *arguments, "--format", "ppm", image, "-o", "-", stdout=out)
        assert client.wait(60) == 2 and words.encode() in client.stderr.read()
    assert drawn.read_bytes() == ppm(0) and (own / "link.ppm").is_symlink() and not asked.requests


def test_it_is_not_replaced(server, tmp_path):
    """The others are."""
    asked, d = server(shifted), fill(tmp_path / "d", "a.ppm", "mask.ppm", "z.ppm")
    drawn = d / "mask.ppm"
    for force in ((), ("--force",)):
        complains(f"{drawn}: it is the mask, which --in-place does not replace\n", asked.url, "box", "--in-place", "--mask",
                  drawn, *force, d)
    times = 2 * len(ppm())
    assert found(d) == {"mask.ppm": ppm(1), **{name: ppm(seed)[:-1] + bytes([(ppm(seed)[-1] + times) % 256])
                                               for name, seed in (("a.ppm", 0), ("z.ppm", 2))}}
    complains("it is the mask", asked.url, "box", "--in-place", "--mask", drawn, "--files-from", "-",
              input=os.fsencode(drawn))
    run(asked.url, "box", "--mask", drawn, drawn, "-o", tmp_path / "out.ppm")  # as an image it is one like others


# Made anew ----------------------------------------------------------------------------------------

def count(asked, *arguments, run=run, **options):
    before = len(asked.requests)
    run(asked.url, *arguments, **options)
    return len(asked.requests) - before


@pytest.mark.parametrize("place", [("-o", "out"), ("--suffix", "-x"), ("--in-place",)])
def test_changed(server, mask, tmp_path, place):
    """Another mask, or none, makes results anew; another name or time of the same one does not."""
    asked, other = server(lambda handler: (200, {}, parts(handler).get("image", handler.body)[::-1])), tmp_path / "other.png"
    fill(tmp_path, "a.ppm", "d/b.ppm")

    def made(*arguments, **options):
        return count(asked, "box", *arguments, "a.ppm", "d/b.ppm", *place, cwd=tmp_path, **options)

    shutil.copy(mask, other)
    assert [made("--mask", mask), made("--mask", mask), made("--mask", other)] == [2, 0, 0]
    os.utime(mask, (1, 1))
    assert made("--mask", mask) == 0
    assert "make" not in run(asked.url, "box", "--mask", mask, "--dry-run", "a.ppm", "d/b.ppm", *place,
                             cwd=tmp_path)[0].decode().replace("skip: it is made", "")
    other.write_bytes(mask.read_bytes()[:-1] + b"x")
    assert [made("--mask", other), made("--mask", other)] == [2, 0]
    assert [made(), made(), made("--mask", mask), made("--mask", mask)] == [2, 0, 2, 0]
    assert [made("--mask", mask, "--size", 5), made("--mask", mask, "--size", 5)] == [2, 0]


def test_changed_with_objects(server, store, mask, tmp_path):
    asked = server(shifted)
    store.put("s3://from/a.ppm", ppm())

    def made(*arguments):
        return count(asked, "box", "--mask", mask, "s3://from/a.ppm", "-o", *arguments, run=store.run)

    for place in ("s3://into/a.ppm", f"{tmp_path}/out/"):
        assert [made(place), made(place)] == [1, 0]
        mask.write_bytes(mask.read_bytes() + b"x")
        assert [made(place), made(place)] == [1, 0]


def test_changed_jobs(server, image, mask, tmp_path):
    """A job with another mask is another job."""
    asked = server([(422, {}, b"")])

    def key(*arguments):
        run(asked.url, "box", "--durable", *arguments, image, "-o", tmp_path / "out.ppm", status=1)
        return asked.requests[-1].headers["Idempotency-Key"]

    keys = [key(), key("--mask", mask), key("--mask", mask)]
    mask.write_bytes(b"another")
    keys.append(key("--mask", mask))
    assert len(set(keys)) == 3 and keys[1] == keys[2]


# Broken off ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_in_the_middle(server, mask, tmp_path, number):
    """The same command goes on, each image once; with another mask none that was made counts."""
    names = [f"{i:02}.ppm" for i in range(20)]
    d, held = fill(tmp_path / "d", *names), threading.Event()

    def answer(handler):
        if len(asked.requests) > 8:
            held.wait(60)
        return shifted(handler)

    asked = server(answer)
    arguments = ("box", "--mask", mask, "--in-place", d, "-j", 4)
    client = start(asked.url, *arguments)
    poll(lambda: len(asked.requests) == 12, 60, "the requests that hang")
    client.send_signal(number)
    assert client.wait(60) == -number
    held.set()
    size = mask.stat().st_size
    assert count(asked, *arguments) == 12

    def right(change):
        return {name: ppm(i)[:-1] + bytes([(ppm(i)[-1] + change) % 256]) for i, name in enumerate(names)}
    assert found(d) == right(size) and count(asked, *arguments) == 0
    mask.write_bytes(b"123")
    assert count(asked, *arguments) == 20 and found(d) == right(size + 3)


def test_interrupted_while_it_is_read(server, image, tmp_path):
    """The client ends without a word."""
    huge = tmp_path / "huge.pgm"
    with huge.open("wb") as file:
        file.truncate(4 << 30)
    client = start(server(lambda _: threading.Event().wait(60)).url, "box", "--mask", huge, image, "-o", tmp_path / "out.ppm")
    poll(lambda: any("/convolve-" in os.readlink(f"/proc/{client.pid}/fd/{fd}") for fd in
                     os.listdir(f"/proc/{client.pid}/fd")), what="the copy")
    client.send_signal(signal.SIGTERM)
    assert client.wait(60) == -signal.SIGTERM and client.stderr.read() == b""


def test_floats(service, image, tmp_path):
    """A mask's format is its own."""
    drawn = tmp_path / "mask.pfm"
    drawn.write_bytes(write_pnm(abs(random_pixels(3, 11, 5, 1, "f32"))))
    run(service.url, "invert", "--mask", drawn, image, "-o", tmp_path / "out.ppm")
    assert (tmp_path / "out.ppm").read_bytes() == by_hand(service, image.read_bytes(), drawn.read_bytes(),
                                                          "/v1/filters/invert?format=ppm")
