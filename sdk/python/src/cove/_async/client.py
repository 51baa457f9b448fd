"""The server as a whole: AsyncCove. Sandboxes are in sandbox.py."""
from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Callable, List, Optional, Union

from .. import _io_async as io
from .._core.endpoint import QueryValue, parse_endpoint
from .._core.operations import CELLS, OPERATIONS
from .._core.output import StreamCollector, run_result
from .._core.request import Answer, Body, Request, build, command_of, present
from .._core.retry import RetryPolicy
from .._version import __version__
from ..errors import ConfigurationError, NotFoundError
from ..models import (Analysis, Limits, NetworkRules, PolicyRules, PrivateMember, PrivateNetwork, RunFileData, RunResult, SecretInfo, Size,
                      SnapshotInfo, ToolAnswer, VolumeInfo)
from .operating import AsyncAudit, AsyncKeys, AsyncTenants
from .templates import AsyncBuilds, AsyncTemplates
from .transport import AsyncAnswerStream, AsyncTransport, AsyncWebSocket


class AsyncCove:
    """A cove server.

    `url` is `http://HOST:PORT`, `https://HOST` or `unix:/path/of/cove.sock`; without it COVE_URL says it, and else the server is on
    this machine. `api_key` comes from COVE_API_KEY or E2B_API_KEY if it is not given; on loopback none is needed. `timeout` is how long
    the server may say nothing; streams send a sign of life every 15 seconds. `tenant`: the operator acts for that tenant.
    """

    def __init__(self, url: Optional[str] = None, api_key: Optional[str] = None, *, timeout: float = 60, connect_timeout: float = 10,
                 retry: Optional[RetryPolicy] = None, ca_file: Optional[str] = None, ssl_context: Optional[ssl.SSLContext] = None,
                 idle_connections: int = 16, tenant: Optional[str] = None, on_call: Optional[Callable[[str], object]] = None) -> None:
        endpoint = parse_endpoint(url)
        key = api_key or os.environ.get("COVE_API_KEY") or os.environ.get("E2B_API_KEY") or None
        if timeout <= 0 or connect_timeout <= 0:
            raise ConfigurationError("invalid timeout: a number of seconds above 0 is needed", field="timeout")
        if ca_file is not None and ssl_context is None:
            try:
                ssl_context = ssl.create_default_context(cafile=ca_file)
            except (OSError, ssl.SSLError) as error:
                raise ConfigurationError(f"ca_file {ca_file!r} cannot be used: {error}", field="ca_file") from None
        self.transport = AsyncTransport(endpoint, key, timeout=timeout, connect_timeout=connect_timeout, retry=retry or RetryPolicy(),
                                        tls=ssl_context, idle_most=idle_connections, user_agent=f"cove-python/{__version__}", tenant=tenant)
        self._on_call = on_call
        self.volumes = AsyncVolumes(self)
        self.secrets = AsyncSecrets(self)
        self.snapshots = AsyncSnapshots(self)
        self.networks = AsyncPrivateNetworks(self)
        self.pools = AsyncPools(self)
        self.policy = AsyncPolicy(self)
        self.tools = AsyncTools(self)
        self.templates = AsyncTemplates(self)
        self.builds = AsyncBuilds(self)
        self.tenants = AsyncTenants(self)
        self.keys = AsyncKeys(self)
        self.audit = AsyncAudit(self)

    @property
    def url(self) -> str:
        return self.transport.endpoint.url

    @property
    def api_key(self) -> Optional[str]:
        return self.transport.api_key

    # ---- requests by the name of their operation: what everything below and every sandbox uses ----

    async def call(self, operation: str, /, *, query: Optional[Mapping[str, QueryValue]] = None, json: Any = None, body: Optional[Body] = None,
                   headers: Sequence[tuple[str, str]] = (), timeout: Optional[float] = None, repeatable: Optional[bool] = None,
                   **params: object) -> Answer:
        """Asks for an operation of the API by its operationId, and gives the whole answer."""
        request = self._request(operation, params, query, json, body, headers, timeout, repeatable)
        return await self.transport.call(request)

    async def remove(self, operation: str, /, **params: object) -> bool:
        """Removes something; False: it was not there."""
        try:
            await self.transport.call(self._request(operation, params, None, None, None, (), None, None))
        except NotFoundError:
            return False
        return True

    async def stream(self, operation: str, /, *, query: Optional[Mapping[str, QueryValue]] = None, json: Any = None, body: Optional[Body] = None,
                     headers: Sequence[tuple[str, str]] = (), timeout: Optional[float] = None, any_status: bool = False,
                     **params: object) -> AsyncAnswerStream:
        """As `call`, but the body of the answer is read by the caller."""
        request = self._request(operation, params, query, json, body, headers, timeout, None)
        return await self.transport.open(request, any_status=any_status)

    async def websocket(self, operation: str, /, *, query: Optional[Mapping[str, QueryValue]] = None, timeout: Optional[float] = None,
                        **params: object) -> AsyncWebSocket:
        return await self.transport.upgrade(self._request(operation, params, query, None, None, (), timeout, None))

    def _request(self, operation: str, params: Mapping[str, object], query: Optional[Mapping[str, QueryValue]], json: Any,
                 body: Optional[Body], headers: Sequence[tuple[str, str]], timeout: Optional[float], repeatable: Optional[bool]) -> Request:
        if self._on_call is not None:
            self._on_call(operation)
        known = OPERATIONS.get(operation) or CELLS.get(operation)
        if known is None:
            raise ConfigurationError(f"unknown operation {operation!r}")
        return build(self.transport.endpoint, known, params, query=query or {}, json=json, body=body, headers=headers,
                     timeout=self.transport.timeout if timeout is None else timeout, repeatable=repeatable)

    # ---- the server ----

    async def health(self) -> dict[str, Any]:
        """What the server stands on, also when it is not healthy."""
        async with await self.stream("getHealth", any_status=True) as stream:
            return Answer(stream.status, stream.headers, await stream.read()).json()

    async def stats(self) -> dict[str, Any]:
        return (await self.call("getStats")).json()

    async def metrics(self) -> str:
        """Prometheus text."""
        return (await self.call("getMetrics")).body.decode("utf-8")

    async def openapi(self) -> str:
        return (await self.call("getOpenapi")).body.decode("utf-8")

    async def audit_logs(self, *, limit: int = 100, action: Optional[str] = None, sandbox_id: Optional[str] = None,
                         outcome: Optional[str] = None, since_ms: Optional[int] = None,
                         until_ms: Optional[int] = None) -> AsyncIterator[dict[str, Any]]:
        """Records of the tenant, newest first: all of them, `limit` at a time."""
        after: Optional[int] = None
        while True:
            page = (await self.call("listAudit", query={"limit": limit, "after": after, "action": action, "sandbox_id": sandbox_id,
                                                        "outcome": outcome, "since_ms": since_ms, "until_ms": until_ms})).json()
            for record in page.get("logs", []):
                yield record
            after = page.get("next")
            if after is None:
                return

    async def default_network(self) -> Optional[NetworkRules]:
        """What sandboxes of the tenant may reach whose create says nothing."""
        rules: Optional[NetworkRules] = (await self.call("getDefaultNetwork")).json().get("network")
        return rules

    async def set_default_network(self, rules: Optional[NetworkRules]) -> None:
        """None: no default any more."""
        if rules is None:
            await self.call("deleteDefaultNetwork")
        else:
            await self.call("setDefaultNetwork", json=rules)

    async def run(self, command: Optional[Union[str, Sequence[str]]] = None, *, code: Optional[str] = None, language: Optional[str] = None,
                  template: Optional[str] = None, limits: Optional[Limits] = None, network: Optional[NetworkRules] = None, root: bool = False,
                  files: Optional[Mapping[str, Union[str, RunFileData]]] = None, stdin: Optional[str] = None,
                  envs: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None, user: Optional[str] = None, timeout: float = 60,
                  cpu_timeout: Optional[float] = None, return_files: Optional[Sequence[str]] = None, files_limit: Optional[int] = None,
                  on_stdout: Optional[Callable[[str], Any]] = None, on_stderr: Optional[Callable[[str], Any]] = None,
                  output_limit: int = 16 << 20) -> RunResult:
        """One command, or code, in a sandbox of its own, which is gone behind the answer."""
        order = {"code": code, "language": language, "template": template, "limits": limits, "network": network, "root": root or None,
                 "files": files, "stdin": stdin, "env": envs, "cwd": cwd, "user": user, "timeout": timeout, "cpu_timeout": cpu_timeout,
                 "return_files": return_files, "files_limit": files_limit, "stream": "ndjson", **command_of(command)}
        output = StreamCollector(output_limit)
        async with await self.stream("run", json=present(order)) as stream:
            async for event in stream.events():
                await deliver(output, event, on_stdout, on_stderr)
        return run_result(output)

    def close(self) -> None:
        """Closes idle connections; requests that are under way end by themselves."""
        self.transport.close()

    async def __aenter__(self) -> AsyncCove:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


async def deliver(output: StreamCollector, event: Mapping[str, Any], on_stdout: Optional[Callable[[str], Any]],
                  on_stderr: Optional[Callable[[str], Any]]) -> None:
    """Keeps an event, and shows the text that it brought."""
    stream, text = output.take(event)
    if text and stream:
        await io.call_back(on_stdout if stream == "stdout" else on_stderr, text)


class AsyncVolumes:
    """Directories that outlive sandboxes."""

    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def create(self, name: str, *, size: Optional[Size] = None, inodes: Optional[int] = None) -> VolumeInfo:
        return VolumeInfo.of((await self._client.call("createVolume", json=present({"name": name, "size": size, "inodes": inodes}))).json())

    async def list(self) -> List[VolumeInfo]:
        return [VolumeInfo.of(one) for one in (await self._client.call("listVolumes")).json()["volumes"]]

    async def get(self, name: str) -> VolumeInfo:
        return VolumeInfo.of((await self._client.call("getVolume", name=name)).json())

    async def remove(self, name: str) -> bool:
        return await self._client.remove("removeVolume", name=name)


class AsyncSecrets:
    """Values that sandboxes use and never see."""

    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def set(self, name: str, value: str, hosts: Sequence[str]) -> None:
        await self._client.call("putSecret", name=name, json={"value": value, "hosts": list(hosts)})

    async def list(self) -> List[SecretInfo]:
        return [SecretInfo.of(one) for one in (await self._client.call("listSecrets")).json()["secrets"]]

    async def remove(self, name: str) -> bool:
        return await self._client.remove("deleteSecret", name=name)


class AsyncSnapshots:
    """Saved sandboxes. `Sandbox.snapshot()` makes one, `Sandbox.create(snapshot=…)` a sandbox of it."""

    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def list(self, *, sandbox: Optional[str] = None, name: Optional[str] = None, limit: int = 100) -> AsyncIterator[SnapshotInfo]:
        """Newest first: all of them, `limit` at a time."""
        cursor: Optional[str] = None
        while True:
            page = (await self._client.call("listSnapshots", query={"sandbox": sandbox, "name": name, "limit": limit, "cursor": cursor})).json()
            for one in page["snapshots"]:
                yield SnapshotInfo.of(one)
            cursor = page.get("next")
            if cursor is None:
                return

    async def get(self, snapshot: str) -> SnapshotInfo:
        return SnapshotInfo.of((await self._client.call("getSnapshot", snapshot=snapshot)).json())

    async def remove(self, snapshot: str) -> bool:
        return await self._client.remove("deleteSnapshot", snapshot=snapshot)


class AsyncPrivateNetworks:
    """Networks between sandboxes of one tenant."""

    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def create(self, name: str) -> PrivateNetwork:
        """One that is there already is no error."""
        return PrivateNetwork.of((await self._client.call("createPrivateNetwork", json={"name": name})).json())

    async def list(self) -> List[PrivateNetwork]:
        return [PrivateNetwork.of(one) for one in (await self._client.call("listPrivateNetworks")).json()["networks"]]

    async def get(self, name: str) -> PrivateNetwork:
        return PrivateNetwork.of((await self._client.call("getPrivateNetwork", name=name)).json())

    async def remove(self, name: str) -> bool:
        return await self._client.remove("deletePrivateNetwork", name=name)

    async def join(self, name: str, sandbox: str, *, alias: Optional[str] = None, ports: Optional[Sequence[int]] = None) -> PrivateMember:
        order = present({"alias": alias, "ports": None if ports is None else list(ports)})
        return PrivateMember.of((await self._client.call("joinPrivateNetwork", name=name, sandbox=sandbox, json=order)).json())

    async def leave(self, name: str, sandbox: str) -> bool:
        return await self._client.remove("leavePrivateNetwork", name=name, sandbox=sandbox)


class AsyncPools:
    """Sandboxes that are made ahead; for administrators of the tenant `local`."""

    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def list(self) -> dict[str, Any]:
        return (await self._client.call("listPools")).json()

    async def set(self, template: str, *, max: int, min: int = 0) -> dict[str, Any]:
        return (await self._client.call("setPool", template=template, json={"min": min, "max": max})).json()

    async def unset(self, template: str) -> None:
        await self._client.call("unsetPool", template=template)

    async def drain(self) -> int:
        """Ends all that wait; how many."""
        return int((await self._client.call("drainPools")).json().get("ended", 0))


class AsyncPolicy:
    """What commands are let through."""

    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def analyze(self, command: Optional[str] = None, *, code: Optional[str] = None, language: Optional[str] = None,
                      path: Optional[str] = None, access: Optional[str] = None, tool: Optional[str] = None, preset: Optional[str] = None,
                      security: Optional[PolicyRules] = None) -> Analysis:
        """What the policy says of a command, code, a path or a tool, without running anything."""
        question = present({"command": command, "code": code, "language": language, "path": path, "access": access, "tool": tool,
                            "preset": preset, "security": security})
        return Analysis.of((await self._client.call("analyzeCommand", json=question)).json())

    async def violations(self, *, risk: Optional[str] = None, limit: int = 100) -> dict[str, Any]:
        """What was seen of late, newest first, and counts: `{"violations": […], "stats": {…}}`."""
        return (await self._client.call("listViolations", query={"risk": risk, "limit": limit})).json()


class AsyncTools:
    """Tools with the names and arguments that models know: docs/tools.md. Without `sandbox_id` they use the caller's default sandbox."""

    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def execute(self, tool_name: str, arguments: Mapping[str, Any], *, sandbox_id: Optional[str] = None,
                      timeout: Optional[float] = None) -> ToolAnswer:
        order = present({"tool_name": tool_name, "arguments": dict(arguments), "sandbox_id": sandbox_id})
        return ToolAnswer.of((await self._client.call("executeTool", json=order, timeout=timeout)).json())

    async def bash(self, command: str, *, sandbox_id: Optional[str] = None, **arguments: Any) -> ToolAnswer:
        return await self._ask("toolBash", {"command": command, **arguments}, sandbox_id, arguments.get("timeout_seconds"))

    async def read(self, path: str, *, sandbox_id: Optional[str] = None, **arguments: Any) -> ToolAnswer:
        return await self._ask("toolRead", {"path": path, **arguments}, sandbox_id)

    async def write(self, path: str, content: str, *, sandbox_id: Optional[str] = None, **arguments: Any) -> ToolAnswer:
        return await self._ask("toolWrite", {"path": path, "content": content, **arguments}, sandbox_id)

    async def search(self, pattern: str, path: str = ".", *, sandbox_id: Optional[str] = None, **arguments: Any) -> ToolAnswer:
        return await self._ask("toolSearch", {"pattern": pattern, "path": path, **arguments}, sandbox_id)

    async def _ask(self, operation: str, arguments: Mapping[str, Any], sandbox_id: Optional[str], takes: Optional[float] = None) -> ToolAnswer:
        order = present({**arguments, "sandbox_id": sandbox_id})
        wait = None if takes is None else takes + self._client.transport.timeout
        return ToolAnswer.of((await self._client.call(operation, json=order, timeout=wait)).json())

    async def list(self) -> List[dict[str, Any]]:
        tools: List[dict[str, Any]] = (await self._client.call("listTools")).json()["tools"]
        return tools

    async def presets(self) -> dict[str, Any]:
        presets: dict[str, Any] = (await self._client.call("listPresets")).json()["presets"]
        return presets

    async def create_sandbox(self, config: Optional[Mapping[str, Any]] = None) -> dict[str, Any]:
        """A sandbox to measure, as docs/tools.md has it."""
        return (await self._client.call("toolSandboxMake", json=dict(config or {}))).json()

    async def default_sandbox(self) -> dict[str, Any]:
        return (await self._client.call("toolSandboxGet")).json()

    async def end_default_sandbox(self) -> dict[str, Any]:
        return (await self._client.call("toolSandboxEnd")).json()
