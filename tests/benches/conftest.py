"""The modules and fixtures of ../http."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "http"))

from fixtures import cache  # noqa: E402, F401
