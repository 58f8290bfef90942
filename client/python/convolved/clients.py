"""The clients, which take the steps of core.py: one waits, one awaits."""
from __future__ import annotations

import asyncio
import functools
import ipaddress
import os
import pathlib
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx

import convolved
from convolved import core

P = ParamSpec("P")
R = TypeVar("R")


def _waits(step: Callable[Concatenate[Any, P], core.Steps[R]]
           ) -> Callable[Concatenate[Client, P], R]:
    @functools.wraps(step)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> R:
        steps = step(self, *args, **kwargs)
        try:
            asked = next(steps)
            while True:
                try:
                    answer = (self.http.send(asked) if isinstance(asked, httpx.Request)
                              else time.sleep(asked))
                except httpx.TransportError as error:
                    asked = steps.throw(error)
                else:
                    asked = steps.send(answer)
        except StopIteration as end:
            result: R = end.value
            return result
    return method


def _awaits(step: Callable[Concatenate[Any, P], core.Steps[R]]
            ) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, R]]:
    @functools.wraps(step)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        steps = step(self, *args, **kwargs)
        try:
            asked = next(steps)
            while True:
                try:
                    answer = (await self.http.send(asked) if isinstance(asked, httpx.Request)
                              else await asyncio.sleep(asked))
                except httpx.TransportError as error:
                    asked = steps.throw(error)
                else:
                    asked = steps.send(answer)
        except StopIteration as end:
            result: R = end.value
            return result
    return method


def _is_this_host(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _read_token(path: str) -> str:
    """Returns the token in a file, read as by the service's other client."""
    token = pathlib.Path(path).read_bytes().rstrip()
    if not token or len(token) > 4095 or not all(0x21 <= byte <= 0x7e for byte in token):
        raise ValueError(f"{path}: expected a token of one word of printable ASCII, up to 4095 bytes")
    return token.decode("ascii")


def _connection(transport: Callable[..., Any], url: str | None, token: str | None,
                insecure_token: bool, options: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of httpx's client. No proxy stands between this host and itself."""
    url = url or os.environ.get("CONVOLVED_URL") or "http://localhost:8700"
    socket = url.removeprefix("unix:") if url.startswith("unix:") else None
    if socket is not None:
        url = "http://localhost"
    base = httpx.URL(url if "://" in url else f"http://{url}")
    local = _is_this_host(base.host)
    if local and base.scheme == "http" and options.keys() <= {"timeout"}:
        # No certificate is valid here, and none is needed: to load those of authorities takes 50 ms.
        # Other options may lead elsewhere: redirections, proxies.
        options = {"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), **options}
    if socket is not None:
        options = {"transport": transport(uds=socket, verify=options.get("verify", True)), **options}
    if token is None and (path := os.environ.get("CONVOLVED_TOKEN_FILE")):
        token = _read_token(path)
    if token and base.scheme != "https" and not local and not insecure_token:
        raise ValueError(f"{base.scheme}://{base.host}: the token would travel unencrypted: use https://, or "
                         "insecure_token=True to send it anyway")
    headers = {"User-Agent": f"convolved-python/{convolved.__version__}"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return {"base_url": base, "timeout": httpx.Timeout(600, connect=10), "trust_env": not local,
            **options, "headers": {**headers, **options.get("headers", {})}}


class Service:
    """A service at `url`: http://…, https://… or unix:PATH; by default $CONVOLVED_URL, else
    http://localhost:8700. The token is `token`, by default that in the file $CONVOLVED_TOKEN_FILE; with
    "" none is sent. `patience` is how many seconds it may ask to wait (429, 503); other options
    are those of httpx, such as `verify` and `timeout`."""
    _client: Callable[..., Any]
    _transport: Callable[..., Any]

    def __init__(self, url: str | None = None, *, token: str | None = None,
                 insecure_token: bool = False, patience: float = 60, **options: Any) -> None:
        self.patience = patience
        self.http: Any = self._client(**_connection(self._transport, url, token, insecure_token,
                                                  options))


class Client(Service):
    """Its methods wait for the answer."""
    _client, _transport = httpx.Client, httpx.HTTPTransport

    apply, submit, job = _waits(core.apply), _waits(core.submit), _waits(core.job)
    jobs, result = _waits(core.jobs), _waits(core.result)
    cancel, get = _waits(core.cancel), _waits(core.get)

    def close(self) -> None:
        self.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(Service):
    """Its methods are awaited, with asyncio."""
    _client, _transport = httpx.AsyncClient, httpx.AsyncHTTPTransport

    apply, submit, job = _awaits(core.apply), _awaits(core.submit), _awaits(core.job)
    jobs, result = _awaits(core.jobs), _awaits(core.result)
    cancel, get = _awaits(core.cancel), _awaits(core.get)

    async def close(self) -> None:
        await self.http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
