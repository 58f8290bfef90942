"""Three nodes behind HAProxy, for all tests."""
import pytest

import cluster as cluster_module
from certificates import localhost_certificate
from service import ONE_DEVICE

OPTIONS = ("--codecs", "2", "--http-workers", "1", "--drain-delay", "1", "--client-share", "1",
           "--max-jobs", "4")


@pytest.fixture(scope="session")
def tls(tmp_path_factory):
    """A directory with a certificate that trusts itself."""
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = localhost_certificate(directory)
    (directory / "both.pem").write_text(certificate.read_text() + key.read_text())
    return directory


@pytest.fixture(scope="session")
def nodes(tmp_path_factory, cache, tls):
    with cluster_module.started(3, tmp_path_factory.mktemp("nodes"), cache, *OPTIONS, tls=tls,
                                environment=ONE_DEVICE) as nodes:
        yield nodes


@pytest.fixture(scope="session")
def balancer(tmp_path_factory, nodes):
    with cluster_module.Balancer(tmp_path_factory.mktemp("haproxy"), nodes) as balancer:
        yield balancer


@pytest.fixture
def cluster(balancer):
    """With all nodes up, whatever a test before has left."""
    for node in balancer.nodes:
        if node.process.poll() is not None:
            node.start()
    balancer.await_all("UP")
    balancer.answered.clear()
    return balancer
