"""What both clients do, but for the waiting. A step is a generator: it yields a request and is sent the
answer, or yields seconds to pause, and returns its result. clients.py takes the steps."""
from __future__ import annotations

import dataclasses
import datetime
import email.utils
import math
import os
import pathlib
import time
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, Unpack

import httpx
import numpy as np

from convolved import values
from convolved.filters import Options
from convolved.values import Filter

R = TypeVar("R")
Steps: TypeAlias = Generator[httpx.Request | float, httpx.Response | None, R]
# A file's bytes, its path, or pixels: (height, width) or (height, width, bands).
Image: TypeAlias = bytes | bytearray | memoryview | str | os.PathLike[str] | np.ndarray

TYPES: dict[str, np.dtype[Any]] = {"u8": np.dtype("u1"), "u16": np.dtype("<u2"), "f32": np.dtype("<f4")}
QUERY_MAX = 16000  # characters; longer parameters go as parts of a form
WAIT_MAX = 60  # seconds for which the service is asked to hold an answer


class Service(Protocol):
    http: Any  # httpx.Client or httpx.AsyncClient: both make requests in the same way
    patience: float


class Problem(Exception):
    """An error that the service answers (RFC 9457): `status`; `type`, such as "bad-parameter"; `title`,
    `detail`; `parameter` and `value`, if one is wrong; `retry_after`, in seconds; `request_id`, as in the
    service's log. `document` is all that it said, {} of an answer that was not the service's."""

    def __init__(self, status: int, document: Mapping[str, Any], request_id: str | None = None,
                 retry_after: float | None = None) -> None:
        super().__init__(status, document, request_id, retry_after)
        self.status, self.document = status, document
        self.request_id, self.retry_after = request_id, retry_after
        self.type: str = document.get("type", "").rpartition("/")[2]
        self.title: str = document.get("title", httpx.codes.get_reason_phrase(status))
        self.detail: str | None = document.get("detail")
        self.parameter: str | None = document.get("parameter")
        self.value: str | None = document.get("value")

    def __str__(self) -> str:
        return f"{self.status} {self.type}".strip() + f": {self.detail or self.title}"

    @classmethod
    def of(cls, response: httpx.Response) -> Problem:
        is_one = response.headers.get("content-type", "").startswith("application/problem+json")
        return cls(response.status_code, response.json() if is_one else {},
                   response.headers.get("x-request-id"),
                   _seconds(response.headers.get("retry-after")))


def _seconds(retry_after: str | None) -> float | None:
    """Of a Retry-After, which may be a date; None if it says nothing."""
    if retry_after is None or retry_after.isdecimal():
        return float(retry_after) if retry_after else None
    try:
        date = email.utils.parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    if date.tzinfo is None:  # -0000
        date = date.replace(tzinfo=datetime.timezone.utc)
    return max(0.0, (date - datetime.datetime.now(datetime.timezone.utc)).total_seconds())


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """A filtered image."""
    content: bytes
    headers: Mapping[str, str]

    @property
    def media_type(self) -> str:
        return self.headers["content-type"]

    @property
    def lost(self) -> list[str]:
        """What writing this format has lost, such as "lossy"."""
        return self.headers["x-lost"].split(", ") if "x-lost" in self.headers else []

    @property
    def timing(self) -> dict[str, float]:
        """Milliseconds of every stage and kernel."""
        entries = (entry.split(";dur=") for entry in self.headers["server-timing"].split(", "))
        return {name: float(milliseconds) for name, milliseconds in entries}

    @property
    def pixels(self) -> np.ndarray:
        """Of an answer with format="raw", as is that to an array: (height, width), with bands as a third
        dimension if there are several, and pages before them all if there are. Read-only."""
        if self.media_type != "application/octet-stream":
            raise ValueError(f"the answer is {self.media_type}: pixels need format=\"raw\"")
        shape, kind = self.headers["x-image"].split(":")
        width, height, bands = map(int, shape.split("x"))
        pixels = np.frombuffer(self.content, TYPES[kind]).reshape(-1, height, width, bands)
        pixels = pixels[..., 0] if bands == 1 else pixels
        return pixels[0] if len(pixels) == 1 else pixels

    def save(self, path: str | os.PathLike[str]) -> None:
        pathlib.Path(path).write_bytes(self.content)


@dataclasses.dataclass(frozen=True)
class Job:
    """An asynchronous job as it was when it was asked for."""
    id: str
    state: str  # waiting, running, done, failed or cancelled
    tiles_done: int
    tiles: int | None
    left_seconds: float | None

    @classmethod
    def of(cls, response: httpx.Response) -> Job:
        document = response.json()
        return cls(document["id"], document["state"], document["progress"]["tiles_done"],
                   document["progress"]["tiles"], document["left_seconds"])


# Requests -----------------------------------------------------------------------------------------

def _target(filters: Sequence[Filter], luma: Sequence[Filter], chroma: Sequence[Filter],
            options: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Path and query."""
    alone = len(filters) == 1 and not luma and not chroma
    if alone and not filters[0].parameters.keys() & options.keys():
        path, own = f"/v1/filters/{filters[0].name}", filters[0].parameters
    else:
        path = "/v1/chain"
        own = {"filters": values.chain(filters), "luma": values.chain(luma),
               "chroma": values.chain(chroma)}
    query = {name: values.text(value) for name, value in {**own, **values.given(options)}.items()}
    return path, {name: value for name, value in query.items() if value}


def _body(image: Image) -> tuple[bytes, dict[str, str]]:
    """The bytes to send, and what to say of them."""
    if isinstance(image, (str, os.PathLike)):
        return pathlib.Path(image).read_bytes(), {}
    if not isinstance(image, np.ndarray):
        return image if isinstance(image, bytes) else bytes(memoryview(image)), {}
    kind = next((name for name, dtype in TYPES.items()
                 if dtype == image.dtype.newbyteorder("<")), None)
    if kind is None or image.ndim not in (2, 3):
        raise TypeError("expected uint8, uint16 or float32 as (height, width) or (height, width, "
                        f"bands), not {image.dtype} as {image.shape}")
    height, width, bands = (*image.shape, 1)[:3]
    pixels = np.ascontiguousarray(image, TYPES[kind]).tobytes()
    return pixels, {"raw": f"{width}x{height}x{bands}:{kind}", "format": "raw"}


def _ask(service: Service, method: str, path: str, **parts: Any) -> Steps[httpx.Response]:
    """A request, and again after as long as the service says, while that is within its patience."""
    until = time.monotonic() + service.patience
    request = service.http.build_request(method, path, **parts)
    while True:
        response = yield request
        assert response is not None
        if response.is_success:
            return response
        problem = Problem.of(response)
        pause = problem.retry_after if problem.status in (429, 503) else None
        if pause is None or time.monotonic() + pause > until:
            raise problem
        yield pause


def _post(service: Service, image: Image, filters: Sequence[Filter], luma: Sequence[Filter],
          chroma: Sequence[Filter], options: Mapping[str, Any],
          headers: dict[str, str]) -> Steps[httpx.Response]:
    content, kind = _body(image)
    path, query = _target(filters, luma, chroma, {**kind, **options})
    parts: dict[str, Any] = {"params": query, "content": content}
    if sum(map(len, query.values())) > QUERY_MAX:
        parts = {"data": query, "files": {"image": content}}
    return (yield from _ask(service, "POST", path, headers=headers, **parts))


# Steps --------------------------------------------------------------------------------------------

def apply(service: Service, image: Image, *filters: Filter, luma: Sequence[Filter] = (),
          chroma: Sequence[Filter] = (), **options: Unpack[Options]) -> Steps[Result]:
    """Filters an image, with the filters one after another; `luma` and `chroma` are chains for these
    alone, after them. Raises Problem."""
    response = yield from _post(service, image, filters, luma, chroma, options, {})
    return Result(response.content, response.headers)


def submit(service: Service, image: Image, *filters: Filter, luma: Sequence[Filter] = (),
           chroma: Sequence[Filter] = (), **options: Unpack[Options]) -> Steps[Job]:
    """The same as a job, which goes on in the service: see result()."""
    response = yield from _post(service, image, filters, luma, chroma, options,
                                {"Prefer": "respond-async"})
    return Job.of(response)


def _path(job: Job | str) -> str:
    return f"/v1/jobs/{job if isinstance(job, str) else job.id}"


def job(service: Service, job: Job | str) -> Steps[Job]:
    """The job, or that with this id, as it is now."""
    return Job.of((yield from _ask(service, "GET", _path(job))))


def result(service: Service, job: Job | str, timeout: float = math.inf) -> Steps[Result]:
    """Waits for the end of a job. Raises the Problem that its image had, and TimeoutError after so many
    seconds; the job goes on then."""
    until = time.monotonic() + timeout
    while True:
        wait = math.ceil(max(0, min(until - time.monotonic(), WAIT_MAX)))
        try:
            response = yield from _ask(service, "GET", _path(job) + "/result",
                                       params={"wait": wait},
                                       timeout=httpx.Timeout(10, read=wait + 60))
            return Result(response.content, response.headers)
        except Problem as problem:
            if problem.type != "not-finished":
                raise
        if time.monotonic() >= until:
            raise TimeoutError(f"{_path(job)} has not ended within {timeout} s")


def cancel(service: Service, job: Job | str) -> Steps[None]:
    """Cancels a job, or forgets one that has ended."""
    yield from _ask(service, "DELETE", _path(job))


def get(service: Service, path: str) -> Steps[Any]:
    """JSON of the service, such as /v1/filters, /v1/devices and /v1/kernels."""
    return (yield from _ask(service, "GET", path)).json()
