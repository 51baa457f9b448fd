"""SandboxPool: sandboxes that are made before they are needed.

The server keeps a pool of its own (docs/pools.md), which makes a create a matter of microseconds. This one is for programs that want sandboxes
with something prepared in them.
"""
from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Optional

from ..errors import ConfigurationError
from .config import SandboxConfig
from .tools import CoveSandbox


class SandboxPool:
    """Keeps `size` sandboxes ready.

        async with SandboxPool(size=4, prepare=install) as pool:
            async with pool.sandbox() as sandbox:
                await sandbox.execute_bash("pytest")
    """

    def __init__(self, size: int = 10, config: Optional[SandboxConfig] = None, *,
                 prepare: Optional[Callable[[CoveSandbox], Awaitable[object]]] = None) -> None:
        if size < 1:
            raise ConfigurationError("invalid size: at least 1 is needed", field="size")
        self.size, self.config = size, config or SandboxConfig()
        self._prepare = prepare
        self._ready: deque[CoveSandbox] = deque()
        self._making: set[asyncio.Task[None]] = set()
        self._failure: Optional[BaseException] = None
        self._closed = False

    async def start(self) -> None:
        """Makes all of them; where one cannot be made, the others end and the error is raised."""
        made = await asyncio.gather(*(self._make() for _ in range(self.size)), return_exceptions=True)
        failure = next((one for one in made if one is not None), None)
        if failure is not None:
            await self.close()
            raise failure

    async def _make(self) -> None:
        sandbox = CoveSandbox(self.config)
        try:
            await sandbox.connect()
            if self._prepare is not None:
                await self._prepare(sandbox)
        except BaseException:
            await sandbox.close()
            raise
        if self._closed:
            await sandbox.close()
        else:
            self._ready.append(sandbox)

    def _replenish(self) -> None:
        task = asyncio.ensure_future(self._make())
        self._making.add(task)
        task.add_done_callback(self._made)

    def _made(self, task: asyncio.Task[None]) -> None:
        self._making.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()

    async def acquire(self) -> CoveSandbox:
        """A sandbox, which is the caller's from now on: `close()` ends it. Another one is made meanwhile."""
        if self._closed:
            raise ConfigurationError("the pool is closed")
        if not self._ready and not self._making:
            self._replenish()
        while not self._ready:
            if not self._making:
                raise self._failure or ConfigurationError("the pool is closed")
            await asyncio.wait(self._making, return_when=asyncio.FIRST_COMPLETED)
        sandbox = self._ready.popleft()
        while len(self._ready) + len(self._making) < self.size:
            self._replenish()
        return sandbox

    @asynccontextmanager
    async def sandbox(self) -> AsyncIterator[CoveSandbox]:
        """A sandbox for a block, ended behind it."""
        sandbox = await self.acquire()
        try:
            yield sandbox
        finally:
            await sandbox.close()

    async def close(self) -> None:
        """Ends the sandboxes that wait. Those that were acquired are their owners'."""
        self._closed = True
        if self._making:
            await asyncio.wait(set(self._making))
        while self._ready:
            await self._ready.popleft().close()

    async def __aenter__(self) -> SandboxPool:
        await self.start()
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()
