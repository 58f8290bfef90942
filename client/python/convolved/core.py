"""The common part of both clients: everything but waiting. A step is a generator: it yields a
request and is sent the answer, or thrown what httpx raises, or yields seconds to pause, and returns
its result. clients.py takes the steps."""
from __future__ import annotations

import dataclasses
import datetime
import email.utils
import math
import os
import pathlib
import time
import urllib.parse
import uuid
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar, Unpack

import httpx
import numpy as np

from convolved import values
from convolved.filters import Options
from convolved.values import Filter

R = TypeVar("R")
Steps: TypeAlias = Generator[httpx.Request | float, httpx.Response | None, R]


class Readable(Protocol):
    def read(self) -> bytes: ...


class Pixels(Protocol):
    def __array__(self) -> np.ndarray: ...


class Picture(Protocol):
    """An image of PIL, as far as it is used here."""
    mode: str
    info: Any
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def convert(self, mode: str) -> Any: ...


# A file: its bytes, its path, or open in binary mode; or pixels: (height, width) or (height, width,
# bands).
Image: TypeAlias = (bytes | bytearray | memoryview | str | os.PathLike[str] | Readable | np.ndarray
                    | Pixels | Picture)

TYPES: dict[str, np.dtype[Any]] = {"u8": np.dtype("u1"), "u16": np.dtype("<u2"), "f32": np.dtype("<f4")}
QUERY_MAX = 16000  # characters; longer parameters go as parts of a form
WAIT_MAX = 60  # seconds for which the service is asked to hold an answer
BROKEN = (httpx.NetworkError, httpx.RemoteProtocolError)  # there is, or was, no connection
PAUSE_MIN, PAUSE_MAX = 0.25, 8  # seconds before a request is sent again, at least: doubled each time
# PIL's modes that need another one for the service: its samples are grey or RGB, alpha comes last.
MODES = {mode: mode for mode in ("L", "LA", "RGB", "RGBA", "I;16", "I;16L", "I;16B", "F")} | {
    "1": "L", "P": "RGB", "PA": "RGBA", "La": "LA", "RGBa": "RGBA", "RGBX": "RGB", "CMYK": "RGB",
    "YCbCr": "RGB", "HSV": "RGB"}


class Service(Protocol):
    http: Any  # httpx.Client or httpx.AsyncClient: both make requests in the same way
    patience: float


class Problem(Exception):
    """An error that the service answers (RFC 9457): `status`; `type`, such as "bad-parameter";
    `title`, `detail`; `parameter` and `value`, if one is wrong; `retry_after`, in seconds;
    `request_id`, as in the service's log. `document` is the whole answer, {} for an answer that was
    not the service's. A page of another server is a problem too; its status may be 200."""

    def __init__(self, status: int, document: Mapping[str, Any], request_id: str | None = None,
                 retry_after: float | None = None, detail: str | None = None) -> None:
        super().__init__(status, document, request_id, retry_after, detail)
        self.status, self.document = status, document
        self.request_id, self.retry_after = request_id, retry_after
        said = {name: value for name, value in document.items() if isinstance(value, str)}
        self.type: str = said.get("type", "").rpartition("/")[2]
        self.title: str = said.get("title", httpx.codes.get_reason_phrase(status))
        self.detail: str | None = said.get("detail", detail)
        self.parameter: str | None = said.get("parameter")
        self.value: str | None = said.get("value")

    def __str__(self) -> str:
        return f"{self.status} {self.type}".strip() + f": {self.detail or self.title}"

    def __repr__(self) -> str:
        text = str(self)
        return f"<Problem {text if len(text) <= 200 else text[:199] + '…'}>"

    @classmethod
    def of(cls, response: httpx.Response, detail: str | None = None) -> Problem:
        is_one = response.headers.get("content-type", "").startswith("application/problem+json")
        document = _document(response) if is_one else {}
        return cls(response.status_code, document, response.headers.get("x-request-id"),
                   _seconds(response.headers.get("retry-after")), detail)


def _document(response: httpx.Response) -> dict[str, Any]:
    """Returns the object that the answer is in JSON; {} if it is none."""
    try:
        document = response.json()
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _refuse(response: httpx.Response, expected: str) -> NoReturn:
    """Raises the Problem of an answer that is not the expected one."""
    raise Problem.of(response, f"expected {expected}, not an answer of type "
                     f"{response.headers.get('content-type', '(none)')} with "
                     f"{len(response.content)} bytes: is there a convolved at "
                     f"{response.url.host}?")


def _seconds(retry_after: str | None) -> float | None:
    """Returns the seconds of a Retry-After, which may be a date; None if it says nothing."""
    if retry_after is None or retry_after.isdecimal():
        return float(retry_after) if retry_after else None
    try:
        date = email.utils.parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:  # -0000
        date = date.replace(tzinfo=datetime.timezone.utc)
    return max(0.0, (date - datetime.datetime.now(datetime.timezone.utc)).total_seconds())


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """A filtered image."""
    content: bytes
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        kind = ", ".join(filter(None, map(self.headers.get, ("content-type", "x-image"))))
        return f"<Result {kind}: {len(self.content)} bytes>"

    @classmethod
    def of(cls, response: httpx.Response) -> Result:
        """Returns the answer, if it is an image from a convolved."""
        kind = response.headers.get("content-type", "")
        if (response.status_code != 200 or "x-image" not in response.headers or not response.content
                or not (kind.startswith("image/") or kind == "application/octet-stream")):
            _refuse(response, "an image")
        return cls(response.content, response.headers)

    @property
    def media_type(self) -> str:
        return self.headers["content-type"]

    @property
    def lost(self) -> list[str]:
        """The losses of this format, such as "lossy"."""
        return self.headers["x-lost"].split(", ") if "x-lost" in self.headers else []

    @property
    def timing(self) -> dict[str, float]:
        """Milliseconds of every stage and kernel."""
        entries = (entry.split(";dur=") for entry in self.headers["server-timing"].split(", "))
        return {name: float(milliseconds) for name, milliseconds in entries}

    @property
    def pixels(self) -> np.ndarray:
        """The pixels of an answer with format="raw", and of one to an array: (height, width), with
        bands as a third dimension if there are several, and pages before them all if there are.
        Read-only."""
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
    """The state of an asynchronous job at the time of its request."""
    id: str
    state: str  # waiting, running, done, failed or cancelled
    tiles_done: int
    tiles: int | None
    left_seconds: float | None
    kept_seconds: int | None = None  # for which an ended one is kept

    @classmethod
    def of(cls, response: httpx.Response) -> Job:
        return cls._read(response, _document(response), "a job")

    @classmethod
    def all_of(cls, response: httpx.Response) -> list[Job]:
        jobs = _document(response).get("jobs")
        if not isinstance(jobs, list):
            _refuse(response, "jobs")
        return [cls._read(response, document, "jobs") for document in jobs]

    @classmethod
    def _read(cls, response: httpx.Response, document: Any, expected: str) -> Job:
        try:
            return cls(document["id"], document["state"], document["progress"]["tiles_done"],
                       document["progress"]["tiles"], document["left_seconds"],
                       document.get("kept_seconds"))
        except (AttributeError, KeyError, TypeError):
            _refuse(response, expected)


# Requests -----------------------------------------------------------------------------------------

def _target(filters: Sequence[Filter], luma: Sequence[Filter], chroma: Sequence[Filter],
            preset: str, options: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Path and query."""
    alone = len(filters) == 1 and not luma and not chroma and not preset
    if alone and not filters[0].parameters.keys() & options.keys():
        path, own = f"/v1/filters/{filters[0].name}", filters[0].parameters
    else:
        path = f"/v1/presets/{urllib.parse.quote(preset, safe='')}" if preset else "/v1/chain"
        own = {"filters": values.chain(filters), "luma": values.chain(luma),
               "chroma": values.chain(chroma)}
    query = {name: values.text(value) for name, value in {**own, **values.given(options)}.items()}
    return path, {name: value for name, value in query.items() if value}


def _picture(image: Picture) -> tuple[np.ndarray, dict[str, Any]]:
    """Returns the pixels of an image of PIL, and the description of their bands."""
    if (mode := MODES.get(image.mode)) is None:
        raise TypeError(f"images of mode {image.mode} are not taken: convert() it to RGB")
    if "transparency" in image.info and mode in ("L", "RGB"):
        mode = "RGBA"
    pixels = np.asarray(image if mode == image.mode else image.convert(mode))
    return pixels, {"alpha": True} if mode.endswith("A") else {}


def _file(image: Any) -> bytes:
    """Returns the bytes of a file: as given, from its path, or from the position of the open file on."""
    if isinstance(image, (str, os.PathLike)):
        return pathlib.Path(image).read_bytes()
    if isinstance(image, bytes):
        return image
    try:
        return bytes(memoryview(image))
    except TypeError:
        if not hasattr(image, "read"):
            raise TypeError("expected an image: bytes, a path, a file open in binary mode, or pixels, "
                            f"not {type(image).__name__}") from None
    content = image.read()
    if not isinstance(content, bytes):
        raise TypeError(f"expected a file open in binary mode: read() gave {type(content).__name__}")
    if not content:
        raise ValueError("the file has nothing to read from where it stands: seek(0) goes to its start")
    return content


def _pixels(image: Any) -> tuple[np.ndarray | None, dict[str, Any]]:
    """Returns pixels, and the description of their bands; None for a file."""
    if all(hasattr(image, name) for name in ("mode", "info", "convert", "__array_interface__")):
        return _picture(image)
    if (not isinstance(image, (bytes, str, os.PathLike))
            and any(hasattr(image, name) for name in ("__array__", "__array_interface__"))):
        return np.asarray(image), {}
    return None, {}


def _kind(pixels: np.ndarray) -> tuple[str, int, int, int]:
    """Returns their type, height, width and bands."""
    kind = next((name for name, dtype in TYPES.items()
                 if dtype == pixels.dtype.newbyteorder("<")), None)
    if kind is None or pixels.ndim not in (2, 3):
        raise TypeError("expected uint8, uint16 or float32 as (height, width) or (height, width, "
                        f"bands), not {pixels.dtype} as {pixels.shape}")
    height, width, bands = (*pixels.shape, 1)[:3]
    return kind, height, width, bands


def _body(image: Any) -> tuple[bytes, dict[str, Any]]:
    """Returns the bytes to send, and their description."""
    pixels, said = _pixels(image)
    if pixels is None:
        return _file(image), {}
    kind, height, width, bands = _kind(pixels)
    return (np.ascontiguousarray(pixels, TYPES[kind]).tobytes(),
            {"raw": f"{width}x{height}x{bands}:{kind}", "format": "raw", **said})


def _mask(mask: Any) -> bytes:
    """Returns a mask as a file: pixels as one of Netpbm's, with the last row first in floats."""
    pixels, _ = _pixels(mask)
    if pixels is None:
        return _file(mask)
    if pixels.dtype == bool:
        pixels = pixels * np.uint8(255)
    kind, height, width, bands = _kind(pixels)
    if bands not in (1, 3):
        raise TypeError(f"expected a mask in grey or RGB without alpha, not of {bands} bands")
    if kind == "f32":
        return b"P%c\n%d %d\n-1\n" % (b"fF"[bands // 3], width, height) + pixels[::-1].astype("<f4").tobytes()
    most = int(np.iinfo(pixels.dtype).max)
    return (b"P%d\n%d %d\n%d\n" % (5 + bands // 3, width, height, most)
            + pixels.astype(pixels.dtype.newbyteorder(">")).tobytes())


def _ask(service: Service, method: str, path: str, until: float = math.inf, repeated: bool = False,
         **parts: Any) -> Steps[httpx.Response]:
    """Sends a request, and again when the service says, while that is within its patience and
    before `until`; one that may be repeated, also when its connection breaks."""
    until = min(until, time.monotonic() + service.patience)
    request = service.http.build_request(method, path, **parts)
    least = float(PAUSE_MIN)
    while True:
        error: Exception
        try:
            response = yield request
            assert response is not None
            if response.is_success:
                return response
            error = problem = Problem.of(response)
            if problem.status not in (429, 503) or problem.retry_after is None:
                raise problem
            pause = max(problem.retry_after, least)
        except BROKEN as broken:
            if not repeated:
                raise
            error, pause = broken, least
        if math.isinf(pause) or time.monotonic() + pause > until:
            raise error
        yield pause
        least = min(2 * least, PAUSE_MAX)


def _post(service: Service, image: Image, filters: Sequence[Filter], luma: Sequence[Filter],
          chroma: Sequence[Filter], preset: str, mask: Image | None, options: Mapping[str, Any],
          **more: Any) -> Steps[httpx.Response]:
    content, kind = _body(image)
    path, query = _target(filters, luma, chroma, preset, {**kind, **options})
    is_long = sum(map(len, query.values())) > QUERY_MAX
    files = {"image": content} | ({} if mask is None else {"mask": _mask(mask)})
    parts: dict[str, Any] = {"data" if is_long else "params": query}
    parts |= {"files": files} if is_long or mask is not None else {"content": content}
    return (yield from _ask(service, "POST", path, **more, **parts))


# Steps --------------------------------------------------------------------------------------------

def apply(service: Service, image: Image, *filters: Filter, luma: Sequence[Filter] = (),
          chroma: Sequence[Filter] = (), preset: str = "", mask: Image | None = None,
          **options: Unpack[Options]) -> Steps[Result]:
    """Filters an image, with the filters in turn; `luma` and `chroma` are chains for these alone,
    after them. Instead, `preset` names a chain of the service. The result is written where `mask`
    is white (or True); the original stays where it is black. Raises Problem."""
    response = yield from _post(service, image, filters, luma, chroma, preset, mask, options)
    return Result.of(response)


def submit(service: Service, image: Image, *filters: Filter, luma: Sequence[Filter] = (),
           chroma: Sequence[Filter] = (), preset: str = "", mask: Image | None = None,
           key: str | None = None, **options: Unpack[Options]) -> Steps[Job]:
    """Filters as a job, which goes on in the service: see result(). It is sent again when the
    connection breaks, with the same Idempotency-Key, so that it remains one job: `key`, or one of
    its own. The same `key` later means the same job, for as long as the service has it."""
    response = yield from _post(service, image, filters, luma, chroma, preset, mask, options,
                                repeated=True,
                                headers={"Prefer": "respond-async",
                                         "Idempotency-Key": key or str(uuid.uuid4())})
    return Job.of(response)


def jobs(service: Service) -> Steps[list[Job]]:
    """Returns this client's jobs: those of its token, or those of this host."""
    return Job.all_of((yield from _ask(service, "GET", "/v1/jobs")))


def _path(job: Job | str) -> str:
    return f"/v1/jobs/{job if isinstance(job, str) else job.id}"


def job(service: Service, job: Job | str) -> Steps[Job]:
    """Returns the job, or that with this id, in its present state."""
    return Job.of((yield from _ask(service, "GET", _path(job))))


def result(service: Service, job: Job | str, timeout: float = math.inf) -> Steps[Result]:
    """Waits for the end of a job, also while the service starts again. Raises the Problem that its
    image had, and TimeoutError after `timeout` seconds; the job goes on then."""
    until, least = time.monotonic() + timeout, float(PAUSE_MIN)
    while True:
        asked = time.monotonic()
        wait = math.ceil(max(0, min(until - asked, WAIT_MAX)))
        try:
            response = yield from _ask(service, "GET", _path(job) + "/result", until,
                                       repeated=True, params={"wait": wait},
                                       timeout=httpx.Timeout(10, read=wait + 60))
            return Result.of(response)
        except Problem as problem:
            if problem.type != "not-finished":
                raise
        now = time.monotonic()
        if now >= until:
            raise TimeoutError(f"{_path(job)} has not ended within {timeout} s")
        if now - asked < wait / 2:  # the service has not waited, or a proxy has answered for it
            yield min(least, until - now)
            least = min(2 * least, PAUSE_MAX)


def cancel(service: Service, job: Job | str) -> Steps[None]:
    """Cancels a job, or forgets one that has ended."""
    yield from _ask(service, "DELETE", _path(job))


def get(service: Service, path: str) -> Steps[Any]:
    """Returns JSON of the service, such as /v1/filters, /v1/devices and /v1/kernels."""
    response = yield from _ask(service, "GET", path)
    try:
        return response.json()
    except (ValueError, RecursionError):
        _refuse(response, "JSON")
