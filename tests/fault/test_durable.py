"""Durable jobs: what a 202 has promised is kept, wherever the service is killed or power is lost
(disk.c)."""
import collections
import concurrent.futures
import contextlib
import itertools
import os
import re
import shlex
import shutil
import signal
import sqlite3
import threading
import time

import pytest

from durable import DATABASE, Told, attack, crash, files, keeps, leaves_nothing, scenario
from jobs import HEAVY, LONG, MEDIUM, submit
from pixels import random_pixels
from service import REPOSITORY, SMALL, Process, poll, sanitized


# Killed at every point ----------------------------------------------------------------------------

@pytest.mark.parametrize("chosen", [slice(None, None, 30), *(
    pytest.param(slice(i, None, 8), marks=pytest.mark.slow) for i in range(4))], ids=str)
def test_killed(launch, tmp_path, right, chosen):
    """The points between these are in test_durable_again.py, which another process has."""
    attack(launch, tmp_path, right, scenario, chosen)


# A job that crashes the service -------------------------------------------------------------------

# Sanitizers would report more signals.
CRASHES = [signal.SIGTRAP, signal.SIGABRT, signal.SIGABRT if sanitized() else signal.SIGSEGV]


def running(service, jobs):
    return [job for job in jobs if service.get(job).json()["state"] == "running"]


def end_at(service, job, number):
    """The service ends by this signal as soon as the job runs, and is started again."""
    poll(lambda: running(service, [job]), what="the job", interval=0.01)
    crash(service, number)


def test_crashes(disk, right):
    """A job that crashes the service each time fails in the end; no other does, nor by other ends."""
    with disk.service("--codecs", "3", state=disk.state) as service:
        told = Told(service, right)
        bad, beside = both = [submit(service, LONG, HEAVY, variant="reference") for _ in range(2)]
        for kind in "blurred", "no image":
            told.submit(kind)
        for _ in range(5):
            end_at(service, bad, signal.SIGKILL)
        poll(lambda: running(service, both) == both, what="both jobs", interval=0.01)
        for number in CRASHES[0], CRASHES[1], signal.SIGKILL, CRASHES[2]:
            end_at(service, bad, number)
            for _ in range(20):
                assert len(running(service, both)) < 2
        answer = service.get(f"{bad}/result?wait=300")
        answer.refused(500, "internal")
        assert "crashed 3 times" in answer.json()["detail"]
        poll(lambda: running(service, [beside]), what="the other one")
        assert service.request("DELETE", beside).status == 204
        keeps(service, told.jobs, right)
        crash(service)
        leaves_nothing(service, disk.state)


def test_removed_by_hand(disk, right):
    """As docs/operations.md says."""
    with disk.service(state=disk.state) as service:
        told = Told(service, right)
        plug, bad = submit(service, MEDIUM, HEAVY), submit(service, MEDIUM, HEAVY)
        told.submit("blurred")
        crash(service, again=False)
        command, = re.findall(r"^sqlite3 .*DELETE.*$", (REPOSITORY / "docs/operations.md").read_text(), re.M)
        _, path, statement = shlex.split(command)
        with sqlite3.connect(path.replace("/var/lib/convolved", str(disk.state))) as database:
            database.execute(re.sub("'.*'", f"'{bad.rpartition('/')[2]}'", statement))
        database.close()
        service.start()
        service.get(bad).refused(404, "not-found")
        assert service.get(f"{plug}/result?wait=300").status == 200
        keeps(service, told.jobs, right)
        leaves_nothing(service, disk.state)


# Under load ---------------------------------------------------------------------------------------

def ask(told, end):
    """A client that has some jobs at a time, until the event."""
    mine, kinds = collections.deque(), itertools.cycle(["blurred", "blurred", "no image", "long"])
    while not end.is_set():
        mine.append(told.submit(next(kinds)))
        if len(mine) > 2:
            told.fetch(mine[-2])
        if len(mine) > 4:
            told.delete(mine.popleft())
        time.sleep(0.02)


@contextlib.contextmanager
def load(told, count=3):
    end = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        clients = [pool.submit(ask, told, end) for _ in range(count)]
        try:
            yield lambda: [client.result() for client in clients if client.done()]
        finally:
            end.set()
    for client in clients:
        client.result()


def recent(told):
    """All jobs that are there, and some that are gone."""
    jobs = told.jobs.copy()
    for path in [path for path, (_, fate) in jobs.items() if fate == "gone"][:-20]:
        del jobs[path]
    return jobs


@pytest.mark.slow
def test_copies(disk, right, tmp_path):
    """A copy at any moment is as good as the directory of a service that was killed."""
    with disk.service(state=disk.state) as service:
        front, told = Process(service.process.pid), Told(service, right)
        with load(told) as judge:
            poll(lambda: len(told.jobs) > 20, what="jobs")
            for number in range(int(os.environ.get("CONVOLVED_COPIES", "30"))):
                time.sleep(number % 10 * 0.037)
                with front.stopped():
                    poll(lambda: all(Process(f"{front.pid}/task/{task}").stat[0] == "T"
                                     for task in os.listdir(f"/proc/{front.pid}/task")), interval=0.001)
                    jobs = recent(told)
                    copied = tmp_path / str(number)
                    shutil.copytree(disk.state, copied)
                with disk.service(state=copied) as other:
                    keeps(other, jobs, right)
                    leaves_nothing(other, copied)
                judge()
        leaves_nothing(service, disk.state)


# Over a restart -----------------------------------------------------------------------------------

def ended(service, jobs):
    return [service.get(f"{job}/result?wait=300").status == 200 for job in jobs]


@pytest.mark.parametrize("limit, pixels", [
    (("--result-count", "4"), SMALL), (("--result-size", "170K"), random_pixels(4, 200, 200, 1, "u8"))])
def test_bounds_go_on(disk, limit, pixels):
    """Results of before a restart count, and the oldest go first; also if fewer are allowed now."""
    with disk.service(*limit, state=disk.state) as service:
        jobs = []
        for _ in range(3):
            jobs.append(submit(service, pixels))
            assert ended(service, jobs[-1:]) == [True]
        crash(service)
        assert ended(service, jobs) == [True] * 3
        for _ in range(3):
            jobs.append(submit(service, pixels))
            assert ended(service, jobs[-1:]) == [True]
        assert ended(service, jobs) == [False] * 2 + [True] * 4
    with disk.service(limit[0], {"4": "2", "170K": "90K"}[limit[1]], state=disk.state) as service:
        jobs.append(submit(service, pixels))
        assert ended(service, jobs[-1:]) == [True]
        assert ended(service, jobs) == [False] * 5 + [True] * 2
        leaves_nothing(service, disk.state)


def test_oldest_end_goes_first(disk):
    """The order of ends is kept, which is not that in which the jobs came."""
    with disk.service("--result-count", "2", state=disk.state) as service:
        first, second = submit(service, MEDIUM, HEAVY), submit(service)
        assert service.request("DELETE", second).status == 204  # it has ended
        assert ended(service, [first]) == [True]
        crash(service)
        assert ended(service, [submit(service)]) == [True]
        assert [service.get(job).status for job in (first, second)] == [200, 404]


def test_time_goes_on(disk):
    """Also while nobody is there."""
    with disk.service("--result-time", "8", state=disk.state) as service:
        job = submit(service)
        assert ended(service, [job]) == [True]
        kept = service.get(job).json()["kept_seconds"]
        time.sleep(2)
        crash(service, again=False)
        time.sleep(2)
        service.start()
        assert service.get(job).json().get("kept_seconds", 0) <= kept - 4
        poll(lambda: service.get(job).status == 404, what="the end of the time")
        poll(lambda: files(disk.state).keys() <= DATABASE, what="the end of its file")


def test_order_goes_on(disk):
    """Jobs that waited run in their order, and clients take turns."""
    pixels = random_pixels(5, 150, 150, 3, "u8")
    with disk.service(state=disk.state) as service:
        other = service.neighbour()
        submit(service, MEDIUM, HEAVY)
        mine = [submit(service, pixels, HEAVY) for _ in range(4)]
        theirs = [submit(other, pixels, HEAVY) for _ in range(2)]
        crash(service)
        poll(lambda: all(service.get(job).json()["state"] == "done" for job in mine + theirs), what="all jobs")
        seen = [f"/v1/jobs/{name}" for name in re.findall(r"request (\w+): job \d+ is done ", service.said)]
        assert [job for job in seen if job in mine] == mine
        assert seen.index(theirs[1]) < seen.index(mine[3])
