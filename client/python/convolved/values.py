"""Filters and the values of their parameters in the form of a query."""
from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Row: TypeAlias = Sequence[float] | np.ndarray
Matrix: TypeAlias = Sequence[Row] | np.ndarray | str
Numbers: TypeAlias = float | Row | Matrix
# Text parameters: numbers are joined by commas, rows of them by semicolons.
Value: TypeAlias = Numbers | Sequence[str | Row]


@dataclasses.dataclass(frozen=True, eq=False)
class Filter:
    """A filter with the parameters that are given; `filters` makes them."""
    name: str
    parameters: Mapping[str, Any]

    def __repr__(self) -> str:
        pairs = ", ".join(f"{name}={short(value)}" for name, value in self.parameters.items())
        return f"{self.name}({pairs})"


def short(value: Any) -> str:
    """Returns the value in a few words: the shape of a large array, both ends of a long text."""
    if isinstance(value, np.ndarray) and value.size > 9:
        return f"<{value.dtype} {'x'.join(map(str, value.shape))}>"
    return reprlib.repr(value.tolist() if isinstance(value, np.ndarray) else value)


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _is_number(value: Any) -> bool:
    return np.isscalar(value) and not isinstance(value, str)


def text(value: Any) -> str:
    """Returns the value in a query: numbers in as many digits as they need."""
    if isinstance(value, str):
        return value
    if _is_number(value):
        return repr(float(value)).removesuffix(".0")
    return ("," if all(map(_is_number, value)) else ";").join(map(text, value))


def chain(filters: Iterable[Filter]) -> str:
    """Returns NAME=key=value:key=value,NAME…, in which spaces separate the columns of a matrix."""
    links = []
    for one in filters:
        pairs = (f"{name}={text(value)}" for name, value in one.parameters.items())
        links.append("=".join(filter(None, (one.name, ":".join(pairs).replace(",", " ")))))
    return ",".join(links)
