"""The files for containers: the files that they name exist, and their parts know each other."""
import json
import os
import pathlib
import re
import subprocess

import yaml

from service import BUILD, REPOSITORY, tool

PLACE = REPOSITORY / "etc/container"
COMPOSE = yaml.safe_load((PLACE / "compose.yaml").read_text())["services"]
KUBERNETES = {one["kind"]: one for one in yaml.safe_load_all((PLACE / "kubernetes.yaml").read_text())}
POD = KUBERNETES["Deployment"]["spec"]["template"]["spec"]
CONTAINER, = POD["containers"]
FILE = (PLACE / "Containerfile").read_text()


def test_configuration(tmp_path):
    """It is valid; only the address for metrics needs no tokens."""
    def check(**environment):
        return subprocess.run([BUILD / "convolved", "--check-config", "--config", PLACE / "convolved.conf",
                               "--cache-dir", tmp_path, "--state-dir", tmp_path], env=environment,
                              capture_output=True, text=True)
    assert check().returncode == 78
    for one in (COMPOSE["convolved"]["environment"],
                {e["name"]: e["value"] for e in CONTAINER["env"]} | {"CONVOLVED_ALLOW_ANONYMOUS": "yes"}):
        done = check(**one)
        assert done.returncode == 0, done


def test_what_is_copied_is_there():
    for line in re.findall(r"^COPY (?!--from)(.+)$", FILE, re.M):
        for name in line.split()[:-1]:
            assert (REPOSITORY / name).exists(), name
    for service in COMPOSE.values():
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert not source.startswith(".") or (PLACE / source).is_file(), source


def collected(kind):
    """Returns the names in an image, of this system."""
    programs = [BUILD / name for name in ("convolved", "convolved-codec", "convolved-device", "convolve")]
    listed = subprocess.run([PLACE / "collect.sh", kind, *programs], capture_output=True, text=True, check=True)
    assert not listed.stderr
    return [pathlib.Path(name) for name in listed.stdout.splitlines()]


def test_what_is_collected():
    """Files are there, with those that links lead to; one kind has all of PoCL, the other none."""
    both, gpu = ({name for name in collected(kind)} for kind in ("cpu", "gpu"))
    for name in both:
        assert os.path.lexists(name), name
        assert not name.is_symlink() or name.resolve() in both or name.resolve().is_dir(), name
        assert name.parent == name.parent.resolve(), name
    names = {name.name for name in gpu}
    assert {"libvips.so.42", "vips-heif.so", "libheif.so.1", "libOpenCL.so.1", "libc.so.6", "libdl.so.2",
            "ca-certificates.crt"} <= names
    compiler = re.compile(r"pocl|LLVM|clang|/ld$|\.bc$")
    own = {str(name) for name in both - gpu if not name.name == "copyright"}
    assert not [name for name in gpu if compiler.search(str(name)) and name.name != "copyright"]
    for wanted in ("libpocl.so", "libLLVM", "libclang-cpp", "/ld", ".bc", "pocl.icd", "libpocl-devices-pthread.so"):
        assert any(wanted in name for name in own), wanted


def test_tools():
    there = re.search(r"for name in ([a-z ]+); do ln -s busybox", FILE)[1].split()
    health = json.loads(re.search(r"^ +CMD (\[.+\])$", FILE, re.M)[1])
    assert health[0] in there
    # The service itself waits before it drains: no hook has to.
    assert "lifecycle" not in CONTAINER and POD["terminationGracePeriodSeconds"] > int(
        next(e["value"] for e in CONTAINER["env"] if e["name"] == "CONVOLVED_DRAIN_DELAY"))


def test_ports():
    http, metrics = re.findall(r"listen=0\.0\.0\.0:(\d+)", (PLACE / "convolved.conf").read_text())
    assert re.search(r"^EXPOSE (.+)$", FILE, re.M)[1].split() == [http, metrics]
    assert f"http://127.0.0.1:{metrics}/readyz" in FILE
    assert COMPOSE["convolved"]["ports"] == [f"127.0.0.1:{http}:{http}"]
    assert {p["name"]: str(p["containerPort"]) for p in CONTAINER["ports"]} == {
        "http": http, "metrics": metrics}
    assert f"port: {metrics}}}" in (PLACE / "prometheus.yml").read_text()
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = CONTAINER[probe]["httpGet"]
        assert asked["port"] == "metrics" and asked["path"] in ("/livez", "/readyz")


def test_no_privileges():
    user = re.search(r"^USER (\d+):(\d+)$", FILE, re.M)
    context = POD["securityContext"]
    assert [context["runAsUser"], context["runAsGroup"]] == [int(user[1]), int(user[2])]
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"] and COMPOSE["convolved"]["read_only"]
    written = re.search(r"^VOLUME (.+)$", FILE, re.M)[1].split()
    assert {v.partition(":")[2] for v in COMPOSE["convolved"]["volumes"]} == set(written)
    assert set(written) < {mount["mountPath"] for mount in CONTAINER["volumeMounts"]}


def test_autoscaler_asks_for_a_metric_that_is_there():
    asked = KUBERNETES["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["pods"]["metric"]["name"]
    rule, = yaml.safe_load((PLACE / "kubernetes-adapter.yaml").read_text())["rules"]["custom"]
    assert rule["name"] == {"as": asked}
    name = re.match(r"convolved_(\w+)\{state=\"waiting\"", rule["seriesQuery"])[1]
    assert f'"{name}", "state"' in (REPOSITORY / "daemon/front/base/metrics.def").read_text()


def test_selectors():
    labels = KUBERNETES["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert KUBERNETES["Service"]["spec"]["selector"] == labels
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert KUBERNETES[kind]["spec"]["selector"] == {"matchLabels": labels}


def test_prometheus_and_grafana(tmp_path):
    for source in (PLACE / "prometheus.yml", REPOSITORY / "etc/prometheus/convolved.rules.yml"):
        (tmp_path / source.name).write_text(source.read_text())
    done = subprocess.run([tool("promtool"), "check", "config", tmp_path / "prometheus.yml"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and "1 rule files found" in done.stdout, done
    dashboards = yaml.safe_load((PLACE / "grafana-dashboards.yml").read_text())["providers"][0]["options"]["path"]
    assert any(v.split(":")[1] == f"{dashboards}/convolved.json" for v in COMPOSE["grafana"]["volumes"])
    assert json.loads((PLACE / "../grafana/convolved.json").read_text())["uid"]
    source, = yaml.safe_load((PLACE / "grafana-datasource.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090" and source["type"] == "prometheus"
