"""What a file's counts leave open of its arms' means: a posterior, pooled within the file, and draws from it.

* Conversions x of n clicks: rate θ_k ~ Beta(mκ, (1 − m)κ), x_k ~ Binomial(n_k, θ_k), so θ_k | x_k ~ Beta(mκ + x_k,
  (1 − m)κ + n_k − x_k). A value that is no count (revenue), where there are rows day by day: θ_k ~ Gamma(a, mean m),
  x_k ~ φ · Poisson(n_k θ_k / φ), so θ_k | x_k ~ Gamma(a + x_k/φ, rate a/m + n_k/φ).
* Cost per click: ln c_k ~ N(m, τ²), ln(S_k / n_k) ~ N(ln c_k, v²/n_k), v the coefficient of variation of its cost.
* Draws are from the central 99.9 % of either, so that what may be drawn has a bound that is of use (none is clipped).
* A log: the Bayesian bootstrap, row j of an arm has weight E_j / ΣE, E_j exponential (Rubin 1981), reward and cost
  together.

m, κ, a, τ maximise the marginal likelihood of all arms of the file times a prior of the relative spread σ between arms
(σ² = (1 − m) / (m (κ + 1)), 1/a, τ²): ln σ ~ N(ln ½, 0.7²). It says that arms of a file mostly differ by a quarter to
once their mean; it keeps the spread from 0, and two or three arms from making an ad with three clicks the winner; of
many arms it is drowned. Counts tell nothing of the spread of a cost: v is taken from the rows
of a day each, where there are any, as is by how much conversions vary more than a binomial law says (φ ≥ 1, by which
counts are divided); else v is stated, and φ is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxbandits.comparison.arms_table import ArmsTable, Instance
from jaxbandits.comparison.evidence import Daily, Evidence
from jaxbandits.comparison.mean_draws import LARGEST_UNIFORM, mean_uniforms
from jaxbandits.comparison.pooling import (
    day_to_day_cost_cv,
    day_to_day_dispersion,
    pooled_beta,
    pooled_gamma,
    pooled_log_cost,
    shrunk_log_cost,
)

FloatArray = NDArray[np.float64]

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
        return Posterior(tuple(LogPosterior(_rows(instance)) for instance in table.instances), 0.0, "rows")
    parts = [_evidence(instance) for instance in table.instances]
    clicks, value, spent = (
        np.concatenate([_of(getattr(p, name)) for p in parts]) for name in ("clicks", "value", "spent")
    )
    days, whole = _days(table), _whole(table)
    v, v_from = cost_cv_of(table, None, cost_cv)
    phi = max(day_to_day_dispersion(days), 1.0 if whole else 0.0) if days else 1.0
    phi = phi or float(value.sum() / max(clicks.sum(), 1))  # revenue that is the same every day
    reward = pooled_beta(clicks / phi, value / phi) if whole else pooled_gamma(clicks, value, phi)
    m, tau = pooled_log_cost(clicks, spent, v)
    made = []
    for part in parts:
        n, x, s = _of(part.clicks), _of(part.value), _of(part.spent)
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


def _of(values: FloatArray | None) -> FloatArray:
    return np.zeros(0) if values is None else values


def _rows(instance: Instance) -> tuple[tuple[FloatArray, FloatArray], ...]:
    return instance.log or ()
