"""What a sandbox is to be like. A SandboxConfig becomes the body of `POST /sandbox` (docs/tools.md)."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Optional

from ..models import PolicyRules


class SandboxType(str, Enum):
    """Who makes the sandbox. Both are cove: programs that were written for E2B keep their line."""

    COVE = "cove"
    E2B = "e2b"


@dataclass
class ResourceLimits:
    cpu_cores: float = 1
    memory_mb: int = 512
    disk_mb: int = 1024
    timeout_seconds: int = 120
    """Of a command that was given none."""
    max_processes: int = 128


@dataclass
class NetworkConfig:
    """Without `enabled` nothing is reached. With it every public address, or only `allowed_domains` (docs/network.md)."""

    enabled: bool = False
    allowed_domains: list[str] = field(default_factory=list)


@dataclass
class SecurityConfig:
    """Rules on top of the preset's: docs/policy.md. They are advice to a well-meaning agent; the sandbox is the boundary."""

    allowed_tools: list[str] = field(default_factory=list)
    """Empty: all."""
    blocked_tools: list[str] = field(default_factory=list)
    command_blacklist: list[str] = field(default_factory=list)
    command_whitelist: list[str] = field(default_factory=list)
    blocked_paths: list[str] = field(default_factory=list)
    enable_audit_log: bool = True
    """Whether this program keeps a record of its calls. The server's audit log is always on."""
    allow_root: bool = False
    max_risk: Optional[str] = None

    def rules(self) -> PolicyRules:
        """As the server wants them: without what is not said."""
        rules: dict[str, Any] = {name: list(value) for name in ("allowed_tools", "blocked_tools", "command_blacklist", "command_whitelist",
                                                                "blocked_paths") if (value := getattr(self, name))}
        if self.allow_root:
            rules["allow_root"] = True
        if self.max_risk is not None:
            rules["max_risk"] = self.max_risk
        return rules  # type: ignore[return-value]


@dataclass
class SandboxConfig:
    sandbox_type: SandboxType = SandboxType.COVE
    e2b_api_key: Optional[str] = None
    """The key of the cove server; without it COVE_API_KEY or E2B_API_KEY. None is needed on loopback."""
    e2b_template: Optional[str] = None
    """Without it the server's default."""
    resource_limits: ResourceLimits = field(default_factory=ResourceLimits)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    session_timeout_minutes: int = 60
    auto_cleanup: bool = True
    """Whether the sandbox ends with its executor. Without that it is paused at the end of its session."""
    working_directory: str = "/workspace"
    url: Optional[str] = None
    """Of the cove server; without it COVE_URL, else this machine."""
    preset: str = "standard"
    isolation: Optional[str] = None

    def request(self) -> dict[str, Any]:
        """The body of `POST /sandbox`. Limits that are the preset's are left to it: it knows the host."""
        usual = SANDBOX_PRESETS[self.preset].resource_limits if self.preset in SANDBOX_PRESETS else ResourceLimits()
        limits = {name: value for name, value in dataclasses.asdict(self.resource_limits).items() if value != getattr(usual, name)}
        body: dict[str, Any] = {"preset": self.preset, "network": {"enabled": self.network.enabled}, "auto_cleanup": self.auto_cleanup,
                                "session_timeout_minutes": self.session_timeout_minutes, "working_directory": self.working_directory}
        if self.network.allowed_domains:
            body["network"]["allowed_domains"] = list(self.network.allowed_domains)
        more = {"template": self.e2b_template, "isolation": self.isolation, "resource_limits": limits, "security": self.security.rules()}
        return {**body, **{name: value for name, value in more.items() if value}}


SANDBOX_PRESETS: Mapping[str, SandboxConfig] = {
    "minimal": SandboxConfig(preset="minimal", resource_limits=ResourceLimits(0.5, 256, 256, 30, 32), session_timeout_minutes=15),
    "standard": SandboxConfig(preset="standard"),
    "development": SandboxConfig(preset="development", resource_limits=ResourceLimits(2, 2048, 4096, 600, 1024),
                                 network=NetworkConfig(enabled=True), session_timeout_minutes=240),
}
"""The presets of the server; `dataclasses.replace(SANDBOX_PRESETS["minimal"], …)` changes a copy."""
