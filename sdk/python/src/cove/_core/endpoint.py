"""Where the server is, and how a request is addressed to it."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional, Union
from urllib.parse import quote, urlencode, urlsplit

from ..errors import ConfigurationError

DEFAULT_URL = "http://127.0.0.1:8000"
QueryValue = Union[str, int, float, bool, None]


@dataclass(frozen=True)
class Endpoint:
    """`http://host:port`, `https://host:port/prefix` or `unix:/path/of/socket`."""

    url: str
    host: str = ""
    port: int = 0
    tls: bool = False
    socket_path: Optional[str] = None
    prefix: str = ""

    @property
    def host_header(self) -> str:
        if self.socket_path is not None:
            return "localhost"
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == (443 if self.tls else 80) else f"{name}:{self.port}"


def parse_endpoint(url: Optional[str]) -> Endpoint:
    """The endpoint of a URL; without one, of COVE_URL, and else of a server on this machine."""
    url = (url or os.environ.get("COVE_URL") or DEFAULT_URL).strip()
    if url.startswith("unix:"):
        path = re.sub(r"^//(?=/)", "", url[5:])
        if not path.startswith("/") or "\0" in path:
            raise ConfigurationError(f"invalid address {url!r}: unix:/path/of/cove.sock is needed")
        return Endpoint(url, socket_path=path)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigurationError(f"invalid address {url!r}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ConfigurationError(f"invalid address {url!r}: http://HOST:PORT, https://HOST or unix:/path/of/cove.sock is needed")
    if re.search(r"[\x00-\x20\x7f]", url) or not parts.hostname.isascii():
        raise ConfigurationError(f"invalid address {url!r}: blanks and characters outside ASCII are not allowed")
    tls = parts.scheme == "https"
    return Endpoint(url, parts.hostname, port if port is not None else (443 if tls else 80), tls, prefix=parts.path.rstrip("/"))


def target(endpoint: Endpoint, path: str, params: Mapping[str, object], query: Mapping[str, QueryValue]) -> str:
    """The target of a request: `{name}` of the path filled in and quoted, and the query without what is None."""
    def fill(match: re.Match[str]) -> str:
        value = str(params[match[1]])
        if match[1] != "path" and value in ("", ".", ".."):
            raise ConfigurationError(f"invalid {match[1]}: {value!r}", field=match[1])
        return quote(value, safe="/" if match[1] == "path" else "")

    filled = endpoint.prefix + re.sub(r"\{(\w+)\}", fill, path)
    pairs = [(name, ("true" if value else "false") if isinstance(value, bool) else str(value))
             for name, value in query.items() if value is not None]
    return f"{filled}?{urlencode(pairs, quote_via=quote)}" if pairs else filled
