"""What the server answers, as data classes. `raw` has the answer as it came, with fields that this version does not know."""
from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Optional, TypedDict, TypeVar, Union

from .errors import ProtocolError

M = TypeVar("M", bound="Model")
Size = Union[int, float, str]
"""A number, or a text such as "512m"."""


def parse_time(text: Any) -> Optional[datetime]:
    """A time of RFC 3339, or None."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise ProtocolError(f"invalid time in an answer: {text[:40]!r}") from None


def decode(data: Any, encoding: Any) -> bytes:
    """The bytes of a text member beside whose name there is `…_encoding`."""
    text = data if isinstance(data, str) else ""
    if encoding == "base64":
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            raise ProtocolError("invalid base64 in an answer") from None
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Model:
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls: type[M], raw: Any) -> M:
        """Made of a JSON object; members that are missing have their default."""
        if not isinstance(raw, dict):
            raise ProtocolError(f"an answer is not an object: {str(raw)[:80]!r}")
        values: dict[str, Any] = {"raw": raw}
        for member in dataclasses.fields(cls):
            if member.name in raw:
                convert = member.metadata.get("of")
                values[member.name] = convert(raw[member.name]) if convert else raw[member.name]
        return cls(**values)


def _time() -> Any:
    return field(default=None, metadata={"of": parse_time})


@dataclass(frozen=True)
class SandboxInfo(Model):
    id: str = ""
    name: Optional[str] = None
    state: str = ""
    template: str = ""
    profile: str = ""
    isolation: Optional[str] = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    created_at: Optional[datetime] = _time()
    deadline: Optional[datetime] = _time()
    on_timeout: str = ""
    limits: Mapping[str, Size] = field(default_factory=dict)
    volumes: list[Mapping[str, Any]] = field(default_factory=list)
    tier: Optional[str] = None
    paused_since: Optional[datetime] = _time()
    image_bytes: Optional[int] = None
    auto_resume: bool = False
    idle_pause_seconds: float = 0
    idle_disk_seconds: float = 0
    fallback_reason: Optional[str] = None
    """Of a pause: why it is not in the tier that was asked for."""

    @property
    def sandbox_id(self) -> str:
        return self.id


@dataclass(frozen=True)
class CommandResult:
    """How a command ended. A timeout is exit code 124, out of memory 137, signal n 128 + n."""

    stdout: str
    stderr: str
    exit_code: int
    exit_reason: str = "exit"
    """`exit`, `signal`, `timeout`, `cpu_timeout`, `oom` or `lost`."""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    proc: Optional[int] = None
    wall_ms: int = 0
    cpu_ms: int = 0
    peak_bytes: int = 0
    stdout_bytes: bytes = field(default=b"", repr=False)
    """As the command wrote it; `stdout` has U+FFFD where that is not UTF-8."""
    stderr_bytes: bytes = field(default=b"", repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        return self.exit_code == 0


@dataclass(frozen=True)
class RunFile:
    """A file that `run` returned; `error` instead of data where it could not be read."""

    path: str
    data: bytes = field(default=b"", repr=False)
    size: int = 0
    truncated: bool = False
    error: Optional[str] = None

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> RunFile:
        error = raw.get("error")
        return cls(raw.get("path", ""), decode(raw.get("data"), raw.get("data_encoding")), raw.get("size", 0), raw.get("truncated", False),
                   error.get("message") if isinstance(error, dict) else None)


@dataclass(frozen=True)
class RunResult(CommandResult):
    sandbox: str = ""
    memory_peak_bytes: int = 0
    files: list[RunFile] = field(default_factory=list)


@dataclass(frozen=True)
class ProcessInfo(Model):
    proc: int = 0
    pid: int = 0
    running: bool = False
    pty: bool = False
    args: list[str] = field(default_factory=list)
    cwd: str = ""
    tag: str = ""
    user: str = ""
    started_at: Optional[datetime] = _time()
    exit_code: Optional[int] = None
    exit_reason: Optional[str] = None


@dataclass(frozen=True)
class EntryInfo(Model):
    """A file, directory or link."""

    path: str = ""
    type: str = ""
    size: int = 0
    mode: str = ""
    uid: int = 0
    gid: int = 0
    owner: str = ""
    group: str = ""
    modified_at: Optional[datetime] = _time()
    target: Optional[str] = None

    @property
    def name(self) -> str:
        return self.path.rstrip("/").rsplit("/", 1)[-1]

    @property
    def is_dir(self) -> bool:
        return self.type == "directory"


@dataclass(frozen=True)
class Match(Model):
    """A line that a search found."""

    path: str = ""
    line: int = 0
    column: int = 0
    text: str = ""
    context: bool = False
    binary: bool = False


@dataclass(frozen=True)
class FileChange(Model):
    """`create`, `write`, `remove`, `rename`, `chmod`, or `overflow`: changes were lost."""

    type: str = ""
    path: str = ""
    to: Optional[str] = None


@dataclass(frozen=True)
class SignedUrl(Model):
    url: str = ""
    expires_at: Optional[datetime] = _time()


@dataclass(frozen=True)
class PortLink(Model):
    url: str = ""
    token: str = ""
    port: int = 0
    expires_at: Optional[datetime] = _time()


@dataclass(frozen=True)
class PortInfo(Model):
    port: int = 0
    address: str = ""
    program: str = ""


@dataclass(frozen=True)
class PreviewState(Model):
    public: bool = False
    auto_resume: bool = False
    mask_host: Optional[str] = None
    token: str = ""


@dataclass(frozen=True)
class SnapshotInfo(Model):
    id: str = ""
    name: Optional[str] = None
    sandbox: str = ""
    template: str = ""
    memory: bool = True
    bytes: int = 0
    created_at: Optional[datetime] = _time()
    frozen_ms: Optional[float] = None

    @property
    def snapshot_id(self) -> str:
        return self.id


@dataclass(frozen=True)
class Metrics(Model):
    """What a sandbox uses now."""

    cpu_ms: int = 0
    memory_bytes: int = 0
    memory_peak_bytes: int = 0
    memory_limit_bytes: int = 0
    oom_kills: int = 0
    processes: int = 0
    disk_bytes: int = 0
    disk_inodes: int = 0
    disk_limit_bytes: int = 0
    layer_bytes: int = 0
    uptime_ms: int = 0
    refused_calls: int = 0


@dataclass(frozen=True)
class Refusal(Model):
    """A system call that the sandbox's filter refused."""

    call: str = ""
    program: str = ""
    pid: int = 0
    count: int = 0


@dataclass(frozen=True)
class NetworkEvent(Model):
    seq: int = 0
    time: Optional[datetime] = _time()
    sandbox: str = ""
    event: str = ""
    host: Optional[str] = None
    address: Optional[str] = None
    port: int = 0
    rule: Optional[str] = None
    reason: Optional[str] = None
    sent: int = 0
    received: int = 0
    duration_ms: int = 0


@dataclass(frozen=True)
class VolumeInfo(Model):
    id: str = ""
    name: str = ""
    size: int = 0
    inodes: int = 0
    stored_bytes: int = 0
    readers: int = 0
    writers: int = 0
    created_at: Optional[datetime] = _time()
    users: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class SecretInfo(Model):
    """A secret, without its value."""

    name: str = ""
    hosts: list[str] = field(default_factory=list)
    created: Optional[datetime] = _time()
    updated: Optional[datetime] = _time()


@dataclass(frozen=True)
class PrivateMember(Model):
    sandbox: str = ""
    alias: str = ""
    host: str = ""
    address: str = ""
    ports: list[int] = field(default_factory=list)
    joined_at: Optional[datetime] = _time()


@dataclass(frozen=True)
class PrivateNetwork(Model):
    name: str = ""
    created_at: Optional[datetime] = _time()
    member_count: int = 0
    members: list[PrivateMember] = field(default_factory=list, metadata={"of": lambda raw: [PrivateMember.of(one) for one in raw or []]})


@dataclass(frozen=True)
class TenantInfo(Model):
    name: str = ""
    created_at: Optional[datetime] = _time()
    quotas: Mapping[str, int] = field(default_factory=dict)
    """0: no limit."""
    used: Mapping[str, int] = field(default_factory=dict)
    network: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class KeyInfo(Model):
    id: str = ""
    key: Optional[str] = field(default=None, repr=False)
    """The key itself; only where it was made."""
    tenant: str = ""
    scope: str = ""
    label: str = ""
    state: str = ""
    created_at: Optional[datetime] = _time()
    expires_at: Optional[datetime] = _time()
    revoked_at: Optional[datetime] = _time()
    last_used_at: Optional[datetime] = _time()


@dataclass(frozen=True)
class Violation(Model):
    """What the policy found in a command."""

    rule: str = ""
    description: str = ""
    risk: str = "none"
    denied: bool = False
    offset: int = 0
    length: int = 0
    command: str = ""


@dataclass(frozen=True)
class Analysis(Model):
    """What the policy says of a command."""

    allowed: bool = False
    risk: str = "none"
    complete: bool = True
    reason: Optional[str] = None
    dropped: int = 0
    violations: list[Violation] = field(default_factory=list, metadata={"of": lambda raw: [Violation.of(one) for one in raw or []]})
    programs: list[str] = field(default_factory=list)
    paths: list[Mapping[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class ToolAnswer(Model):
    """What a tool answers; `raw` has what some tools add."""

    tool: str = ""
    sandbox_id: str = ""
    success: bool = False
    error: Optional[str] = None
    output: str = ""
    duration_ms: int = 0
    exit_code: Optional[int] = None
    exit_reason: Optional[str] = None
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    process_id: Optional[int] = None


@dataclass(frozen=True)
class Fork:
    """A copy that was asked for: `sandbox`, or why there is none."""

    info: Optional[SandboxInfo]
    error: Optional[str] = None
    code: Optional[str] = None


# ---- cells of the code interpreter ----

@dataclass(frozen=True)
class Logs:
    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CellError:
    name: str
    value: str
    traceback: str


@dataclass(frozen=True)
class Result:
    """One result of a cell: `text`, and other forms where the value has them."""

    text: Optional[str] = None
    html: Optional[str] = None
    markdown: Optional[str] = None
    svg: Optional[str] = None
    png: Optional[str] = None
    jpeg: Optional[str] = None
    pdf: Optional[str] = None
    latex: Optional[str] = None
    json: Any = None
    javascript: Optional[str] = None
    data: Any = None
    chart: Any = None
    is_main_result: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Result:
        known = {member.name for member in dataclasses.fields(cls)} - {"extra"}
        return cls(**{name: raw[name] for name in known if name in raw}, extra={n: v for n, v in raw.items() if n not in known and n != "type"})


@dataclass(frozen=True)
class Execution:
    """What a cell gave."""

    results: list[Result] = field(default_factory=list)
    logs: Logs = field(default_factory=Logs)
    error: Optional[CellError] = None
    execution_count: Optional[int] = None

    @property
    def text(self) -> Optional[str]:
        """The value of the cell's last expression."""
        return next((result.text for result in self.results if result.is_main_result), None)


@dataclass(frozen=True)
class CodeContext(Model):
    id: str = ""
    language: str = ""
    cwd: str = ""


class Output(NamedTuple):
    """Some output of a command."""

    stream: str
    """`stdout` or `stderr`."""
    data: bytes


class Progress(NamedTuple):
    """How far an upload or a download is."""

    done: int
    total: Optional[int]
    """None: not known."""


# ---- what is sent ----

class Limits(TypedDict, total=False):
    """Numbers, or texts such as "512m"."""

    memory: Size
    cpus: Size
    disk: Size
    inodes: Size
    pids: Size
    files: Size
    ptys: Size
    io: Size
    iops: Size


class NetworkProxy(TypedDict, total=False):
    type: str
    address: str
    username: str
    password: str


class Join(TypedDict, total=False):
    network: str
    alias: str
    ports: list[int]


class NetworkRules(TypedDict, total=False):
    """`{"mode": "public"}`, or `{"allow": ["api.example.com", "*.example.org:443"]}`."""

    mode: str
    allow: list[str]
    deny: list[str]
    proxy: NetworkProxy
    secrets: list[str]
    join: list[Join]


class Mount(TypedDict, total=False):
    name: str
    path: str
    read_only: bool


class PreviewRules(TypedDict, total=False):
    public: bool
    auto_resume: bool
    mask_host: Optional[str]


class PolicyRules(TypedDict, total=False):
    preset: str
    allowed_tools: list[str]
    blocked_tools: list[str]
    command_blacklist: list[str]
    command_whitelist: list[str]
    blocked_paths: list[str]
    waived_rules: list[str]
    allow_root: bool
    network: bool
    max_risk: str


class Quotas(TypedDict, total=False):
    """0: no limit."""

    sandboxes: int
    cpu_milli: int
    memory_bytes: int
    disk_bytes: int
    creates_per_s: int
    requests_per_s: int
    streams: int
    stored_bytes: int
    images: int


class RunFileData(TypedDict, total=False):
    data: str
    encoding: str
    mode: str
