# Made of _async/commands.py by sdk/python/make_sync.py. Change that file, then run it.
"""Commands in a sandbox: Commands, and CommandHandle for those in the background."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, List, Literal, Optional, Union, overload

from .._core.output import StreamCollector, checked, command_result
from .._core.request import command_of, present, stdin_text
from ..errors import ConflictError, ConnectionFailedError, NotFoundError
from ..models import CommandResult, Output, ProcessInfo, decode
from .client import Cove, deliver

if TYPE_CHECKING:
    from .sandbox import Sandbox

Show = Optional[Callable[[str], Any]]
OUTPUT_LIMIT = 16 << 20
STDIN_PART = 512 * 1024
ATTACH_TRIES = 5


class CommandHandle:
    """A command in the background. As a context manager it ends the command with the block.

        with sandbox.commands.start("make -j4") as make:
            result = make.wait(on_stdout=print)
    """

    def __init__(self, client: Cove, sandbox_id: str, proc: int, pid: int = 0) -> None:
        self._client, self._sandbox, self.proc, self.pid = client, sandbox_id, proc, pid

    def wait(self, *, on_stdout: Show = None, on_stderr: Show = None, check: bool = False, output_limit: int = OUTPUT_LIMIT,
                   from_stdout: int = 0, from_stderr: int = 0) -> CommandResult:
        """Follows the command to its end. A connection that breaks meanwhile is made again, and nothing is shown twice."""
        output = StreamCollector(output_limit)
        output.next.update(stdout=from_stdout, stderr=from_stderr)
        tries = 0
        while output.end is None:
            before = dict(output.next)
            try:
                for event in self._events(output.next["stdout"], output.next["stderr"]):
                    deliver(output, event, on_stdout, on_stderr)
                    tries = 0
            except ConnectionFailedError:
                tries = 1 if output.next != before else tries + 1
                if tries > ATTACH_TRIES:
                    raise
        return checked(command_result(output), check)

    def _events(self, from_stdout: int, from_stderr: int) -> Iterator[dict[str, Any]]:
        query = {"from": from_stdout, "from_stderr": from_stderr}
        with self._client.stream("attachProcess", id=self._sandbox, proc=self.proc, query=query) as stream:
            for event in stream.events():
                yield event

    def output(self, *, from_stdout: int = 0, from_stderr: int = 0) -> Iterator[Output]:
        """What the command writes, as bytes, until it ends."""
        for event in self._events(from_stdout, from_stderr):
            if event.get("type") in ("stdout", "stderr"):
                yield Output(event["type"], decode(event.get("data"), event.get("data_encoding")))

    def __iter__(self) -> Iterator[Output]:
        for part in self.output():
            yield part

    def info(self) -> ProcessInfo:
        return ProcessInfo.of((self._client.call("getProcess", id=self._sandbox, proc=self.proc)).json())

    def send_stdin(self, data: Union[str, bytes]) -> None:
        """Bytes for the command's stdin, if it was started with `stdin=True`."""
        raw = data.encode("utf-8") if isinstance(data, str) else data
        for at in range(0, len(raw), STDIN_PART):
            self._client.call("writeStdin", id=self._sandbox, proc=self.proc, body=raw[at:at + STDIN_PART])

    def close_stdin(self) -> None:
        self._client.call("writeStdin", id=self._sandbox, proc=self.proc, query={"end": True}, body=b"")

    def signal(self, signal: Union[int, str], *, all: bool = False) -> int:
        """Sends a signal to the command's process group, or to all its descendants; how many got it."""
        answer = self._client.call("signalProcess", id=self._sandbox, proc=self.proc, json={"signal": signal, "all": all})
        return int(answer.json().get("reached", 0))

    def kill(self) -> bool:
        """Kills the command with all its descendants. False: it had ended."""
        try:
            return self.signal("KILL", all=True) > 0
        except NotFoundError:
            return False
        except ConflictError as error:
            if error.code == "wrong_state":
                return False
            raise

    def __enter__(self) -> CommandHandle:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.kill()


class Commands:
    """Commands. A text is run by the user's login shell, a list is executed as it is."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._client, self._id = sandbox.client, sandbox.id

    @overload
    def run(self, command: Union[str, Sequence[str]], *, background: Literal[False] = False, envs: Optional[Mapping[str, str]] = None,
                  cwd: Optional[str] = None, user: Optional[str] = None, timeout: Optional[float] = None, cpu_timeout: Optional[float] = None,
                  stdin: Union[str, bytes, bool, None] = None, tag: Optional[str] = None, on_stdout: Show = None, on_stderr: Show = None,
                  check: bool = False, output_limit: int = OUTPUT_LIMIT) -> CommandResult: ...

    @overload
    def run(self, command: Union[str, Sequence[str]], *, background: Literal[True], envs: Optional[Mapping[str, str]] = None,
                  cwd: Optional[str] = None, user: Optional[str] = None, timeout: Optional[float] = None, cpu_timeout: Optional[float] = None,
                  stdin: Union[str, bytes, bool, None] = None, tag: Optional[str] = None) -> CommandHandle: ...

    def run(self, command: Union[str, Sequence[str]], *, background: bool = False, envs: Optional[Mapping[str, str]] = None,
                  cwd: Optional[str] = None, user: Optional[str] = None, timeout: Optional[float] = None, cpu_timeout: Optional[float] = None,
                  stdin: Union[str, bytes, bool, None] = None, tag: Optional[str] = None, on_stdout: Show = None, on_stderr: Show = None,
                  check: bool = False, output_limit: int = OUTPUT_LIMIT) -> Union[CommandResult, CommandHandle]:
        """Runs a command to its end. A task that is cancelled, or a program that ends, ends the command.

        A command that fails is an answer, unless `check` is true. `on_stdout` and `on_stderr` get the output as it comes; the result has the
        first `output_limit` bytes of each stream. `timeout` and `cpu_timeout` are seconds. `background=True` is `start()`.
        """
        if background:
            return self.start(command, envs=envs, cwd=cwd, user=user, timeout=timeout, cpu_timeout=cpu_timeout, stdin=stdin, tag=tag)
        order = {"env": envs, "cwd": cwd, "user": user, "timeout": timeout, "cpu_timeout": cpu_timeout, "tag": tag,
                 "stdin": stdin_text(stdin), "stream": "ndjson", **command_of(command)}
        output = StreamCollector(output_limit)
        with self._client.stream("exec", id=self._id, json=present(order)) as stream:
            for event in stream.events():
                deliver(output, event, on_stdout, on_stderr)
        return checked(command_result(output), check)

    def start(self, command: Union[str, Sequence[str]], *, envs: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None,
                    user: Optional[str] = None, timeout: Optional[float] = None, cpu_timeout: Optional[float] = None,
                    stdin: Union[str, bytes, bool, None] = None, tag: Optional[str] = None, output_kept: Optional[int] = None,
                    pty: Optional[bool] = None, rows: Optional[int] = None, columns: Optional[int] = None) -> CommandHandle:
        """Starts a command in the background. `stdin=True` keeps its stdin open; a text or bytes are all of it."""
        order = {"env": envs, "cwd": cwd, "user": user, "timeout": timeout, "cpu_timeout": cpu_timeout, "tag": tag,
                 "stdin": True if stdin is not None and stdin is not False else None, "output_kept": output_kept, "pty": pty, "rows": rows,
                 "columns": columns, **command_of(command)}
        started = (self._client.call("startProcess", id=self._id, json=present(order))).json()
        handle = CommandHandle(self._client, self._id, started["proc"], started.get("pid", 0))
        if isinstance(stdin, (str, bytes)):
            try:
                handle.send_stdin(stdin)
                handle.close_stdin()
            except BaseException:
                handle.kill()
                raise
        return handle

    def list(self) -> List[ProcessInfo]:
        """All that were started, running or not."""
        return [ProcessInfo.of(one) for one in (self._client.call("listProcesses", id=self._id)).json()["processes"]]

    def connect(self, proc: int) -> CommandHandle:
        """A handle for a command that was started before, also by another program."""
        info = ProcessInfo.of((self._client.call("getProcess", id=self._id, proc=proc)).json())
        return CommandHandle(self._client, self._id, info.proc, info.pid)

    def kill(self, proc: int) -> bool:
        return CommandHandle(self._client, self._id, proc).kill()

    def send_stdin(self, proc: int, data: Union[str, bytes]) -> None:
        CommandHandle(self._client, self._id, proc).send_stdin(data)

    def close_stdin(self, proc: int) -> None:
        CommandHandle(self._client, self._id, proc).close_stdin()
