"""Rows of a parametrised test: some in every run, all of them in `make test-integration`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest


def some(rows: Iterable[Any], quick: Collection[Any], name: Callable[[Any], str] = str) -> list[Any]:
    """Each row a parameter; those that are not ``quick`` have the mark ``integration``."""
    rows = list(rows)
    assert all(row in rows for row in quick), f"{quick} are not all of {rows}"
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else (row,)),
            id=name(row),
            marks=() if row in quick else pytest.mark.integration,
        )
        for row in rows
    ]
