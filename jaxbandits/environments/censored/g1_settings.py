"""G1: our stand-in for the instances PosCorr, NegCorr and Indep of the RCUCB paper, whose laws are not published."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandits.core.censored_specs import CostFunction
from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import whole_number
from jaxbandits.environments.censored.arms import CensoredArms
from jaxbandits.environments.censored.charges import FastTrack, Linear
from jaxbandits.environments.censored.copula import copula_arms

G1_NAMES = ("PosCorr", "NegCorr", "Indep")
_KAPPA = {"PosCorr": 0.6, "NegCorr": -0.6, "Indep": 0.0}
_SHIFT = {"PosCorr": 0.0435, "NegCorr": 0.7963, "Indep": -0.39}


@dataclasses.dataclass(frozen=True)
class ProbitNormal:
    """The law of Φ(b + σ y), y standard normal; its mean is Φ(b/√(1 + σ²)).

    Example:
        >>> round(float(ProbitNormal(0.0, 0.6).ppf(0.5)), 3)
        0.5
    """

    b: float
    sigma: float

    def ppf(self, q: Any) -> Any:
        """Quantile function."""
        from scipy import special  # slow to import

        return special.ndtr(self.b + self.sigma * special.ndtri(q))


def g1(
    names: Sequence[str] = G1_NAMES,
    *,
    arms: int = 10,
    limits: int | Sequence[float] = 10,
    cost: CostFunction = Linear(0.1),  # noqa: B008 (immutable)
    penalty: CostFunction = FastTrack(),  # noqa: B008 (immutable)
) -> CensoredArms:
    """The stand-in instances G1, one per name. **Ours, not the authors'**: the paper's supplement was not to be had.

    (z, y) standard normal with correlation κ = 0.6, −0.6, 0; arm i = 1 … n has C = ½·exp(2(z + q_i)) with
    q_i = −0.4 + 0.08(i − 1) + δ and R = Φ(b_i + 0.6 y) with b_i = −0.8 + 0.26(i − 1). The shift δ of each instance
    makes the best pair's censoring probability the published one (0.6116, 0.7631, 0.4404). For another number of arms
    the n values of q and b are spread evenly over the same ranges.

    Args:
        names: of ``"PosCorr"``, ``"NegCorr"``, ``"Indep"``.
        arms: n ≥ 1.
        limits: how many equally spaced ones in (0, 1], or the limits.
        cost: default x/10, as in the paper.
        penalty: default x/10 up to 0.5 and 10x above, as in the paper.

    Raises:
        InputError: another name, or fewer than 1 arms; see also :func:`copula_arms`.

    Source: ours; constraints from §5.1 and its table.

    Example:
        >>> from jaxbandits.environments import g1
        >>> [(arm + 1, limit) for arm, limit, value in g1().best_pair()]
        [(9, 0.5), (5, 0.5), (9, 0.5)]
    """
    from scipy import stats  # slow to import, and only needed here

    if not isinstance(names, (list, tuple)) or not names:
        raise bad("names", names, "a list of " + " or ".join(map(repr, G1_NAMES)))
    for name in names:
        if name not in G1_NAMES:
            raise bad("names", name, " or ".join(map(repr, G1_NAMES)))
    whole_number("arms", arms, 1, 2**20 - 1, "2**20 - 1")
    level = np.linspace(0.0, 9.0, int(arms)) if arms > 1 else np.array([4.5])
    if isinstance(limits, (int, np.integer)):
        count = whole_number("limits", limits, 1, 2**24, "2**24")
        values: Any = np.arange(1, count + 1) / count
    else:
        values = limits
    reward = [ProbitNormal(-0.8 + 0.26 * x, 0.6) for x in level]
    consumption = [
        [stats.lognorm(2.0, scale=0.5 * np.exp(2 * (-0.4 + 0.08 * x + _SHIFT[name]))) for x in level] for name in names
    ]
    return copula_arms(
        [reward] * len(names),
        consumption,
        [[_KAPPA[name]] for name in names],
        limits=values,
        cost=cost,
        penalty=penalty,
    )
