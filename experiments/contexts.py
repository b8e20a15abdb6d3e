"""How the regret of policies that see contexts grows with the rounds; the benchmark is exact.

    python -m experiments contexts [--quick|--full] [--only ITEM] [--out DIR]

Items: growth.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.common import OURS, Experiment, Options, Row, Summary, mean_se, simulated
from jaxbandits.environments import ContextualArms, Rows, WithNullArm
from jaxbandits.policies import Bonus, ContextualPacer, Draw, LinCBwK, LinUCB, SquareCBwK

ARMS, FEATURES, REQUESTS, SHARE = 4, 5, 512, 0.25  # the last: of the rounds, what there is to spend
FREE: dict[str, Any] = {
    "LinUCB": LinUCB(explore=Bonus(1.0), ridge=4.0),
    "LinUCB, draws": LinUCB(explore=Draw(0.5), ridge=4.0),
}
PAID: dict[str, Any] = {
    "ContextualPacer": ContextualPacer(explore=Bonus(1.0), cost_alpha=1.0, ridge=4.0),
    "LinCBwK": LinCBwK(),
    "SquareCBwK": SquareCBwK(),
}


def worlds() -> tuple[ContextualArms, WithNullArm]:
    """Four arms with coins, means linear in 512 directions: for a horizon, and with a null arm."""
    rng = np.random.default_rng(20261125)

    def theta() -> np.ndarray:
        constant, slope = rng.uniform(0.35, 0.65, (ARMS, 1)), rng.normal(size=(ARMS, FEATURES))
        return np.hstack([constant, 0.3 * slope / np.linalg.norm(slope, axis=1, keepdims=True)])

    reward, cost = theta(), theta() * np.array([0.4, 0.7, 1.0, 1.0])[:, None]
    directions = rng.normal(size=(REQUESTS, FEATURES))
    law = Rows.of(directions / np.linalg.norm(directions, axis=1, keepdims=True))
    limited = ContextualArms.linear(reward, cost[:, None, :], law, resources=1)
    return ContextualArms.linear(reward, cost, law), WithNullArm(limited)


def growth(options: Options) -> list[Row]:
    """Regret after 10³ to 10⁶ rounds, each length a run of its own, and its exponent."""
    usual = {1000: 64, 10_000: 64}
    longer = {100_000: 32, 1_000_000: 16}
    runs: dict[int, int] = options.pick({100: 4, 1000: 4}, usual, usual | longer)
    free, paid = worlds()
    span = np.log(max(runs) / min(runs))
    rows = Summary()
    policies = FREE | PAID
    if options.quick:  # one of each kind: each takes ten seconds to compile
        policies = {name: policies[name] for name in ("LinUCB", "ContextualPacer")}
    for name, policy in policies.items():
        world, key = (free, jax.random.key(77)) if name in FREE else (paid, jax.random.key(78))
        means, errors = np.zeros((2, len(runs)))
        for at, (rounds, number) in enumerate(runs.items()):
            limit: Any = jb.Horizon(rounds)
            if name in PAID:
                limit = jb.TotalBudget([SHARE * rounds], last_pull="counts", rounds=rounds)
            result, _ = simulated(
                options, f"growth {name}, {rounds}", policy, world, limit,
                key=key, replicates=number, marks=1,
            )  # fmt: skip
            regret = result.regret.values.ravel()
            means[at], errors[at] = mean_se(regret)
            item, note = f"growth: {name}, {rounds} rounds: regret", f"{number} runs"
            rows.mean(item, regret, digits=".1f", note=note, published=OURS)
        if (means > 2 * errors).all():
            power = np.log(means[-1] / means[0]) / span
            error = np.hypot(*(errors / means)[[0, -1]]) / span
            item, note = f"growth: {name}: exponent", f"{min(runs)} to {max(runs)} rounds"
            rows.add(item, power, error, digits=".2f", note=note, published=OURS)
    return rows


EXPERIMENT = Experiment.of("contexts", (growth,))
