"""Directories of this machine as tar archives, both ways. What comes out of a sandbox is not trusted."""
from __future__ import annotations

import os
import tarfile
from typing import IO, Optional, Union

from .errors import ConflictError

PART = 256 * 1024


def pack(local: Union[str, os.PathLike[str]], file: IO[bytes]) -> None:
    """What is in a directory, into a file that is then at its beginning."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(os.listdir(local)):
            archive.add(os.path.join(local, name), arcname=name, filter=_nameless)
    file.seek(0)


def _nameless(entry: tarfile.TarInfo) -> Optional[tarfile.TarInfo]:
    """Without the names of this machine's users; devices and the like are left out."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry if entry.isreg() or entry.isdir() or entry.issym() or entry.islnk() else None


def unpack(file: IO[bytes], local: str) -> int:
    """Entry by entry, and nothing outside of `local`: the archive was made by a sandbox."""
    os.makedirs(local, exist_ok=True)
    count = 0
    links: list[tuple[str, str]] = []
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for entry in archive:
            name = os.path.normpath(entry.name)
            if os.path.isabs(entry.name) or name.split(os.sep)[0] == "..":
                raise ConflictError(f"the archive has a name that leads out of the directory: {entry.name!r}", code="invalid")
            if name == ".":
                continue
            place = os.path.join(local, name)
            if os.path.realpath(os.path.dirname(place)) != os.path.normpath(os.path.dirname(os.path.join(os.path.realpath(local), name))):
                raise ConflictError(f"an entry of the archive goes through a link: {entry.name!r}", code="invalid")
            _unpack_one(archive, entry, place, links)
            count += 1
    for goal, place in links:  # last, so that nothing is written through them
        whole = os.path.normpath(os.path.join(os.path.dirname(place), goal))
        if os.path.isabs(goal) or not (whole + os.sep).startswith(local + os.sep):
            raise ConflictError(f"a link of the archive leads out of the directory: {os.path.basename(place)!r}", code="invalid")
        if os.path.lexists(place):
            os.unlink(place)
        os.symlink(goal, place)
    return count


def _unpack_one(archive: tarfile.TarFile, entry: tarfile.TarInfo, place: str, links: list[tuple[str, str]]) -> None:
    if entry.isdir():
        os.makedirs(place, exist_ok=True)
        os.chmod(place, entry.mode & 0o777 | 0o700)
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if entry.issym():
        links.append((entry.linkname, place))
        return
    content = archive.extractfile(entry) if entry.isreg() else None
    if content is None:
        raise ConflictError(f"the archive has an entry that is neither file, directory nor link: {entry.name!r}", code="invalid")
    if os.path.lexists(place):
        os.unlink(place)
    with open(place, "xb") as file:
        while part := content.read(PART):
            file.write(part)
    os.chmod(place, entry.mode & 0o777)
    os.utime(place, (entry.mtime, entry.mtime))


def size_of(body: object) -> Optional[int]:
    """How many bytes there are to send; None: not known."""
    if isinstance(body, bytes):
        return len(body)
    try:
        return os.fstat(body.fileno()).st_size - body.tell()  # type: ignore[attr-defined, no-any-return]
    except (OSError, ValueError, AttributeError):
        return None
