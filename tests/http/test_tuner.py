"""The tuner: in idle time it measures the kernels for earlier requests, and remembers."""
import contextlib
import json
import os
import re
import subprocess

import pytest

import oracle
from pixels import random_pixels
from service import BUILD, QUICK_COMPILER, REPOSITORY, children, poll

PIXELS = random_pixels(1, 400, 300, 3, "u8")
FILTERS = [("gaussian", {"size": 3})]
WORK = "separable 3x3 u8 x3 mean"
STATE = "tuning/0-0.json"


def choices(service):
    return {c["work"]: c for c in service.get("/v1/kernels").json()["choices"]}


def ask(service, filters=FILTERS):
    answer = service.filter(PIXELS, filters)
    oracle.check(answer.pixels, oracle.filtered(PIXELS, filters))
    return answer


def chosen(service):
    ask(service)
    return service.compiled(lambda: choices(service).get(WORK), what="a choice")


@pytest.fixture(scope="module")
def start(launch, general_cache):
    def started(*options, state=None):
        service = launch("--cache-dir", str(general_cache), "--codecs", "1", *options,
                         environment=QUICK_COMPILER)
        if state is not None:
            (service.state / STATE).parent.mkdir()
            (service.state / STATE).write_text(state)
        return service
    return started


@pytest.fixture(scope="module")
def tuned(start):
    """(the choice as the service shows it, the text of its file); tried programs are let go of"""
    with start("--programs", "2") as service:
        choice = chosen(service)
        # The other variants may have taken its program's place.
        service.compiled(lambda: ask(service).timing.get(choice["variant"]), what="the chosen kernel")
        general = len(oracle.TYPES) * len(list((REPOSITORY / "kernels/general").iterdir()))
        service.compiled(lambda: service.total("convolved_opencl_objects", kind="program")
                         <= general + 2, what="others to be let go of")
        return choice, (service.state / STATE).read_text()


def test_choice(tuned):
    """It names the quickest of the measured kernels, general ones among them."""
    choice, text = tuned
    candidates = choice["candidates"]
    assert choice["device"] == "cpu0" and len(candidates) > 5
    assert {"separable", "separable_packed"} <= {c["variant"] for c in candidates}
    times = [c["sample_seconds"] for c in candidates]
    measured = [t for t in times if t is not None]
    assert all(t > 0 for t in measured)
    assert times[choice["chosen"]] == min(measured)
    assert choice["variant"] == candidates[choice["chosen"]]["variant"]
    state = json.loads(text)
    assert state["device"] and state["driver"] and len(state["kernels"]) == 64
    assert WORK in [c["work"] for c in state["choices"]]


def test_general_alone(start):
    """Without special kernels the choice is among general ones, and none for a service that has them. Work that
    only a special kernel does as one step has none."""
    with start("--programs", "0") as service:
        ask(service, [("unsharp", {"sigma": 1.6})])
        general = chosen(service)
        assert all(choice["candidates"] for choice in choices(service).values()) and not service.restarts()
        assert {"separable", "matrix"} == {candidate["variant"] for candidate in general["candidates"]}
        state = (service.state / STATE).read_text()
    with start(state=state) as service:
        ask(service)
        again = service.compiled(lambda: (found := choices(service).get(WORK)) and found != general and found, what="another")
        assert "separable_packed" in {candidate["variant"] for candidate in again["candidates"]}


def spoilt(text, where, changes):
    """Returns the state with changes: of itself, of every choice or WORK's, or of what each has chosen."""
    state = json.loads(text)
    choices = state["choices"]
    for part in {"state": [state], "choices": choices,
                 "work": [choice for choice in choices if choice["work"] == WORK],
                 "chosen": [choice["candidates"][choice["chosen"]] for choice in choices]}[where]:
        part.update(changes)
    return json.dumps(state)


@pytest.mark.parametrize("variant", ["separable", "matrix", "separable_packed"])
def test_remembered(tuned, start, variant):
    """After a restart the choice is there at once, and nothing is measured again; whichever it was, images soon use it."""
    choice = dict(tuned[0], variant=variant)
    choice["chosen"] = [candidate["variant"] for candidate in choice["candidates"]].index(variant)
    state = spoilt(tuned[1], "work", {"chosen": choice["chosen"]})
    with start(state=state) as service:
        assert poll(lambda: choices(service).get(WORK), 60, "the remembered choice") == choice
        service.compiled(lambda: not service.total("convolved_programs_pending"), what="the general programs")
        service.compiled(lambda: choice["variant"] in ask(service).timing, what="the chosen kernel")


@pytest.mark.parametrize("where, changes", [
    ("state", {"driver": "another 1.0"}), ("choices", {"chosen": 99}), ("chosen", {"ns": 10**14}), ("cut", None),
    *(pytest.param(*row, marks=pytest.mark.slow) for row in (
        ("state", {"device": "another"}), ("state", {"kernels": "0" * 64}),
        ("state", {"choices": 7}), ("state", {"choices": [1, None, "x", {}]}),
        ("choices", {"chosen": -1}), ("choices", {"candidates": [{}] * 1000}),
        ("choices", {"candidates": []}), ("chosen", {"kernel": "no_such"}),
        ("chosen", {"shape": [0, 0, 0, 0]}),
        ("chosen", {"shape": [1 << 20, 1, 1, 1]}), ("", None), ("\0\1\2 nothing", None),
        ("[1, 2, 3]", None)))])
def test_spoilt_state(tuned, start, where, changes):
    """Measured again, and written anew; never fatal."""
    choice, text = tuned
    state = spoilt(text, where, changes) if changes else where
    if where == "cut":
        state = text[:len(text) // 2]
    with start(state=state) as service:
        assert WORK not in choices(service)
        again = chosen(service)
        before, now = ({candidate["variant"] for candidate in one["candidates"]}
                       for one in (choice, again))
        assert before == now
        written = json.loads((service.state / STATE).read_text())
        assert written["kernels"] == json.loads(text)["kernels"]
        assert service.restarts() == 0, service.tail()


@pytest.mark.parametrize("changes", [
    {"kernel": "gradient"},            # there is such a kernel, but it does something else
    {"kernel": "separable_mma"},       # not on this device
    {"kernel": "extend"},              # no filter at all
    {"shape": [3, 7, 1, 1]},           # in no table
    {"shape": [65535, 65535, 1, 1]},
])
def test_misleading_state(tuned, start, changes):
    """A choice that cannot be: answers stay right, by another kernel."""
    with start(state=spoilt(tuned[1], "chosen", changes)) as service:
        for _ in range(3):
            ask(service)
        assert service.restarts() == 0, service.tail()


def test_state_cannot_be_written(launch):
    """Said; with work that has few candidates, which are kept for other tests."""
    with launch("--codecs", "1", environment=QUICK_COMPILER) as service:
        (service.state / f"{STATE}.new").mkdir()
        ask(service, [("invert", {})])
        service.compiled(lambda: choices(service), what="a choice")
        service.says("cannot write")
        ask(service)


def scheduling(processes):
    """Yields the scheduling policies of those that have not ended."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            yield os.sched_getscheduler(process.pid)


TUNE = (BUILD / "convolved-device", "--tune")


@pytest.mark.slow
def test_at_once(tmp_path):
    """--tune prints its measurements and leaves them for the service; it compiles at full speed."""
    arguments = [*TUNE, "--filter", "sobel", "--cache-dir", tmp_path / "cache", "--state-dir", tmp_path]
    compilers = set()
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **QUICK_COMPILER}) as tuning:
        poll(lambda: compilers.update(scheduling(children(tuning.pid))) or tuning.poll() is not None, 600,
             "the end of tuning")
        printed = tuning.stdout.read()
    assert tuning.returncode == 0, printed
    assert compilers == {os.SCHED_OTHER}
    assert re.search(r"^\* gradient magnitude 3x3 u8 x3 .* us ", printed, re.M), printed
    state = json.loads((tmp_path / STATE).read_text())
    assert {c["work"] for c in state["choices"]} == {
        f"gradient magnitude 3x3 {kind} x{bands}" for kind in oracle.TYPES for bands in (1, 3, 4)}


@pytest.mark.slow
def test_kinds_of_one_size(general_cache, tmp_path):
    """Matrices of one size may have other kernels: each kind is measured, whichever came first."""
    large, small = "1e8 0 0;0 -1e8 0;0 0 2:scale=1", "1 2 3;4 5 6;7 8 0"
    subprocess.run([*TUNE, "--cache-dir", general_cache, "--state-dir", tmp_path,
                    "--filter", f"convolve=kernel={large}", "--filter", f"convolve=kernel={small}"],
                   check=True, capture_output=True, env={**os.environ, **QUICK_COMPILER})
    state = json.loads((tmp_path / STATE).read_text())
    kinds = [{k["kernel"] for k in c["candidates"]} for c in state["choices"]
             if c["work"] == "matrix 3x3 u8 x1"]
    assert kinds == [{"matrix_compensated"}, {"matrix", "matrix_wide"}]


def test_at_once_refused():
    """Before it opens the device, let alone compiles anything."""
    done = subprocess.run([*TUNE, "--filter", "gaussian", "--filter", "no-such"],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and "no-such" in done.stderr and not done.stdout
