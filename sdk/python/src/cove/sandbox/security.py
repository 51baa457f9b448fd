"""The policy as objects: what it says of commands and tools, what was found, and a limit of calls per time. Blocking."""
from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional, Union

from .._sync.client import Cove
from .._sync.sandbox import shared_client
from ..errors import ConfigurationError
from ..models import Analysis, Violation
from .config import SandboxConfig, SecurityConfig
from .tools import ToolInput, normal_call

VIOLATIONS_KEPT = 1000


class RiskLevel(str, Enum):
    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class SecurityViolation:
    rule: str
    description: str
    risk_level: RiskLevel
    denied: bool
    command: str = ""
    tool_name: str = ""
    timestamp: float = 0.0


def _violation(found: Violation, tool_name: str) -> SecurityViolation:
    return SecurityViolation(found.rule, found.description, RiskLevel(found.risk), found.denied, found.command, tool_name, time.time())


class CommandAnalyzer:
    """What the policy of a cove server says of commands, without running them."""

    def __init__(self, config: Optional[SecurityConfig] = None, *, client: Optional[Cove] = None, preset: Optional[str] = None) -> None:
        self.config = config or SecurityConfig()
        self._client, self._preset = client, preset

    def report(self, command: Optional[str] = None, **question: Any) -> Analysis:
        """Everything that the server found: also programs, paths, and whether all of it could be read."""
        client = self._client or shared_client()
        return client.policy.analyze(command, security=self.config.rules(), preset=self._preset, **question)

    def analyze(self, command: str) -> list[SecurityViolation]:
        return [_violation(one, "Bash") for one in self.report(command).violations]

    def is_safe(self, command: str) -> tuple[bool, str]:
        """Whether the command would be let through, and why not."""
        report = self.report(command)
        return report.allowed, _reason(report)


def _reason(report: Analysis) -> str:
    if report.allowed:
        return ""
    denied = [one for one in report.violations if one.denied] or report.violations
    return "; ".join(f"{one.description} ({one.rule}, risk {one.risk})" for one in denied[:3]) or report.reason or "refused by policy"


# What a tool does, in the policy's words: the argument that counts, and what is asked about it.
_QUESTIONS: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "Bash": (("command",), {}, "command"), "Read": (("file_path", "path"), {"access": "read"}, "path"),
    "Write": (("file_path", "path"), {"access": "write"}, "path"), "Edit": (("file_path",), {"access": "write"}, "path"),
    "MultiEdit": (("file_path",), {"access": "write"}, "path"), "Glob": (("path",), {"access": "read"}, "path"),
    "Grep": (("path",), {"access": "read"}, "path"), "LS": (("path",), {"access": "read"}, "path"),
}


class SecurityManager:
    """Judges calls of tools by the policy, and keeps what was found (the last 1000)."""

    def __init__(self, config: Union[SecurityConfig, SandboxConfig, None] = None, *, client: Optional[Cove] = None) -> None:
        self.config = config.security if isinstance(config, SandboxConfig) else config or SecurityConfig()
        preset = config.preset if isinstance(config, SandboxConfig) else None
        self._analyzer = CommandAnalyzer(self.config, client=client, preset=preset)
        self._found: deque[SecurityViolation] = deque(maxlen=VIOLATIONS_KEPT)
        self._checked = self._denied = 0

    def validate_tool_call(self, tool_input: ToolInput) -> tuple[bool, str]:
        """Whether the call would be let through, and why not."""
        name, arguments = normal_call(tool_input)
        reports = [self._analyzer.report(tool=tool_input.tool_name)]
        names, more, question = _QUESTIONS.get(name, ((), {}, ""))
        value = next((arguments[one] for one in names if isinstance(arguments.get(one), str)), None)
        if value and reports[0].allowed:
            reports.append(self._analyzer.report(**{question: value, **more}))
        self._checked += 1
        self._found.extend(_violation(one, tool_input.tool_name) for report in reports for one in report.violations)
        refused = next((report for report in reports if not report.allowed), None)
        self._denied += refused is not None
        return refused is None, _reason(refused) if refused else ""

    def get_violations(self, risk_level: Optional[RiskLevel] = None) -> list[SecurityViolation]:
        """What was found, oldest first; of one level, if it is given."""
        return [one for one in self._found if risk_level is None or one.risk_level == risk_level]

    def get_stats(self) -> dict[str, Any]:
        by_risk = {level.value: sum(one.risk_level == level for one in self._found) for level in RiskLevel if level is not RiskLevel.NONE}
        return {"checked": self._checked, "denied": self._denied, "violations": len(self._found), "by_risk": by_risk}


class RateLimiter:
    """At most `max_requests` in any `window_seconds`, for each key."""

    def __init__(self, max_requests: int = 100, window_seconds: float = 60, *, clock: Callable[[], float] = time.monotonic) -> None:
        if max_requests < 1 or window_seconds <= 0:
            raise ConfigurationError("invalid limit: max_requests must be at least 1, and window_seconds above 0")
        self.max_requests, self.window_seconds = max_requests, window_seconds
        self._clock = clock
        self._calls: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def check(self, key: str = "") -> tuple[bool, str]:
        """Counts a request. False: it is one too many, and was not counted; the reason says when there is room again."""
        with self._lock:
            now = self._clock()
            calls = self._calls.setdefault(key, deque())
            while calls and calls[0] <= now - self.window_seconds:
                calls.popleft()
            if len(calls) >= self.max_requests:
                left = calls[0] + self.window_seconds - now
                return False, f"more than {self.max_requests} requests in {self.window_seconds:g} seconds: try again in {left:.1f} seconds"
            calls.append(now)
            self._forget(now)
            return True, ""

    def _forget(self, now: float) -> None:
        """Keys that were not used for a whole window take no memory."""
        if len(self._calls) > 10000:
            for key in [key for key, calls in self._calls.items() if not calls or calls[-1] <= now - self.window_seconds]:
                del self._calls[key]
