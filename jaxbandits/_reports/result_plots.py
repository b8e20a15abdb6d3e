"""Pictures of a result, for a notebook or a first look; means carry their uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits._reports.palette import nth_look
from jaxbandits._reports.plot import drawn
from jaxbandits.core.errors import bad

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ACROSS = {"spent": "share of the budget spent", "rounds": "share of the rounds played"}
_MOST_SETTINGS, _MOST_ARMS = 20, 7  # 7: as many colours as can be told apart


class ResultPlots:
    """``result.plot``; every method gives a matplotlib figure, which has ``savefig``.

    Args:
        result: what is drawn, at most 20 settings of it (``result.sel`` takes some).
    """

    def __init__(self, result: Any):
        if len(result.settings) > _MOST_SETTINGS:
            raise bad("plot", f"{len(result.settings)} settings", f"of at most {_MOST_SETTINGS}; result.sel takes some")
        self._result = result

    def regret(self) -> Figure:
        """Mean regret over the clock, over all instances and replicates, ± 1.96 standard errors of the lanes' mean.

        The instances count as given: each lane's deviation is from the mean of its instance.

        Example:
            >>> import jax
            >>> import jaxbandits as jb
            >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
            >>> result = jb.simulate(
            ...     jb.policies.MUCB(), arms, jb.Horizon(20), key=jax.random.key(0), replicates=4, marks=3)
            >>> result.plot.regret().axes[0].get_ylabel()
            'regret (reward)'
        """
        values = self._result.regret.values
        instances, replicates = values.shape[1:3]
        mean = values.mean(axis=(1, 2))
        error = np.full_like(mean, np.nan)
        if replicates > 1:
            error = np.sqrt(values.var(axis=2, ddof=1).sum(axis=1) / replicates) / instances
        bands = {
            name: (mean[i], mean[i] - 1.96 * error[i], mean[i] + 1.96 * error[i])
            for i, name in enumerate(self._result.settings)
        }
        return drawn(
            np.asarray(self._result.marks),
            bands,
            title=f"mean of {instances * replicates:,} runs, ± 1.96 standard errors",
            across=_ACROSS[self._result.about["clock"]],
            up="regret (reward)",
        )

    def pulls(self, instance: int = 0) -> Figure:
        """Mean share of pulls of each arm in one instance, a bar for each setting.

        Args:
            instance: its position.

        Raises:
            InputError: the environment counts no pulls, or there is no such instance.
        """
        pulls = self._result.pulls.values
        if not 0 <= instance < pulls.shape[1]:
            raise bad("instance", instance, f"from 0 to {pulls.shape[1] - 1}")
        counts = pulls[:, instance].mean(axis=1)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        figure, axes = _empty(height=1.2 + 0.45 * len(shares))
        names = self._result.settings
        left, shown = np.zeros(len(shares)), np.argsort(-shares.max(axis=0))[:_MOST_ARMS]
        for place, arm in enumerate(np.sort(shown)):
            colour, _, _ = nth_look(place)
            axes.barh(names, shares[:, arm], left=left, color=colour, label=f"arm {arm}", edgecolor="white")
            left = left + shares[:, arm]
        if shares.shape[1] > len(shown):
            axes.barh(names, 1 - left, left=left, color="0.8", label="other arms", edgecolor="white")
        axes.set_xlim(0, 1)
        axes.invert_yaxis()
        axes.set_xlabel(f"share of pulls, instance {self._result.instances[instance]}")
        figure.legend(loc="outside right upper", frameon=False, fontsize=9)
        return figure

    def distribution(self) -> Figure:
        """What share of the runs ended with more than a given regret: heavy tails show at the right.

        A curve that reaches far to the right is a setting of which few runs cost very much.
        """
        final = self._result.regret.values[..., -1]
        figure, axes = _empty()
        for number, (name, values) in enumerate(zip(self._result.settings, final, strict=True)):
            ordered = np.sort(values.ravel())
            colour, _, dashes = nth_look(number)
            above = 1 - np.arange(ordered.size) / ordered.size
            axes.step(ordered, above, where="pre", color=colour, linestyle=dashes, linewidth=1.8, label=name)
        axes.set_yscale("log")
        axes.set_xlabel("regret at the end (reward)")
        axes.set_ylabel("share of runs with at least that")
        axes.grid(alpha=0.3, linewidth=0.6)
        figure.legend(loc="outside right upper", frameon=False, fontsize=9, handlelength=3.5)
        return figure


def _empty(height: float = 4.8) -> tuple[Figure, Any]:
    from jaxbandits._reports.picture import Picture

    figure = Picture(figsize=(8, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
