"""Files of a sandbox. Paths are absolute or relative to the user's home."""
from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Callable, List, Literal, Optional, Tuple, Union, overload

from .. import _io_async as io
from .._archive import pack, size_of, unpack
from .._core.request import Body, present
from ..errors import ConfigurationError, ConnectionFailedError, PathNotFoundError
from ..models import EntryInfo, FileChange, Match, Progress, SignedUrl
from .transport import AsyncAnswerStream

if TYPE_CHECKING:
    from .sandbox import AsyncSandbox

Content = Union[str, Body]
PART = 256 * 1024
RESUME_TRIES = 5


OnProgress = Optional[Callable[[Progress], Any]]


class AsyncWatch:
    """Changes in a directory, as they happen. `close()` ends it; as a context manager it closes itself."""

    def __init__(self, stream: AsyncAnswerStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[FileChange]:
        async for event in self._stream.events():
            if event.get("type") != "start":
                yield FileChange.of(event)

    def close(self) -> None:
        self._stream.close()

    async def __aenter__(self) -> AsyncWatch:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class AsyncFiles:
    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._client, self._id = sandbox.client, sandbox.id

    # ---- content ----

    @overload
    async def read(self, path: str, format: Literal["text"] = "text", *, user: Optional[str] = None) -> str: ...

    @overload
    async def read(self, path: str, format: Literal["bytes"], *, user: Optional[str] = None) -> bytes: ...

    async def read(self, path: str, format: str = "text", *, user: Optional[str] = None) -> Union[str, bytes]:
        """The content as text, with U+FFFD where it is not UTF-8, or as bytes. `stream()` is for large files."""
        if format not in ("text", "bytes"):
            raise ConfigurationError(f"invalid format {format!r}: must be one of text, bytes", field="format")
        body = (await self._client.call("readFile", id=self._id, query={"path": path, "user": user})).body
        return body if format == "bytes" else body.decode("utf-8", "replace")

    async def stream(self, path: str, *, user: Optional[str] = None) -> AsyncIterator[bytes]:
        """The content in parts, as they come."""
        async with await self._client.stream("readFile", id=self._id, query={"path": path, "user": user}) as stream:
            async for part in stream.parts():
                yield part

    async def write(self, path: str, data: Content, *, user: Optional[str] = None, mode: Optional[str] = None, append: bool = False,
                    create: bool = False, parents: bool = True, on_progress: OnProgress = None) -> EntryInfo:
        """Writes a whole file: a reader sees the old content or the new one. `create` refuses a file that exists."""
        query = {"path": path, "user": user, "mode": mode, "append": append or None, "create": create or None,
                 "parents": None if parents else False}
        answer = await self._client.call("writeFile", id=self._id, query=query, body=_body(data, on_progress),
                                         repeatable=not append and not create)
        return EntryInfo.of(answer.json())

    async def write_files(self, files: Mapping[str, Content], *, user: Optional[str] = None) -> List[EntryInfo]:
        return [await self.write(path, data, user=user) for path, data in files.items()]

    async def upload(self, local: Union[str, os.PathLike[str]], path: str, *, user: Optional[str] = None, mode: Optional[str] = None,
                     on_progress: OnProgress = None) -> EntryInfo:
        """A file of this machine into the sandbox."""
        with open(local, "rb") as file:
            return await self.write(path, file, user=user, mode=mode, on_progress=on_progress)

    async def download(self, path: str, local: Union[str, os.PathLike[str]], *, user: Optional[str] = None,
                       on_progress: OnProgress = None) -> int:
        """A file of the sandbox to this machine, in the place of the old one only when it is whole; its size.

        A connection that breaks is made again, and the rest is asked for, if the file is still the same.
        """
        folder = os.path.dirname(os.path.abspath(local))
        handle, partial = tempfile.mkstemp(prefix=".cove-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                size = await self._download(path, user, file, on_progress)
            os.replace(partial, local)
            return size
        except BaseException:
            os.unlink(partial)
            raise

    async def _download(self, path: str, user: Optional[str], file: IO[bytes], on_progress: OnProgress) -> int:
        done, tries = 0, 0
        tag: Optional[str] = None
        while True:
            headers: List[Tuple[str, str]] = [("Range", f"bytes={done}-"), ("If-Range", tag)] if done and tag else []
            try:
                async with await self._client.stream("readFile", id=self._id, query={"path": path, "user": user}, headers=headers) as stream:
                    if stream.status != 206:
                        done = 0  # all of it: the file changed, or this is the first time
                        file.seek(0)
                        file.truncate()
                    tag, length = stream.headers.get("etag"), stream.headers.get("content-length")
                    total = done + int(length) if length and length.isdigit() else None
                    async for part in stream.parts():
                        await io.write_part(file, part)
                        done, tries = done + len(part), 0
                        await io.call_back(on_progress, Progress(done, total))
                    return done
            except ConnectionFailedError:
                tries += 1
                if tries > RESUME_TRIES:
                    raise

    async def upload_dir(self, local: Union[str, os.PathLike[str]], path: str, *, user: Optional[str] = None,
                         on_progress: OnProgress = None) -> int:
        """A directory of this machine, with all that is in it, into a directory of the sandbox; how many entries."""
        with tempfile.TemporaryFile() as file:
            pack(local, file)
            answer = await self._client.call("writeTar", id=self._id, query={"path": path, "user": user}, body=_body(file, on_progress))
        return int(answer.json().get("entries", 0))

    async def download_dir(self, path: str, local: Union[str, os.PathLike[str]], *, user: Optional[str] = None,
                           skip_unreadable: bool = False, on_progress: OnProgress = None) -> int:
        """What is in a directory of the sandbox, into a directory of this machine; how many entries.

        The sandbox is not trusted: names that lead out of `local` and links to places outside of it are refused.
        """
        query = {"path": path, "user": user, "skip_unreadable": skip_unreadable or None}
        with tempfile.TemporaryFile() as file:
            done = 0
            async with await self._client.stream("readTar", id=self._id, query=query) as stream:
                async for part in stream.parts():
                    await io.write_part(file, part)
                    done += len(part)
                    await io.call_back(on_progress, Progress(done, None))
            file.seek(0)
            return unpack(file, os.path.abspath(local))

    # ---- names ----

    async def list(self, path: str = ".", *, depth: int = 1, limit: int = 10000, user: Optional[str] = None) -> List[EntryInfo]:
        answer = await self._client.call("listFiles", id=self._id, query={"path": path, "depth": depth, "limit": limit, "user": user})
        return [EntryInfo.of(one) for one in answer.json()["entries"]]

    async def glob(self, pattern: str, path: str = ".", *, hidden: bool = False, limit: int = 10000,
                   user: Optional[str] = None) -> List[EntryInfo]:
        query = {"path": path, "pattern": pattern, "hidden": hidden or None, "limit": limit, "user": user}
        return [EntryInfo.of(one) for one in (await self._client.call("globFiles", id=self._id, query=query)).json()["entries"]]

    async def search(self, pattern: str, path: str = ".", *, include: Optional[str] = None, fixed: bool = False, ignore_case: bool = False,
                     files_only: bool = False, hidden: bool = False, before: int = 0, after: int = 0, limit: int = 1000,
                     user: Optional[str] = None) -> List[Match]:
        """Lines that match a regular expression, or with `fixed` a text."""
        query = {"path": path, "pattern": pattern, "include": include, "fixed": fixed or None, "ignore_case": ignore_case or None,
                 "files_only": files_only or None, "hidden": hidden or None, "before": before or None, "after": after or None,
                 "limit": limit, "user": user}
        return [Match.of(one) for one in (await self._client.call("searchFiles", id=self._id, query=query)).json()["matches"]]

    async def exists(self, path: str, *, user: Optional[str] = None) -> bool:
        try:
            await self.get_info(path, user=user)
        except PathNotFoundError:
            return False
        return True

    async def get_info(self, path: str, *, follow: bool = True, user: Optional[str] = None) -> EntryInfo:
        answer = await self._client.call("statFile", id=self._id, query={"path": path, "follow": None if follow else False, "user": user})
        return EntryInfo.of(answer.json())

    async def make_dir(self, path: str, *, mode: Optional[str] = None, parents: bool = True, user: Optional[str] = None) -> bool:
        """False: it was there already."""
        order = present({"path": path, "mode": mode, "parents": parents, "user": user})
        return not (await self._client.call("makeDirectory", id=self._id, json=order)).json().get("existed", False)

    async def remove(self, path: str, *, recursive: bool = True, user: Optional[str] = None) -> int:
        """Removes a file or a directory; how many entries that were."""
        answer = await self._client.call("removeFile", id=self._id, query={"path": path, "recursive": recursive, "user": user})
        return int(answer.json().get("removed", 0))

    async def rename(self, path: str, to: str, *, parents: bool = True, user: Optional[str] = None) -> EntryInfo:
        await self._client.call("moveFile", id=self._id, json=present({"path": path, "to": to, "parents": parents, "user": user}))
        return await self.get_info(to, follow=False, user=user)

    async def chmod(self, path: str, mode: str, *, recursive: bool = False, user: Optional[str] = None) -> None:
        """`mode` is octal, such as "755"."""
        await self._client.call("chmodFile", id=self._id, json=present({"path": path, "mode": mode, "recursive": recursive, "user": user}))

    async def watch_dir(self, path: str = ".", *, recursive: bool = False, user: Optional[str] = None) -> AsyncWatch:
        """Changes from now on: when this returns, the directory is watched."""
        stream = await self._client.stream("watchFiles", id=self._id, query={"path": path, "recursive": recursive or None, "user": user})
        return AsyncWatch(stream)

    async def sign_url(self, path: str, operation: str = "read", *, expires_in: float = 3600, user: Optional[str] = None) -> SignedUrl:
        """A URL that reads (GET) or writes (PUT) one file without a key."""
        order = present({"path": path, "operation": operation, "expires_in": expires_in, "user": user})
        return SignedUrl.of((await self._client.call("signFile", id=self._id, json=order)).json())


def _body(data: Content, on_progress: OnProgress) -> Body:
    """What is sent. Texts are UTF-8."""
    raw = data.encode("utf-8") if isinstance(data, str) else bytes(data) if isinstance(data, (bytearray, memoryview)) else data
    if on_progress is None:
        return raw
    return _shown(raw, on_progress)


async def _shown(body: Body, on_progress: OnProgress) -> AsyncIterator[bytes]:
    done, total = 0, size_of(body)
    async for part in io.parts_of(body, PART):
        yield part
        done += len(part)
        await io.call_back(on_progress, Progress(done, total))
