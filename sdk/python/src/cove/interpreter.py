"""Cells in a sandbox of their own, for programs that were written for E2B's older interpreter.

    sandbox = CodeInterpreter()
    execution = sandbox.notebook.exec_cell("print('hello')")
    print(execution.logs.stdout)
    sandbox.close()
"""
from __future__ import annotations

from types import TracebackType
from typing import Any, Optional

from ._sync.client import Cove
from ._sync.sandbox import Sandbox
from .models import Execution


class Notebook:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def exec_cell(self, code: str, **options: Any) -> Execution:
        """Runs a cell; the options are those of `Sandbox.run_code`."""
        return self._sandbox.run_code(code, **options)


class CodeInterpreter:
    """A sandbox whose cells share their variables. As a context manager it ends with the block."""

    def __init__(self, template: Optional[str] = None, *, client: Optional[Cove] = None, **options: Any) -> None:
        self.sandbox = Sandbox.create(template, client=client, **options)
        self.notebook = Notebook(self.sandbox)

    def close(self) -> None:
        self.sandbox.kill()

    def __enter__(self) -> CodeInterpreter:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()
