"""Templates that tenants build (docs/templates.md): AsyncTemplates, AsyncBuilds, and AsyncBuild for one that is under way."""
from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Callable, List, Optional

from .. import _io_async as io
from .._core.request import present
from ..builds import BuildInfo, BuildLine, BuildStep, TemplateInfo
from ..errors import BuildError
from ..models import Limits, NetworkRules

if TYPE_CHECKING:
    from .client import AsyncCove


class AsyncBuild:
    """One build. `info` is what the server said last."""

    def __init__(self, client: AsyncCove, info: BuildInfo) -> None:
        self._client, self.info = client, info

    @property
    def id(self) -> str:
        return self.info.id

    async def logs(self, *, follow: bool = True) -> AsyncIterator[BuildLine]:
        """The lines of the log, from the first: as they come until the build has ended, or those that there are now."""
        async with await self._client.stream("getBuildLogs", build=self.id, query={"follow": follow}) as stream:
            async for event in stream.events():
                if event.get("type") == "line":
                    yield BuildLine.of(event)

    async def refresh(self) -> BuildInfo:
        self.info = BuildInfo.of((await self._client.call("getBuild", build=self.id)).json())
        return self.info

    async def wait(self, *, on_log: Optional[Callable[[BuildLine], Any]] = None) -> BuildInfo:
        """Follows the build to its end; BuildError if the template is not ready then."""
        async for line in self.logs():
            await io.call_back(on_log, line)
        info = await self.refresh()
        if info.state != "ready":
            raise BuildError(info.reason or f"the build is {info.state}", build=info)
        return info

    async def cancel(self) -> None:
        await self._client.call("cancelBuild", build=self.id)


class AsyncBuilds:
    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def create(self, name: str, *, from_template: Optional[str] = None, steps: Optional[Sequence[BuildStep]] = None,
                     tags: Optional[Sequence[str]] = None, start: Optional[str] = None, ready: Optional[str] = None,
                     limits: Optional[Limits] = None, network: Optional[NetworkRules] = None, force: Optional[bool] = None,
                     step_timeout: Optional[float] = None, **more: Any) -> AsyncBuild:
        """Begins a build: `name` is NAME or NAME:TAG. `more` are members of the request that this version does not know."""
        order: Mapping[str, Any] = {"name": name, "from": from_template, "steps": None if steps is None else list(steps),
                                    "tags": None if tags is None else list(tags), "start": start, "ready": ready, "limits": limits,
                                    "network": network, "force": force, "step_timeout": step_timeout, **more}
        return AsyncBuild(self._client, BuildInfo.of((await self._client.call("createBuild", json=present(order))).json()))

    async def put_files(self, archive: bytes) -> str:
        """Uploads a tar archive, plain or in gzip; the name that a COPY step says in `files`."""
        name = sha256(archive).hexdigest()
        await self._client.call("putBuildFiles", hash=name, body=archive)
        return name

    async def list(self, *, template: Optional[str] = None) -> List[BuildInfo]:
        """The last 100, newest first."""
        return [BuildInfo.of(one) for one in (await self._client.call("listBuilds", query={"template": template})).json()["builds"]]

    async def get(self, build: str) -> AsyncBuild:
        return AsyncBuild(self._client, BuildInfo.of((await self._client.call("getBuild", build=build)).json()))


class AsyncTemplates:
    def __init__(self, client: AsyncCove) -> None:
        self._client = client

    async def list(self) -> List[TemplateInfo]:
        return [TemplateInfo.of(one) for one in (await self._client.call("listTemplates")).json()["templates"]]

    async def get(self, name: str) -> TemplateInfo:
        return TemplateInfo.of((await self._client.call("getTemplate", name=name)).json())

    async def publish(self, name: str, *, public: bool = True) -> TemplateInfo:
        """To every tenant, or not any more. For administrators of the tenant `local`."""
        return TemplateInfo.of((await self._client.call("publishTemplate", name=name, json={"public": public})).json())

    async def tag(self, name: str, *tags: str, from_tag: Optional[str] = None) -> TemplateInfo:
        """More tags for the build that has `from_tag` (default)."""
        return TemplateInfo.of((await self._client.call("tagTemplate", name=name, json=present({"from": from_tag, "tags": list(tags)}))).json())

    async def untag(self, name: str, tag: str) -> bool:
        return await self._client.remove("untagTemplate", name=name, tag=tag)

    async def remove(self, name: str) -> bool:
        """With its builds. Sandboxes that were made of it keep running."""
        return await self._client.remove("deleteTemplate", name=name)
