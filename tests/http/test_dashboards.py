"""The alert rules and the dashboard against a Prometheus that scrapes a service at work."""
import json
import pathlib
import re
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest

import imagefiles
from pixels import random_pixels
from service import BUILD, REPOSITORY, free_port, poll, tool

RULES = REPOSITORY / "etc/prometheus/convolved.rules.yml"
DASHBOARD = json.loads((REPOSITORY / "etc/grafana/convolved.json").read_text())
RUNBOOKS = "file:///usr/share/doc/convolved/operations.md"
PIXELS = random_pixels(3, 200, 100, 3, "u8")
PNG = imagefiles.write_png(PIXELS)
JPEG = imagefiles.written(imagefiles.pil(random_pixels(1, 60, 40, 3, "u8")), "jpeg")


# Without a service --------------------------------------------------------------------------------

def alerts():
    """Returns {name: lines of its rule}"""
    text = RULES.read_text()
    parts = re.split(r"(?m)^      - alert: (\w+)$", text)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def test_rules_fire_and_do_not():
    done = subprocess.run([tool("promtool"), "test", "rules", "convolved.rules.test.yml"],
                          cwd=RULES.parent, capture_output=True, text=True)
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


def test_every_alert_is_tested_and_explained():
    tests = RULES.with_name("convolved.rules.test.yml").read_text()
    page = (REPOSITORY / "docs/operations.md").read_text()
    assert len(alerts()) > 15
    for name, rule in alerts().items():
        assert f"- alertname: {name}\n" in tests, f"{name} is not seen to fire"
        assert f"{{alertname: {name}, " in tests, f"{name} is not seen to be quiet"
        assert f"runbook_url: {RUNBOOKS}#{name.lower()}\n" in rule
        assert f"### {name}\n\n" in page, f"{name} is not explained"
        assert re.search(r"severity: (critical|warning)", rule)
        assert "summary:" in rule and "description:" in rule
    assert set(re.findall(r"^### (Convolved\w+)$", page, re.M)) == set(alerts())


def test_runbooks_are_where_they_are_said_to_be():
    """The installed links lead to the installed page, or to the one that configure was told."""
    urls = re.findall(r"runbook_url: (.+)", (BUILD / "convolved.rules.yml").read_text())
    assert len(urls) == len(alerts())
    makefile = (BUILD / "Makefile").read_text()
    base = re.search(r"^runbooks = (.+)$", makefile, re.M)[1]
    docdir = re.search(r"^prefix = (.+)$", makefile, re.M)[1] + "/share/doc/convolved"
    assert {url.partition("#")[0] for url in urls} == {base.replace("$(docdir)", docdir)}
    assert all(re.match(r"\w+://", url) for url in urls)


# With a service -----------------------------------------------------------------------------------

def traffic(service):
    """A round of everything: images, chains, errors, asynchronous jobs, verification."""
    service.post("/v1/chain?filters=gaussian=sigma=2,sobel&verify=1", PNG)
    service.post("/v1/filters/box", PNG)
    service.post("/v1/filters/box", JPEG)
    service.post("/v1/filters/box?size=2", PNG)
    service.post("/v1/filters/box", PNG[:-300])
    service.post("/v1/filters/box", PNG, headers={"Prefer": "respond-async"})


class Prometheus:
    def __init__(self, directory, target):
        self.port = free_port()
        config = directory / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "convolved",
                                "static_configs": [{"targets": [target]}]}]}))
        self.log = (directory / "prometheus.log").open("w")
        self.process = subprocess.Popen(
            [tool("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={directory}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=self.log)

    def ask(self, path, **parameters):
        """Returns the data of an answer; prints Prometheus's error."""
        query = urllib.parse.urlencode(parameters, doseq=True)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}?{query}",
                                        timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def up(self):
        assert self.process.poll() is None, pathlib.Path(self.log.name).read_text()
        try:
            # Until it is ready this is refused, like the connection, and queries are 503.
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=60).close()
            return self.ask("/api/v1/query", query="up == 1")["result"]
        except OSError:
            return None

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


@pytest.fixture(scope="module")
def observed(launch, tmp_path_factory):
    """(a service under traffic, a Prometheus that has seen it for some seconds)"""
    end = threading.Event()

    def keep_busy(service):
        while not end.wait(0.2):
            traffic(service)

    with launch("--codecs", "2") as service:
        traffic(service)
        service.workers("codec")[0].kill()
        poll(lambda: service.restarts() >= 1, 60, "a worker's end in the metrics")
        prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"),
                                f"{service.host}:{service.port}")
        worker = threading.Thread(target=keep_busy, args=(service,))
        worker.start()
        try:
            poll(prometheus.up, 60, "a first scrape", 0.2)
            yield service, prometheus
        finally:
            end.set()
            worker.join()
            prometheus.stop()


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def substituted(expression):
    """As Grafana asks, with everything chosen."""
    for name, value in (("$__rate_interval", "10s"), ("$job", "convolved"), ("$instance", ".*"),
                        ("$device", ".*")):
        expression = expression.replace(name, value)
    assert "$" not in expression, f"{expression}: a variable that there is not"
    return expression


EXPRESSIONS = [(panel["title"], target["expr"]) for panel in panels()
               for target in panel["targets"]]


def test_dashboard_is_whole():
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Traffic", "Stages", "Devices", "Kernels", "Queue and admission",
                    "Asynchronous jobs", "Workers and memory"]
    assert [v["name"] for v in DASHBOARD["templating"]["list"]] == [
        "datasource", "job", "instance", "device"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}"
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells


def shown(panel, value):
    """Returns (text, colour) that a value has, by its mapping or its thresholds."""
    defaults = panel["fieldConfig"]["defaults"]
    words = [m["options"] for m in defaults.get("mappings", []) if m["type"] == "value"]
    step = [s for s in defaults["thresholds"]["steps"] if s["value"] is None or s["value"] <= value]
    mapped = next((w[str(value)] for w in words if str(value) in w), {})
    return mapped.get("text"), mapped.get("color", step[-1]["color"])


def test_dashboard_says_what_is_good():
    """Each panel describes itself; bad values are not green, as without thresholds all are; no
    number is a date by accident."""
    by_title = {panel["title"]: panel for panel in panels()}
    for panel in panels():
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["type"] != "stat" or panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        if panel["fieldConfig"]["defaults"].get("unit") == "dateTimeAsIso":
            assert all("_seconds" in t["expr"] and "* 1000" in t["expr"] for t in panel["targets"])
        for one in panel["targets"]:
            assert "convolved_" not in one["expr"] or 'job=~"$job"' in one["expr"], one
    assert shown(by_title["Ready"], 0) == ("No", "red")
    assert shown(by_title["Ready"], 1) == ("Yes", "green")
    assert shown(by_title["Last reload"], 0)[1] == shown(by_title["Devices up"], 0)[1] == "red"
    assert shown(by_title["Devices up"], 2)[1] == shown(by_title["Service errors"], 0)[1] == "green"
    assert shown(by_title["Service errors"], 0.02)[1] == "red"


@pytest.mark.parametrize("title, expression", EXPRESSIONS)
def test_query_has_data(observed, title, expression):
    _, prometheus = observed
    poll(lambda: prometheus.ask("/api/v1/query", query=substituted(expression))["result"], 60,
         f"data for {title}", 0.3)


def test_variables_have_values(observed):
    _, prometheus = observed
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] != "query":
            continue
        match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        found = prometheus.ask("/api/v1/series", **{"match[]": substituted(match[1])})
        assert found and all(one[match[2]] for one in found), variable["name"]


def test_every_metric_is_used_and_every_used_one_is_there(observed):
    """The dashboard shows them all; nothing asks for one that there is not."""
    service, _ = observed
    families = set(service.metrics().families)
    text = " ".join(expression for _, expression in EXPRESSIONS)

    def used(text):
        return {re.sub(r"_(bucket|sum|count)$", "", name)
                if re.sub(r"_(bucket|sum|count)$", "", name) in families else name
                for name in re.findall(r"\bconvolved_\w+", text)}

    assert used(text) == families
    rules = "\n".join(rule.partition("annotations:")[0] for rule in alerts().values())
    assert used(rules) <= families and len(used(rules)) > 15


def test_rules_are_evaluated(observed):
    """Without an error, and none fires that has no reason."""
    _, prometheus = observed

    def evaluated():
        rules = prometheus.ask("/api/v1/rules")["groups"][0]["rules"]
        return rules if all(rule["health"] != "unknown" for rule in rules) else None

    rules = poll(evaluated, 60, "an evaluation of all rules")
    assert {rule["name"] for rule in rules} == set(alerts())
    for rule in rules:
        assert rule["health"] == "ok", rule
        assert rule["state"] != "firing", rule


def test_prometheus_likes_the_metrics(observed):
    """promtool finds nothing in the metrics of a service that has done all this."""
    service, _ = observed
    done = subprocess.run([tool("promtool"), "check", "metrics"],
                          input=service.get("/metrics").body, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
