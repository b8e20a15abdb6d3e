"""Regret against the parameters of a policy: the value to recommend, and which are not clearly worse."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.statistics import mean as mean_of
from jaxbandits.statistics import mean_interval, paired_difference

if TYPE_CHECKING:
    import xarray

LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Curve:
    """Regret against the parameters of one policy.

    The settings that ``indistinguishable`` names contain the truly best one of the grid with a confidence of at least
    95 %: a setting is left out only if its paired difference to the best mean is above 0 with an interval that holds
    for all settings at once (Bonferroni over the others).

    Attributes:
        parameters: values of each swept parameter, ``[setting]``.
        regret: (mean, low, high), each interval by itself, ``[setting]``.
        best: the setting with the least mean.
        apart: (mean, low, high) of the paired differences to the best, all intervals at once, ``[setting]``.
        units: observations (runs, or sampled instances) behind each mean.
        warnings: of the regret at the best setting, as :func:`jaxbandits.statistics.mean` says them.
    """

    policy: str
    parameters: Mapping[str, np.ndarray]
    regret: tuple[np.ndarray, ...]
    best: int
    apart: tuple[np.ndarray, ...]
    units: int
    warnings: tuple[str, ...] = ()

    @staticmethod
    def of(policy: str, x: xarray.DataArray, names: Sequence[str], *, given: bool, unit: str = "replicate") -> Curve:
        """From the regret of every run: ``[setting, replicate]``, or with ``given`` instances ``[…, instance, …]``.

        The swept parameters ``names`` are coordinates along ``setting``; ``unit`` is what the replicates are.
        """
        count = x.sizes["setting"]
        mean = mean_interval(x, average_instances=given, level=LEVEL)
        best = int(np.argmin(mean["mean"].values))
        against = x.isel(setting=best).reset_coords(drop=True)
        level = 1 - (1 - LEVEL) / max(count - 1, 1)
        apart = paired_difference(x, against, average_instances=given, level=level)
        parts = ("mean", "low", "high")
        return Curve(
            policy,
            {name: x[name].values.astype(float) for name in names},
            tuple(mean[part].values for part in parts),
            best,
            tuple(apart[part].values for part in parts),
            x.sizes["replicate"],
            mean_of(against if given else against.rename(replicate=unit), over="replicate" if given else unit).warnings,
        )

    @property
    def indistinguishable(self) -> np.ndarray:
        """Settings that are not clearly worse than the best, ``bool[setting]``; all of them if there is no interval."""
        return ~(self.apart[1] > 0)

    @property
    def at_edge(self) -> list[str]:
        """Parameters whose best value is the smallest or largest of several."""
        return [
            name for name, x in self.parameters.items() if np.unique(x).size > 1 and x[self.best] in (x.min(), x.max())
        ]

    def recommendation(self) -> str:
        """In words: ``rho = 0.22, indistinguishable from 0.12 to 0.31``."""
        chosen = ", ".join(f"{name} = {x[self.best]:.3g}" for name, x in self.parameters.items())
        if self.units < 2:
            return f"{chosen} has the least regret of one run, which says nothing about the others"
        alike = self.indistinguishable
        if len(self.parameters) != 1:
            return f"{chosen}, indistinguishable from {alike.sum() - 1} of the other {alike.size - 1} settings"
        (x,) = self.parameters.values()
        if alike.sum() == 1:
            return f"{chosen}, clearly better than every other value"
        return f"{chosen}, indistinguishable from {_stretches(x, alike)}"


def _stretches(x: np.ndarray, alike: np.ndarray) -> str:
    """``0.12 to 0.31``; with gaps ``0.12 to 0.18 and 0.31``."""
    order = np.argsort(x)
    x, alike = x[order], alike[order]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], alike.astype(int), [0]])))
    parts = [
        f"{x[first]:.3g}" if first + 1 == last else f"{x[first]:.3g} to {x[last - 1]:.3g}"
        for first, last in zip(edges[::2], edges[1::2], strict=True)
    ]
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" and {parts[-1]}"
