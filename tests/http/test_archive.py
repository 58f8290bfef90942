"""Asynchronous jobs that outlive the service (durable), their keys, and the lists of them."""
import concurrent.futures
import os
import subprocess
import tempfile

import pytest

import imagefiles
from jobs import HEAVY, LONG, MEDIUM, PREFER, submit
from pixels import random_pixels
from service import ONE_DEVICE, Service, at_unix_socket, multipart, poll, target_of, tool

PNG = imagefiles.write_png(random_pixels(1, 300, 200, 3, "u8"))
OTHER = imagefiles.write_png(random_pixels(2, 30, 20, 3, "u8"))
BOX = "/v1/filters/box"


@pytest.fixture(scope="module")
def socket_path():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        yield f"{directory}/socket"


@pytest.fixture(scope="module", params=["no", "yes"])
def either(launch, socket_path, request):
    """A service that keeps jobs, or does not; it makes no difference as long as it lives."""
    with launch("--codecs", "1", "--durable", request.param, "--listen", f"unix:{socket_path}",
                "--socket-mode", "0666", environment=ONE_DEVICE) as service:
        yield service


@pytest.fixture
def durable(launch):
    """A service to be restarted. Its device has one thread, for jobs whose end nobody waits for."""
    with launch("--codecs", "1", "--durable", "yes", "--drain-timeout", "300",
                environment={**ONE_DEVICE, "POCL_MAX_PTHREAD_COUNT": "1"}) as service:
        yield service


def ask(client, key=None, body=PNG, target=BOX, headers=None):
    """Asks for a job, by a key."""
    own = {} if key is None else {"Idempotency-Key": key}
    return client.post(target, body, headers={**PREFER, **own, **(headers or {})})


def path_of(answer):
    assert answer.status == 202, answer
    return answer.headers["Location"]


def listed(client):
    """Returns the paths of the client's jobs, sorted: a job moves when it ends."""
    answer = client.get("/v1/jobs")
    assert answer.status == 200, answer
    jobs = answer.json()["jobs"]
    for job in jobs:
        own = client.get(job["links"]["self"]).json()
        assert own["links"] == job["links"]
        assert own["state"] != job["state"] or own.keys() == job.keys(), "it went on meanwhile"
    return sorted(job["links"]["self"] for job in jobs)


# Lists --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("other", ["address", "socket"])
def test_list(either, socket_path, other):
    """Everybody's own, as each is described; a job that is forgotten is not listed."""
    other = either.neighbour() if other == "address" else at_unix_socket(socket_path)
    mine, theirs = [submit(either) for _ in range(3)], [submit(other)]
    for client, jobs in ((either, mine), (other, theirs)):
        for job in jobs:
            client.get(f"{job}?wait=120")
        assert listed(client) == sorted(jobs)
    assert either.request("HEAD", "/v1/jobs").status == 200
    if other.socket_path and os.getuid() == 0:  # only root can be another user
        done = subprocess.run([tool("curl"), "-sf", "--unix-socket", socket_path,
                               "http://localhost/v1/jobs"], user=65534, check=True, capture_output=True)
        assert done.stdout.split() == [b"{", b'"jobs":', b"[]", b"}"]
    for client, jobs in ((either, mine), (other, theirs)):
        for job in jobs:
            assert client.request("DELETE", job).status == 204
        assert listed(client) == []


def test_no_list_for_strangers(launch):
    """Their address may be that of many; a job is there for who knows its id."""
    with launch("--codecs", "1", "--trusted-proxies", "127.0.0.1") as service:
        for address in "192.0.2.1", "2001:db8::1":
            service.headers = {"X-Forwarded-For": address}
            job = submit(service)
            service.get("/v1/jobs").refused(403, "list-not-allowed", "token")
            assert service.get(f"{job}?wait=120").json()["state"] == "done"
        for address in "127.0.0.1", "::1":
            service.headers = {"X-Forwarded-For": address}
            assert listed(service) == []


# Keys ---------------------------------------------------------------------------------------------

def test_same_key(either):
    """The same job, while it is open and when it has ended; another one once it is forgotten."""
    job = path_of(ask(either, "a-1"))
    assert path_of(ask(either, "a-1")) == job
    result = either.get(f"{job}/result?wait=120")
    again = ask(either, "a-1")
    assert path_of(again) == job and again.json()["state"] == "done"
    assert again.headers["Preference-Applied"] == "respond-async"
    assert either.get(f"{job}/result").body == result.body
    assert path_of(ask(either, "a-2")) != job and path_of(ask(either)) != job
    assert either.request("DELETE", job).status == 204
    assert path_of(ask(either, "a-1")) != job


def test_key_of_a_form(either):
    """Each time with another boundary."""
    def send(size):
        body, kind = multipart([("image", "in.png", PNG), ("size", None, size)])
        name = kind.rpartition("=")[2]
        new = f"{name}{os.urandom(4).hex()}"
        return ask(either, "form", body.replace(name.encode(), new.encode()),
                   headers={"Content-Type": kind.replace(name, new)})

    job = path_of(send(b"5"))
    assert path_of(send(b"5")) == job
    assert either.get(f"{job}/result?wait=120").body == either.post(f"{BOX}?size=5", PNG).body
    send(b"7").refused(422, "key-reused")


@pytest.mark.parametrize("other", [
    {"body": OTHER}, {"body": PNG[:-1]}, {"target": f"{BOX}?size=5"}, {"target": "/v1/filters/sobel"},
    {"headers": {"Accept": "image/webp"}}])
def test_key_of_another_request(either, other):
    job = path_of(ask(either, "b"))
    problem = ask(either, "b", **other).refused(422, "key-reused", "Idempotency-Key")
    assert job.rpartition("/")[2] not in problem["detail"], "who guesses a key learns no id"
    assert path_of(ask(either, "b")) == job


def test_key_of_a_large_image(either):
    """All of it counts."""
    path_of(ask(either, "large", bytes(600000)))
    ask(either, "large", bytes(599999) + b"x").refused(422, "key-reused")


def test_key_of_another_client(either):
    assert path_of(ask(either, "c")) != path_of(ask(either.neighbour(), "c", OTHER))


@pytest.mark.parametrize("key, good", [("", False), ("x" * 256, False), ("x" * 255, True),
                                       ('"8e03978e-40d5-43e8-bc93-6894a57f9324"', True)])
def test_what_a_key_is(either, key, good):
    if good:
        assert path_of(ask(either, key)) == path_of(ask(either, key))
    else:
        ask(either, key).refused(400, "bad-request", "Idempotency-Key", "255")


def test_key_of_a_synchronous_request(either):
    """It is no key."""
    for key, body in (("d", PNG), ("d", OTHER), ("", PNG), ("x" * 256, PNG)):
        assert either.post(BOX, body, headers={"Idempotency-Key": key}).status == 200
    path_of(ask(either, "d", OTHER))


# Restarts -----------------------------------------------------------------------------------------

def restart(service, end):
    """It answers then; its only codec worker may have a job before the image that makes it ready."""
    assert not end(service), service.tail()
    service.start(ready=False)
    poll(lambda: not service.refuses(), what="an answer")


PASSING = ("Date", "X-Request-Id", "Server-Timing")


def seen(service, job):
    """Returns what remains the same: status, headers and body of the result, and the description."""
    answer = service.get(f"{job}/result?wait=300")
    description = service.get(job).json()
    del description["kept_seconds"]
    return answer.status, [(k, v) for k, v in answer.headers.items() if k not in PASSING], answer.body, description


@pytest.mark.parametrize("end", [
    pytest.param(Service.stop, marks=pytest.mark.slow), Service.kill])
def test_restart(durable, end):
    """Ended jobs have their answers at once, open ones run; one that was forgotten stays so."""
    target = "/v1/filters/gaussian?sigma=2&variant=general&format=webp&verify=1"
    direct = durable.post(target, PNG)
    done = path_of(ask(durable, "e", PNG, target))
    failed = path_of(ask(durable, target="/v1/filters/linear?gain=1,2"))  # there are three colours
    forgotten = submit(durable)
    before = {job: seen(durable, job) for job in (done, failed)}
    assert [before[job][0] for job in before] == [200, 400]
    assert before[done][3]["lost"] and before[failed][3]["problem"]["parameter"] == "gain"
    durable.get(f"{forgotten}?wait=120")
    assert durable.request("DELETE", forgotten).status == 204
    running, waiting = submit(durable, LONG, HEAVY, variant="reference"), submit(durable, MEDIUM, HEAVY)
    cancelled = submit(durable)
    assert durable.request("DELETE", cancelled).status == 204
    poll(lambda: durable.get(running).json()["state"] == "running", what="the long job")
    kept = durable.get(done).json()["kept_seconds"]
    jobs = listed(durable)

    restart(durable, end)

    assert listed(durable) == jobs == sorted([done, failed, running, waiting, cancelled])
    durable.get(forgotten).refused(404, "not-found")
    assert {job: seen(durable, job) for job in before} == before
    assert seen(durable, done)[2] == direct.body
    assert durable.get(done).json()["kept_seconds"] <= kept
    durable.get(f"{cancelled}/result").refused(410, "cancelled")
    assert path_of(ask(durable, "e", PNG, target)) == done
    ask(durable, "e", OTHER, target).refused(422, "key-reused")
    assert durable.request("DELETE", running).status == 204
    assert durable.get(f"{running}?wait=300").json()["state"] == "cancelled"
    result = durable.get(f"{waiting}/result?wait=300")
    assert result.body == durable.post(target_of(HEAVY, raw="360x360x3:u8", format="raw", variant="general"),
                                       MEDIUM.tobytes()).body
    metrics = durable.metrics()
    for state, count in (("ended", 3), ("open", 2)):
        assert metrics.total("convolved_jobs_recovered_total", state=state) == count


def test_files_of_results(durable):
    """A missing one is as if DELETE had come; one that cannot be opened has its job there again once
    that is possible."""
    gone, kept = submit(durable), submit(durable)
    right = durable.get(f"{kept}/result?wait=120").body
    durable.get(f"{gone}?wait=120")
    missing, locked = ((durable.state / "jobs" / job.rpartition("/")[2]).with_suffix(".result")
                       for job in (gone, kept))
    durable.kill()
    missing.unlink()
    locked.rename(durable.state / "kept")
    locked.symlink_to(durable.state / "kept")  # which is not followed
    durable.start()
    durable.says("cannot be opened")
    for job in gone, kept:
        durable.get(job).refused(404, "not-found")
    durable.kill()
    (durable.state / "kept").rename(locked)
    durable.start()
    assert durable.get(f"{kept}/result").body == right
    durable.get(gone).refused(404, "not-found")


def test_drain_does_not_wait(durable):
    """Open jobs go on after the restart; those that wait for one are answered at once."""
    job = submit(durable, LONG, HEAVY, variant="reference")
    poll(lambda: durable.get(job).json()["state"] == "running", what="the job")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(durable.get, f"{job}{suffix}") for suffix in ("?wait=300", "/events")]
        poll(lambda: durable.total("convolved_requests") == 3, what="both")
        restart(durable, Service.stop)
        waiting, events = (answer.result(60) for answer in answers)
    assert waiting.json()["state"] == "running"
    assert b"event: progress" in events.body and b"event: end" not in events.body
    assert durable.get(job).json()["state"] in ("waiting", "running")
    assert durable.request("DELETE", job).status == 204


def test_memory(launch):
    """Images that wait and results take none: they are on disk."""
    pixels = random_pixels(5, 1024, 1024, 2, "u8")
    with launch("--codecs", "1", "--durable", "yes", "--max-memory", "12M", "--max-wait", "600",
                environment=ONE_DEVICE) as service:
        first = submit(service, MEDIUM, HEAVY, variant="reference")
        jobs = [submit(service, pixels) for _ in range(8)]
        assert service.request("DELETE", first).status == 204
        for _ in range(2):
            assert [service.get(f"{job}/result?wait=300").status for job in jobs] == [200] * 8


def test_without_durable(launch):
    """Jobs end with the process, and nothing is written."""
    with launch("--codecs", "1", "--durable", "no") as service:
        job = submit(service)
        service.get(f"{job}?wait=120")
        assert not (service.state / "jobs").exists()
        restart(service, Service.kill)
        service.get(job).refused(404, "not-found")


@pytest.mark.parametrize("environment, kept", [({"STATE_DIRECTORY": "x"}, True), ({}, False)])
def test_auto(launch, environment, kept):
    """By default systemd's directory is used, and no other."""
    with launch("--codecs", "1", environment=environment) as service:
        submit(service)
        assert (service.state / "jobs" / "jobs.db").exists() == kept


# Metrics ------------------------------------------------------------------------------------------

def test_metrics(durable):
    def grown():
        return durable.total("convolved_archive_duration_seconds_count")

    before = grown()
    job = submit(durable)
    durable.get(f"{job}?wait=120")
    assert durable.request("DELETE", job).status == 204
    assert grown() - before == 3, "accepted, ended, forgotten"
    metrics = durable.metrics()
    for name in ("stored_oldest_seconds", "stored_changes", "archive_unusable", "stored_jobs"):
        assert metrics.total(f"convolved_{name}") == 0, name
    job = submit(durable, LONG, HEAVY, variant="reference")
    poll(lambda: durable.total("convolved_stored_oldest_seconds") > 0.1, what="some age")
    assert durable.total("convolved_stored_jobs", state="open") == 1
    assert durable.request("DELETE", job).status == 204
