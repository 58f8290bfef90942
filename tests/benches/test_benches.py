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
from xml.etree import ElementTree

import numpy
import pytest
from PIL import Image

from service import BUILD, ONE_DEVICE, REPOSITORY, poll

NUMBER = r"[1-9][\d.]*"


def run(*command, status=0, **environment):
    """Returns the program's output: (standard output, standard error). status: None for any."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=1800, check=False, env={**os.environ, **ONE_DEVICE, **environment})
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


@pytest.fixture(scope="session")
def home(tmp_path_factory, cache):
    """A home with the tests' cache in it."""
    directory = tmp_path_factory.mktemp("home")
    (directory / ".cache").mkdir()
    (directory / ".cache" / "convolved").symlink_to(cache)
    return directory


def python(home, name, *options, **environment):
    return run(sys.executable, REPOSITORY / "tests/bench" / name, *options, HOME=str(home),
               CONVOLVED_BUILD=str(BUILD), **environment)[0]


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


def test_compiled_as_in_the_service(bench, tmp_path):
    """PoCL compiles no kernel a second time for the local size of its launches."""
    bench("--filter", "box=size=3", "--variant", "separable", POCL_CACHE_DIR=str(tmp_path))
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


def test_wrong_pixel(bench, tmp_path):
    """One wrong pixel of 60,000 is found."""
    shutil.copytree(REPOSITORY / "kernels", tmp_path / "kernels")
    kernel = tmp_path / "kernels/general/gradient.cl"
    store = "pixel_store(result, TARGET_ROW(y + r) + at, width);"
    assert store in kernel.read_text()
    kernel.write_text(kernel.read_text().replace(
        store, "if (y + r == 101 && at == 160) result.s3 = result.s3 > 100 ? 0 : 200; " + store))
    row, = json.loads(bench("--kernel-dir", tmp_path / "kernels", "--filter", "sobel", "--verify",
                            "--variant", "gradient", "--json", status=1)[0])["results"]
    assert not row["verified"] and row["max_difference"] >= 100


def test_rois_and_output(bench, tmp_path):
    """A part is filtered as if it were the whole image, and --output has its pixels."""
    image = numpy.full((30, 40), 200, numpy.uint8)
    image[10:25, 5:25] = 7
    Image.fromarray(image).save(tmp_path / "in.png")
    for variant in ("matrix", "sep_two_pass"):
        text = bench("--filter", "box=size=5", "--variant", variant, "--source-roi", "5,10,20,15",
                     "--target-roi", "20,15,20,15", "--verify", "-o", tmp_path / f"{variant}.png",
                     tmp_path / "in.png")[0]
        assert f"by {variant}" in text
        got = numpy.asarray(Image.open(tmp_path / f"{variant}.png"))
        assert got.shape == (15, 20) and (got == 7).all(), variant


def test_output_fails(bench, tmp_path):
    error = bench("--filter", "sobel", "--variant", "gradient", "-o", tmp_path / "none" / "out.png",
                  status=1)[1]
    assert "out.png" in error


def test_luma_and_chroma(bench):
    """Several launches are timed as one row."""
    device = json.loads(bench("--filter", "luma=gaussian=sigma=1.1:size=5&chroma=gaussian=size=3",
                              "--pixels", "u8x3", "--variant", "matrix,table", "--verify", "--json")[0])
    rows = {row["variant"]: row for row in device["results"]}
    assert set(rows) == {"matrix", "table"}
    for row in rows.values():
        assert row["launches"] > 2 and row["verified"] and row["taps"] == 34


def test_processor(bench):
    """The processor's own baseline, right on any number of threads."""
    for chain, pixels in (("box=size=5", "u16x3"), ("convolve=kernel=1 2 3;4 5 6;7 8 0", "f32x2"),
                          ("sobel", "u8"), ("bilateral=radius=2", "u8x4")):
        device = json.loads(bench("--filter", chain, "--pixels", pixels, "--variant", "processor",
                                  "--json")[0])
        assert [row["threads"] for row in device["results"]] == [1, 4, 8]
        assert all(row["verified"] and row["mean_seconds"] > 0 for row in device["results"])


def test_writes_outside(bench, tmp_path):
    """Bytes around the target ROI that a kernel has changed are found."""
    shutil.copytree(REPOSITORY / "kernels", tmp_path / "kernels")
    kernel = tmp_path / "kernels/classic/convolution.cl"
    store = "TARGET_ROW(y)[x] = PATH(conv_naive,"
    assert store in kernel.read_text()
    kernel.write_text(kernel.read_text().replace(
        store, "if (x == 0 && y == 0) TARGET_ROW(rows)[3] = 1; " + store))
    row, = json.loads(bench("--kernel-dir", tmp_path / "kernels", "--filter", "box=size=3", "--variant",
                            "conv_naive", "--json", status=1)[0])["results"]
    assert (row["bytes_outside"], row["wrong_samples"], row["verified"]) == (1, 0, False)


def classic_paths():
    """Returns {path: published kernels that have it}, by the marks in their sources. A mark begins
    with the kernel's name, or is of a function that several share."""
    shared = {"sobel_clamped": {"sobel_uchar", "sobel_uchar4", "sobel_float16_tile"},
              "conv_fetch_upper": {"conv_local_coop"}, "conv_fetch_lower": {"conv_local_coop"}}
    kernels = re.findall(r'^KERNEL\(\w+, "(\w+)", [\w |]+, CLASSIC,',
                         (REPOSITORY / "kernels/kernels.def").read_text(), re.M)
    marks = {mark for file in (REPOSITORY / "kernels/classic").glob("*.cl")
             for mark in re.findall(r"\bPATH\(\s*(\w+),", file.read_text())}
    found = {mark: shared.get(mark) or {max((one for one in kernels if mark.startswith(one)), key=len)}
             for mark in marks}
    assert set.union(*found.values()) == set(kernels), "each has a mark"
    return found


def in_rounds(paths):
    """Returns the paths in as few lists as possible, so that no kernel has two paths of a list."""
    rounds = []
    for path, kernels in sorted(paths.items(), key=lambda item: -len(item[1])):
        for one in rounds:
            if not any(kernels & paths[other] for other in one):
                one.append(path)
                break
        else:
            rounds.append([path])
    return rounds


@pytest.mark.parametrize("chain, pixels, belongs, ways", [
    ("box=size=3", "u8x4", ("conv", "sep"), [()]),
    ("bilateral=radius=1", "u8x4", ("bilateral",), [()]),
    ("sobel", "u8", ("sobel",), [(), ("--padding", "0,0")]),
])
def test_every_path_of_published_kernels(bench, tmp_path, chain, pixels, belongs, ways):
    """They are right; and if a path's results are wrong, this is noticed: so each is taken and
    compared, the vectors for padded images too."""
    paths = {path: kernels for path, kernels in classic_paths().items() if path.startswith(belongs)}
    sources, cache = tmp_path / "kernels", tmp_path / "cache"
    shutil.copytree(REPOSITORY / "kernels", sources)
    originals = {file: file.read_text() for file in (sources / "classic").glob("*.cl")}

    def rows(wrong, kernels, *way):
        marks = "".join(f"#define PATH_{path}(v) " + ("((v) - (v))\n" if path in wrong else "(v)\n")
                        for path in paths)
        for file, text in originals.items():
            file.write_text(f"#undef PATH\n#define PATH(name, v) PATH_##name(v)\n{marks}{text}")
        device = json.loads(bench("--kernel-dir", sources, "--filter", chain, "--pixels", pixels,
                                  "--variant", ",".join(sorted(kernels)), "--json", *way, "--cache-dir",
                                  cache, status=None if wrong else 0,
                                  POCL_EXTRA_BUILD_FLAGS="-cl-opt-disable")[0])  # compiles in half the time
        return {row["variant"]: row["verified"] for row in device["results"]}

    kernels = set.union(*paths.values())
    for way in ways:
        assert rows((), kernels, *way) == dict.fromkeys(kernels, True)
    for wrong in in_rounds(paths):
        kernels = set.union(*(paths[path] for path in wrong))
        noticed = set()
        for way in ways:
            noticed |= {name for name, right in rows(wrong, kernels, *way).items() if not right}
        assert noticed == kernels, wrong


def test_jpeg(bench, tmp_path):
    """A row for each kernel of either direction, whose results are right; if one is wrong, so are the
    rows of its direction."""
    sources = tmp_path / "kernels"

    def rows(status, *options):
        text = bench("--filter", "jpeg", "--json", *options, status=status)[0]
        return {row["variant"]: row for row in json.loads(text)["results"]}

    for pixels, samples in (("u8", 60000), ("u8x3", 180000)):
        right = rows(0, "--pixels", pixels)
        assert len(right) == 22 and all(row["verified"] for row in right.values())
        assert right["jpeg decode"]["verified_samples"] == right["idct"]["verified_samples"] == samples
        assert 0 < right["code"]["median_seconds"] < right["jpeg encode"]["median_seconds"] < 60
    assert set(rows(0, "--variant", "idct,jpeg encode")) == {"idct", "jpeg encode"}
    assert "no such variant" in bench("--variant", "idcts", status=2)[1]
    for name, before, after, form in (("idct", "+ 128, 0", "+ 129, 0", "scan to pixels"),
                                      ("fdct", "+ half_step, r", "+ 2 * half_step, r", "pixels to scan")):
        shutil.copytree(REPOSITORY / "kernels", sources, dirs_exist_ok=True)
        kernel = sources / "jpeg" / f"{name}.cl"
        assert kernel.read_text().count(before) == 1
        kernel.write_text(kernel.read_text().replace(before, after))
        wrong = {row["form"] for row in rows(1, "--kernel-dir", sources).values() if not row["verified"]}
        assert form in wrong and (form == "scan to pixels" or len(wrong) == 1)


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


def test_refused_together(bench, tmp_path):
    error = bench("--source-roi", "0,0,10,10", "--target-roi", "0,191,10,10", status=2)[1]
    assert "--target-roi '0,191,10,10'" in error and "Y + HEIGHT up to 200" in error
    error = bench("--filter", "sobel", "-o", tmp_path / "out.abacus", status=2)[1]
    assert "out.abacus" in error and "expected the name of a file" in error


def test_no_device(bench):
    assert "no such OpenCL device" in bench("--device", "abacus", status=1)[1]


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
                ("--balancing", "leastconn", "--weights", "jobs")):
        few = simulate("--load", 0.3, *options, *way)
        assert few["conserved"] and few["requests_answered"] == few["requests"] > 1000
        assert few["goodput"] == pytest.approx(few["offered"], rel=0.03)
        many = simulate("--load", 3, *options, *way)
        assert many["conserved"] and many["requests_refused"] > 0 and many["retries"] > 0
        assert many["requests_answered"] + many["requests_refused"] == many["requests"]
        assert 0.8 * many["capacity"] < many["answered"] < 1.1 * many["capacity"]


def test_simulated_choices():
    """The same seed gives the same figures. Two choices avoid a slow node, to which random ones go as often as
    to others."""
    options = "--load", 0.7, "--slow", 4, "--seconds", 40
    random, again = simulate(*options), simulate(*options)
    assert random == again != {**simulate(*options, "--seed", 2), "seed": 1}
    assert simulate(*options, "--balancing", "two-choices")["p99_ms"] < 0.7 * random["p99_ms"]
    for wrong in (("--load", "0"), ("--nodes", "1.5"), ("--balancing", "best"), ("--loud", "1"), ("--load",)):
        assert wrong[0] in run(BUILD / "bench_simulate", *wrong, status=2)[1]


def test_figure_of_nodes(tmp_path):
    """A line for each way that was simulated; the figure can be drawn from the numbers alone."""
    run(sys.executable, REPOSITORY / "tests/bench/scale.py", "--share", "0.001", "--output", tmp_path / "a.svg",
        "--json", tmp_path / "runs.json", CONVOLVED_BUILD=str(BUILD))
    run(sys.executable, REPOSITORY / "tests/bench/scale.py", "--draw", tmp_path / "runs.json", "--output",
        tmp_path / "b.svg")
    figure = (tmp_path / "a.svg").read_text()
    assert figure == (tmp_path / "b.svg").read_text()
    lines = [path for path in ElementTree.fromstring(figure).iter("{http://www.w3.org/2000/svg}path")
             if path.get("class", "").startswith("line ") and "L" in path.get("d")]
    assert len(lines) == 2 * (1 + 2 * 5 + 4) + 2 * (2 * 5 + 4)


def test_engine(cache, tmp_path):
    text = run(BUILD / "bench_engine", "-s", 1, "-n", 2, "-i", "64x64x1:u8", "-f", "box=size=3", "--",
               "--cache-dir", cache, "--state-dir", tmp_path)[0]
    assert re.search(rf"^1 devices, box=size=3, 64x64x1:u8, 2 streams: {NUMBER} images/s", text, re.M)


def test_engine_with_jpegs(cache, tmp_path):
    lines = run(BUILD / "bench_engine", "-s", 1, "-n", 2, "-i", "64x48x3:u8", "-c", 1, "-b", 2600, "-j",
                REPOSITORY / "tests/photograph.jpg", "--", "--jpeg-on-any", "yes", "--cache-dir", cache,
                "--state-dir", tmp_path)[0].splitlines()
    size, = re.fullmatch(r"4 JPEGs of 64x48, 4:2:0, quality 85, (\d+) bytes", lines[0]).groups()
    assert 2500 < int(size) < 2700
    assert re.fullmatch(rf"libjpeg-turbo, 1 processes: {NUMBER} images/s", lines[1])
    assert re.match(rf"1 devices, gaussian=size=5, 64x48x3:u8, 2 streams: {NUMBER} images/s", lines[-1])


def test_traffic(home):
    case, = json.loads(python(home, "traffic.py", "small", "--seconds", "1", "--rounds", "1", "--json"))
    assert case["body"] == 1024 and len(case["rows"]) == 3
    for row in case["rows"].values():
        assert row["received_per_second"] > 1024 * row["per_second"] > 0
    error = run(BUILD / "bench_http", "127.0.0.1:1", "/", status=1)[1]
    assert "cannot connect" in error
    assert "expected write or mapping" in run(BUILD / "bench_http", "--bare", "x", status=1)[1]


def test_load(home):
    text = python(home, "load.py", "--seconds", "0.3", "--rounds", "1", "--side", "64")
    for name in ("closed", "0.5 x", "1 x", "3 x"):
        assert re.search(rf"^{name} +{NUMBER} +{NUMBER}/s", text, re.M), text


def test_cluster(home):
    """The goodput beside the sum of the nodes; every request has been answered."""
    text = python(home, "cluster.py", "--bench", "2", "--seconds", "0.3", "--rounds", "1", "--side", "64")
    assert re.search(rf"answers by status: {{200: \d+}}\n(node [ab] +{NUMBER}/s\n){{2}}sum of the nodes +{NUMBER}/s\n"
                     rf"through HAProxy +{NUMBER}/s, {NUMBER}% of it", text), text


def test_loads(home):
    """With few slow clients. Whether they are noticed is not for a busy machine to say."""
    text = python(home, "loads.py", "--share", "0.02", "--ramp", "1", "--seconds", "0.4", "--one", status=None)
    for name in ("nothing", "heads", "readers", "idle", "handshakes", "bodies"):
        assert re.search(rf"^{name} .*probes +[1-9]\d*, not answered +0, ms p50 +[\d.]+ p99", text, re.M), text


def test_service(home):
    figures = json.loads(python(home, "service.py", "--side", "256", "--rounds", "1", "--seconds", "1",
                                "--json"))
    assert figures["large"]["sigma 10"]["service_seconds"] > 0
    assert figures["small"]["requests_per_second"] > 0
    assert 0 < figures["first_answer"]["warm_seconds"] and 0 < figures["first_answer"]["empty_seconds"]
    assert figures["while_compiling"]["to_warm"] > 0
    assert 0 < figures["recovery"]["killed_seconds"] and 0 < figures["recovery"]["stopped_seconds"]
    assert figures["time_left_to_taken"] >= 0
    assert any(name.startswith("convolved-codec") for name in figures["idle_pss_bytes"])


def test_thumbnail(home):
    text = python(home, "thumbnail.py", "64", CASES="tall", COUNT="10")
    assert re.search(r"^64x64, alone: p50 [\d.]+ ms", text, re.M)
    assert re.search(r"^64x64, beside tall: p50 [\d.]+ ms", text, re.M)
