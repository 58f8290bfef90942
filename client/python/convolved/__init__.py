"""The client of the image filtering service convolved: Client waits for its answers, AsyncClient awaits
them; `filters` has a function for each filter."""
from convolved import filters
from convolved.clients import AsyncClient, Client
from convolved.core import Job, Problem, Result
from convolved.values import Filter

__version__ = "0.1.0"
__all__ = ["AsyncClient", "Client", "Filter", "Job", "Problem", "Result", "filters"]
