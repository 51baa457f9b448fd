"""A request of the client before it is bytes, and the whole answer to it."""
from __future__ import annotations

import json as json_module
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Optional, Union
from uuid import uuid4

from ..errors import ConfigurationError
from .endpoint import Endpoint, QueryValue, target
from .lines import parse_object
from .operations import Operation

Body = Union[bytes, IO[bytes], Iterable[bytes], AsyncIterable[bytes]]
STDIN_MOST = 2 << 20


@dataclass(frozen=True)
class Request:
    operation: Operation
    target: str
    headers: Sequence[tuple[str, str]]
    body: Optional[Body]
    repeatable: bool
    timeout: float

    @property
    def body_stays(self) -> bool:
        """Whether the same body can be sent once more: a file or an iterator is read only once."""
        return self.body is None or isinstance(self.body, bytes)


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        return parse_object(self.body)


def build(endpoint: Endpoint, operation: Operation, params: Mapping[str, object], *, query: Mapping[str, QueryValue], json: Any,
          body: Optional[Body], headers: Sequence[tuple[str, str]], timeout: float, repeatable: Optional[bool]) -> Request:
    """A request; `json` or `body` is what is sent with it."""
    more = [("X-Request-Id", uuid4().hex), *headers]
    if json is not None:
        body = json_module.dumps(json, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        more.append(("Content-Type", "application/json"))
    elif body is not None and not any(name.lower() == "content-type" for name, _ in headers):
        more.append(("Content-Type", "application/octet-stream"))
    return Request(operation, target(endpoint, operation.path, params, query), more, body,
                   operation.repeatable if repeatable is None else repeatable, timeout)


def present(order: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is None."""
    return {name: value for name, value in order.items() if value is not None}


def command_of(command: Optional[Union[str, Sequence[str]]]) -> dict[str, Any]:
    """A text is for the shell, a list is executed as it is."""
    if command is None:
        return {}
    return {"command": command} if isinstance(command, str) else {"args": list(command)}


def stdin_text(stdin: Union[str, bytes, bool, None]) -> Optional[str]:
    """All of a command's stdin, as text."""
    if isinstance(stdin, bool) or stdin is None:
        if stdin:
            raise ConfigurationError("stdin=True is for commands in the background: use start()", field="stdin")
        return None
    try:
        text = stdin if isinstance(stdin, str) else stdin.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigurationError("stdin is not UTF-8: use start(), which takes any bytes", field="stdin") from None
    if len(text) > STDIN_MOST:
        raise ConfigurationError(f"stdin is longer than {STDIN_MOST} characters: use start(), or write a file", field="stdin")
    return text


def parts_of_here(body: Any, size: int) -> Iterator[bytes]:
    """A body in parts: bytes, an open file, or parts that come from an iterator."""
    if isinstance(body, bytes):
        yield from (body[at:at + size] for at in range(0, len(body), size))
    elif hasattr(body, "read"):
        while part := body.read(size):
            yield part
    elif isinstance(body, Iterable):
        yield from body
    else:
        raise ConfigurationError(f"invalid content: text, bytes, an open file or an iterator of bytes is needed, not {type(body).__name__}",
                                 field="data")
