#!/usr/bin/python3
"""links.py ROOT: checks the pages below ROOT, an unpacked package: each link leads to a file or a section of a page
there, each picture is one, and nothing is fetched from elsewhere."""
import functools
import html.parser
import pathlib
import subprocess
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.parts, self.ids = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.ids |= {named[name] for name in ("id", "name") if name in named}
        if "href" in named:
            (self.links if tag == "a" else self.parts).append(named["href"])
        if "src" in named:
            self.parts.append(named["src"])


page_of = functools.cache(Page)


def wrong(path, link):
    """Returns what is wrong with a link of the page at the path, or None."""
    url = urllib.parse.urlsplit(link)
    if url.scheme in ("http", "https", "mailto"):
        return None
    if url.scheme or url.netloc:
        return "is no relative link"
    target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
    if not target.exists():
        return "leads nowhere"
    if url.fragment and url.fragment not in page_of(target).ids:
        return "leads to no section"
    return None


pages = sorted(pathlib.Path(sys.argv[1]).resolve().rglob("*.html"))
faults, pictures, count = [], set(), 0
for path in pages:
    page = page_of(path)
    count += len(page.links) + len(page.parts)
    faults += [f"{path}: {link} {fault}" for link in page.links + page.parts if (fault := wrong(path, link))]
    faults += [f"{path}: {part} is fetched from elsewhere" for part in page.parts if urllib.parse.urlsplit(part).scheme]
    pictures |= {target for part in page.parts if (target := path.parent / part).is_file()}
for picture in sorted(pictures):
    if subprocess.run(["vipsheader", picture], capture_output=True).returncode:
        faults.append(f"{picture}: is no picture")
if not count or not pictures:
    faults.append(f"{sys.argv[1]}: there are {len(pages)} pages with {count} links and {len(pictures)} pictures")
print(*faults, sep="\n", file=sys.stderr) if faults else print(
    f"{len(pages)} pages: all {count} links lead somewhere, {len(pictures)} pictures")
sys.exit(bool(faults))
