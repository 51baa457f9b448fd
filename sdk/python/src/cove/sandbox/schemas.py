"""The tools of a sandbox as a model sees them: name, what it does, arguments. docs/tools.md has the details."""
from __future__ import annotations

from typing import Any, NamedTuple


class ToolSchema(NamedTuple):
    name: str
    """As a model calls it."""
    tool: str
    """As cove calls it."""
    description: str
    properties: dict[str, dict[str, Any]]
    required: tuple[str, ...]

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": self.properties, "required": list(self.required), "additionalProperties": False}


def _text(about: str) -> dict[str, Any]:
    return {"type": "string", "description": about}


def _number(about: str) -> dict[str, Any]:
    return {"type": "integer", "description": about}


def _flag(about: str) -> dict[str, Any]:
    return {"type": "boolean", "description": about}


_PATH = _text("absolute, or relative to the working directory")

TOOL_SCHEMAS: tuple[ToolSchema, ...] = (
    ToolSchema("bash", "Bash", "Runs a shell command in the sandbox and returns its output.",
               {"command": _text("the command"), "timeout": _number("milliseconds"), "cwd": _text("where it runs"),
                "run_in_background": _flag("returns at once; bash_output shows the output"), "description": _text("what it is for")}, ("command",)),
    ToolSchema("bash_output", "BashOutput", "Shows what a command in the background has written, from an offset on, and whether it is running.",
               {"process_id": _number("from the answer of bash"), "stdout_from": _number("first byte"), "stderr_from": _number("first byte")},
               ("process_id",)),
    ToolSchema("kill_process", "KillProcess", "Ends a command in the background.",
               {"process_id": _number("from the answer of bash"), "signal": _text("KILL unless said otherwise")}, ("process_id",)),
    ToolSchema("read", "Read", "Reads a file of the sandbox.",
               {"file_path": _PATH, "offset": _number("first line, from 1"), "limit": _number("lines"), "line_numbers": _flag("shows them")},
               ("file_path",)),
    ToolSchema("write", "Write", "Writes a whole file in the sandbox.", {"file_path": _PATH, "content": _text("all of it")},
               ("file_path", "content")),
    ToolSchema("edit", "Edit", "Replaces a text that is in the file exactly once.",
               {"file_path": _PATH, "old_string": _text("what is there"), "new_string": _text("what is to be there"),
                "replace_all": _flag("everywhere in the file")}, ("file_path", "old_string", "new_string")),
    ToolSchema("multi_edit", "MultiEdit", "Several replacements in one file, all or none.",
               {"file_path": _PATH, "edits": {"type": "array", "items": {
                   "type": "object", "required": ["old_string", "new_string"], "additionalProperties": False,
                   "properties": {"old_string": _text("what is there"), "new_string": _text("what is to be there"),
                                  "replace_all": _flag("everywhere in the file")}}}}, ("file_path", "edits")),
    ToolSchema("glob", "Glob", "Finds files by name.", {"pattern": _text("such as **/*.py"), "path": _PATH}, ("pattern",)),
    ToolSchema("grep", "Grep", "Finds lines in files by a regular expression.",
               {"pattern": _text("regular expression"), "path": _PATH, "glob": _text("only files with such names"),
                "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"]}, "-i": _flag("ignores case"),
                "-n": _flag("line numbers"), "-A": _number("lines after"), "-B": _number("lines before"), "-C": _number("lines around"),
                "head_limit": _number("matches")}, ("pattern",)),
    ToolSchema("ls", "LS", "Lists a directory.", {"path": _PATH}, ()),
)
