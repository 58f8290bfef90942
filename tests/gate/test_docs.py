"""Names in the documents exist: linked files and sections, sources, errors."""
import re
import subprocess

import pytest

from service import BUILD, REPOSITORY

DOCUMENTS = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")])
NAMES = [str(document.relative_to(REPOSITORY)) for document in DOCUMENTS]
SOURCES = {str(path.relative_to(REPOSITORY)) for name in ("daemon", "client", "kernels", "tests", "docs", "etc")
           for path in (REPOSITORY / name).rglob("*") if path.is_file()}


def prose(document):
    return re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)


def anchors(document):
    """Returns the anchors as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.+)$", prose(document), re.M)}


def check_links(document):
    for link in re.findall(r"\]\(([^)]+)\)", prose(document)):
        if link.startswith("http"):
            continue
        path, _, section = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), link
        assert not section or section in anchors(target), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_links_lead_somewhere(document):
    check_links(document)


def test_links_of_installed_documents(tmp_path):
    """Documents lie elsewhere then, beside each other; so do the files that they link to."""
    subprocess.run(["make", "-s", "-C", BUILD, "install", f"DESTDIR={tmp_path}"], check=True, timeout=600,
                   stdout=subprocess.DEVNULL)
    documents = list(tmp_path.glob("**/doc/convolved/**/*.md"))
    assert len(documents) >= len(DOCUMENTS)
    for document in documents:
        check_links(document)


def test_no_token_is_an_argument():
    """Every user of a host can read the arguments of its processes."""
    for path in [*DOCUMENTS, *(path for name in ("client", "page", "etc", "debian", "systemd", "docs/man")
                               for path in (REPOSITORY / name).rglob("*") if path.is_file())]:
        if path.suffix in (".jpg", ".pyc"):
            continue
        assert not re.search(r"-(H|-header)[ =]?[\"']Authorization|--token[ =](?!FILE)", path.read_text()), path


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_sources_are_there(document):
    """A source is named by its path, or by the end of it."""
    for name in re.findall(r"`([\w/.-]+\.(?:c|h|cl|def|py|sh))`", document.read_text()):
        assert any(("/" + source).endswith("/" + name) for source in SOURCES), name


def test_every_picture_is_shown():
    shown = {link for document in DOCUMENTS for link in re.findall(r"images/(\w[\w-]*\.jpg)\)", document.read_text())}
    assert shown == {path.name for path in (REPOSITORY / "docs/images").glob("*.jpg")}


def test_every_error_is_listed():
    rows = re.findall(r'^ERROR\(\w+, (\d+), "([\w-]+)"', (REPOSITORY / "daemon/base/error.def").read_text(), re.M)
    table = (REPOSITORY / "docs/api.md").read_text().split("| status | `type`")[1].split("\n\n")[0]
    for status, slug in rows[1:]:
        assert re.search(rf"^\| [\d, ]*\b{status}\b.*`{slug}`", table, re.M), slug


def test_every_room_is_on_the_map():
    rooms = {str(file.parent.relative_to(REPOSITORY / "daemon"))
             for file in (REPOSITORY / "daemon").rglob("*.c")}
    table = (REPOSITORY / "docs/architecture.md").read_text().split("| room | its job |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `([\w/]+)`", table, re.M)) == rooms
