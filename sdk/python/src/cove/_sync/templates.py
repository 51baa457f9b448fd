# Made of _async/templates.py by sdk/python/make_sync.py. Change that file, then run it.
"""Templates that tenants build (docs/templates.md): Templates, Builds, and Build for one that is under way."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Callable, List, Optional

from .. import _io_sync as io
from .._core.request import present
from ..builds import BuildInfo, BuildLine, BuildStep, TemplateInfo
from ..errors import BuildError
from ..models import Limits, NetworkRules

if TYPE_CHECKING:
    from .client import Cove


class Build:
    """One build. `info` is what the server said last."""

    def __init__(self, client: Cove, info: BuildInfo) -> None:
        self._client, self.info = client, info

    @property
    def id(self) -> str:
        return self.info.id

    def logs(self, *, follow: bool = True) -> Iterator[BuildLine]:
        """The lines of the log, from the first: as they come until the build has ended, or those that there are now."""
        with self._client.stream("getBuildLogs", build=self.id, query={"follow": follow}) as stream:
            for event in stream.events():
                if event.get("type") == "line":
                    yield BuildLine.of(event)

    def refresh(self) -> BuildInfo:
        self.info = BuildInfo.of((self._client.call("getBuild", build=self.id)).json())
        return self.info

    def wait(self, *, on_log: Optional[Callable[[BuildLine], Any]] = None) -> BuildInfo:
        """Follows the build to its end; BuildError if the template is not ready then."""
        for line in self.logs():
            io.call_back(on_log, line)
        info = self.refresh()
        if info.state != "ready":
            raise BuildError(info.reason or f"the build is {info.state}", build=info)
        return info

    def cancel(self) -> None:
        self._client.call("cancelBuild", build=self.id)


class Builds:
    def __init__(self, client: Cove) -> None:
        self._client = client

    def create(self, name: str, *, from_template: Optional[str] = None, steps: Optional[Sequence[BuildStep]] = None,
                     tags: Optional[Sequence[str]] = None, start: Optional[str] = None, ready: Optional[str] = None,
                     limits: Optional[Limits] = None, network: Optional[NetworkRules] = None, force: Optional[bool] = None,
                     step_timeout: Optional[float] = None, **more: Any) -> Build:
        """Begins a build: `name` is NAME or NAME:TAG. `more` are members of the request that this version does not know."""
        order: Mapping[str, Any] = {"name": name, "from": from_template, "steps": None if steps is None else list(steps),
                                    "tags": None if tags is None else list(tags), "start": start, "ready": ready, "limits": limits,
                                    "network": network, "force": force, "step_timeout": step_timeout, **more}
        return Build(self._client, BuildInfo.of((self._client.call("createBuild", json=present(order))).json()))

    def put_files(self, archive: bytes) -> str:
        """Uploads a tar archive, plain or in gzip; the name that a COPY step says in `files`."""
        name = sha256(archive).hexdigest()
        self._client.call("putBuildFiles", hash=name, body=archive)
        return name

    def list(self, *, template: Optional[str] = None) -> List[BuildInfo]:
        """The last 100, newest first."""
        return [BuildInfo.of(one) for one in (self._client.call("listBuilds", query={"template": template})).json()["builds"]]

    def get(self, build: str) -> Build:
        return Build(self._client, BuildInfo.of((self._client.call("getBuild", build=build)).json()))


class Templates:
    def __init__(self, client: Cove) -> None:
        self._client = client

    def list(self) -> List[TemplateInfo]:
        return [TemplateInfo.of(one) for one in (self._client.call("listTemplates")).json()["templates"]]

    def get(self, name: str) -> TemplateInfo:
        return TemplateInfo.of((self._client.call("getTemplate", name=name)).json())

    def publish(self, name: str, *, public: bool = True) -> TemplateInfo:
        """To every tenant, or not any more. For administrators of the tenant `local`."""
        return TemplateInfo.of((self._client.call("publishTemplate", name=name, json={"public": public})).json())

    def tag(self, name: str, *tags: str, from_tag: Optional[str] = None) -> TemplateInfo:
        """More tags for the build that has `from_tag` (default)."""
        return TemplateInfo.of((self._client.call("tagTemplate", name=name, json=present({"from": from_tag, "tags": list(tags)}))).json())

    def untag(self, name: str, tag: str) -> bool:
        return self._client.remove("untagTemplate", name=name, tag=tag)

    def remove(self, name: str) -> bool:
        """With its builds. Sandboxes that were made of it keep running."""
        return self._client.remove("deleteTemplate", name=name)
