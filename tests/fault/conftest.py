"""The fixtures of ../http, whose modules these tests use too."""
import shutil

import pytest

import service as service_module
from durable import KINDS, LIBRARY, Disk
from in_flight import SLOW, large


@pytest.fixture(scope="session")
def launch(tmp_path_factory, cache):
    """launch(*options, environment={}) starts a service of its own, by default with one device."""
    def launched(*options, environment=service_module.ONE_DEVICE):
        return service_module.Service(tmp_path_factory.mktemp("service"), cache, *options,
                                      environment={**service_module.UNDER_TEST, **environment})
    return launched


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A directory of the programs that services run, to be changed."""
    directory = tmp_path / "programs"
    directory.mkdir()
    for name in ("convolved", "convolved-codec", "convolved-device", "convolved-http",
                 "convolved-trace"):
        shutil.copy(service_module.BUILD / name, directory / name)
    monkeypatch.setattr(service_module, "PROGRAM", directory / "convolved")
    return directory


@pytest.fixture
def taken_over(launch, programs):
    """taken_over(kind, words, *options, environment): a service whose workers of this kind are
    hostile_codec, hostile_device or hostile_http, and do what the words say."""
    def launched(kind, words, *options, environment=service_module.ONE_DEVICE):
        shutil.copy(service_module.BUILD / f"convolved-{kind}", programs / f"honest-{kind}")
        shutil.copy(service_module.BUILD / f"hostile_{kind}", programs / f"convolved-{kind}")
        return launch("--canary-interval", "3600", *options, environment={
            **environment, "CONVOLVED_HOSTILE": ",".join(words),
            "CONVOLVED_LOCK": str(programs / f"lock-{words[0]}")})
    return launched


@pytest.fixture(scope="module")
def expected(launch):
    """The answer of a service that nothing is done to."""
    with launch("--codecs", "1") as service:
        return service.filter(large(), SLOW, variant="general").body


@pytest.fixture(scope="module")
def right(launch):
    """{kind of durable.KINDS: the bytes of its result, or its problem}."""
    with launch("--codecs", "1") as service:
        answers = {kind: service.post(*request) for kind, request in KINDS.items()}
    assert answers["no image"].refused(415, "not-an-image")
    return {kind: "not-an-image" if answer.status == 415 else answer.body
            for kind, answer in answers.items()}


@pytest.fixture
def disk(launch, tmp_path):
    """A state directory, whose disk may fail."""
    assert LIBRARY.exists(), f"{LIBRARY} is not built: make check TESTS="
    return Disk(launch, tmp_path / "disk")
