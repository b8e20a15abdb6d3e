"""Helpers for applications, ours or yours: settings, errors, tables, plots, files, progress."""

from __future__ import annotations

from pathlib import Path

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("jaxbandits", __file__)


def keep_programs_in(folder: Path) -> None:
    """Store the engines' lowered programs in this folder."""
    from jaxbandits._engine import programs

    programs.FOLDER = folder
