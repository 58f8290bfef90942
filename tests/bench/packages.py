"""The images in Debian's source packages, fetched once, into the user's cache directory."""
import hashlib
import pathlib
import re
import subprocess
import tarfile

from measure import CACHE
from mutations import format_of

PLACE = CACHE.with_name("convolved-corpus")
SUFFIX = re.compile(r"\.(jpe?g|jfif|png|apng|gif|webp|tiff?|bmp|dib|p[bgpnaf]m|heic|heif|avif|jxl|hdr|jp2|j2k|jpf|ico|icns|cur|"
                    r"tga|psd|pcx|xpm|xbm|svg|wbmp|qtif|fits|exr|mng|miff|sgi|fli|dcx|im|ras|crw|cr2|orf|nef|pict?)"
                    r"(\.gz|\.xz|\.bz2)?$", re.I)


def mirrors():
    """Returns lines of sources of source packages, from where this system has its packages."""
    release = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)[1]
    apt, lines = pathlib.Path("/etc/apt"), []
    for file in apt.glob("sources.list.d/*.sources"):
        for part in re.split(r"\n\s*\n", file.read_text()):
            fields = dict(re.findall(r"^([\w-]+):\s*(\S.*)", part, re.M))
            lines += [f"deb-src {place} {suite} main" for place in fields.get("URIs", "").split()
                      for suite in fields["Suites"].split() if suite.startswith(release)]
    for file in (*apt.glob("sources.list"), *apt.glob("sources.list.d/*.list")):
        lines += [f"deb-src {place} {suite} main" for place, suite in re.findall(
            rf"^deb\s+(?:\[.*?\]\s+)?(\S+)\s+({release}\S*)\s.*\bmain\b", file.read_text(), re.M)]
    return "".join(f"{line}\n" for line in lines)


def fetch(package):
    """Returns the archives of a source package, none if there is no such. The system's own sources of
    packages stay as they are."""
    apt = ["apt-get", f"-oDir::State::Lists={PLACE}/lists", f"-oDir::Etc::SourceList={PLACE}/sources.list",
           "-oDir::Etc::SourceParts=/dev/null", f"-oDir::Cache={PLACE}/apt", "-oAPT::Sandbox::User=", "-qq"]
    place = PLACE / "archives" / package.partition("/")[0]
    for directory in ("lists/partial", "apt/archives/partial", place):
        (PLACE / directory).mkdir(parents=True, exist_ok=True)
    if not any((PLACE / "lists").glob("*Sources*")):
        (PLACE / "sources.list").write_text(mirrors())
        subprocess.run([*apt, "update"], check=True)
    for name in package.split("/"):
        if not subprocess.run([*apt, "--download-only", "source", name], cwd=place, check=False,
                              stdout=subprocess.DEVNULL).returncode:
            return [path for path in sorted(place.iterdir()) if re.search(r"\.tar\.\w+$", path.name)]
    return []


def extract(package):
    """Returns {digest: path} of a package's images, by their first bytes or their names."""
    place, listed = PLACE / "files", PLACE / f"{package.partition('/')[0]}.files"
    place.mkdir(parents=True, exist_ok=True)
    if not listed.exists():
        names, archives = {}, fetch(package)
        for archive in archives:
            with tarfile.open(archive) as members:
                for member in members:
                    data = members.extractfile(member).read() if member.isfile() else b""
                    if data and (format_of(data[:64]) != "other" or SUFFIX.search(member.name)):
                        digest = hashlib.sha256(data).hexdigest()[:16]
                        names[digest] = member.name
                        (place / digest).write_bytes(data)
        if not archives:
            return {}
        listed.write_text("".join(f"{digest} {name}\n" for digest, name in sorted(names.items())))
    return {line.split()[0]: place / line.split()[0] for line in listed.read_text().splitlines()}
