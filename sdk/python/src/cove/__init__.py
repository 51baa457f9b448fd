"""cove: sandboxes for code that is not trusted.

    from cove import Sandbox

    with Sandbox.create() as sandbox:
        print(sandbox.commands.run("python3 --version").stdout)

`AsyncSandbox` is the same for asyncio. `cove.sandbox` has executors, tool proxies and callbacks for AI agents. docs/python.md has the rest.
"""
from ._async.client import AsyncCove
from ._async.commands import AsyncCommandHandle
from ._async.files import AsyncWatch
from ._async.pty import AsyncTerminal
from ._async.sandbox import AsyncSandbox
from ._async.templates import AsyncBuild
from ._async.tunnel import AsyncTunnel
from ._core.git import FileStatus, GitBranches, GitStatus
from ._core.request import Answer
from ._core.retry import NO_RETRY, RetryPolicy
from ._sync.client import Cove
from ._sync.commands import CommandHandle
from ._sync.files import Watch
from ._sync.pty import Terminal
from ._sync.sandbox import Sandbox
from ._sync.templates import Build
from ._sync.tunnel import Tunnel
from ._version import __version__
from .builds import BuildInfo, BuildLine, BuildStep, TemplateInfo
from .interpreter import CodeInterpreter
from .errors import (ApiError, AuthenticationError, BuildError, CommandError, ConfigurationError, ConflictError, ConnectionFailedError, CoveError,
                     DiskFullError, ForbiddenError, InvalidRequestError, NotFoundError, PathNotFoundError, PolicyError, ProtocolError,
                     QuotaError, RequestTimeoutError, SandboxNotFoundError, ServerError, StreamError, TooManyError, UnavailableError,
                     UnsupportedError)
from .models import (Analysis, CellError, CodeContext, CommandResult, EntryInfo, Execution, FileChange, Fork, KeyInfo, Limits, Logs, Match, Metrics,
                     Mount, NetworkEvent, NetworkRules, Output, PolicyRules, PortInfo, PortLink, PreviewRules, PreviewState, PrivateMember,
                     PrivateNetwork, ProcessInfo, Progress, Quotas, Refusal, Result, RunFile, RunResult, SandboxInfo, SecretInfo, SignedUrl, SnapshotInfo,
                     TenantInfo, ToolAnswer, Violation, VolumeInfo)

__all__ = [name for name in dir() if name[0].isupper() or name == "__version__"]
