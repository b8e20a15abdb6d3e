"""Arms files as tests write and read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jaxbandits.apps.comparison.arms_file import read_arms
from jaxbandits.apps.comparison.arms_table import ArmsTable, Instance
from jaxbandits.core.checks import InputError


def read(folder: Path, content: str | bytes, name: str = "arms.csv", **arguments: Any) -> ArmsTable:
    """What is read of a file of this name with this content."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_arms(path, **arguments)


def message_of(folder: Path, content: str | bytes, lines: int = 1, **arguments: Any) -> str:
    """Why the file is refused, in so many lines."""
    with pytest.raises(InputError) as caught:
        read(folder, content, **arguments)
    text = str(caught.value)
    assert text.count("\n") + 1 == lines
    return text


def only(table: ArmsTable) -> Instance:
    """The table's only instance."""
    (instance,) = table.instances
    return instance


def clicks(table: ArmsTable) -> dict[str, float]:
    """Clicks of each arm of the table's only instance."""
    instance = only(table)
    return dict(zip(instance.arms, instance.evidence.clicks.tolist(), strict=True))
