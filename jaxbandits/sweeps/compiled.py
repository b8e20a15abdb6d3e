"""Where compiled programs are kept, so that the workers of one machine do not all compile the same."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

import jax

from jaxbandits.core import machine

_VARIABLE = "JAX_COMPILATION_CACHE_DIR"


@contextlib.contextmanager
def shared_programs() -> Iterator[dict[str, str]]:
    """Variables of the environment for workers on this machine: one folder of programs, which nobody else can write to.

    It is the user's own, if there is one, and else a new one that goes away in the end.
    """
    if os.environ.get(_VARIABLE):
        yield {_VARIABLE: os.environ[_VARIABLE]}
        return
    with tempfile.TemporaryDirectory(prefix="jaxbandits-programs-", ignore_cleanup_errors=True) as folder:
        yield {_VARIABLE: folder}


def for_this_processor() -> None:
    """On a machine that is not the caller's: if jax keeps compiled programs, in a folder for this kind of processor.

    The folder may be on a disk that several machines share, and code for the processor of one may not run on another.
    """
    folder = getattr(jax.config, "jax_compilation_cache_dir", None)
    if folder and os.path.basename(folder) != machine.processor():
        jax.config.update("jax_compilation_cache_dir", os.path.join(folder, machine.processor()))
