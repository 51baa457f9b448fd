"""AsyncSandbox: a sandbox, and what belongs to it."""
from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Callable, List, Optional, Tuple, TypeVar, Union
from urllib.parse import urlsplit
from uuid import uuid4

from .. import _io_async as io
from .._core.output import CellCollector
from .._core.request import Answer, Body, present
from ..errors import ConfigurationError, NotFoundError, ServerError
from ..models import (CellError, CodeContext, Execution, Fork, Limits, Metrics, Mount, NetworkEvent, NetworkRules, PortInfo, PortLink,
                      PreviewRules, PreviewState, Refusal, Result, SandboxInfo, SnapshotInfo)
from .client import AsyncCove
from .commands import AsyncCommands
from .files import AsyncFiles
from .git import AsyncGit
from .pty import SILENCE, AsyncPty
from .tunnel import AsyncTunnel

S = TypeVar("S", bound="AsyncSandbox")
SLOW = 600.0
"""Seconds that a pause, a snapshot or a fork may take."""
CELL_PORT = 49999


async def shared_client() -> AsyncCove:
    """The client that sandboxes use which are told none: as the environment says. It lasts as long as the program or its event loop."""
    return await io.shared(os.environ.get("COVE_URL", "") + " " + (os.environ.get("COVE_API_KEY") or os.environ.get("E2B_API_KEY") or ""), AsyncCove)


class AsyncSandbox:
    """A sandbox. As a context manager it ends with the block.

        async with await AsyncSandbox.create() as sandbox:
            result = await sandbox.commands.run("python3 --version")
    """

    def __init__(self, info: SandboxInfo, client: AsyncCove) -> None:
        self.id = info.id
        self.info = info
        """As it was when this object was made; `get_info()` asks again."""
        self.client = client
        self.commands = AsyncCommands(self)
        self.files = AsyncFiles(self)
        self.pty = AsyncPty(self)
        self.git = AsyncGit(self)
        self.network = AsyncNetwork(self)
        self.ports = AsyncPorts(self)
        self._cell_token: Optional[str] = None

    @property
    def sandbox_id(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    # ---- life ----

    @classmethod
    async def create(cls: type[S], template: Optional[str] = None, *, name: Optional[str] = None, timeout: Optional[float] = None,
                     on_timeout: Optional[str] = None, limits: Optional[Limits] = None, envs: Optional[Mapping[str, str]] = None,
                     metadata: Optional[Mapping[str, str]] = None, network: Optional[NetworkRules] = None,
                     preview: Optional[PreviewRules] = None, volumes: Optional[Sequence[Mount]] = None, snapshot: Optional[str] = None,
                     memory: Optional[bool] = None, auto_resume: Optional[bool] = None, idle_pause_seconds: Optional[float] = None,
                     idle_disk_seconds: Optional[float] = None, root: Optional[bool] = None, isolation: Optional[str] = None,
                     idempotency_key: Optional[str] = None, client: Optional[AsyncCove] = None) -> S:
        """Makes a sandbox. It lives `timeout` seconds (300 if not said); `set_timeout()` gives it more.

        A create that is sent again because the connection broke makes no second sandbox: every create has an idempotency key.
        """
        client = client or await shared_client()
        order = {"template": template, "name": name, "timeout": timeout, "on_timeout": on_timeout, "limits": limits, "env": envs,
                 "metadata": metadata, "network": network, "preview": preview, "volumes": None if volumes is None else list(volumes),
                 "snapshot": snapshot, "memory": memory, "auto_resume": auto_resume, "idle_pause_seconds": idle_pause_seconds,
                 "idle_disk_seconds": idle_disk_seconds, "root": root, "isolation": isolation}
        answer = await client.call("createSandbox", json=present(order), timeout=SLOW if snapshot else None,
                                   headers=[("Idempotency-Key", idempotency_key or uuid4().hex)])
        return cls(SandboxInfo.of(answer.json()), client)

    @classmethod
    async def connect(cls: type[S], sandbox_id: str, *, timeout: Optional[float] = None, client: Optional[AsyncCove] = None) -> S:
        """A sandbox that is there, by id or name. One that is paused is resumed."""
        client = client or await shared_client()
        sandbox = cls(SandboxInfo.of((await client.call("getSandbox", id=sandbox_id)).json()), client)
        if sandbox.info.state in ("paused", "pausing"):
            await sandbox.resume(timeout=timeout)
        elif timeout is not None:
            await sandbox.set_timeout(timeout)
        return sandbox

    @classmethod
    async def list(cls, *, state: Optional[str] = None, name: Optional[str] = None, metadata: Optional[Mapping[str, str]] = None,
                   limit: int = 100, client: Optional[AsyncCove] = None) -> AsyncIterator[SandboxInfo]:
        """Newest first: all of them, `limit` at a time."""
        client = client or await shared_client()
        wanted = ",".join(f"{key}:{value}" for key, value in metadata.items()) if metadata else None
        cursor: Optional[str] = None
        while True:
            page = (await client.call("listSandboxes", query={"state": state, "name": name, "metadata": wanted, "limit": limit,
                                                              "cursor": cursor})).json()
            for one in page["sandboxes"]:
                yield SandboxInfo.of(one)
            cursor = page.get("next")
            if cursor is None:
                return

    async def kill(self) -> bool:
        """Ends the sandbox; nothing of it is left. False: it was gone."""
        return await self.client.remove("killSandbox", id=self.id)

    async def __aenter__(self: S) -> S:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.kill()

    async def get_info(self) -> SandboxInfo:
        return self._now(await self.client.call("getSandbox", id=self.id))

    def _now(self, answer: Answer) -> SandboxInfo:
        self.info = SandboxInfo.of(answer.json())
        return self.info

    async def is_running(self) -> bool:
        try:
            return (await self.get_info()).state == "running"
        except NotFoundError:
            return False

    async def set_timeout(self, timeout: float) -> SandboxInfo:
        """The deadline becomes now and `timeout` seconds."""
        return self._now(await self.client.call("extendSandbox", id=self.id, json={"timeout": timeout}))

    async def pause(self, *, tier: Optional[str] = None, memory: Optional[bool] = None) -> SandboxInfo:
        """Puts it to sleep: `tier` is `auto`, `hot`, `warm` or `disk`. `memory=False` keeps its files only."""
        return self._now(await self.client.call("pauseSandbox", id=self.id, json=present({"tier": tier, "memory": memory}), timeout=SLOW))

    async def resume(self, *, timeout: Optional[float] = None) -> SandboxInfo:
        return self._now(await self.client.call("resumeSandbox", id=self.id, json=present({"timeout": timeout}), timeout=SLOW))

    async def snapshot(self, name: Optional[str] = None, *, memory: Optional[bool] = None) -> SnapshotInfo:
        """Saves it; it continues. `create(snapshot=…)` makes sandboxes of it."""
        order = present({"name": name, "memory": memory})
        return SnapshotInfo.of((await self.client.call("createSnapshot", id=self.id, json=order, timeout=SLOW)).json())

    async def create_snapshot(self, name: Optional[str] = None) -> SnapshotInfo:
        return await self.snapshot(name)

    async def fork(self: S, count: int = 1, *, timeout: Optional[float] = None) -> List[S]:
        """Copies of it, with its processes: all of them, or an error and none. `fork_all` gives those that could be made."""
        forks = await self.fork_all(count, timeout=timeout)
        made = [type(self)(fork.info, self.client) for fork in forks if fork.info]
        failed = next((fork for fork in forks if fork.info is None), None)
        if failed is None:
            return made
        for one in made:
            await one.kill()
        raise ServerError(f"a copy could not be made: {failed.error}", code=failed.code)

    async def fork_all(self, count: int = 1, *, timeout: Optional[float] = None) -> List[Fork]:
        order = present({"count": count, "timeout": timeout})
        answer = (await self.client.call("forkSandbox", id=self.id, json=order, timeout=SLOW)).json()
        return [Fork(SandboxInfo.of(one["sandbox"]) if one.get("sandbox") else None, (one.get("error") or {}).get("message"),
                     (one.get("error") or {}).get("code")) for one in answer["forks"]]

    async def get_metrics(self) -> Metrics:
        return Metrics.of((await self.client.call("sandboxStats", id=self.id)).json())

    async def refusals(self) -> List[Refusal]:
        """System calls that the sandbox's filter refused."""
        return [Refusal.of(one) for one in (await self.client.call("listRefusals", id=self.id)).json()["refusals"]]

    # ---- servers inside ----

    async def get_host(self, port: int) -> str:
        """`3000-ID.HOST`: the name under which a browser sees a port."""
        return urlsplit((await self.ports.link(port)).url).netloc

    async def preview_url(self, port: int, *, expires_seconds: int = 3600) -> str:
        """A link that shows one port in a browser, without a key, until it expires."""
        return (await self.ports.link(port, expires_seconds=expires_seconds)).url

    async def get_preview(self) -> PreviewState:
        return PreviewState.of((await self.client.call("getPreview", id=self.id)).json())

    async def set_preview(self, rules: PreviewRules) -> PreviewState:
        return PreviewState.of((await self.client.call("setPreview", id=self.id, json=rules)).json())

    async def roll_preview(self) -> PreviewState:
        """Takes back the token, every link and the cookies made of them."""
        return PreviewState.of((await self.client.call("rollPreview", id=self.id)).json())

    # ---- cells ----

    async def _cell_headers(self) -> List[Tuple[str, str]]:
        if self._cell_token is None:
            self._cell_token = str((await self.client.call("cellAccess", id=self.id)).json().get("envdAccessToken", ""))
        return [("E2b-Sandbox-Id", self.id), ("E2b-Sandbox-Port", str(CELL_PORT)), ("X-Access-Token", self._cell_token)]

    async def run_code(self, code: str, *, language: Optional[str] = None, context: Union[CodeContext, str, None] = None,
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
        async with await self.client.stream("executeCell", json=order, headers=await self._cell_headers()) as stream:
            stream.deadline = None if timeout is None else time.monotonic() + timeout
            async for event in stream.objects():
                kind, value = cell.take(event)
                if value is not None:
                    await io.call_back(show[kind], value)
        return cell.execution()

    async def list_contexts(self) -> List[CodeContext]:
        body = (await self.client.call("listContexts", headers=await self._cell_headers())).body
        return [CodeContext.of(one) for one in Answer(200, {}, b'{"contexts":' + body + b"}").json()["contexts"]]

    async def create_context(self, *, language: Optional[str] = None, cwd: Optional[str] = None) -> CodeContext:
        order = present({"language": language, "cwd": cwd})
        return CodeContext.of((await self.client.call("createContext", json=order, headers=await self._cell_headers())).json())

    async def fork_context(self, context: Union[CodeContext, str]) -> CodeContext:
        """Another context with everything that this one has."""
        return CodeContext.of((await self._context("forkContext", context)).json())

    async def restart_context(self, context: Union[CodeContext, str]) -> None:
        await self._context("restartContext", context)

    async def remove_context(self, context: Union[CodeContext, str]) -> None:
        await self._context("removeContext", context)

    async def _context(self, operation: str, context: Union[CodeContext, str]) -> Answer:
        name = context.id if isinstance(context, CodeContext) else context
        return await self.client.call(operation, context=name, headers=await self._cell_headers(), json=None)


class AsyncNetwork:
    """What a sandbox may reach: docs/network.md."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._client, self._id = sandbox.client, sandbox.id

    async def get(self) -> dict[str, Any]:
        return (await self._client.call("getNetwork", id=self._id)).json()

    async def set(self, rules: NetworkRules) -> dict[str, Any]:
        """At once; connections that are no longer allowed are cut."""
        return (await self._client.call("putNetwork", id=self._id, json=rules)).json()

    async def allow(self, rule: str) -> dict[str, Any]:
        """One thing more, such as `api.example.com` or `10.0.0.5:5432`."""
        return (await self._client.call("allowNetwork", id=self._id, json={"rule": rule})).json()

    async def events(self, *, after: Optional[int] = None) -> List[NetworkEvent]:
        """What was refused and what was let out, oldest first; `after` is the `seq` of the last one seen."""
        answer = await self._client.call("listNetworkEvents", id=self._id, query={"after": after})
        return [NetworkEvent.of(one) for one in answer.json()["events"]]


class AsyncPorts:
    """TCP ports that programs listen on inside."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._client, self._id = sandbox.client, sandbox.id

    async def list(self) -> List[PortInfo]:
        return [PortInfo.of(one) for one in (await self._client.call("listPorts", id=self._id)).json()["ports"]]

    async def link(self, port: int, *, expires_seconds: int = 3600) -> PortLink:
        """A link for a browser."""
        return PortLink.of((await self._client.call("linkPort", id=self._id, port=port, json={"expires_seconds": expires_seconds})).json())

    async def request(self, port: int, path: str = "/", *, method: str = "GET", query: Optional[Mapping[str, str]] = None,
                      body: Optional[Body] = None, headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None) -> Answer:
        """A request to a server inside; what it answers, whatever the status is."""
        operation = f"relay{method.capitalize()}"
        async with await self._client.stream(operation, id=self._id, port=port, path=path.lstrip("/"), query=query, body=body,
                                             headers=list((headers or {}).items()), timeout=timeout, any_status=True) as stream:
            return Answer(stream.status, stream.headers, await stream.read())

    async def connect(self, port: int) -> AsyncTunnel:
        """A connection to the port, whatever protocol is spoken there."""
        return AsyncTunnel(await self._client.websocket("tunnel", id=self._id, port=port, timeout=SILENCE))
