# Made of _async/git.py by sdk/python/make_sync.py. Change that file, then run it.
"""git in a sandbox: the program of the sandbox, called with the arguments that each method says."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, List, Optional, Union

from .._core.git import LOGIN, GitBranches, GitStatus, parse_status
from ..errors import CommandError
from ..models import CommandResult

if TYPE_CHECKING:
    from .sandbox import Sandbox

class Git:
    """Every method raises CommandError where git fails."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._commands = sandbox.commands

    def run(self, args: Sequence[str], path: Optional[str] = None, *, envs: Optional[Mapping[str, str]] = None,
                  timeout: Optional[float] = None) -> CommandResult:
        """git with any arguments."""
        surroundings = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", **(envs or {})}
        return self._commands.run(["git", *args], cwd=path, envs=surroundings, timeout=timeout, check=True)

    def _with_login(self, args: Sequence[str], path: Optional[str], username: Optional[str], password: Optional[str],
                          timeout: Optional[float]) -> CommandResult:
        if username is None and password is None:
            return self.run(args, path, timeout=timeout)
        login = {"COVE_GIT_USER": username or "git", "COVE_GIT_PASSWORD": password or ""}
        return self.run([*LOGIN, *args], path, envs=login, timeout=timeout)

    def clone(self, url: str, path: Optional[str] = None, *, branch: Optional[str] = None, depth: Optional[int] = None,
                    username: Optional[str] = None, password: Optional[str] = None, timeout: Optional[float] = None) -> CommandResult:
        args = ["clone", *(["--branch", branch] if branch else []), *(["--depth", str(depth)] if depth else []), "--", url, *([path] if path else [])]
        return self._with_login(args, None, username, password, timeout)

    def init(self, path: str = ".", *, bare: bool = False, initial_branch: Optional[str] = None) -> CommandResult:
        return self.run(["init", *(["--bare"] if bare else []), *(["-b", initial_branch] if initial_branch else []), "--", path])

    def status(self, path: str = ".") -> GitStatus:
        return parse_status((self.run(["status", "--porcelain=v1", "-b", "-z"], path)).stdout)

    def branches(self, path: str = ".") -> GitBranches:
        names = (self.run(["branch", "--format=%(refname:short)"], path)).stdout.split("\n")
        try:
            current: Optional[str] = (self.run(["symbolic-ref", "--short", "HEAD"], path)).stdout.strip()
        except CommandError:
            current = None
        return GitBranches([name for name in names if name and not name.startswith("(")], current)

    def create_branch(self, path: str, name: str) -> CommandResult:
        """Makes a branch and changes to it."""
        return self.run(["checkout", "-b", name, "--"], path)

    def checkout_branch(self, path: str, name: str) -> CommandResult:
        return self.run(["checkout", name, "--"], path)

    def delete_branch(self, path: str, name: str, *, force: bool = False) -> CommandResult:
        return self.run(["branch", "-D" if force else "-d", "--", name], path)

    def add(self, path: str = ".", *, files: Optional[Sequence[str]] = None) -> CommandResult:
        """The named files, or all of them."""
        return self.run(["add", "--", *files] if files else ["add", "-A"], path)

    def commit(self, path: str, message: str, *, author_name: Optional[str] = None, author_email: Optional[str] = None,
                     allow_empty: bool = False) -> CommandResult:
        author = {key: value for value, keys in ((author_name, ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME")),
                                                 (author_email, ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"))) if value for key in keys}
        return self.run(["commit", "-m", message, *(["--allow-empty"] if allow_empty else [])], path, envs=author)

    def reset(self, path: str = ".", *, mode: str = "mixed", target: str = "HEAD") -> CommandResult:
        return self.run(["reset", f"--{mode}", target, "--"], path)

    def restore(self, path: str, files: Union[str, Sequence[str]], *, staged: bool = False) -> CommandResult:
        names = [files] if isinstance(files, str) else list(files)
        return self.run(["restore", *(["--staged"] if staged else []), "--", *names], path)

    def diff(self, path: str = ".", *, staged: bool = False) -> str:
        return (self.run(["diff", *(["--cached"] if staged else [])], path)).stdout

    def log(self, path: str = ".", *, limit: int = 20) -> List[str]:
        """Commits, newest first, one line each."""
        return (self.run(["log", f"-{int(limit)}", "--format=%h %s"], path)).stdout.splitlines()

    def remote_add(self, path: str, name: str, url: str) -> CommandResult:
        return self.run(["remote", "add", "--", name, url], path)

    def remote_get(self, path: str, name: str = "origin") -> Optional[str]:
        try:
            return (self.run(["remote", "get-url", "--", name], path)).stdout.strip()
        except CommandError:
            return None

    def push(self, path: str = ".", *, remote: str = "origin", branch: Optional[str] = None, set_upstream: bool = False,
                   username: Optional[str] = None, password: Optional[str] = None, timeout: Optional[float] = None) -> CommandResult:
        args = ["push", *(["--set-upstream"] if set_upstream else []), "--", remote, *([branch] if branch else [])]
        return self._with_login(args, path, username, password, timeout)

    def pull(self, path: str = ".", *, remote: Optional[str] = None, branch: Optional[str] = None, username: Optional[str] = None,
                   password: Optional[str] = None, timeout: Optional[float] = None) -> CommandResult:
        args = ["pull", *([remote] if remote else []), *([branch] if branch else [])]
        return self._with_login(args, path, username, password, timeout)

    def set_config(self, key: str, value: str, *, path: Optional[str] = None) -> CommandResult:
        """Of one repository, or without `path` of the user."""
        return self.run(["config", *([] if path else ["--global"]), key, value], path)

    def get_config(self, key: str, *, path: Optional[str] = None) -> Optional[str]:
        try:
            return (self.run(["config", *([] if path else ["--global"]), "--get", key], path)).stdout.rstrip("\n")
        except CommandError:
            return None

    def configure_user(self, name: str, email: str, *, path: Optional[str] = None) -> None:
        self.set_config("user.name", name, path=path)
        self.set_config("user.email", email, path=path)
