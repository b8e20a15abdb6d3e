"""Exact values and gradients against digits that were computed apart from this project; the Monte Carlo beside them."""

from __future__ import annotations

import numpy as np

import jaxbandits as jb
from experiments.common.rows import Row, mean_se, row
from experiments.common.running import Options
from experiments.gradients.world import KEY
from jaxbandits import oracles
from jaxbandits.environments import FiniteArms
from jaxbandits.gradients import exact
from jaxbandits.policies import UCB1, SoftElim

MEANS = np.array([[0.6, 0.4]])
TABLE = {
    (20, 0.25): (1.3476830120, -0.5110703247, 3.75511031, -3.61524658),
    (20, 0.5): (1.3165517734, 0.3351578764, 3.40888297, -3.47858104),
    (50, 0.5): (2.4663112845, 0.6382316172, 2.22783083, -2.11569954),
    (50, 1.0): (3.2021077026, 1.5532180365, 7.57492129, -7.92045990),
}
BEST = {20: (0.404844, 1.29904801), 50: (0.442958, 2.44646722)}
UCB1_20 = (1.5465188247, 5.60680247, -5.66625055)
BAYES = {10: 6.021786, 50: 31.996712, 100: 64.918421}
RUNS_200 = {0.25: (8.63, 0.07), 0.5: (4.73, 0.04), 0.75: (5.53, 0.02), 1.0: (7.24, 0.02), 2.0: (12.86, 0.02)}


def exact_digits(options: Options) -> list[Row]:
    """The table of SoftElim, the best θ, UCB1, Bayes-optimal values."""
    rows = []
    for (n, theta), must in TABLE.items():
        found = softelim(n, theta)
        got = (found.regret[0], found.by_parameter[0, 0], *found.by_mean_reward[0])
        for name, a, b in zip(("regret", "∂/∂θ", "∂/∂μ₁", "∂/∂μ₂"), got, must, strict=True):
            rows.append(_digits(f"exact: SoftElim n = {n}, θ = {theta:g}: {name}", a, b, 6e-9))
    for n, (at, regret) in BEST.items():
        low, high = 0.3, 0.6
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (middle, high) if softelim(n, middle).by_parameter[0, 0] < 0 else (low, middle)
        rows.append(_digits(f"exact: best θ, n = {n}", low, at, 6e-7))
        rows.append(_digits(f"exact: regret at the best θ, n = {n}", softelim(n, low).regret[0], regret, 6e-9))
    found = played(ucb1(2.0), 20)
    for name, a, b in zip(
        ("regret", "∂/∂μ₁", "∂/∂μ₂"), (found.regret[0], *found.by_mean_reward[0]), UCB1_20, strict=True
    ):
        rows.append(_digits(f"exact: UCB1 n = 20: {name}", a, b, 6e-9))
    count = len({round(float(played(ucb1(c), 20).regret[0]), 12) for c in np.linspace(1.9, 2.1, 41)})
    item = "exact: UCB1, different regrets of 41 constants in [1.9, 2.1]"
    note = "a step function: its gradient is 0 almost everywhere"
    rows.append(row(item, count, published=17, holds=count == 17, note=note))
    for n, value in BAYES.items():
        rows.append(_digits(f"exact: Bayes-optimal reward, n = {n}", oracles.bayes_optimal_reward(n), value, 6e-7))
    arms = FiniteArms.bernoulli(MEANS, np.full((1, 2), 0.5))
    mine = exact.estimate(SoftElim(0.5), arms, jb.Horizon(20), wrt="theta").gradient["theta"][0, 0]
    item, note = "exact: the library's SoftElim n = 20, θ = 0.5: ∂/∂θ", "means rounded to 2⁻²⁴"
    return [*rows, _digits(item, mine, TABLE[20, 0.5][1], 1e-6, note)]


def played(choose: oracles.Choice, n: int) -> oracles.Exact:
    """The exact value of n rounds on the two arms."""
    return oracles.evaluate(oracles.play_out(choose, 2, n), MEANS, np.ones((1, 2)))


def softelim(n: int, theta: float) -> oracles.Exact:
    """SoftElim in float64, the mean of an arm without pulls taken as 1."""

    def choose(counts: oracles.Counts) -> np.ndarray:
        pulls = counts.pulls.astype(float)
        mean = np.where(pulls > 0, counts.rewards / np.maximum(pulls, 1), 1.0)
        s = -2 * (mean.max(1, keepdims=True) - mean) ** 2 * pulls
        p = np.exp(s / theta**2)
        p /= p.sum(1, keepdims=True)
        return np.stack([p, p * -2 / theta**3 * (s - (p * s).sum(1, keepdims=True))])

    return played(choose, n)


def ucb1(c: float) -> oracles.Choice:
    """r̄ + √(c ln t / n), t = pulls so far, ties to the first arm."""

    def choose(counts: oracles.Counts) -> np.ndarray:
        n = counts.pulls
        with np.errstate(divide="ignore", invalid="ignore"):
            bonus = np.sqrt(c * np.log(np.maximum(n.sum(1, keepdims=True), 1)) / n)
            score = np.where(n > 0, counts.rewards / n + bonus, np.inf)
        return (score.argmax(1)[:, None] == np.arange(2)).astype(float)[None]

    return choose


def monte_carlo(options: Options) -> list[Row]:
    """SoftElim for 200 rounds on (0.6, 0.4) and (0.4, 0.6), simulated; UCB1 beside it."""
    runs = options.pick(500, 4000, 20_000)
    arms = FiniteArms.bernoulli([[0.6, 0.4], [0.4, 0.6]], np.ones((2, 2)))
    rows = []
    for policy, published in (
        (SoftElim(theta=np.array(list(RUNS_200))), {f"SoftElim θ = {theta:g}": x for theta, x in RUNS_200.items()}),
        (UCB1(), {"UCB1": (9.98, 0.02)}),
    ):
        result = jb.simulate(policy, arms, jb.Horizon(200), key=KEY, replicates=runs, marks=1)
        for i, (name, (must, error)) in enumerate(published.items()):
            mean, se = mean_se(result.regret.values[i, ..., -1].ravel())
            z = abs(mean - must) / np.hypot(se, error)
            item, note = f"monte_carlo: {name}, n = 200, regret", f"{2 * runs} runs; |z| = {z:.1f}, yes: below 3"
            said = f"{must} ± {error}"
            rows.append(row(item, mean, f"{se:.3f}", published=said, holds=z < 3, note=note, digits=".3f"))
    return rows


def _digits(item: str, got: float, must: float, within: float, note: str = "") -> Row:
    held, note = abs(got - must) < within, note or f"yes: within {within:g}"
    return row(item, got, published=f"{must:.10g}", holds=held, note=note, digits=".10f")
