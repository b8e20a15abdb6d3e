"""Compiled programs are kept from one command to the next: each is compiled once per machine.

jax's persistent compilation cache, in the user's cache folder. Only commands use it: a library call never touches jax's
global configuration (docs/benchmarks.md has the line for your own code).
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from pathlib import Path

import jax

from jaxbandits.core import machine

VARIABLE = "JAXBANDITS_CACHE"
_MOST_BYTES = 1 << 29  # a program of an engine takes 50 to 200 kB


def keep_programs() -> None:
    """Keep what this process compiles, and take what earlier ones kept.

    Off with ``JAXBANDITS_CACHE=off``; another value is the folder. Whoever has told jax of a folder
    (``JAX_COMPILATION_CACHE_DIR``) keeps it. A folder that cannot be made, or that others can write to, is not used;
    entries that cannot be read are ignored and compiled anew.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None) or (folder := programs_folder()) is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _own(folder):
            return
        _prune(folder)
    except OSError:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # Each of some dozen small programs takes 30 ms to compile, and 1 ms to read.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")


def programs_folder() -> Path | None:
    """Where programs are kept: a folder for this kind of processor and this jax; None if they are not to be kept."""
    told = os.environ.get(VARIABLE, "")
    if told.lower() in ("off", "false", "no", "0"):
        return None
    try:
        base = Path(told).expanduser() if told else _caches() / "jaxbandits"
    except RuntimeError:  # nobody's home
        return None
    # XLA makes its CPU code for one kind of processor, and jax's own key does not tell them apart.
    return base / "programs" / f"{machine.processor()}-jax-{jax.__version__}"


def _caches() -> Path:
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    told = os.environ.get("XDG_CACHE_HOME", "")
    return Path(told) if os.path.isabs(told) else Path.home() / ".cache"


def _own(folder: Path) -> bool:
    """Is it this user's, and can nobody else write to it? Programs that others wrote would run as this user."""
    if not hasattr(os, "getuid"):
        return True
    state = folder.stat()
    return state.st_uid == os.getuid() and not state.st_mode & 0o022


def _prune(folder: Path) -> None:
    """Drop the entries that were written first until those that stay take half of what may be kept."""
    found = [(entry.stat(), entry) for entry in folder.iterdir()]
    size = sum(state.st_size for state, _ in found)
    if size <= _MOST_BYTES:
        return
    for state, entry in sorted(found, key=lambda pair: pair[0].st_mtime):
        with contextlib.suppress(OSError):
            entry.unlink()
        size -= state.st_size
        if size <= _MOST_BYTES // 2:
            return
