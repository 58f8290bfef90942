"""Comments start with their subject or with a verb: finds comments and docstrings that begin with one
of WORDS, or have a sentence or a paragraph that does.

comments.py [PATH...]: files and directories; by default all of the repository."""
import ast
import io
import pathlib
import re
import sys
import tokenize

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PATHS = "client daemon debian dev docs etc kernels page tests"
YET_TO_MEND = ""  # paths may leave this list, not come to it
TEXTS_OF_OTHERS = {"client/python/convolved/filters.py": "has the service's own texts"}
WORDS = "Of|What|Where|Who|How|Likewise"
START = re.compile(rf"^(?i:{WORDS})\b|(?:[.!?][\"')]* \(?|\n)(?:{WORDS})\b")
C = re.compile(r"""
    "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*` |
    /\*(?P<block>.*?)\*/ | //(?P<lines>[^\n]*(?:\n[ \t]*//[^\n]*)*)""", re.S | re.X)
SHELL = re.compile(r"(?:^|(?<=[ \t]))#(?!!)([^\n]*(?:\n[ \t]*#[^\n]*)*)", re.M)


def c_comments(text):
    for match in C.finditer(text):
        if match.lastgroup:
            yield (text.count("\n", 0, match.start()) + 1,
                   re.sub(r"^[ \t]*(\*|//)", "", match[match.lastgroup], flags=re.M))


def shell_comments(text):
    for match in SHELL.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, re.sub(r"^[ \t]*#", "", match[1], flags=re.M)


def python_comments(text):
    """Yields docstrings, then comments; those on consecutive lines without code are one."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) \
                and ast.get_docstring(node):
            yield node.body[0].lineno, ast.get_docstring(node)
    first, lines = 0, []  # a comment so far
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        row, column = token.start
        behind_code = token.line[:column].strip()
        if behind_code or row != first + len(lines):
            yield first, "\n".join(lines)
            first, lines = row, []
        if behind_code:
            yield row, token.string[1:]
        else:
            lines.append(token.string[1:])
    yield first, "\n".join(lines)


READERS = {".c": c_comments, ".h": c_comments, ".def": c_comments, ".cl": c_comments, ".js": c_comments,
           ".py": python_comments, ".sh": shell_comments}


def findings(file, name):
    reader = shell_comments if name == "dev" else READERS.get(file.suffix)
    for line, text in sorted(reader(file.read_text())) if reader else ():
        paragraphs = "\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))
        found = START.search(paragraphs)
        if found:
            yield f"{name}:{line}: {paragraphs[found.start():].lstrip('.!? (')[:60].strip()}"


def files(path):
    return sorted(part for part in path.rglob("*") if part.is_file()) if path.is_dir() else [path]


def main(*paths):
    skipped = () if paths else (*YET_TO_MEND.split(), *TEXTS_OF_OTHERS)
    found = []
    for path in map(pathlib.Path, paths or [REPOSITORY / part for part in PATHS.split()]):
        for file in files(path.absolute()):
            name = str(file.relative_to(REPOSITORY)) if file.is_relative_to(REPOSITORY) else file.name
            if not any(name == other or name.startswith(f"{other}/") for other in skipped):
                found += findings(file, name)
    print(*found, sep="\n", file=sys.stderr, end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
