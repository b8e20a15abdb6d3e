"""What a file's counts leave open of its arms' means: a posterior, pooled within the file, and draws from it.

* Conversions x of n clicks: rate θ_k ~ Beta(mκ, (1 − m)κ), x_k ~ Binomial(n_k, θ_k), so θ_k | x_k ~ Beta(mκ + x_k,
  (1 − m)κ + n_k − x_k). A value that is no count (revenue), where there are rows day by day: θ_k ~ Gamma(a, mean m),
  x_k ~ φ · Poisson(n_k θ_k / φ), so θ_k | x_k ~ Gamma(a + x_k/φ, rate a/m + n_k/φ).
* Cost per click: ln c_k ~ N(m, τ²), ln(S_k / n_k) ~ N(ln c_k, v²/n_k), v the coefficient of variation of its cost.
* Draws are from the central 99.9 % of either, so that what may be drawn has a useful bound, and none is clipped.
* A log: the Bayesian bootstrap, row j of an arm has weight E_j / ΣE, E_j exponential (Rubin 1981), reward and cost
  together.

m, κ, a, τ maximise the marginal likelihood of all arms of the file times a prior of the relative spread σ between arms
(σ² = (1 − m) / (m (κ + 1)), 1/a, τ²): ln σ ~ N(ln ½, 0.7²). It says that arms of a file mostly differ by a quarter to
once their mean; it keeps the spread from 0, and of two or three arms it keeps an ad with three clicks from winning;
with many arms it hardly counts. Counts tell nothing of the spread of a cost: v is taken from rows of a day each, where
there are any, and so is by how much conversions vary more than a binomial law says (φ ≥ 1, by which counts are
divided); else v is stated, and φ is 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxbandits.comparison.arms_table import ArmsTable, Daily, Evidence, Instance
from jaxbandits.core import streams
from jaxbandits.core.streams import Domain

_AT_ONCE = 1 << 15  # words of one call of the compiled program, so that it is compiled once


def mean_uniforms(seed: int, instance: int, runs: Sequence[int], draw: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """Uniforms in (0, 1), odd multiples of 2⁻²⁵, for the means of a file's instance: float64 ``[run, n, 2]``.

    The address of a pair is (seed, instance, run, ``Domain.MEANS``, draw, arm): which other instances, runs, arms or
    policies there are changes none.

    Args:
        seed: of the comparison.
        instance: the instance's number in the file.
        runs: their ids.
        draw: number of the draw, ``[n]``.
        arm: number of the arm, ``[n]``.

    Example:
        >>> import numpy as np
        >>> both = mean_uniforms(0, 3, [0, 1], np.zeros(2, int), np.arange(2))
        >>> alone = mean_uniforms(0, 3, [1], np.zeros(1, int), np.ones(1, int))
        >>> both.shape, bool((both[1, 1] == alone[0, 0]).all())
        ((2, 2, 2), True)
    """
    count, many = len(runs), draw.size
    place = np.empty((3, count, many), np.uint32)
    place[0], place[1], place[2] = np.asarray(runs, np.uint32)[:, None], draw, arm
    flat, total = place.reshape(3, -1), count * many
    root = jax.random.key(seed)
    words = np.empty((total, 2), np.uint32)
    for first in range(0, total, _AT_ONCE):
        part = flat[:, first : first + _AT_ONCE]
        padded = np.zeros((3, _AT_ONCE), np.uint32)
        padded[:, : part.shape[1]] = part
        words[first : first + part.shape[1]] = np.asarray(_words(root, np.uint32(instance), *padded))[: part.shape[1]]
    return ((words >> np.uint32(8)).reshape(count, many, 2) + 0.5) * 2.0**-24


LARGEST_UNIFORM = 1 - 2.0**-25
"""What no number of :func:`mean_uniforms` is above."""


@functools.partial(jax.jit)
def _words(root: jax.Array, instance: jax.Array, run: jax.Array, draw: jax.Array, arm: jax.Array) -> jax.Array:
    def one(run: jax.Array, draw: jax.Array, arm: jax.Array) -> jax.Array:
        key = streams.domain_key(streams.lane_key(root, instance, run), Domain.MEANS)
        return streams.words(key, draw, arm)

    return jax.vmap(one)(run, jnp.asarray(draw), arm)


# --- Arms of a file pooled by empirical Bayes, and what rows of a day each say of a spread


FloatArray = NDArray[np.float64]

_SPREAD, _SPREAD_SD = 0.5, 0.7


def spread(variance: float) -> float:
    """ln p(σ) + constant of a relative variance σ² between arms: ln σ ~ N(ln ½, 0.7²)."""
    return float(-(((np.log(variance) / 2 - np.log(_SPREAD)) / _SPREAD_SD) ** 2) / 2)


def pooled_beta(n: FloatArray, x: FloatArray) -> tuple[float, float]:
    """(m, κ) that maximise Π_k BetaBinomial(x_k; n_k, mκ, (1 − m)κ) · p(σ), σ² = (1 − m)/(m(κ + 1)): :func:`spread`.

    Example:
        >>> import numpy as np
        >>> m, strength = pooled_beta(np.full(4, 1000.0), np.array([90.0, 100.0, 105.0, 110.0]))
        >>> round(m, 3), strength > 300
        (0.101, True)
    """
    from scipy.special import betaln

    def loss(m: float, k: float) -> float:
        a, b = m * k, (1 - m) * k
        return -float((betaln(a + x, b + n - x) - betaln(a, b)).sum()) - spread((1 - m) / (m * (k + 1)))

    start = float((x.sum() + 0.5) / (n.sum() + 1))
    p, k = _searched(lambda p: loss(1 / (1 + np.exp(-p[0])), np.exp(p[1])), [np.log(start / (1 - start)), np.log(10)])
    return float(1 / (1 + np.exp(-p))), float(np.exp(k))


def pooled_gamma(n: FloatArray, x: FloatArray, phi: float) -> tuple[float, float]:
    """(m, a) that maximise the negative-binomial likelihood of x_k/φ (mean n_k m/φ, shape a) times p(a^−½)."""
    from scipy.special import gammaln

    y = x / phi

    def loss(m: float, a: float) -> float:
        mean = n * m / phi
        parts = gammaln(a + y) - gammaln(a) + a * np.log(a / (a + mean)) + y * np.log(mean / (a + mean) + 1e-300)
        return -float(parts.sum()) - spread(1 / a)

    start = float(max(x.sum(), phi / 2) / max(n.sum(), 1))
    p, k = _searched(lambda p: loss(np.exp(p[0]), np.exp(p[1])), [np.log(start), 0.0])
    return float(np.exp(p)), float(np.exp(k))


def pooled_log_cost(n: FloatArray, spent: FloatArray, v: float) -> tuple[float, float]:
    """(m, τ): m the weighted mean at τ; τ maximises Π_k N(ln(S_k/n_k); m, v²/n_k + τ²) · p(τ), 1e-4 ≤ τ ≤ 5."""
    from scipy.optimize import minimize_scalar

    known = (n > 0) & (spent > 0)
    y, s2 = np.log(spent[known] / n[known]), v * v / n[known]

    def mean(tau: float) -> float:
        return float(np.average(y, weights=1 / (s2 + tau * tau)))

    def loss(log_tau: float) -> float:
        var = s2 + np.exp(2 * log_tau)
        return float((np.log(var) + (y - mean(np.exp(log_tau))) ** 2 / var).sum()) / 2 - spread(np.exp(2 * log_tau))

    tau = float(np.exp(minimize_scalar(loss, bounds=(np.log(1e-4), np.log(5.0)), method="bounded").x))
    return mean(tau), tau


def shrunk_log_cost(n: FloatArray, spent: FloatArray, v: float, m: float, tau: float) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of ln c_k given the file, ``[K]``."""
    known = (n > 0) & (spent > 0)  # an arm that a prior keeps may lack either
    y = np.log(np.where(known, spent, 1) / np.where(known, n, 1))
    precision = np.where(known, n, 0) / (v * v)
    total = precision + 1 / tau**2
    return (precision * y + m / tau**2) / total, np.sqrt(1 / total)


def _searched(loss: Callable[[FloatArray], float], start: list[float]) -> FloatArray:
    from scipy.optimize import minimize

    bounds = [(-30.0, 30.0), (np.log(1e-3), np.log(1e6))]
    return minimize(loss, start, method="Nelder-Mead", bounds=bounds, options={"xatol": 1e-6, "fatol": 1e-9}).x


def day_to_day_cost_cv(days: Sequence[Daily]) -> float | None:
    """v = √(Σ n_kd (c_kd / c_k − 1)² / Σ (D_k − 1)), c_kd the cost per click of arm k on day d of D_k.

    None where no arm has two days with clicks.
    """
    found = _several_days((day.clicks, day.spent) for day in days)
    squares, free = sum(float((n * (s / n / mean - 1) ** 2).sum()) for n, s, mean in found), _free(found)
    return float(np.sqrt(squares / free)) if free else None


def day_to_day_dispersion(days: Sequence[Daily]) -> float:
    """φ = Σ (x_kd − n_kd θ_k)² / (n_kd θ_k) / Σ (D_k − 1), θ_k = x_k / n_k: 1 for Poisson counts."""
    found = _several_days((day.clicks, day.value) for day in days)
    squares, free = sum(float(((x - n * mean) ** 2 / (n * mean)).sum()) for n, x, mean in found), _free(found)
    return squares / free if free else 0.0


def _several_days(arms: Iterable[tuple[FloatArray, FloatArray]]) -> list[tuple[FloatArray, FloatArray, float]]:
    """Clicks, totals and the mean per click of arms that have two days with clicks, and are not 0 in all of them."""
    seen = [(n[n > 0], total[n > 0]) for n, total in arms]
    return [(n, total, float(total.sum() / n.sum())) for n, total in seen if n.size > 1 and total.sum() > 0]


def _free(found: list[tuple[FloatArray, FloatArray, float]]) -> int:
    return sum(n.size - 1 for n, _, _ in found)


# --- The posterior of a file, and draws from it


_LEAST_CV, _CENTRAL = 0.01, 0.999

STATED_COST_CV = 0.5
"""Coefficient of variation of one click's cost, where neither the file nor the user says one."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """Means of some runs of one instance, in the user's unit.

    Attributes:
        reward, cost: float64 ``[run, K]``.
        weights: of a log, for each arm its rows' probabilities ``[run, row]``; else None.
    """

    reward: FloatArray
    cost: FloatArray
    weights: tuple[FloatArray, ...] | None = None


@dataclass(frozen=True, eq=False)
class CountPosterior:
    """Of one instance of a file of counts.

    Attributes:
        law: ``"beta"`` (first: α, second: β) or ``"gamma"`` (first: shape, second: scale), of the reward per pull.
        first, second: float64 ``[K]``.
        log_cost, log_cost_sd: mean and standard deviation of ln(cost per pull), float64 ``[K]``.
    """

    law: str
    first: FloatArray
    second: FloatArray
    log_cost: FloatArray
    log_cost_sd: FloatArray

    def means(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean reward and cost per pull, ``[K]``."""
        reward = self.first / (self.first + self.second) if self.law == "beta" else self.first * self.second
        return reward, np.exp(self.log_cost + self.log_cost_sd**2 / 2)

    def quantiles(self, reward: ArrayLike, cost: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Rewards and costs per pull at these probabilities of the posterior's central 99.9 %, ``[…, K]``."""
        from scipy import special

        reward, cost = (0.5 + _CENTRAL * (np.asarray(x) - 0.5) for x in (reward, cost))
        if self.law == "beta":
            found = special.betaincinv(self.first, self.second, reward)
        else:
            found = special.gammaincinv(self.first, reward) * self.second
        return found, np.exp(self.log_cost + self.log_cost_sd * special.ndtri(cost))

    def largest(self) -> tuple[float, float]:
        """No draw of a mean reward, and of a mean cost, is above these."""
        reward, cost = self.quantiles(LARGEST_UNIFORM, LARGEST_UNIFORM)
        return float(reward.max()), float(cost.max())

    def draw(self, seed: int, instance: int, runs: Sequence[int]) -> Drawn:
        """Means of these runs."""
        arms = np.arange(self.first.size)
        uniform = mean_uniforms(seed, instance, runs, np.zeros_like(arms), arms)
        return Drawn(*self.quantiles(uniform[..., 0], uniform[..., 1]))


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """Of one instance of a log: its rows, for each arm (rewards, costs)."""

    rows: tuple[tuple[FloatArray, FloatArray], ...]

    def means(self) -> tuple[FloatArray, FloatArray]:
        """The averages of the rows, ``[K]``."""
        reward, cost = (np.array([arm[i].mean() for arm in self.rows]) for i in (0, 1))
        return reward, cost

    def largest(self) -> tuple[float, float]:
        """The largest row of any arm."""
        reward, cost = (max(float(arm[i].max()) for arm in self.rows) for i in (0, 1))
        return reward, cost

    def draw(self, seed: int, instance: int, runs: Sequence[int]) -> Drawn:
        """Means of these runs, and the weights of the rows behind them."""
        weights = []
        for arm, (rewards, _) in enumerate(self.rows):
            row = np.arange(rewards.size)
            exponential = -np.log(mean_uniforms(seed, instance, runs, row, np.full_like(row, arm))[..., 0])
            weights.append(exponential / exponential.sum(-1, keepdims=True))
        each = list(zip(weights, self.rows, strict=True))
        reward, cost = (np.stack([w @ arm[i] for w, arm in each], axis=-1) for i in (0, 1))
        return Drawn(reward, cost, tuple(weights))


@dataclass(frozen=True, eq=False)
class Posterior:
    """Of a file: that of each instance, and what it was made with.

    Attributes:
        instances: in the order of the file.
        cost_cv: v, coefficient of variation of one pull's cost; 0 for a log, whose rows say it.
        cost_cv_from: ``"days"``, ``"stated"`` or ``"rows"``.
        dispersion: φ, by which counts are divided; 1 where there are no days.
        prior: what arms are pooled to: m and κ (or a) of the reward, m and τ of ln cost; empty for a log.
    """

    instances: tuple[CountPosterior | LogPosterior, ...]
    cost_cv: float
    cost_cv_from: str
    dispersion: float = 1.0
    prior: tuple[tuple[str, float], ...] = ()


def why_no_posterior(table: ArmsTable) -> str | None:
    """Why the means of this table are taken as they are; None if they need not be."""
    evidence = [instance.evidence for instance in table.instances]
    if any(x is None or x.clicks is None for x in evidence):
        return "it has means only, and no counts that say how sure they are"
    if table.kind != "log" and not _whole(table) and not _days(table):
        return f"its {table.reward_unit} are no counts, and there are no rows day by day that say how they vary"
    return None


def posterior_of(table: ArmsTable, cost_cv: float | None = None) -> Posterior:
    """The posterior of the arms' means given the file's counts; see the module's text.

    Args:
        table: one for which :func:`why_no_posterior` is None.
        cost_cv: coefficient of variation of one pull's cost; None: from day to day, else :data:`STATED_COST_CV`.
    """
    if table.kind == "log":
        return Posterior(tuple(LogPosterior(instance.log or ()) for instance in table.instances), 0.0, "rows")
    parts = [
        np.array([getattr(_evidence(instance), name) for name in ("clicks", "value", "spent")], float)
        for instance in table.instances
    ]
    clicks, value, spent = np.concatenate(parts, axis=1)
    days, whole = _days(table), _whole(table)
    v, v_from = cost_cv_of(table, None, cost_cv)
    phi = max(day_to_day_dispersion(days), 1.0 if whole else 0.0) if days else 1.0
    phi = phi or float(value.sum() / max(clicks.sum(), 1))  # revenue that is the same every day
    reward = pooled_beta(clicks / phi, value / phi) if whole else pooled_gamma(clicks, value, phi)
    m, tau = pooled_log_cost(clicks, spent, v)
    made = []
    for n, x, s in parts:
        if whole:
            first, second = reward[0] * reward[1] + x / phi, (1 - reward[0]) * reward[1] + (n - x) / phi
        else:
            first, second = reward[1] + x / phi, 1 / (reward[1] / reward[0] + n / phi)
        made.append(CountPosterior("beta" if whole else "gamma", first, second, *shrunk_log_cost(n, s, v, m, tau)))
    names = ("reward_mean", "reward_strength", "log_cost_mean", "log_cost_sd")
    return Posterior(tuple(made), v, v_from, phi, tuple(zip(names, (*reward, m, tau), strict=True)))


def cost_cv_of(table: ArmsTable, posterior: Posterior | None, cost_cv: float | None) -> tuple[float, str]:
    """The coefficient of variation of one pull's cost (stated, of the posterior, from day to day, or 0.5); whence."""
    if cost_cv is not None:
        return cost_cv, "stated"
    if posterior is not None:
        return posterior.cost_cv, posterior.cost_cv_from
    found = day_to_day_cost_cv(_days(table))
    return (STATED_COST_CV, "stated") if found is None else (max(found, _LEAST_CV), "days")


def _days(table: ArmsTable) -> list[Daily]:
    return [day for instance in table.instances for day in (_evidence(instance).daily or ()) if day.clicks.size > 1]


def _whole(table: ArmsTable) -> bool:
    return all(_evidence(instance).whole for instance in table.instances)


def _evidence(instance: Instance) -> Evidence:
    return instance.evidence or Evidence("means", None, None, None)
