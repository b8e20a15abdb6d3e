"""Where compiled programs are kept, so that the workers of one machine do not all compile the same."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

import jax

from jaxbandits.core import machine

_SETTINGS = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


@contextlib.contextmanager
def shared_programs() -> Iterator[dict[str, str]]:
    """Variables of the environment for workers on this machine: one folder of programs, which nobody else can write to.

    It is the one that this process has, if it has one, and else a new one that goes away in the end.
    """
    folder, seconds = (getattr(jax.config, name, None) for name in _SETTINGS)
    with contextlib.ExitStack() as made:
        if not folder:
            new = tempfile.TemporaryDirectory(prefix="jaxbandits-programs-", ignore_cleanup_errors=True)
            folder = made.enter_context(new)
        values = folder, 0.0 if seconds is None else seconds
        yield {name.upper(): str(value) for name, value in zip(_SETTINGS, values, strict=True)}


def for_this_processor() -> None:
    """On a machine that is not the caller's: if jax keeps compiled programs, in a folder for this kind of processor.

    The folder may be on a disk that several machines share, and code for the processor of one may not run on another.
    """
    folder = getattr(jax.config, "jax_compilation_cache_dir", None)
    if folder and os.path.basename(folder) != machine.processor():
        jax.config.update("jax_compilation_cache_dir", os.path.join(folder, machine.processor()))
