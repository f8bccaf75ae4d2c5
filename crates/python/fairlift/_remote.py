"""Files that come from elsewhere, once per machine: into a folder of this user's own, under the system's temporary files."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from ._fairlift import Error

#: What tells one version of a file from the next, as far as a file system has it.
_VERSION = ("size", "ETag", "etag", "mtime", "LastModified", "last_modified", "created", "updated")


def folder() -> Path:
    """This user's folder on this machine."""
    place = Path(tempfile.gettempdir()) / f"fairlift-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    found = place.lstat()
    # Others may write beside it, and could have made it first.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise Error(f"'{place}' has to be a folder that only this user can write into")
    return place


def once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of this name, made by whichever process comes first; the others wait. What a killed one left is made again."""
    place = folder() / name
    if place.exists():
        return place
    with open(folder() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            part = folder() / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            make(part)
            part.rename(place)
    return place


def is_url(name: object) -> bool:
    """Is it for fsspec: ``s3://bucket/trace.bin``?"""
    return isinstance(name, str) and "://" in name


def fetched(url: str) -> Path:
    """The file of a URL on this machine; fetched anew when it has changed there."""
    try:
        import fsspec
    except ImportError as error:
        raise Error(f"'{url}' needs fsspec: pip install fsspec, and its package for that storage (s3fs, gcsfs)") from error
    try:
        system, path = fsspec.core.url_to_fs(url)
        info = system.info(path)
        version = [system.ukey(path), *(str(info.get(key)) for key in _VERSION)]
        name = PurePosixPath(path).name or "file"
        digest = hashlib.sha256("\n".join([url, *version]).encode()).hexdigest()[:32]
        return once(f"file-{digest}", lambda place: system.get_file(path, str(place / name))) / name
    except (OSError, ValueError, ImportError) as error:
        raise Error(f"cannot read '{url}': {error or type(error).__name__}") from error


def sha256(path: Path) -> str:
    """Of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
