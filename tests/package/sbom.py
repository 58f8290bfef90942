#!/usr/bin/python3
"""sbom.py DIRECTORY: writes a bill of materials (SPDX 2.3, JSON) of the packages in DIRECTORY, beside them: each package,
those on which it depends, and the libraries that its programs load at their start, with versions and licences. dpkg
on this system, where they were built, knows these. Says what is missing in the bill, if anything is."""
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

DOC = pathlib.Path("/usr/share/doc")
ID = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
# Debian's names of licences and SPDX's.
LICENCES = {"expat": "MIT", "mit": "MIT", "zlib": "Zlib", "isc": "ISC", "x11": "X11", "apache-2.0": "Apache-2.0",
            "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "bsd-4-clause": "BSD-4-Clause",
            "artistic-2.0": "Artistic-2.0", "cc0-1.0": "CC0-1.0", "ftl": "FTL", "mpl-1.1": "MPL-1.1", "mpl-2.0": "MPL-2.0",
            "ofl-1.1": "OFL-1.1", "bsl-1.0": "BSL-1.0", "unlicense": "Unlicense", "0bsd": "0BSD"}
LICENCES |= {f"{name}-{debian}{end}".lower(): f"{name}-{version}-{what}"
             for name, versions in {"GPL": ("1", "2", "3"), "LGPL": ("2", "2.1", "3"), "AGPL": ("3",)}.items()
             for number in versions for version in (number if "." in number else number + ".0",)
             for debian in (number, version) for end, what in (("", "only"), ("+", "or-later"))}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def stanzas(text):
    """Returns the fields of each paragraph of a file as Debian writes them."""
    return [dict(re.findall(r"^([A-Za-z][\w-]*):[ \t]*(.*(?:\n[ \t].*)*)", paragraph, re.M))
            for paragraph in re.split(r"\n\s*\n", text)]


class Bill:
    def __init__(self):
        self.packages, self.relations, self.texts = {}, set(), {}
        self.installed = {fields[0]: fields[1:] for line in output(
            "dpkg-query", "-Wf", "${Package} ${Version} ${Architecture} ${source:Package} ${source:Version} ${db:Status-Status}\n"
        ).splitlines() if (fields := line.split())[-1] == "installed"}

    def reference(self, package, name, text):
        """Returns the name of a licence that SPDX does not know, whose text goes into the bill."""
        label = "LicenseRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", f"{package}-{name}").strip("-")
        self.texts.setdefault(label, text.strip() or name)
        return label

    def expression(self, package, clause, own, texts):
        """Returns a clause of a licence's name in SPDX's words."""
        words = re.split(r"\s*,?\s+\b(and/or|and|or)\b\s+", clause)
        known = [{"and/or": "OR", "and": "AND", "or": "OR"}[word] if place % 2 else LICENCES.get(word.lower())
                 or self.reference(package, word, own or texts.get(word, "")) for place, word in enumerate(words)]
        return known[0] if len(known) == 1 else f"({' '.join(known)})"

    def licence(self, package, path):
        """Returns the licence and copyright of what the file describes."""
        text = path.read_text(errors="replace")
        paragraphs = stanzas(text)
        if "copyright-format" not in paragraphs[0].get("Format", ""):
            return self.reference(package, "copyright", text), "NOASSERTION"
        texts = dict(p["License"].partition("\n")[::2] for p in reversed(paragraphs) if "License" in p)
        found, holders = {}, {}
        for paragraph in paragraphs:
            if "Files" in paragraph and not paragraph["Files"].strip().startswith("debian/"):
                name, _, own = paragraph.get("License", "").partition("\n")
                clauses = [self.expression(package, clause, own, texts)
                           for clause in re.split(r",\s+and\s+", name.strip())]  # binds less than any other word
                found |= dict.fromkeys(clauses)
                holders |= dict.fromkeys(line.strip() for line in paragraph.get("Copyright", "").splitlines() if line.strip())
        return " AND ".join(found) or "NOASSERTION", "\n".join(holders) or "NOASSERTION"

    def add(self, name, version, architecture, licence, copyright, **more):
        label = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name.replace("+", "plus"))
        self.packages[name] = {
            "name": name, "SPDXID": label, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": licence, "copyrightText": copyright,
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{name.replace('+', '%2B')}@{version.replace('+', '%2B')}"
                              f"?arch={architecture}"}], **more}

    def add_installed(self, name):
        """Adds a package of this system; fails if there is none."""
        if name not in self.packages:
            version, architecture, source, source_version, _ = self.installed[name]
            self.add(name, version, architecture, *self.licence(name, DOC / name / "copyright"),
                     sourceInfo=f"Debian's source package {source} {source_version}", primaryPackagePurpose="LIBRARY")

    def relate(self, package, other):
        if package != other:
            self.relations.add((package, other))

    def owners(self, paths):
        """Returns which package of this system has each of the files."""
        names = {path.removeprefix("/usr"): path for path in paths}
        said = subprocess.run(["dpkg-query", "-S", *names, *names.values()], capture_output=True, text=True).stdout
        owners = {names[path.removeprefix("/usr")]: package.partition(":")[0]
                  for package, path in re.findall(r"^(\S+): (/.+)$", said, re.M)}
        if missing := set(paths) - set(owners):
            sys.exit(f"sbom.py: no package of this system has {', '.join(sorted(missing))}")
        return owners

    def add_libraries(self, package, program):
        """Adds what the program loads at its start, and which library asks for which."""
        places = {name: os.path.realpath(path) for name, path in re.findall(r"^\s+(\S+) => (/\S+)", output("ldd", program), re.M)}
        whose = {str(program): package} | self.owners(places.values())
        for file, asking in whose.items():
            self.add_installed(asking)
            for name in re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", file)):
                if name in places:
                    self.add_installed(whose[places[name]])
                    self.relate(asking, whose[places[name]])

    def add_depends(self, package, depends):
        """Adds the first alternative of each dependency that is there or among the packages themselves."""
        for clause in filter(None, re.split(r",\s*", depends)):
            names = [re.match(r"[a-z0-9.+-]+", one.strip())[0] for one in clause.split("|")]
            there = [name for name in names if name in self.packages or name in self.installed]
            if not there:
                sys.exit(f"sbom.py: {package} depends on {clause.strip()}, which is not installed")
            self.add_installed(there[0])
            self.relate(package, there[0])


def programs(root):
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def faults(document):
    """Returns what SPDX 2.3 requires and the document lacks."""
    wanted = {"spdxVersion": r"SPDX-2\.3", "dataLicense": r"CC0-1\.0", "SPDXID": "SPDXRef-DOCUMENT", "name": r".+",
              "documentNamespace": r"https://[^#\s]+"}
    wrong = [f"{name}: {document.get(name)}" for name, form in wanted.items() if not re.fullmatch(form, document.get(name, ""))]
    created = document["creationInfo"]
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", created["created"]) or not created["creators"]:
        wrong.append(f"creationInfo: {created}")
    known = {document["SPDXID"]} | {package["SPDXID"] for package in document["packages"]}
    if len(known) != 1 + len(document["packages"]):
        wrong.append("two packages have one SPDXID")
    wrong += [f"SPDXID: {one}" for one in known if not ID.fullmatch(one)]
    licences = {one["licenseId"] for one in document["hasExtractedLicensingInfos"]}
    for package in document["packages"]:
        wrong += [f"{package['name']}: no {name}" for name in ("versionInfo", "downloadLocation", "licenseDeclared",
                                                               "licenseConcluded", "copyrightText") if not package.get(name)]
        named = set(re.findall(r"LicenseRef-[A-Za-z0-9.-]+", package["licenseDeclared"]))
        wrong += [f"{package['name']}: {one} has no text" for one in named - licences]
        if package["licenseDeclared"] == "NOASSERTION":
            wrong.append(f"{package['name']}: its licence is unknown")
    ends = {one[end] for one in document["relationships"] for end in ("spdxElementId", "relatedSpdxElement")}
    return wrong + [f"{one} is in no relationship" for one in known - ends] + [f"{one} is no package" for one in ends - known]


directory = pathlib.Path(sys.argv[1])
bill = Bill()
debs = [path for path in sorted(directory.glob("*.deb")) if "-dbgsym_" not in path.name]
own = {path: stanzas(output("dpkg-deb", "-f", path))[0] for path in debs}
with tempfile.TemporaryDirectory() as place:
    for path, fields in own.items():
        root = pathlib.Path(place) / fields["Package"]
        subprocess.run(["dpkg-deb", "-x", path, root], check=True)
        licence, copyright = bill.licence(fields["Package"], root / f"usr/share/doc/{fields['Package']}/copyright")
        bill.add(fields["Package"], fields["Version"], fields["Architecture"], licence, copyright, packageFileName=path.name,
                 supplier="Organization: " + fields["Maintainer"].replace("<", "(").replace(">", ")"),
                 checksums=[{"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}],
                 primaryPackagePurpose="APPLICATION" if fields["Architecture"] != "all" else "OTHER")
    names = list(bill.packages)
    for path, fields in own.items():
        for program in programs(pathlib.Path(place) / fields["Package"]):
            bill.add_libraries(fields["Package"], program)
        bill.add_depends(fields["Package"], fields.get("Depends", ""))
architecture = next(fields["Architecture"] for fields in own.values() if fields["Architecture"] != "all")
name = f"{own[debs[0]].get('Source', names[0])}_{own[debs[0]]['Version']}_{architecture}"
sums = "".join(bill.packages[one]["checksums"][0]["checksumValue"] for one in names)
created = datetime.datetime.fromtimestamp(
    int(output("dpkg-parsechangelog", "-l", pathlib.Path(__file__).parents[2] / "debian/changelog", "-S", "Timestamp")),
    datetime.timezone.utc)
document = {
    "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
    "documentNamespace": f"https://convolved.example/spdx/{name}-{hashlib.sha256(sums.encode()).hexdigest()}",
    "creationInfo": {"created": f"{created:%Y-%m-%dT%H:%M:%SZ}", "creators": ["Tool: sbom.py", "Organization: Convolved developers"]},
    "packages": list(bill.packages.values()),
    "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                       "relatedSpdxElement": bill.packages[one]["SPDXID"]} for one in names]
    + [{"spdxElementId": bill.packages[one]["SPDXID"], "relationshipType": "DEPENDS_ON",
        "relatedSpdxElement": bill.packages[other]["SPDXID"]} for one, other in sorted(bill.relations)],
    "hasExtractedLicensingInfos": [{"licenseId": label, "extractedText": text} for label, text in sorted(bill.texts.items())]}
if wrong := faults(document):
    sys.exit("\n".join(wrong))
result = directory / f"{name}.spdx.json"
result.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
print(f"{result.name}: {len(names)} packages, {len(bill.packages) - len(names)} on which they depend")
