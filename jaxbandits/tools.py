"""What is built on the simulator needs of it beside its nouns: settings, lines for errors, tables,
pictures, whole files, progress. ``jaxbandits.apps`` stands on these names; yours may.
"""

from __future__ import annotations

from pathlib import Path

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("jaxbandits", __file__)


def keep_programs_in(folder: Path) -> None:
    """Keep the engines' programs in this folder, as jax hands them to the compiler."""
    from jaxbandits._engine import programs

    programs.FOLDER = folder
