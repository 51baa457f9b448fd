"""I/O for the asyncio client: connections, waiting, callbacks. _io_sync.py has the same names without async."""
from __future__ import annotations

import asyncio
import inspect
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import IO, Any, Optional, Protocol, TypeVar, Union
from weakref import WeakKeyDictionary

from ._core.endpoint import Endpoint
from ._core.request import Body, parts_of_here
from .errors import ConnectionFailedError, RequestTimeoutError

T = TypeVar("T")


class Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)
HELD_MOST = 1 << 20  # bytes that were received and not read yet, before the sender has to wait


class AsyncChannel(asyncio.Protocol):
    """One connection. Not for several tasks at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: Optional[asyncio.Transport] = None
        self._held = bytearray()
        self._over = False
        self._error: Optional[BaseException] = None
        self._reading: Optional[asyncio.Future[None]] = None
        self._writing: Optional[asyncio.Future[None]] = None
        self._paused_writing = False

    @classmethod
    async def open(cls, endpoint: Endpoint, tls: Optional[ssl.SSLContext], timeout: float) -> AsyncChannel:
        loop = asyncio.get_running_loop()
        try:
            if endpoint.socket_path is not None:
                way: Awaitable[Any] = loop.create_unix_connection(cls, endpoint.socket_path)
            else:
                way = loop.create_connection(cls, endpoint.host, endpoint.port, ssl=tls if endpoint.tls else None)
            _, channel = await asyncio.wait_for(way, timeout)
        except (asyncio.TimeoutError, TimeoutError):
            raise ConnectionFailedError(f"no connection to {endpoint.url} within {timeout:g} s") from None
        except OSError as error:
            raise ConnectionFailedError(f"no connection to {endpoint.url}: {error}") from error
        assert isinstance(channel, cls)
        return channel

    # ---- what asyncio calls ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._held += data
        if len(self._held) > HELD_MOST and self._transport:
            self._transport.pause_reading()
        _wake(self._reading)

    def eof_received(self) -> bool:
        self._over = True
        _wake(self._reading)
        return False

    def connection_lost(self, exc: Optional[BaseException]) -> None:
        self._over, self._error = True, exc or self._error
        _wake(self._reading)
        _wake(self._writing)

    def pause_writing(self) -> None:
        self._paused_writing = True

    def resume_writing(self) -> None:
        self._paused_writing = False
        _wake(self._writing)

    # ---- what the client calls ----

    async def send(self, data: bytes, timeout: float) -> None:
        if self._over or not self._transport:
            raise ConnectionFailedError("the connection was closed by the server")
        self._transport.write(data)
        while self._paused_writing and not self._over:
            self._writing = self._loop.create_future()
            await self._wait(self._writing, timeout)

    async def recv(self, timeout: float) -> bytes:
        """What came; nothing at the end of the connection."""
        while not self._held:
            if self._over:
                if self._error is not None:
                    raise ConnectionFailedError(f"the connection broke: {self._error}") from self._error
                return b""
            self._reading = self._loop.create_future()
            await self._wait(self._reading, timeout)
        data = bytes(self._held)
        self._held.clear()
        if self._transport and not self._transport.is_closing():
            self._transport.resume_reading()
        return data

    async def _wait(self, future: asyncio.Future[None], timeout: float) -> None:
        timer = self._loop.call_later(timeout, _expire, future, timeout)
        try:
            await future
        finally:
            timer.cancel()

    def is_quiet(self) -> bool:
        """Whether another request can be sent: the server neither closed the connection nor sent anything."""
        return not self._over and not self._held and asyncio.get_running_loop() is self._loop

    def close(self) -> None:
        self._over = True
        if self._transport and not self._loop.is_closed():
            self._transport.abort()


def _wake(future: Optional[asyncio.Future[None]]) -> None:
    if future is not None and not future.done():
        future.set_result(None)


def _expire(future: asyncio.Future[None], timeout: float) -> None:
    if not future.done():
        future.set_exception(RequestTimeoutError(f"the server said nothing for {timeout:g} s"))


class Guard:
    """Tasks of one event loop need no lock where nothing is awaited."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *about: object) -> None:
        return None


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, tuple[Any, AsyncIterator[None]]]] = WeakKeyDictionary()


async def shared(key: str, make: Callable[[], C]) -> C:
    """One object for each key and event loop, closed when the loop ends."""
    mine = _shared.setdefault(asyncio.get_running_loop(), {})
    if key not in mine:
        one = make()
        mine[key] = (one, _close_with_loop(one))
        await mine[key][1].__anext__()
    found: C = mine[key][0]
    return found


async def _close_with_loop(one: Closable) -> AsyncIterator[None]:
    """A generator that was begun: asyncio ends those when a loop ends."""
    try:
        yield
    finally:
        one.close()


async def pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def call_back(function: Optional[Callable[[T], Union[None, Awaitable[None]]]], value: T) -> None:
    """Calls a callback of the user's, which may be a coroutine function."""
    if function is not None:
        result = function(value)
        if inspect.isawaitable(result):
            await result


async def parts_of(body: Body, size: int) -> AsyncIterator[bytes]:
    """A body in parts. Files and iterators are read without keeping the event loop from other work."""
    if isinstance(body, AsyncIterable):
        async for part in body:
            yield part
        return
    parts = parts_of_here(body, size)

    def following() -> Optional[bytes]:
        return next(parts, None)
    while (one := await asyncio.get_running_loop().run_in_executor(None, following)) is not None:
        yield one


async def write_part(file: IO[bytes], data: bytes) -> None:
    await asyncio.get_running_loop().run_in_executor(None, file.write, data)
