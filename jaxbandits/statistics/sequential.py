"""Sequential tests of paired differences that keep their level over all looks together.

Each claim has an e-process, a wealth that a gambler makes of bets against it: if the claim is false
its mean never grows beyond 1, so it ever reaches 1/α with probability at most α (Ville). Nothing is
lost by looking, nor by stopping.

* *earns more in most runs*, against P(d > 0) ≤ ½: 2 ∫ (2p)ᵏ (2(1 − p))ⁿ⁻ᵏ dp over p from ½ to 1,
  after k gains in n runs.
* *earns more on average*, against E d ≤ 0, for d ≥ −b: the mean over λ of Π (1 + λ dᵢ / b), λ = 1,
  ½, ¼, …. A rare disaster of the winner, which has not been seen yet, is allowed for: one as large
  as b costs all that is bet. Hence it is slow where b is large beside the differences, and no law
  with equal means can fool it.

Source: Waudby-Smith, Ramdas (2024), Estimating means of bounded random variables by betting;
Robbins (1970) for the mixture over p.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxbandits.core.checks import InputError, bad, positive_number
from jaxbandits.statistics.estimates import check_axes, check_level
from jaxbandits.statistics.pairs import square

if TYPE_CHECKING:
    import xarray


# λ: small ones win where a loss may be large, large ones where it may not
_BETS = 2.0 ** -np.arange(14.0)
CLAIMS = ("most runs", "average")


class ClearPairs(NamedTuple):
    """The first run (from 1) at which the row is clearly better than the column, or 0."""

    most: xarray.DataArray  # the row earns more than the column in most runs
    average: xarray.DataArray  # the same of more on average


def clear_pairs(
    x: xarray.DataArray, bound: float, *, among: str = "setting", over: str, level: float = 0.95
) -> ClearPairs:
    """Which settings clearly earn more than which, in most runs and on average, at any time.

    All pairs, both directions and both claims share the error (Bonferroni), and all looks do: with
    probability ``level`` no claim that is false is ever called clear, however often more runs are
    added and looked at. A claim that was clear once stays so: adding runs changes no number that is
    not 0.

    Args:
        x: what each run earns, with the axes ``among`` and ``over`` only, in the order in which
            runs were played.
        bound: what a run can earn, at most; from 0 to it. Of a run that earns more, so much counts.
        among: the axis whose entries are compared.
        over: the axis of independent runs.
        level: of the whole table.

    Returns:
        :class:`ClearPairs`, arrays over ``(among, against)``.

    Example:
        >>> import numpy as np, xarray
        >>> noise = np.random.default_rng(0).uniform(size=200)
        >>> x = xarray.DataArray([noise, noise / 2], dims=("setting", "replicate"))
        >>> clear = clear_pairs(x, bound=1.0, over="replicate")
        >>> clear.most.values.tolist(), bool(0 < clear.average[0, 1] < 200)
        ([[0, 9], [0, 0]], True)
    """
    check_axes(x, among, over)
    check_level("level", level)
    bound = positive_number("bound", bound)
    if sorted(map(str, x.dims)) != sorted((among, over)):
        given = f"an array with axes {tuple(x.dims)} given"
        raise InputError(f"x: {given}; it must have {among!r} and {over!r} only")
    earned = np.asarray(x.transpose(among, over).values, float)
    if not (np.isfinite(earned).all() and (earned >= 0).all()):
        raise bad("x", "a number below 0, NaN or infinity", "what runs earn, 0 or more")
    count = earned.shape[0]
    needed = math.log(max(count * (count - 1) // 2, 1) * 2 * len(CLAIMS) / (1 - level))
    majority, average = np.zeros((2, count, count), int)
    counted = np.minimum(earned, bound) / bound
    for pair in itertools.permutations(range(count), 2):
        row, column = pair
        gains = sign_evidence(earned[row] > earned[column])
        means = mean_evidence(counted[row] - counted[column])
        for runs, evidence in ((majority, gains), (average, means)):
            enough = evidence >= needed
            runs[pair] = np.argmax(enough) + 1 if enough.any() else 0
    return ClearPairs(*(square(x, among, part) for part in (majority, average)))


def sign_evidence(gains: np.ndarray) -> np.ndarray:
    """ln of the wealth against P(gain) ≤ ½ after each run, ``[run]``, from ``bool[run]``."""
    from scipy import special

    runs = np.arange(1.0, gains.size + 1)
    won = np.cumsum(gains)
    with np.errstate(divide="ignore"):
        above_half = np.log(special.betainc(runs - won + 1, won + 1, 0.5))
    return (runs + 1) * math.log(2) + special.betaln(won + 1, runs - won + 1) + above_half


def mean_evidence(apart: np.ndarray) -> np.ndarray:
    """ln of the wealth against E d ≤ 0 after each run, ``[run]``, from d ≥ −1."""
    from scipy import special

    with np.errstate(divide="ignore"):
        wealth = np.log1p(_BETS[:, None] * apart).cumsum(axis=1)
    return special.logsumexp(wealth, axis=0) - math.log(_BETS.size)
