"""Durable jobs on disks that are full, break, hang, are slow or become read-only (disk.c), and on unusable
databases."""
import concurrent.futures
import contextlib
import hashlib
import os
import sqlite3
import subprocess
import sys
import time

import pytest

from durable import KINDS, Told, check, crash, files, keeps, leaves_nothing
from jobs import HEAVY, MEDIUM, PREFER, jobs_of, submit
from service import poll


FULL, BROKEN = (507, "storage-full"), (503, "storage-unusable")


def refuses(disk, answer, problem):
    """Clients are told the reason, not the place."""
    answer.refused(*problem)
    assert str(disk.state) not in answer.body.decode()


@pytest.mark.parametrize("fault, problem", [
    ("full 1 .body", FULL), ("full 2 jobs.db", FULL), ("eio 1", BROKEN), ("ro 1", BROKEN), *(
        pytest.param(*more, marks=pytest.mark.slow) for more in [
            ("full 1", FULL), ("full 2", FULL), ("full 1 jobs.db", FULL), ("eio 1 .body", BROKEN),
            ("eio 1 jobs.db", BROKEN)])])
def test_no_promise(disk, right, fault, problem):
    """A job that cannot be kept is not promised, and nothing of it is left. Afterwards all is as before."""
    with disk.service() as service:
        told = Told(service, right)
        told.fetch(told.submit("blurred"))
        before = files(disk.state).keys()
        disk.fail(fault)
        for _ in range(3):
            refuses(disk, posted(service), problem)
        service.says(f"jobs cannot be kept in {disk.state}: ")
        assert service.works() and jobs_of(service) == list(told.jobs)
        assert files(disk.state).keys() == before
        disk.heal()
        told.fetch(told.submit("blurred"))
        service.says(f"jobs can be kept in {disk.state} again")
        keeps(service, told.jobs, right)
        crash(service)
        keeps(service, told.jobs, right)
        leaves_nothing(service, disk.state)


@pytest.mark.parametrize("fault, problem", [
    ("full 1", FULL), pytest.param("eio 1", BROKEN, marks=pytest.mark.slow)])
def test_no_room_for_a_result(disk, right, fault, problem):
    """The job fails; others go on."""
    with disk.service() as service:
        told = Told(service, right)
        job = submit(service, MEDIUM, HEAVY)
        disk.fail(f"{fault} {job.rpartition('/')[2]}.result")
        other = told.submit("blurred")
        assert service.works()
        assert service.get(f"{job}?wait=300").json()["state"] == "failed"
        failed = service.get(f"{job}/result")
        refuses(disk, failed, problem)
        told.fetch(other)
        assert f"{job.rpartition('/')[2]}.result" not in files(disk.state)
        crash(service)
        assert service.get(f"{job}/result").body == failed.body
        keeps(service, told.jobs, right)
        leaves_nothing(service, disk.state)


@contextlib.contextmanager
def held_together(disk, service):
    """All that is to be written meanwhile comes to the disk together, at the end."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        disk.fail("slow 1000000")
        first = pool.submit(posted, service)
        poll(lambda: disk.calls[-1].startswith("f"), what="the sync")
        yield
        first.result()


@pytest.mark.parametrize("fault, refused, count", [
    ("eio 1 {}.result", BROKEN, 7), ("eio 1 jobs.db", None, 2), *(
        pytest.param(*more, marks=pytest.mark.slow) for more in [
            ("eio 1 {}.result", BROKEN, 2), ("ro 1", None, 2), ("full 1 {}.result", FULL, 2), ("full 1 {}.result", FULL, 7), ("eio 1 jobs$", None, 2),
            ("full 1 jobs.db", None, 2), ("eio 1 jobs.db", None, 7)])])
def test_ends_together(disk, right, fault, refused, count):
    """A file that fails is one job's; what fails for all is tried again, and fails no job."""
    with disk.service() as service:
        told, plug = Told(service, right), submit(service, MEDIUM, HEAVY)
        jobs = [told.submit("blurred") for _ in range(count)]
        with held_together(disk, service):
            poll(lambda: service.total("convolved_stored_changes") == 1 + 1 + count, what="the ends")
            disk.fail(fault.format(jobs[1].rpartition("/")[2]))
        if refused:
            service.get(f"{jobs[1]}/result?wait=300").refused(*refused)
            del told.jobs[jobs[1]]
        else:
            service.says("its end cannot be kept yet")
            seen = len(disk.calls)
            poll(lambda: len(disk.calls) > seen + 3, what="further tries")
            assert not service.total("convolved_jobs_failed_total")
        disk.heal()
        for path in told.jobs:
            told.fetch(path)
        crash(service)
        keeps(service, told.jobs, right)
        assert service.get(plug).json()["state"] == "done"
        leaves_nothing(service, disk.state)


def test_slow(disk, right):
    """Clients wait for a slow disk together; others do not notice."""
    with disk.service() as service, concurrent.futures.ThreadPoolExecutor(19) as pool:
        told = Told(service, right)
        with held_together(disk, service):
            accepted = [pool.submit(told.submit, "blurred") for _ in range(19)]
            poll(lambda: service.total("convolved_stored_changes") == 20, what="all changes")
            assert all(service.works() for _ in range(20))
            assert not any(each.done() for each in accepted)
            disk.fail("slow 1000000 .result")
        for each in accepted:
            each.result()
        disk.heal()
        assert 1 <= sum(call.startswith("sync") for call in disk.calls) < 5
        keeps(service, told.jobs, right)
        leaves_nothing(service, disk.state)


def posted(service, key=None):
    return service.post(*KINDS["blurred"], headers={**PREFER, **({"Idempotency-Key": key} if key else {})})


def test_no_promise_by_key(disk, right):
    """All who ask with a key wait for the same commit, and hear of its failure. A key is its client's,
    and stays so over a restart."""
    with disk.service() as service, concurrent.futures.ThreadPoolExecutor(8) as pool:
        disk.fail("slow 1000 jobs.db")
        began = time.monotonic()
        job, = {answer.headers["Location"] for answer in pool.map(posted, [service] * 8, ["a key"] * 8)}
        assert time.monotonic() - began >= 1
        disk.fail("full 1")
        for answer in pool.map(posted, [service] * 8, ["another"] * 8):
            answer.refused(*FULL)
        assert posted(service, "a key").headers["Location"] == job
        disk.heal()
        assert posted(service, "another").status == 202
        other = service.neighbour()
        theirs = posted(other, "a key").headers["Location"]
        crash(service)
        assert posted(service, "a key").headers["Location"] == job
        assert posted(other, "a key").headers["Location"] == theirs != job
        assert other.get(f"{theirs}/result?wait=300").status == 200
        assert other.request("DELETE", theirs).status == 204
        leaves_nothing(service, disk.state)


def test_deleted_before_its_end(disk, right):
    """A job ends on a full disk. Until there is room its clients wait no longer than they want to; then it
    is deleted, which does not take long."""
    with disk.service() as service:
        job = submit(service, MEDIUM, HEAVY)
        disk.fail("full 1")
        service.says("its end cannot be kept yet")
        began = time.monotonic()
        assert service.get(f"{job}?wait=1").json()["state"] == "running"
        assert 1 <= time.monotonic() - began < 20
        disk.heal()
        began = time.monotonic()
        assert service.request("DELETE", job).status == 204
        assert time.monotonic() - began < 20
        leaves_nothing(service, disk.state)


@pytest.mark.parametrize("crashes", [True, False])
def test_not_deleted(disk, right, crashes):
    """Whatever is said of a job that could not be deleted is true after a restart, too. It is deleted
    once that is possible again."""
    with disk.service() as service:
        told = Told(service, right)
        for kind in "blurred", "no image":
            told.fetch(told.submit(kind))
        disk.fail("full 1")
        for path, (kind, _) in told.jobs.items():
            refuses(disk, service.request("DELETE", path), FULL)
            gone = service.get(path).status == 404
            told.jobs[path] = kind, "gone" if gone else "perhaps"
        disk.heal()
        if crashes:
            crash(service)
            keeps(service, told.jobs, right)
        leaves_nothing(service, disk.state)


def test_not_deleted_for_strangers(disk, tmp_path):
    """Only its owner hears of a job that could not be deleted."""
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"[{name}]\ntoken-sha256={hashlib.sha256(name.encode()).hexdigest()}\n"
                              for name in ("alice", "bob")))
    tokens.chmod(0o600)
    with disk.service("--tokens", str(tokens)) as service:
        service.headers = {"Authorization": "Bearer alice"}
        job = submit(service)
        assert service.get(f"{job}?wait=300").json()["state"] == "done"
        disk.fail("full 1")
        service.request("DELETE", job).refused(*FULL)
        service.get(job).refused(*FULL)
        service.headers = {"Authorization": "Bearer bob"}
        for path in (job, f"{job}/result", f"{job}/events"):
            service.get(path).refused(404, "not-found")
        service.request("DELETE", job).refused(404, "not-found")
        disk.heal()


def test_hangs(disk, right):
    """A disk that hangs holds up neither others nor the end of the service."""
    with disk.service("--drain-timeout", "1") as service, concurrent.futures.ThreadPoolExecutor(2) as pool:
        told = Told(service, right)
        told.fetch(told.submit("blurred"))
        disk.fail("slow 100000")
        hanging = pool.submit(posted, service)
        poll(lambda: disk.calls[-1].startswith("f"), what="the sync")
        assert service.works()
        check(service.get(f"{[*told.jobs][0]}/result"), right["blurred"])
        assert service.stop() == 0
        hanging.result().refused(503, "draining")
    disk.heal()
    with disk.service(state=disk.state) as service:
        keeps(service, told.jobs, right)
        leaves_nothing(service, disk.state)


# Unusable databases -------------------------------------------------------------------------------

def overwrite(path, at, size):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(os.urandom(size))


def run_sql(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(statement)


DAMAGES = {
    "header": lambda path: overwrite(path, 0, 100),
    "schema": lambda path: overwrite(path, 100, 3000),
    "rows": lambda path: overwrite(path, 4096, path.stat().st_size - 4096),
    "newer": lambda path: run_sql(path, "PRAGMA user_version = 1000"),
    "another": lambda path: run_sql(path, "ALTER TABLE job DROP COLUMN head"),
    "a text": lambda path: path.write_text("This is a letter.\n" * 1000),
    "half": lambda path: os.truncate(path, path.stat().st_size // 2)}


@pytest.mark.parametrize("damage", [
    "rows", "newer", *(pytest.param(more, marks=pytest.mark.slow) for more in (
        "header", "schema", "another", "a text", "half"))])
def test_damaged(disk, right, damage):
    """The service does without asynchronous jobs, and leaves all as it is for whoever mends it."""
    database = disk.state / "jobs/jobs.db"
    with disk.service(state=disk.state) as service:
        told = Told(service, right)
        for _ in range(20):
            told.fetch(told.submit("blurred"))
    run_sql(database, "PRAGMA wal_checkpoint")
    DAMAGES[damage](database)
    unusable(disk, told)


HOLD = """import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA locking_mode = EXCLUSIVE")
database.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()"""


def test_held(disk, right):
    """By another service, or by another program."""
    with disk.service(state=disk.state) as service:
        told = Told(service, right)
        told.fetch(told.submit("blurred"))
        unusable(disk, told)
        keeps(service, told.jobs, right)
    with subprocess.Popen([sys.executable, "-c", HOLD, disk.state / "jobs/jobs.db"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == "held\n"
        unusable(disk, told)
        holder.stdin.close()


@pytest.mark.parametrize("fault", [
    "full 1", "ro 1", *(pytest.param(more, marks=pytest.mark.slow) for more in ("full 9", "eio 1", "eio 4"))])
def test_fails_at_the_start(disk, right, fault):
    disk.fail(fault)
    with disk.service() as service:
        posted(service).refused(*BROKEN)
        assert service.works()
    disk.heal()
    with disk.service() as service:
        told = Told(service, right)
        told.fetch(told.submit("blurred"))
        leaves_nothing(service, disk.state)


def unusable(disk, told):
    """Jobs may be there again later, so none is said to be gone."""
    before = files(disk.state)
    with disk.service(state=disk.state) as service:
        assert service.total("convolved_archive_unusable") == 1
        assert posted(service).headers["Retry-After"]
        for answer in (posted(service), service.get("/v1/jobs"), service.get([*told.jobs][0]),
                       service.request("DELETE", [*told.jobs][0])):
            refuses(disk, answer, BROKEN)
        service.says(f"asynchronous jobs are refused: {disk.state}/jobs/jobs.db cannot be used: ")
        assert service.works()
    after = files(disk.state)
    assert after == before or after == {**before, "jobs.db-wal": b""}
