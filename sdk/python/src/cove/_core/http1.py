"""HTTP/1.1, the client's side: requests as bytes, and a reader of responses that is fed with bytes.

    reader = ResponseReader("GET")
    reader.feed(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
    reader.next_event()   # Head(status=200, …)
    reader.next_event()   # Data(b"hi")
    reader.next_event()   # End(reusable=True)
    reader.next_event()   # None: more bytes are needed, or the response is over

A response that can be read in two ways is a ProtocolError: two lengths, a length beside chunks, bare line feeds.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Optional, Union

from ..errors import ConnectionFailedError, ProtocolError

HEAD_MAX = 64 * 1024
HEADERS_MAX = 200
CHUNK_LINE_MAX = 1024
TRAILER_MAX = 8 * 1024

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\r\n\0]*)?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n\0]*)?")
_DIGITS = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class Head:
    """Status and headers. Names are in lower case; a header that came several times is joined by commas."""

    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Data:
    data: bytes


@dataclass(frozen=True)
class End:
    reusable: bool
    """Whether the connection can carry another request."""


@dataclass(frozen=True)
class Upgraded:
    """The server switched protocols; `rest` are bytes of the new protocol that were read already."""

    rest: bytes


Event = Union[Head, Data, End, Upgraded]


def request_head(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """The head of a request. A value that would make a second header or request is a ValueError."""
    if not _TOKEN.fullmatch(method):
        raise ValueError(f"invalid method {method!r}")
    if not target.startswith("/") or re.search(r"[\x00-\x20\x7f]", target) or not target.isascii():
        raise ValueError(f"invalid request target {target!r}")
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers:
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"invalid header name {name!r}")
        if re.search(r"[\r\n\0]", value):
            raise ValueError(f"invalid value of the header {name}: line breaks are not allowed")
        lines.append(f"{name}: {value}")
    text = "\r\n".join(lines) + "\r\n\r\n"
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise ValueError(f"a header has a character that HTTP cannot carry: {error.object[error.start]!r}") from None


def chunk(data: bytes) -> bytes:
    """One chunk of a request body; nothing for no data, which would end the body."""
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


LAST_CHUNK = b"0\r\n\r\n"


def _parse_head(block: bytes) -> tuple[int, int, dict[str, str]]:
    """Minor version, status, headers."""
    lines = block.split(b"\r\n")
    status = _STATUS.fullmatch(lines[0])
    if not status:
        raise ProtocolError(f"the answer is not HTTP/1.1: {lines[0][:80]!r}")
    if len(lines) - 1 > HEADERS_MAX:
        raise ProtocolError(f"the answer has more than {HEADERS_MAX} headers")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        matched = _FIELD.fullmatch(line)
        if not matched:
            raise ProtocolError(f"invalid header in the answer: {line[:80]!r}")
        name, value = matched[1].decode("ascii").lower(), matched[2].decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return int(status[1]), int(status[2]), headers


def _content_length(headers: Mapping[str, str]) -> Optional[int]:
    text = headers.get("content-length")
    if text is None:
        return None
    values = {part.strip() for part in text.split(",")}
    if len(values) != 1:
        raise ProtocolError(f"the answer has several lengths: {text!r}")
    value = values.pop()
    if not _DIGITS.fullmatch(value):
        raise ProtocolError(f"invalid length of the answer: {value!r}")
    return int(value)


class ResponseReader:
    """Reads one response."""

    def __init__(self, method: str) -> None:
        self.method = method
        self._buffer = bytearray()
        self._step: Callable[[], bool] = self._read_head  # one step forward; False: more bytes are needed
        self._over = False
        self.begun = False
        """Whether a byte of the answer came."""
        self._left = 0
        self._keep = True
        self._eof = False
        self._pending: list[Event] = []

    def feed(self, data: bytes) -> None:
        if self._eof:
            raise ProtocolError("bytes came after the end of the connection")
        self._buffer += data
        self.begun = self.begun or bool(data)

    def feed_eof(self) -> None:
        """The server closed the connection."""
        self._eof = True

    def next_event(self) -> Optional[Event]:
        """The next event, or None if more bytes are needed. An answer that was cut is a ConnectionFailedError."""
        while not self._pending and not self._over:
            if not self._step():
                break
        if self._pending:
            return self._pending.pop(0)
        if self._eof and not self._over:
            raise ConnectionFailedError("the connection ended " + ("in the middle of the answer" if self.begun else "before the answer"))
        return None

    def _end(self) -> bool:
        self._over = True
        # Bytes behind the response were never asked for: the connection is not used again.
        self._pending.append(End(self._keep and not self._eof and not self._buffer))
        return True

    def _read_head(self) -> bool:
        at = self._buffer.find(b"\r\n\r\n")
        if at < 0 or at > HEAD_MAX:
            if len(self._buffer) > HEAD_MAX:
                raise ProtocolError(f"the head of the answer is longer than {HEAD_MAX} bytes")
            return False
        minor, status, headers = _parse_head(bytes(self._buffer[:at]))
        del self._buffer[:at + 4]
        if 100 <= status < 200 and status != 101:
            return True
        tokens = {part.strip().lower() for part in headers.get("connection", "").split(",")}
        self._keep = "close" not in tokens and (minor == 1 or "keep-alive" in tokens)
        self._pending.append(Head(status, headers))
        if status == 101:
            self._over = True
            self._pending.append(Upgraded(bytes(self._buffer)))
            return True
        self._choose_body(status, headers)
        return True

    def _choose_body(self, status: int, headers: Mapping[str, str]) -> None:
        coding, length = headers.get("transfer-encoding"), _content_length(headers)
        if coding is not None and coding.lower() != "chunked":
            raise ProtocolError(f"unknown transfer encoding of the answer: {coding!r}")
        if coding is not None and length is not None:
            raise ProtocolError("the answer has a length and chunks")
        if self.method == "HEAD" or status in (204, 304) or length == 0:
            self._end()
        elif coding is not None:
            self._step = self._read_chunk_size
        elif length is not None:
            self._step, self._left = self._read_length, length
        else:
            self._step, self._keep = self._read_to_eof, False

    def _take(self, most: int) -> bytes:
        data = bytes(self._buffer[:most])
        del self._buffer[:most]
        return data

    def _read_length(self) -> bool:
        if not self._buffer:
            return False
        data = self._take(self._left)
        self._left -= len(data)
        self._pending.append(Data(data))
        return self._end() if self._left == 0 else True

    def _line(self, most: int) -> Optional[bytes]:
        at = self._buffer.find(b"\r\n")
        if at > most or (at < 0 and len(self._buffer) > most + 1):
            raise ProtocolError("a line of the answer's chunks is too long")
        if at < 0:
            return None
        line = bytes(self._buffer[:at])
        del self._buffer[:at + 2]
        return line

    def _read_chunk_size(self) -> bool:
        line = self._line(CHUNK_LINE_MAX)
        if line is None:
            return False
        matched = _CHUNK.fullmatch(line)
        if not matched:
            raise ProtocolError(f"invalid chunk size in the answer: {line[:40]!r}")
        self._left = int(matched[1], 16)
        if self._left == 0:
            self._step, self._left = self._read_trailers, TRAILER_MAX
        else:
            self._step = self._read_chunk_data
        return True

    def _read_chunk_data(self) -> bool:
        if not self._buffer:
            return False
        data = self._take(self._left)
        self._left -= len(data)
        self._pending.append(Data(data))
        if self._left == 0:
            self._step = self._read_chunk_end
        return True

    def _read_chunk_end(self) -> bool:
        if len(self._buffer) < 2:
            return False
        if self._take(2) != b"\r\n":
            raise ProtocolError("a chunk of the answer is longer than its size says")
        self._step = self._read_chunk_size
        return True

    def _read_trailers(self) -> bool:
        line = self._line(self._left)
        if line is None:
            return False
        if line == b"":
            return self._end()
        if not _FIELD.fullmatch(line):
            raise ProtocolError(f"invalid trailer in the answer: {line[:80]!r}")
        self._left = max(0, self._left - len(line) - 2)
        return True

    def _read_to_eof(self) -> bool:
        if self._buffer:
            self._pending.append(Data(self._take(len(self._buffer))))
            return True
        return self._end() if self._eof else False
