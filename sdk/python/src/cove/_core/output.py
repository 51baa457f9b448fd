"""Output of commands, put together of a stream's events. Characters that two events share are shown whole."""
from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any, Optional

from ..errors import CommandError, ProtocolError
from ..models import CellError, CommandResult, Execution, Logs, Result, RunFile, RunResult, decode


class StreamCollector:
    """Keeps the first `limit` bytes of each stream, and the event `end`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        self._have = {"stdout": 0, "stderr": 0}
        self._cut = {"stdout": False, "stderr": False}
        self._text = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        self.next = {"stdout": 0, "stderr": 0}
        """Offset behind the last byte that came, to attach again from there."""
        self.start: Mapping[str, Any] = {}
        self.end: Optional[Mapping[str, Any]] = None

    def take(self, event: Mapping[str, Any]) -> tuple[Optional[str], str]:
        """The stream that the event belongs to, and the text to show; ("", "") for other events."""
        kind = event.get("type")
        if kind == "start":
            self.start = event
        elif kind == "end":
            self.end = event
        if kind not in ("stdout", "stderr"):
            return None, ""
        data = decode(event.get("data"), event.get("data_encoding"))
        if event.get("missed"):
            self._cut[kind] = True
        offset = event.get("offset")
        self.next[kind] = (offset if isinstance(offset, int) else self.next[kind]) + len(data)
        self._keep(kind, data)
        return kind, self._text[kind].decode(data)

    def _keep(self, kind: str, data: bytes) -> None:
        room = self._limit - self._have[kind]
        if len(data) > room:
            self._cut[kind] = True
            data = data[:max(0, room)]
        if data:
            self._kept[kind].append(data)
            self._have[kind] += len(data)

    def fields(self) -> dict[str, Any]:
        """The members of a CommandResult. A stream without an end was cut: a ProtocolError."""
        if self.end is None:
            raise ProtocolError("the stream ended before the command did")
        out, err = (b"".join(self._kept[name]) for name in ("stdout", "stderr"))
        end = self.end
        return {"stdout": out.decode("utf-8", "replace"), "stderr": err.decode("utf-8", "replace"), "stdout_bytes": out, "stderr_bytes": err,
                "stdout_truncated": self._cut["stdout"], "stderr_truncated": self._cut["stderr"],
                "exit_code": end.get("exit_code", -1), "exit_reason": end.get("exit_reason", "lost"), "proc": self.start.get("proc"),
                "wall_ms": end.get("wall_ms", 0), "cpu_ms": end.get("cpu_ms", 0), "peak_bytes": end.get("peak_bytes", 0), "raw": end}


def command_result(output: StreamCollector) -> CommandResult:
    return CommandResult(**output.fields())


def run_result(output: StreamCollector) -> RunResult:
    fields = output.fields()
    end = fields["raw"]
    return RunResult(**fields, sandbox=output.start.get("sandbox", end.get("sandbox", "")), memory_peak_bytes=end.get("memory_peak_bytes", 0),
                     files=[RunFile.of(one) for one in end.get("files", [])])


def checked(result: CommandResult, check: bool) -> CommandResult:
    if check and result.exit_code != 0:
        raise CommandError(result)
    return result


class CellCollector:
    """An execution, put together of the interpreter's events."""

    def __init__(self) -> None:
        self._results: list[Result] = []
        self._logs = Logs()
        self._error: Optional[CellError] = None
        self._count: Optional[int] = None
        self._ended = False

    def take(self, event: Mapping[str, Any]) -> tuple[str, Any]:
        """The kind of the event, and what it brought: a text, a Result, a CellError."""
        kind = str(event.get("type"))
        if kind in ("stdout", "stderr"):
            text = str(event.get("text", ""))
            (self._logs.stdout if kind == "stdout" else self._logs.stderr).append(text)
            return kind, text
        if kind == "result":
            self._results.append(Result.of(event))
            return kind, self._results[-1]
        if kind == "error":
            self._error = CellError(str(event.get("name", "")), str(event.get("value", "")), str(event.get("traceback", "")))
            return kind, self._error
        if kind == "number_of_executions":
            self._count = event.get("execution_count")
        self._ended = self._ended or kind == "end_of_execution"
        return kind, None

    def execution(self) -> Execution:
        if not self._ended:
            raise ProtocolError("the stream ended before the cell did")
        return Execution(self._results, self._logs, self._error, self._count)
