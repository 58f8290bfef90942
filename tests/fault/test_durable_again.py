"""Durable jobs of a service that is killed at any point of a crowd, of its recovery, of a checkpoint; and at
those points that test_durable.py leaves out."""
import concurrent.futures

import pytest

from durable import attack, crashing, keeps, scenario


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4, 8))
def test_killed(launch, tmp_path, right, first):
    attack(launch, tmp_path, right, scenario, slice(first, None, 8))


def crowd(told):
    """Many jobs at a time, which come to the disk together."""
    def one(kind):
        path = told.submit(kind)
        told.fetch(path)
        if kind == "blurred":
            told.delete(path)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(one, [*["blurred", "no image"] * 7, "blurred", "long"] * 2))


@pytest.mark.slow
def test_killed_in_a_crowd(launch, tmp_path, right):
    attack(launch, tmp_path, right, crowd, slice(None, None, 45))


@pytest.mark.slow
def test_killed_in_recovery(launch, tmp_path, right):
    """The next service is killed, too, while it starts and does what was open."""
    with crashing(launch, tmp_path, right) as (disk, told):
        scenario(told)
        for kind in "long", "no image":
            told.submit(kind)
    (disk.state / "jobs/0123456789abcdef.body").write_bytes(b"of no job")
    attack(launch, tmp_path, right, lambda told: keeps(told.service, told.jobs, right),
           slice(None), disk.state, told.jobs)


def more(told):
    """At least two pages of the log for each job, however many changes come to the disk together."""
    scenario(told)
    for _ in range(16):
        told.delete(told.submit("blurred"))


@pytest.mark.slow
def test_killed_in_a_checkpoint(launch, tmp_path, right):
    """The database's log has grown as far as it may, 1,000 pages, and goes into the database."""
    with crashing(launch, tmp_path, right) as (disk, told):
        told.fetch(told.submit("blurred"))
        log = disk.state / "jobs/jobs.db-wal"
        while log.stat().st_size < 970 * 4120:
            told.delete(told.submit("blurred"))
    jobs = dict([*told.jobs.items()][:10])
    calls = attack(launch, tmp_path, right, more, "pwrite64 /jobs/jobs.db", disk.state, jobs)
    assert calls.count("pwrite64 /jobs/jobs.db") > 1, calls
