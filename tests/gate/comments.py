"""Comments start with their subject or with a verb: finds comments and docstrings that begin with one
of WORDS, or have a sentence or a paragraph that does.

comments.py [PATH...]: files and directories; by default all of the repository."""
import pathlib
import re
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PATHS = "client daemon debian dev docs etc kernels page tests"
GENERATED = "client/python/convolved/filters.py"  # has the service's own texts
INPUTS = "corpus"  # a directory of any bytes
WORDS = "Of|What|Where|Who|How|Likewise"
START = re.compile(rf"^(?i:{WORDS})\b|(?:[.!?][\"')]* \(?|\n)(?:{WORDS})\b")
TEXT = r""" "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' """
C = re.compile(TEXT + r"""| `(?:\\.|[^`\\])*`
    | /\*(?P<block>.*?)\*/ | //(?P<lines>[^\n]*(?:\n[ \t]*//[^\n]*)*)""", re.S | re.X)
PYTHON = re.compile(rf''' """(?P<block>.*?)""" | {TEXT}
    | \#(?!!)(?P<lines>[^\n]*(?:\n[ \t]*\#[^\n]*)*)''', re.S | re.X)
SHELL = re.compile(r"(?:^|(?<=[ \t]))#(?!!)(?P<lines>[^\n]*(?:\n[ \t]*#[^\n]*)*)", re.M)
PATTERNS = {".c": C, ".h": C, ".def": C, ".cl": C, ".js": C, ".py": PYTHON, ".sh": SHELL, "": SHELL}


def comments(pattern, text):
    """Yields (line, text) of each comment; those on consecutive lines are one."""
    for match in pattern.finditer(text):
        if match.lastgroup:
            yield (text.count("\n", 0, match.start()) + 1,
                   re.sub(r"^[ \t]*(?:\*|//|#)", "", match[match.lastgroup], flags=re.M))


def findings(file, name):
    pattern = PATTERNS.get(file.suffix)
    for line, text in comments(pattern, file.read_text()) if pattern else ():
        paragraphs = "\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))
        found = START.search(paragraphs)
        if found:
            yield f"{name}:{line}: {paragraphs[found.start():].lstrip('.!? (')[:60].strip()}"


def files(path):
    inside = (part for part in path.rglob("*") if part.is_file() and INPUTS not in part.parts)
    return sorted(inside) if path.is_dir() else [path]


def main(*paths):
    found = []
    for path in map(pathlib.Path, paths or [REPOSITORY / part for part in PATHS.split()]):
        for file in files(path.absolute()):
            name = str(file.relative_to(REPOSITORY)) if file.is_relative_to(REPOSITORY) else file.name
            if name != GENERATED:
                found += findings(file, name)
    print(*found, sep="\n", file=sys.stderr, end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
