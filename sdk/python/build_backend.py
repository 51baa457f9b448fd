"""Builds the package with the standard library alone, so that `pip install -e .` needs no network: pyproject.toml names this file.

The hooks are those of PEP 517 and PEP 660.
"""
from __future__ import annotations

import base64
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Optional

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "src"
NAME = "cove"
PROJECT = (HERE / "pyproject.toml").read_text()
VERSION = re.search(r'"(.+)"', (SOURCE / NAME / "_version.py").read_text())[1]  # type: ignore[index]
WHEEL = "Wheel-Version: 1.0\nGenerator: cove (build_backend.py)\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _value(name: str) -> str:
    """A text of pyproject.toml's [project]."""
    return re.search(rf'^{name} = "(.*)"$', PROJECT, re.M)[1]  # type: ignore[index]


def _metadata() -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {_value('name')}", f"Version: {VERSION}", f"Summary: {_value('description')}",
             f"Requires-Python: {_value('requires-python')}", "License: Apache-2.0", "Description-Content-Type: text/markdown"]
    extras = PROJECT[PROJECT.index("[project.optional-dependencies]"):].split("\n\n")[0]
    for extra, wanted in re.findall(r"^(\w+) = \[(.*)\]$", extras, re.M):
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {one} ; extra == "{extra}"' for one in re.findall(r'"([^"]+)"', wanted)]
    return "\n".join(lines) + "\n\n" + (HERE / "README.md").read_text()


def _write_wheel(directory: str, files: dict[str, bytes]) -> str:
    info = f"{NAME}-{VERSION}.dist-info"
    files = {**files, f"{info}/METADATA": _metadata().encode(), f"{info}/WHEEL": WHEEL.encode()}
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for name, data in files.items()) + f"{info}/RECORD,,\n"
    wheel = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(Path(directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, f"{info}/RECORD": record.encode()}.items():
            entry = zipfile.ZipInfo(name)  # the same bytes at any time
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


def build_wheel(wheel_directory: str, config_settings: Optional[dict[str, Any]] = None, metadata_directory: Optional[str] = None) -> str:
    found = sorted(path for path in (SOURCE / NAME).rglob("*") if path.suffix == ".py" or path.name == "py.typed")
    return _write_wheel(wheel_directory, {str(path.relative_to(SOURCE)): path.read_bytes() for path in found})


def build_editable(wheel_directory: str, config_settings: Optional[dict[str, Any]] = None, metadata_directory: Optional[str] = None) -> str:
    return _write_wheel(wheel_directory, {f"__editable__.{NAME}.pth": f"{SOURCE}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: Optional[dict[str, Any]] = None) -> str:
    base = f"{NAME}-{VERSION}"
    with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted([*HERE.glob("*.py"), *HERE.glob("*.md"), *HERE.glob("*.toml"), *SOURCE.rglob("*.py"), *SOURCE.rglob("py.typed")]):
            archive.add(path, f"{base}/{path.relative_to(HERE)}")
        about = _metadata().encode()
        entry = tarfile.TarInfo(f"{base}/PKG-INFO")
        entry.size = len(about)
        archive.addfile(entry, io.BytesIO(about))
    return f"{base}.tar.gz"
