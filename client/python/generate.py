#!/usr/bin/env python3
"""generate.py <openapi.json >convolved/filters.py: a function for each filter, and the type of the options,
from the service's description of itself:

    curl -s localhost:8700/openapi.json | client/python/generate.py >client/python/convolved/filters.py
"""
import json
import sys
import textwrap

START = '''"""The filters, one function each, and the options of all: made by generate.py from /openapi.json."""
from __future__ import annotations

from typing import Literal, TypedDict

from convolved.values import Filter, Matrix, Numbers, Value, given
'''
# These have a parameter of their own, or the client sets them.
APART = {"filters", "chain", "luma", "chroma"}

NO_BREAK = "\xa0"  # for a space at which no line ends


def wrapped(text, indent, first=""):
    return textwrap.fill(text, 100, initial_indent=first, subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)


def type_of(name, schema):
    """Returns the type of a parameter. The available formats depend on the service."""
    words = schema.get("enum", [])
    if words == [0, 1]:
        return "bool"
    if words and name != "format":
        return f"Literal[{', '.join(json.dumps(word) for word in words)}]"
    kind = schema.get("type", "string")
    if isinstance(kind, list):  # numbers and a text: a percentage, or several numbers
        return "float | str" if schema["pattern"].endswith("%$") else "Numbers"
    return {"integer": "int", "number": "float"}.get(kind, "str" if name == "format" else "Value")


def function(name, operation):
    """Returns the source of a filter's function."""
    own = [p for p in operation["parameters"] if p.get("in") == "query"]
    arguments, said = [], []
    for p in own:
        matrix = p["schema"].get("type") == "string"
        kind = "Matrix" if matrix else type_of(p["name"], p["schema"])
        arguments.append(f"{p['name']}: {kind}" + ("" if p["required"] else " | None = None"))
        said.append(wrapped(f"{p['name']}: {p['description']}", " " * 8, " " * 4))
    parts = [*(["*"] if own else []), *arguments]
    head = f"def {name}({', '.join(part.replace(' ', NO_BREAK) for part in parts)}) -> Filter:"
    text = wrapped(operation["summary"] + ("" if own else '"""'), " " * 4, '    """')
    head = wrapped(head.replace(") -> ", f"){NO_BREAK}->{NO_BREAK}"), " " * (len(name) + 5))
    lines = [head.replace(NO_BREAK, " "), text]
    if own:
        lines += ["", *said, '    """']
    return "\n".join([*lines, f'    return Filter("{name}", given(locals()))'])


def options(document):
    """Returns the source of the options' type."""
    chain = document["paths"]["/v1/chain"]["post"]["parameters"]
    names = [p["$ref"].rpartition("/")[2] for p in chain]
    lines = ["class Options(TypedDict, total=False):", '    """The options of any request."""']
    for name in names:
        parameter = document["components"]["parameters"][name]
        if parameter["in"] == "query" and name not in APART:
            lines += [wrapped(parameter["description"], "    # ", "    # "),
                      wrapped(f"{name}: {type_of(name, parameter['schema'])}", " " * 8, " " * 4)]
    return "\n".join(lines)


def generate(document):
    """Returns the source of convolved/filters.py."""
    stem = "/v1/filters/"
    filters = {path.removeprefix(stem): item["post"] for path, item in document["paths"].items()
               if path.startswith(stem) and "post" in item}
    parts = [START, options(document), *(function(*one) for one in filters.items())]
    return "\n\n".join(parts[:1]) + "\n\n" + "\n\n\n".join(parts[1:]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(generate(json.load(sys.stdin)))
