"""What goes wrong, by class. Every error has `code`, `status`, `field`, `rule`, `layer` and `request_id`, None where there is none.

    try:
        sandbox.commands.run("sudo reboot")
    except cove.PolicyError as error:
        print(error.rule, error.message)
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from .builds import BuildInfo
    from .models import CommandResult


class CoveError(Exception):
    """Anything that cove or the way to cove refused or could not do."""

    def __init__(self, message: str, *, code: Optional[str] = None, status: Optional[int] = None, field: Optional[str] = None,
                 rule: Optional[str] = None, layer: Optional[str] = None, request_id: Optional[str] = None,
                 retry_after: Optional[float] = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.field = field
        self.rule = rule
        self.layer = layer
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        about = [f"{name} {value}" for name, value in
                 (("code", self.code), ("field", self.field), ("rule", self.rule), ("request", self.request_id)) if value]
        return f"{self.message} ({', '.join(about)})" if about else self.message


class ConfigurationError(CoveError, ValueError):
    """An address, a key or an option that cannot be used; nothing was sent."""


class ConnectionFailedError(CoveError, ConnectionError):
    """The server could not be reached, or the connection broke before the answer."""


class RequestTimeoutError(CoveError, TimeoutError):
    """The server said nothing for longer than the request's timeout."""


class ProtocolError(CoveError):
    """The server, or something between, sent what the protocol does not allow, or an answer that was cut."""


class ApiError(CoveError):
    """The server answered with an error."""


class InvalidRequestError(ApiError, ValueError):
    """400, 413, 415, 416, 422: a field has an invalid value; `field` names it."""


class AuthenticationError(ApiError):
    """401: no key, or an invalid one."""


class ForbiddenError(ApiError):
    """403: the key, the sandbox's permissions or a rule do not allow it."""


class PolicyError(ForbiddenError):
    """403 of the policy; `rule` names the rule."""


class NotFoundError(ApiError):
    """404."""


class SandboxNotFoundError(NotFoundError):
    """The sandbox never was, is gone, or belongs to another tenant."""


class PathNotFoundError(NotFoundError):
    """No such file or directory in the sandbox."""


class ConflictError(ApiError):
    """409: the name is in use, or the state does not allow it."""


class TooManyError(ApiError):
    """429: too many requests, sandboxes or processes; `retry_after` says when to try again, if the server knows."""


class QuotaError(TooManyError):
    """429 of the tenant's quota."""


class ServerError(ApiError):
    """5xx: the server or the host could not do it."""


class UnavailableError(ServerError):
    """502, 503, 504: something that the server needs does not answer, or took too long."""


class DiskFullError(ServerError):
    """507: no bytes or inodes are left."""


class UnsupportedError(ServerError):
    """501: this host, template or server cannot do it."""


class StreamError(ApiError):
    """The server ended a stream with an error."""


class CommandError(CoveError):
    """A command ended with another exit code than 0, and `check=True` was given. `result` has its output."""

    def __init__(self, result: CommandResult) -> None:
        last = result.stderr.strip().rsplit("\n", 1)[-1][:200]
        super().__init__(f"the command ended with exit code {result.exit_code} ({result.exit_reason})" + (f": {last}" if last else ""),
                         code=result.exit_reason)
        self.result = result


class BuildError(CoveError):
    """A build ended, and its template is not ready. `build` says where it failed; the log has more."""

    def __init__(self, message: str, *, build: BuildInfo) -> None:
        super().__init__(message, code=build.state)
        self.build = build


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: InvalidRequestError, 401: AuthenticationError, 403: ForbiddenError, 404: NotFoundError, 409: ConflictError,
    413: InvalidRequestError, 415: InvalidRequestError, 416: InvalidRequestError, 422: InvalidRequestError, 429: TooManyError,
    501: UnsupportedError, 502: UnavailableError, 503: UnavailableError, 504: UnavailableError, 507: DiskFullError,
}
_BY_CODE: Mapping[str, type[ApiError]] = {"sandbox_not_found": SandboxNotFoundError, "path_not_found": PathNotFoundError}
_BY_LAYER: Mapping[str, Mapping[int, type[ApiError]]] = {"policy": {403: PolicyError}, "quota": {429: QuotaError}}


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None


def error_from(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error that an answer stands for, also one that something else than cove sent."""
    try:
        said = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        said = None
    if not isinstance(said, dict):
        text = body[:300].decode("utf-8", "replace").strip()
        said = {"message": text or f"the server answered with status {status}"}
    code, layer = _text(said.get("code")), _text(said.get("layer"))
    kind = (_BY_LAYER.get(layer or "", {}).get(status) or _BY_CODE.get(code or "") or _BY_STATUS.get(status)
            or (ServerError if status >= 500 else ApiError))
    after = headers.get("retry-after", "")
    return kind(_text(said.get("message")) or f"status {status}", code=code, status=status, field=_text(said.get("field")),
                rule=_text(said.get("rule")), layer=layer, request_id=headers.get("x-request-id"),
                retry_after=float(after) if after.isdigit() and len(after) < 7 else None)


def stream_error(said: Any, request_id: Optional[str]) -> StreamError:
    """The error that an event `error` of a stream stands for."""
    said = said if isinstance(said, dict) else {}
    return StreamError(_text(said.get("message")) or "the stream failed", code=_text(said.get("code")), rule=_text(said.get("rule")),
                       layer=_text(said.get("layer")), request_id=request_id)
