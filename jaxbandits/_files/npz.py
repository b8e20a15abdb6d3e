"""``.npz`` files of strangers: plain arrays only, nothing is unpickled, and no more memory is taken than was declared.

A zip file may say one size and hold another, an array's header may claim 2⁶⁰ numbers, 40 kB may unfold to 40 MB of
zeros. So every claim is held against the others before an array is made: the header's shape × type against the size in
the zip's directory, that against what its compressed bytes could hold, and the sum against the machine's memory.
"""

from __future__ import annotations

import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from jaxbandits.core import machine
from jaxbandits.core.errors import bad, shown
from jaxbandits.core.printable import brief

_DEFLATE_MOST = 1032  # bytes that one compressed byte can stand for: a property of the format
_MOST_MEMBERS = 4096
_AT_ONCE = 1 << 24  # bytes
_MOST_TEXT = 1 << 28  # bytes, four a character
_KINDS = "biufU"  # truth values, numbers, text
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_BROKEN = (  # what the standard library and NumPy raise on files that are none
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


class NotArrays(ValueError):
    """A file is no ``.npz`` file of plain arrays; the message says why, to be read after "it"."""


def check_plain(arrays: Mapping[str, Any], argument: str) -> dict[str, np.ndarray]:
    """The arrays as NumPy arrays, all of which a file can hold without pickling.

    Raises:
        InputError: naming the first that is not plain: objects, keys of jax, types that NumPy does not know; or whose
            name no reader accepts.
    """
    plain = {}
    for name, value in arrays.items():
        try:
            array = np.asarray(value)
        except Exception:
            array = np.empty((), object)
        if not is_name(name):
            raise bad(argument, name, "a name of printable characters without empty parts or dots between its slashes")
        if array.dtype.kind not in _KINDS:
            what = f"an array of {array.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
            raise bad(f"{argument}: {name}", what, "an array of numbers, truth values or text (nothing is pickled)")
        plain[name] = array
    return plain


def is_name(name: str) -> bool:
    """May an array be called so? ``a/b`` is fine; ``/a``, ``a//b``, ``../a`` and what cannot be printed is not."""
    return name.isprintable() and "\\" not in name and not {"", ".", ".."} & set(name.split("/"))


def read(file: BinaryIO, first: str | None = None) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays by name, one after the other; everything is checked before the first of them is made.

    Args:
        file: an open file, or bytes as a file.
        first: the array to come first.

    Raises:
        NotArrays: saying what is wrong.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            members = _checked(packed)
            if first is not None and first not in members:
                raise NotArrays(f"holds no {shown(first)}")
            for name in sorted(members, key=lambda name: name != first):
                yield name, _array(packed, members[name])
    except NotArrays:
        raise
    except _BROKEN as problem:
        raise NotArrays(f"is broken ({brief(f'{type(problem).__name__}: {problem}')})") from None


def shapes(file: BinaryIO) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Shape and type of every array; no array is made.

    Raises:
        NotArrays: saying what is wrong.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            found = {}
            for name, member in _checked(packed).items():
                with packed.open(member) as opened:
                    shape, _, kind = _header(opened, member)
                found[name] = (shape, kind)
            return found
    except NotArrays:
        raise
    except _BROKEN as problem:
        raise NotArrays(f"is broken ({brief(f'{type(problem).__name__}: {problem}')})") from None


def _checked(packed: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by their array's name."""
    found: dict[str, zipfile.ZipInfo] = {}
    if len(packed.filelist) > _MOST_MEMBERS:
        raise NotArrays(f"holds {len(packed.filelist):,} files, more than {_MOST_MEMBERS:,}")
    for member in packed.filelist:
        name = member.filename
        if not name.endswith(".npy") or not is_name(name):
            raise NotArrays(f"holds {shown(name)}, which is no array's name")
        if name.removesuffix(".npy") in found:
            raise NotArrays(f"holds {shown(name)} twice")
        if member.flag_bits & 0x1:
            raise NotArrays("is encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotArrays(f"holds {shown(name)}, compressed in another way than by deflate")
        most = member.compress_size * (_DEFLATE_MOST if member.compress_type == zipfile.ZIP_DEFLATED else 1)
        if member.file_size > most:
            raise NotArrays(f"says that {shown(name)} has {member.file_size:,} bytes, which cannot be in it")
        found[name.removesuffix(".npy")] = member
    total = sum(member.file_size for member in found.values())
    if total > machine.memory():
        raise NotArrays(f"would take {total / 2**30:,.1f} GiB, more memory than this machine has")
    return found


def _header(opened: Any, member: zipfile.ZipInfo) -> tuple[tuple[int, ...], bool, np.dtype]:
    """(shape, is it in Fortran's order, type); the size that they make is the size declared."""
    version = np.lib.format.read_magic(opened)
    if version not in _HEADERS:
        raise NotArrays(f"holds {shown(member.filename)} in version {version} of NumPy's format")
    with warnings.catch_warnings(action="ignore"):  # of the odd things that a header may hold
        shape, fortran, kind = _HEADERS[version](opened)
    if kind.kind not in _KINDS:
        raise NotArrays(f"holds {shown(member.filename)} of type {kind}, which is no number, truth value or text")
    size = kind.itemsize * math.prod(shape)
    if any(not isinstance(n, int) or n < 0 for n in shape) or opened.tell() + size != member.file_size:
        raise NotArrays(f"holds {shown(member.filename)}, whose header does not fit its size (shape {shape}, {kind})")
    if kind.kind == "U" and size > _MOST_TEXT:
        raise NotArrays(f"holds {shown(member.filename)}, a text of {size // 4:,} characters")
    return shape, fortran, kind


def _array(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with packed.open(member) as opened:
        shape, fortran, kind = _header(opened, member)
        content = bytearray(kind.itemsize * math.prod(shape))
        done = 0
        while done < len(content) and (part := opened.read(min(len(content) - done, _AT_ONCE))):
            content[done : done + len(part)] = part
            done += len(part)
        if done != len(content) or opened.read(1):  # the last read also compares the checksum
            raise NotArrays(f"is cut off within {shown(member.filename)}")
    array = np.frombuffer(content, kind)
    array = array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
    return array if kind.isnative else array.astype(kind.newbyteorder("="))


def text_of(array: np.ndarray, name: str) -> str:
    """The text that an array without axes holds.

    Raises:
        NotArrays: it is something else.
    """
    if array.dtype.kind != "U" or array.shape:
        raise NotArrays(f"holds {shown(name)}, which is no text")
    try:
        return str(array)
    except (ValueError, SystemError, UnicodeError):  # numbers that are no characters
        raise NotArrays(f"holds {shown(name)}, which is no text") from None
