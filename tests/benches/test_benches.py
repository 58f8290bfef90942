"""The programs that measure: each of ../bench is run with tiny sizes, to see that it still runs;
and convolved-bench finds wrong pixels, refuses options that it does not understand, and writes
JSON."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import types
from xml.etree import ElementTree

import numpy
import pytest
from PIL import Image

import report
from service import BUILD, ONE_DEVICE, REPOSITORY, poll

NUMBER = r"[1-9][\d.]*"


def run(*command, status=0, **environment):
    """Returns the program's output: (standard output, standard error). status: None for any."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=1800, check=False,
                          env={**os.environ, **ONE_DEVICE, **{name: str(value) for name, value in environment.items()}})
    assert status in (None, done.returncode), (done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout, done.stderr


@pytest.fixture(scope="session")
def bench(cache):
    """bench(*options, status=0) runs convolved-bench on one small image."""
    def bench_with(*options, status=0, **environment):
        return run(BUILD / "convolved-bench", "--iterations", 2, "--warmup", 0, "--pixels", "u8",
                   "--width", 300, "--height", 200, "--cache-dir", cache, *options, status=status,
                   **environment)
    return bench_with


def results(bench, *options, **more):
    return json.loads(bench("--json", *options, **more)[0])["results"]


@pytest.fixture
def changed(tmp_path):
    """changed(name, before, after) copies the kernels, and replaces a text of one."""
    def changed_in(name, before, after):
        sources = tmp_path / "kernels"
        shutil.copytree(REPOSITORY / "kernels", sources)
        text = (sources / name).read_text()
        assert text.count(before) == 1
        (sources / name).write_text(text.replace(before, after))
        return "--kernel-dir", sources
    return changed_in


@pytest.fixture(scope="session")
def home(tmp_path_factory, cache):
    """A home with the tests' cache in it."""
    directory = tmp_path_factory.mktemp("home")
    (directory / ".cache").mkdir()
    (directory / ".cache" / "convolved").symlink_to(cache)
    return directory


def case(home, text, *options, status=0):
    """Returns the output of a case of run.py, for which everything is installed and made."""
    return run(sys.executable, REPOSITORY / "tests/bench/run.py", *text.split(), *options, status=status, HOME=home,
               XDG_CACHE_HOME="", CONVOLVED_BUILD=BUILD, CONVOLVED_CASE="prepared")[0]


def test_json(bench):
    """There is an object for every device, a row for every variant."""
    device = json.loads(bench("--json", "--filter", "sobel", "--variant", "gradient", "--verify")[0])
    row, = device["results"]
    assert {"version", "date", "driver", "iterations"} <= set(device) and "--verify" in device["command"]
    assert (row["variant"], row["width"], row["height"], row["taps"]) == ("gradient", 300, 200, 9)
    assert row["verified"] and row["verified_samples"] == 300 * 200
    assert device["copy_bytes_per_second"] > 1e7 and 0 < row["median_seconds"] < 60 and row["runs"] >= 2
    assert 0 < row["mean_seconds"] < 60 and (row["launches"], row["threads"]) == (1, 0)
    assert (row["origin"], row["form"], row["bytes_outside"]) == ("general", "tile", 0)


def test_tables(bench, home, tmp_path):
    """Those of docs/benchmarks.md, from that JSON."""
    file = tmp_path / "bench.json"
    file.write_text(bench("--json", "--filter", "sobel", "--variant", "gradient,reference")[0])
    device, *rows = json.loads(case(home, "tables", file, "--json"))
    assert (device["rows"], device["not verified"]) == (2, 0)
    assert {row["sobel, u8"] for row in rows} == {"`gradient`", "`reference`"}


def test_compiled_as_in_the_service(bench, tmp_path):
    """PoCL compiles no kernel a second time for the local size of its launches."""
    bench("--filter", "box=size=3", "--variant", "separable", POCL_CACHE_DIR=tmp_path)
    programs = [path.parent.name for path in tmp_path.rglob("separable.so")]
    assert programs and set(programs) == {"0-0-0"}


def test_outlives_its_terminal(cache):
    """With nohup it is not ended by a hangup."""
    going = subprocess.Popen([BUILD / "convolved-bench", "--budget", "2", "--iterations", "10000", "--pixels",
                              "u8", "--width", "300", "--height", "200", "--filter", "box=size=3",
                              "--variant", "separable", "--cache-dir", cache, "--json"],
                             env={**os.environ, **ONE_DEVICE}, stdout=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    poll(lambda: len(os.listdir(f"/proc/{going.pid}/task")) > 1, 60, "threads of its driver")
    going.send_signal(signal.SIGHUP)
    assert json.loads(going.communicate(timeout=60)[0])["results"]
    assert going.returncode == 0


def test_table(bench):
    text = bench("--filter", "box=size=3", "--variant", "separable")[0]
    assert re.search(rf"copy {NUMBER} ms|copy 0\.\d+ ms", text)
    assert re.search(r"^  separable +.* right, 0$", text, re.M)


def test_wrong_pixel(bench, changed):
    """One wrong pixel of 60,000 is found."""
    store = "pixel_store(result, TARGET_ROW(y + r) + at, width);"
    kernels = changed("general/gradient.cl", store,
                      "if (y + r == 101 && at == 160) result.s3 = result.s3 > 100 ? 0 : 200; " + store)
    row, = results(bench, *kernels, "--filter", "sobel", "--verify", "--variant", "gradient", status=1)
    assert not row["verified"] and row["max_difference"] >= 100


@pytest.mark.parametrize("variant", ["matrix", pytest.param("sep_two_pass", marks=pytest.mark.slow)])
def test_rois_and_output(bench, tmp_path, variant):
    """A part is filtered as if it were the whole image, and --output has its pixels."""
    image, path = numpy.full((30, 40), 200, numpy.uint8), tmp_path / "out.png"
    image[10:25, 5:25] = 7
    Image.fromarray(image).save(tmp_path / "in.png")
    text = bench("--filter", "box=size=5", "--variant", variant, "--source-roi", "5,10,20,15",
                 "--target-roi", "20,15,20,15", "--verify", "-o", path, tmp_path / "in.png")[0]
    assert f"by {variant}" in text
    got = numpy.asarray(Image.open(path))
    assert got.shape == (15, 20) and (got == 7).all()


def test_luma_and_chroma(bench):
    """Several launches are timed as one row."""
    rows = results(bench, "--filter", "luma=gaussian=sigma=1.1:size=5&chroma=gaussian=size=3",
                   "--pixels", "u8x3", "--variant", "matrix,table", "--verify")
    assert {row["variant"] for row in rows} == {"matrix", "table"}
    for row in rows:
        assert row["launches"] > 2 and row["verified"] and row["taps"] == 34


@pytest.mark.parametrize("chain, pixels", [
    ("box=size=5", "u16x3"), ("convolve=kernel=1 2 3;4 5 6;7 8 0", "f32x2"), ("sobel", "u8"),
    ("bilateral=radius=2", "u8x4")])
def test_processor(bench, chain, pixels):
    """The processor's own baseline, right on any number of threads."""
    rows = results(bench, "--filter", chain, "--pixels", pixels, "--variant", "processor")
    assert [row["threads"] for row in rows] == [1, 4, 8]
    assert all(row["verified"] and row["mean_seconds"] > 0 for row in rows)


def test_writes_outside(bench, changed):
    """Bytes around the target ROI that a kernel has changed are found."""
    store = "TARGET_ROW(y)[x] = PIXEL_ROUND_1(total + offset);"
    kernels = changed("classic/convolution.cl", store,
                      "if (x == 0 && y == 0) TARGET_ROW(rows)[3] = 1; " + store)
    row, = results(bench, *kernels, "--filter", "box=size=3", "--variant", "conv_naive", status=1)
    assert (row["bytes_outside"], row["wrong_samples"], row["verified"]) == (1, 0, False)


@pytest.mark.slow
@pytest.mark.parametrize("study, chain, pixels, options", [
    ("conv", "box=size=3", "u8x4", ()), ("sep", "box=size=3", "u8x4", ()),
    ("bilateral", "bilateral=radius=1", "u8x4", ()),
    ("sobel", "sobel", "u8", ()), ("sobel", "sobel", "u8", ("--padding", "0,0"))])
def test_published_kernels(bench, study, chain, pixels, options):
    """They are right in the forms of their studies."""
    names = re.findall(rf'^KERNEL\(\w+, "({study}_\w+)", [\w |]+, CLASSIC,',
                       (REPOSITORY / "kernels/kernels.def").read_text(), re.M)
    found = results(bench, "--filter", chain, "--pixels", pixels, "--variant", ",".join(names),
                    *options, POCL_EXTRA_BUILD_FLAGS="-cl-opt-disable")  # in half the time
    assert {row["variant"]: row["verified"] for row in found} == dict.fromkeys(names, True)


@pytest.mark.slow
@pytest.mark.parametrize("pixels, samples", [("u8", 60000), ("u8x3", 180000)])
def test_jpeg(bench, pixels, samples):
    """A row for each kernel of either direction, whose results are right."""
    rows = {row["variant"]: row for row in results(bench, "--filter", "jpeg", "--pixels", pixels)}
    assert len(rows) == 22 and all(row["verified"] for row in rows.values())
    assert rows["jpeg decode"]["verified_samples"] == rows["idct"]["verified_samples"] == samples
    assert 0 < rows["code"]["median_seconds"] < rows["jpeg encode"]["median_seconds"] < 60


@pytest.mark.slow
@pytest.mark.parametrize("name, before, after, form", [
    ("idct", "+ 128, 0", "+ 129, 0", "scan to pixels"),
    ("fdct", "+ half_step, r", "+ 2 * half_step, r", "pixels to scan"),
])
def test_wrong_jpeg(bench, changed, name, before, after, form):
    """If a kernel is wrong, so are the rows of its direction; what is decoded wrongly is encoded,
    too."""
    rows = results(bench, *changed(f"jpeg/{name}.cl", before, after), "--filter", "jpeg", status=1)
    wrong = {row["form"] for row in rows if not row["verified"]}
    assert form in wrong and (form == "scan to pixels" or len(wrong) == 1)


@pytest.mark.slow
def test_jpeg_variants(bench):
    rows = results(bench, "--filter", "jpeg", "--variant", "idct,jpeg encode")
    assert {row["variant"] for row in rows} == {"idct", "jpeg encode"}


@pytest.mark.parametrize("option, value, says", [
    ("--width", "0", "1 to 65536"), ("--height", "1x", "1 to 65536"), ("--iterations", "-1", "1 to 10000"),
    ("--budget", "0", "from 0.001"), ("--type", "tpu", "all, cpu, gpu"), ("--pixels", "u9", "u8, u16 or f32"),
    ("--pixels", "u8x5", "x1 to x4"), ("--filter", "box=size=4", "size"), ("--filter", "blur", "blur"),
    ("--filter", "", "at least one filter"), ("--filter", "luma=blur", "blur"),
    ("--filter", "chroma=", "at least one filter"),
    ("--variant", "fastest", "--list"), ("--variant", "matrix,,gradient", "--list"),
    ("--source-roi", "1,2,3", "X,Y,WIDTH,HEIGHT"), ("--target-roi", "0,0,3,3", "--source-roi"),
    ("--source-roi", "1,0,300,200", "X + WIDTH up to 300, Y + HEIGHT up to 200"),
    ("--source-roi", "4294967295,0,2,2", "X,Y,WIDTH,HEIGHT"),
    ("--padding", "16", "X,Y"), ("--padding", "-1,0", "0 to 1024"), ("--padding", "0,1025", "0 to 1024"),
    ("--output", "out.png", "--filter"),
])
def test_refused(bench, option, value, says):
    error = bench(option, value, status=2)[1]
    assert error.startswith(f"convolved-bench: {option}") and says in error


@pytest.mark.parametrize("options, status, says", [
    ("--source-roi 0,0,10,10 --target-roi 0,191,10,10", 2, "--target-roi '0,191,10,10'.*Y \\+ HEIGHT up to 200"),
    ("--filter sobel -o out.abacus", 2, "out.abacus.*expected the name of a file"),
    ("--filter sobel --variant gradient -o none/out.png", 1, "out.png"),
    ("--filter jpeg --variant idcts", 2, "no such variant"),
    ("--device abacus", 1, "no such OpenCL device"),
])
def test_fails(bench, options, status, says):
    assert re.search(says, bench(*options.split(), status=status)[1])


def test_scheduler():
    head, *rows = run(BUILD / "bench_scheduler", 1, 20)[0].splitlines()
    assert head.endswith("(ns a tile)")
    assert [row.split()[0] for row in rows] == ["1", "20"]
    assert all(re.fullmatch(NUMBER, cell) for row in rows for cell in row.split()[1:])


def simulate(*options, status=0):
    return json.loads(run(BUILD / "bench_simulate", "--nodes", 4, "--balancers", 2, *options,
                          status=status)[0])


@pytest.mark.parametrize("kind, seconds", [("cpu", 20), ("gpu", 1)])
def test_simulated_nodes(kind, seconds):
    """No request is lost or done twice, which the program checks itself, too. If there is enough of
    all, every request is answered, and in time; if not, the nodes do what they can."""
    options = "--kind", kind, "--seconds", seconds
    for way in ((), ("--weights", "wait"), ("--balancing", "two-choices", "--slow", 4),
                ("--balancing", "leastconn", "--weights", "wait")):
        few = simulate("--load", 0.3, *options, *way)
        assert few["conserved"] and few["requests_answered"] == few["requests"] > 1000
        assert few["goodput"] == pytest.approx(few["offered"], rel=0.03)
        many = simulate("--load", 3, *options, *way)
        assert many["conserved"] and many["requests_refused"] > 0 and many["retries"] > 0
        assert many["requests_answered"] + many["requests_refused"] == many["requests"]
        assert 0.8 * many["capacity"] < many["answered"] < 1.1 * many["capacity"]


def test_simulated_choices():
    """The same seed gives the same figures. Two choices avoid a slow node, to which random ones go
    as often as to others."""
    options = "--load", 0.7, "--slow", 4, "--seconds", 40
    random, again = simulate(*options), simulate(*options)
    assert random == again != {**simulate(*options, "--seed", 2), "seed": 1}
    assert simulate(*options, "--balancing", "two-choices")["p99_ms"] < 0.7 * random["p99_ms"]
    for wrong in (("--load", "0"), ("--nodes", "1.5"), ("--balancing", "best"), ("--loud", "1"), ("--load",)):
        assert wrong[0] in run(BUILD / "bench_simulate", *wrong, status=2)[1]


@pytest.mark.slow
def test_figure_of_nodes(home, tmp_path):
    """A line for each way that was simulated; the figure can be drawn from the numbers alone."""
    case(home, "simulate --share 0.001 --output", tmp_path / "a.svg", "--json", tmp_path / "runs.json")
    case(home, "simulate --draw", tmp_path / "runs.json", "--output", tmp_path / "b.svg")
    figure = (tmp_path / "a.svg").read_text()
    assert figure == (tmp_path / "b.svg").read_text()
    lines = [path for path in ElementTree.fromstring(figure).iter("{http://www.w3.org/2000/svg}path")
             if path.get("class", "").startswith("line ") and "L" in path.get("d")]
    assert len(lines) == 2 * (1 + 2 * 5 + 4) + 2 * (2 * 5 + 4)


def engine(cache, state, *options):
    return run(BUILD / "bench_engine", "-s", 1, "-n", 2, *options, "--cache-dir", cache, "--state-dir", state)[0]


def test_engine(cache, tmp_path):
    text = engine(cache, tmp_path, "-i", "64x64x1:u8", "-f", "box=size=3", "--")
    assert re.search(rf"^1 devices, box=size=3, 64x64x1:u8, 2 streams: {NUMBER} images/s", text, re.M)


@pytest.mark.slow
def test_engine_with_jpegs(home, cache, tmp_path):
    file = tmp_path / "a.jpg"
    row, = json.loads(case(home, "photograph", file, "--side", 64, "--bytes", 2600, "--json"))
    assert row["bytes"] == file.stat().st_size and 2400 < row["bytes"] < 2800
    text = engine(cache, tmp_path, "-j", file, "--", "--jpeg-on-any", "yes")
    assert re.match(rf"1 devices, gaussian=size=5, 64x64x3:u8, 2 streams: {NUMBER} images/s", text)


def test_codec_alone(tmp_path):
    """Each of its figures; libjpeg-turbo alone, too."""
    photograph = REPOSITORY / "tests/photograph.jpg"
    text = run(BUILD / "bench_jpeg", "-f", "-c", 1, "-s", 1, photograph)[0]
    assert re.search(rf"libjpeg-turbo, 1 processes, decode \+ encode: {NUMBER} images/s", text)


def test_report(home, tmp_path):
    """It names its commit, and says how each section ended. It fails if one of them does."""
    file = tmp_path / "report.json"
    text = case(home, "report --commit 1a2b3c4 --rows code,exposure,cases,peers --program none --json", file, status=1)
    about, *others = json.loads(file.read_text())
    assert about["commit"] == "1a2b3c4" and about["cores"] > 0 and re.search(r"^\| 1a2b3c4 \| 20\d\d-", text, re.M)
    assert [row["code"] for row in others if "code" in row] == ["daemon", "its headers", "kernels", "client", "tests"]
    assert all(row["files"] < row["lines"] for row in others if "code" in row)
    assert [row["tests by HTTP"] > 3000 for row in others if "tests by HTTP" in row] == [True]
    assert [0 < row["by systemd-analyze, of 10"] < 10 for row in others if "exposure of" in row] == [True]
    assert [(row["section"], row["ended"][:6]) for row in others if "section" in row] == [
        ("code", "well"), ("exposure", "well"), ("peers", "FAILED"), ("cases", "well")]


def test_report_without_a_build(tmp_path):
    """A section that lacks something there says so, and is no failure."""
    text = run(sys.executable, REPOSITORY / "tests/bench/run.py", "report", "--commit", "a", "--rows", "faults,load",
               CONVOLVED_BUILD=tmp_path, CONVOLVED_CASE="prepared")[0]
    assert len(re.findall(r"\| cannot run here: there is no (fault_layer.so|convolved) \|", text)) == 2


@pytest.mark.parametrize("command, ended", [
    (("sh", "-c", "echo 1; echo why >&2; exit 3"), "FAILED: 3: why"), (("sh", "-c", "sleep 60 & wait"), "FAILED: not within 0.5 s"),
    (("echo", "none"), "FAILED: without figures"), (("echo", "1"), "well")])
def test_section(monkeypatch, command, ended):
    section = report.Section("about", command, 0.5 if "60" in command[-1] else 60, lambda told, _: [{"a": int(told)}])
    monkeypatch.setitem(report.SECTIONS, "one", section)
    how, rows = report.done("one", types.SimpleNamespace())
    assert how.startswith(ended) and rows == ([{"a": 1}] if "1" in command[-1] else [])


@pytest.mark.slow
def test_report_of_gpu(home, tmp_path):
    """Its rows with a GPU, of a processor; a library that is not there has no figure."""
    rows = json.loads(case(
        home, "report --gpu --rows gpu --sides 64 --side 64 --streams 2 --rounds 1 --seconds 1 --json",
        "--kernels", f"{BUILD}/convolved-bench -t cpu", "--files", tmp_path, "--", "--jpeg-on-any", "yes"))
    found = [row for row in rows if "with a GPU" in row]
    assert [row["with a GPU"] for row in found] == [
        "JPEGs, by HTTP", "JPEGs, without HTTP", "kernel, gaussian 5x5", "kernel, sobel", "kernel, bilateral 9x9"]
    assert all(row["convolved"] > 0 for row in found) and all(row["instead"] > 0 for row in found[:2])
    assert all((row["times"] is None) == (row["instead"] is None) for row in found)
    assert [path.name for path in tmp_path.iterdir()] == ["64.jpg"]


def test_cases(home):
    """They are all listed, and each lists its options."""
    listed = case(home, "--help")
    for name in ("service", "peers", "soak", "cluster"):
        assert re.search(rf"^\./dev bench {name} ", listed, re.M)
    assert "--side SIDE" in case(home, "load --help")
    assert not case(home, "nothing", status=1)


@pytest.mark.parametrize("text, column, labels, positive", [
    ("http small --seconds 1 --rounds 1", "by", ["service", "bare sockets"],
     ["requests/s", "of sockets", "MB/s in", "MB/s out", "p99 ms"]),
    ("load --seconds 0.3 --rounds 1 --side 64", "rate", ["closed", "0.5 x", "1 x", "3 x"], ["sent", "goodput/s"]),
    pytest.param("loads --share 0.02 --ramp 0.3 --seconds 0.4 --one", "load",
                 ["nothing", "heads", "readers", "idle", "handshakes", "bodies"], ["probes"],
                 marks=pytest.mark.slow),
    pytest.param("strikes --seconds 3 --devices 1", "struck",
                 ["none", *(kind for kind in ("codec", "device", "http", "trace") for _ in range(3)), "all"], [],
                 marks=pytest.mark.slow),
    ("thumbnail --side 64 --other 1000 --count 10", "beside", ["nothing", "large"], ["p50 ms", "p99 ms"]),
    pytest.param("cluster 2 --seconds 1 --rounds 1 --side 64", "by",
                 ["node a", "node b", "all nodes", "HAProxy"], ["answers/s"], marks=pytest.mark.slow),
    pytest.param(f"lanes {REPOSITORY}/tests/photograph.jpg --seconds 1 --rounds 1 -- --jpeg-on-any yes", "by",
                 ["size=5 codec=gpu", "size=5 codec=cpu", "size=5 codec=auto", "bare sockets"],
                 ["requests/s", "p99 ms"], marks=pytest.mark.slow),
    pytest.param("service --side 256 --rounds 1 --seconds 1", "gaussian", ["sigma 1.1", "sigma 10"],
                 ["service ms", "gaussblur ms", "copy ms", "service / copy"], marks=pytest.mark.slow),
])
def test_measured(home, text, column, labels, positive):
    """A row for each that is compared. Whether slow clients are noticed is not for a busy machine
    to say."""
    name, *options = text.split()
    rows = json.loads(case(home, name, "--json", "-", *options, status=None))
    found = [row for row in rows if column in row]
    assert [row[column] for row in found] == labels, rows
    assert all(row[name] > 0 for row in found for name in positive), rows
    assert all(row.get("not answered", 0) == 0 for row in rows), rows
    assert all(row["same bytes"] in (None, "True") for row in rows if "same bytes" in row), rows
    assert name != "service" or len([row for row in rows if row.get("figure") and row["value"] >= 0]) >= 9, rows
