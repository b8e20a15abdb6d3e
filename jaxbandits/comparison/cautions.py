"""What a reader of the answer should be warned of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jaxbandits.comparison.comparison import Comparison
from jaxbandits.comparison.spreads import Spread

_FEW_PULLS, _FEW_ROWS, _OVERSHOOT = 10, 5, 0.05
_FEW_CLICKS, _MUCH = 30, 0.2


class Share(Protocol):
    """An arm's part of the money."""

    @property
    def name(self) -> str:
        """Of the arm."""

    @property
    def share(self) -> Spread:
        """Of the money that was spent on its instance."""


def cautions(comparison: Comparison, setting: int, shares: Sequence[Sequence[Share]]) -> list[str]:
    """Budgets of a few pulls or of fewer pulls than arms, money spent beyond the budget, means that few clicks tell.

    Args:
        comparison: that the answer is about.
        setting: the number of the one that it names.
        shares: for each instance its arms, each with a ``name`` and the ``share`` of the money that went to it.
    """
    plan, said = comparison.plan, []
    pulls = {i.name: plan.budget / float(i.mean_cost.mean()) for i in plan.table.instances}
    fewest = min(pulls, key=lambda name: pulls[name])
    unit = plan.table.pull_unit
    if pulls[fewest] < _FEW_PULLS:
        said.append(
            f"the budget of {plan.budget:g} is about {pulls[fewest]:.2g} {unit}s in {fewest!r}: "
            "too few to learn anything"
        )
    else:
        short = [i.name for i in plan.table.instances if pulls[i.name] < len(i.arms)]
        if short:
            said.append(
                f"in {len(short)} of {len(pulls)} instances the budget of {plan.budget:g} is fewer {unit}s than there "
                f"are arms ({short[0]!r}: about {pulls[short[0]]:.0f}): some are never tried"
            )
    instances = plan.table.instances
    few = [(name, rows[0].size) for i in instances for name, rows in zip(i.arms, i.log or (), strict=False)]
    if thin := [(name, rows) for name, rows in few if rows < _FEW_ROWS]:
        said.append(
            f"{len(thin)} of {len(few)} arms have fewer than {_FEW_ROWS} rows in the log "
            f"({thin[0][0]!r}: {thin[0][1]}): drawing from their own rows does not know what others would bring"
        )
    over = float(comparison.data["spent"].values[setting].mean()) / plan.budget - 1
    if plan.rounds is None and over > _OVERSHOOT:
        said.append(
            f"the last {unit} exceeds the budget: {over:.0%} more than {plan.budget:g} is spent on average "
            "(--last-pull forfeits keeps to it)"
        )
    return said + _hardly_known(comparison, shares)


def _hardly_known(comparison: Comparison, shares: Sequence[Sequence[Share]]) -> list[str]:
    """Where means are taken as the truth: arms that get much of the money, and have few clicks in the file."""
    plan = comparison.plan
    if plan.posterior is not None:
        return []
    found = []
    for instance, arms in zip(plan.table.instances, shares, strict=True):
        clicks = None if instance.evidence is None else instance.evidence.clicks
        if clicks is None or plan.table.kind == "log":
            continue
        few = [
            (arm.share.mean, arm.name, count)
            for arm, count in zip(arms, clicks, strict=True)
            if count < _FEW_CLICKS and arm.share.mean > _MUCH
        ]
        found += sorted(few, reverse=True)[:1]
    if not found:
        return []
    share, name, count = max(found)
    unit = plan.table.pull_unit
    return [
        f"{name!r} gets {share:.0%} of the money and has {count:,.0f} {unit}s in the file: its mean, taken as the "
        "truth, is hardly known, and so is this answer"
    ]
