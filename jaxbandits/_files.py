"""Writing files whole or not at all, reading without unpickling; pandas tables; pictures."""

from __future__ import annotations

import errno
import os
import re
import secrets
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from jaxbandits.core.checks import bad

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import xarray
    from matplotlib.figure import Figure

# A name that nobody else gives: a killed run leaves such
UNFINISHED = re.compile(r"\.jaxbandits-[0-9a-f]{16}\.tmp")


def path_of(argument: str, path: Any) -> Path:
    """``path`` as a :class:`~pathlib.Path`, if it is text or a path."""
    if not isinstance(path, (str, os.PathLike)) or not str(path) or "\0" in str(path):
        raise bad(argument, path, "a name, as text or as a path")
    return Path(path)


def write_whole(path: str | os.PathLike[str], write: Any) -> None:
    """Call ``write(binary file)``; the file is put in place only once complete and on disk."""
    target = Path(path)
    name = target.parent / f".jaxbandits-{secrets.token_hex(8)}.tmp"
    try:
        with name.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def reason_of(problem: OSError) -> str:
    """The reason for a failure, in a few words on one line."""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "no space left"
    return problem.strerror or str(problem)


# --- arrays in ``.npz`` files: numbers, truth values and text; nothing is pickled ------------------------------


def write_arrays(file: BinaryIO, arrays: Mapping[str, Any], compressed: bool = False) -> None:
    """Write arrays of numbers, booleans or text; equal arrays give equal bytes."""
    for name, value in arrays.items():
        # An object, a key of jax
        if getattr(getattr(value, "dtype", None), "kind", None) not in tuple("biufU"):
            may_be = "an array of numbers, truth values or text (nothing is pickled)"
            raise bad(f"arrays: {name}", value, may_be)
    save = np.savez_compressed if compressed else np.savez
    save(file, **arrays)  # type: ignore[arg-type]


def read_arrays(file: str | os.PathLike[str] | BinaryIO) -> dict[str, np.ndarray]:
    """Read what :func:`write_arrays` wrote, by name; a ValueError completes "it …"."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError, AttributeError) as problem:
        # NumPy takes whatever it does not know for pickled, and says how to run what is in it.
        why = "" if "pickle" in str(problem) else f" ({type(problem).__name__}: {problem})"
        raise ValueError(f"is no .npz file of plain arrays{why}") from None


def save_arrays(
    argument: str, path: Path, arrays: Mapping[str, Any], compressed: bool = False
) -> None:
    """Save arrays, whole or not at all; raise OSError (disk full or broken) or InputError."""
    try:
        write_whole(path, lambda file: write_arrays(file, arrays, compressed))
    except OSError as problem:
        # No fault of the name
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            raise
        may_be = f"a file that can be written ({reason_of(problem)})"
        raise bad(argument, str(path), may_be) from None


# --- results as tables of pandas, which is not imported before it is asked for -----------------------------------


def of_dataset(data: xarray.Dataset, first: Sequence[str]) -> pandas.DataFrame:
    """A row for each cell of a dataset, with units in ``attrs``; ``spent_0``, … by resource."""
    for name in [str(name) for name, x in data.data_vars.items() if "resource" in x.dims]:
        count, x = data.sizes["resource"], data[name]
        split = {f"{name}_{i}": x.isel(resource=i, drop=True) for i in range(count)}
        data = data.drop_vars([name]).assign(split)
    data = data.drop_dims("resource", errors="ignore")
    table = data.to_dataframe().reset_index()
    columns = dict.fromkeys([*(name for name in first if name in table), *table.columns])
    frame = table[list(columns)]
    units = {str(name): x.attrs.get("units") for name, x in data.variables.items()}
    frame.attrs = {"units": {name: unit for name, unit in units.items() if unit}}
    return frame


def of_rows(rows: Sequence[Mapping[str, Any]], units: Mapping[str, str]) -> pandas.DataFrame:
    """A data frame of rows; the unit of NAME applies to NAME_low and NAME_high too."""
    import pandas

    frame, ends = pandas.DataFrame(list(rows)), ("", "_low", "_high")
    frame.attrs = {"units": {name + end: unit for name, unit in units.items() for end in ends}}
    return frame


# --- pictures --------------------------------------------------------------------------------------------------


_WIDTHS = {"column": 3.25, "page": 6.75}  # inches: no journal in two columns has narrower ones


def inches_of(width: float | str | None) -> float | None:
    """A width in inches, or None; InputError for another word or a number not in 1 … 40."""
    if width is None:
        return None
    inches = _WIDTHS.get(width) if isinstance(width, str) else width
    if isinstance(inches, bool) or not isinstance(inches, (int, float)) or not 1 <= inches <= 40:
        raise bad("width", width, '"column" (3.25 inches), "page" (6.75), or inches from 1 to 40')
    return float(inches)


def finished(
    figure: Figure, path: str | os.PathLike[str] | None = None, width: float | str | None = None
) -> Figure:
    """Label logarithmic axes, set the width and write the figure to a file, if these are given.

    Args:
        figure: as it was drawn.
        path: ends in ``.pdf``, ``.svg`` or ``.png``; the file is replaced.
        width: in inches, from 1 to 40, or ``"column"`` or ``"page"`` of a paper: then letters and
            lines are for print.

    Raises:
        InputError: another ending or width, or a file that cannot be written.
    """
    from jaxbandits import _plots  # here: it imports matplotlib

    figure = _plots.say_logarithmic(figure)
    if (inches := inches_of(width)) is not None:
        _plots.resized(figure, inches)
    if path is not None:
        place = path_of("path", path)
        if (form := place.suffix.lower().removeprefix(".")) not in ("pdf", "svg", "png"):
            raise bad("path", str(path), "a name that ends in .pdf, .svg or .png")
        content = _plots.encoded(figure, form, dpi=150 if width is None else 300)
        try:
            write_whole(place, lambda file: file.write(content))
        except OSError as problem:
            may_be = f"a file that can be written ({reason_of(problem)})"
            raise bad("path", str(path), may_be) from None
    return figure
