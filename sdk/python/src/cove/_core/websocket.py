"""WebSocket (RFC 6455), the client's side: frames as bytes, and a reader of what the server sends."""
from __future__ import annotations

import base64
import hashlib
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from ..errors import ProtocolError

CONTINUE, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
MESSAGE_MAX = 64 * 1024 * 1024
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass(frozen=True)
class Message:
    """A whole message; of CLOSE, `code` says why (1005: no reason was given)."""

    op: int
    data: bytes
    code: int = 0


def new_key() -> str:
    return base64.b64encode(os.urandom(16)).decode("ascii")


def upgrade_headers(key: str) -> list[tuple[str, str]]:
    return [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", key)]


def check_upgrade(key: str, headers: Mapping[str, str]) -> None:
    """Whether the server really speaks WebSocket and answers this request."""
    digest = hashlib.sha1(key.encode("ascii") + _MAGIC).digest()
    if headers.get("upgrade", "").lower() != "websocket" or headers.get("sec-websocket-accept") != base64.b64encode(digest).decode("ascii"):
        raise ProtocolError("the server did not accept the WebSocket")
    if headers.get("sec-websocket-extensions"):
        raise ProtocolError("the server uses a WebSocket extension that was not asked for")


def _masked(data: bytes, mask: bytes) -> bytes:
    if not data:
        return b""
    pattern = (mask * (len(data) // 4 + 1))[:len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pattern, "big")).to_bytes(len(data), "big")


def frame(op: int, data: bytes, mask: Optional[bytes] = None) -> bytes:
    """One whole message as one frame. `mask` is random unless given."""
    if op >= CLOSE and len(data) > 125:
        raise ValueError("a control message has at most 125 bytes")
    mask = os.urandom(4) if mask is None else mask
    length = len(data)
    if length < 126:
        head = struct.pack("!BB", 0x80 | op, 0x80 | length)
    elif length < 65536:
        head = struct.pack("!BBH", 0x80 | op, 0x80 | 126, length)
    else:
        head = struct.pack("!BBQ", 0x80 | op, 0x80 | 127, length)
    return head + mask + _masked(data, mask)


def close_frame(code: int = 1000, reason: str = "") -> bytes:
    return frame(CLOSE, struct.pack("!H", code) + reason.encode("utf-8")[:123])


class FrameReader:
    """Fed with bytes of the server, gives messages. What the protocol forbids is a ProtocolError."""

    def __init__(self, most: int = MESSAGE_MAX) -> None:
        self._most = most
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._op = 0
        self._size = 0
        self._closed = False

    def feed(self, data: bytes) -> list[Message]:
        self._buffer += data
        messages = []
        while not self._closed:
            message, more = self._frame()
            if message:
                messages.append(message)
                self._closed = message.op == CLOSE
            if not more:
                break
        return messages

    def _head(self) -> Optional[tuple[int, int, int]]:
        """First byte, length of the head, length of the data; None: more bytes are needed."""
        have = len(self._buffer)
        if have < 2:
            return None
        first, second = self._buffer[0], self._buffer[1]
        if second & 0x80:
            raise ProtocolError("the server sent a masked frame")
        length, size = second & 0x7f, 2
        if length >= 126:
            size = 4 if length == 126 else 10
            if have < size:
                return None
            length = int.from_bytes(self._buffer[2:size], "big")
            if length < (126 if size == 4 else 65536) or length >> 63:
                raise ProtocolError("invalid length of a frame")
        return first, size, length

    def _frame(self) -> tuple[Optional[Message], bool]:
        """A message if this frame makes one whole, and whether there was a frame."""
        head = self._head()
        if head is None:
            return None, False
        first, size, length = head
        op, final = first & 0x0f, bool(first & 0x80)
        self._check(first, op, final, length)
        if len(self._buffer) < size + length:
            return None, False
        data = bytes(self._buffer[size:size + length])
        del self._buffer[:size + length]
        if op >= CLOSE:
            return _control(op, data), True
        if op != CONTINUE:
            self._op = op
        self._parts.append(data)
        self._size += length
        if not final:
            return None, True
        op, data = self._op, b"".join(self._parts)
        self._parts, self._op, self._size = [], 0, 0
        if op == TEXT:
            _check_text(data)
        return Message(op, data), True

    def _check(self, first: int, op: int, final: bool, length: int) -> None:
        if first & 0x70:
            raise ProtocolError("the server sent a frame with reserved bits")
        if op not in (CONTINUE, TEXT, BINARY, CLOSE, PING, PONG):
            raise ProtocolError(f"unknown kind of frame: {op}")
        if op >= CLOSE:
            if not final or length > 125:
                raise ProtocolError("invalid control frame")
            return
        if (op == CONTINUE) != bool(self._op):
            raise ProtocolError("a message began inside another one" if op else "a message continues that never began")
        if self._size + length > self._most:
            raise ProtocolError(f"a message is longer than {self._most} bytes")


def _check_text(data: bytes) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolError("a text message is not UTF-8") from None


def _control(op: int, data: bytes) -> Message:
    if op != CLOSE:
        return Message(op, data)
    if not data:
        return Message(CLOSE, b"", 1005)
    if len(data) == 1:
        raise ProtocolError("invalid close frame")
    _check_text(data[2:])
    return Message(CLOSE, data[2:], int.from_bytes(data[:2], "big"))
