"""Theorems 1 to 5 of the ω-UCB paper, beside what can be computed or played."""

from __future__ import annotations

import jax
import numpy as np
from scipy import stats

import jaxbandits as jb
from experiments.common.rows import Row, row
from experiments.common.running import Options
from experiments.omega_ucb.specs import KEY
from jaxbandits.environments import random_bernoulli
from jaxbandits.policies import OmegaUCB

MEANS = np.array([0.001, 0.005, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99])
PULLS = (10, 100, 1000)


def wilson(n: int, z: float) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) of Theorem 1 with η = 1 for every total of n Bernoulli outcomes."""
    total = np.arange(n + 1.0)
    a, b = n + z**2, total + z**2 / 2
    half = z * np.sqrt(total * (n - total) / n + z**2 / 4)
    upper = (b + half) / a
    lower = np.where(total > 0, total**2 / n / np.maximum(b + half, 1e-300), 0.0)  # the other root: nothing cancels
    return lower, upper


def missed(n: int, mean: float, z: float) -> float:
    """Exact probability that the interval of n Bernoulli outcomes leaves out their mean."""
    lower, upper = wilson(n, z)
    return float(stats.binom.pmf(np.arange(n + 1), n, mean)[(mean < lower) | (mean > upper)].sum())


def exceeded(n: int, reward: float, cost: float, z: float) -> float:
    """Exact probability that μ^r/μ^c is above its upper bound Ω after n pulls."""
    of_cost, of_reward = wilson(n, z)
    p_reward, p_cost = (stats.binom.pmf(np.arange(n + 1), n, mean) for mean in (reward, cost))
    # Ω < μ^r/μ^c: upper reward bound below μ^r/μ^c times the lower cost bound
    least = np.searchsorted(of_reward, reward / cost * of_cost)  # both bounds rise with their totals
    return float(p_cost @ np.append(0.0, np.cumsum(p_reward))[least])


def coverage(options: Options) -> list[Row]:
    """Theorems 1, 2 and 3 for Bernoulli laws, without simulation."""
    rows = []
    pulls = options.pick(PULLS[:2], PULLS, PULLS)
    for level in (0.05, 0.01):
        z = float(stats.norm.isf(level / 2))
        for n in pulls:
            shares = np.array([missed(n, mean, z) for mean in MEANS])
            rows.append(_worst(f"theorem 1, α = {level:g}, n = {n}", shares, level, MEANS))
            pairs = [(r, c) for r in MEANS for c in MEANS]
            shares = np.array([exceeded(n, r, c, z) for r, c in pairs])
            rows.append(_worst(f"theorem 2, α = {level:g}, n = {n}", shares, level, pairs))
    for rho in (0.25, 1.0):
        for n in pulls:
            t = 10 * n  # an arm that has a tenth of all pulls
            level, z = 1 - np.sqrt(1 - t**-rho), np.sqrt(2 * rho * np.log(t))
            pairs = [(r, c) for r in MEANS for c in MEANS]
            shares = np.array([exceeded(n, r, c, z) for r, c in pairs])
            rows.append(_worst(f"theorem 3, ρ = {rho:g}, n = {n}, t = {t}", shares, level, pairs))
    return rows


def _worst(item: str, shares: np.ndarray, level: float, where: object) -> Row:
    """The largest probability of all laws beside the theorem's bound of it."""
    at = int(shares.argmax())
    inside = int((shares <= level).sum())
    place = np.asarray(where)[at]
    note = f"exact, Bernoulli; at mean(s) {place}; {inside} of {shares.size} laws within the bound"
    holds = shares[at] <= level
    return row(f"{item}: largest probability of a miss", shares[at], "0", published=f"≤ {level:.3g}", holds=holds,
               note=f"{note}; the proof takes the central limit theorem for exact", digits=".3g")  # fmt: skip


def pulls_bound(reward: np.ndarray, cost: np.ndarray, budget: np.ndarray, rho: float) -> np.ndarray:
    """Theorem 4 at τ_B = ⌊2B/min μ^c⌋, η = 1 (Bernoulli): 1 + n*_k + ξ, ``[instance, arm]``; NaN at the best."""
    ratio = reward / cost
    best = ratio.max(axis=1, keepdims=True)
    gap = best - ratio
    tau = np.floor(2 * budget / cost.min(axis=1))
    delta = gap / (gap + 1 / cost)
    spread = np.maximum(reward / (1 - reward), (1 - cost) / cost)
    with np.errstate(divide="ignore"):
        needed = 8 * rho * np.log(tau)[:, None] / delta**2 * spread
    arms = reward.shape[1]
    xi = np.array([(t - arms) * (2 - np.sqrt(1 - t**-rho)) - np.sqrt(1 - np.arange(arms + 1, t + 1) ** -rho).sum()
                   for t in tau])  # fmt: skip
    return np.where(gap > 0, 1 + needed + xi[:, None], np.nan)


def plays(options: Options) -> list[Row]:
    """Theorems 4 and 5 on small instances, played often."""
    count, runs, steps = options.pick((5, 20, 1e3), (20, 50, 1e4), (30, 200, 1e4))
    world = random_bernoulli(jax.random.fold_in(KEY, 4), instances=count, arms=4)
    reward, cost = world.values()
    budget = steps * cost.min(axis=1)
    rhos = np.array([0.25, 1.0])
    constraint = jb.TotalBudget(budget, last_pull="counts")
    result = jb.simulate(OmegaUCB(rho=rhos), world, constraint, key=KEY, replicates=runs, marks=1)
    gap = (reward / cost).max(axis=1, keepdims=True) - reward / cost
    rows = []
    for rho, pulls, regret in zip(rhos, result.final["pulls"], result.regret.values[..., -1], strict=True):
        bound = pulls_bound(reward, cost, budget, rho)
        rows.append(held(f"theorem 4, ρ = {rho:g}: E[pulls] of an arm that is not the best", pulls, bound[:, None]))
        # the gap of the ratios, as printed; 𝒳(B), which only raises the bound and is not given in full, is left out
        whole = np.nansum(gap * bound, axis=1) + 2 * (reward / cost).max(axis=1)
        rows.append(held(f"theorem 5, ρ = {rho:g}: regret", regret[..., None], whole[:, None, None]))
    return rows


def held(item: str, values: np.ndarray, bound: np.ndarray) -> Row:
    """Are all means over runs ``[place, run, what]`` below their bound ``[place, 1, what]``? Bonferroni at 5 %."""
    mean, se = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    bound = np.broadcast_to(bound, (values.shape[0], 1, values.shape[2]))[:, 0]
    known = np.isfinite(bound)
    z = stats.norm.isf(0.05 / known.sum())
    over, under = (mean - z * se > bound)[known], (mean + z * se < bound)[known]
    factor = np.median(bound[known] / np.maximum(mean[known], 1e-9))
    text = f"below in {under.sum()}, above in {over.sum()} of {known.sum()}"
    note = f"{values.shape[1]} runs each; the bound is {factor:.3g} times the measured mean (median)"
    holds = False if over.any() else True if under.all() else None
    return row(item, text, published="≤ the bound", holds=holds, note=note)


def theorems(options: Options) -> list[Row]:
    """All five."""
    return [each._replace(item=f"theorems: {each.item}") for each in (*coverage(options), *plays(options))]
