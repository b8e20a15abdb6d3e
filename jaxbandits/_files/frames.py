"""Results as tables of pandas and polars; neither is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jaxbandits.core.errors import InputError

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import polars
    import xarray


def of_dataset(data: xarray.Dataset, first: Sequence[str]) -> pandas.DataFrame:
    """One row for each place of a dataset, the columns ``first`` before the others, units in ``attrs``.

    What has an axis ``resource`` gets a column for each: ``spent_0``, ``spent_1``, …
    """
    for name in [str(name) for name, x in data.data_vars.items() if "resource" in x.dims]:
        each = {f"{name}_{i}": data[name].isel(resource=i, drop=True) for i in range(data.sizes["resource"])}
        data = data.drop_vars([name]).assign(each)
    data = data.drop_dims("resource", errors="ignore")
    table = data.to_dataframe().reset_index()
    ahead = [name for name in first if name in table]
    made = table[[*ahead, *(name for name in table.columns if name not in ahead)]]
    made.attrs = {"units": {str(name): x.attrs["units"] for name, x in data.variables.items() if x.attrs.get("units")}}
    return made


def of_rows(rows: Sequence[Mapping[str, Any]], units: Mapping[str, str]) -> pandas.DataFrame:
    """Rows that share their columns; a unit is also that of the columns NAME_low and NAME_high."""
    import pandas

    made = pandas.DataFrame(list(rows))
    made.attrs = {"units": {name + end: unit for name, unit in units.items() for end in ("", "_low", "_high")}}
    return made


def in_polars(table: pandas.DataFrame) -> polars.DataFrame:
    """The same table for polars, without pyarrow.

    Raises:
        InputError: polars is not installed.
    """
    try:
        import polars
    except ImportError:
        raise InputError("polars: it is not installed: pip install 'jaxbandits[polars]'") from None
    plain = {
        name: column.to_numpy() if column.dtype.kind in "iufb" else column.to_list() for name, column in table.items()
    }
    return polars.DataFrame(plain)
