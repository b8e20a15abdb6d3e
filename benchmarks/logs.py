"""``python -m benchmarks.logs``: how often intervals from logs hold the truth of a known world.

1,000 logs of each row; Bernoulli rewards (.7, .5, .2) and costs (.6, .3, .5), logged with
probabilities (.2, .3, .5).
"""

from __future__ import annotations

import time
import warnings

import jax
import numpy as np

import jaxbandits as jb

REWARD, COST, LOGGED = (np.array(x) for x in ([0.7, 0.5, 0.2], [0.6, 0.3, 0.5], [0.2, 0.3, 0.5]))
RULES = {
    "near": np.array([0.3, 0.3, 0.4]),
    "far": np.array([0.6, 0.3, 0.1]),
    "one arm": np.eye(3)[0],
}
LIMITS = {"money": jb.TotalBudget(30.0, last_pull="counts"), "rounds": jb.Horizon(80)}
LOGS = 1000


def log_of(rng: np.random.Generator, rows: int, chance: np.ndarray = LOGGED) -> jb.Log:
    """A log of this world."""
    arm = rng.choice(3, rows, p=chance)
    coins = ((rng.random(rows) < mean[arm]).astype(float) for mean in (REWARD, COST))
    return jb.Log.of(arm, *coins, propensity=chance[arm], arms=3)


def of_rules(limit: str, rows: int) -> dict[tuple[str, str], tuple[float, float]]:
    """By rule and method: the share of intervals that hold, and their mean width over the value."""
    rng = np.random.default_rng(rows)
    found: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for _ in range(LOGS):
        log = log_of(rng, rows)
        for name, rule in RULES.items():
            r, c = rule @ REWARD, rule @ COST
            truth = 30 * r / c if limit == "money" else 80 * r
            for method in ("ips", "snips", "dr"):
                x = jb.off_policy(log, rule, LIMITS[limit], method=method)
                row = (x.low <= truth <= x.high, (x.high - x.low) / truth)
                found.setdefault((name, method), []).append(row)
    return {key: tuple(np.mean(x, axis=0)) for key, x in found.items()}  # type: ignore[misc]


def of_walks(limit: str, logs: int = 300) -> float:
    """The share of 95 % intervals over 20 parts that hold what a run of UCB1 earns."""
    policy, world = jb.policies.UCB1(), jb.environments.FiniteArms.bernoulli(REWARD, COST)
    many = jb.simulate(
        policy, world, LIMITS[limit], key=jax.random.key(1), replicates=200_000, marks=1
    )
    truth, rng, held = float(many.reward.values.mean()), np.random.default_rng(0), 0
    for number in range(logs):
        log = log_of(rng, 20_000, np.full(3, 1 / 3))
        result = jb.replay(
            policy, log, LIMITS[limit], key=jax.random.key(number), parts=20, marks=1
        )
        x = jb.statistics.mean(result.reward[..., -1], over="replicate")
        held += float(x.low.values.ravel()[0]) <= truth <= float(x.high.values.ravel()[0])
    return held / logs


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    began = time.time()
    width = "width of dr's interval, over the value"
    print(f"| constraint | rows | rule | ips | snips | dr | {width} |\n" + "|---" * 7 + "|")
    for limit in LIMITS:
        for rows in (200, 1000, 5000):
            found = of_rules(limit, rows)
            for rule in RULES:
                shares = " | ".join(f"{found[rule, m][0]:.3f}" for m in ("ips", "snips", "dr"))
                print(
                    f"| {limit} | {rows:,} | {rule} | {shares} | {found[rule, 'dr'][1]:.0%} |",
                    flush=True,
                )
    for limit in LIMITS:
        print(f"walks of UCB1, {limit}: {of_walks(limit):.3f}", flush=True)
    print(f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
