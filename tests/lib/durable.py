"""Services with durable jobs, on disks that a test lets fail (fault/disk.c)."""
import contextlib
import os
import shutil
import signal
import sqlite3

from jobs import HEAVY, PREFER, forget_all
from pixels import random_pixels
from service import BUILD, ONE_DEVICE, SMALL, raw_kind, target_of

LIBRARY = BUILD / "fault_disk.so"
DATABASE = {"jobs.db", "jobs.db-wal"}
# None is refused because the machine is busy, or the service has stood still; no result goes for its age,
# however long a busy machine takes for all points of a test that begin with the same directory.
DURABLE = ("--durable", "yes", "--codecs", "1", "--result-count", "10000", "--client-share", "1",
           "--max-wait", "3600", "--result-time", "604800")


def request(pixels, filters):
    target = target_of(filters, raw=raw_kind(pixels), format="raw", variant="general")
    return target, pixels.tobytes()


# Jobs by what becomes of them: (target, body).
KINDS = {"blurred": request(SMALL, [("gaussian", {"sigma": 1.5})]),
         "no image": ("/v1/filters/box", b"this is no image"),
         "long": request(random_pixels(1, 120, 120, 3, "u8"), HEAVY)}


class Told:
    """All that the clients of a service know of their jobs: {path: (kind, fate)}. The fates: `there`;
    `ended`, for it was seen; `perhaps`, when it is being deleted; `gone`, when it was."""

    def __init__(self, service, right):
        self.service, self.right, self.jobs = service, right, {}

    def submit(self, kind):
        answer = self.service.post(*KINDS[kind], headers=PREFER)
        assert answer.status == 202, answer
        path = answer.headers["Location"]
        self.jobs[path] = kind, "there"
        return path

    def fetch(self, path):
        kind, _ = self.jobs[path]
        check(self.service.get(f"{path}/result?wait=300"), self.right[kind])
        self.jobs[path] = kind, "ended"

    def delete(self, path):
        kind, fate = self.jobs[path]
        self.jobs[path] = kind, "perhaps"
        status = self.service.request("DELETE", path).status
        assert status == 204 or (status == 404 and fate == "perhaps")
        self.jobs[path] = kind, "gone"


def check(answer, right):
    if isinstance(right, str):
        answer.refused(415, right)
    else:
        assert (answer.status, answer.body) == (200, right), answer


def keeps(service, jobs, right):
    """Asserts that a service has these jobs, if they were not deleted, and does those that were not
    done. A deleted one may be there as cancelled."""
    for path, (kind, fate) in jobs.items():
        if fate == "ended":
            assert service.get(path).json()["state"] in ("done", "failed")
        answer = service.get(f"{path}/result?wait=300")
        if fate == "gone" or (fate == "perhaps" and answer.status in (404, 410)):
            assert answer.status in (404, 410), f"{path} ({kind}) has come back: {answer}"
        else:
            check(answer, right[kind])


def leaves_nothing(service, state):
    """Everything is deleted, also jobs whose clients do not know that they were accepted; then no
    file is left but the database, and nothing in it."""
    forget_all(service)
    only_database(state)
    assert service.stop() == 0, service.tail()
    only_database(state)
    with contextlib.closing(sqlite3.connect(state / "jobs/jobs.db")) as database:
        tables = [name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert tables
        for table in tables:
            assert not database.execute(f"SELECT * FROM {table}").fetchall(), table


def files(state):
    """{name: contents} of the directory of jobs."""
    return {path.name: path.read_bytes() for path in (state / "jobs").iterdir()}


def only_database(state):
    assert files(state).keys() <= DATABASE, files(state).keys()


class Disk:
    """A state directory, and what happens to it (disk.c)."""

    def __init__(self, launch, directory, copied=None):
        """copied: another state directory."""
        self.launch, self.state, self.test = launch, directory / "state", directory / "test"
        self.test.mkdir(parents=True)
        if copied:
            shutil.copytree(copied, self.state)
        else:
            self.state.mkdir()

    def service(self, *options, state=None):
        """A service with this directory, or with another and a disk without faults."""
        faults = {"LD_PRELOAD": str(LIBRARY), "ASAN_OPTIONS": "verify_asan_link_order=0",
                  "CONVOLVED_DISK": os.path.realpath(self.state), "CONVOLVED_DISK_TEST": str(self.test)}
        return self.launch(*DURABLE, "--state-dir", str(state or self.state), *options,
                           environment={**ONE_DEVICE, **({} if state else faults)})

    def fail(self, text):
        (self.test / "new").write_text(text)
        (self.test / "new").rename(self.test / "fault")

    def heal(self):
        (self.test / "fault").unlink()

    @property
    def calls(self):
        return (self.test / "calls").read_text().splitlines()

    def survivors(self, to):
        """Makes a directory of what is left without power."""
        shadow = self.test / "shadow"

        def restore(key, path):
            path.mkdir()
            for line in (shadow / key).read_text().splitlines() if (shadow / key).exists() else ():
                entry, name = line.split(" ", 1)
                if name.endswith("/"):
                    restore(entry, path / name)
                elif (shadow / entry).exists():
                    shutil.copy(shadow / entry, path / name)
                else:
                    (path / name).touch()
        restore(os.readlink(shadow / "root"), to)
        return to


def crash(service, number=signal.SIGKILL, again=True):
    """Ends the front by this signal, kills all of its other processes, and starts it again."""
    service.kill(number)
    if again:
        service.start()


# Killed at every point ---------------------------------------------------------------------------

def scenario(told):
    """Accepted, done, failed, cancelled, deleted."""
    blurred, no_image = told.submit("blurred"), told.submit("no image")
    told.fetch(blurred)
    told.fetch(no_image)
    told.delete(told.submit("long"))
    told.submit("blurred")
    told.delete(blurred)


def run_until_killed(service, act, fault=""):
    """Does something to a service until the fault kills it; or to the end, if the fault does not come.
    If a sync has failed, the service may only have said so."""
    with service.starting():
        try:
            service.wait_ready()
            act()
        except Exception:
            if not fault.startswith("break") and service.process.wait(60) != -signal.SIGKILL:
                raise


def points_of(calls):
    """All points of a run: (what happens there, in which call). A sync does not fail before the first
    file of a job: then there would be no jobs."""
    calls = list(enumerate(calls, 1))
    syncs = [(number, call) for number, call in calls if call.startswith(("fsync", "fdatasync", "syncfs"))]
    first = min((number for number, call in calls if call.startswith("openat")), default=len(calls))
    return [*((f"kill {number}", call) for number, call in calls),
            *((f"tear {number}", call) for number, call in calls
              if call.startswith(("write", "pwrite", "sendfile", "copy_file_range"))),
            *((f"break {index}", call) for index, (number, call) in enumerate(syncs, 1) if number > first)]


def starts_from_either(disk, jobs, right):
    """A service has all jobs from the directory as it is, and as it is without power."""
    for state in disk.survivors(disk.state.with_name("left")), disk.state:
        print(f"from {state.name}: {jobs}")
        with disk.service(state=state) as service:
            keeps(service, jobs, right)
            leaves_nothing(service, state)


def attack(launch, directory, right, act, chosen, before=None, jobs=()):
    """Has a service that acts killed at each of the chosen points: a slice of them, or a third of those at
    a call and near it. It begins with a copy of a state directory, and of what is known of its jobs."""
    def run(fault):
        disk = Disk(launch, directory / (fault or "counted"), before)
        disk.fail(fault)
        told = Told(disk.service(), right)
        told.jobs.update(jobs)
        run_until_killed(told.service, lambda: act(told), fault)
        return disk, told.jobs
    counted, _ = run("")
    points = points_of(counted.calls)
    if not isinstance(chosen, slice):
        at = [place for place, (_, call) in enumerate(points) if call == chosen]
        points = [point for place, point in enumerate(points) if any(abs(place - other) <= 6 for other in at)]
        chosen = slice(None, None, 3)
    points = points[chosen]
    for fault, call in points:
        print(f"{fault}: {call}")
        starts_from_either(*run(fault), right)
    return [call for _, call in points]


@contextlib.contextmanager
def crashing(launch, directory, right):
    """A service whose state directory remains, as it then is."""
    disk = Disk(launch, directory / "before")
    with disk.service(state=disk.state).starting() as service:
        service.wait_ready()
        yield disk, Told(service, right)
        crash(service, again=False)
