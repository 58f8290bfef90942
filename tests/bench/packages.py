"""The images in Debian's source packages, fetched once, into the user's cache directory."""
import hashlib
import itertools
import pathlib
import re
import shutil
import subprocess
import tarfile

from measure import CACHE
from mutations import format_of

PLACE = CACHE.with_name("convolved-corpus")
SUFFIX = re.compile(r"\.(jpe?g|jfif|png|apng|gif|webp|tiff?|bmp|dib|p[bgpnaf]m|heic|heif|avif|jxl|hdr|jp2|j2k|jpf|ico|icns|cur|"
                    r"tga|psd|pcx|xpm|xbm|svg|wbmp|qtif|fits|exr|mng|miff|sgi|fli|dcx|im|ras|crw|cr2|orf|nef|pict?)"
                    r"(\.gz|\.xz|\.bz2)?$", re.I)


def mirrors():
    """Returns {suite: line} of sources of source packages, from where this system has its packages; first
    those of its release, last the next one: a mirror may lack an archive of one of them."""
    release = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)[1]
    apt, found = pathlib.Path("/etc/apt"), []
    for file in apt.glob("sources.list.d/*.sources"):
        for part in re.split(r"\n\s*\n", file.read_text()):
            fields = dict(re.findall(r"^([\w-]+):\s*(\S.*)", part, re.M))
            found += [(suite, place) for place in fields.get("URIs", "").split() for suite in fields["Suites"].split()]
    for file in (*apt.glob("sources.list"), *apt.glob("sources.list.d/*.list")):
        found += [(suite, place) for place, suite in re.findall(
            r"^deb\s+(?:\[.*?\]\s+)?(\S+)\s+(\S+)\s.*\bmain\b", file.read_text(), re.M)]
    found = {suite: place for suite, place in sorted(found, reverse=True) if suite.startswith(release)}
    found |= {"testing": found[release]}
    return {suite: f"deb-src {place} {suite} main\n" for suite, place in found.items()}


def fetch(package):
    """Has apt-get put the archives of a source package into this directory, which it returns. The
    system's own sources of packages stay as they are."""
    apt = ["apt-get", f"-oDir::State::Lists={PLACE}/lists", f"-oDir::Etc::SourceList={PLACE}/sources.list",
           "-oDir::Etc::SourceParts=/dev/null", f"-oDir::Cache={PLACE}/apt", "-oAPT::Sandbox::User=", "-qq"]
    place, suites = PLACE / "archives" / package.partition("/")[0], mirrors()
    for directory in ("lists/partial", "apt/archives/partial"):
        (PLACE / directory).mkdir(parents=True, exist_ok=True)
    if not any((PLACE / "lists").glob("*_testing_*Sources*")):
        (PLACE / "sources.list").write_text("".join(suites.values()))
        subprocess.run([*apt, "update"], check=True)
    for name, suite in itertools.product(package.split("/"), suites):
        shutil.rmtree(place, ignore_errors=True)  # parts, or those that another suite has
        place.mkdir(parents=True)
        if not subprocess.run([*apt, "--download-only", "source", f"{name}/{suite}"], cwd=place, check=False,
                              stdout=subprocess.DEVNULL).returncode:
            return place
    return None


def extract(package):
    """Returns the name and version of a package, and {digest: path} of its images, by their first bytes or
    their names; None, {} if no mirror has its archives."""
    place, listed = PLACE / "files", PLACE / f"{package.partition('/')[0]}.files"
    archives = PLACE / "archives" / package.partition("/")[0]
    place.mkdir(parents=True, exist_ok=True)
    if not listed.exists():
        if not fetch(package):
            return None, {}
        names = {}
        for archive in archives.glob("*.tar.*[!c]"):  # no signatures
            with tarfile.open(archive) as members:
                for member in members:
                    data = members.extractfile(member).read() if member.isfile() else b""
                    if data and (format_of(data[:64]) != "other" or SUFFIX.search(member.name)):
                        digest = hashlib.sha256(data).hexdigest()[:16]
                        names[digest] = member.name
                        (place / digest).write_bytes(data)
        listed.write_text("".join(f"{digest} {name}\n" for digest, name in sorted(names.items())))
    version, = archives.glob("*.dsc")
    return version.stem, {line.split()[0]: place / line.split()[0] for line in listed.read_text().splitlines()}
