"""Stores lowered programs on disk, so that a new process neither traces nor lowers them.

Only programs of this package's code alone: other code has no name that is valid in another process.
A file is found by all that a program is made of: this package's source, jax and its settings, the
device, and the structure, static fields and shapes of what it takes. What no description
distinguishes from others is not stored.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jaxlib

from jaxbandits._files import write_whole
from jaxbandits.core.fingerprint import digest, digest_now, is_users, package_digest

FOLDER: Path | None = None
"""Where to store them; commands set it (``console.keep_programs``), the library stores none."""
_loaded: dict[Path, jax.stages.Wrapped] = {}  # by this process, so that jit recognises them


def file_of(nouns: Any, device: jax.Device, *made_of: Any) -> Path | None:
    """The file of a program; None if it is not stored, as when ``nouns`` contain user code.

    ``made_of``: trees of arrays, shapes and plain values, all else that it is made of.
    """
    if FOLDER is None or any(map(is_users, nouns)):
        return None
    leaves, structure = jax.tree.flatten(made_of)
    shapes = [(x.shape, x.dtype.str) if hasattr(x, "dtype") else x for x in leaves]
    versions = jax.__version__, jaxlib.__version__, device.platform, device.device_kind
    settings = sorted((name, repr(value)) for name, value in jax.config.values.items())
    description = repr((versions, settings, os.environ.get("XLA_FLAGS"), str(structure), shapes))
    # An object without a value, or a value in part
    if " at 0x" in description or "..." in description:
        return None
    return FOLDER / f"jaxbandits-{digest((package_digest() + description).encode())[:40]}"


def stored_program(
    file: Path,
    function: partial[Any],
    takes: tuple,
    gives: Any,
    donated: int,
    options: dict[str, Any],
) -> jax.stages.Wrapped | None:
    """``function(*takes)`` as jit would run it, read from its file or stored for later processes.

    None if jax cannot write it. The result has the structure of ``gives``; the argument number
    ``donated`` among ``takes`` gives up its memory.
    """
    if file in _loaded:
        return _loaded[file]
    structure: Any
    leaves, structure = jax.tree.flatten(takes)
    result: Any = jax.tree.structure(gives)
    exported = None
    with contextlib.suppress(Exception):  # whatever is wrong with it, it is made anew
        exported = jax.export.deserialize(bytearray(file.read_bytes()))
    if exported is None:
        try:
            flat = jax.jit(lambda *leaves: jax.tree.leaves(function(*structure.unflatten(leaves))))
            exported = jax.export.export(flat)(*leaves)
            if digest_now() == package_digest():
                write_whole(file, lambda to: to.write(exported.serialize()))
        except Exception:  # where it is not only the file, it fails again, and is reported
            return None

    def play(*takes: Any) -> Any:
        return result.unflatten(exported.call(*jax.tree.leaves(takes)))

    play.__name__ = function.func.__name__
    return _loaded.setdefault(
        file, jax.jit(play, donate_argnums=donated, compiler_options=options or None)
    )
