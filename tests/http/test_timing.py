"""Server-Timing leaves nothing out: what an image waited for has an entry, too."""
import concurrent.futures

import pytest

import imagefiles
from fixtures import service_with
from jobs import begin
from pixels import random_pixels
from service import ONE_DEVICE, QUICK_COMPILER, poll

PNG = imagefiles.write_png(random_pixels(1, 400, 300, 3, "u8"))
alone = service_with(environment=ONE_DEVICE)


@pytest.mark.slow
def test_compilation(launch, tmp_path):
    """An image waits for a kernel that no cache has; or its deadline passes meanwhile."""
    with launch("--cache-dir", str(tmp_path), environment=QUICK_COMPILER) as service, concurrent.futures.ThreadPoolExecutor() as pool:
        asked = pool.submit(service.post, "/v1/filters/median?radius=1&variant=general", PNG)
        service.compiled(asked.done)  # a compiler that stands back on a busy machine may have begun with it
        answer = asked.result()
        assert answer.status == 200, answer
        timing = answer.timing
        assert answer.accounted >= 0.9, timing
        assert timing["compile"] > timing["total"] / 2 and timing["wait"] < timing["total"] / 2, timing
        metrics = service.metrics()
        count, seconds = (metrics.total(f"convolved_stage_duration_seconds_{what}", stage="compile")
                          for what in ("count", "sum"))
        assert count >= 1 and seconds >= timing["compile"] / 1000 * 0.99

        def late():
            target = "/v1/filters/bilateral?radius=3&variant=general&deadline_ms=300"
            answer = service.post(target, PNG)
            return answer.status == 504 and answer
        answer = poll(late, 60, "a deadline that passes")
        assert answer.accounted >= 0.9, answer.timing


def test_busy_device(alone):
    """There are more images than the device works on at a time: the others' tiles wait."""
    target = "/v1/filters/bilateral?radius=8&variant=general"
    assert alone.post(target, PNG).status == 200

    def longest():
        """Returns the largest part of an image's time for which it waited."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: alone.post(target, PNG), range(16)))
        assert {answer.status for answer in answers} == {200}
        timings = [answer.timing for answer in answers]
        assert min(answer.accounted for answer in answers) >= 0.9, timings
        assert not any("compile" in timing for timing in timings)
        return max(timing["wait"] / timing["total"] for timing in timings)
    poll(lambda: longest() > 0.2, what="a tile that waits")  # the images come one by one on a busy machine


@pytest.mark.parametrize("target", [
    "filters/box?verify=1", "filters/median?radius=2&variant=reference", "filters/canny?low=0.1&high=0.4",
    "filters/equalize", "chain?filters=equalize,canny=low=0.1:high=0.4,box"])
@pytest.mark.parametrize("asked", [
    lambda service, target: service.post(target, PNG),
    lambda service, target: service.get(f"{begin(service, target, PNG)}/result?wait=300")], ids=["now", "later"])
def test_nothing_is_left_out(alone, target, asked):
    """Second computations, and jobs of several runs: each run waits for a codec worker again."""
    answer = asked(alone, f"/v1/{target}")
    assert answer.status == 200, answer
    assert answer.accounted >= 0.9, answer.timing


def test_failed(alone):
    answer = alone.post("/v1/filters/box", PNG[:-99])
    assert answer.status == 422 and answer.accounted >= 0.9, answer.timing
