"""Lazy imports of a package's public names, and suggestions for misspelled ones."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

import lazy_loader


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], Any]:
    """``__getattr__, __dir__, __all__`` of a package, from the stub beside its file."""
    get, names, everything = lazy_loader.attach_stub(package, file)

    def of_name(name: str) -> Any:
        if name.startswith("_") or name in everything:
            return get(name)
        few = len(everything) < 8
        near = f"; it has {', '.join(everything)}" if few else nearest(name, everything)
        raise AttributeError(f"{package} has no {name}{near}")

    return of_name, names, everything


def nearest(name: str, choices: Iterable[str]) -> str:
    """``; did you mean X?`` if one of the choices is spelled like this name, else nothing."""
    spelt = {text.lower().replace("-", "_"): text for text in choices}
    near = difflib.get_close_matches(name.lower().replace("-", "_"), spelt, n=1, cutoff=0.4)
    return f"; did you mean {spelt[near[0]]}?" if near else ""
