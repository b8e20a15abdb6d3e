"""From a file to simulated arms: the posterior of the means, draws from it, arms of a run.

* Conversions x of n clicks: rate θ_k ~ Beta(mκ, (1 − m)κ), x_k ~ Binomial(n_k, θ_k), so θ_k | x_k ~
  Beta(mκ + x_k, (1 − m)κ + n_k − x_k). A value that is no count (revenue), where there are rows day
  by day: θ_k ~ Gamma(a, mean m), x_k ~ φ · Poisson(n_k θ_k / φ), so θ_k | x_k ~ Gamma(a + x_k/φ,
  rate a/m + n_k/φ).
* Cost per click: ln c_k ~ N(m, τ²), ln(S_k / n_k) ~ N(ln c_k, v²/n_k), v the coefficient of
  variation of its cost.
* Draws are from the central 99.9 % of either, so that what may be drawn has a useful bound, and
  none is clipped.
* A log: the Bayesian bootstrap, row j of an arm has weight E_j / ΣE, E_j exponential (Rubin 1981),
  reward and cost together; in a table of requests a row has one weight for all arms.

The arms of a file share m and κ (or a), and m and τ. They are not known either: **every run draws
them too**, from their posterior on a grid, given all arms of the file. (At their mode the central
95 % of a rate held 79 % in files of three arms.) Their prior: the relative spread σ between arms
(σ² = (1 − m) / (m (κ + 1)), 1/a, τ²) has ln σ ~ N(ln ½, 0.7²), m the density ∝ (m (1 − m))^−½ (m^−½
for a value that is no count, flat for a log cost). It says that arms of a file mostly differ by a
quarter to once their mean; it keeps the spread from 0, and of two or three arms it keeps an ad with
three clicks from winning; with many arms it hardly counts. Counts tell nothing of the spread of a
cost: v is taken from rows of a day each, where there are any, and so is by how much conversions
vary more than a binomial law says (φ ≥ 1, by which counts are divided); else v is stated, and φ is
1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxbandits.apps.comparison.arms_table import ArmsTable, Daily, FloatArray, Instance
from jaxbandits.core import Domain, InputError, leaf, pytree, streams, ticks
from jaxbandits.environments.finite import ClickLaw, FiniteArms, WeightedRowsLaw, drawn_row
from jaxbandits.environments.table import RequestTable, RowOrder
from jaxbandits.tools import quoted

LARGEST_UNIFORM = 1 - 2.0**-25
"""The largest possible value of :func:`mean_uniforms`."""
STATED_COST_CV = 0.5
"""Coefficient of variation of a click's cost if neither the file nor the user gives one."""
_LEAST_CV, _CENTRAL = 0.01, 0.999
_LARGEST_SCALED_MEAN = 0.99


def mean_uniforms(
    seed: int, instance: int, runs: Sequence[int], draw: np.ndarray, arm: np.ndarray
) -> np.ndarray:
    """Float64 uniforms in (0, 1), odd multiples of 2⁻²⁵, ``[run, n, 2]`` for draws of arms ``[n]``.

    The address of a pair is (seed, instance, run, ``Domain.MEANS``, draw, arm): which other
    instances, runs, arms or policies there are changes none.
    """
    root = np.asarray(jax.random.key_data(jax.random.key(seed)))
    lanes = streams.lane_words(root, np.full(1, instance), np.asarray(runs), Domain.MEANS)
    place = draw.astype(np.uint32), arm.astype(np.uint32)
    words = np.stack(streams.threefry2x32_of((lanes[:, :1], lanes[:, 1:]), place), axis=-1)
    return ((words >> np.uint32(8)) + 0.5) * 2.0**-24


# --- Arms of a file pooled together, and what rows of a day each say of a spread


class SharedGrid(NamedTuple):
    """Parameters shared by the arms of a file: nodes of a grid, ``[G]``, and probabilities."""

    weight: FloatArray
    mean: FloatArray  # m
    strength: FloatArray  # κ, a, or τ
    mean_sd: FloatArray  # of m at this node, where m is no axis of the grid


def log_spread_prior(variance: ArrayLike) -> FloatArray:
    """ln p(σ) + constant of a relative variance σ² between arms: ln σ ~ N(ln ½, 0.7²)."""
    return -(((np.log(variance) / 2 - np.log(0.5)) / 0.7) ** 2) / 2


def pooled_beta(n: FloatArray, x: FloatArray) -> SharedGrid:
    """(m, κ) by Π_k BetaBinomial(x_k; n_k, mκ, (1 − m)κ) · p(m, σ), σ² = (1 − m)/(m(κ + 1))."""
    from scipy.special import betaln, expit

    def density(p: FloatArray, q: FloatArray) -> FloatArray:
        m, k = expit(p), np.exp(q)
        a, b = m * k, (1 - m) * k
        likelihood = _over_arms(lambda n, x: betaln(a + x, b + n - x) - betaln(a, b), n, x)
        prior = log_spread_prior((1 - m) / (m * (k + 1))) + np.log(m * (1 - m)) / 2
        # of (ln(m/(1 − m)), ln κ): d ln σ = κ/(κ + 1)/2 · d ln κ
        return likelihood + (prior - np.log1p(np.exp(-q)))[:, 0]

    start = float((x.sum() + 0.5) / (n.sum() + 1))
    weight, p, q = _grid(density, float(np.log(start / (1 - start))))
    return SharedGrid(weight, expit(p), np.exp(q), np.zeros_like(p))


def pooled_gamma(n: FloatArray, x: FloatArray, phi: float) -> SharedGrid:
    """(m, a) by the negative-binomial law of x_k/φ (mean n_k m/φ, shape a), p(m, σ = a^−½)."""
    from scipy.special import gammaln

    def density(p: FloatArray, q: FloatArray) -> FloatArray:
        m, a = np.exp(p), np.exp(q)

        def marginal(n: FloatArray, y: FloatArray) -> FloatArray:
            odds = n * m / phi / a
            rises = gammaln(a + y) - gammaln(a) - a * np.log1p(odds)
            return rises + y * np.log(odds / (1 + odds) + 1e-300)

        return _over_arms(marginal, n, x / phi) + (log_spread_prior(1 / a) + p / 2)[:, 0]

    weight, p, q = _grid(density, float(np.log(max(x.sum(), phi / 2) / max(n.sum(), 1))))
    return SharedGrid(weight, np.exp(p), np.exp(q), np.zeros_like(p))


def pooled_log_cost(n: FloatArray, spent: FloatArray, v: float) -> SharedGrid:
    """τ by Π_k N(ln(S_k/n_k); m, v²/n_k + τ²) · p(τ), m integrated over; m is normal given τ."""
    priced = (n > 0) & (spent > 0)
    y, s2 = np.log(spent[priced] / n[priced]), v * v / n[priced]

    def at_spread(tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        precision = 1 / (s2 + tau[:, None] ** 2)
        total = precision.sum(1)
        m = precision @ y / total
        residual = (precision * (y - m[:, None]) ** 2).sum(1)
        log = (np.log(precision).sum(1) - np.log(total) - residual) / 2 + log_spread_prior(tau**2)
        return log, m, total**-0.5

    low, high = np.log(1e-4), np.log(5.0)
    for _ in range(2):
        tau = np.exp(np.linspace(low, high, 96))
        log, m, sd = at_spread(tau)
        inside = np.flatnonzero(log > log.max() - _DEPTH)
        low, high = np.log(tau[[max(inside[0] - 1, 0), min(inside[-1] + 1, 95)]])
    return SharedGrid(_weights(log), m, tau, sd)


# Of a grid: nodes an axis, and how far below its highest node ln p is taken for 0
_NODES, _DEPTH = (24, 9.0)


def _grid(density: Callable[[FloatArray, FloatArray], FloatArray], start: float) -> FloatArray:
    """(weights, first, second) of the nodes of a box, cut closer four times."""
    box = [(start - 6, start + 6), (np.log(1e-3), np.log(1e6))]
    for _ in range(4):
        axes = [np.linspace(low, high, _NODES) for low, high in box]
        p, q = (x.ravel() for x in np.meshgrid(*axes, indexing="ij"))
        log = density(p[:, None], q[:, None])
        inside = log > log.max() - _DEPTH
        step = [axis[1] - axis[0] for axis in axes]
        box = [
            (x[inside].min() - d, x[inside].max() + d) for x, d in zip((p, q), step, strict=True)
        ]
    return np.stack([_weights(log), p, q])


def _weights(log: FloatArray) -> FloatArray:
    weight = np.where(log > log.max() - _DEPTH, np.exp(log - log.max()), 0)
    return weight / weight.sum()


def _over_arms(term: Callable[..., FloatArray], *of_arms: FloatArray) -> FloatArray:
    """Σ over arms of ``each`` ``[G, arm]``, some arms at a time."""
    parts = range(0, of_arms[0].size, 512)
    return sum((term(*(x[i : i + 512] for x in of_arms)).sum(1) for i in parts), np.zeros(1))


def day_to_day_cost_cv(days: Sequence[Daily]) -> float | None:
    """v = √(Σ n_kd (c_kd / c_k − 1)² / Σ (D_k − 1)), c_kd the cost per click of arm k on day d.

    None where no arm has two days with clicks.
    """
    variance = _over_days(days, "spent", lambda n, s, mean: n * (s / n / mean - 1) ** 2)
    return None if variance is None else float(np.sqrt(variance))


def day_to_day_dispersion(days: Sequence[Daily]) -> float:
    """φ = Σ (x_kd − n_kd θ_k)² / (n_kd θ_k) / Σ (D_k − 1), θ_k = x_k / n_k: 1 for Poisson counts."""
    return _over_days(days, "value", lambda n, x, mean: (x - n * mean) ** 2 / (n * mean)) or 0.0


def _over_days(
    days: Sequence[Daily], quantity: str, square: Callable[..., FloatArray]
) -> float | None:
    """Σ squares / Σ (D − 1) over arms that have two days with clicks; None: no such."""
    columns = [(day.clicks[day.clicks > 0], getattr(day, quantity)[day.clicks > 0]) for day in days]
    arms = [(n, x, float(x.sum() / n.sum())) for n, x in columns if n.size > 1 and x.sum() > 0]
    free = sum(n.size - 1 for n, _, _ in arms)
    return sum(float(square(*arm).sum()) for arm in arms) / free if free else None


# --- The posterior of a file, and draws from it


@dataclass(frozen=True, eq=False)
class DrawnMeans:
    """Means of some runs of one instance, in the user's unit."""

    reward: FloatArray  # [run, K]
    cost: FloatArray  # [run, K]
    weights: tuple[FloatArray, ...] | None = None  # of each arm of a log, its rows' [run, row]


@dataclass(frozen=True, eq=False)
class CountPosterior:
    """The posterior of one instance of a file of counts."""

    law: str  # of the reward per pull: "beta" or "gamma"
    clicks: FloatArray  # n_k / φ, [K]
    value: FloatArray  # x_k / φ
    log_cost: FloatArray  # ln(S_k / n_k)
    log_cost_precision: FloatArray  # n_k / v²; 0 where it is not known
    rewards: SharedGrid  # of all arms of the file
    costs: SharedGrid

    def means(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean reward and cost per pull, ``[K]``."""
        from scipy.special import ndtr

        pool, costs = self.rewards, self.costs
        m, k = pool.mean[:, None], pool.strength[:, None]
        prior = k if self.law == "beta" else k / m
        center, sd = self._log_cost(costs.mean[:, None], costs.strength[:, None])
        # The weight of m beside that of the arm
        mean_weight = costs.strength[:, None] ** -2 * sd**2
        sd = np.sqrt(sd**2 + (mean_weight * costs.mean_sd[:, None]) ** 2)
        top = _NORMAL_END  # the mean of what is drawn, the central 99.9 %
        cost = np.exp(center + sd**2 / 2) * (ndtr(top - sd) - ndtr(-top - sd)) / _CENTRAL
        reward = (m * prior + self.value) / (prior + self.clicks)
        return pool.weight @ reward, costs.weight @ cost

    def _log_cost(self, mean: FloatArray, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of ln c_k given m and τ, ``[…, K]``."""
        total = self.log_cost_precision + tau**-2
        return (self.log_cost_precision * self.log_cost + mean * tau**-2) / total, total**-0.5

    def _reward(self, m: FloatArray, k: FloatArray, uniform: ArrayLike) -> FloatArray:
        """Rewards per pull given m and κ (or a) at these central probabilities, ``[…, K]``."""
        from scipy import special

        p = _central(uniform)
        if self.law == "beta":
            missed = np.maximum(self.clicks - self.value, 0)
            return special.betaincinv(m * k + self.value, (1 - m) * k + missed, p)
        return special.gammaincinv(k + self.value, p) / (k / m + self.clicks)

    def _cost(self, node: ArrayLike, mean: ArrayLike, arm: ArrayLike) -> FloatArray:
        """Costs per pull at a node, at these probabilities of m and of each arm's own, ``[…, K]``."""
        from scipy.special import ndtri

        costs, at = self.costs, np.asarray(node)[..., None]
        m = costs.mean[at] + costs.mean_sd[at] * ndtri(_central(mean))[..., None]
        center, sd = self._log_cost(m, costs.strength[at])
        return np.exp(center + sd * ndtri(_central(arm)))

    def largest(self) -> tuple[float, float]:
        """Upper bounds on every draw of a mean reward and of a mean cost."""
        pool, likely = self.rewards, self.rewards.weight > 0
        # a reward grows with m, so that of each strength only the largest m counts
        pairs = sorted(zip(pool.mean[likely], pool.strength[likely], strict=True))
        largest_mean = {k: m for m, k in pairs}
        k, m = (np.array(x)[:, None] for x in zip(*largest_mean.items(), strict=True))
        nodes, high = np.flatnonzero(self.costs.weight > 0), LARGEST_UNIFORM
        cost = self._cost(nodes, np.full(nodes.size, high), high)
        return float(self._reward(m, k, high).max()), float(cost.max())

    def draw(self, seed: int, instance: int, runs: Sequence[int]) -> DrawnMeans:
        """Draw the means of these runs: first the shared parameters, then each arm's means."""
        arms = np.arange(self.clicks.size)
        uniforms = mean_uniforms(seed, instance, runs, np.zeros_like(arms), arms)
        shared = mean_uniforms(seed, _FILE, runs, np.array([1, 2]), np.array([0, 0]))
        at = _node(self.rewards, shared[:, 0, 0])[:, None]
        reward = self._reward(self.rewards.mean[at], self.rewards.strength[at], uniforms[..., 0])
        at = _node(self.costs, shared[:, 1, 0])
        return DrawnMeans(reward, self._cost(at, shared[:, 1, 1], uniforms[..., 1]))


_FILE = 2**32 - 1  # in the place of an instance: what all instances of a file share
_NORMAL_END = 3.290526731491926  # Φ⁻¹(0.9995)


def _central(uniform: ArrayLike) -> FloatArray:
    return 0.5 + _CENTRAL * (np.asarray(uniform) - 0.5)


def _node(pool: SharedGrid, uniform: FloatArray) -> NDArray[np.int64]:
    """The nodes at these probabilities."""
    cumulative = np.cumsum(pool.weight)
    return np.searchsorted(cumulative, uniform * cumulative[-1], side="right")


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """The posterior of one instance of a log: its rows, for each arm (rewards, costs)."""

    rows: tuple[tuple[FloatArray, FloatArray], ...]
    aligned: bool = False  # a row is one request for all arms

    def means(self) -> tuple[FloatArray, FloatArray]:
        """The averages of the rows, ``[K]``."""
        reward, cost = (np.array([arm[i].mean(axis=0) for arm in self.rows]) for i in (0, 1))
        return reward, cost

    def draw(self, seed: int, instance: int, runs: Sequence[int]) -> DrawnMeans:
        """Draw the means of these runs, and the weights of the rows from which they come."""
        weights = []
        for arm, (rewards, _) in enumerate(self.rows[: 1 if self.aligned else None]):
            row = np.arange(rewards.size)
            uniforms = mean_uniforms(seed, instance, runs, row, np.full_like(row, arm))
            exponential = -np.log(uniforms[..., 0])
            weights.append(exponential / exponential.sum(-1, keepdims=True))
        weights = weights * len(self.rows) if self.aligned else weights
        arms = list(zip(weights, self.rows, strict=True))
        reward, cost = (np.stack([w @ arm[i] for w, arm in arms], axis=1) for i in (0, 1))
        return DrawnMeans(reward, cost, tuple(weights))


@dataclass(frozen=True, eq=False)
class FilePosterior:
    """The posterior of a file: one for each instance, and the settings that made it."""

    instances: tuple[CountPosterior | LogPosterior, ...]  # in the order of the file
    cost_cv: float  # v, coefficient of variation of one pull's cost; 0 for a log, whose rows say it
    cost_cv_from: str  # "days", "stated" or "rows"
    dispersion: float = 1.0  # φ, by which counts are divided; 1 where there are no days


def why_no_posterior(table: ArmsTable) -> str | None:
    """Why the means of this table are taken as exact; None if a posterior exists."""
    if any(instance.evidence.clicks is None for instance in table.instances):
        return "it has only means, without counts that show how certain they are"
    if table.kind != "log" and not counts_conversions(table) and not _days(table):
        return f"its {table.reward_unit} are not counts, and there are no daily rows that show how they vary"
    return None


def posterior_of(table: ArmsTable, cost_cv: float | None = None) -> FilePosterior:
    """The posterior of the arms' means; requires that :func:`why_no_posterior` is None.

    ``cost_cv`` is v; None: from day to day, else :data:`STATED_COST_CV`.
    """
    if table.kind == "log":
        logs = (LogPosterior(instance.log or (), table.wide) for instance in table.instances)
        return FilePosterior(tuple(logs), 0.0, "rows")
    evidence = [instance.evidence for instance in table.instances]
    parts = [np.array([x.clicks, x.value, x.spent], float) for x in evidence]
    clicks, value, spent = np.concatenate(parts, axis=1)
    days, whole = _days(table), counts_conversions(table)
    seen = day_to_day_cost_cv(days)
    v, v_from = (STATED_COST_CV, "stated") if seen is None else (max(seen, _LEAST_CV), "days")
    v, v_from = (v, v_from) if cost_cv is None else (cost_cv, "stated")
    phi = max(day_to_day_dispersion(days), 1.0 if whole else 0.0) if days else 1.0
    phi = phi or float(value.sum() / max(clicks.sum(), 1))  # revenue that is the same every day
    rewards = pooled_beta(clicks / phi, value / phi) if whole else pooled_gamma(clicks, value, phi)
    costs, law = pooled_log_cost(clicks, spent, v), "beta" if whole else "gamma"
    posteriors = [
        CountPosterior(law, n / phi, x / phi, np.log(s / n), n / (v * v), rewards, costs)
        for n, x, s in parts
    ]
    return FilePosterior(tuple(posteriors), v, v_from, phi)


def counts_conversions(table: ArmsTable) -> bool:
    """Whether every reward is a count of something that occurs at most once per pull."""
    return all(instance.evidence.whole for instance in table.instances)


def _days(table: ArmsTable) -> list[Daily]:
    every = (instance.evidence.daily or () for instance in table.instances)
    return [day for days in every for day in days if day.clicks.size > 1]


# --- The arms of instances as an environment, in scaled units: means over the bounds of the file


def scaled_means(
    instances: Sequence[Instance],
    width: int | None = None,
    means: Sequence[tuple[np.ndarray, np.ndarray]] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scaled mean rewards and costs, and which arms exist, ``[instance, …, arm]`` each.

    ``width`` is the number of columns (that of the widest instance), absent arms have means of one
    half; ``means`` are rewards and costs ``[…, arm]`` of each instance, default those of the file.
    """
    means = means or [(instance.mean_reward, instance.mean_cost) for instance in instances]
    width = width or max(len(instance.arms) for instance in instances)
    reward = np.full((len(instances), *means[0][0].shape[:-1], width), 0.5)
    cost, present = np.full(reward.shape, 0.5), np.zeros(reward.shape, bool)
    for row, (instance, (mean_reward, mean_cost)) in enumerate(zip(instances, means, strict=True)):
        at: Any = (row, ..., slice(len(instance.arms)))
        reward[at] = mean_reward / instance.reward_bound
        cost[at] = mean_cost / instance.cost_bound
        present[at] = True
    return reward, cost, present


def finite_arms(instances: Sequence[Instance]) -> FiniteArms:
    """Bernoulli arms of some instances in scaled units, padded to the widest; of a log only its means.

    Raises:
        InputError: a mean too small to be played: a cost that would never spend the budget.

    Example:
        >>> from jaxbandits.apps.comparison import Instance, finite_arms
        >>> some = Instance("some", ("a", "b"), np.array([1.0, 2.0]), np.array([3.0, 4.0]), 2.0, 4.0, None)
        >>> [x.tolist() for x in finite_arms([some]).values()]
        [[[0.5, 1.0]], [[0.75, 1.0]]]
    """
    reward, cost, present = scaled_means(instances)
    for quantity, means in (("reward", reward), ("cost", cost)):  # of a coin: a tick or more
        small = (ticks.from_units(means) == 0) & ((means > 0) | (quantity == "cost"))
        _refuse(instances, present & small, _SMALL.format(quantity))
    return FiniteArms.bernoulli(reward, cost, present)


_SMALL = "mean {0}: below 2**-24 of the bound of the {0}s, the smallest {0} that can be counted"


def _refuse(instances: Sequence[Instance], wrong: np.ndarray, reason: str) -> None:
    """Raise an InputError for the first arm, ``[instance, …, arm]``, that cannot be played."""
    for row, *_, arm in np.argwhere(wrong)[:1]:
        raise InputError(
            f"instance {quoted(instances[row].name)}, arm {quoted(instances[row].arms[arm])}, {reason}"
        )


# --- Means that are drawn anew for every run


def spread_of(cost_cv: float) -> float:
    """h/m of a cost drawn from m ± h with this coefficient of variation; at most 1."""
    return min(float(np.sqrt(3)) * cost_cv, 1.0)


def with_bounds(table: ArmsTable, noise: str, posterior: FilePosterior | None) -> ArmsTable:
    """The table with bounds that no draw exceeds.

    A log's are its largest reward and cost. A click brings one conversion at most; a cost is
    bounded by the largest mean of any draw of its instance, with the noise around it.
    """
    if table.kind == "log" or posterior is None:
        return table
    bounded = list[Instance]()
    above = 1 + spread_of(posterior.cost_cv) if noise == "clicks" else 1 / _LARGEST_SCALED_MEAN
    for instance, of in zip(table.instances, posterior.instances, strict=True):
        assert isinstance(of, CountPosterior)
        reward, cost = of.largest()
        reward = 1.0 if of.law == "beta" else reward / _LARGEST_SCALED_MEAN
        cost = cost * above
        bounded.append(dataclasses.replace(instance, reward_bound=reward, cost_bound=cost))
    return dataclasses.replace(table, instances=tuple(bounded))


def run_arms(
    instances: Sequence[Instance], draws: Sequence[DrawnMeans], noise: str, cost_cv: float
) -> FiniteArms:
    """Arms whose means were drawn for each run, row by row: instance by instance, run by run.

    ``"clicks"``: one conversion or none, a price spread uniformly around its mean (``cost_cv``);
    ``"bernoulli"``: the whole bound or nothing for both; ``"empirical"``: a row of the log, with
    the weights that were drawn.
    """
    if noise == "empirical":
        return _log_arms(instances, draws)
    drawn = [(draw.reward, draw.cost) for draw in draws]
    reward, cost, present = scaled_means(instances, means=drawn)
    _refuse(instances, present & (ticks.from_units(cost) < 1), _SMALL.format("cost"))
    chance, price = (
        ticks.from_units(np.minimum(x, 1.0)).astype(np.int32).reshape(-1, *x.shape[2:])
        for x in (reward, cost)
    )
    whole = np.full_like(price, ticks.ONE)
    # Every click costs its price, which is uniform on mean ± half, at most the bound
    if noise == "clicks":
        half = np.minimum(np.rint(price * spread_of(cost_cv)), ticks.ONE - price).astype(np.int32)
        law = ClickLaw(chance, whole, whole, price, half)
    else:
        law = ClickLaw(chance, whole, price, whole, np.zeros_like(whole))
    present = present.reshape(chance.shape)
    return FiniteArms(law=law, mean_reward=chance, mean_cost=price, present=present)


def _log_arms(instances: Sequence[Instance], draws: Sequence[DrawnMeans]) -> FiniteArms:
    """Arms of a log whose rows have other weights in every run."""
    runs, width = draws[0].reward.shape[0], max(len(instance.arms) for instance in instances)
    depth = max(arm.shape[1] for draw in draws for arm in draw.weights or ())
    shape = (len(instances), runs, width, depth)
    reward, cost = np.zeros((2, *shape), np.int32)
    cumulative, present = np.full(shape, ticks.ONE, np.int32), np.zeros(shape[:3], bool)
    for i, (instance, draw) in enumerate(zip(instances, draws, strict=True)):
        pairs = zip(instance.log or (), draw.weights or (), strict=True)
        for arm, (rows, weights) in enumerate(pairs):
            count = weights.shape[1]
            reward[i, :, arm, :count] = ticks.from_units(rows[0] / instance.reward_bound)
            cost[i, :, arm, :count] = ticks.from_units(rows[1] / instance.cost_bound)
            until = np.cumsum(weights, axis=-1)[:, :-1]
            cumulative[i, :, arm, : count - 1] = np.rint(until * ticks.ONE)
            present[i, :, arm] = True
    share = np.diff(cumulative, axis=-1, prepend=0).astype(np.float64) / ticks.ONE
    sums = [np.rint((share * x).sum(3)) for x in (reward, cost)]
    means = [x.astype(np.int32).reshape(-1, width) for x in sums]
    law = WeightedRowsLaw(*(x.reshape(-1, *x.shape[2:]) for x in (reward, cost, cumulative)))
    present = present.reshape(-1, width)
    return FiniteArms(law=law, mean_reward=means[0], mean_cost=means[1], present=present)


@pytree
class WeightedRows(RowOrder):
    """Draws a row in each round; each row has its own probability."""

    cumulative: Any = leaf()  # i32[I, N]: P(row <= j) in ticks; 2**24 at the last one

    def row(self, key: jax.Array, round: jax.Array, rows: int) -> jax.Array:
        return drawn_row(lambda at: self.cumulative[at], rows, streams.words(key, round, 0)[0])


def request_table(instance: Instance, weights: FloatArray) -> RequestTable:
    """The requests of a wide file, drawn with weights ``[run, N]``."""
    rewards, costs = (np.stack(x, axis=1) for x in zip(*instance.log or (), strict=True))
    reward = ticks.from_units(rewards / instance.reward_bound).astype(np.int32)
    cost = ticks.from_units(costs / instance.cost_bound).astype(np.int32)
    cumulative = np.rint(np.cumsum(weights, axis=-1) * ticks.ONE).astype(np.int32)
    cumulative[:, -1] = ticks.ONE
    share = np.diff(cumulative, axis=-1, prepend=0) / ticks.ONE
    return RequestTable(
        reward=np.broadcast_to(reward, (len(weights), *reward.shape)),
        cost=np.broadcast_to(cost, (len(weights), *cost.shape)),
        mean_reward=np.rint(np.tensordot(share, reward, 1)).astype(np.int32),
        mean_cost=np.rint(np.tensordot(share, cost, 1)).astype(np.int32),
        order=WeightedRows(cumulative),
    )
