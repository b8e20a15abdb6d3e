"""Files that others may have made: opened only if they are regular, and written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Any, BinaryIO

from jaxbandits.core.errors import bad
from jaxbandits.core.printable import brief

UNFINISHED = re.compile(r"\.jaxbandits-[0-9a-f]{16}\.tmp")  # a name that nobody else gives: a killed run leaves such
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotRegular(OSError):
    """Something else stands where a file should be: a folder, a FIFO, a device, a link."""


def path_of(argument: str, path: Any) -> Path:
    """``path`` as a :class:`~pathlib.Path`.

    Raises:
        InputError: it is no text and no path (a number would be an open file), empty, or holds a null character.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise bad(argument, path, "a name, as text or as a path")
    try:
        text = os.fspath(path)
    except Exception:  # a stranger's __fspath__
        raise bad(argument, path, "a name, as text or as a path") from None
    if not isinstance(text, str) or not text or "\0" in text:
        raise bad(argument, text, "a name, as text, not empty and without null characters")
    return Path(text)


def odd_kind(path: Path, follow: bool = False) -> str:
    """What stands there if it is neither a regular file nor nothing, such as ``a FIFO``; else the empty text."""
    try:
        mode = (path.stat() if follow else path.lstat()).st_mode
    except FileNotFoundError:
        return ""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no regular file")


def open_regular(path: Path, follow: bool = True) -> BinaryIO:
    """Open a file for reading; never wait for a writer at the other end of a FIFO.

    Args:
        path: the file.
        follow: whether it may be a symbolic link to one.

    Raises:
        NotRegular: it is something else.
        OSError: it is not there, or may not be read.
    """
    if odd := odd_kind(path, follow):  # before it is opened: a device may act on being opened
        raise NotRegular(f"it is {odd}")
    flags = os.O_RDONLY | _flags("O_NONBLOCK", "O_BINARY", "O_CLOEXEC", *(() if follow else ("O_NOFOLLOW",)))
    handle = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotRegular("it is no regular file")
    return os.fdopen(handle, "rb")


def read_regular(path: Path, most: int, follow: bool = False) -> bytes:
    """The bytes of a file of at most ``most`` bytes.

    Raises:
        NotRegular: it is something else.
        OSError: it is not there, may not be read, or is larger.
    """
    with open_regular(path, follow) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"it is larger than {most:,} bytes")
    return content


def append_line(path: Path, line: str) -> None:
    """Add a line to a file, which is made if it is missing; a link in its place is not followed.

    Raises:
        OSError: it cannot be written.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _flags("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY", "O_CLOEXEC")
    if odd := odd_kind(path):
        raise NotRegular(f"it is {odd}")
    with os.fdopen(os.open(path, flags, 0o666), "ab") as file:
        file.write(f"{line}\n".encode())


def write_whole(path: str | os.PathLike[str], write: Any) -> None:
    """Call ``write(binary file)`` and put the file in place only when it is complete and on the disk.

    Raises:
        NotRegular: something else than a file or a link stands in its place: it is not replaced.
        OSError: it cannot be written.
    """
    target = Path(path)
    if (odd := odd_kind(target)) and odd != _KINDS[stat.S_IFLNK]:  # a link itself is replaced, not what it points to
        raise NotRegular(f"{target.name} is {odd}")
    name = target.parent / f".jaxbandits-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flags("O_NOFOLLOW", "O_BINARY", "O_CLOEXEC")
    handle = os.open(name, flags, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """So that the new name survives a power cut; not every system can."""
    if hasattr(os, "O_DIRECTORY"):
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _flags(*names: str) -> int:
    """Those flags of :func:`os.open` that this system has."""
    total = 0
    for name in names:
        total |= getattr(os, name, 0)
    return total


def reason_of(problem: OSError) -> str:
    """Why it failed, in a few words on one line."""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "no space left"
    return brief(problem.strerror or str(problem))
