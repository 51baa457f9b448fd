# Made of _async/sandbox.py by sdk/python/make_sync.py. Change that file, then run it.
"""Sandbox: a sandbox, and what belongs to it."""
from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Callable, List, Optional, Tuple, TypeVar, Union
from urllib.parse import urlsplit
from uuid import uuid4

from .. import _io_sync as io
from .._core.output import CellCollector
from .._core.request import Answer, Body, present
from ..errors import ConfigurationError, NotFoundError, ServerError
from ..models import (CellError, CodeContext, Execution, Fork, Limits, Metrics, Mount, NetworkEvent, NetworkRules, PortInfo, PortLink,
                      PreviewRules, PreviewState, Refusal, Result, SandboxInfo, SnapshotInfo)
from .client import Cove
from .commands import Commands
from .files import Files
from .git import Git
from .pty import SILENCE, Pty
from .tunnel import Tunnel

S = TypeVar("S", bound="Sandbox")
SLOW = 600.0
"""Seconds that a pause, a snapshot or a fork may take."""
CELL_PORT = 49999


def shared_client() -> Cove:
    """The client that sandboxes use which are told none: as the environment says. It lasts as long as the program or its event loop."""
    return io.shared(os.environ.get("COVE_URL", "") + " " + (os.environ.get("COVE_API_KEY") or os.environ.get("E2B_API_KEY") or ""), Cove)


class Sandbox:
    """A sandbox. As a context manager it ends with the block.

        with Sandbox.create() as sandbox:
            result = sandbox.commands.run("python3 --version")
    """

    def __init__(self, info: SandboxInfo, client: Cove) -> None:
        self.id = info.id
        self.info = info
        """As it was when this object was made; `get_info()` asks again."""
        self.client = client
        self.commands = Commands(self)
        self.files = Files(self)
        self.pty = Pty(self)
        self.git = Git(self)
        self.network = Network(self)
        self.ports = Ports(self)
        self._cell_token: Optional[str] = None

    @property
    def sandbox_id(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    # ---- life ----

    @classmethod
    def create(cls: type[S], template: Optional[str] = None, *, name: Optional[str] = None, timeout: Optional[float] = None,
                     on_timeout: Optional[str] = None, limits: Optional[Limits] = None, envs: Optional[Mapping[str, str]] = None,
                     metadata: Optional[Mapping[str, str]] = None, network: Optional[NetworkRules] = None,
                     preview: Optional[PreviewRules] = None, volumes: Optional[Sequence[Mount]] = None, snapshot: Optional[str] = None,
                     memory: Optional[bool] = None, auto_resume: Optional[bool] = None, idle_pause_seconds: Optional[float] = None,
                     idle_disk_seconds: Optional[float] = None, root: Optional[bool] = None, isolation: Optional[str] = None,
                     idempotency_key: Optional[str] = None, client: Optional[Cove] = None) -> S:
        """Makes a sandbox. It lives `timeout` seconds (300 if not said); `set_timeout()` gives it more.

        A create that is sent again because the connection broke makes no second sandbox: every create has an idempotency key.
        """
        client = client or shared_client()
        order = {"template": template, "name": name, "timeout": timeout, "on_timeout": on_timeout, "limits": limits, "env": envs,
                 "metadata": metadata, "network": network, "preview": preview, "volumes": None if volumes is None else list(volumes),
                 "snapshot": snapshot, "memory": memory, "auto_resume": auto_resume, "idle_pause_seconds": idle_pause_seconds,
                 "idle_disk_seconds": idle_disk_seconds, "root": root, "isolation": isolation}
        answer = client.call("createSandbox", json=present(order), timeout=SLOW if snapshot else None,
                                   headers=[("Idempotency-Key", idempotency_key or uuid4().hex)])
        return cls(SandboxInfo.of(answer.json()), client)

    @classmethod
    def connect(cls: type[S], sandbox_id: str, *, timeout: Optional[float] = None, client: Optional[Cove] = None) -> S:
        """A sandbox that is there, by id or name. One that is paused is resumed."""
        client = client or shared_client()
        sandbox = cls(SandboxInfo.of((client.call("getSandbox", id=sandbox_id)).json()), client)
        if sandbox.info.state in ("paused", "pausing"):
            sandbox.resume(timeout=timeout)
        elif timeout is not None:
            sandbox.set_timeout(timeout)
        return sandbox

    @classmethod
    def list(cls, *, state: Optional[str] = None, name: Optional[str] = None, metadata: Optional[Mapping[str, str]] = None,
                   limit: int = 100, client: Optional[Cove] = None) -> Iterator[SandboxInfo]:
        """Newest first: all of them, `limit` at a time."""
        client = client or shared_client()
        wanted = ",".join(f"{key}:{value}" for key, value in metadata.items()) if metadata else None
        cursor: Optional[str] = None
        while True:
            page = (client.call("listSandboxes", query={"state": state, "name": name, "metadata": wanted, "limit": limit,
                                                              "cursor": cursor})).json()
            for one in page["sandboxes"]:
                yield SandboxInfo.of(one)
            cursor = page.get("next")
            if cursor is None:
                return

    def kill(self) -> bool:
        """Ends the sandbox; nothing of it is left. False: it was gone."""
        return self.client.remove("killSandbox", id=self.id)

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.kill()

    def get_info(self) -> SandboxInfo:
        return self._now(self.client.call("getSandbox", id=self.id))

    def _now(self, answer: Answer) -> SandboxInfo:
        self.info = SandboxInfo.of(answer.json())
        return self.info

    def is_running(self) -> bool:
        try:
            return (self.get_info()).state == "running"
        except NotFoundError:
            return False

    def set_timeout(self, timeout: float) -> SandboxInfo:
        """The deadline becomes now and `timeout` seconds."""
        return self._now(self.client.call("extendSandbox", id=self.id, json={"timeout": timeout}))

    def pause(self, *, tier: Optional[str] = None, memory: Optional[bool] = None) -> SandboxInfo:
        """Puts it to sleep: `tier` is `auto`, `hot`, `warm` or `disk`. `memory=False` keeps its files only."""
        return self._now(self.client.call("pauseSandbox", id=self.id, json=present({"tier": tier, "memory": memory}), timeout=SLOW))

    def resume(self, *, timeout: Optional[float] = None) -> SandboxInfo:
        return self._now(self.client.call("resumeSandbox", id=self.id, json=present({"timeout": timeout}), timeout=SLOW))

    def snapshot(self, name: Optional[str] = None, *, memory: Optional[bool] = None) -> SnapshotInfo:
        """Saves it; it continues. `create(snapshot=…)` makes sandboxes of it."""
        order = present({"name": name, "memory": memory})
        return SnapshotInfo.of((self.client.call("createSnapshot", id=self.id, json=order, timeout=SLOW)).json())

    def create_snapshot(self, name: Optional[str] = None) -> SnapshotInfo:
        return self.snapshot(name)

    def fork(self: S, count: int = 1, *, timeout: Optional[float] = None) -> List[S]:
        """Copies of it, with its processes: all of them, or an error and none. `fork_all` gives those that could be made."""
        forks = self.fork_all(count, timeout=timeout)
        made = [type(self)(fork.info, self.client) for fork in forks if fork.info]
        failed = next((fork for fork in forks if fork.info is None), None)
        if failed is None:
            return made
        for one in made:
            one.kill()
        raise ServerError(f"a copy could not be made: {failed.error}", code=failed.code)

    def fork_all(self, count: int = 1, *, timeout: Optional[float] = None) -> List[Fork]:
        order = present({"count": count, "timeout": timeout})
        answer = (self.client.call("forkSandbox", id=self.id, json=order, timeout=SLOW)).json()
        return [Fork(SandboxInfo.of(one["sandbox"]) if one.get("sandbox") else None, (one.get("error") or {}).get("message"),
                     (one.get("error") or {}).get("code")) for one in answer["forks"]]

    def get_metrics(self) -> Metrics:
        return Metrics.of((self.client.call("sandboxStats", id=self.id)).json())

    def refusals(self) -> List[Refusal]:
        """System calls that the sandbox's filter refused."""
        return [Refusal.of(one) for one in (self.client.call("listRefusals", id=self.id)).json()["refusals"]]

    # ---- servers inside ----

    def get_host(self, port: int) -> str:
        """`3000-ID.HOST`: the name under which a browser sees a port."""
        return urlsplit((self.ports.link(port)).url).netloc

    def preview_url(self, port: int, *, expires_seconds: int = 3600) -> str:
        """A link that shows one port in a browser, without a key, until it expires."""
        return (self.ports.link(port, expires_seconds=expires_seconds)).url

    def get_preview(self) -> PreviewState:
        return PreviewState.of((self.client.call("getPreview", id=self.id)).json())

    def set_preview(self, rules: PreviewRules) -> PreviewState:
        return PreviewState.of((self.client.call("setPreview", id=self.id, json=rules)).json())

    def roll_preview(self) -> PreviewState:
        """Takes back the token, every link and the cookies made of them."""
        return PreviewState.of((self.client.call("rollPreview", id=self.id)).json())

    # ---- cells ----

    def _cell_headers(self) -> List[Tuple[str, str]]:
        if self._cell_token is None:
            self._cell_token = str((self.client.call("cellAccess", id=self.id)).json().get("envdAccessToken", ""))
        return [("E2b-Sandbox-Id", self.id), ("E2b-Sandbox-Port", str(CELL_PORT)), ("X-Access-Token", self._cell_token)]

    def run_code(self, code: str, *, language: Optional[str] = None, context: Union[CodeContext, str, None] = None,
                       envs: Optional[Mapping[str, str]] = None, timeout: Optional[float] = 300,
                       on_stdout: Optional[Callable[[str], Any]] = None, on_stderr: Optional[Callable[[str], Any]] = None,
                       on_result: Optional[Callable[[Result], Any]] = None,
                       on_error: Optional[Callable[[CellError], Any]] = None) -> Execution:
        """Runs a cell: python unless said otherwise. Variables stay for the next cell of the same context.

        An exception of the code is `error` of the execution. After `timeout` seconds, or when the task is cancelled, the cell is interrupted.
        """
        if context is not None and language is not None:
            raise ConfigurationError("language belongs to the context: give one of language, context", field="language")
        order = present({"code": code, "language": language, "context_id": context.id if isinstance(context, CodeContext) else context,
                         "env_vars": envs})
        cell, show = CellCollector(), {"stdout": on_stdout, "stderr": on_stderr, "result": on_result, "error": on_error}
        with self.client.stream("executeCell", json=order, headers=self._cell_headers()) as stream:
            stream.deadline = None if timeout is None else time.monotonic() + timeout
            for event in stream.objects():
                kind, value = cell.take(event)
                if value is not None:
                    io.call_back(show[kind], value)
        return cell.execution()

    def list_contexts(self) -> List[CodeContext]:
        body = (self.client.call("listContexts", headers=self._cell_headers())).body
        return [CodeContext.of(one) for one in Answer(200, {}, b'{"contexts":' + body + b"}").json()["contexts"]]

    def create_context(self, *, language: Optional[str] = None, cwd: Optional[str] = None) -> CodeContext:
        order = present({"language": language, "cwd": cwd})
        return CodeContext.of((self.client.call("createContext", json=order, headers=self._cell_headers())).json())

    def fork_context(self, context: Union[CodeContext, str]) -> CodeContext:
        """Another context with everything that this one has."""
        return CodeContext.of((self._context("forkContext", context)).json())

    def restart_context(self, context: Union[CodeContext, str]) -> None:
        self._context("restartContext", context)

    def remove_context(self, context: Union[CodeContext, str]) -> None:
        self._context("removeContext", context)

    def _context(self, operation: str, context: Union[CodeContext, str]) -> Answer:
        name = context.id if isinstance(context, CodeContext) else context
        return self.client.call(operation, context=name, headers=self._cell_headers(), json=None)


class Network:
    """What a sandbox may reach: docs/network.md."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._client, self._id = sandbox.client, sandbox.id

    def get(self) -> dict[str, Any]:
        return (self._client.call("getNetwork", id=self._id)).json()

    def set(self, rules: NetworkRules) -> dict[str, Any]:
        """At once; connections that are no longer allowed are cut."""
        return (self._client.call("putNetwork", id=self._id, json=rules)).json()

    def allow(self, rule: str) -> dict[str, Any]:
        """One thing more, such as `api.example.com` or `10.0.0.5:5432`."""
        return (self._client.call("allowNetwork", id=self._id, json={"rule": rule})).json()

    def events(self, *, after: Optional[int] = None) -> List[NetworkEvent]:
        """What was refused and what was let out, oldest first; `after` is the `seq` of the last one seen."""
        answer = self._client.call("listNetworkEvents", id=self._id, query={"after": after})
        return [NetworkEvent.of(one) for one in answer.json()["events"]]


class Ports:
    """TCP ports that programs listen on inside."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._client, self._id = sandbox.client, sandbox.id

    def list(self) -> List[PortInfo]:
        return [PortInfo.of(one) for one in (self._client.call("listPorts", id=self._id)).json()["ports"]]

    def link(self, port: int, *, expires_seconds: int = 3600) -> PortLink:
        """A link for a browser."""
        return PortLink.of((self._client.call("linkPort", id=self._id, port=port, json={"expires_seconds": expires_seconds})).json())

    def request(self, port: int, path: str = "/", *, method: str = "GET", query: Optional[Mapping[str, str]] = None,
                      body: Optional[Body] = None, headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None) -> Answer:
        """A request to a server inside; what it answers, whatever the status is."""
        operation = f"relay{method.capitalize()}"
        with self._client.stream(operation, id=self._id, port=port, path=path.lstrip("/"), query=query, body=body,
                                             headers=list((headers or {}).items()), timeout=timeout, any_status=True) as stream:
            return Answer(stream.status, stream.headers, stream.read())

    def connect(self, port: int) -> Tunnel:
        """A connection to the port, whatever protocol is spoken there."""
        return Tunnel(self._client.websocket("tunnel", id=self._id, port=port, timeout=SILENCE))
