"""Regret by the values of a parameter: the best one, and those not clearly worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.statistics.estimates import Estimate, mean
from jaxbandits.statistics.pairs import dominance

if TYPE_CHECKING:
    import xarray

LEVEL = 0.95


def cases_of(regrets: Sequence[xarray.DataArray], over: str) -> list[xarray.Dataset]:
    """:func:`dominance` for several tables, jointly at 95 %, each with its runs' ``regret``."""
    level = 1 - (1 - LEVEL) / len(regrets)
    return [dominance(x, over=over, level=level).assign(regret=x) for x in regrets]


@dataclass(frozen=True)
class Curve:
    """Regret by the parameters of one policy, as returned by ``found.curve(…)`` of a sweep.

    The settings that ``indistinguishable`` names contain the truly best one of the grid with a
    confidence of at least 95 %: a setting is left out only if it is clearly worse than the least
    mean.

    Attributes:
        parameters: values of each swept parameter, ``[setting]``; coordinates of both below.
        regret: means, each interval by itself, ``[setting]``.
        best: the setting with the least mean.
        apart: the paired ``difference`` to the best, its ``low`` and ``high``, ``[setting]``; all
            intervals of a sweep hold at once.
        warnings: of the regret at the best setting, as :func:`jaxbandits.statistics.mean` says
            them.
    """

    policy: str
    parameters: Mapping[str, np.ndarray]
    regret: Estimate
    best: int
    apart: xarray.Dataset
    warnings: tuple[str, ...] = ()

    @staticmethod
    def of(
        policy: str,
        case: xarray.Dataset,
        parameters: Mapping[str, np.ndarray],
        rows: Sequence[int] | None = None,
    ) -> Curve:
        """The curve of the settings ``rows`` (default all); swept ``parameters``: ``[setting]``."""
        own = case if rows is None else case.isel(setting=rows, against=rows)
        free = set(parameters).difference(own.variables, own.dims)
        own = own.assign_coords({x: ("setting", parameters[x]) for x in parameters if x in free})
        regret, over = own["regret"], case.attrs["over"]
        means = mean(regret, over=over, level=LEVEL)
        best = int(np.argmin(means.value.values))
        doubts = mean(regret.isel(setting=best), over=over).warnings
        return Curve(policy, parameters, means, best, own.isel(against=best), doubts)

    def __repr__(self) -> str:
        end = str(self.regret.value.values[self.best].round(4))
        return f"Curve({self.policy}: {self.recommendation()}; regret {end})"

    @property
    def indistinguishable(self) -> np.ndarray:
        """Settings not clearly worse than the best, ``bool[setting]``; all if there is one run."""
        return ~self.apart["larger"].values

    def recommendation(self) -> str:
        """In words: ``rho = 0.22; not clearly worse: 0.12 to 0.31``."""
        at_best = ", ".join(f"{name} = {x[self.best]:.3g}" for name, x in self.parameters.items())
        if not np.isfinite(self.regret.low).all():
            return f"{at_best} has the least regret of one run, which says nothing about the others"
        not_worse = self.indistinguishable
        if not_worse.size > 1 and not (self.apart["low"].any() or self.apart["high"].any()):
            names = " and ".join(self.parameters)
            return f"all values of {names} are equal: the same regret in every run"
        if len(self.parameters) != 1:
            others = f"{not_worse.sum() - 1} of the other {not_worse.size - 1} settings"
            return f"{at_best}; not clearly worse: {others}"
        (x,) = self.parameters.values()
        if not_worse.sum() == 1:
            return f"{at_best}, clearly better than every other value"
        return f"{at_best}; not clearly worse: {_stretches(x, not_worse)}"


def _stretches(x: np.ndarray, members: np.ndarray) -> str:
    """``0.12 to 0.31``; with gaps ``0.12 to 0.18 and 0.31``."""
    order = np.argsort(x)
    x, members = x[order], members[order]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], members.astype(int), [0]])))
    parts = [
        f"{x[first]:.3g}" if first + 1 == last else f"{x[first]:.3g} to {x[last - 1]:.3g}"
        for first, last in zip(edges[::2], edges[1::2], strict=True)
    ]
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" and {parts[-1]}"
