"""Newline-delimited JSON: fed with bytes, gives objects.

    reader = LineReader()
    reader.feed(b'{"type":"start"}\\n{"ty')   # [{'type': 'start'}]
    reader.feed(b'pe":"end"}\\n')             # [{'type': 'end'}]
    reader.finish()                          # raises if a line is not whole
"""
from __future__ import annotations

import json
from typing import Any

from ..errors import ProtocolError

LINE_MAX = 64 * 1024 * 1024


class LineReader:
    def __init__(self, most: int = LINE_MAX) -> None:
        self._most = most
        self._parts: list[bytes] = []  # of a line that is not whole: joined once, however many there are
        self._length = 0

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The objects whose lines are whole now."""
        *whole, rest = data.split(b"\n")
        objects = []
        for line in whole:
            self._keep(line)
            text = b"".join(self._parts)
            self._parts, self._length = [], 0
            if text.strip():
                objects.append(parse_object(text))
        self._keep(rest)
        return objects

    def finish(self) -> None:
        """The stream ended. A line that is not whole is a ProtocolError."""
        if b"".join(self._parts).strip():
            raise ProtocolError("the stream ended in the middle of a line")

    def _keep(self, data: bytes) -> None:
        self._length += len(data)
        if self._length > self._most:
            raise ProtocolError(f"a line of the stream is longer than {self._most} bytes")
        if data:
            self._parts.append(data)


def parse_object(text: bytes) -> dict[str, Any]:
    """A JSON object, or a ProtocolError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ProtocolError(f"the server sent invalid JSON: {text[:80]!r}") from None
    if not isinstance(value, dict):
        raise ProtocolError(f"the server sent JSON that is not an object: {text[:80]!r}")
    return value
