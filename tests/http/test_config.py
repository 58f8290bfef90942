"""Configuration: the sources of values, which wins, and messages about wrong ones."""
import re
import subprocess

import pytest

from command import INVALID, run
from service import BUILD, REPOSITORY, sections, tool


def check(*arguments, **options):
    """--check-config: (exit status, output)."""
    done = run("--check-config", *arguments, **options)
    return done.returncode, done.stderr


@pytest.fixture
def file(tmp_path):
    """file(text) writes a configuration file and returns its path."""
    def write(text):
        path = tmp_path / "convolved.conf"
        path.write_text(text)
        return path
    return write


def test_every_error_of_a_file(file):
    """All of them, each with file and line, key and value, and the valid values."""
    path = file("codecs=1\n[limits]\n# a comment\nmax-body=10X\nmax-jobs=0\ncodecs=3\nmax-jobs=4\n"
                "colour=red\nnonsense\n\n[Limits]\nmax-wait=5\n[service]\nlisten=localhost:80\n"
                "log-level=loud\nsocket-mode=999\n[service]\n[access]\nallow-anonymous=perhaps\n"
                "[supervision]\nverify-share=2\n")
    status, said = check("--config", path)
    assert status == INVALID
    lines = {int(m[1]): m[2] for m in re.finditer(rf"{re.escape(str(path))}:(\d+): (.*)", said)}
    for number, words in {
            1: ["[SECTION]"], 4: ["max-body=10X", "bytes", "from 1 to 1024G"],
            5: ["max-jobs=0", "from 1 to 100000"], 6: ["codecs=3", "[workers]"],
            7: ["max-jobs", "line 5"], 8: ["colour=red", "no such option"], 9: ["KEY=VALUE"],
            11: ["[Limits]", "[limits]"], 14: ["listen=localhost:80", "ADDRESS:PORT", "unix:PATH"],
            15: ["log-level=loud", "notice"], 16: ["socket-mode=999", "octal", "0777"],
            17: ["[service]", "line 13"], 19: ["allow-anonymous=perhaps", "no or yes"],
            21: ["verify-share=2", "from 0 to 1"]}.items():
        line = lines.pop(number, "")
        assert all(word in line for word in words), (number, said)
    assert set(lines) == {12}  # below a section that is none


@pytest.mark.parametrize("arguments, says", [
    (["--colour", "red"], ["--colour", "no such option"]), (["-x"], ["-x", "no such option"]),
    (["--max-body"], ["--max-body", "a value must follow"]), (["--ma", "3"], ["--ma", "more than one"]),
    (["--help=3"], ["--help=3", "no value"]), (["frob"], ["frob", "not an option"]),
    (["--codecs", "65"], ["--codecs", "codecs=65", "from 0 to 64"]),
    (["--listen", "1.2.3.4"], ["listen=1.2.3.4", "ADDRESS:PORT"]),
    (["--listen", ";".join(f"unix:/{i}" for i in range(17))], ["up to 16"]),
    (["--config", "/nonexistent"], ["/nonexistent", "No such file"]),
    (["--config", "/"], ["config=/"]),
    (["--node", "a b"], ["node=a b", "letters, digits"]), (["--node", "ä"], ["letters"]),
    (["--node", "x" * 64], ["at most 63"]), (["--node", "a/b"], ["letters"]),
    (["--agent-listen", "tls:127.0.0.1:1"], ["agent-listen=tls:127.0.0.1:1", "leave out tls:"]),
    (["--agent-listen", "1"], ["agent-listen=1", "ADDRESS:PORT"]),
    (["--formats", "png;bpg"], ["formats=png;bpg: expected"]),
    *((["--otlp-endpoint", endpoint], ["otlp-endpoint", "a URL"])
      for endpoint in ("localhost:4318", "ftp://x", "http://")),
])
def test_flags_in_our_words(arguments, says):
    status, said = check(*arguments)
    assert status == INVALID and all(word in said for word in says), said
    assert all(line.startswith("convolved: error: ") for line in said.splitlines()), said


def test_allowed():
    """The longest name; and for agents, as it tells hardly anything, an address without tokens."""
    assert check("--node", "x" * 63, "--agent-listen", "0.0.0.0:1") == (0, "")


def test_all_errors_of_all_sources(file):
    status, said = check("--max-jobs", "x", "--config", file("[limits]\nmax-jobs=y\nmax-wait=z\n"),
                         environment={"CONVOLVED_MAX_JOBS": "v", "CONVOLVED_MAX_BODY": "w"})
    assert status == INVALID
    for value in ("max-jobs=x", "max-jobs=v", "max-body=w", "max-jobs=y", "max-wait=z"):
        assert value in said, said


def test_unknown_variable():
    """Warned of, as it may be meant for something else; the client's and the tests' are known."""
    status, said = check(environment={"CONVOLVED_MAX_BODDY": "1", "CONVOLVED_URL": "x",
                                      "CONVOLVED_TOKEN_FILE": "x", "CONVOLVED_FAULT_GPU": "1"})
    assert status == 0
    assert said.count("\n") == 1 and "CONVOLVED_MAX_BODDY" in said and "--max-boddy" in said


def test_which_source_wins(launch, file):
    """Flags, the environment, the file, the defaults: shown by the largest body that is taken."""
    path = file("[limits]\nmax-body=30\nmax-pixels=5\n[workers]\ncodecs=1\n")
    environment = {"CONVOLVED_MAX_BODY": "20", "CONVOLVED_CONFIG": str(path)}
    target = "/v1/filters/box?raw=30x30x1:u8&format=raw"
    with launch("--max-body", "1000", environment=environment) as service:
        service.post(target, b"x" * 1001).refused(413, "body-too-large")
        service.post(target, b"x" * 900).refused(422, "too-many-pixels")  # from the file


def test_sections():
    """The checked-in sample and the help have the same options, and say what a reload changes."""
    text, sample = run("--help").stdout, run("--print-config").stdout
    helped = set(re.findall(r"^  --([a-z-]+) [A-Z]+$", text, re.M)) - {"config"}
    assert set(sections()) == helped and len(set(sections().values())) > 4
    assert sample == (REPOSITORY / "etc/convolved.conf").read_text()
    for option in helped:
        change = re.search(rf"^# Valid: .*[^.]\. Default: .*; (changed by a re\w+)\.\n#{option}=",
                           sample, re.M)[1]
        assert re.search(rf"^  --{option} .*\n.*{change}", text, re.M), option
    assert all(flag in text for flag in ("--check-config", "--print-config", "--version"))
    assert re.search(r"\d", run("--version").stdout)


def test_sample_is_valid_when_uncommented(file):
    """As it is, too. Every default can be written down, and is the value without it."""
    sample = run("--print-config").stdout
    for text in (sample, re.sub(r"^#([a-z-]+=)", r"\1", sample, flags=re.M)):
        assert check("--config", file(text)) == (0, "")


def test_manual():
    """The manual's part has every option and section, and groff finds nothing wrong with it."""
    text = subprocess.check_output(["sh", REPOSITORY / "docs/man/options.sh", BUILD / "convolved"],
                                   text=True)
    for option, section in sections().items():
        assert f".SS {section}\n" in text
        assert ".TP\n.B " + option.replace("-", "\\-") + "=\n" in text
    done = subprocess.run([tool("groff"), "-man", "-Kutf8", "-Tutf8", "-ww", "-z"], input=".TH X 5\n" + text,
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
