"""git in a sandbox: the program of the sandbox, called with the arguments that each method says."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, List, Optional, Union

from .._core.git import LOGIN, GitBranches, GitStatus, parse_status
from ..errors import CommandError
from ..models import CommandResult

if TYPE_CHECKING:
    from .sandbox import AsyncSandbox

class AsyncGit:
    """Every method raises CommandError where git fails."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._commands = sandbox.commands

    async def run(self, args: Sequence[str], path: Optional[str] = None, *, envs: Optional[Mapping[str, str]] = None,
                  timeout: Optional[float] = None) -> CommandResult:
        """git with any arguments."""
        surroundings = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", **(envs or {})}
        return await self._commands.run(["git", *args], cwd=path, envs=surroundings, timeout=timeout, check=True)

    async def _with_login(self, args: Sequence[str], path: Optional[str], username: Optional[str], password: Optional[str],
                          timeout: Optional[float]) -> CommandResult:
        if username is None and password is None:
            return await self.run(args, path, timeout=timeout)
        login = {"COVE_GIT_USER": username or "git", "COVE_GIT_PASSWORD": password or ""}
        return await self.run([*LOGIN, *args], path, envs=login, timeout=timeout)

    async def clone(self, url: str, path: Optional[str] = None, *, branch: Optional[str] = None, depth: Optional[int] = None,
                    username: Optional[str] = None, password: Optional[str] = None, timeout: Optional[float] = None) -> CommandResult:
        args = ["clone", *(["--branch", branch] if branch else []), *(["--depth", str(depth)] if depth else []), "--", url, *([path] if path else [])]
        return await self._with_login(args, None, username, password, timeout)

    async def init(self, path: str = ".", *, bare: bool = False, initial_branch: Optional[str] = None) -> CommandResult:
        return await self.run(["init", *(["--bare"] if bare else []), *(["-b", initial_branch] if initial_branch else []), "--", path])

    async def status(self, path: str = ".") -> GitStatus:
        return parse_status((await self.run(["status", "--porcelain=v1", "-b", "-z"], path)).stdout)

    async def branches(self, path: str = ".") -> GitBranches:
        names = (await self.run(["branch", "--format=%(refname:short)"], path)).stdout.split("\n")
        try:
            current: Optional[str] = (await self.run(["symbolic-ref", "--short", "HEAD"], path)).stdout.strip()
        except CommandError:
            current = None
        return GitBranches([name for name in names if name and not name.startswith("(")], current)

    async def create_branch(self, path: str, name: str) -> CommandResult:
        """Makes a branch and changes to it."""
        return await self.run(["checkout", "-b", name, "--"], path)

    async def checkout_branch(self, path: str, name: str) -> CommandResult:
        return await self.run(["checkout", name, "--"], path)

    async def delete_branch(self, path: str, name: str, *, force: bool = False) -> CommandResult:
        return await self.run(["branch", "-D" if force else "-d", "--", name], path)

    async def add(self, path: str = ".", *, files: Optional[Sequence[str]] = None) -> CommandResult:
        """The named files, or all of them."""
        return await self.run(["add", "--", *files] if files else ["add", "-A"], path)

    async def commit(self, path: str, message: str, *, author_name: Optional[str] = None, author_email: Optional[str] = None,
                     allow_empty: bool = False) -> CommandResult:
        author = {key: value for value, keys in ((author_name, ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME")),
                                                 (author_email, ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"))) if value for key in keys}
        return await self.run(["commit", "-m", message, *(["--allow-empty"] if allow_empty else [])], path, envs=author)

    async def reset(self, path: str = ".", *, mode: str = "mixed", target: str = "HEAD") -> CommandResult:
        return await self.run(["reset", f"--{mode}", target, "--"], path)

    async def restore(self, path: str, files: Union[str, Sequence[str]], *, staged: bool = False) -> CommandResult:
        names = [files] if isinstance(files, str) else list(files)
        return await self.run(["restore", *(["--staged"] if staged else []), "--", *names], path)

    async def diff(self, path: str = ".", *, staged: bool = False) -> str:
        return (await self.run(["diff", *(["--cached"] if staged else [])], path)).stdout

    async def log(self, path: str = ".", *, limit: int = 20) -> List[str]:
        """Commits, newest first, one line each."""
        return (await self.run(["log", f"-{int(limit)}", "--format=%h %s"], path)).stdout.splitlines()

    async def remote_add(self, path: str, name: str, url: str) -> CommandResult:
        return await self.run(["remote", "add", "--", name, url], path)

    async def remote_get(self, path: str, name: str = "origin") -> Optional[str]:
        try:
            return (await self.run(["remote", "get-url", "--", name], path)).stdout.strip()
        except CommandError:
            return None

    async def push(self, path: str = ".", *, remote: str = "origin", branch: Optional[str] = None, set_upstream: bool = False,
                   username: Optional[str] = None, password: Optional[str] = None, timeout: Optional[float] = None) -> CommandResult:
        args = ["push", *(["--set-upstream"] if set_upstream else []), "--", remote, *([branch] if branch else [])]
        return await self._with_login(args, path, username, password, timeout)

    async def pull(self, path: str = ".", *, remote: Optional[str] = None, branch: Optional[str] = None, username: Optional[str] = None,
                   password: Optional[str] = None, timeout: Optional[float] = None) -> CommandResult:
        args = ["pull", *([remote] if remote else []), *([branch] if branch else [])]
        return await self._with_login(args, path, username, password, timeout)

    async def set_config(self, key: str, value: str, *, path: Optional[str] = None) -> CommandResult:
        """Of one repository, or without `path` of the user."""
        return await self.run(["config", *([] if path else ["--global"]), key, value], path)

    async def get_config(self, key: str, *, path: Optional[str] = None) -> Optional[str]:
        try:
            return (await self.run(["config", *([] if path else ["--global"]), "--get", key], path)).stdout.rstrip("\n")
        except CommandError:
            return None

    async def configure_user(self, name: str, email: str, *, path: Optional[str] = None) -> None:
        await self.set_config("user.name", name, path=path)
        await self.set_config("user.email", email, path=path)
