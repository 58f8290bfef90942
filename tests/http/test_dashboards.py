"""The alert rules and the dashboard against a Prometheus that scrapes a service at work."""
import contextlib
import json
import re
import subprocess
import time
import urllib.parse

import pytest

import imagefiles
from jobs import PREFER
from pixels import random_pixels
from service import BUILD, REPOSITORY, Client, free_port, meanwhile, poll, tool

RULES = REPOSITORY / "etc/prometheus/convolved.rules.yml"
PARTS = re.split(r"(?m)^      - alert: (\w+)$", RULES.read_text())[1:]
ALERTS = dict(zip(PARTS[::2], PARTS[1::2]))  # name: lines of its rule
DASHBOARD = json.loads((REPOSITORY / "etc/grafana/convolved.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
RUNBOOKS = "file:///usr/share/doc/convolved/operations.md"
PNG = imagefiles.write_png(random_pixels(3, 200, 100, 3, "u8"))
JPEG = imagefiles.written(imagefiles.pil(random_pixels(1, 60, 40, 3, "u8")), "jpeg")


@pytest.mark.slow
def test_rules_fire_and_do_not():
    done = subprocess.run([tool("promtool"), "test", "rules", "convolved.rules.test.yml"],
                          cwd=RULES.parent, capture_output=True, text=True)
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


def test_every_alert_is_tested_and_explained():
    tests = RULES.with_name("convolved.rules.test.yml").read_text()
    page = (REPOSITORY / "docs/operations.md").read_text()
    assert len(ALERTS) > 15
    for name, rule in ALERTS.items():
        assert f"- alertname: {name}\n" in tests, f"{name} is not seen to fire"
        assert f"{{alertname: {name}, " in tests, f"{name} is not seen to be quiet"
        assert f"runbook_url: {RUNBOOKS}#{name.lower()}\n" in rule
        assert f"### {name}\n\n" in page, f"{name} is not explained"
        assert re.search(r"severity: (critical|warning)", rule)
        assert "summary:" in rule and "description:" in rule
    assert set(re.findall(r"^### (Convolved\w+)$", page, re.M)) == set(ALERTS)


def test_runbooks_are_where_they_are_said_to_be():
    """The installed links lead to the installed page, or to the one that configure was told."""
    urls = re.findall(r"runbook_url: (.+)", (BUILD / "convolved.rules.yml").read_text())
    assert len(urls) == len(ALERTS)
    makefile = (BUILD / "Makefile").read_text()
    base = re.search(r"^runbooks = (.+)$", makefile, re.M)[1]
    docdir = re.search(r"^prefix = (.+)$", makefile, re.M)[1] + "/share/doc/convolved"
    assert {url.partition("#")[0] for url in urls} == {base.replace("$(docdir)", docdir)}
    assert all(re.match(r"\w+://", url) for url in urls)


def traffic(service):
    """A round of everything: images, chains, errors, asynchronous jobs, verification; a pause."""
    service.post("/v1/chain?filters=gaussian=sigma=2,sobel&verify=1", PNG)
    for query, body in (("", PNG), ("", JPEG), ("?size=2", PNG), ("", PNG[:-300])):
        service.post(f"/v1/filters/box{query}", body)
    service.post("/v1/filters/box", PNG, headers=PREFER)
    time.sleep(0.2)


class Prometheus(contextlib.AbstractContextManager):
    def __init__(self, directory, target):
        self.port = free_port()
        config, self.log = directory / "prometheus.yml", directory / "prometheus.log"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "convolved",
                                "static_configs": [{"targets": [target]}]}]}))
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [tool("prometheus"), f"--config.file={config}",
                 f"--storage.tsdb.path={directory}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)

    def ask(self, path, **parameters):
        query = urllib.parse.urlencode(parameters, doseq=True)
        answer = Client("127.0.0.1", self.port).get(f"{path}?{query}")
        assert answer.status == 200, (parameters, answer)
        return answer.json()["data"]

    def up(self):
        """Returns what it has scraped; until it is ready, it refuses the connection or says 503."""
        assert self.process.poll() is None, self.log.read_text()
        with contextlib.suppress(OSError):
            if Client("127.0.0.1", self.port).get("/-/ready").status == 200:
                return self.ask("/api/v1/query", query="up == 1")["result"]

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture(scope="module")
def observed(launch, tmp_path_factory):
    """A service under traffic, with a .prometheus that has seen it for some seconds."""
    with launch("--codecs", "2", "--durable", "yes") as service, contextlib.ExitStack() as stack:
        traffic(service)
        service.workers("codec")[0].kill()
        poll(lambda: service.restarts() >= 1, 60, "a worker's end in the metrics")
        service.prometheus = stack.enter_context(Prometheus(
            tmp_path_factory.mktemp("prometheus"), f"{service.host}:{service.port}"))
        stack.enter_context(meanwhile(lambda: traffic(service)))
        poll(service.prometheus.up, 60, "a first scrape", 0.2)
        yield service


def substituted(expression):
    """As Grafana asks, with everything chosen."""
    for name, value in (("$__rate_interval", "10s"), ("$job", "convolved"), ("$instance", ".*"),
                        ("$device", ".*")):
        expression = expression.replace(name, value)
    assert "$" not in expression, f"{expression}: a variable that there is not"
    return expression


def shown(panel, value):
    """Returns (text, colour) that a value has, by its mapping or its thresholds."""
    defaults = panel["fieldConfig"]["defaults"]
    words = [m["options"] for m in defaults.get("mappings", []) if m["type"] == "value"]
    step = [s for s in defaults["thresholds"]["steps"] if s["value"] is None or s["value"] <= value]
    mapped = next((w[str(value)] for w in words if str(value) in w), {})
    return mapped.get("text"), mapped.get("color", step[-1]["color"])


def test_dashboard_says_what_is_good():
    """Each panel describes itself; bad values are not green; no number is a date by accident."""
    by_title = {panel["title"]: panel for panel in PANELS}
    for panel in PANELS:
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["type"] != "stat" or panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        if panel["fieldConfig"]["defaults"].get("unit") == "dateTimeAsIso":
            assert all("_seconds" in t["expr"] and "* 1000" in t["expr"] for t in panel["targets"])
        for one in panel["targets"]:
            assert "convolved_" not in one["expr"] or 'job=~"$job"' in one["expr"], one
    for title, value, seen in (
            ("Ready", 0, ("No", "red")), ("Ready", 1, ("Yes", "green")), ("Last reload", 0, "red"),
            ("Asynchronous jobs accepted", 0, ("Yes", "green")),
            ("Asynchronous jobs accepted", 1, ("Refused", "red")),
            ("Devices up", 0, "red"), ("Devices up", 2, "green"), ("Service errors", 0, "green"),
            ("Service errors", 0.02, "red")):
        assert seen in (shown(by_title[title], value), shown(by_title[title], value)[1]), title


@pytest.mark.parametrize("title, expression", EXPRESSIONS)
def test_query_has_data(observed, title, expression):
    query = substituted(expression)
    poll(lambda: observed.prometheus.ask("/api/v1/query", query=query)["result"], 60, title, 0.3)


def test_variables_have_values(observed):
    queries = [variable["query"]["query"] for variable in DASHBOARD["templating"]["list"]
               if variable["type"] == "query"]
    for query in queries:
        series, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
        found = observed.prometheus.ask("/api/v1/series", **{"match[]": substituted(series)})
        assert found and all(one[label] for one in found), query


def test_every_metric_is_used_and_every_used_one_is_there(observed):
    """The dashboard shows them all; nothing asks for one that there is not."""
    families = observed.metrics().families

    def used(text):
        names = ((name, re.sub(r"_(bucket|sum|count)$", "", name))
                 for name in re.findall(r"\bconvolved_\w+", text))
        return {family if family in families else name for name, family in names}

    assert used(" ".join(expression for _, expression in EXPRESSIONS)) == families
    rules = used("\n".join(rule.partition("annotations:")[0] for rule in ALERTS.values()))
    assert rules <= families and len(rules) > 15


def test_rules_are_evaluated(observed):
    """Without an error, and none fires that has no reason."""
    def evaluated():
        rules = observed.prometheus.ask("/api/v1/rules")["groups"][0]["rules"]
        return rules if all(rule["health"] != "unknown" for rule in rules) else None

    rules = poll(evaluated, 60, "an evaluation of all rules")
    assert {rule["name"] for rule in rules} == set(ALERTS)
    for rule in rules:
        assert rule["health"] == "ok" and rule["state"] != "firing", rule


def test_prometheus_likes_the_metrics(observed):
    """promtool finds nothing in the metrics of a service that has done all this."""
    answer = observed.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    done = subprocess.run([tool("promtool"), "check", "metrics"], input=answer.body,
                          capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
