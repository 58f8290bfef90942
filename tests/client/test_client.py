"""The client as its user meets it: files in, files out, words on standard error, exit statuses."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import termios
import threading
import time

import pytest

from client import PROGRAM, complains, environment, fill, found, ppm, run, start
from jobs import submit
from scripted import Server, busy, problem
from service import BUILD, ONE_DEVICE, PATIENCE, REPOSITORY, Process, free_port, poll, sanitized, target_of

COMPLETION = REPOSITORY / "client/completion/convolve"
PHOTOGRAPH = REPOSITORY / "tests/photograph.jpg"


# One image ----------------------------------------------------------------------------------------

# While a kernel for unseen parameters is compiled a general one does it, and both may round apart.
GENERAL = ("--variant", "general")
EMBOSS = "-2,-1,0;-1,1,1;0,1,2"  # a value that begins like an option


@pytest.mark.parametrize("arguments, target", [
    (("gaussian", "--sigma", 2, *GENERAL), "/v1/filters/gaussian?sigma=2&variant=general"),
    (("gaussian=sigma=1.4,sobel", "--border=reflect", *GENERAL), target_of(
        [("gaussian", {"sigma": 1.4}), ("sobel", {})], border="reflect", variant="general")),
    (("chain", "--luma", "gaussian=size=5", "--chroma", "box=size=3", *GENERAL), target_of(
        [], luma=[("gaussian", {"size": 5})], chroma=[("box", {"size": 3})], variant="general")),
    (("convolve", "--kernel", EMBOSS), f"/v1/filters/convolve?kernel={EMBOSS}"),
    (("box", "--format", "raw"), "/v1/filters/box?format=raw")])
def test_filter(service, image, tmp_path, arguments, target):
    out = tmp_path / "out.ppm"
    assert run(service.url, *arguments, image, f"-o{out}") == (b"", "")
    assert out.read_bytes() == service.post(target, image.read_bytes()).body
    assert out.stat().st_mode == image.stat().st_mode


def test_format_by_suffix(service, image, tmp_path):
    out = tmp_path / "new" / "box.WEBP"  # the directory is made
    run(service.url, "box", image, "-o", out)
    assert out.read_bytes() == service.post("/v1/filters/box?format=webp", image.read_bytes()).body


def test_long_parameters(service, image, tmp_path):
    """Parameters too long for an address travel as a form."""
    out, table = tmp_path / "out.ppm", [37 * i % 256 for i in range(4096)]
    lut, long = [("lut", {"table": table})], "lut=table=" + " ".join(f"{n}.0000000" for n in table)
    for arguments, filters, options in (
            ([f"gaussian=sigma=1.25,{long}"], [("gaussian", {"sigma": 1.25}), *lut], {}),
            (["chain", "--luma", long, "--chroma", long], [], {"luma": lut, "chroma": lut})):
        run(service.url, *arguments, *GENERAL, image, "-f", "-o", out)
        right = service.post(target_of(filters, variant="general", **options), image.read_bytes())
        assert right.status == 200 and out.read_bytes() == right.body


def test_pipes_and_unix_socket(service, image):
    right = service.post("/v1/filters/box?format=png", image.read_bytes()).body
    assert run(service.unix, "box", "--format", "png", input=image.read_bytes())[0] == right
    with image.open("rb") as file:  # a file that can be sent as it is
        done = subprocess.run([PROGRAM, "box", "--format=png", "-", "-o", "-", "--server",
                               service.url], stdin=file, capture_output=True, check=True)
    assert done.stdout == right


def test_pipes_that_do_not_block(server):
    """Other owners may have made them: the client waits all the same."""
    ours, its_output = os.pipe()
    its_input, to_it = os.pipe()
    os.set_blocking(its_input, False)
    os.set_blocking(its_output, False)
    body = ppm(width=400, height=300)
    client = start(server().url, "box", "--format=ppm", "-", "-o", "-", stdin=its_input, stdout=its_output)
    os.close(its_input)
    os.close(its_output)
    with open(to_it, "wb") as file, open(ours, "rb") as result:
        time.sleep(0.3)
        for at in range(0, len(body), 50000):
            file.write(body[at:at + 50000])
            file.flush()
            time.sleep(0.1)
        file.close()
        time.sleep(0.3)
        assert result.read() == body[::-1]
    assert client.communicate(timeout=60)[1] == b"" and client.returncode == 0


def test_result_into_what_is_not_a_file(service, image, tmp_path):
    fifo = tmp_path / "fifo.ppm"
    os.mkfifo(fifo)
    client = start(service.url, "box", image, "-o", fifo)
    assert fifo.read_bytes() == service.post("/v1/filters/box", image.read_bytes()).body
    assert client.wait(60) == 0 and fifo.is_fifo()


def test_verbose(service, image, tmp_path):
    _, said = run(service.url, "box", "-v", image, "-o", tmp_path / "out.ppm")
    assert "X-Image: 40x30x3:u8" in said and "Server-Timing: receive;dur=" in said


def test_problems_are_one_line(service, image, tmp_path):
    out = tmp_path / "out.ppm"
    out.write_bytes(b"old")
    complains(f"convolve: {image}: size: expected an odd integer from 1 to 601, in pixels (size=4)\n", service.url, "box",
              "--size", 4, image, "-f", "-o", out, status=2)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(PHOTOGRAPH.read_bytes()[:20000])
    complains(f"{broken}: The image cannot be decoded: ", service.url, "box", broken, "-f", "-o", out)
    assert out.read_bytes() == b"old", "what was there stays until there is a result"
    assert sorted(found(tmp_path)) == ["broken.jpg", "in.ppm", "out.ppm"], "nothing is left over"


@pytest.mark.parametrize("answer, words", [
    # A terminal shows no control characters of others.
    (problem(422, "a\x1b[2Jb\nc", parameter="p\r", value="v\x9b2Jé"), "a?[2Jb?c (p?=v??2Jé)"),
    ((502, {}, b"<html>bad gateway"), "status 502, not from a convolved: <html>bad gateway"),
    # Requests that failed at the service have a name.
    (problem(500, "a worker ended", "internal", {"X-Request-Id": "73ab833db7df3c83"}),
     "It is not so: a worker ended (request 73ab833db7df3c83)")])
def test_refusals(server, image, tmp_path, answer, words):
    complains(f": {words}\n", server([answer]).url, "box", image, "-o", tmp_path / "out.ppm")


@pytest.mark.parametrize("arguments, words", [
    ((), "no filter given"),
    (("box", "in.ppm"), "no output: give -o FILE"),
    (("box", "a.ppm", "b.ppm", "-o", "-"), "several images need an output directory"),
    (("box", "in.ppm", "-o", "x", "--output-dir", "y"), "give one of them"),
    (("box", "in.ppm", "-o"), "-o needs a value"),
    (("box", "--size"), "--size needs a value"),
    (("box", "-x", "in.ppm"), "unknown option -x"),
    (("box", "in.ppm", "-o", "x", "-j", "0"), "--jobs: expected an integer from 1 to 256, not 0"),
    (("box", "in.ppm", "-o", "x", "--quiet=1"), "--quiet takes no value"),
    (("devices", "--sigma", "2"), "devices takes no --sigma"),
    (("gaussian", "in.ppm", "in.ppm", "-o", "x.jpg"), "several images, but -o x.jpg names one file"),
    (("gaussian", ".", "-o", "x.JPEG"), "several images, but -o x.JPEG names one file"),
    (("top", "now"), "top takes no now"),
    (("devices", "--token-file", "missing"), "cannot read the token: No such file"),
    (("box", "--files-from", "-"), "several images need an output directory"),
    (("box", "--files-from", "-", "-o", "x.png"), "names one file: end it with a slash"),
    (("box", "--files-from", "-", "-o", "x/", "a.ppm"),
     "--files-from and a.ppm: give names on the command line, or a list"),
    (("box", "--files-from", "none", "-o", "x/"), "none: No such file or directory"),
    (("box", "--null", "a.ppm", "-o", "x/"), "--null needs --files-from"),
    (("jobs", "wait"), "expected wait, fetch or delete, with ids"),
    (("jobs", "show", "ab"), "expected wait, fetch or delete"),
    (("jobs", "wait", "../v1"), "../v1 is not the id of a job"),
    (("jobs", "fetch", "-"), "- is not the id of a job"),
    (("jobs", "fetch", "ab"), "no output: give -o FILE"),
    (("jobs", "fetch", "ab", "cd", "-o", "x.png"), "names one file"),
    (("jobs", "wait", "ab", "--sigma", 2), "jobs takes no --sigma"),
])
def test_usage(arguments, words, tmp_path):
    complains(words, "http://127.0.0.1:1", *arguments, status=2, cwd=tmp_path)


def test_help_and_version():
    text = run("http://127.0.0.1:1", "--help")[0].decode()
    for asked in (("help",), ("-h",), ("help", "gaussian")):
        assert run("http://127.0.0.1:1", *asked)[0].decode() == text
    for words in ("Usage: convolve FILTER", "-o, --out PLACE", "--token-file FILE", "Exit status:",
                  "3 the service, or an object store, cannot be reached", "130 interrupted"):
        assert words in text
    assert re.fullmatch(rb"convolve \d+\.\d+\.\d+\n", run("http://127.0.0.1:1", "--version")[0])


# Batches ------------------------------------------------------------------------------------------

def test_directories_keep_their_structure(service, tree, tmp_path):
    out = tmp_path / "results"
    assert run(service.url, "box", tree, "-o", f"{out}/", "-j", 3) == (b"", "")
    right = {name: service.post("/v1/filters/box", body).body for name, body in found(tree).items()
             if name.lower().endswith(".ppm") and not name.startswith(".")}
    assert found(out) == right
    again = tmp_path / "again"
    run(service.url, "box", tree / "a.ppm", tree / "sub", "--output-dir", again, "--format", "png",
        status=2)  # two files a.ppm
    assert not again.exists()
    run(service.url, "box", tree / "b.PPM", tree / "sub", "--output-dir", again, "--format", "png")
    assert sorted(found(again)) == ["a.png", "b.png", "deep/c d.png"]


def test_one_failure_does_not_stop_a_batch(service, tree, tmp_path):
    (tree / "sub/bad.png").write_bytes(b"this is no PNG")
    (tree / "sub/empty.png").write_bytes(b"")
    _, said = run(service.url, "box", tree, tmp_path / "missing.png", "-o", tmp_path / "out",
                  status=1)
    assert len(found(tmp_path / "out")) == 4
    for words in (f"{tree}/sub/bad.png: The body is not an image", f"{tree}/sub/empty.png: the file is",
                  f"{tmp_path}/missing.png: No such file"):
        assert words in said
    assert said.count("\n") == 3


@pytest.mark.parametrize("arguments, words", [
    (("box", "--size", 4), "size: expected an odd integer"), (("gausian",), "did you mean gaussian?"),
    (("box", "--border", "none"), "border: expected one of"), (("box", "--format", "ico"), "format: expected one of"),
    (("gaussian,,box",), "without a name")])
def test_what_is_wrong_for_all_stops_a_batch(service, tmp_path, arguments, words):
    """At once, with one line, and with the status of a wrong command line."""
    fill(tmp_path, *(f"{i}.ppm" for i in range(60)))
    before = service.metrics()
    complains(words, service.url, *arguments, tmp_path, "-o", tmp_path / "out", status=2)
    asked = sum(service.total(name) - before.total(name) for name in
                ("convolved_requests_rejected_total", "convolved_jobs_failed_total"))
    assert asked <= 4, asked
    assert not found(tmp_path / "out")


def test_what_is_wrong_for_one_stops_no_batch(service, tree, tmp_path):
    """A parameter may not fit this image, or its own suffix be no format."""
    (tree / "grey.ppm").write_bytes(b"P5\n40 30\n255\n" + bytes(1200))
    complains(f"convolve: {tree}/grey.ppm: ", service.url, "box", "--border", "constant", "--border_value", "1,2,3",
              tree, "-o", tmp_path / "out", "-j", 1)
    assert len(found(tmp_path / "out")) == 4
    (tree / "a.xyz").write_bytes(ppm())
    complains("format: expected one of", service.url, "box", tree / "a.xyz", tree / "a.ppm", "-o", tmp_path / "two",
              "-j", 1)
    assert sorted(found(tmp_path / "two")) == ["a.ppm"]


def test_unknown_options_swallow_nothing(service, image, tmp_path):
    """An unknown option is no parameter, and the next word not its value."""
    before = service.total("convolved_request_duration_seconds_count", code="400")
    for arguments in (("--quite", image, "-o", tmp_path / "out.ppm"),
                      (image, "-o", tmp_path / "out.ppm", "--quite=1"),
                      (image, "--quite", "-o", tmp_path / "out.ppm")):
        complains("unknown option --quite", service.url, "box", *arguments, status=2)
    assert service.total("convolved_request_duration_seconds_count", code="400") == before


def test_a_service_that_is_newer(server, image, tmp_path):
    """The service is asked about parameters that the client does not know."""
    asked = server([(200, {}, b'{"filters": [], "common": [{"name": "glow"}]}'), (200, {}, b"result")])
    run(asked.url, "box", "--glow", 3, image, "-o", tmp_path / "out.ppm")
    assert [request.path for request in asked.requests] == [
        "/v1/filters", "/v1/filters/box?glow=3&format=ppm"]


def test_what_is_refused_for_all_stops_a_batch(server, tree, tmp_path):
    asked = server([problem(401, "show a token", "unauthorized")])
    batch = (asked.url, "box", tree, "-o", tmp_path / "out", "-j", 1)
    complains("It is not so: give a file with one by --token-file or $CONVOLVED_TOKEN_FILE\n", *batch)
    assert len(asked.requests) == 1
    (tmp_path / "token").write_text("old")
    complains(f"It is not so: it does not accept the one in {tmp_path}/token\n", *batch, "--token-file",
              tmp_path / "token")


def test_jobs_share_connections(server, tmp_path):
    directory = fill(tmp_path / "images", *(f"{i}.ppm" for i in range(24)))
    together = threading.Barrier(3)

    def answer(handler):
        together.wait(60)  # fails unless three are under way at a time
        return 200, {}, handler.body

    asked = server(answer)
    run(asked.url, "box", directory, "-o", tmp_path / "out", "-j", 3)
    assert asked.connections == 3 and len(found(tmp_path / "out")) == 24


# Patience -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("answer, pause, words", [
    *((busy(1, status), 1, "It is not so: the queue is full\n") for status in (429, 503)),
    ((200, {"Content-Length": 1000, "Connection": "close"}, b"half of it"), 0, "")])
def test_tries_again(server, image, tmp_path, answer, pause, words):
    """As the service says, or when a result broke off."""
    asked, out = server([answer, answer, (200, {}, b"result")]), tmp_path / "out.ppm"
    run(asked.url, "box", image, "-o", out, "--retries", 2)
    assert out.read_bytes() == b"result"
    times = [request.time for request in asked.requests]
    assert all(pause <= later - earlier < 30 for earlier, later in zip(times, times[1:])), times
    asked = server([answer])
    complains(words, asked.url, "box", image, "-f", "-o", out, "--retries", 0)
    assert len(asked.requests) == 1


@pytest.mark.parametrize("seconds, told", [(2, ""), pytest.param(
    10, "convolve: the service is busy, trying again in 10 s\n", marks=pytest.mark.slow)])
def test_a_long_retry_after(server, tree, tmp_path, seconds, told):
    """Is cut to --timeout; a long one is told of in one line, also when there is no terminal."""
    asked, out = server([*[busy(864000)] * 4, (200, {}, b"result")]), tmp_path / "out"
    _, said = run(asked.url, "box", tree, "-o", out, "--timeout", seconds)
    assert said == told and len(found(out)) == 4


def test_waits_for_a_service_that_starts_again(image, tmp_path):
    port = free_port()
    client = start(f"http://127.0.0.1:{port}", "box", image, "-o", tmp_path / "out.ppm")
    time.sleep(0.3)
    with Server(port=port):
        assert client.wait(60) == 0, client.stderr.read()
    assert (tmp_path / "out.ppm").read_bytes() == image.read_bytes()[::-1]


def test_nobody_there(tree, tmp_path):
    url = f"http://127.0.0.1:{free_port()}"
    complains(f"convolve: {url} cannot be reached: ", url, "box", tree, "-o", tmp_path / "out", "--retries", 1, status=3)
    complains(f"unix:{tmp_path}/none cannot be reached", f"unix:{tmp_path}/none", "devices", "--retries", 0, status=3)
    run("http://no-such-host.invalid", "box", tree, "-o", tmp_path / "out", status=3)
    assert found(tmp_path / "out") == {}


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_interrupted(stalling, tree, tmp_path, number):
    out = tmp_path / "out"
    client = start(stalling.url, "box", tree, "-o", out, "-j", 2,
                   preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # nohup ignores it
    poll(lambda: [body for body in found(out).values() if len(body) == 50000], 60, "results")
    client.send_signal(number)
    assert client.wait(60) == -number and client.stderr.read() == b""
    assert found(out) == {}


def test_interrupted_while_it_reads(server):
    client = start(server().url, "box", stdin=subprocess.PIPE)
    directory = pathlib.Path(f"/proc/{client.pid}/fd")
    poll(lambda: any("/convolve-" in os.readlink(fd) for fd in directory.glob("*")), 60,
         "the temporary file")
    client.send_signal(signal.SIGINT)
    assert client.wait(60) == -signal.SIGINT


# Data on the wire ---------------------------------------------------------------------------------

@pytest.mark.skipif(sanitized(), reason="a sanitizer's memory says nothing")
def test_bodies_are_not_kept_in_memory(server, tmp_path):
    size = 200 << 20
    large = tmp_path / "large.ppm"
    with large.open("wb") as file:
        file.truncate(size)
    peak = []

    def answer(handler):
        peak.append(Process(client.pid).peak)
        return 200, {}, b"%d" % len(handler.body)

    client = start(server(answer).url, "box", large, "-o", tmp_path / "out.ppm")
    assert client.wait(60) == 0 and (tmp_path / "out.ppm").read_bytes() == b"%d" % size
    assert peak[0] < 40 << 20, peak


# Looking at the service ---------------------------------------------------------------------------

def rows(output):
    return [re.split(r"  +", line.strip()) for line in output.decode().splitlines()]


def test_tables(service, image, tmp_path):
    run(service.url, "box", image, "-o", tmp_path / "out.ppm")
    catalogue = service.get("/v1/filters").json()
    table = rows(run(service.url, "filters")[0])
    assert [row[0] for row in table[1:1 + len(catalogue["filters"])]] == [
        f["name"] for f in catalogue["filters"]]
    assert ["quality", "1 to 100; default: 85 for JPEG, 80 for WebP, 60 for AVIF, 90 for JPEG XL"] in table
    for p in catalogue["common"]:
        assert any(row[0] == p["name"] and row[-1].endswith(" (of a chain)") == p["chain_only"] for row in table), p
    table = rows(run(service.url, "filters", "bilateral")[0])
    assert ["radius", "integer, 1 to 16", "pixels", "4", "Radius of the circular window"] in table
    devices = rows(run(service.unix, "devices")[0])
    assert devices[0][:3] == ["DEVICE", "TYPE", "STATE"] and devices[1][:3] == ["cpu0", "cpu", "up"]
    kernels = rows(run(service.url, "kernels")[0])
    assert kernels[0][0] == "KERNEL" and len(kernels) > 1
    assert {len(row) for row in kernels} == {10}
    assert kernels[1][1] == "cpu0" and int(kernels[1][2]) > 0 and re.fullmatch(
        r"[\d.]+ (s|ms|us|ns)", kernels[1][5])
    documents = json.loads(run(service.url, "kernels", "--json")[0])
    assert {"kernels", "choices", "variants"} <= documents.keys()
    complains("did you mean box?", service.url, "filters", "boxx")


def test_top(service, image, tmp_path):
    """It shows what happens meanwhile, and twice if asked so."""
    client = start(service.url, "top", "-n", 2, "-d", 1)
    while client.poll() is None:
        run(service.url, "box", image, "-f", "-o", tmp_path / "out.ppm")
    shown = client.communicate(timeout=60)[0].decode()
    assert "\033" not in shown and shown.count(service.url) == 2
    assert shown.count("\nDEVICE ") == shown.count("\nKERNEL ") == 2
    assert re.search(r"^cpu0 +up +\d+ % +[\d.]+ +\d+ +0 ", shown, re.M), shown
    assert re.search(r"^jobs +\d+ running, \d+ waiting", shown, re.M)
    for line in (r"^images +([\d.]+)/s", r"^tiles .* ([\d.]+)/s"):
        assert any(float(rate) > 0 for rate in re.findall(line, shown, re.M)), shown


@contextlib.contextmanager
def on_a_terminal(url, *arguments, rows=24, columns=80):
    """Gives the client on a terminal of this size: its process, and the terminal's other end and
    its own, with the modes that this had."""
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (rows, columns))
    before = termios.tcgetattr(its)
    process = start(url, *arguments, stdin=its, stdout=its, stderr=its, start_new_session=True,
                    preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    try:
        yield process, ours, its, before
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(its)


def seen(process, terminal, until=None):
    """Returns what is on the terminal up to this text, or to the client's end."""
    read, end = b"", time.monotonic() + PATIENCE
    while until is None or until not in read:
        assert time.monotonic() < end, read
        ended = process.poll() is not None
        if select.select([terminal], [], [], 0.1)[0]:
            read += os.read(terminal, 1 << 16)
        elif ended:
            break
    return read.decode(errors="replace")


@pytest.mark.parametrize("key", [b"q", b"Q", b"\x03"])
def test_top_on_a_terminal(service, image, tmp_path, key):
    """It ends with q, fits, and leaves the terminal as it was."""
    run(service.url, "box", image, "-o", tmp_path / "out.ppm")
    with on_a_terminal(service.url, "top", "-d", 0.2, rows=6, columns=20) as (
            process, ours, its, before):
        text = seen(process, ours, b"\x1b[J")
        assert termios.tcgetattr(its)[3] & (termios.ICANON | termios.ECHO) == 0
        os.write(ours, b"x" + key)
        assert process.wait(60) == (0 if key in b"qQ" else -signal.SIGINT)
        assert termios.tcgetattr(its) == before
    view = re.search(r"\x1b\[H(.*?)\x1b\[J", text, re.S)[1]
    lines = re.sub(r"\x1b\[K", "", view).replace("\r", "").split("\n")[:-1]
    assert 3 <= len(lines) <= 5 and max(map(len, lines)) == 20, lines


def test_looks_share_a_connection(server):
    """Those of top: the service is not to be kept busy by being watched."""
    answers = {"/v1/devices": b'{"devices": []}', "/metrics": b""}
    asked = server(lambda handler: (200, {}, answers[handler.path] or b"\n"))
    run(asked.url, "top", "-n", 2, "-d", 0.1)
    assert asked.connections == 1 and len(asked.requests) == 4  # the devices' names once


NAMED = 'kernel="x}\\"y\\\\",device="cpu0"'


def metrics_text(time, buckets, total):
    """Possible answers of the service, with nonsense among them."""
    lines = ["", "{", "} 1", "# TYPE", "a b c", "convolved_time_seconds", "convolved_tiles_total{ 5", "convolved_tiles_total 1x",
             'convolved_device_up{device="cpu0"} 1', 'convolved_device_state{device="cpu0",state="down"} 0',
             'convolved_device_state{device="cpu0",state="up"} 1', f"convolved_time_seconds {time}", "\x9b\x1b[2J{",
             'convolved_kernel_duration_seconds_bucket{le="', 'convolved_kernel_duration_seconds_count{device="\\'  ]
    lines += [f'convolved_kernel_duration_seconds_bucket{{{NAMED},le="{bound}"}} {count}' for bound, count in buckets]
    lines += [f"convolved_kernel_duration_seconds_sum{{{NAMED}}} {total}",
              f"convolved_kernel_duration_seconds_count{{{NAMED}}} {buckets[-1][1]}",
              f"convolved_kernel_bytes_total{{{NAMED}}} {total * 1e9}"]
    return "\n".join(lines).encode()


def test_top_reads_the_metrics(server):
    """Rates and quantiles are those between two readings, by the service's own clock."""
    readings = iter([metrics_text(100, [("0.001", 50), ("0.01", 50), ("+Inf", 50)], 1),
                     metrics_text(104, [("0.001", 50), ("0.01", 70), ("+Inf", 70)], 2)])
    asked = server(lambda handler: (200, {}, next(readings) if handler.path == "/metrics" else
                                    b'{"devices": [{"id": "cpu0", "name": "a\xc2\x9b31m\xc3\xa9"}]}'))
    shown = run(asked.url, "top", "-n", 1, "-d", 0.1)[0].decode()
    assert re.search(r"^cpu0 +up +25 % +[\d.]+ +0 +0 +a\?\?31mé$", shown, re.M), shown
    assert re.search(r"""^x}"y\\ +cpu0 +5\.0 +25\.0 % +1\.00 +5\.50 ms +9\.91 ms$""", shown, re.M), shown


def test_top_with_very_many_series(server):
    """8 devices and 40 kernels: some 800 kB."""
    def text(count):
        return b"convolved_time_seconds %d\n" % count + b"".join(
            b'convolved_kernel_duration_seconds_%s{kernel="k%d",device="gpu%d"%s} %d\n' % (part, kernel, device, bound, count)
            for kernel in range(40) for device in range(8) for part, bound in
            [(b"bucket", b',le="%g"' % (i * 0.001)) for i in range(1, 21)] + [(b"count", b""), (b"sum", b"")])
    readings = iter([text(1), text(2)])
    asked = server(lambda handler: (200, {}, next(readings) if handler.path == "/metrics" else b'{"devices": []}'))
    shown = run(asked.url, "top", "-n", 1, "-d", 0.1)[0].decode()
    assert len(re.findall(r"^k\d+ +gpu\d +1\.0 +100\.0 %", shown, re.M)) == 320, shown


def test_on_a_terminal(server, tree, tmp_path):
    def shown(url, *arguments, **size):
        with on_a_terminal(url, *arguments, **size) as (process, ours, *_):
            return seen(process, ours), process.wait(60)

    def answer(handler):
        time.sleep(0.15)
        return 200, {}, handler.body

    text, status = shown(server(answer).url, "box", tree, "-o", tmp_path / "out", "-j", "1")
    assert "4 done, 1 left out, whose names are not those of images;" in text, text
    assert status == 0 and re.search(r"\[#+-+\] [123]/4  [\d.]+ images/s, [\d.]+ MB/s  \d+:\d\d left", text), text
    assert re.search(r"\r\033\[K4 done[^;]*; [\d.]+ s, [\d.]+ images/s, [\d.]+ MB/s\r\n$", text), text
    for columns, line in ((60, r"\[#+-+\] [123]/4  [\d.]+ images/s, "), (30, r"[123]/4  [\d.]+ images/s, ")):
        text, _ = shown(server(answer).url, "box", tree, "-o", tmp_path / f"{columns}", "-j", "1", columns=columns)
        lines = re.split(r"\r(?:\033\[K|\n)?", text)[:-2]  # the summary stays, and may be longer
        assert max(map(len, lines)) < columns and any(re.match(line, drawn) for drawn in lines), lines
    assert shown(server().url, "box", tree, "-o", tmp_path / "out", "-q", "--force") == ("", 0)
    text, status = shown(server().url, "box", tree / "a.ppm", "-o", "-")
    assert status == 2 and "cannot read an image from a terminal" in text


# Presets ------------------------------------------------------------------------------------------

def test_presets(launch, image, tmp_path):
    """Run, listed and completed; the suffix is the format, unless the preset has another."""
    with launch("--preset", "neg=invert", "--preset", "neg-web=invert&format=webp&lossless=1", "--presets-only", "yes",
                environment=ONE_DEVICE) as service:
        for preset, name, more in (("@neg", "out.png", "?format=png"), ("@neg-web", "out.webp", ""),
                                   ("@neg", "checked.ppm", "?verify=1")):
            options = ("--verify", 1) if "verify" in more else ()
            run(service.url, preset, *options, image, "-o", tmp_path / name)
            expected = service.post(f"/v1/presets/{preset[1:]}{more}", image.read_bytes())
            assert expected.status == 200 and (tmp_path / name).read_bytes() == expected.body
        run(service.url, "@neg", tmp_path, "-o", tmp_path / "results")
        assert (tmp_path / "results/in.ppm").read_bytes() == (tmp_path / "checked.ppm").read_bytes()
        for words, status, arguments in (
                ("format: expected webp, which the preset has", 1, ("@neg-web", image, "-o", tmp_path / "a.png")),
                ("did you mean neg?", 2, ("@nag", image, "-o", tmp_path / "a.ppm")),
                ("nothing is at /v1/presets/", 1, ("@", image, "-o", tmp_path / "a.ppm")),
                ("a request for a preset takes format, raw", 2, ("@neg", "--size", 3, image, "-o", tmp_path / "a.ppm")),
                ("a request for a preset takes format, raw", 2, ("@neg", "--luma", "box", image, "-o", tmp_path / "a.ppm")),
                ("POST /v1/presets/NAME, with one of neg, neg-web", 1, ("box", image, "-o", tmp_path / "a.ppm"))):
            complains(words, service.url, *arguments, status=status)
            assert not found(tmp_path).keys() & {"a.ppm", "a.png"}
        listed = rows(run(service.url, "filters")[0])
        assert ["@neg", "filters=invert"] in listed and ["@neg-web", "filters=invert"] in listed
        assert ["lossless=1"] in listed
        assert run(service.url, "filters", "--names")[0].decode().endswith("\n@neg\n@neg-web\n")
        assert completed(service.url, "convolve @ne") == ["neg", "neg-web"]
        assert completed(service.url, "convolve inv") == ["invert"]
        assert not [word for word in completed(service.url, "convolve filters ") if "neg" in word]


# Completion ---------------------------------------------------------------------------------------

def completed(url, line):
    """Returns bash's completions for the line."""
    script = (f'PATH={BUILD}:$PATH; source {COMPLETION}; COMP_LINE=$1 COMP_POINT=${{#1}}; _convolve;'
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", line], env=environment(url),
                          capture_output=True, text=True, timeout=60)
    assert done.stderr == "", done
    return done.stdout.split()


def test_completion(service):
    for line, words in (
            ("convolve gau", ["gaussian"]),
            ("convolve -q -j 4 -o out.png gau", ["gaussian"]),
            ("convolve kern", ["kernels"]),
            ("convolve gaussian=siz", ["size="]),
            ("convolve gaussian=sigma=1.4,sob", ["1.4,sobel"]),
            ("convolve box,unsharp=sigma=2:thr", ["threshold="]),
            ("convolve sobel=output=m", ["magnitude"]),
            ("convolve sobel --output ", ["magnitude", "x", "y", "direction"]),
            ("convolve sobel --output=m", ["magnitude"]),
            ("convolve gaussian --border w", ["wrap"]),
            ("convolve gaussian,sobel --channels=l", ["luma"]),
            ("convolve --priority ", ["interactive", "batch"]),
            ("convolve he", ["help"]),
            ("convolve gaussian --siz", ["--size"]),
            ("convolve gaussian --outp", ["--output-dir"]),
            ("convolve gaussian --mas", ["--mask"]),
            ("convolve gaussian --mask ma", []),
            ("convolve sobel --outp", ["--output-dir", "--output"]),
            ("convolve gaussian,sobel --bor", ["--border", "--border_value"]),
            ("convolve filters bil", ["bilateral"]),
            ("convolve jo", ["jobs"]),
            ("convolve jobs ", ["wait", "fetch", "delete"]),
            ("convolve jobs fetch -o ", []),
            (f"convolve --server {service.unix} bil", ["bilateral"]),
            ("convolve gaussian in", [])):  # names of files are bash's own
        assert completed(service.url, line) == words, line
    job = submit(service).rpartition("/")[2]
    assert job in completed(service.url, "convolve jobs wait ")
    run(service.url, "jobs", "delete", job)
    assert {"gaussian", "devices", "chain"} <= set(completed(service.url, "convolve "))


def zsh(directory, url, lines):
    """Returns zsh's completions for the lines: on a terminal, as its user would ask for them."""
    (directory / "found").unlink(missing_ok=True)
    (directory / "lines").write_text("".join(f"{line}\n" for line in lines))
    (directory / "probe").write_text(f"""
        path=({BUILD} $path) fpath=({COMPLETION.parent} $fpath)
        autoload -Uz compinit && compinit -D -u
        compadd() {{ builtin compadd -O found "$@"; print -rl -- $found >>{directory}/found; builtin compadd "$@" }}
        ask() {{
            for line in "${{(f@)$(<{directory}/lines)}}"; do
                BUFFER=$line CURSOR=$#line
                zle list-choices
                print -- --- >>{directory}/found
            done
            exit
        }}
        zle -N ask && bindkey ^T ask && print ready""")
    ours, its = pty.openpty()
    process = subprocess.Popen(["zsh", "-f", "-i"], stdin=its, stdout=its, stderr=its, cwd=directory,
                               env=environment(url, {"TERM": "dumb"}), start_new_session=True)
    try:
        os.write(ours, b"source ./probe\n")
        seen(process, ours, b"\nready")
        os.write(ours, b"\x14")
        seen(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(its)
    return [found.split() for found in (directory / "found").read_text().split("---\n")[:-1]]


def fish(directory, url, lines):
    script = f"set PATH {BUILD} $PATH; source {COMPLETION}.fish; for line in $argv; complete -C $line; echo ==; end"
    done = subprocess.run(["fish", "--no-config", "-c", script, *lines], env=environment(url, {"HOME": str(directory)}),
                          capture_output=True, text=True, timeout=60, cwd=directory)
    assert done.stderr == "", done
    return [found.split() for found in done.stdout.split("==\n")[:-1]]


@pytest.mark.parametrize("shell", [zsh, fish])
def test_completion_in_other_shells(service, tmp_path, shell):
    """They complete whole words, where bash begins after the last = or :."""
    (tmp_path / "picture.jpg").touch()
    expected = {
        "convolve gau": ["gaussian"],
        "convolve gaussian=sigma=1.4,sob": ["gaussian=sigma=1.4,sobel"],
        "convolve box,unsharp=sigma=2:thr": ["box,unsharp=sigma=2:threshold="],
        "convolve sobel --output=m": ["--output=magnitude"],
        "convolve sobel --output ": ["magnitude", "x", "y", "direction"],
        "convolve gaussian --siz": ["--size"],
        "convolve gaussian pict": ["picture.jpg"],
    }
    # A busy service may not answer within the second that a shell waits.
    poll(lambda: list(map(set, shell(tmp_path, service.url, list(expected)))) == list(map(set, expected.values())), 60,
         "the right words")


def test_completions_are_installed_beside_each_other(tmp_path):
    """Those of zsh and fish find bash's, in the places where Debian's shells look for them."""
    for line in (REPOSITORY / "debian/convolve.install").read_text().splitlines():
        file, _, place = line.partition(" ")
        if "complet" in line:
            place = tmp_path / (place or os.path.dirname(file))
            place.mkdir(parents=True)
            shutil.copy(COMPLETION.parent / os.path.basename(file), place)
    nobody = f"http://127.0.0.1:{free_port()}"
    for shell, place in (("fish", "fish/vendor_completions.d/convolve.fish"), ("zsh", "zsh/vendor-completions/_convolve")):
        script = (f"set -x PATH {BUILD} $PATH; source $argv; complete -C 'convolve to'" if shell == "fish" else
                  f"path=({BUILD} $path); words=(convolve to) CURRENT=2 PREFIX=to; compadd() {{ print -- $argv[-1] }}; "
                  "source $1")
        done = subprocess.run([shell, *(["--no-config"] if shell == "fish" else ["-f"]), "-c", script,
                               *(["zsh"] if shell == "zsh" else []), tmp_path / "usr/share" / place],
                              env=environment(nobody), capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.stderr) == ("top\n", ""), done


def test_completion_without_a_service():
    nobody = f"http://127.0.0.1:{free_port()}"
    assert completed(nobody, "convolve to") == ["top"]
    assert completed(nobody, "convolve gaussian --tok") == ["--token-file"]
