"""Templates that tenants build, as data classes."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional, TypedDict

from .models import Model, _time


class BuildStep(TypedDict, total=False):
    """`type` is RUN, COPY, ENV, WORKDIR or USER."""

    type: str
    args: list[str]
    files: str
    force: bool


@dataclass(frozen=True)
class TemplateInfo(Model):
    id: str = ""
    name: str = ""
    own: bool = False
    public: bool = False
    created_at: Optional[datetime] = _time()
    updated_at: Optional[datetime] = _time()
    tags: list[Mapping[str, Any]] = field(default_factory=list)
    """Each with `tag`, `build` and `created_at`."""
    settings: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class BuildInfo(Model):
    id: str = ""
    template: str = ""
    """The template's id."""
    state: str = ""
    """new, waiting, building, ready, failed or cancelled."""
    reason: Optional[str] = None
    step: Optional[str] = None
    tags: list[str] = field(default_factory=list)
    created_at: Optional[datetime] = _time()
    ended_at: Optional[datetime] = _time()


@dataclass(frozen=True)
class BuildLine(Model):
    """A line of a build's log."""

    time: Optional[datetime] = _time()
    level: str = ""
    step: Optional[str] = None
    text: str = ""
