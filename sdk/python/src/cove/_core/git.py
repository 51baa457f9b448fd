"""What git prints, as data."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Optional

# The login is in the environment of one command: neither in its arguments nor in the repository.
LOGIN = ["-c", "credential.helper=", "-c", 'credential.helper=!f() { echo "username=$COVE_GIT_USER"; echo "password=$COVE_GIT_PASSWORD"; }; f']


@dataclass(frozen=True)
class FileStatus:
    path: str
    index: str
    worktree: str


@dataclass(frozen=True)
class GitStatus:
    branch: Optional[str] = None
    upstream: Optional[str] = None
    ahead: int = 0
    behind: int = 0
    files: List[FileStatus] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.files


@dataclass(frozen=True)
class GitBranches:
    branches: List[str]
    current: Optional[str]


def parse_status(text: str) -> GitStatus:
    """Of `git status --porcelain=v1 -b -z`."""
    parts = text.split("\0")
    head = parts.pop(0)[3:] if parts and parts[0].startswith("## ") else ""
    head = head.removeprefix("No commits yet on ")
    names, _, counts = head.partition(" [")
    branch, _, upstream = names.partition("...")
    numbers = {"ahead": 0, "behind": 0}
    for part in counts.rstrip("]").split(", "):
        word, _, number = part.partition(" ")
        if word in numbers and number.isdigit():
            numbers[word] = int(number)
    files = []
    while parts:
        line = parts.pop(0)
        if len(line) > 3:
            files.append(FileStatus(line[3:], line[0], line[1]))
            if "R" in line[:2] or "C" in line[:2]:
                parts.pop(0)  # the old name
    return GitStatus(None if "(no branch)" in branch or not branch else branch, upstream or None, numbers["ahead"], numbers["behind"], files)
