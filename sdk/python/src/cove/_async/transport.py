"""Requests over kept connections, streams and WebSockets."""
from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Optional, Union

from .. import _io_async as io
from .._core import http1, websocket
from .._core.endpoint import Endpoint
from .._core.lines import LineReader
from .._core.request import Answer, Body, Request
from .._core.retry import RetryPolicy
from ..errors import ApiError, ConnectionFailedError, CoveError, ProtocolError, RequestTimeoutError, error_from, stream_error

PART = 256 * 1024
IDLE_SECONDS = 50  # the server closes after 75: a request that meets the close cannot be told from one that was read
ANSWER_MOST = 256 << 20
ERROR_MOST = 1 << 20


class AsyncAnswerStream:
    """An answer whose body is read while it comes. It must be closed: use it as a context manager."""

    def __init__(self, transport: AsyncTransport, channel: io.AsyncChannel, reader: http1.ResponseReader, head: http1.Head,
                 timeout: float) -> None:
        self._transport, self._channel, self._reader, self._timeout = transport, channel, reader, timeout
        self.status, self.headers = head.status, head.headers
        self._over = False
        self.deadline: Optional[float] = None
        """When the answer must be over, by time.monotonic(); then RequestTimeoutError is raised."""

    @property
    def request_id(self) -> Optional[str]:
        return self.headers.get("x-request-id")

    async def next_part(self) -> Optional[bytes]:
        """The next bytes of the body; None: it is over."""
        while not self._over:
            event = await self._transport.next_event(self._channel, self._reader, self._wait())
            if isinstance(event, http1.Data):
                return event.data
            if isinstance(event, http1.End):
                self._over = True
                self._transport.give_back(self._channel, event.reusable)
        return None

    def _wait(self) -> float:
        if self.deadline is None:
            return self._timeout
        left = self.deadline - time.monotonic()
        if left <= 0:
            self.close()
            raise RequestTimeoutError("the time for the answer is over")
        return min(left, self._timeout)

    async def parts(self) -> AsyncIterator[bytes]:
        while (part := await self.next_part()) is not None:
            yield part

    async def read(self, most: int = ANSWER_MOST) -> bytes:
        parts, size = [], 0
        while (part := await self.next_part()) is not None:
            parts.append(part)
            size += len(part)
            if size > most:
                raise ProtocolError(f"the answer is longer than {most} bytes; read large files with stream() or download()")
        return b"".join(parts)

    async def objects(self) -> AsyncIterator[dict[str, Any]]:
        """The objects of newline-delimited JSON."""
        reader = LineReader()
        while (part := await self.next_part()) is not None:
            for one in reader.feed(part):
                yield one
        reader.finish()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """The events of a stream, without pings. An `error` is raised."""
        async for event in self.objects():
            if event.get("type") == "error":
                raise stream_error(event.get("error"), self.request_id)
            if event.get("type") != "ping":
                yield event

    def close(self) -> None:
        """Ends the answer. What is not read yet is dropped, and the server sees that the client is gone."""
        if not self._over:
            self._over = True
            self._channel.close()

    async def __aenter__(self) -> AsyncAnswerStream:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class AsyncWebSocket:
    """Messages both ways. Pings are answered while a message is waited for."""

    def __init__(self, channel: io.AsyncChannel, rest: bytes, timeout: float) -> None:
        self._channel, self._timeout = channel, timeout
        self._reader = websocket.FrameReader()
        self._messages = self._reader.feed(rest)
        self._guard = io.Guard()  # one thread may send while another one receives, which answers pings
        self._closed = False

    async def send(self, data: Union[bytes, str]) -> None:
        """A binary message, or a text."""
        op, raw = (websocket.TEXT, data.encode("utf-8")) if isinstance(data, str) else (websocket.BINARY, data)
        if self._closed:
            raise ConnectionFailedError("the connection is closed")
        await self._send(websocket.frame(op, raw))

    async def _send(self, frame: bytes) -> None:
        with self._guard:
            await self._channel.send(frame, self._timeout)

    async def receive(self) -> Optional[Union[bytes, str]]:
        """The next message; None: the other side closed the connection."""
        while not self._closed:
            if not self._messages:
                data = await self._channel.recv(self._timeout)
                if not data:
                    self.close()
                    raise ConnectionFailedError("the connection ended without a close")
                self._messages = self._reader.feed(data)
                continue
            message = self._messages.pop(0)
            if message.op == websocket.TEXT:
                return message.data.decode("utf-8")
            if message.op == websocket.BINARY:
                return message.data
            if message.op == websocket.PING:
                await self._send(websocket.frame(websocket.PONG, message.data))
            if message.op == websocket.CLOSE:
                await self._say_goodbye()
                if message.code not in (1000, 1001, 1005):
                    raise ConnectionFailedError(f"the server closed the connection: {message.data.decode('utf-8') or message.code}")
        return None

    async def _say_goodbye(self) -> None:
        try:
            await self._send(websocket.close_frame())
        except CoveError:
            pass
        self.close()

    def close(self) -> None:
        self._closed = True
        self._channel.close()


class AsyncTransport:
    """Connections to one server. Every request has a connection of its own while it is under way; idle ones are kept."""

    def __init__(self, endpoint: Endpoint, api_key: Optional[str], *, timeout: float, connect_timeout: float, retry: RetryPolicy,
                 tls: Optional[ssl.SSLContext], idle_most: int, user_agent: str, tenant: Optional[str]) -> None:
        self.endpoint, self.api_key, self.timeout, self.retry = endpoint, api_key, timeout, retry
        self._connect_timeout, self._idle_most = connect_timeout, idle_most
        self._tls = tls if tls is not None else (ssl.create_default_context() if endpoint.tls else None)
        self._idle: list[tuple[io.AsyncChannel, float]] = []  # with the time since when
        self._guard = io.Guard()
        self._closed = False
        self._headers = [("Host", endpoint.host_header), ("User-Agent", user_agent), ("Accept-Encoding", "identity")]
        if api_key:
            self._headers.append(("X-API-Key", api_key))
        if tenant:
            self._headers.append(("X-Cove-Tenant", tenant))

    # ---- what the client asks for ----

    async def call(self, request: Request) -> Answer:
        """Sends a request and reads the whole answer. An answer that is an error is raised."""
        tried = 0
        while True:
            tried, sent = tried + 1, [False]
            try:
                async with await self._attempt(request, sent, False) as stream:
                    return Answer(stream.status, stream.headers, await stream.read())
            except CoveError as error:
                await self._before_retry(error, tried, request, sent[0])

    async def open(self, request: Request, *, any_status: bool = False) -> AsyncAnswerStream:
        """Sends a request; the body of the answer is read by the caller."""
        tried = 0
        while True:
            tried, sent = tried + 1, [False]
            try:
                return await self._attempt(request, sent, any_status)
            except CoveError as error:
                await self._before_retry(error, tried, request, sent[0])

    async def _before_retry(self, error: CoveError, tried: int, request: Request, sent: bool) -> None:
        """Waits before the next try, or raises the error."""
        wait = self.retry.wait(error, tried, repeatable=request.repeatable and request.body_stays, sent=sent)
        if wait is None or not (request.body_stays or not sent):
            raise error
        await io.pause(wait)

    async def upgrade(self, request: Request) -> AsyncWebSocket:
        key = websocket.new_key()
        channel = await self._connect()
        try:
            head = http1.request_head("GET", request.target, [*self._headers, *request.headers, *websocket.upgrade_headers(key)])
            await channel.send(head, request.timeout)
            reader = http1.ResponseReader("GET")
            answer = await self._head(channel, reader, request.timeout)
            if answer.status == 101:
                websocket.check_upgrade(key, answer.headers)
                upgraded = await self.next_event(channel, reader, request.timeout)
                assert isinstance(upgraded, http1.Upgraded)
                return AsyncWebSocket(channel, upgraded.rest, request.timeout)
        except BaseException:
            channel.close()
            raise
        raise await self._error(AsyncAnswerStream(self, channel, reader, answer, request.timeout))

    def close(self) -> None:
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for channel, _ in idle:
            channel.close()

    # ---- connections ----

    async def _connect(self) -> io.AsyncChannel:
        return await io.AsyncChannel.open(self.endpoint, self._tls, self._connect_timeout)

    async def _take(self) -> tuple[io.AsyncChannel, bool]:
        """A connection, and whether it was kept from an earlier request."""
        while True:
            with self._guard:
                if self._closed:
                    raise ConnectionFailedError("the client is closed")
                channel, since = self._idle.pop() if self._idle else (None, 0.0)
            if channel is None:
                return await self._connect(), False
            if channel.is_quiet() and time.monotonic() - since < IDLE_SECONDS:
                return channel, True
            channel.close()

    def give_back(self, channel: io.AsyncChannel, reusable: bool) -> None:
        with self._guard:
            if reusable and not self._closed and len(self._idle) < self._idle_most:
                self._idle.append((channel, time.monotonic()))
                return
        channel.close()

    # ---- one request ----

    async def _attempt(self, request: Request, sent: list[bool], any_status: bool) -> AsyncAnswerStream:
        channel, kept = await self._take()
        reader = http1.ResponseReader(request.operation.method)
        try:
            head = await self._exchange(channel, reader, request, sent)
        except ConnectionFailedError:
            # The server may close a kept connection at the moment of the next request. That is no failed attempt: a new one shows.
            if not kept or reader.begun or not (request.repeatable and request.body_stays):
                raise
            channel, reader = await self._connect(), http1.ResponseReader(request.operation.method)
            head = await self._exchange(channel, reader, request, sent)
        stream = AsyncAnswerStream(self, channel, reader, head, request.timeout)
        if head.status >= 300 and not any_status:
            raise await self._error(stream)
        return stream

    async def _exchange(self, channel: io.AsyncChannel, reader: http1.ResponseReader, request: Request, sent: list[bool]) -> http1.Head:
        """Sends a request and reads the head of the answer. After an error the connection is closed."""
        try:
            await self._send(channel, request, sent)
            return await self._head(channel, reader, request.timeout)
        except BaseException:
            channel.close()
            raise

    async def _send(self, channel: io.AsyncChannel, request: Request, sent: list[bool]) -> None:
        body = request.body
        headers = [*self._headers, *request.headers]
        whole = body if isinstance(body, bytes) else b""
        if isinstance(body, bytes) or request.operation.method in ("POST", "PUT", "PATCH") and body is None:
            headers.append(("Content-Length", str(len(whole))))
        elif body is not None:
            headers.append(("Transfer-Encoding", "chunked"))
        head = http1.request_head(request.operation.method, request.target, headers)
        sent[0] = True
        try:
            if len(whole) <= PART:
                await channel.send(head + whole, request.timeout)
                whole = b""
            else:
                await channel.send(head, request.timeout)
            for at in range(0, len(whole), PART):
                await channel.send(whole[at:at + PART], request.timeout)
            if body is not None and not isinstance(body, bytes):
                await self._send_chunks(channel, body, request.timeout)
        except ConnectionFailedError:
            if body is None:
                raise
            # The server may have answered and closed while the body was on its way: what it said is read.

    async def _send_chunks(self, channel: io.AsyncChannel, body: Body, timeout: float) -> None:
        async for part in io.parts_of(body, PART):
            await channel.send(http1.chunk(part), timeout)
        await channel.send(http1.LAST_CHUNK, timeout)

    async def next_event(self, channel: io.AsyncChannel, reader: http1.ResponseReader, timeout: float) -> http1.Event:
        while (event := reader.next_event()) is None:
            data = await channel.recv(timeout)
            if data:
                reader.feed(data)
            else:
                reader.feed_eof()
        return event

    async def _head(self, channel: io.AsyncChannel, reader: http1.ResponseReader, timeout: float) -> http1.Head:
        head = await self.next_event(channel, reader, timeout)
        assert isinstance(head, http1.Head)
        return head

    async def _error(self, stream: AsyncAnswerStream) -> ApiError:
        """The error that an answer is. Its connection is kept if all of it was read."""
        body = b""
        async with stream:
            try:
                body = await stream.read(ERROR_MOST)
            except (ProtocolError, ConnectionFailedError, RequestTimeoutError):
                pass  # the status says enough
        return error_from(stream.status, stream.headers, body)
